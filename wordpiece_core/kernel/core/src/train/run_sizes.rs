//! The number of tokens of the distinct runs of splits for every `max_level` of a round, from a sample
//! of the runs.
//!
//! A run is a longest piece of a split that is not divided. For a given `max_level`, the pairs in it have
//! at most this level, and the pairs at its ends have a higher one. So the same run is in the split
//! for every `max_level` from the highest level of its own pairs to just below the lower level of
//! the pairs at its ends. One entry for each run, with this range, is enough to know the sizes for
//! all levels in one pass over the splits. If there are many runs, only those are entered whose
//! hashes end in some zeros, so that the sample does not depend on the order of the splits.

use std::collections::hash_map::Entry;
use std::ops::Range;

use foldhash::HashMap;

use crate::base::hash;
use crate::train::runs::PairLevels;
use crate::train::splits::Splits;

/// About how many tokens a sample has at most.
const SAMPLE_TOKENS: u64 = 1 << 18;

/// Finds the highest `max_level` for which the runs are within a budget.
pub struct RunSizes {
    /// The most tokens to hold.
    budget: u64,
    /// The sample has one of `rate` runs; a power of two.
    rate: u64,
    /// The highest one for which the sample is within the budget so far.
    max_level: u16,
    sample: HashMap<u64, SampledRun>,
    /// The tokens in the runs of the sample, for each `max_level`.
    tokens: Vec<u64>,
    hashes: Hashes,
}

/// A run of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledRun {
    /// The number of its tokens.
    pub length: u32,
    /// The lowest `max_level` for which it is a run.
    pub first_max_level: u16,
    /// The highest `max_level` for which it is a run.
    pub last_max_level: u16,
}

impl RunSizes {
    /// Sizes of no runs yet.
    ///
    /// # Arguments
    ///
    /// * `budget` - The most tokens to hold.
    /// * `max_level` - The highest `max_level` that is considered.
    pub fn new(budget: u64, max_level: u16) -> Self {
        let rate = (budget / SAMPLE_TOKENS).max(1).next_power_of_two();
        let tokens = vec![0; max_level as usize + 1];
        let (sample, hashes) = (HashMap::default(), Hashes::default());
        RunSizes { budget, rate, max_level, sample, tokens, hashes }
    }

    /// The highest `max_level` for which the runs are within the budget; 0 if there is none.
    pub fn max_level(&self) -> u16 {
        self.max_level
    }

    /// The runs of the sample and their hashes.
    pub fn sample(&self) -> impl Iterator<Item = (u64, SampledRun)> {
        self.sample.iter().map(|(&hash, &sampled)| (hash, sampled))
    }

    /// Adds the runs of splits. `levels`: the levels of pairs.
    pub fn add_splits(&mut self, splits: &Splits, levels: &PairLevels) {
        let mut word_levels = Vec::new();
        for (_, _, symbols) in splits.iter() {
            levels.of_split(symbols, &mut word_levels);
            self.add_split(symbols, &word_levels);
        }
    }

    /// Adds the runs of a split. `levels`: for each symbol but the last, the level of the pair that it
    /// makes with the next one.
    fn add_split(&mut self, symbols: &[u32], levels: &[u16]) {
        self.hashes.write(symbols);
        // Open runs: their start, and the highest level of their pairs, which falls from one to the next.
        let mut open: Vec<(usize, u16)> = Vec::new();
        for end in 0..symbols.len() {
            let end_level = levels.get(end).copied();
            let mut start = end;
            while let Some(&(begin, level)) = open.last()
                && end_level.is_none_or(|end_level| level < end_level)
            {
                open.pop();
                start = begin;
                let ends = [open.last().map(|&(_, before)| before), end_level];
                let end_level = ends.into_iter().flatten().min().unwrap_or(u16::MAX);
                let hash = self.hashes.of(start..end + 1);
                if level <= self.max_level && hash & (self.rate - 1) == 0 {
                    let length = (end + 1 - start) as u32;
                    let (first_max_level, last_max_level) = (level, end_level - 1);
                    self.add(hash, SampledRun { length, first_max_level, last_max_level });
                }
            }
            if let Some(level) = end_level
                && open.last().is_none_or(|&(_, before)| before > level)
            {
                open.push((start, level));
            }
        }
    }

