//! The substrings of runs that training begins with, with exact counts.
//!
//! A substring is the beginning of suffixes. So the suffixes of all runs are sorted, truncated to the
//! length of the longest piece; equal beginnings are then side by side, and a stack of
//! the beginnings that are still open gives, in one walk, every beginning that is followed by different
//! characters, or ends a suffix: the inner nodes and the ends of the suffix tree. Substrings between
//! them occur exactly as often as the next longer one, and are not worth a piece. Suffixes that
//! begin with other characters have nothing in common, so they can be counted apart: in partitions,
//! by their first two characters.

use std::cmp::Reverse;

use super::runs::RunCounts;
use crate::base::error::Result;
use crate::base::hash;
use crate::base::sums::add;
use crate::text::utf8::first_bytes;

/// The least count of a substring that is a seed.
pub const LEAST_COUNT: u64 = 2;
/// The least characters of a seed. Single characters are pieces anyway.
const LEAST_CHARACTERS: usize = 2;

/// A substring and how often it occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedPiece {
    /// The substring.
    pub piece: Box<str>,
    /// The number of occurrences.
    pub count: u64,
    /// The number of its characters.
    pub characters: usize,
}

impl SeedPiece {
    /// The sort key: strings that cover most characters come first.
    fn place(&self) -> (Reverse<u128>, &str) {
        (Reverse(self.covered()), &self.piece)
    }

    /// Return the number of characters that all occurrences cover.
    pub(crate) fn covered(&self) -> u128 {
        self.count as u128 * self.characters as u128
    }
}

/// Keeps the best seeds.
pub struct BestSeeds {
    most: usize,
    seeds: Vec<SeedPiece>,
}

impl BestSeeds {
    /// Will keep `most` seeds.
    pub fn new(most: usize) -> Self {
        BestSeeds { most, seeds: Vec::new() }
    }

    /// Adds a seed.
    pub fn push(&mut self, seed: SeedPiece) {
        self.seeds.push(seed);
        if self.seeds.len() >= self.most.saturating_mul(2).max(1 << 16) {
            self.drop_worse();
        }
    }

    fn drop_worse(&mut self) {
        if self.seeds.len() > self.most {
            self.seeds.select_nth_unstable_by(self.most, |a, b| a.place().cmp(&b.place()));
            self.seeds.truncate(self.most);
        }
    }

    /// The best seeds, the best first.
    pub fn finish(mut self) -> Vec<SeedPiece> {
        self.drop_worse();
        self.seeds.sort_unstable_by(|a, b| a.place().cmp(&b.place()));
        self.seeds
    }
}

/// Calls `each` with every suffix of a run, truncated to `most` characters, that has enough characters to
/// be a seed.
pub(crate) fn each_suffix<'a>(run: &'a str, most: usize, mut each: impl FnMut(&'a str)) {
    let ends: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
    let characters = ends.len() - 1;
    for start in 0..characters.saturating_sub(LEAST_CHARACTERS - 1) {
        each(&run[ends[start]..ends[(start + most).min(characters)]]);
    }
}

/// The partition of a suffix, by its first two characters.
pub fn partition(suffix: &str, partitions: usize) -> usize {
    let mut characters = suffix.chars();
    let (first, second) = (characters.next(), characters.next());
    let key = (first.map_or(0, u64::from) << 32) | second.map_or(0, u64::from);
    hash::partition(hash::number_hash(key), partitions)
}

/// The suffixes of runs by partition, sorted, equal ones added up.
///
/// # Errors
///
/// Returns [`crate::base::error::Error::Overflow`] if a sum of counts exceeds 2^63 - 1.
pub fn suffixes_of(
    runs: &RunCounts,
    max_length: usize,
    partitions: usize,
) -> Result<Vec<Vec<(&str, u64)>>> {
    let mut parts = vec![Vec::new(); partitions.max(1)];
    for (run, &count) in runs {
        each_suffix(run, max_length, |suffix| {
            parts[partition(suffix, partitions)].push((suffix, count));
        });
    }
    parts.into_iter().map(sorted).collect()
}

/// Sorts suffixes and adds up the counts of equal ones.
fn sorted(suffixes: Vec<(&str, u64)>) -> Result<Vec<(&str, u64)>> {
    // Most comparisons are settled by the first eight bytes, as one number.
    let mut keyed = suffixes.into_iter().map(|s| (first_bytes(s.0), s)).collect::<Vec<_>>();
    keyed.sort_unstable_by(|(a, (left, _)), (b, (right, _))| a.cmp(b).then(left.cmp(right)));
    let mut summed: Vec<(&str, u64)> = Vec::new();
    for (_, (suffix, count)) in keyed {
        match summed.last_mut() {
            Some(last) if last.0 == suffix => last.1 = add(last.1, count)?,
            _ => summed.push((suffix, count)),
        }
    }
    Ok(summed)
}

