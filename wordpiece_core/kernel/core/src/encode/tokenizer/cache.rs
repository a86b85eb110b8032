//! The caches of a session: of ids, of ids with what they stand for, and of ids that depend on what is
//! before them.

use super::Tokenizer;
use super::encoding::Encoding;
use super::spans::{CharPosition, push_with_spans, spans};
use super::tokenize::{Scratch, tokenize_anew};
use crate::encode::bpe::Superwords;
use crate::encode::unigram::Unigram;
use crate::text::segment_table::{Batch, MISSING, SegmentTable};
use crate::text::segments::{BlockSegments, Segment, SegmentSink};

/// Memory limit of a cache, in bytes, including the old table while a larger one is filled. A session has
/// one cache of each kind.
pub(super) const CACHE_LIMIT: usize = if cfg!(test) { 1 << 18 } else { 96 << 20 };

/// Memory limit of the caches that a tokenizer keeps between calls, in bytes. Threads of one call share it.
pub(super) const KEPT_LIMIT: usize = if cfg!(test) { 1 << 19 } else { 256 << 20 };

/// The longest segment that is cached, in bytes.
pub(super) const CACHED: usize = 1024;

/// The id of a token, and the characters of its segment that it stands for.
pub(super) type SpannedToken = (u32, [u32; 2]);

/// The score of a piece, in 32 bits, and the id of a token.
type ScoredToken = (f32, u32);

/// The caches of a session, and what the segments of all are gathered in.
#[derive(Default)]
pub(super) struct Caches {
    pub(super) ids: Cache<u32>,
    pub(super) spans: Cache<SpannedToken>,
    pub(super) rounded: Cache<ScoredToken>,
    pub(super) batch: Batch<true>,
}

impl Caches {
    /// Returns the memory of all caches, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.ids.memory() + self.spans.memory() + self.rounded.memory()
    }

    /// Set the memory limit of each cache for a call with `threads` threads.
    pub(super) fn share(&mut self, threads: usize) {
        let limit = CACHE_LIMIT.min(KEPT_LIMIT / threads.max(1));
        (self.ids.limit, self.spans.limit, self.rounded.limit) = (limit, limit, limit);
    }
}

/// A cache of segments: what is known of each, and a list that this points into.
pub(super) struct Cache<Item> {
    segments: SegmentTable,
    list: Vec<Item>,
    /// Memory limit in bytes.
    limit: usize,
    /// True if it was emptied after a batch was looked up, so that the values found then are not valid.
    emptied: bool,
}

impl<Item> Default for Cache<Item> {
    fn default() -> Self {
        let segments = SegmentTable::default();
        Cache { segments, list: Vec::new(), limit: CACHE_LIMIT, emptied: false }
    }
}

impl<Item> Cache<Item> {
    /// Returns its memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.segments.memory() + self.list.capacity() * size_of::<Item>()
    }

    /// Empties the cache if it might exceed its limit when one more segment is put in, with so many
    /// items. To decide what to keep would cost more than to find it anew. Returns where the items go.
    fn make_room(&mut self, segment: &Segment<'_>, items: usize) -> u32 {
        let (needed, capacity) = (self.list.len() + items, self.list.capacity());
        let larger = if needed > capacity { needed.max(2 * capacity) } else { 0 };
        let listed = (capacity + larger) * size_of::<Item>();
        if self.segments.memory_to_insert(segment.raw.len()) + listed > self.limit {
            *self = Cache { emptied: true, limit: self.limit, ..Self::default() };
        }
        self.list.reserve(items);
        self.list.len() as u32
    }

    /// Looks up the segments of a batch.
    #[inline(always)]
    pub(super) fn find(&mut self, batch: &mut Batch<true>) {
        self.emptied = false;
        self.segments.find(batch);
    }

    /// What is known of a segment. `found`: its value when its batch was looked up.
    #[inline(always)]
    fn known(&self, segment: &Segment<'_>, found: u64) -> Option<Known> {
        if found != MISSING && !self.emptied {
            return Some(Known(found));
        }
        if segment.raw.len() > CACHED {
            return Some(ANEW);
        }
        self.segments.get(segment.raw.as_bytes()).map(Known)
    }

    /// Puts a segment in that is not there.
    fn insert(&mut self, segment: &Segment<'_>, known: Known) -> Known {
        *self.segments.entry(segment.raw.as_bytes()) = known.0;
        known
    }
}

