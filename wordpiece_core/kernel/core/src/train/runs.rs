//! Runs: the pieces of splits that a round holds (see `threshold`), equal ones once, with the sum of their
//! counts.
//!
//! The symbols of all runs are in one vector, and equal runs are found by a hash table of their
//! indices, so that a run takes little more memory than its symbols.

use std::hash::{BuildHasher, Hasher};

use foldhash::HashMap;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::base::error::{Error, Result};
use crate::base::hash;
use crate::base::sums::add;
use crate::train::splits::{Place, Splits};

/// The level of a pair that is always divided.
const NEVER: u16 = u16::MAX;

/// The levels of pairs (see `threshold`). A pair without a level is always divided.
#[derive(Default)]
pub struct PairLevels(pub HashMap<(u32, u32), u16>);

impl PairLevels {
    /// Writes the levels of the pairs of a split into `levels`, which is cleared first.
    pub(crate) fn of_split(&self, symbols: &[u32], levels: &mut Vec<u16>) {
        let level = |pair: &[u32]| self.0.get(&(pair[0], pair[1])).copied().unwrap_or(NEVER);
        levels.clear();
        levels.extend(symbols.windows(2).map(level));
    }
}

/// The distinct runs of splits, with the sums of their counts.
#[derive(Default)]
pub struct Runs {
    symbols: Vec<u32>,
    ends: Vec<usize>,
    counts: Vec<u64>,
    /// The first place of each run.
    firsts: Vec<Place>,
    /// The indices of all runs, by the hashes of their symbols.
    index: HashTable<u32>,
    state: RandomState,
}

impl Runs {
    /// Adds the runs of splits.
    ///
    /// # Arguments
    ///
    /// * `splits` - The splits.
    /// * `levels` - The levels of pairs.
    /// * `max_level` - The splits are divided at all pairs of a higher level.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Overflow`] if the count of a run exceeds 2^63 - 1, and [`Error::Option`] if there
    /// are 2^32 - 1 runs or more.
    pub fn add_splits(
        &mut self,
        splits: &Splits,
        levels: &PairLevels,
        max_level: u16,
    ) -> Result<()> {
        let mut word_levels = Vec::new();
        for (first, count, symbols) in splits.iter() {
            levels.of_split(symbols, &mut word_levels);
            word_levels.push(NEVER);
            let mut start = 0;
            for at in 0..symbols.len() {
                if word_levels[at] > max_level {
                    if at > start {
                        let place = (first.0, first.1 + start as u32);
                        self.add(&symbols[start..=at], count, place)?;
                    }
                    start = at + 1;
                }
            }
        }
        Ok(())
    }

    /// Adds runs as [`Runs::take_sorted`] gives them.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Runs::add_splits`].
    pub fn add_runs(&mut self, runs: &Splits) -> Result<()> {
        runs.iter().try_for_each(|(first, count, symbols)| self.add(symbols, count, first))
    }

    fn add(&mut self, symbols: &[u32], count: u64, first: Place) -> Result<()> {
        let hash = self.state.hash_one(symbols);
        if let Some(&run) = self.index.find(hash, |&run| self.symbols_of(run) == symbols) {
            let run = run as usize;
            self.counts[run] = add(self.counts[run], count)?;
            self.firsts[run] = self.firsts[run].min(first);
            return Ok(());
        }
        if self.counts.len() == u32::MAX as usize {
            return Err(Error::option("more than 2^32 runs in one table; lower the round budget"));
        }
        let mut index = std::mem::take(&mut self.index);
        let hash_of = |&run: &u32| self.state.hash_one(self.symbols_of(run));
        index.insert_unique(hash, self.counts.len() as u32, hash_of);
        self.index = index;
        self.symbols.extend_from_slice(symbols);
        self.ends.push(self.symbols.len());
        self.counts.push(count);
        self.firsts.push(first);
        Ok(())
    }

    fn span(&self, run: usize) -> std::ops::Range<usize> {
        let start = run.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[run]
    }

    fn symbols_of(&self, run: u32) -> &[u32] {
        &self.symbols[self.span(run as usize)]
    }

    /// The memory of the table, in bytes.
    pub fn memory(&self) -> usize {
        let symbols = self.symbols.capacity() * size_of::<u32>();
        let rows = self.ends.capacity() * size_of::<usize>()
            + self.counts.capacity() * size_of::<u64>()
            + self.firsts.capacity() * size_of::<Place>();
        symbols + rows + self.index.allocation_size()
    }

    /// Empties the table. Gives for each partition its runs, `most` at a time, in no order. The
    /// partition of a run depends on its symbols alone.
    ///
    /// # Panics
    ///
    /// Panics if there are no partitions.
    pub fn take_partitions(
        &mut self,
        partitions: usize,
        most: usize,
    ) -> impl Iterator<Item = (usize, Splits)> {
        let table = std::mem::take(self);
        let mut of_partition = vec![Vec::new(); partitions];
        for run in 0..table.counts.len() {
            let hash = run_hash(&table.symbols[table.span(run)]);
            of_partition[hash::partition(hash, partitions)].push(run);
        }
        of_partition.into_iter().enumerate().flat_map(move |(partition, runs)| {
            let parts: Vec<_> = runs.chunks(most).map(|part| table.splits_of(part)).collect();
            parts.into_iter().map(move |part| (partition, part))
        })
    }

    fn splits_of(&self, runs: &[usize]) -> Splits {
        let mut splits = Splits::default();
        for &run in runs {
            splits.push(self.firsts[run], self.counts[run], &self.symbols[self.span(run)]);
        }
        splits
    }

