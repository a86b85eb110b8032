//! The caches of a session: of ids, of ids with what they stand for, and of ids that depend on what is
//! before them.

use super::Encoder;
use super::cut::Scratch;
use super::encoding::Encoding;
use super::spans::{push_with_spans, spans};
use crate::encode::trie::NONE;
use crate::encode::unigram::{Rounding, Unigram};
use crate::memory;
use crate::text::segment_map::SegmentMap;
use crate::text::segments::Segment;

/// The most memory of a cache, in bytes, also while a table of it is copied to a larger one. A session
/// has one cache of each kind.
pub(super) const CACHE_LIMIT: usize = if cfg!(test) { 1 << 18 } else { 96 << 20 };

/// The longest segment that is cached, in bytes.
pub(super) const CACHED: usize = 1024;

/// Stands for the number of tokens of a segment that is cut anew each time.
const ANEW: u16 = u16::MAX;

/// The caches of a session.
#[derive(Default)]
pub(super) struct Caches {
    pub(super) ids: IdCache,
    pub(super) spans: SpanCache,
    pub(super) rounded: RoundedCache,
}

/// A cache of segments: what is known of each, and a list of what that points into.
pub(super) struct Cache<Known, Item> {
    segments: SegmentMap<Known>,
    list: Vec<Item>,
}

impl<Known: Copy + Default, Item> Default for Cache<Known, Item> {
    fn default() -> Self {
        Cache { segments: SegmentMap::default(), list: Vec::new() }
    }
}

impl<Known: Copy + Default, Item> Cache<Known, Item> {
    /// The memory that it takes, in bytes.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.segments.memory() + self.list.capacity() * size_of::<Item>()
    }

    /// Empties the cache if it might exceed its limit when one more segment is put in, with so many
    /// items. To decide what to keep would cost more than to find it anew.
    fn make_room(&mut self, segment: &Segment<'_>, items: usize) {
        let Cache { segments, list } = self;
        let (needed, capacity) = (list.len() + items, list.capacity());
        let larger = if needed > capacity { needed.max(2 * capacity) } else { 0 };
        let listed = (capacity + larger) * size_of::<Item>();
        if segments.memory_to_insert(segment.raw.len()) + listed > CACHE_LIMIT {
            *self = Self::default();
        }
        memory::reserve(&mut self.list, items);
    }

    /// Puts a segment in that is not there.
    fn insert(&mut self, segment: &Segment<'_>, known: Known) -> Known {
        *self.segments.entry(segment, || known)
    }
}

/// A cache of the ids of segments.
type IdCache = Cache<CachedIds, u32>;

/// The ids of a segment: up to three are held here, more in the list of the cache.
#[derive(Clone, Copy, Default)]
pub(super) struct CachedIds {
    /// The ids; or, if they are more than three, first the index in the list where they begin.
    ids: [u32; 3],
    count: u16,
    /// How many words have tokens.
    words: u16,
}

impl CachedIds {
    /// Appends the ids, if they are in the cache. `list`: that of the cache.
    #[inline(always)]
    fn push(&self, list: &[u32], encoding: &mut Encoding) -> bool {
        let (at, count) = (encoding.count, self.count as usize);
        if self.count == ANEW {
            return false;
        }
        encoding.reserve(count);
        if count <= 3 {
            // All three are copied, even if fewer are wanted: a copy of variable length would cost more.
            encoding.ids[at..at + 3].copy_from_slice(&self.ids);
        } else {
            let start = self.ids[0] as usize;
            encoding.ids[at..at + count].copy_from_slice(&list[start..start + count]);
        }
        encoding.count += count;
        encoding.words += self.words as usize;
        true
    }
}

impl IdCache {
    #[inline]
    pub(super) fn push(
        &mut self,
        encoder: &Encoder,
        segment: Segment<'_>,
        scratch: &mut Scratch,
        encoding: &mut Encoding,
    ) {
        if let Some(c) = segment.alone {
            let id = encoder.alone_id(c);
            if id != NONE {
                encoding.words += 1;
                return encoding.push(id);
            }
        }
        if segment.raw.len() > CACHED {
            encoder.cut(segment.raw, scratch);
            return encoding.push_new(scratch);
        }
        // What is known is not copied out of its slot: that would cost as much as the rest of this.
        let is_pushed = match self.segments.get(&segment) {
            Some(known) => known.push(&self.list, encoding),
            None => self.first_seen(encoder, &segment, scratch).push(&self.list, encoding),
        };
        if !is_pushed {
            encoder.cut(segment.raw, scratch);
            encoding.push_new(scratch);
        }
    }

    #[cold]
    fn first_seen(
        &mut self,
        encoder: &Encoder,
        segment: &Segment<'_>,
        scratch: &mut Scratch,
    ) -> CachedIds {
        encoder.cut(segment.raw, scratch);
        let tokens = &scratch.tokens;
        let count = u16::try_from(tokens.len()).unwrap_or(ANEW);
        let words = scratch.words_with_tokens() as u16; // no more than tokens
        let mut found = CachedIds { count, words, ..CachedIds::default() };
        let listed = if (4..ANEW).contains(&count) { &tokens[..] } else { &[] };
        self.make_room(segment, listed.len());
        if tokens.len() <= 3 {
            found.ids.iter_mut().zip(tokens).for_each(|(id, token)| *id = token.id);
        } else {
            found.ids[0] = self.list.len() as u32;
            self.list.extend(listed.iter().map(|token| token.id));
        }
        self.insert(segment, found)
    }
}