impl Cache<SpannedToken> {
    /// Calls `take` with the tokens of a segment that is one word. `found`: as for [`Cache::known`].
    pub(super) fn with_tokens(
        &mut self,
        tokenizer: &Tokenizer,
        scratch: &mut Scratch,
        segment: &Segment<'_>,
        found: u64,
        take: impl FnOnce(&[SpannedToken]),
    ) {
        let known = self.known(segment, found);
        let known = known.unwrap_or_else(|| self.first_seen(tokenizer, scratch, segment));
        if known.kind() == LISTED {
            return take(known.of(&self.list));
        }
        tokenizer.tokenize(segment, scratch);
        let mut tokens = Vec::with_capacity(scratch.tokens.len());
        spans(tokenizer, scratch, |_, token, _| tokens.push(token));
        take(&tokens);
    }

    #[cold]
    fn first_seen(
        &mut self,
        tokenizer: &Tokenizer,
        scratch: &mut Scratch,
        segment: &Segment<'_>,
    ) -> Known {
        tokenizer.tokenize(segment, scratch);
        let tokens = scratch.tokens.len();
        let start = self.make_room(segment, tokens);
        let known = match scratch.ends.len() {
            words @ (0 | 1) => Known::listed(start, tokens, words),
            _ => None,
        };
        if known.is_some() {
            let list = &mut self.list;
            spans(tokenizer, scratch, |_, token, _| list.push(token));
        }
        self.insert(segment, known.unwrap_or(ANEW))
    }
}

/// What a cache knows of a segment, in 64 bits:
///
/// | bits 0 to 7 | 8 to 15 | 16 to 47 | 48 to 63 |
/// |---|---|---|---|
/// | how many ids, up to [`HELD`] | words | the ids, see [`HeldIds`] | |
/// | [`LISTED`] | words | where its items are in the list | how many |
/// | that of [`ANEW`] | | | |
#[derive(Clone, Copy)]
struct Known(u64);

/// Up to so many ids are held by [`Known`] itself, if they are small enough.
const HELD: usize = 3;
/// In place of their number: they are in the list of the cache.
const LISTED: u8 = 0xFD;
/// Nothing is known: the segment is tokenized anew each time.
const ANEW: Known = Known(0xFE);

impl Known {
    /// Where items are in a list, how many, and the number of words. None if these are too many.
    fn listed(start: u32, items: usize, words: usize) -> Option<Self> {
        let (items, words) = (u16::try_from(items).ok()?, u8::try_from(words).ok()?);
        let bits = (items as u64) << 32 | start as u64;
        Some(Known(bits << 16 | (words as u64) << 8 | LISTED as u64))
    }

    #[inline(always)]
    fn kind(self) -> u8 {
        self.0 as u8
    }

    #[inline(always)]
    fn words(self) -> usize {
        self.0 as usize >> 8 & 0xFF
    }

    /// The items of a list that this stands for.
    #[inline(always)]
    fn of<Item>(self, list: &[Item]) -> &[Item] {
        let start = (self.0 >> 16) as u32 as usize;
        &list[start..start + (self.0 >> 48) as usize]
    }
}

/// How [`Known`] holds ids: in 48 bits, so many bits each.
#[derive(Clone, Copy)]
pub(super) struct HeldIds {
    bits: u32,
}

impl HeldIds {
    /// The way for so many ids.
    pub(super) fn below(ids: usize) -> Self {
        HeldIds { bits: if ids <= 1 << 16 { 16 } else { 24 } }
    }

    /// The ids of a segment and the number of words that have tokens. None if they are too many, or
    /// one is too large.
    fn pack(
        self,
        ids: impl DoubleEndedIterator<Item = u32> + ExactSizeIterator,
        words: usize,
    ) -> Option<Known> {
        let (count, words) = (ids.len() as u64, u8::try_from(words).ok()?);
        if count > 48 / self.bits as u64 {
            return None;
        }
        let mut bits = 0;
        for id in ids.rev() {
            if id >> self.bits != 0 {
                return None;
            }
            bits = bits << self.bits | id as u64;
        }
        Some(Known(bits << 16 | (words as u64) << 8 | count))
    }

    /// The ids, and what is no id behind them.
    #[inline(always)]
    fn unpack(self, known: Known) -> [u32; HELD] {
        let mask = (1 << self.bits) - 1;
        [16, 16 + self.bits, 16 + 2 * self.bits]
            .map(|from| known.0.wrapping_shr(from) as u32 & mask)
    }
}

/// What takes the segments of a section, with what a cache knows of each.
pub(super) trait TakeSegments {
    /// Looks up the segments of a batch in the cache.
    fn find(&mut self, batch: &mut Batch<true>);

