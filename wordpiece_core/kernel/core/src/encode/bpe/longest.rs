//! Byte-pair encoding from left to right, without merging.
//!
//! Adjacent tokens are compatible if encoding their concatenation returns them. BPE gives the only
//! tokenization of a word in which all adjacent tokens are compatible. So tokens are taken from the left,
//! longest first, with a step back if no compatible token follows. (van Antwerpen and Neubeck, "So many
//! tokens, so little time", 2024.) For a given vocabulary the time is linear in the length of the word.
//!
//! This needs a vocabulary in which one merge makes each token, from tokens that are made before it. Further
//! merges of the same token are harmless if their parts never meet because other merges come first; where
//! ranks follow tokens, as in tiktoken's vocabularies, this holds for all merges except one. Words of other
//! vocabularies are merged.

use std::hint::select_unpredictable;
use std::sync::atomic::{AtomicU64, Ordering};

use super::merge_table::MergeTable;
use crate::base::error::Result;
use crate::base::hash::number_hash;
use crate::base::trie::{INITIAL_ROOT, NONE, Trie};

/// The tokens that words may become, and how each is made.
pub(super) struct Longest {
    trie: Trie,
    tokens: Tokens,
    /// The number of bytes of each token.
    lengths: Vec<u32>,
    borders: Borders,
    /// No other model has this number.
    number: u64,
}

/// The merges that make tokens, by token.
struct Tokens(Vec<Made>);

/// The merge that makes a token.
#[derive(Clone, Copy)]
#[repr(align(16))] // in one cache line
struct Made {
    left: u32,
    right: u32,
    /// The rank of its merge, from 1 on; 0 for a symbol, and `NONE` for a token that no word has.
    rank: u32,
    /// The longest other token that it begins with, or `NONE`.
    shorter: u32,
}

/// Scratch memory for tokenizing words.
#[derive(Default)]
pub(super) struct LongestScratch {
    pub(super) ids: Vec<u32>,
    /// One bit for each place that no token may begin at.
    dead: Vec<u64>,
    /// Pairs of tokens of the model with that number, by their hash, with the lowest bit set if they are compatible.
    pairs: Vec<u64>,
    number: u64,
}

/// The binary logarithm of the number of remembered pairs.
const PAIRS: u32 = 13;
const NO_PAIR: u64 = u64::MAX;
/// Up to this length, in bytes, few pairs of a word repeat, and none is remembered.
const FEW_PAIRS: usize = 64;

