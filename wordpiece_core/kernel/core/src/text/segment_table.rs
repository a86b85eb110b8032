//! Hash tables whose keys are raw segments of text.
//!
//! Counting and encoding look up every segment of every text here. A segment of up to 31 bytes, as
//! nearly all are, is its own key: its bytes and its length make a number of 64, 128 or 256 bits. The
//! key is stored in the slot together with the value, so that a lookup touches one cache line and
//! follows no pointer. A longer segment has a slot with its hash, its length and the place of its bytes.
//!
//! Segments are gathered, and their slots are prefetched before the first one is read. [`SegmentTable`] counts
//! them by the length of their keys, in a [`Batch`]. [`EntryTable`] has the cached tokens of segments, which are
//! read in the order of the text, by [`Lookups`].
//!
//! The tables use open addressing with linear probing by lines of a few slots, and are at most three
//! quarters full: memory that is waited for costs more than a second line. Each hashes with a random seed of
//! its own.

mod batch;
mod entries;
mod key_table;
mod keys;
mod long_table;

pub use batch::Batch;
pub(crate) use entries::{EntryTable, LONGEST, Lookups};
use key_table::KeyTable;
use keys::{
    MIDDLE, MIDDLE_END, MiddleKey, SHORT, SHORT_END, TINY, TINY_END, middle_key, short_key_of,
    tiny_key,
};
use long_table::LongTable;

/// The counts of segments.
#[derive(Default)]
pub struct SegmentTable {
    tiny: KeyTable<u64, u64, 4>,
    short: KeyTable<u128, u64, 2>,
    middle: KeyTable<MiddleKey, u64, 3>,
    long: LongTable<u64>,
}

impl SegmentTable {
    /// Return the number of segments.
    pub fn len(&self) -> usize {
        self.tiny.held + self.short.held + self.middle.held + self.long.len()
    }

    /// The memory that the table takes, in bytes, keys and free slots included.
    pub fn memory(&self) -> usize {
        self.tiny.memory() + self.short.memory() + self.middle.memory() + self.long.memory()
    }

    /// An upper limit of the bytes of all segments together.
    pub(crate) fn text_bytes(&self) -> usize {
        self.tiny.held * TINY
            + self.short.held * SHORT
            + self.middle.held * MIDDLE
            + self.long.text_bytes()
    }

    /// Adds 1 to the value of a segment.
    pub fn add(&mut self, segment: &[u8]) {
        match segment.len() {
            0..TINY_END => self.tiny.add(tiny_key(short_key_of(segment), segment.len())),
            TINY_END..SHORT_END => self.short.add(short_key_of(segment)),
            SHORT_END..MIDDLE_END => self.middle.add(middle_key(segment)),
            _ => *self.long.entry(segment, self.long.hash(segment)) += 1,
        }
    }

    /// Adds 1 to the value of every gathered segment. The batch is empty then.
    #[inline(never)]
    pub fn count(&mut self, batch: &mut Batch) {
        self.tiny.count(&mut batch.tiny);
        self.short.count(&mut batch.short);
        self.middle.count(&mut batch.middle);
    }

    /// Return the memory that counting a batch may take in addition to the table.
    pub(crate) fn growth(&self, batch: &Batch) -> usize {
        self.tiny.growth(batch.tiny.held)
            + self.short.growth(batch.short.held)
            + self.middle.growth(batch.middle.held)
    }

    /// Calls `each` with every segment and its value, in no particular order.
    pub fn for_each(&self, mut each: impl FnMut(&str, u64)) {
        self.tiny.for_each(|key, value| {
            let bytes = key.to_le_bytes();
            each(as_str(&bytes[..bytes[TINY] as usize]), value);
        });
        self.short.for_each(|key, value| {
            let bytes = key.to_le_bytes();
            each(as_str(&bytes[..bytes[SHORT] as usize]), value);
        });
        self.middle.for_each(|MiddleKey(low, high), value| {
            let mut bytes = [0; MIDDLE + 1];
            bytes[..16].copy_from_slice(&low.to_le_bytes());
            bytes[16..].copy_from_slice(&high.to_le_bytes());
            each(as_str(&bytes[..bytes[MIDDLE] as usize]), value);
        });
        self.long.for_each(|segment, value| each(as_str(segment), value));
    }
}

/// The string of a key. Keys are made from strings only.
fn as_str(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("a segment is a string")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn counts_like_a_plain_map() {
        let mut map = SegmentTable::default();
        let mut plain = HashMap::new();
        for i in 0..200_000u64 {
            let n = i.wrapping_mul(0x9E37_79B9) % 7_919;
            let segment = format!("{}{n}", "é".repeat((n % 17) as usize));
            map.add(segment.as_bytes());
            *plain.entry(segment).or_insert(0) += 1;
        }
        let mut seen = HashMap::new();
        map.for_each(|segment, count| assert!(seen.insert(segment.to_owned(), count).is_none()));
        assert_eq!(map.len(), plain.len());
        assert_eq!(seen, plain);
    }
}
