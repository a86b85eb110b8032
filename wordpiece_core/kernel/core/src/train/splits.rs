//! Words as sequences of tokens ("splits"), and what is counted over them.
//!
//! For each part of the word table a training round needs its splits after the merges so far (see
//! `splitter`), and the counts of tokens and of adjacent pairs in them.

use foldhash::HashMap;

use crate::base::error::Result;
use crate::base::hash;
use crate::base::sums::add;
use crate::text::marks::WordMarks;

/// Stands in a split for a character that is not in the alphabet. It belongs to no pair and is not
/// counted.
pub const OUTSIDE: u32 = u32::MAX;

/// The first place of a character, a pair or a run: the rank of the word in the word table, and the
/// number of symbols of its split before it (for a character, the number of characters). Words have fewer
/// than 2^32 characters.
pub type Place = (u64, u32);

/// Splits of words, or runs, which are pieces of splits.
#[derive(Default)]
pub struct Splits {
    /// For each split, where it begins; for equal runs, where the first begins.
    pub firsts: Vec<Place>,
    /// For each split, how often it occurs.
    pub counts: Vec<u64>,
    /// For each split, where it ends in `symbols`.
    pub ends: Vec<usize>,
    /// The symbols of all splits: tokens, or `u32::MAX` for unknown symbols.
    pub symbols: Vec<u32>,
}

impl Splits {
    /// Appends a split.
    pub fn push(&mut self, first: Place, count: u64, symbols: &[u32]) {
        self.firsts.push(first);
        self.counts.push(count);
        self.symbols.extend_from_slice(symbols);
        self.ends.push(self.symbols.len());
    }

    /// Return the number of splits.
    pub fn len(&self) -> usize {
        self.firsts.len()
    }

    /// Return true if there are no splits.
    pub fn is_empty(&self) -> bool {
        self.firsts.is_empty()
    }

    /// The symbols of the split with this index.
    ///
    /// # Panics
    ///
    /// Panics if there is none.
    pub(crate) fn symbols_of(&self, index: usize) -> &[u32] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.symbols[start..self.ends[index]]
    }

    /// For each split its place, its count and its symbols.
    pub fn iter(&self) -> impl Iterator<Item = (Place, u64, &[u32])> {
        (0..self.len()).map(|i| (self.firsts[i], self.counts[i], self.symbols_of(i)))
    }
}

/// The adjacent pairs of tokens in a split, overlapping ones included.
pub(crate) fn adjacent(symbols: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    symbols.windows(2).map(|pair| (pair[0], pair[1])).filter(|&(a, b)| a != OUTSIDE && b != OUTSIDE)
}

/// The words that take part in training.
#[derive(Clone, Copy)]
pub struct WordLimits {
    /// The least count of a word.
    pub min_count: u64,
    /// The most characters of a word.
    pub max_length: usize,
}

impl WordLimits {
    /// Return true if a word with this count takes part.
    pub fn admit(&self, word: &str, count: u64) -> bool {
        count >= self.min_count && !word.is_empty() && word.chars().nth(self.max_length).is_none()
    }
}

/// The count and the first place of a symbol of the alphabet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolCount {
    /// The count.
    pub count: u64,
    /// The first place.
    pub first: Place,
}

/// The counts of all symbols. A symbol is a character, and whether it carries the mark of words.
pub type SymbolCounts = HashMap<(char, bool), SymbolCount>;

/// Adds the symbols of a word to the counts of symbols.
///
/// # Arguments
///
/// * `word`, `count`, `rank` - The word, its count, and its rank in the word table.
/// * `marks` - How words are marked.
/// * `symbols` - The counts.
///
/// # Errors
///
/// Returns [`Error::Overflow`](crate::Error::Overflow) if a count exceeds 2^63 - 1.
pub fn count_symbols(
    word: &str,
    count: u64,
    rank: u64,
    marks: &WordMarks,
    symbols: &mut SymbolCounts,
) -> Result<()> {
    let (mut offset, mut added) = (0, Ok(()));
    marks.each_symbol(word, |c, marked| {
        if added.is_ok() {
            added = add_symbol(symbols, (c, marked), count, (rank, offset));
        }
        offset += 1;
    });
    added
}

/// Adds a symbol at a place to the counts of symbols.
pub(crate) fn add_symbol(
    symbols: &mut SymbolCounts,
    symbol: (char, bool),
    count: u64,
    first: Place,
) -> Result<()> {
    let known = symbols.entry(symbol).or_insert(SymbolCount { count: 0, first });
    known.count = add(known.count, count)?;
    known.first = known.first.min(first);
    Ok(())
}

/// The count and the first place of a pair in the whole corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairCount {
    /// The count.
    pub count: u64,
    /// The first place.
    pub first: Place,
}

/// The counts of pairs.
pub type PairCounts = HashMap<(u32, u32), PairCount>;

