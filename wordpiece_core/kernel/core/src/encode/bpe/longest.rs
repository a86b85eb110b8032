//! Byte-pair encoding from left to right, without merging.
//!
//! Adjacent tokens are compatible if encoding their concatenation returns them. BPE gives the only
//! tokenization of a word in which all adjacent tokens are compatible. So tokens are taken from the left,
//! longest first, with a step back if no compatible token follows. (van Antwerpen and Neubeck, "So many
//! tokens, so little time", 2024.) The time is linear in the length of the word.
//!
//! This needs a vocabulary in which one merge makes each token, from tokens that are made before it. Further
//! merges of the same token are harmless if their parts never meet because other merges come first; where
//! ranks follow tokens, as in tiktoken's vocabularies, this holds for all merges except one. Words of other
//! vocabularies are merged.

use std::sync::atomic::{AtomicU64, Ordering};

use super::merge_table::MergeTable;
use crate::base::error::Result;
use crate::base::trie::{INITIAL_ROOT, NONE, Trie};

/// The tokens that words may become, and how each is made.
pub(super) struct Longest {
    trie: Trie,
    tokens: Vec<Made>,
    /// No other model has this number.
    number: u64,
}

/// The merge that makes a token.
#[derive(Clone, Copy)]
struct Made {
    left: u32,
    right: u32,
    /// The rank of its merge, from 1 on; 0 for a symbol.
    rank: u32,
    /// The longest other token that it begins with, or `NONE`.
    shorter: u32,
    /// The number of its bytes.
    length: u32,
    /// True if a word may have it.
    is_reached: bool,
}

/// Scratch memory for tokenizing words.
#[derive(Default)]
pub(super) struct LongestScratch {
    pub(super) ids: Vec<u32>,
    /// One bit for each place that no token may begin at.
    dead: Vec<u64>,
    /// Pairs of the model of that number that were looked at, and in the lowest bit whether they may
    /// meet.
    pairs: Vec<u64>,
    number: u64,
}

/// The number of remembered pairs, in bits: most pairs occur again soon.
const PAIRS: u32 = 13;
const NO_PAIR: u64 = u64::MAX;

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
        let symbol = |(id, string): (u32, &Option<Vec<u8>>)| Made {
            left: NONE,
            right: NONE,
            rank: 0,
            shorter: NONE,
            length: string.as_ref().map_or(0, Vec::len) as u32,
            is_reached: string.is_some() && is_symbol(id),
        };
        let mut tokens: Vec<Made> = (0..).zip(strings).map(symbol).collect();
        let mut too_early = Vec::new();
        for (left, right, id) in merges {
            let rank = rank_of(table, left, right);
            let are_reached = |tokens: &[Made]| {
                tokens[left as usize].is_reached && tokens[right as usize].is_reached
            };
            if rank == NONE {
                continue;
            }
            if !are_reached(&tokens) {
                too_early.push((left, right));
                continue;
            }
            if strings[id as usize].is_none() || !stay_apart(&tokens, table, left, right, rank) {
                continue;
            }
            if tokens[id as usize].is_reached {
                return Ok(None); // it is made in two ways
            }
            tokens[id as usize] =
                Made { left, right, rank, is_reached: true, ..tokens[id as usize] };
        }
        let is_reached = |id: u32| tokens[id as usize].is_reached;
        let met = |&(left, right): &(u32, u32)| {
            is_reached(left) && is_reached(right) && become_neighbours(&tokens, table, left, right)
        };
        if too_early.iter().any(met) {
            return Ok(None); // a token is merged before it is made
        }
        let reached = (0..).zip(strings).filter(|&(id, _)| is_reached(id));
        let patterns = reached.filter_map(|(id, string)| Some((string.as_deref()?, id))).collect();
        let trie = Trie::new([patterns, vec![]])?;
        for (token, string) in tokens.iter_mut().zip(strings) {
            if let Some((_, shorter)) = string.as_deref().and_then(<[u8]>::split_last) {
                token.shorter = longest_in(&trie, shorter);
            }
        }
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Ok(Some(Longest { trie, tokens, number: NEXT.fetch_add(1, Ordering::Relaxed) }))
    }

    /// Tokenizes a word into `scratch.ids`. Returns false if it has an unknown character.
    pub(super) fn tokenize(
        &self,
        word: &[u8],
        table: &MergeTable,
        scratch: &mut LongestScratch,
    ) -> bool {
        if scratch.number != self.number {
            (scratch.pairs, scratch.number) = (vec![NO_PAIR; 1 << PAIRS], self.number);
        }
        let LongestScratch { ids, dead, pairs, .. } = scratch;
        ids.clear();
        dead.clear();
        dead.resize(word.len() / 64 + 1, 0);
        let (mut at, mut next) = (0, longest_in(&self.trie, word));
        while at < word.len() {
            if next == NONE {
                dead[at / 64] |= 1 << (at % 64);
                let Some(last) = ids.pop() else { return false };
                let last = &self.tokens[last as usize];
                at -= last.length as usize;
                next = last.shorter;
                continue;
            }
            let token = &self.tokens[next as usize];
            let end = at + token.length as usize;
            let may_end = dead[end / 64] >> (end % 64) & 1 == 0;
            if may_end && ids.last().is_none_or(|&last| self.stay_apart(table, last, next, pairs)) {
                ids.push(next);
                at = end;
                next = longest_in(&self.trie, &word[at..]);
                if next == NONE && at < word.len() {
                    return false;
                }
            } else {
                next = token.shorter;
            }
        }
        true
    }
}