impl Longest {
    /// None if merges must be applied one by one.
    ///
    /// # Arguments
    ///
    /// * `strings` - The string of each token; None for a token that is never the result of encoding.
    /// * `is_symbol` - True for tokens that exist before all merges.
    /// * `merges` - The pairs, and what each makes, by rank.
    /// * `table` - Their ranks. Other pairs have no merge.
    pub(super) fn new(
        strings: &[Option<Vec<u8>>],
        is_symbol: impl Fn(u32) -> bool,
        merges: impl Iterator<Item = (u32, u32, u32)>,
        table: &MergeTable,
    ) -> Result<Option<Self>> {
        if strings.len() > 1 << 31 {
            return Ok(None);
        }
        let symbol = |(id, string): (u32, &Option<Vec<u8>>)| {
            let rank = if string.is_some() && is_symbol(id) { 0 } else { NONE };
            Made { left: NONE, right: NONE, rank, shorter: NONE }
        };
        let mut tokens = Tokens((0..).zip(strings).map(symbol).collect());
        let mut too_early = Vec::new();
        let mut borders = Borders::default();
        for (left, right, id) in merges {
            let rank = rank_of(table, left, right);
            if rank == NONE {
                continue;
            }
            if let (Some(left), Some(right)) = (&strings[left as usize], &strings[right as usize]) {
                borders.insert(left, right);
            }
            if !(tokens.is_made(left) && tokens.is_made(right)) {
                too_early.push((left, right));
                continue;
            }
            if strings[id as usize].is_none() || !tokens.stay_apart(table, left, right, rank) {
                continue;
            }
            if tokens.is_made(id) {
                return Ok(None); // it is made in two ways
            }
            tokens.0[id as usize] = Made { left, right, rank, shorter: NONE };
        }
        let met = |&(left, right): &(u32, u32)| {
            tokens.is_made(left)
                && tokens.is_made(right)
                && tokens.become_neighbours(table, left, right)
        };
        if too_early.iter().any(met) {
            return Ok(None); // a token is merged before it is made
        }
        let made = (0..).zip(strings).filter(|&(id, _)| tokens.is_made(id));
        let patterns = made.filter_map(|(id, string)| Some((string.as_deref()?, id))).collect();
        let trie = Trie::new([patterns, vec![]])?;
        for (token, string) in tokens.0.iter_mut().zip(strings) {
            if let Some((_, shorter)) = string.as_deref().and_then(<[u8]>::split_last) {
                token.shorter = longest_in(&trie, shorter).map_or(NONE, |(_, id)| id);
            }
        }
        let lengths = strings.iter().map(|string| string.as_ref().map_or(0, Vec::len) as u32);
        let lengths = lengths.collect();
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Longest { trie, tokens, lengths, borders, number }))
    }

    /// Tokenizes a word into `scratch.ids`. Returns false if it has an unknown character.
    pub(super) fn tokenize(
        &self,
        word: &[u8],
        table: &MergeTable,
        scratch: &mut LongestScratch,
    ) -> bool {
        let remembers = word.len() > FEW_PAIRS;
        if remembers && scratch.number != self.number {
            (scratch.pairs, scratch.number) = (vec![NO_PAIR; 1 << PAIRS], self.number);
        }
        let LongestScratch { ids, dead, pairs, .. } = scratch;
        ids.clear();
        dead.clear();
        dead.resize(word.len() / 64 + 1, 0);
        let (mut at, mut next) = (0, longest_in(&self.trie, word));
        while at < word.len() {
            let Some((length, id)) = next else {
                dead[at / 64] |= 1 << (at % 64);
                let Some(last) = ids.pop() else { return false };
                at -= self.lengths[last as usize] as usize;
                next = self.shorter(last);
                continue;
            };
            let end = at + length;
            let may_end = dead[end / 64] >> (end % 64) & 1 == 0;
            let is_compatible = |&last: &u32| {
                !self.borders.may_merge(word, at)
                    || match remembers {
                        true => self.are_compatible(table, last, id, pairs),
                        false => self.tokens.stay_apart(table, last, id, NONE),
                    }
            };
            if may_end && ids.last().is_none_or(is_compatible) {
                ids.push(id);
                at = end;
                next = longest_in(&self.trie, &word[at..]);
                if next.is_none() && at < word.len() {
                    return false;
                }
            } else {
                next = self.shorter(id);
            }
        }
        true
    }

    /// Return true if the string of a token is encoded to that token.
    pub(super) fn makes(&self, id: u32) -> bool {
        self.tokens.is_made(id)
    }

    /// Return the longest other token that a token begins with, and its length.
    #[inline(always)]
    fn shorter(&self, id: u32) -> Option<(usize, u32)> {
        let id = self.tokens.0[id as usize].shorter;
        (id != NONE).then(|| (self.lengths[id as usize] as usize, id))
    }

    /// Return true if two adjacent tokens are compatible, from memory if they were looked at before.
    #[inline(always)]
    fn are_compatible(&self, table: &MergeTable, left: u32, right: u32, pairs: &mut [u64]) -> bool {
        let pair = (left as u64) << 32 | (right as u64) << 1; // ids are below 2^31
        let place = number_hash(pair) >> (64 - PAIRS);
        let known = &mut pairs[place as usize];
        if *known & !1 != pair {
            *known = pair | self.tokens.stay_apart(table, left, right, NONE) as u64;
        }
        *known & 1 == 1
    }
}

/// The bytes at the borders where merges join two tokens. At other borders all tokens are compatible: no part of the
/// left token merges with a part of the right one. Such borders are frequent where characters have several bytes, as
/// in Chinese.
struct Borders {
    /// For merges in which one token or both have fewer than [`WINDOW`] bytes: one bit for each pair of the last byte
    /// of the left token and the first byte of the right token.
    short: Box<[u64; 1 << 10]>,
    /// For merges of two longer tokens: one bit for each hash of the last bytes of the left token and the first bytes
    /// of the right token.
    long: Box<[u64; 1 << 13]>,
}