    /// Takes the next segment. `found`: its value in the table of the cache, or [`MISSING`].
    fn take(&mut self, segment: Segment<'_>, found: u64);

    /// For each gathered word, true if a piece begins with it. None if pieces are not divided into words.
    #[inline(always)]
    fn begins(&mut self) -> Option<&mut Vec<bool>> {
        None
    }

    /// Ends the last piece.
    #[inline(always)]
    fn finish(&mut self) {}

    /// Takes the segments of a batch of a text, which have been looked up.
    #[inline(always)]
    fn take_all(&mut self, text: &str, batch: &Batch<true>) {
        for (start, end, found) in batch.values() {
            self.take(Segment { raw: &text[start..end], start, added: false }, found);
        }
    }
}

/// Gathers the segments of a section, looks them up together, and passes them on in order.
pub(super) struct Gathering<'a, T: TakeSegments> {
    text: &'a str,
    batch: &'a mut Batch<true>,
    taker: T,
}

impl<'a, T: TakeSegments> Gathering<'a, T> {
    pub(super) fn new(text: &'a str, batch: &'a mut Batch<true>, taker: T) -> Self {
        batch.clear();
        Gathering { text, batch, taker }
    }

    /// Passes on what is gathered, after which nothing follows.
    pub(super) fn finish(&mut self) {
        self.flush();
        self.taker.finish();
    }

    /// Passes on what is gathered.
    #[inline(never)]
    fn flush(&mut self) {
        let Gathering { text, batch, taker } = self;
        taker.find(batch);
        taker.take_all(text, batch);
        batch.clear();
    }

    #[inline(always)]
    fn push(&mut self, bytes: &[u8], start: usize, end: usize) {
        if self.batch.is_full() {
            self.flush();
        }
        self.batch.push(bytes, start, end, |_| {});
    }
}

impl<T: TakeSegments> SegmentSink for Gathering<'_, T> {
    #[inline(always)]
    fn block(&mut self, bytes: &[u8], at: usize, block: &BlockSegments) {
        if self.taker.begins().is_some() {
            return block.all().each(at, |start, end| self.segment(bytes, start, end));
        }
        if self.batch.is_full() {
            self.flush();
        }
        self.batch.push_block(bytes, at, block.all(), |_| {});
    }

    #[inline(always)]
    fn segment(&mut self, bytes: &[u8], start: usize, end: usize) {
        if self.taker.begins().is_some() {
            let mut begins = true;
            return Superwords::each_word(bytes, start, end, |start, end| {
                self.word(bytes, start, end, std::mem::take(&mut begins));
            });
        }
        self.push(bytes, start, end);
    }

    #[inline(always)]
    fn takes_words(&mut self) -> bool {
        self.taker.begins().is_some()
    }

    #[inline(always)]
    fn word(&mut self, bytes: &[u8], start: usize, end: usize, begins: bool) {
        self.push(bytes, start, end);
        if let Some(all) = self.taker.begins() {
            all.push(begins);
        }
    }

    #[inline(always)]
    fn words(
        &mut self,
        bytes: &[u8],
        at: usize,
        block: &BlockSegments,
        mut begins: impl FnMut(usize, usize) -> bool,
    ) {
        if self.batch.is_full() {
            self.flush();
        }
        self.batch.push_block(bytes, at, block.all(), |_| {});
        if let Some(all) = self.taker.begins() {
            block.all().each(at, |start, end| all.push(begins(start, end)));
        }
    }

    fn added(&mut self, raw: &str) {
        self.taker.take(Segment { raw, start: 0, added: true }, MISSING);
    }
}

/// Appends the ids of segments.
pub(super) struct TakeIds<'a> {
    pub(super) tokenizer: &'a Tokenizer,
    pub(super) cache: &'a mut Cache<u32>,
    pub(super) scratch: &'a mut Scratch,
    pub(super) encoding: &'a mut Encoding,
}

/// Pieces of several words, whose words are looked up.
#[derive(Default)]
pub(super) struct TakenPieces {
    /// For each word of the batch, true if a piece begins with it.
    begins: Vec<bool>,
    /// Index of the first token of each piece in the batch.
    starts: Vec<usize>,
    /// Index of the first token of the last piece.
    last: usize,
}

impl<'a> TakeIds<'a> {
    pub(super) fn new(
        tokenizer: &'a Tokenizer,
        cache: &'a mut Cache<u32>,
        scratch: &'a mut Scratch,
        encoding: &'a mut Encoding,
    ) -> Self {
        scratch.pieces.last = encoding.end();
        TakeIds { tokenizer, cache, scratch, encoding }
    }
}

