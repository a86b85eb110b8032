//! Segments of more than 31 bytes: slots with hashes, and the bytes of all segments in one list.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;

use super::batch::{Batch, MISSING};
use super::key_table::KeyTable;
use super::keys::LongKey;
use crate::base::prefetch::prefetch;

/// A map from long segments to numbers.
#[derive(Default)]
pub(super) struct LongTable {
    slots: KeyTable<LongKey, 2>,
    /// The bytes of all segments.
    bytes: Vec<u8>,
    state: RandomState,
}

impl LongTable {
    pub(super) fn len(&self) -> usize {
        self.slots.held
    }

    /// The memory of the table in bytes.
    pub(super) fn memory(&self) -> usize {
        self.slots.memory() + self.bytes.capacity()
    }

    /// The memory that the table may take in addition while a segment is inserted: larger lists are filled before the
    /// old ones are dropped.
    pub(super) fn growth(&self, length: usize) -> usize {
        let needed = self.bytes.len() + length;
        let bytes =
            if needed > self.bytes.capacity() { needed.max(2 * self.bytes.capacity()) } else { 0 };
        self.slots.growth(1) + bytes
    }

    /// The number of bytes of all segments.
    pub(super) fn text_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn get(&self, segment: &[u8]) -> Option<u64> {
        self.find(segment).ok().map(|(line, slot)| self.slots.lines[line].values[slot])
    }

    /// The value of a segment, which is 0 if it was not in the table.
    pub(super) fn entry(&mut self, segment: &[u8]) -> &mut u64 {
        let (line, slot) = self.find(segment).unwrap_or_else(|(key, line)| {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(segment);
            self.slots.insert(LongKey { start, ..key }, line)
        });
        &mut self.slots.lines[line].values[slot]
    }

    /// The line and the slot of a segment; if it is not in the table, the key and the line where it belongs.
    fn find(&self, segment: &[u8]) -> Result<(usize, usize), (LongKey, usize)> {
        let mut key = self.key(segment);
        loop {
            let (line, slot) = self.slots.place(key);
            let Some(held) = self.slots.lines[line].keys.get(slot) else { return Err((key, line)) };
            if self.segment(held) == segment {
                return Ok((line, slot));
            }
            key.hash = key.hash.wrapping_add(1).max(1); // another segment has this one
        }
    }

    #[inline(always)]
    fn key(&self, segment: &[u8]) -> LongKey {
        LongKey { hash: self.state.hash_one(segment).max(1), length: segment.len(), start: 0 }
    }

    #[inline(always)]
    fn segment(&self, key: &LongKey) -> &[u8] {
        &self.bytes[key.start..key.start + key.length]
    }

    /// Find the values of the long segments of a batch. Slots, and then bytes, are prefetched for all of them.
    #[inline(never)]
    pub(super) fn find_all(&self, text: &[u8], batch: &mut Batch<true>) {
        let Batch { long, bounds, values, .. } = batch;
        let held = std::mem::take(&mut long.held);
        let (keys, places) = (&mut long.keys[..held], &long.places[..held]);
        for (key, &place) in keys.iter_mut().zip(places) {
            let (start, end) = bounds[place as usize];
            *key = self.key(&text[start..end]);
            self.slots.prefetch(*key);
        }
        for (key, &place) in keys.iter_mut().zip(places) {
            let (line, slot) = self.slots.place(*key);
            let line = &self.slots.lines[line];
            values[place as usize] = line.values.get(slot).copied().unwrap_or(MISSING);
            if let Some(&held) = line.keys.get(slot) {
                *key = held;
                let segment = self.segment(key);
                segment.first().into_iter().chain(segment.last()).for_each(prefetch);
            }
        }
        for (key, &place) in keys.iter().zip(places) {
            let (start, end) = bounds[place as usize];
            let value = &mut values[place as usize];
            if *value != MISSING && self.segment(key) != &text[start..end] {
                *value = self.get(&text[start..end]).unwrap_or(MISSING);
            }
        }
    }

    /// Call `each` with every segment and its value.
    pub(super) fn for_each(&self, mut each: impl FnMut(&[u8], u64)) {
        self.slots.for_each(|key, value| each(self.segment(&key), value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_with_the_same_hash_are_found() {
        let segments: Vec<[u8; 40]> = (0..20).map(|byte| [byte; 40]).collect();
        let mut table = LongTable::default();
        let key = |table: &LongTable| table.key(&segments[0]);
        for (other, value) in segments[1..19].iter().zip(1..) {
            // Each of them is put where the first segment, and segments with its hash, are looked for.
            let (key, line) = table.find(&segments[0]).expect_err("it is not in the table");
            let start = table.bytes.len();
            table.bytes.extend_from_slice(other);
            let (line, slot) = table.slots.insert(LongKey { start, ..key }, line);
            table.slots.lines[line].values[slot] = value;
        }
        assert_eq!(table.get(&segments[0]), None);
        *table.entry(&segments[0]) = 100;
        *table.entry(&segments[19]) = 200;
        assert_eq!([0, 19].map(|at| table.get(&segments[at])), [Some(100), Some(200)]);
        assert_eq!((table.len(), key(&table).length), (20, 40));
        let mut batch = Batch::default();
        let text = segments.concat();
        (0..20).for_each(|at| batch.push(&text, 40 * at, 40 * at + 40, |_| {}));
        table.find_all(&text, &mut batch);
        let found: Vec<u64> = batch.values().map(|(.., value)| value).collect();
        assert_eq!((found[0], found[19]), (100, 200));
    }
}
