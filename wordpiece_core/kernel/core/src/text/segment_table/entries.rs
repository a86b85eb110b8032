//! A hash table from segments to entries of any type, and the segments of a text that are looked up in it in order.

use std::ops::Range;

use super::batch::{BATCH, BLOCK_SEGMENTS};
use super::key_table::KeyTable;
use super::keys::{
    MIDDLE_END, MiddleKey, SHORT, SHORT_END, first_block, middle_key, short_key, short_key_of,
};
use super::long_table::LongTable;
use crate::text::segments::Bounds;

/// The length of the longest segments that a table holds, in bytes.
pub(crate) const LONGEST: usize = 1024;

/// A map from segments of up to [`LONGEST`] bytes to entries.
#[derive(Default)]
pub(crate) struct EntryTable<V: Copy + Default> {
    short: KeyTable<u128, V, 2>,
    middle: KeyTable<MiddleKey, V, 2>,
    long: LongTable<V>,
}

impl<V: Copy + Default> EntryTable<V> {
    /// The memory that the table takes, in bytes, keys and free slots included.
    pub(crate) fn memory(&self) -> usize {
        self.short.memory() + self.middle.memory() + self.long.memory()
    }

    /// The memory that the table may take while a segment of `length` bytes is inserted: a larger table
    /// is filled before the old one is dropped.
    pub(crate) fn memory_to_insert(&self, length: usize) -> usize {
        let more = match length {
            0..SHORT_END => self.short.growth(1),
            SHORT_END..MIDDLE_END => self.middle.growth(1),
            _ => self.long.growth(length),
        };
        self.memory() + more
    }

    /// Empties the table, and gives its memory back. The hashes of segments stay the same.
    pub(crate) fn clear(&mut self) {
        self.short.clear();
        self.middle.clear();
        self.long.clear();
    }

    /// Return the hash of a segment.
    pub(crate) fn hash(&self, segment: &[u8]) -> u64 {
        match segment.len() {
            0..SHORT_END => self.short.hash(short_key_of(segment)),
            SHORT_END..MIDDLE_END => self.middle.hash(middle_key(segment)),
            _ => self.long.hash(segment),
        }
    }

    /// The entry of a segment with this hash, if it is in the table.
    pub(crate) fn get(&self, segment: &[u8], hash: u64) -> Option<&V> {
        if segment.len() < SHORT_END {
            return self.short.get(short_key_of(segment), hash);
        }
        self.longer_entry(segment, hash)
    }

    #[inline(never)]
    fn longer_entry(&self, segment: &[u8], hash: u64) -> Option<&V> {
        match segment.len() {
            ..MIDDLE_END => self.middle.get(middle_key(segment), hash),
            _ => self.long.get(segment, hash),
        }
    }

    /// Insert a segment with this hash, or replace its entry.
    pub(crate) fn insert(&mut self, segment: &[u8], hash: u64, entry: V) {
        *match segment.len() {
            0..SHORT_END => self.short.entry(short_key_of(segment), hash),
            SHORT_END..MIDDLE_END => self.middle.entry(middle_key(segment), hash),
            _ => self.long.entry(segment, hash),
        } = entry;
    }
}

/// Segments of a text that are looked up together: their slots are prefetched when they are gathered.
pub(crate) struct Lookups {
    segments: [Gathered; BATCH],
    held: usize,
    /// The places of the segments of more than 31 bytes.
    long: [u8; BATCH],
    held_long: usize,
}

/// A segment of a text.
#[derive(Clone, Copy, Default)]
struct Gathered {
    /// The key of a segment of up to 15 bytes, which ends with its length; [`LONGER`] and the length of another one.
    key: u128,
    start: usize,
    hash: u64,
}

/// No key of up to 15 bytes is as large.
const LONGER: u128 = 0xFF << 120;

impl Default for Lookups {
    fn default() -> Self {
        let segments = [Gathered::default(); BATCH];
        Lookups { segments, held: 0, long: [0; BATCH], held_long: 0 }
    }
}

impl Gathered {
    #[inline(always)]
    fn is_longer(&self) -> bool {
        (self.key >> 64) as u64 >= (LONGER >> 64) as u64
    }

    #[inline(always)]
    fn range(&self) -> Range<usize> {
        let length = if self.is_longer() { self.key as usize } else { (self.key >> 120) as usize };
        self.start..self.start + length
    }
}