/// Counts tokens and adjacent pairs over splits.
#[derive(Default)]
pub struct PairCounter {
    /// The counts of tokens.
    pub unigrams: HashMap<u32, u64>,
    /// The counts of pairs.
    pub pairs: PairCounts,
    /// The number of symbols in all splits, whatever the counts of the splits.
    pub symbols: u64,
}

impl PairCounter {
    /// Adds a split. `first`: where it begins; `count`: how often it occurs.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Overflow`](crate::Error::Overflow) if a count exceeds 2^63 - 1.
    pub fn add_split(&mut self, first: Place, count: u64, symbols: &[u32]) -> Result<()> {
        self.symbols += symbols.len() as u64;
        for (at, &symbol) in symbols.iter().enumerate() {
            if symbol != OUTSIDE {
                self.add_unigram(symbol, count)?;
            }
            if let Some(&next) = symbols.get(at + 1)
                && symbol != OUTSIDE
                && next != OUTSIDE
            {
                let pair = PairCount { count, first: (first.0, first.1 + at as u32) };
                add_pair(&mut self.pairs, (symbol, next), pair)?;
            }
        }
        Ok(())
    }

    /// Adds to the count of a token.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Overflow`](crate::Error::Overflow) if the count exceeds 2^63 - 1.
    pub fn add_unigram(&mut self, token: u32, count: u64) -> Result<()> {
        let sum = self.unigrams.entry(token).or_insert(0);
        *sum = add(*sum, count)?;
        Ok(())
    }
}

/// Adds to the count of a pair.
///
/// # Errors
///
/// Returns [`Error::Overflow`](crate::Error::Overflow) if the count exceeds 2^63 - 1.
pub fn add_pair(pairs: &mut PairCounts, pair: (u32, u32), more: PairCount) -> Result<()> {
    let none = PairCount { count: 0, first: more.first };
    let sum = pairs.entry(pair).or_insert(none);
    sum.count = add(sum.count, more.count)?;
    sum.first = sum.first.min(more.first);
    Ok(())
}

/// Return the partition of a pair, from 0 to `partitions - 1`. It depends on the pair alone.
pub fn pair_partition(pair: (u32, u32), partitions: usize) -> usize {
    hash::partition(pair_hash(pair), partitions)
}

/// A hash of a pair. Its upper bits are better mixed than the lower ones.
pub(crate) fn pair_hash((left, right): (u32, u32)) -> u64 {
    hash::number_hash((left as u64) << 32 | right as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Error;
    use crate::oracle::counted;
    use wordpiece_testing::Random;

    fn random_split(random: &mut Random, tokens: &[u32]) -> Vec<u32> {
        (0..random.below(12)).map(|_| *random.choose(tokens)).collect()
    }

    #[test]
    fn counts_are_those_of_a_plain_loop() {
        let mut random = Random::new(3);
        for _ in 0..500 {
            let splits: Vec<_> = (0..random.below(20))
                .map(|_| (random_split(&mut random, &[1, 1, 2, OUTSIDE]), random.below(9) as u64))
                .collect();
            let mut all = PairCounter::default();
            for (rank, (split, count)) in (0..).zip(&splits) {
                all.add_split((rank, 5), *count, split).unwrap();
            }
            let (tokens, pairs) = counted(&splits);
            assert_eq!(all.unigrams, tokens.into_iter().collect());
            assert_eq!(all.pairs.len(), pairs.len());
            for (pair, (count, (rank, at))) in pairs {
                let first = (rank as u64, at as u32 + 5);
                assert_eq!(all.pairs[&pair], PairCount { count, first });
            }
        }
    }

    #[test]
    fn symbols_know_where_they_are_first_and_sums_have_a_limit() {
        let mut symbols = SymbolCounts::default();
        let marks = WordMarks::Prefix("##".into());
        count_symbols("aba", 2, 7, &marks, &mut symbols).unwrap();
        count_symbols("ba", 3, 4, &marks, &mut symbols).unwrap();
        assert_eq!(symbols[&('a', true)], SymbolCount { count: 5, first: (4, 1) });
        assert_eq!(symbols[&('a', false)], SymbolCount { count: 2, first: (7, 0) });
        assert_eq!(symbols.len(), 4);
        assert!(count_symbols("a", i64::MAX as u64, 0, &marks, &mut symbols).is_err());
        assert_eq!(add(i64::MAX as u64, 1), Err(Error::Overflow));
        assert_eq!(add(1, u64::MAX), Err(Error::Overflow));
        let limits = WordLimits { min_count: 2, max_length: 2 };
        let admitted = [("é中", 2), ("a", 1), ("", 9), ("abc", 9)].map(|(w, n)| limits.admit(w, n));
        assert_eq!(admitted, [true, false, false, false]);
    }
}
