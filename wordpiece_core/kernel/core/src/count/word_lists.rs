//! Lists of words with counts: ordered, merged as streams, weighted, and divided into partitions.
//!
//! Partial word tables are lists that are ordered by word. When such lists are read side by side,
//! equal words come one after the other, so that they can be added up in one pass, without a table
//! of all words. Comparing words is what this costs most: every row holds the first eight bytes of
//! its word as a number, which settles nearly all comparisons.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::base::error::{Error, Result};
use crate::base::sums::add;
use crate::text::utf8::first_bytes;

/// A list of words with counts. The text of all words is one string.
#[derive(Default)]
pub struct WordList {
    text: String,
    rows: Vec<WordRow>,
}

#[derive(Clone, Copy)]
struct WordRow {
    /// The first eight bytes of the word, as a number with the same order.
    head: u64,
    start: usize,
    len: usize,
    count: u64,
}

impl WordList {
    /// The approximate memory of a word in bytes, without its text. A vector that has grown is half
    /// full at least.
    pub const BYTES_PER_ROW: usize = size_of::<WordRow>() * 3 / 2;

    /// Appends a word with its count.
    pub fn push(&mut self, word: &str, count: u64) {
        let row =
            WordRow { head: first_bytes(word), start: self.text.len(), len: word.len(), count };
        self.text.push_str(word);
        self.rows.push(row);
    }

    /// Return true if there are no words.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The sum of all counts.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Overflow`] if the sum exceeds 2^63 - 1.
    pub fn total(&self) -> Result<u64> {
        self.rows.iter().try_fold(0, |sum, row| add(sum, row.count))
    }

    /// The memory that the list takes, in bytes.
    pub fn memory(&self) -> usize {
        self.text.capacity() + self.rows.capacity() * size_of::<WordRow>()
    }

    /// The words with their counts, in the order of the list.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> + Clone {
        self.rows.iter().map(|row| (word(&self.text, row), row.count))
    }

    /// Orders the list by word (by code points, which for UTF-8 is the order of the bytes), and makes
    /// one row of equal words, with the sum of their counts.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Overflow`] if a sum exceeds 2^63 - 1.
    pub(crate) fn sort_and_sum(&mut self) -> Result<()> {
        let text = &self.text;
        self.rows.sort_unstable_by(|a, b| compare(text, a, b));
        let mut overflow = Ok(());
        self.rows.dedup_by(|row, kept| {
            let equal = compare(text, row, kept) == Ordering::Equal;
            if equal {
                match add(kept.count, row.count) {
                    Ok(sum) => kept.count = sum,
                    Err(error) => overflow = Err(error),
                }
            }
            equal
        });
        overflow
    }
}

fn word<'a>(text: &'a str, row: &WordRow) -> &'a str {
    &text[row.start..row.start + row.len]
}

fn compare(text: &str, a: &WordRow, b: &WordRow) -> Ordering {
    a.head.cmp(&b.head).then_with(|| word(text, a).cmp(word(text, b)))
}

/// The partition that a word belongs to, from 0 to `partitions - 1`, by the lower bits of its hash: the upper bits
/// decide whether it is in a sample.
pub fn partition(word: &str, partitions: usize) -> usize {
    (fingerprint(word) % partitions.max(1) as u64) as usize
}

/// Return true if a word is in a sample of about one of `every` words. That depends on the word alone.
pub fn is_drawn(word: &str, every: u64) -> bool {
    (fingerprint(word) >> 32).is_multiple_of(every.max(1))
}

/// FNV-1a: the same number for the same word on every machine and in every version.
fn fingerprint(word: &str) -> u64 {
    word.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// The next row of a list that is being read. In a heap, the greatest is the one with the least word.
struct Cursor<'a> {
    head: u64,
    word: &'a str,
    count: u64,
    list: usize,
}

impl PartialEq for Cursor<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Cursor<'_> {}

impl PartialOrd for Cursor<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Cursor<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.head.cmp(&self.head)).then_with(|| other.word.cmp(self.word))
    }
}

