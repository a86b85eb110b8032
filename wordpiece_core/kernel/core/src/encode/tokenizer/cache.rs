//! Caches of encoded segments: their ids, and their ids with spans.

use crate::text::segment_table::{Batch, MISSING, SegmentTable};
use crate::text::segments::Segment;

/// Memory limit of a cache, in bytes, including the old table while a larger one is filled. A session has
/// one cache of each kind.
pub(super) const CACHE_LIMIT: usize = if cfg!(test) { 1 << 18 } else { 96 << 20 };

/// Memory limit of the caches that a tokenizer keeps between calls, in bytes. Threads of one call share it.
pub(super) const KEPT_LIMIT: usize = if cfg!(test) { 1 << 19 } else { 256 << 20 };

/// The longest segment that is cached, in bytes.
pub(super) const CACHED: usize = 1024;

/// The caches of a session, and the batch that segments are looked up in.
#[derive(Default)]
pub(super) struct Caches {
    /// For each segment the ids of its tokens.
    pub(super) ids: Cache,
    /// For each segment its tokens, each as an id and its range of bytes in the segment.
    pub(super) spans: Cache,
    pub(super) batch: Batch<true>,
}

impl Caches {
    /// Returns the memory of both caches, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.ids.memory() + self.spans.memory()
    }

    /// Set the memory limit of each cache for a call with `threads` threads.
    pub(super) fn share(&mut self, threads: usize) {
        let limit = CACHE_LIMIT.min(KEPT_LIMIT / threads.max(1));
        (self.ids.limit, self.spans.limit) = (limit, limit);
    }
}

/// A cache of segments. The entry of a segment holds its ids, or the place of its items in a list.
pub(super) struct Cache {
    segments: SegmentTable,
    list: Vec<u32>,
    /// Memory limit in bytes.
    limit: usize,
    /// True if the cache was emptied after a batch was looked up, so that the entries found are not valid.
    emptied: bool,
}

impl Default for Cache {
    fn default() -> Self {
        let segments = SegmentTable::default();
        Cache { segments, list: Vec::new(), limit: CACHE_LIMIT, emptied: false }
    }
}

impl Cache {
    /// Returns its memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.segments.memory() + self.list.capacity() * size_of::<u32>()
    }

    /// Looks up the segments of a batch.
    #[inline(always)]
    pub(super) fn find(&mut self, text: &str, batch: &mut Batch<true>) {
        self.emptied = false;
        self.segments.find(text, batch);
    }

    /// Returns the entry of a segment; None if it is not in the cache. `found`: its value when its batch was
    /// looked up.
    #[inline(always)]
    pub(super) fn get(&self, segment: &Segment<'_>, found: u64) -> Option<Known> {
        if found != MISSING && !self.emptied {
            return Some(Known(found));
        }
        if segment.raw.len() > CACHED {
            return Some(ANEW);
        }
        self.segments.get(segment.raw.as_bytes()).map(Known)
    }

    /// The items that an entry points to.
    #[inline(always)]
    pub(super) fn items(&self, known: Known) -> &[u32] {
        let start = (known.0 >> 16) as u32 as usize;
        &self.list[start..start + (known.0 >> 48) as usize]
    }

    /// Insert a segment whose entry holds its ids, or nothing.
    pub(super) fn insert(&mut self, segment: &Segment<'_>, known: Known) -> Known {
        self.make_room(segment, 0);
        *self.segments.entry(segment.raw.as_bytes()) = known.0;
        known
    }

    /// Insert a segment with its items; without them, if they are too many for an entry.
    pub(super) fn insert_list(
        &mut self,
        segment: &Segment<'_>,
        items: impl ExactSizeIterator<Item = u32>,
        words: usize,
    ) -> Known {
        let count = items.len();
        let (Ok(count), Ok(words)) = (u16::try_from(count), u8::try_from(words)) else {
            return self.insert(segment, ANEW);
        };
        self.make_room(segment, count.into());
        let bits = (count as u64) << 32 | self.list.len() as u64;
        self.list.extend(items);
        let known = Known(bits << 16 | (words as u64) << 8 | LISTED as u64);
        *self.segments.entry(segment.raw.as_bytes()) = known.0;
        known
    }

    /// Empties the cache if it might exceed its limit when one more segment is inserted with `items` items.
    /// To decide which segments to keep would cost more than to encode them again.
    fn make_room(&mut self, segment: &Segment<'_>, items: usize) {
        let (needed, capacity) = (self.list.len() + items, self.list.capacity());
        let larger = if needed > capacity { needed.max(2 * capacity) } else { 0 };
        let listed = (capacity + larger) * size_of::<u32>();
        if self.segments.memory_to_insert(segment.raw.len()) + listed > self.limit {
            *self = Cache { emptied: true, limit: self.limit, ..Self::default() };
        }
        self.list.reserve(items);
    }
}

