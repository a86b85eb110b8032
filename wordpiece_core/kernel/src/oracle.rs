//! What the tests compare the kernel with: pseudorandom numbers, and counting and merging by their
//! definitions.

use std::collections::HashMap;

use crate::train::splits::OUTSIDE;

/// Pseudorandom numbers, the same in every run (xorshift64*).
pub struct Random(u64);

impl Random {
    /// The numbers that follow from a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number from 0 to `end - 1`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end
    }

    /// One of these values.
    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A word of 1 to `most` characters, each one of these.
    pub fn word(&mut self, characters: &[char], most: usize) -> String {
        (0..1 + self.below(most)).map(|_| *self.choose(characters)).collect()
    }
}

/// A split in which a pair is replaced by its token, from left to right.
pub fn merged(split: &[u32], left: u32, right: u32, token: u32) -> Vec<u32> {
    let mut out = Vec::new();
    let mut rest = split;
    while let [first, more @ ..] = rest {
        if *first == left && more.first() == Some(&right) {
            out.push(token);
            rest = &more[1..];
        } else {
            out.push(*first);
            rest = more;
        }
    }
    out
}

/// The counts of tokens, and those of adjacent pairs with the split and the index where each occurs
/// first.
pub type PlainCounts = (HashMap<u32, u64>, HashMap<(u32, u32), (u64, (usize, usize))>);

/// Counts the tokens and the pairs of splits, each of which has a count.
pub fn counted(splits: &[(Vec<u32>, u64)]) -> PlainCounts {
    let (mut tokens, mut pairs) = PlainCounts::default();
    for (word, (split, count)) in splits.iter().enumerate() {
        for (at, &symbol) in split.iter().enumerate().filter(|(_, symbol)| **symbol != OUTSIDE) {
            *tokens.entry(symbol).or_default() += count;
            if let Some(&next) = split.get(at + 1).filter(|&&next| next != OUTSIDE) {
                pairs.entry((symbol, next)).or_insert((0, (word, at))).0 += count;
            }
        }
    }
    (tokens, pairs)
}