impl TakeSegments for TakeIds<'_> {
    #[inline(always)]
    fn begins(&mut self) -> Option<&mut Vec<bool>> {
        self.tokenizer.superwords.is_some().then_some(&mut self.scratch.pieces.begins)
    }

    #[inline(always)]
    fn finish(&mut self) {
        if let Some(superwords) = &self.tokenizer.superwords {
            self.end_pieces(superwords, true);
        }
    }

    #[inline(always)]
    fn find(&mut self, batch: &mut Batch<true>) {
        self.cache.find(batch);
    }

    #[inline(never)]
    fn take(&mut self, segment: Segment<'_>, found: u64) {
        let known = self.cache.known(&segment, found).unwrap_or_else(|| self.first_seen(&segment));
        if known.kind() as usize <= HELD {
            let ids = self.tokenizer.held_ids.unpack(known);
            self.encoding.push_all(ids[..known.kind() as usize].iter().copied());
            self.encoding.words += known.words();
        } else if known.kind() == LISTED {
            self.encoding.push_all(known.of(&self.cache.list).iter().copied());
            self.encoding.words += known.words();
        } else {
            self.tokenizer.tokenize_for_ids(&segment, self.scratch);
            self.encoding.push_new(self.scratch);
        }
    }

    #[inline(always)]
    fn take_all(&mut self, text: &str, batch: &Batch<true>) {
        if let Some(superwords) = &self.tokenizer.superwords {
            return self.take_words(superwords, text, batch);
        }
        let held_ids = self.tokenizer.held_ids;
        let (mut values, mut words, mut left) = (batch.values(), 0, batch.len());
        while left > 0 {
            let mut other = None;
            self.encoding.push_each(left, |_| {
                let (start, end, found) = values.next()?;
                let known = Known(found);
                left -= 1;
                if known.kind() as usize > HELD {
                    other = Some((start, end, found));
                    return None;
                }
                words += known.words();
                Some((held_ids.unpack(known), known.kind() as usize))
            });
            if let Some((start, end, found)) = other {
                self.take(Segment { raw: &text[start..end], start, added: false }, found);
            }
        }
        self.encoding.words += words;
    }
}

impl TakeIds<'_> {
    /// Takes the words of a batch, and merges the tokens of the pieces that have ended.
    fn take_words(&mut self, superwords: &Superwords, text: &str, batch: &Batch<true>) {
        let (held_ids, words) = (self.tokenizer.held_ids, self.encoding.words);
        let (mut values, mut left) = (batch.values().zip(0..), batch.len());
        while left > 0 {
            let mut other = None;
            let (first, TakenPieces { begins, starts, .. }) =
                (self.encoding.end(), &mut self.scratch.pieces);
            self.encoding.push_each(left, |pushed| {
                let ((start, end, found), index) = values.next()?;
                let known = Known(found);
                left -= 1;
                if begins[index] {
                    starts.push(first + pushed);
                }
                if known.kind() as usize > HELD {
                    other = Some((start, end, found));
                    return None;
                }
                Some((held_ids.unpack(known), known.kind() as usize))
            });
            if let Some((start, end, found)) = other {
                self.take(Segment { raw: &text[start..end], start, added: false }, found);
            }
        }
        self.scratch.pieces.begins.clear();
        self.encoding.words = words;
        self.end_pieces(superwords, false);
    }

    /// Merges the tokens of complete pieces. `is_last`: true if the last piece is complete.
    fn end_pieces(&mut self, superwords: &Superwords, is_last: bool) {
        let Scratch { pieces: TakenPieces { starts, last, .. }, model, .. } = &mut *self.scratch;
        let ids = self.encoding.all_ids();
        if is_last {
            starts.push(ids.len());
        }
        let pieces = starts.iter().filter(|&&start| start > *last).count();
        *last = superwords.merge(ids, *last, starts, &mut model.bpe);
        starts.clear();
        self.encoding.words += pieces;
    }

    #[cold]
    fn first_seen(&mut self, segment: &Segment<'_>) -> Known {
        self.tokenizer.tokenize_for_ids(segment, self.scratch);
        let ids = || self.scratch.tokens.iter().map(|token| token.id);
        let words = self.scratch.words_with_tokens();
        if let Some(known) = self.tokenizer.held_ids.pack(ids(), words) {
            self.cache.make_room(segment, 0);
            return self.cache.insert(segment, known);
        }
        let start = self.cache.make_room(segment, ids().len());
        let Some(known) = Known::listed(start, ids().len(), words) else {
            return self.cache.insert(segment, ANEW);
        };
        self.cache.list.extend(ids());
        self.cache.insert(segment, known)
    }
}

