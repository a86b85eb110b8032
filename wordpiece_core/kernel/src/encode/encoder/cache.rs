//! The caches of a session: of ids, of ids with what they stand for, and of ids that depend on what is
//! before them.

use super::Encoder;
use super::cut::Scratch;
use super::encoding::Encoding;
use super::spans::{push_with_spans, spans};
use crate::encode::trie::NONE;
use crate::encode::unigram::{Rounding, Unigram};
use crate::text::segment_map::SegmentMap;
use crate::text::segments::Segment;

/// The memory above which a cache is emptied, in bytes. A session has one cache of ids and one of
/// spans.
pub(super) const CACHE_LIMIT: usize = if cfg!(test) { 1 << 18 } else { 64 << 20 };

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

impl Caches {
    /// Empties a cache that takes more memory than its limit.
    #[inline]
    pub(super) fn bound(&mut self) {
        self.ids.bound();
        self.spans.bound();
        self.rounded.bound();
    }
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
    #[inline]
    pub(super) fn memory(&self) -> usize {
        self.segments.memory() + size_of_val(&self.list[..])
    }

    #[inline]
    fn bound(&mut self) {
        if self.memory() > CACHE_LIMIT {
            *self = Self::default();
        }
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
        let Cache { segments, list } = self;
        let new = || first_seen(encoder, segment.raw, list, scratch);
        let CachedIds { ids, count, words } = *segments.entry(&segment, new);
        let (at, count) = (encoding.count, count as usize);
        encoding.reserve(count);
        if count <= 3 {
            // All three are copied, even if fewer are wanted: a copy of variable length would cost more.
            encoding.ids[at..at + 3].copy_from_slice(&ids);
        } else if count < ANEW as usize {
            let start = ids[0] as usize;
            encoding.ids[at..at + count].copy_from_slice(&list[start..start + count]);
        } else {
            encoder.cut(segment.raw, scratch);
            return encoding.push_new(scratch);
        }
        encoding.count += count;
        encoding.words += words as usize;
    }
}

#[cold]
fn first_seen(
    encoder: &Encoder,
    raw: &str,
    list: &mut Vec<u32>,
    scratch: &mut Scratch,
) -> CachedIds {
    encoder.cut(raw, scratch);
    let tokens = &scratch.tokens;
    let count = u16::try_from(tokens.len()).unwrap_or(ANEW);
    let words = scratch.words_with_tokens() as u16; // no more than tokens
    let mut found = CachedIds { count, words, ..CachedIds::default() };
    if tokens.len() <= 3 {
        found.ids.iter_mut().zip(tokens).for_each(|(id, token)| *id = token.id);
    } else if count < ANEW {
        found.ids[0] = list.len() as u32;
        list.extend(tokens.iter().map(|token| token.id));
    }
    found
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
            let Cache { segments, list } = self;
            let CachedRange { start, count, words } = *segments.entry(&segment, || {
                encoder.cut(segment.raw, scratch);
                let (start, count) = (list.len() as u32, u16::try_from(scratch.tokens.len()));
                let (Ok(count), [] | [_]) = (count, &scratch.ends[..]) else {
                    return CachedRange { start, count: ANEW, words: 0 };
                };
                spans(encoder, &segment, scratch, |_, token, _| list.push(token));
                CachedRange { start, count, words: scratch.ends.len() as u16 }
            });
            if count != ANEW {
                let tokens = &list[start as usize..][..count as usize];
                encoding.push_cached(tokens, first);
                encoding.words += usize::from(count > 0);
                encoding.next_word += words as u32;
                return;
            }
        }
        encoder.cut(segment.raw, scratch);
        push_with_spans(encoder, &segment, first, scratch, encoding);
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
            let Cache { segments, list } = self;
            let new = || first_rounded(encoder, unigram, segment.raw, list, scratch);
            let CachedRounded { rounding, start, pieces, count } = *segments.entry(&segment, new);
            if rounding.allows(*sum) {
                let start = start as usize;
                let (scores, ids) = list[start..].split_at(pieces as usize);
                *sum = scores.iter().fold(*sum, |sum, &score| sum + f32::from_bits(score));
                let (at, count) = (encoding.count, count as usize);
                encoding.reserve(count);
                encoding.ids[at..at + count].copy_from_slice(&ids[..count]);
                encoding.count += count;
                encoding.words += usize::from(count > 0);
                return;
            }
        }
        encoder.cut_by(segment.raw, scratch, |word, scratch, tokens| {
            unigram.rounded_tokens(word, sum, &mut scratch.unigram, tokens);
        });
        encoding.push_new(scratch);
    }
}

/// What is right behind no sum, unless it is one word with few tokens.
#[cold]
fn first_rounded(
    encoder: &Encoder,
    unigram: &Unigram,
    raw: &str,
    list: &mut Vec<u32>,
    scratch: &mut Scratch,
) -> CachedRounded {
    let (mut rounding, mut added) = (Rounding::default(), Vec::new());
    encoder.cut_by(raw, scratch, |word, scratch, tokens| {
        let scratch = &mut scratch.unigram;
        rounding = unigram.tokens_with_rounding(word, scratch, tokens, &mut added);
    });
    let counts = [added.len(), scratch.tokens.len()].map(u16::try_from);
    let ([Ok(pieces), Ok(count)], [] | [_]) = (counts, &scratch.ends[..]) else {
        return CachedRounded::default();
    };
    let start = list.len() as u32;
    list.extend(added.iter().map(|score| score.to_bits()));
    list.extend(scratch.tokens.iter().map(|token| token.id));
    CachedRounded { rounding, start, pieces, count }
}
