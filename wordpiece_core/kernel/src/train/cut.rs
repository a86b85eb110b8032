//! Where a round may cut splits, so that the driver holds less and the result is the same.
//!
//! A round that cannot hold all splits cuts them between the tokens of every pair that it can do
//! without, and holds the pieces ("runs"), equal ones once, their counts summed. What grows out of
//! a pair that was cut, by merges on either side, occurs no more often than the pair did, and its
//! tokens are those of the pair as long as these are in no merge. So of all pairs that the driver
//! does not see, the best score is bounded, and the round is over when the best pair that it sees
//! may no longer be better:
//!
//! - every criterion: a pair whose count is below the support is not eligible;
//! - frequency: the score is the count;
//! - likelihood: the gain of a pair of count m is at most `score::gain_limit(m)`;
//! - pmi: count(ab) <= count(b), so the score is at most 1 / count(a): a token that is common enough
//!   is in no merge of the round.
//!
//! One thing breaks this: a merge that builds a token known already. Such a merge is made, and
//! ends the round.

use crate::train::score::{Criterion, Score, gain_limit};

/// Pairs that are not cut: those that occur often enough, of tokens that are rare enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    pub least_count: u64,
    pub most_tokens: u64,
}

impl Cut {
    /// Nothing is cut.
    pub const NOWHERE: Cut = Cut { least_count: 1, most_tokens: u64::MAX };
    /// All pairs are cut but the best, which is merged, and the round is over.
    pub const ALL: Cut = Cut { least_count: u64::MAX, most_tokens: 0 };

    /// Whether a pair of this count and these tokens' counts is left whole.
    pub fn admits(&self, count: u64, left: u64, right: u64) -> bool {
        count >= self.least_count && left.max(right) <= self.most_tokens
    }

    /// Whether an eligible pair that was cut, or grew out of one, could be as good as `score`.
    /// `total`: tokens of the corpus.
    pub fn hides(&self, score: &Score, criterion: Criterion, support: u64, total: u64) -> bool {
        let by_count = support < self.least_count
            && match criterion {
                Criterion::Frequency => score.count() < self.least_count,
                Criterion::Likelihood => score.approx() <= gain_limit(self.least_count - 1, total),
                Criterion::Pmi => true,
            };
        by_count || (criterion == Criterion::Pmi && score.is_below_inverse(self.most_tokens))
    }
}

/// Cuts from the tightest to the loosest: each leaves whole what the one before does.
pub struct Ladder(Vec<Cut>);

impl Ladder {
    /// `least`: the count below which no pair is ever eligible. `support`: the count that makes a
    /// pair eligible now. `largest`: the largest count of a pair.
    pub fn new(criterion: Criterion, least: u64, support: u64, largest: u64) -> Self {
        let mut cuts = vec![Cut::ALL];
        let mut count = largest.max(least);
        if criterion == Criterion::Pmi {
            count = support;
            let tokens = (0..63).map(|bits| Cut { least_count: count, most_tokens: 1 << bits });
            cuts.extend(tokens);
        }
        loop {
            cuts.push(Cut { least_count: count, ..Cut::NOWHERE });
            if count <= least {
                return Ladder(cuts);
            }
            count = (count - count.div_ceil(8)).max(least);
        }
    }

    pub fn cut(&self, max_level: u16) -> Cut {
        self.0[max_level as usize]
    }

    /// The level of the loosest cut.
    pub fn max_level(&self) -> u16 {
        (self.0.len() - 1) as u16
    }

    /// The level of the tightest cut that leaves a pair whole.
    pub fn level_of_pair(&self, count: u64, left: u64, right: u64) -> Option<u16> {
        let level = self.0.partition_point(|cut| !cut.admits(count, left, right));
        (level < self.0.len()).then_some(level as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_leaves_whole_what_the_one_before_does() {
        for criterion in [Criterion::Pmi, Criterion::Frequency, Criterion::Likelihood] {
            for (least, support, largest) in [(1, 70, 80), (3, 3, 1 << 62), (1, 1, 1), (5, 5, 2)] {
                let ladder = Ladder::new(criterion, least, support, largest);
                for cuts in ladder.0.windows(2) {
                    assert!(cuts[1].least_count <= cuts[0].least_count);
                    assert!(cuts[1].most_tokens >= cuts[0].most_tokens);
                }
                let loosest = Cut { least_count: least, ..Cut::NOWHERE };
                assert_eq!(ladder.cut(ladder.max_level()), loosest);
            }
        }
    }
}