/// The entry of a segment, in 64 bits:
///
/// | bits 0 to 7 | 8 to 15 | 16 to 47 | 48 to 63 |
/// |---|---|---|---|
/// | number of ids, up to [`HELD`] | words and ids, see [`HeldIds`] | | |
/// | [`LISTED`] | number of words | index of the first item in the list | number of items |
/// | [`ANEW`] | | | |
#[derive(Clone, Copy)]
pub(super) struct Known(pub(super) u64);

/// The most ids that an entry holds itself.
pub(super) const HELD: usize = 3;
/// Marks an entry whose items are in the list of the cache.
pub(super) const LISTED: u8 = 0xFD;
/// The entry of a segment that is encoded each time.
pub(super) const ANEW: Known = Known(0xFE);

impl Known {
    /// The number of ids that the entry holds, or the kind of entry.
    #[inline(always)]
    pub(super) fn kind(self) -> u8 {
        self.0 as u8
    }

    #[inline(always)]
    pub(super) fn words(self) -> usize {
        self.0 as usize >> 8 & 0xFF
    }
}

/// The layout of [`Known`]: after the number of ids, the number of words if segments may have several, and the ids,
/// each in the same number of bits.
#[derive(Clone, Copy)]
pub(super) struct HeldIds {
    bits: u32,
    /// The offset of the first id, in bits: 16 with a number of words, else 8.
    first: u32,
}

impl HeldIds {
    /// Return the layout for a vocabulary of `ids` tokens. `several_words`: true if a segment may have several words.
    pub(super) fn new(ids: usize, several_words: bool) -> Self {
        let first = if several_words { 16 } else { 8 };
        let bits = (64 - first) / HELD as u32;
        let is_enough = ids <= 1 << bits;
        HeldIds { bits: if is_enough { bits } else { (64 - first) / 2 }, first }
    }

    /// Return the entry of a segment with these ids and this number of words that have tokens. None if they are too
    /// many, or one is too large.
    pub(super) fn pack(
        self,
        ids: impl DoubleEndedIterator<Item = u32> + ExactSizeIterator,
        words: usize,
    ) -> Option<Known> {
        let (count, words) = (ids.len(), u8::try_from(words).ok()?);
        if count > (64 - self.first) as usize / self.bits as usize {
            return None;
        }
        let mut bits = 0;
        for id in ids.rev() {
            if u64::from(id) >> self.bits != 0 {
                return None;
            }
            bits = bits << self.bits | id as u64;
        }
        let words = if self.first == 16 { (words as u64) << 8 } else { 0 };
        Some(Known(bits << self.first | words | count as u64))
    }

    /// Return the ids of an entry, followed by arbitrary numbers.
    #[inline(always)]
    pub(super) fn unpack(self, known: Known) -> [u32; HELD] {
        let mask = (1 << self.bits) - 1;
        [0, 1, 2].map(|index| (known.0.wrapping_shr(self.first + index * self.bits) & mask) as u32)
    }

    /// Return the number of words of an entry that have tokens.
    #[inline(always)]
    pub(super) fn words(self, known: Known) -> usize {
        if self.first == 16 { known.words() } else { usize::from(known.kind() > 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_hold_up_to_three_ids() {
        for several_words in [false, true] {
            for ids in [1 << 16, 1 << 18, 1 << 20, 1 << 24] {
                let layout = HeldIds::new(ids, several_words);
                let most =
                    if ids as u64 <= 1 << if several_words { 16 } else { 18 } { 3 } else { 2 };
                for count in 0..=4 {
                    let all = [ids as u32 - 1, 7, ids as u32 / 2, 0];
                    let words = usize::from(count > 0);
                    let known = layout.pack(all[..count].iter().copied(), words);
                    assert_eq!(known.is_some(), count <= most, "{ids} {count}");
                    let Some(known) = known else { continue };
                    assert_eq!(known.kind() as usize, count);
                    assert_eq!(layout.unpack(known)[..count], all[..count]);
                    assert_eq!(layout.words(known), words);
                }
            }
        }
        let layout = HeldIds::new(9, true);
        assert_eq!(layout.pack([1, 2].into_iter(), 2).map(|known| layout.words(known)), Some(2));
        assert!(layout.pack([1 << 16].into_iter(), 1).is_none());
    }
}