/// Reads lists side by side, each of them ordered by word. For every row of all lists, ordered by
/// word, gives the word, its count and the index of its list.
pub fn side_by_side<'a, L>(mut lists: Vec<L>) -> impl Iterator<Item = (&'a str, u64, usize)>
where
    L: Iterator<Item = (&'a str, u64)>,
{
    let cursor = |(word, count), list| Cursor { head: first_bytes(word), word, count, list };
    let mut heap = BinaryHeap::with_capacity(lists.len());
    for (number, list) in lists.iter_mut().enumerate() {
        heap.extend(list.next().map(|row| cursor(row, number)));
    }
    std::iter::from_fn(move || {
        let mut least = heap.peek_mut()?;
        let (word, count, list) = (least.word, least.count, least.list);
        match lists[list].next() {
            Some(row) => *least = cursor(row, list),
            None => drop(std::collections::binary_heap::PeekMut::pop(least)),
        }
        Some((word, count, list))
    })
}

/// Sums the counts of equal words. The rows must be ordered by word, and so is the result.
///
/// # Errors
///
/// Returns [`Error::Overflow`] if a sum exceeds 2^63 - 1.
pub fn sum<'a>(rows: impl Iterator<Item = (&'a str, u64)>) -> Result<Vec<(&'a str, u64)>> {
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for (word, count) in rows {
        match sums.last_mut() {
            Some(last) if last.0 == word => last.1 = add(last.1, count)?,
            _ => sums.push((word, add(0, count)?)),
        }
    }
    Ok(sums)
}

/// The number of fractional binary digits of a weight: a weight of 1 is 2^32.
pub const FRACTION_BITS: u32 = 32;

/// Sums the counts of equal words, each count times the weight of its list. A sum is rounded once, to
/// the nearest whole number, halves up; but a word whose sum is above 0 has a count of 1 at least.
///
/// # Arguments
///
/// * `rows` - Word, count and index of the list, ordered by word.
/// * `weights` - The weight of each list, in units of 2^-[`FRACTION_BITS`].
///
/// # Errors
///
/// Returns [`Error::Overflow`] if a sum exceeds 2^63 - 1.
///
/// # Panics
///
/// Panics if a list has no weight.
pub fn weighted_sum<'a>(
    rows: impl Iterator<Item = (&'a str, u64, usize)>,
    weights: &[u128],
) -> Result<Vec<(&'a str, u64)>> {
    let mut sums: Vec<(&str, u64)> = Vec::new();
    let mut sum = 0u128;
    for (word, count, list) in rows {
        if sums.last().is_none_or(|last| last.0 != word) {
            sum = 0;
            sums.push((word, 0));
        }
        let more = weights[list].checked_mul(count as u128);
        sum = more.and_then(|more| sum.checked_add(more)).ok_or(Error::Overflow)?;
        sums.last_mut().expect("just pushed").1 = rounded(sum)?;
    }
    Ok(sums)
}

fn rounded(sum: u128) -> Result<u64> {
    let half = 1 << (FRACTION_BITS - 1);
    let nearest = sum.checked_add(half).ok_or(Error::Overflow)? >> FRACTION_BITS;
    let count = nearest.max(u128::from(sum > 0));
    u64::try_from(count).ok().filter(|&count| count <= i64::MAX as u64).ok_or(Error::Overflow)
}

/// Brings words that are ordered by word into the order of a word table: by count, the largest first,
/// then by word.
pub fn by_count(words: &mut [(&str, u64)]) {
    words.sort_by_key(|&(_, count)| Reverse(count)); // the sort is stable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_ordered_by_their_bytes_and_summed() {
        let mut words = WordList::default();
        for (word, count) in [("b", 1), ("abcdefghi", 2), ("", 3), ("abcdefgh", 4), ("b", 5)] {
            words.push(word, count);
        }
        words.push("b\0", 1);
        words.sort_and_sum().unwrap();
        let rows: Vec<_> = words.iter().collect();
        assert_eq!(rows, [("", 3), ("abcdefgh", 4), ("abcdefghi", 2), ("b", 6), ("b\0", 1)]);
    }

    #[test]
    fn weighted_sums_are_rounded_once_and_never_to_nothing() {
        let one = 1u128 << FRACTION_BITS;
        let rows = [("a", 1, 0), ("a", 1, 0), ("b", 1, 0), ("c", 2, 1), ("d", 0, 0)];
        let weights = [one / 4, one + one / 4];
        let sums = weighted_sum(rows.into_iter(), &weights).unwrap();
        assert_eq!(sums, [("a", 1), ("b", 1), ("c", 3), ("d", 0)]);
    }

    #[test]
    fn sums_beyond_the_most_are_errors() {
        let most = i64::MAX as u64;
        assert!(sum([("a", most)].into_iter()).is_ok());
        assert!(sum([("a", most), ("a", 1)].into_iter()).is_err());
        assert!(sum([("a", most + 1)].into_iter()).is_err());
        let one = 1u128 << FRACTION_BITS;
        assert!(weighted_sum([("a", most, 0)].into_iter(), &[one]).is_ok());
        assert!(weighted_sum([("a", most, 0), ("a", 1, 0)].into_iter(), &[one]).is_err());
        assert!(weighted_sum([("a", most, 0)].into_iter(), &[one + one / 2]).is_err());
        assert!(weighted_sum([("a", u64::MAX, 0)].into_iter(), &[u128::MAX]).is_err());
    }
}
