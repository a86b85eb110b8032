//! Segments of more than 31 bytes: slots with hashes, and the bytes of all segments in one list.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;

use super::key_table::KeyTable;
use super::keys::LongKey;
use crate::base::prefetch::prefetch;

/// A map from long segments to numbers.
#[derive(Default)]
pub(super) struct LongTable<V: Copy + Default> {
    slots: KeyTable<LongKey, V, 2>,
    /// The bytes of all segments.
    bytes: Vec<u8>,
    state: RandomState,
}

impl<V: Copy + Default> LongTable<V> {
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

    /// Empties the table, and gives its memory back.
    pub(super) fn clear(&mut self) {
        *self = LongTable { state: self.state.clone(), ..Self::default() };
    }

    /// Return the hash of a segment, at least 1.
    #[inline(always)]
    pub(super) fn hash(&self, segment: &[u8]) -> u64 {
        self.state.hash_one(segment).max(1)
    }

    pub(super) fn get(&self, segment: &[u8], hash: u64) -> Option<&V> {
        self.find(segment, hash).ok().map(|(line, slot)| &self.slots.lines[line].values[slot])
    }

    /// The value of a segment, which is the default if it was not in the table.
    pub(super) fn entry(&mut self, segment: &[u8], hash: u64) -> &mut V {
        let (line, slot) = self.find(segment, hash).unwrap_or_else(|(key, line)| {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(segment);
            self.slots.insert(LongKey { start, ..key }, key.hash, line)
        });
        &mut self.slots.lines[line].values[slot]
    }

    /// The line and the slot of a segment; if it is not in the table, the key and the line where it belongs.
    fn find(&self, segment: &[u8], hash: u64) -> Result<(usize, usize), (LongKey, usize)> {
        let mut key = LongKey { hash, length: segment.len(), start: 0 };
        loop {
            let (line, slot) = self.slots.place(key, key.hash);
            let Some(held) = self.slots.lines[line].keys.get(slot) else { return Err((key, line)) };
            if self.segment(held) == segment {
                return Ok((line, slot));
            }
            key.hash = key.hash.wrapping_add(1).max(1); // another segment has this one
        }
    }

    /// Ask for the memory of the slot of a segment, without waiting for it.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        self.slots.prefetch(hash);
    }

    /// Ask for the bytes of a segment, without waiting for them. Its slot has been prefetched.
    #[inline(always)]
    pub(super) fn prefetch_bytes(&self, length: usize, hash: u64) {
        let (line, slot) = self.slots.place(LongKey { hash, length, start: 0 }, hash);
        if let Some(held) = self.slots.lines[line].keys.get(slot) {
            let segment = self.segment(held);
            segment.first().into_iter().chain(segment.last()).for_each(prefetch);
        }
    }

    #[inline(always)]
    fn segment(&self, key: &LongKey) -> &[u8] {
        &self.bytes[key.start..key.start + key.length]
    }

    /// Call `each` with every segment and its value.
    pub(super) fn for_each(&self, mut each: impl FnMut(&[u8], V)) {
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
        let hash = table.hash(&segments[0]);
        for (segment, value) in segments[..19].iter().zip(1..) {
            *table.entry(segment, hash) = value;
        }
        for (segment, value) in segments.iter().zip(1..) {
            assert_eq!(table.get(segment, hash).copied(), (value < 20).then_some(value));
        }
        assert_eq!(table.len(), 19);
    }
}
