//! Counting and merging by their definitions, for tests to compare with.

use std::collections::HashMap;

use crate::train::splits::OUTSIDE;

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

/// The counts of tokens, and the counts of adjacent pairs with the split and the index of the first
/// occurrence.
pub type PlainCounts = (HashMap<u32, u64>, HashMap<(u32, u32), (u64, (usize, usize))>);

/// Count the tokens and the pairs of splits with their counts.
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