/// The number of bytes that are compared on both sides of a border.
const WINDOW: usize = 3;

impl Default for Borders {
    fn default() -> Self {
        Borders { short: Box::new([0; 1 << 10]), long: Box::new([0; 1 << 13]) }
    }
}

impl Borders {
    /// Add the merge of two tokens.
    fn insert(&mut self, left: &[u8], right: &[u8]) {
        if let (Some(left), Some(right)) = (left.last_chunk(), right.first_chunk()) {
            let (word, bit) = Borders::long_bit(left, right);
            self.long[word] |= bit;
        } else if let (Some(&left), Some(&right)) = (left.last(), right.first()) {
            let (word, bit) = Borders::short_bit(left, right);
            self.short[word] |= bit;
        }
    }

    /// Return false if no merge joins tokens at byte `at` of a word, which is inside of the word.
    #[inline(always)]
    fn may_merge(&self, word: &[u8], at: usize) -> bool {
        let (short, bit) = Borders::short_bit(word[at - 1], word[at]);
        if self.short[short] & bit != 0 {
            return true;
        }
        let (left, right) = word.split_at(at);
        let (Some(left), Some(right)) = (left.last_chunk(), right.first_chunk()) else {
            return false;
        };
        let (long, bit) = Borders::long_bit(left, right);
        self.long[long] & bit != 0
    }

    #[inline(always)]
    fn short_bit(left: u8, right: u8) -> (usize, u64) {
        let pair = (left as usize) << 8 | right as usize;
        (pair / 64, 1 << (pair % 64))
    }

    #[inline(always)]
    fn long_bit(left: &[u8; WINDOW], right: &[u8; WINDOW]) -> (usize, u64) {
        let [a, b, c] = *left;
        let [d, e, f] = *right;
        let hash = number_hash(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]));
        ((hash >> 51) as usize, 1 << (hash >> 45 & 63))
    }
}

impl Tokens {
    /// Return true if words may have a token.
    fn is_made(&self, id: u32) -> bool {
        self.0[id as usize].rank != NONE
    }

    /// Return true if two adjacent tokens are compatible: no merge of a rank below `limit` joins them, or parts of
    /// them where they meet.
    #[inline(always)]
    fn stay_apart(&self, table: &MergeTable, left: u32, right: u32, limit: u32) -> bool {
        rank_of(table, left, right) >= limit && self.become_neighbours(table, left, right)
    }

    /// Return true if two tokens are adjacent at some time during the merges.
    #[inline(always)]
    fn become_neighbours(&self, table: &MergeTable, left: u32, right: u32) -> bool {
        let (mut left, mut right) = (left, right);
        loop {
            count_probe();
            let [a, b] = [left, right].map(|id| self.0[id as usize]);
            // The last merge is undone. Of two merges with the same rank, the left one was first.
            let undoes_left = a.rank > b.rank;
            if !undoes_left && b.rank == 0 {
                return true;
            }
            let limit = if undoes_left { a.rank } else { b.rank + 1 };
            left = select_unpredictable(undoes_left, a.right, left);
            right = select_unpredictable(undoes_left, right, b.left);
            if rank_of(table, left, right) < limit {
                return false;
            }
        }
    }
}

/// The rank of a merge, from 1 on, or `NONE`.
#[inline(always)]
fn rank_of(table: &MergeTable, left: u32, right: u32) -> u32 {
    table.rank(left, right).saturating_add(1)
}

/// Return the length and the id of the longest token that some bytes begin with.
#[inline(always)]
fn longest_in(trie: &Trie, bytes: &[u8]) -> Option<(usize, u32)> {
    trie.prefixes(INITIAL_ROOT, bytes).last()
}

#[cfg(test)]
thread_local! {
    /// The number of pairs of parts that were looked up, for tests of how much work a word is.
    pub(super) static PROBES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[inline(always)]
fn count_probe() {
    #[cfg(test)]
    PROBES.set(PROBES.get() + 1);
}
