//! The pairs between which a round may divide splits, so that it holds less and the result is the same.
//!
//! A round that cannot hold all splits divides them between the tokens of every pair that it can do
//! without, and holds the pieces ("runs"), equal ones once, with the sum of their counts. Merges on
//! either side may make a larger pair out of the two tokens that were parted. But that
//! pair occurs at most as often as the pair that was divided, and as long as these two tokens are in no
//! merge, its tokens are the same. So the score of all pairs that the round does not see is bounded.
//! The round is over when the best pair that it sees may no longer be better than that bound:
//!
//! - every criterion: a pair whose count is below the support is not eligible;
//! - frequency: the score is the count;
//! - likelihood: the gain of a pair of count m is at most `score::gain_limit(m)`;
//! - pmi: count(ab) <= count(b), so the score is at most 1 / count(a): a token that is common enough
//!   is in no merge of the round.
//!
//! One thing breaks this rule: a merge that builds a token which is known already. Such a merge is
//! made, and ends the round.
//!
//! # The level of a pair
//!
//! The *level* of pairs, a number from 0 on, decides how much a round holds. Only the best pair
//! has level 0. A round has a `max_level`: it leaves every pair of this level or a lower one whole,
//! and divides between the tokens of all others. The level of a pair is the index of the first threshold of a
//! [`Ladder`] that leaves it whole.

use crate::train::score::{Criterion, Score, gain_limit};

/// The rule for pairs that are left whole: they occur often enough, and their tokens are rare
/// enough. All others are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// The least count of a pair that is left whole.
    pub least_count: u64,
    /// The largest count of a token in a pair that is left whole.
    pub most_tokens: u64,
}

impl Threshold {
    /// No pair is divided.
    pub const HIDES_NONE: Threshold = Threshold { least_count: 1, most_tokens: u64::MAX };
    /// All pairs are divided. (The best pair is held all the same; it is merged, and the round is over.)
    pub const HIDES_ALL: Threshold = Threshold { least_count: u64::MAX, most_tokens: 0 };

    /// Return true if a pair is left whole. `left`, `right`: the counts of its tokens.
    pub fn admits(&self, count: u64, left: u64, right: u64) -> bool {
        count >= self.least_count && left.max(right) <= self.most_tokens
    }

    /// Return true if an eligible pair that was divided, or a pair made from it, may reach a score.
    ///
    /// # Arguments
    ///
    /// * `score` - The score of the best pair that is seen.
    /// * `criterion` - The criterion that scores are of.
    /// * `support` - The count that makes a pair eligible.
    /// * `total` - The number of tokens in the corpus.
    pub(crate) fn may_hide(
        &self,
        score: &Score,
        criterion: Criterion,
        support: u64,
        total: u64,
    ) -> bool {
        let by_count = support < self.least_count
            && match criterion {
                Criterion::Frequency => score.count() < self.least_count,
                Criterion::Likelihood => score.approx() <= gain_limit(self.least_count - 1, total),
                Criterion::Pmi => true,
            };
        by_count || (criterion == Criterion::Pmi && score.is_below_inverse(self.most_tokens))
    }
}

/// Thresholds in an order in which each leaves whole what the one before it does. The index of a threshold is the
/// highest level of the pairs that it leaves whole.
pub struct Ladder(Vec<Threshold>);

impl Ladder {
    /// Makes the thresholds of a round.
    ///
    /// # Arguments
    ///
    /// * `criterion` - The criterion that ranks pairs.
    /// * `least` - The count below which no pair is ever eligible.
    /// * `support` - The count that makes a pair eligible now.
    /// * `largest` - The largest count of a pair.
    pub fn new(criterion: Criterion, least: u64, support: u64, largest: u64) -> Self {
        let mut thresholds = vec![Threshold::HIDES_ALL];
        let mut count = largest.max(least);
        if criterion == Criterion::Pmi {
            count = support;
            let tokens =
                (0..63).map(|bits| Threshold { least_count: count, most_tokens: 1 << bits });
            thresholds.extend(tokens);
        }
        loop {
            thresholds.push(Threshold { least_count: count, ..Threshold::HIDES_NONE });
            if count <= least {
                return Ladder(thresholds);
            }
            count = (count - count.div_ceil(8)).max(least);
        }
    }

    /// The threshold of a round that leaves whole the pairs up to this level.
    ///
    /// # Panics
    ///
    /// Panics if the level is higher than [`Ladder::max_level`].
    pub fn threshold(&self, max_level: u16) -> Threshold {
        self.0[max_level as usize]
    }

    /// Return an upper limit of the levels of eligible pairs. It is below 500.
    pub fn max_level(&self) -> u16 {
        (self.0.len() - 1) as u16
    }

    /// The level of a pair. None: it is never eligible. `left`, `right`: the counts of its tokens.
    pub(crate) fn level_of_pair(&self, count: u64, left: u64, right: u64) -> Option<u16> {
        let level = self.0.partition_point(|threshold| !threshold.admits(count, left, right));
        (level < self.0.len()).then_some(level as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_leaves_whole_what_the_one_before_does() {
        for criterion in [Criterion::Pmi, Criterion::Frequency] {
            for (least, support, largest) in [(1, 70, 80), (3, 3, 1 << 62), (1, 1, 1), (5, 5, 2)] {
                let ladder = Ladder::new(criterion, least, support, largest);
                for thresholds in ladder.0.windows(2) {
                    assert!(thresholds[1].least_count <= thresholds[0].least_count);
                    assert!(thresholds[1].most_tokens >= thresholds[0].most_tokens);
                }
                let last = Threshold { least_count: least, ..Threshold::HIDES_NONE };
                assert_eq!(ladder.threshold(ladder.max_level()), last);
            }
        }
    }
}