/// Appends the ids of segments, and what each stands for.
pub(super) struct TakeSpans<'a, 'p> {
    pub(super) tokenizer: &'a Tokenizer,
    pub(super) cache: &'a mut Cache<SpannedToken>,
    pub(super) scratch: &'a mut Scratch,
    pub(super) encoding: &'a mut Encoding,
    /// Where the section begins in the text.
    pub(super) start: usize,
    pub(super) position: &'a mut CharPosition<'p>,
}

impl TakeSegments for TakeSpans<'_, '_> {
    fn find(&mut self, batch: &mut Batch<true>) {
        self.cache.find(batch);
    }

    #[inline(always)]
    fn take(&mut self, segment: Segment<'_>, found: u64) {
        let first = self.position.move_to(self.start + segment.start);
        let known = match segment.added {
            true => ANEW, // a space that is not in the text has another place than one that is
            false => self
                .cache
                .known(&segment, found)
                .unwrap_or_else(|| self.cache.first_seen(self.tokenizer, self.scratch, &segment)),
        };
        if known.kind() == LISTED {
            let tokens = known.of(&self.cache.list);
            self.encoding.push_cached(tokens, first);
            self.encoding.words += usize::from(!tokens.is_empty());
            self.encoding.next_word += known.words() as u32;
        } else {
            self.tokenizer.tokenize(&segment, self.scratch);
            push_with_spans(self.tokenizer, first, self.scratch, self.encoding);
        }
    }
}

/// Appends the ids of segments of a unigram model whose sums are rounded. The cache stores for each segment
/// the limit of sums and the number of its tokens, then its pieces and its tokens. With unknown characters
/// their numbers differ, and the shorter list is zero-padded.
pub(super) struct TakeRounded<'a> {
    pub(super) tokenizer: &'a Tokenizer,
    pub(super) unigram: &'a Unigram,
    pub(super) cache: &'a mut Cache<ScoredToken>,
    pub(super) scratch: &'a mut Scratch,
    pub(super) encoding: &'a mut Encoding,
    /// Of the scores of what is before the segment.
    pub(super) sum: &'a mut f32,
}

impl TakeSegments for TakeRounded<'_> {
    fn find(&mut self, batch: &mut Batch<true>) {
        self.cache.find(batch);
    }

    #[inline(always)]
    fn take(&mut self, segment: Segment<'_>, found: u64) {
        let known = self.cache.known(&segment, found).unwrap_or_else(|| self.first_seen(&segment));
        if known.kind() == LISTED && self.push(known) {
            return;
        }
        let TakeRounded { tokenizer, scratch, encoding, sum, .. } = self;
        tokenizer.find_words(&segment, scratch);
        tokenize_anew(tokenizer, sum, scratch);
        encoding.push_new(scratch);
    }
}

impl TakeRounded<'_> {
    /// Appends the ids, if they are these behind the sum.
    #[inline(always)]
    fn push(&mut self, known: Known) -> bool {
        let [(limit, tokens), ref items @ ..] = *known.of(&self.cache.list) else { return false };
        let is_below = self.sum.abs() < limit;
        if !is_below {
            return false;
        }
        *self.sum = items.iter().fold(*self.sum, |sum, &(score, _)| sum + score);
        self.encoding.push_all(items[..tokens as usize].iter().map(|&(_, id)| id));
        self.encoding.words += usize::from(tokens > 0);
        true
    }

    /// Nothing is known of a segment unless it is one word with few tokens.
    #[cold]
    fn first_seen(&mut self, segment: &Segment<'_>) -> Known {
        let TakeRounded { tokenizer, unigram, cache, scratch, .. } = self;
        let mut limit = 0.0;
        tokenizer.find_words(segment, scratch);
        tokenizer.tokenize_words(scratch, |word, scratch, tokens| {
            limit = unigram.tokens_with_limit(word, &mut scratch.unigram, tokens);
        });
        let (tokens, added) = (&scratch.tokens, &scratch.model.unigram.added);
        let items = added.len().max(tokens.len());
        let start = cache.make_room(segment, 1 + items);
        let known = match scratch.ends.len() {
            1 => Known::listed(start, 1 + items, 0),
            _ => None,
        };
        if known.is_some() {
            cache.list.push((limit, tokens.len() as u32));
            cache.list.extend((0..items).map(|i| {
                let id = tokens.get(i).map_or(0, |token| token.id);
                (added.get(i).copied().unwrap_or_default(), id)
            }));
        }
        cache.insert(segment, known.unwrap_or(ANEW))
    }
}