/// Finds the seeds in suffixes of one partition.
///
/// # Errors
///
/// Returns [`crate::base::error::Error::Overflow`] if a sum of counts exceeds 2^63 - 1.
pub fn find_seeds(suffixes: Vec<(&str, u64)>, best: &mut BestSeeds) -> Result<()> {
    let suffixes = sorted(suffixes)?;
    let mut open: Vec<(usize, u64)> = Vec::new(); // beginnings of the last suffix: bytes, count
    let mut last = "";
    for &(suffix, count) in &suffixes {
        close(&mut open, last, common_bytes(last, suffix), best)?;
        open.push((suffix.len(), count));
        last = suffix;
    }
    close(&mut open, last, 0, best)
}

/// Ends the beginnings of the last suffix that are longer than what it shares with the next.
fn close(
    open: &mut Vec<(usize, u64)>,
    last: &str,
    shared: usize,
    best: &mut BestSeeds,
) -> Result<()> {
    let mut inner = 0;
    while let Some(&(length, count)) = open.last() {
        if length <= shared {
            break;
        }
        open.pop();
        inner = add(inner, count)?;
        let piece = &last[..length];
        let characters = piece.chars().count();
        if inner >= LEAST_COUNT && characters >= LEAST_CHARACTERS {
            best.push(SeedPiece { piece: piece.into(), count: inner, characters });
        }
    }
    match open.last_mut() {
        Some((length, count)) if *length == shared => *count = add(*count, inner)?,
        _ if inner > 0 && shared > 0 => open.push((shared, inner)),
        _ => {}
    }
    Ok(())
}

/// Return the length of the common beginning of two strings in bytes, in whole characters.
fn common_bytes(a: &str, b: &str) -> usize {
    let mut common = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    while !a.is_char_boundary(common) || !b.is_char_boundary(common) {
        common -= 1;
    }
    common
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::unigram::runs::add_run;
    use wordpiece_testing::Random;

    /// Every substring with its count, and with what follows it.
    fn by_brute_force(runs: &RunCounts, max_length: usize) -> BTreeMap<String, u64> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let mut next: BTreeMap<String, BTreeSet<Option<char>>> = BTreeMap::new();
        for (run, &count) in runs {
            let characters: Vec<char> = run.chars().collect();
            for start in 0..characters.len() {
                for end in start + 2..=characters.len().min(start + max_length) {
                    let piece: String = characters[start..end].iter().collect();
                    *counts.entry(piece.clone()).or_default() += count;
                    let is_truncated = end == characters.len().min(start + max_length);
                    let follower = if is_truncated { None } else { Some(characters[end]) };
                    next.entry(piece).or_default().insert(follower);
                }
            }
        }
        let is_node = |piece: &str| {
            let followers = &next[piece];
            followers.len() > 1 || followers.contains(&None)
        };
        counts.into_iter().filter(|(piece, n)| *n >= LEAST_COUNT && is_node(piece)).collect()
    }

    #[test]
    fn sums_of_counts_are_checked() {
        let most = i64::MAX as u64;
        let mut best = BestSeeds::new(10);
        assert!(find_seeds(vec![("ab", most)], &mut best).is_ok());
        assert!(find_seeds(vec![("ab", most), ("ab", 1)], &mut best).is_err());
        assert!(find_seeds(vec![("abc", most), ("abd", 1)], &mut best).is_err());
        assert!(find_seeds(vec![("ab", most), ("abd", 1)], &mut best).is_err());
        let mut runs = RunCounts::default();
        assert!(add_run(&mut runs, "ab", most).is_ok());
        assert!(add_run(&mut runs, "ab", 1).is_err());
    }

    #[test]
    fn seeds_are_those_of_a_count_of_all_substrings() {
        let mut random = Random::new(7);
        for round in 0..60 {
            let mut runs = RunCounts::default();
            for _ in 0..random.below(30) + 1 {
                let run = random.word(&['a', 'b', 'é', '字', 'c'], 12);
                *runs.entry(run.into()).or_default() += random.below(3) as u64 + 1;
            }
            let max_length = 2 + round % 7;
            for partitions in [1, 7] {
                let mut best = BestSeeds::new(1 << 20);
                for part in suffixes_of(&runs, max_length, partitions).unwrap() {
                    find_seeds(part, &mut best).unwrap();
                }
                let seeds = best.finish();
                assert!(seeds.is_sorted_by(|a, b| a.place() < b.place()));
                let found: BTreeMap<_, _> =
                    seeds.into_iter().map(|seed| (seed.piece.to_string(), seed.count)).collect();
                assert_eq!(found, by_brute_force(&runs, max_length));
            }
        }
    }

    #[test]
    fn the_best_are_kept() {
        let mut best = BestSeeds::new(2);
        for (piece, count) in [("ab", 3), ("aa", 3), ("abc", 2), ("b", 1)] {
            best.push(SeedPiece { piece: piece.into(), count, characters: piece.len() });
        }
        let pieces: Vec<_> = best.finish().into_iter().map(|seed| seed.piece).collect();
        assert_eq!(pieces, ["aa".into(), "ab".into()] as [Box<str>; 2]);
    }
}