    /// Empties the table. Gives its runs in the order of their first places, `most` at a time.
    pub fn take_sorted(&mut self, most: usize) -> impl Iterator<Item = Splits> {
        let table = std::mem::take(self);
        let mut order: Vec<u32> = (0..table.counts.len() as u32).collect();
        order.sort_unstable_by_key(|&run| table.firsts[run as usize]);
        let mut from = 0;
        std::iter::from_fn(move || {
            let part = &order[from..order.len().min(from + most)];
            from += part.len();
            let mut sorted = Splits::default();
            for run in part.iter().map(|&run| run as usize) {
                sorted.push(table.firsts[run], table.counts[run], &table.symbols[table.span(run)]);
            }
            (!sorted.is_empty()).then_some(sorted)
        })
    }
}

/// Return the hash of a run. Unlike the hashes of tables, it is equal on every machine.
fn run_hash(symbols: &[u32]) -> u64 {
    let mut hasher = FxHasher::default();
    symbols.iter().for_each(|&symbol| hasher.write_u32(symbol));
    hasher.finish()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::train::splits::OUTSIDE;
    use wordpiece_testing::Random;

    /// Splits of few tokens, so that runs are equal, with levels of some of the pairs.
    pub(crate) fn random_splits(random: &mut Random) -> (Splits, PairLevels) {
        let mut splits = Splits::default();
        for rank in 0..random.below(40) {
            let split: Vec<_> =
                (0..random.below(9)).map(|_| *random.choose(&[1, 2, 3, OUTSIDE])).collect();
            splits.push((rank as u64, random.below(3) as u32), 1 + random.below(9) as u64, &split);
        }
        let pairs = (1..4).flat_map(|left| (1..4).map(move |right| (left, right)));
        let levels = pairs.map(|pair| (pair, random.below(6) as u16)).filter(|(_, n)| *n < 5);
        let levels: HashMap<_, _> = levels.collect();
        (splits, PairLevels(levels))
    }

    /// The runs of splits by their definition: the count of each, and where it is first.
    pub(crate) fn plain_runs(
        splits: &Splits,
        levels: &PairLevels,
        max_level: u16,
    ) -> BTreeMap<Vec<u32>, (u64, Place)> {
        let mut runs = BTreeMap::new();
        for (first, count, symbols) in splits.iter() {
            let level = |pair: &[u32]| levels.0.get(&(pair[0], pair[1]));
            let held = |pair: &[u32]| level(pair).is_some_and(|&level| level <= max_level);
            let mut start = 0;
            while start < symbols.len() {
                let rest = &symbols[start..];
                let pairs = rest.windows(2).take_while(|pair| held(pair)).count();
                if pairs > 0 {
                    let place = (first.0, first.1 + start as u32);
                    let run = runs.entry(rest[..=pairs].to_vec()).or_insert((0, place));
                    *run = (run.0 + count, run.1.min(place));
                }
                start += pairs + 1;
            }
        }
        runs
    }

    #[test]
    fn runs_are_those_of_a_plain_loop() {
        let mut random = Random::new(6);
        for _ in 0..1_500 {
            let (splits, levels) = random_splits(&mut random);
            let max_level = random.below(6) as u16;
            let (mut runs, mut others) = (Runs::default(), Runs::default());
            runs.add_splits(&splits, &levels, max_level).unwrap();
            others.add_splits(&splits, &levels, max_level).unwrap();
            let plain = plain_runs(&splits, &levels, max_level);
            for factor in [1, 2] {
                let (most, mut found, mut places) = (1 + random.below(4), BTreeMap::new(), vec![]);
                let parts: Vec<_> = runs.take_sorted(most).collect();
                for part in &parts {
                    assert!((1..=most).contains(&part.len()));
                    for (first, count, symbols) in part.iter() {
                        assert_eq!(found.insert(symbols.to_vec(), (count, first)), None);
                        places.push(first);
                    }
                }
                assert!(places.is_sorted());
                let expected: BTreeMap<_, _> =
                    plain.iter().map(|(run, row)| (run.clone(), (row.0 * factor, row.1))).collect();
                assert_eq!(found, expected);
                // Equal to the sum of two tables.
                parts.iter().for_each(|part| runs.add_runs(part).unwrap());
                others.take_sorted(3).for_each(|part| runs.add_runs(&part).unwrap());
            }
        }
    }

    #[test]
    fn partitions_hold_all_runs_once_and_each_in_the_same_one() {
        let mut random = Random::new(9);
        for _ in 0..500 {
            let (splits, levels) = random_splits(&mut random);
            let (partitions, most) = (1 + random.below(5), 1 + random.below(4));
            let plain = plain_runs(&splits, &levels, 3);
            let mut seen = BTreeMap::new();
            let mut runs = Runs::default();
            for _ in 0..2 {
                assert_eq!(runs.memory(), 0);
                runs.add_splits(&splits, &levels, 3).unwrap();
                assert_eq!(runs.memory() > 0, !plain.is_empty());
                let mut found = BTreeMap::new();
                for (partition, part) in runs.take_partitions(partitions, most) {
                    assert!((1..=most).contains(&part.len()) && partition < partitions);
                    for (first, count, symbols) in part.iter() {
                        assert_eq!(found.insert(symbols.to_vec(), (count, first)), None);
                        assert_eq!(*seen.entry(symbols.to_vec()).or_insert(partition), partition);
                    }
                }
                assert_eq!(found, plain);
            }
        }
    }

    #[test]
    fn sums_beyond_the_most_are_errors() {
        let mut splits = Splits::default();
        (0..2).for_each(|rank| splits.push((rank, 0), i64::MAX as u64, &[1, 2]));
        assert!(Runs::default().add_runs(&splits).is_err());
        let levels = PairLevels([((1, 2), 0)].into_iter().collect());
        assert!(Runs::default().add_splits(&splits, &levels, 0).is_err());
    }
}