/// A cache of the ids of segments and of the characters that each id stands for, as their indices in
/// the segment.
type SpanCache = Cache<CachedRange, (u32, [u32; 2])>;

/// Where the tokens of a segment are in the list of a cache.
#[derive(Clone, Copy, Default)]
pub(super) struct CachedRange {
    start: u32,
    count: u16,
    /// How many words the segment has: one, or none.
    words: u16,
}

impl SpanCache {
    /// `first`: how many characters of the text are before the segment.
    #[inline]
    pub(super) fn push(
        &mut self,
        encoder: &Encoder,
        segment: Segment<'_>,
        first: u32,
        scratch: &mut Scratch,
        encoding: &mut Encoding,
    ) {
        // A space that is not in the text has another place than one that is.
        if segment.raw.len() <= CACHED && !segment.added {
            let CachedRange { start, count, words } = match self.segments.get(&segment) {
                Some(known) => *known,
                None => self.first_seen(encoder, &segment, scratch),
            };
            if count != ANEW {
                let tokens = &self.list[start as usize..][..count as usize];
                encoding.push_cached(tokens, first);
                encoding.words += usize::from(count > 0);
                encoding.next_word += words as u32;
                return;
            }
        }
        encoder.cut(segment.raw, scratch);
        push_with_spans(encoder, &segment, first, scratch, encoding);
    }

    #[cold]
    fn first_seen(
        &mut self,
        encoder: &Encoder,
        segment: &Segment<'_>,
        scratch: &mut Scratch,
    ) -> CachedRange {
        encoder.cut(segment.raw, scratch);
        let count = u16::try_from(scratch.tokens.len()).ok().filter(|&count| count < ANEW);
        let (Some(count), [] | [_]) = (count, &scratch.ends[..]) else {
            self.make_room(segment, 0);
            return self.insert(segment, CachedRange { start: 0, count: ANEW, words: 0 });
        };
        self.make_room(segment, count as usize);
        let (start, list) = (self.list.len() as u32, &mut self.list);
        spans(encoder, segment, scratch, |_, token, _| list.push(token));
        self.insert(segment, CachedRange { start, count, words: scratch.ends.len() as u16 })
    }
}

/// A cache of the ids of segments for a unigram model whose sums are rounded.
type RoundedCache = Cache<CachedRounded, u32>;

/// The ids of a segment, which are right behind some sums.
#[derive(Clone, Copy, Default)]
pub(super) struct CachedRounded {
    rounding: Rounding,
    /// Where, in the list of the cache, the scores of its pieces are, as bits, and then the ids.
    start: u32,
    pieces: u16,
    count: u16,
}

impl CachedRounded {
    /// Appends the ids, if they are these behind a sum. `list`: that of the cache.
    #[inline(always)]
    fn push(&self, sum: &mut f32, list: &[u32], encoding: &mut Encoding) -> bool {
        if !self.rounding.allows(*sum) {
            return false;
        }
        let (scores, ids) = list[self.start as usize..].split_at(self.pieces as usize);
        *sum = scores.iter().fold(*sum, |sum, &score| sum + f32::from_bits(score));
        let (at, count) = (encoding.count, self.count as usize);
        encoding.reserve(count);
        encoding.ids[at..at + count].copy_from_slice(&ids[..count]);
        encoding.count += count;
        encoding.words += usize::from(count > 0);
        true
    }
}

impl RoundedCache {
    /// `sum`: of the scores of what is before the segment.
    #[inline]
    pub(super) fn push(
        &mut self,
        encoder: &Encoder,
        unigram: &Unigram,
        segment: Segment<'_>,
        sum: &mut f32,
        scratch: &mut Scratch,
        encoding: &mut Encoding,
    ) {
        if segment.raw.len() <= CACHED {
            let is_pushed = match self.segments.get(&segment) {
                Some(known) => known.push(sum, &self.list, encoding),
                None => {
                    let known = self.first_seen(encoder, unigram, &segment, scratch);
                    known.push(sum, &self.list, encoding)
                }
            };
            if is_pushed {
                return;
            }
        }
        encoder.cut_by(segment.raw, scratch, |word, scratch, tokens| {
            unigram.rounded_tokens(word, sum, &mut scratch.unigram, tokens);
        });
        encoding.push_new(scratch);
    }

    /// What is right behind no sum, unless it is one word with few tokens.
    #[cold]
    fn first_seen(
        &mut self,
        encoder: &Encoder,
        unigram: &Unigram,
        segment: &Segment<'_>,
        scratch: &mut Scratch,
    ) -> CachedRounded {
        let (mut rounding, mut added) = (Rounding::default(), Vec::new());
        encoder.cut_by(segment.raw, scratch, |word, scratch, tokens| {
            let scratch = &mut scratch.unigram;
            rounding = unigram.tokens_with_rounding(word, scratch, tokens, &mut added);
        });
        let counts = [added.len(), scratch.tokens.len()].map(u16::try_from);
        let ([Ok(pieces), Ok(count)], [] | [_]) = (counts, &scratch.ends[..]) else {
            self.make_room(segment, 0);
            return self.insert(segment, CachedRounded::default());
        };
        self.make_room(segment, pieces as usize + count as usize);
        let start = self.list.len() as u32;
        self.list.extend(added.iter().map(|score| score.to_bits()));
        self.list.extend(scratch.tokens.iter().map(|token| token.id));
        self.insert(segment, CachedRounded { rounding, start, pieces, count })
    }
}
