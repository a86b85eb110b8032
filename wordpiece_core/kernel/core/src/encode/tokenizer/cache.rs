//! Caches of encoded segments: their ids, and their ids with spans.

use crate::text::segment_table::{EntryTable, LONGEST, Lookups};
use crate::text::segments::Segment;

/// Memory limit of a cache, in bytes, including the old table while a larger one is filled. A session has
/// one cache of each kind.
pub(super) const CACHE_LIMIT: usize = if cfg!(test) { 1 << 18 } else { 96 << 20 };

/// Memory limit of the caches that a tokenizer keeps between calls, in bytes. Threads of one call share it.
pub(super) const KEPT_LIMIT: usize = if cfg!(test) { 1 << 19 } else { 256 << 20 };

/// The caches of a session, and the segments that are looked up together.
#[derive(Default)]
pub(super) struct Caches {
    /// For each segment the ids of its tokens.
    pub(super) ids: Cache,
    /// For each segment its tokens, each as an id and its range of bytes in the segment.
    pub(super) spans: Cache,
    pub(super) lookups: Lookups,
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

/// A cache of segments. The entry of a segment has its ids, or the place of its items in a list.
pub(super) struct Cache {
    pub(super) segments: EntryTable<Known>,
    list: Vec<u32>,
    /// Memory limit in bytes.
    limit: usize,
}

impl Default for Cache {
    fn default() -> Self {
        Cache { segments: EntryTable::default(), list: Vec::new(), limit: CACHE_LIMIT }
    }
}

impl Cache {
    /// Returns its memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.segments.memory() + self.list.capacity() * size_of::<u32>()
    }

    /// The items that an entry points to.
    #[inline(always)]
    pub(super) fn items(&self, known: Known) -> &[u32] {
        let [start, count, _] = known.ids;
        &self.list[start as usize..start as usize + count as usize]
    }

    /// Insert a segment whose entry has its ids, or nothing.
    pub(super) fn insert(&mut self, segment: &Segment<'_>, hash: u64, known: Known) -> Known {
        self.make_room(segment, 0);
        self.segments.insert(segment.raw.as_bytes(), hash, known);
        known
    }

    /// Insert a segment with its items.
    pub(super) fn insert_list(
        &mut self,
        segment: &Segment<'_>,
        hash: u64,
        items: impl ExactSizeIterator<Item = u32>,
        words: usize,
    ) -> Known {
        self.make_room(segment, items.len());
        let place = [self.list.len() as u32, items.len() as u32, 0];
        self.list.extend(items);
        let known = Known::new(place, LISTED, words);
        self.segments.insert(segment.raw.as_bytes(), hash, known);
        known
    }

    /// Look up a segment that was gathered with others.
    #[inline(always)]
    pub(super) fn find<'t>(
        &self,
        text: &'t str,
        lookups: &Lookups,
        index: usize,
    ) -> (Segment<'t>, Found) {
        let known = lookups.entry(index, &self.segments, text.as_bytes());
        Cache::found(text, lookups, index, known.copied())
    }

    /// Return a gathered segment that was looked up, with its entry or its hash.
    #[inline(always)]
    pub(super) fn found<'t>(
        text: &'t str,
        lookups: &Lookups,
        index: usize,
        known: Option<Known>,
    ) -> (Segment<'t>, Found) {
        let (range, hash) = lookups.segment(index);
        let segment = Segment { raw: &text[range.clone()], start: range.start, added: false };
        let is_cached = range.len() <= LONGEST;
        (segment, if is_cached { known.ok_or(hash) } else { Ok(UNCACHED) })
    }

    /// Look up a segment that is not in the text.
    pub(super) fn find_alone(&self, segment: &str) -> Found {
        if segment.len() > LONGEST {
            return Ok(UNCACHED);
        }
        let hash = self.segments.hash(segment.as_bytes());
        self.segments.get(segment.as_bytes(), hash).copied().ok_or(hash)
    }

    /// Empties the cache if it might exceed its limit when one more segment is inserted with `items` items.
    /// To decide which segments to keep would cost more than to encode them again.
    fn make_room(&mut self, segment: &Segment<'_>, items: usize) {
        let (needed, capacity) = (self.list.len() + items, self.list.capacity());
        let larger = if needed > capacity { needed.max(2 * capacity) } else { 0 };
        let listed = (capacity + larger) * size_of::<u32>();
        if self.segments.memory_to_insert(segment.raw.len()) + listed > self.limit {
            self.segments.clear();
            self.list = Vec::new();
        }
        self.list.reserve(items);
    }
}

/// The entry of a segment; if it is not in the cache, its hash.
pub(super) type Found = Result<Known, u64>;

/// The entry of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(align(16))]
pub(super) struct Known {
    /// Up to [`HELD`] ids; or the index of the first item in the list and the number of items.
    pub(super) ids: [u32; HELD],
    /// The number of words in the upper 24 bits, and in the lower 8 the number of ids, [`LISTED`], or the kind of
    /// [`UNCACHED`].
    kind_and_words: u32,
}

/// The most ids that an entry has itself.
pub(super) const HELD: usize = 3;
/// The kind of an entry whose items are in the list of the cache.
pub(super) const LISTED: usize = 0xFD;
/// The entry of a segment that is encoded each time.
pub(super) const UNCACHED: Known = Known { ids: [0; HELD], kind_and_words: 0xFE };

impl Known {
    fn new(ids: [u32; HELD], kind: usize, words: usize) -> Self {
        Known { ids, kind_and_words: (words << 8 | kind) as u32 }
    }

    /// Return the entry of a segment with these ids and this number of words that have tokens. None if they are too
    /// many.
    pub(super) fn of_ids(ids: impl ExactSizeIterator<Item = u32>, words: usize) -> Option<Self> {
        let (count, mut held) = (ids.len(), [0; HELD]);
        if count > HELD {
            return None;
        }
        held.iter_mut().zip(ids).for_each(|(held, id)| *held = id);
        Some(Known::new(held, count, words))
    }

    /// Return the ids of an entry, followed by arbitrary numbers.
    #[inline(always)]
    pub(super) fn padded_ids(self) -> [u32; HELD + 1] {
        let [first, second, third] = self.ids;
        [first, second, third, self.kind_and_words]
    }

    /// The number of ids that the entry has, or its kind.
    #[inline(always)]
    pub(super) fn kind(self) -> usize {
        (self.kind_and_words & 0xFF) as usize
    }

    /// Return the number of words that have tokens.
    #[inline(always)]
    pub(super) fn words(self) -> usize {
        (self.kind_and_words >> 8) as usize
    }
}