    /// Adds a run of a sample, which must be one of the same budget.
    pub fn add(&mut self, hash: u64, sampled: SampledRun) {
        let last_max_level = sampled.last_max_level.min(self.max_level);
        if sampled.first_max_level > last_max_level {
            return;
        }
        let from = match self.sample.entry(hash) {
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                let from = known.last_max_level as u32 + 1;
                known.last_max_level = known.last_max_level.max(last_max_level);
                from
            }
            Entry::Vacant(free) => {
                free.insert(SampledRun { last_max_level, ..sampled });
                sampled.first_max_level as u32
            }
        };
        for max_level in from..=last_max_level as u32 {
            self.tokens[max_level as usize] += sampled.length as u64;
        }
        self.keep_to_budget();
    }

    fn keep_to_budget(&mut self) {
        let before = self.max_level;
        while self.max_level > 0
            && self.tokens[self.max_level as usize].saturating_mul(self.rate) > self.budget
        {
            self.max_level -= 1;
        }
        if self.max_level < before {
            let max_level = self.max_level;
            self.sample.retain(|_, sampled| sampled.first_max_level <= max_level);
        }
    }
}

/// Hashes of all parts of a split, from hashes of its beginnings: polynomials of its symbols.
#[derive(Default)]
struct Hashes {
    beginnings: Vec<u64>,
    /// By exponent.
    powers: Vec<u64>,
}

impl Hashes {
    /// Compute the hashes of a split.
    fn write(&mut self, symbols: &[u32]) {
        const BASE: u64 = 0xD6E8_FEB8_6659_FD93;
        let Hashes { beginnings, powers } = self;
        beginnings.clear();
        beginnings.reserve(symbols.len() + 1);
        beginnings.push(0);
        for (&symbol, at) in symbols.iter().zip(0..) {
            let next = u64::wrapping_mul(beginnings[at], BASE).wrapping_add(mixed(symbol.into()));
            beginnings.push(next);
        }
        while powers.len() <= symbols.len() {
            let next = powers.last().map_or(1, |power| power.wrapping_mul(BASE));
            powers.push(next);
        }
    }

    /// The hash of the symbols in a range.
    fn of(&self, range: Range<usize>) -> u64 {
        let before = self.beginnings[range.start].wrapping_mul(self.powers[range.len()]);
        mixed(self.beginnings[range.end].wrapping_sub(before))
    }
}

fn mixed(value: u64) -> u64 {
    let mixed = hash::number_hash((value ^ value >> 32).wrapping_add(1));
    mixed ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::runs::tests::{plain_runs, random_splits};
    use wordpiece_testing::Random;

    #[test]
    fn max_level_is_the_highest_within_the_budget() {
        let mut random = Random::new(8);
        for _ in 0..1_500 {
            let (splits, levels) = random_splits(&mut random);
            let (budget, highest) = (random.below(60) as u64, random.below(7) as u16);
            let mut sizes = RunSizes::new(budget, highest);
            let tokens = |max_level| -> u64 {
                plain_runs(&splits, &levels, max_level).keys().map(|run| run.len() as u64).sum()
            };
            let expected =
                (1..=highest).rev().find(|&max_level| tokens(max_level) <= budget).unwrap_or(0);
            sizes.add_splits(&splits, &levels);
            assert_eq!(sizes.max_level(), expected);
            // Equal to two samples, each of a part of the splits.
            let (mut first, mut second) =
                (RunSizes::new(budget, highest), RunSizes::new(budget, highest));
            for (rank, (place, count, symbols)) in splits.iter().enumerate() {
                let mut part = Splits::default();
                part.push(place, count, symbols);
                [&mut first, &mut second][rank % 2].add_splits(&part, &levels);
            }
            let mut all = RunSizes::new(budget, first.max_level().min(second.max_level()));
            for sizes in [first, second] {
                sizes.sample().for_each(|(hash, sampled)| all.add(hash, sampled));
            }
            assert_eq!(all.max_level(), expected);
        }
    }

    #[test]
    fn no_sample_overflows() {
        for rate in [0, 1 << 40, u64::MAX] {
            let mut sizes = RunSizes::new(rate, u16::MAX);
            for (hash, first_max_level) in [(1, 0), (1, u16::MAX), (2, u16::MAX), (3, 5)] {
                sizes.add(
                    hash,
                    SampledRun { length: u32::MAX, first_max_level, last_max_level: u16::MAX },
                );
            }
            assert!(rate == u64::MAX || sizes.max_level() < u16::MAX);
        }
    }
}