impl Longest {
    /// Return true if the string of a token is encoded to that token.
    pub(super) fn makes(&self, id: u32) -> bool {
        self.tokens[id as usize].is_reached
    }

    /// Return true if two adjacent tokens are compatible: no merge joins them, or parts of them where they meet.
    #[inline(always)]
    fn stay_apart(&self, table: &MergeTable, left: u32, right: u32, pairs: &mut [u64]) -> bool {
        let pair = (left as u64) << 32 | (right as u64) << 1; // ids are below 2^31
        let place = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - PAIRS);
        let known = &mut pairs[place as usize];
        if *known & !1 != pair {
            *known = pair | stay_apart(&self.tokens, table, left, right, NONE) as u64;
        }
        *known & 1 == 1
    }
}

/// Return true if two adjacent tokens are compatible: no merge of a rank below `limit` joins them, or parts of them
/// where they meet.
#[inline(always)]
fn stay_apart(tokens: &[Made], table: &MergeTable, left: u32, right: u32, limit: u32) -> bool {
    rank_of(table, left, right) >= limit && become_neighbours(tokens, table, left, right)
}

/// Return true if two tokens are adjacent at some time during the merges.
#[inline(always)]
fn become_neighbours(tokens: &[Made], table: &MergeTable, left: u32, right: u32) -> bool {
    let (mut left, mut right) = (left, right);
    loop {
        // The last merge is undone. Of two merges with the same rank, the left one was first.
        let [a, b] = [left, right].map(|id| &tokens[id as usize]);
        let limit = if a.rank > b.rank {
            left = a.right;
            a.rank
        } else if b.rank > 0 {
            right = b.left;
            b.rank + 1
        } else {
            return true;
        };
        if rank_of(table, left, right) < limit {
            return false;
        }
    }
}

/// The rank of a merge, from 1 on, or `NONE`.
#[inline(always)]
fn rank_of(table: &MergeTable, left: u32, right: u32) -> u32 {
    table.rank(left, right).saturating_add(1)
}

/// The longest token that some bytes begin with, or `NONE`.
#[inline(always)]
fn longest_in(trie: &Trie, bytes: &[u8]) -> u32 {
    trie.prefixes(INITIAL_ROOT, bytes).last().map_or(NONE, |(_, id)| id)
}
