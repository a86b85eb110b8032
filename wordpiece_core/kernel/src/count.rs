//! Counting words: raw segments are counted as they stand, and normalized once each at the end.

use rustc_hash::FxHashMap;

use crate::segment_map::SegmentMap;
use crate::text::{Text, TextOptions};

/// A word and how often it occurs.
pub type WordCount = (Box<str>, u64);

pub struct WordCounter {
    text: Text,
    segments: SegmentMap<u64>,
}

impl WordCounter {
    pub fn new(options: TextOptions) -> Self {
        WordCounter { text: Text::new(options), segments: SegmentMap::default() }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.segments.memory()
    }

    pub fn count(&mut self, row: &str) {
        let segments = &mut self.segments;
        self.text.segments(row, |segment| *segments.entry(segment.raw, || 0) += 1);
    }

    /// Empties the table into `partitions` lists, each ordered by word. Which list a word is in
    /// depends on the word alone.
    pub fn take(&mut self, partitions: usize) -> Vec<Vec<WordCount>> {
        let mut words: FxHashMap<Box<str>, u64> = FxHashMap::default();
        let mut word = String::new();
        std::mem::take(&mut self.segments).for_each(|segment, count| {
            self.text.normalize(segment, &mut word);
            if word.is_empty() {
            } else if let Some(sum) = words.get_mut(word.as_str()) {
                *sum += count;
            } else {
                words.insert(word.as_str().into(), count);
            }
        });
        let mut lists = vec![Vec::new(); partitions];
        for (word, count) in words {
            lists[(fingerprint(&word) % partitions as u64) as usize].push((word, count));
        }
        lists.iter_mut().for_each(|list| list.sort_unstable());
        lists
    }
}

/// FNV-1a: the same number for the same word on every machine and in every version.
fn fingerprint(word: &str) -> u64 {
    word.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// Sums the counts of equal words, ordered by count (descending), then word (by code point).
/// None if a sum exceeds 2^63 - 1, the most that a word table holds.
pub fn merge<'a>(counts: impl Iterator<Item = (&'a str, u64)>) -> Option<Vec<(&'a str, u64)>> {
    let mut sums: FxHashMap<&str, u64> = FxHashMap::default();
    for (word, count) in counts {
        let sum = sums.entry(word).or_insert(0);
        *sum = sum.checked_add(count).filter(|&sum| sum <= i64::MAX as u64)?;
    }
    let mut merged: Vec<_> = sums.into_iter().collect();
    merged.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    Some(merged)
}