impl Lookups {
    /// Return true if the segments of a block might not fit.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.held > BATCH - BLOCK_SEGMENTS
    }

    /// Return the number of segments.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.held
    }

    /// Gather the segments of a block. There must be room for them.
    ///
    /// # Arguments
    ///
    /// * `table` - The table that they will be looked up in.
    /// * `bytes` - The bytes of a text, which may continue after it.
    /// * `at` - The offset of the block.
    /// * `bounds` - The bounds of the segments.
    #[inline(always)]
    pub(crate) fn push_block<V: Copy + Default>(
        &mut self,
        table: &EntryTable<V>,
        bytes: &[u8],
        at: usize,
        mut bounds: Bounds,
    ) {
        let mut held = self.held; // not in memory as long as the loop runs
        while let Some(bounds) = bounds.pop(at) {
            self.put(held, table, bytes, bounds);
            held += 1;
        }
        self.held = held;
    }

    /// Gather the segment between two bounds. There must be room for it.
    #[inline(always)]
    pub(crate) fn push<V: Copy + Default>(
        &mut self,
        table: &EntryTable<V>,
        bytes: &[u8],
        bounds: (usize, usize),
    ) {
        self.put(self.held, table, bytes, bounds);
        self.held += 1;
    }

    #[inline(always)]
    fn put<V: Copy + Default>(
        &mut self,
        place: usize,
        table: &EntryTable<V>,
        bytes: &[u8],
        (start, end): (usize, usize),
    ) {
        let length = end - start;
        let (key, hash) = if length > SHORT {
            (LONGER | length as u128, self.longer_hash(place, table, &bytes[start..end]))
        } else {
            let key = short_key(first_block(bytes, start), length);
            let hash = table.short.hash(key);
            table.short.prefetch(hash);
            (key, hash)
        };
        self.segments[place % BATCH] = Gathered { key, start, hash };
    }

    #[inline(never)]
    fn longer_hash<V: Copy + Default>(
        &mut self,
        place: usize,
        table: &EntryTable<V>,
        segment: &[u8],
    ) -> u64 {
        if segment.len() < MIDDLE_END {
            let hash = table.middle.hash(middle_key(segment));
            table.middle.prefetch(hash);
            hash
        } else if segment.len() <= LONGEST {
            let hash = table.long.hash(segment);
            table.long.prefetch(hash);
            self.long[self.held_long % BATCH] = place as u8;
            self.held_long += 1;
            hash
        } else {
            0
        }
    }

    /// Prefetch the bytes of the long segments of `table`.
    #[inline(always)]
    pub(crate) fn prefetch_long<V: Copy + Default>(&self, table: &EntryTable<V>) {
        for &place in self.long.iter().take(self.held_long) {
            let segment = &self.segments[place as usize % BATCH];
            table.long.prefetch_bytes(segment.range().len(), segment.hash);
        }
    }

    /// Return the entry of the segment of `bytes` with this index. None if it is not in the table.
    #[inline(always)]
    pub(crate) fn entry<'t, V: Copy + Default>(
        &self,
        index: usize,
        table: &'t EntryTable<V>,
        bytes: &[u8],
    ) -> Option<&'t V> {
        let segment = &self.segments[index % BATCH];
        if segment.is_longer() {
            return table.longer_entry(&bytes[segment.range()], segment.hash);
        }
        table.short.get(segment.key, segment.hash)
    }

    /// Return the range of the segment with this index, and its hash.
    #[inline(always)]
    pub(crate) fn segment(&self, index: usize) -> (Range<usize>, u64) {
        let segment = &self.segments[index % BATCH];
        (segment.range(), segment.hash)
    }

    /// Forget all segments.
    pub(crate) fn clear(&mut self) {
        (self.held, self.held_long) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldhash::HashMap;
    use wordpiece_testing::Random;

    #[test]
    fn segments_of_all_lengths_are_found_in_the_order_of_the_text() {
        let (mut random, mut found_again) = (Random::new(8), [0; 3]);
        let text: Vec<u8> = (0..1 << 16).map(|_| *random.choose(b"ab")).collect();
        let (mut table, mut lookups) = (EntryTable::default(), Lookups::default());
        let mut expected: HashMap<&[u8], u64> = HashMap::default();
        for _ in 0..400 {
            let mut segments = Vec::new();
            while !lookups.is_full() {
                let most = *random.choose(&[6, SHORT, MIDDLE_END, 40, LONGEST + 9]);
                let start = random.below(if most > 6 { 8 } else { text.len() / 2 });
                let end = start + most - random.below(most.min(25));
                lookups.push(&table, &text, (start, end));
                segments.push(start..end);
            }
            lookups.prefetch_long(&table);
            assert_eq!(lookups.len(), segments.len());
            for (index, range) in segments.into_iter().enumerate() {
                let segment = &text[range.clone()];
                let (place, hash) = lookups.segment(index);
                assert_eq!(place, range);
                if segment.len() > LONGEST {
                    continue;
                }
                assert_eq!(hash, table.hash(segment));
                let entry = lookups.entry(index, &table, &text).copied();
                assert_eq!(entry, expected.get(segment).copied(), "{range:?}");
                assert_eq!(entry, table.get(segment, hash).copied());
                let kind =
                    [SHORT, MIDDLE_END - 1].iter().filter(|&&end| segment.len() > end).count();
                found_again[kind] += usize::from(entry.is_some());
                let value = random.below(1 << 20) as u64;
                table.insert(segment, hash, value);
                expected.insert(segment, value);
            }
            lookups.clear();
        }
        assert!(found_again.iter().all(|&times| times > 500), "{found_again:?}");
    }
}
