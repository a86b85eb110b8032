//! Choosing the threshold: which pairs a round may leave whole, and what bounds the others.
//!
//! This is what workers ask a trainer: it is where the driver's is, but has no round of its own. It gets the
//! counts of all pairs or of a part of them; pairs that were chosen from parts are merged and chosen
//! from again.

use super::{Candidate, Candidates, Ties, Trainer};
use crate::base::error::Result;
use crate::base::sums::add;
use crate::train::score::{Counts, Score};
use crate::train::splits::{PairCount, PairCounts};

impl Trainer {
    /// The largest count of a pair that makes a token which is short enough.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`](crate::Error::Data) if a pair is not of tokens of this training.
    pub fn largest(&self, pairs: &PairCounts) -> Result<u64> {
        self.tokens.check(pairs.keys().flat_map(|&(left, right)| [left, right]))?;
        let fitting = pairs.iter().filter(|((a, b), _)| self.tokens.fits(*a, *b));
        Ok(fitting.map(|(_, pair)| pair.count).max().unwrap_or(0))
    }

    /// The pairs that a round may leave whole: the best one, with level 0, and about `most` others.
    ///
    /// # Arguments
    ///
    /// * `unigrams` - By token, its count.
    /// * `pairs` - All pairs, or some of them. What was chosen from parts of the pairs can be put
    ///   together, and chosen from again.
    /// * `largest` - The largest count of a pair.
    /// * `most` - The approximate number of pairs to choose.
    /// * `max_level` - The highest level whose pairs are complete. None: all pairs are. For pairs
    ///   chosen from parts, it is the lowest of the levels that were returned with them.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`](crate::Error::Data) if the counts contradict each other, and
    /// [`Error::Option`](crate::Error::Option) for the likelihood.
    ///
    /// # Panics
    ///
    /// Panics if a token has no count.
    pub fn candidates(
        &self,
        unigrams: &[u64],
        pairs: &PairCounts,
        largest: u64,
        most: usize,
        max_level: Option<u16>,
    ) -> Result<Candidates> {
        self.check_criterion()?;
        self.check_pairs(unigrams, pairs.iter())?;
        let ladder = self.ladder(largest);
        let max_level = max_level.unwrap_or(ladder.max_level());
        let best = self.best(unigrams, pairs, largest)?;
        // Pairs that make too long a token count too: if words contain the continuing prefix, a pair
        // that grows out of such a pair may make a shorter one.
        let with_levels = pairs.iter().filter_map(|(&pair, &count)| {
            let [left, right] = [pair.0, pair.1].map(|token| unigrams[token as usize]);
            Some((pair, count, ladder.level_of_pair(count.count, left, right)?))
        });
        let mut chosen: Vec<_> = with_levels.filter(|(.., level)| *level <= max_level).collect();
        let max_level = keep_whole_levels(&mut chosen, most, max_level);
        chosen.retain(|(other, ..)| best.is_none_or(|(pair, ..)| pair != *other));
        chosen.extend(best);
        chosen.sort_unstable_by_key(|(pair, ..)| *pair);
        Ok(Candidates { pairs: chosen, max_level })
    }

    /// The best pair that is eligible now, with its level, which is 0.
    fn best(
        &self,
        unigrams: &[u64],
        pairs: &PairCounts,
        largest: u64,
    ) -> Result<Option<Candidate>> {
        let total = unigrams.iter().try_fold(0, |sum, &count| add(sum, count))?;
        let support = self.support_for(largest);
        let eligible = pairs.iter().filter(|((left, right), pair)| {
            pair.count >= support && self.tokens.fits(*left, *right)
        });
        let ranked = eligible.map(|(&(left, right), &pair)| {
            let counts = Counts {
                pair: pair.count,
                merges: 0, // which the likelihood alone needs, as the next one
                left: unigrams[left as usize],
                right: unigrams[right as usize],
                merged: 0,
                total,
                same: left == right,
            };
            (Score::of(self.options.criterion, &counts), (left, right), pair)
        });
        let best = ranked.max_by(|a, b| {
            a.0.compare(&b.0).then_with(|| match self.options.ties {
                Ties::FirstPlace => b.2.first.cmp(&a.2.first),
                Ties::SmallestIds => b.1.cmp(&a.1),
            })
        });
        Ok(best.map(|(_, pair, count)| (pair, count, 0)))
    }
}

/// Keeps the pairs of the lowest levels, as many levels as have no more than `most` pairs together.
/// Returns the highest of them. `max_level`: the highest level of a pair.
fn keep_whole_levels(
    pairs: &mut Vec<((u32, u32), PairCount, u16)>,
    most: usize,
    max_level: u16,
) -> u16 {
    let mut sizes = vec![0usize; max_level as usize + 1];
    pairs.iter().for_each(|(_, _, level)| sizes[*level as usize] += 1);
    let mut held = 0;
    let fitting = sizes.iter().take_while(|&&size| {
        held += size;
        held <= most
    });
    let max_level = fitting.count().saturating_sub(1) as u16;
    pairs.retain(|(_, _, level)| *level <= max_level);
    max_level
}
