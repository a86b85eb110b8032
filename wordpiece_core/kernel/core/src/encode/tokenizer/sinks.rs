//! Sinks that encode segments: gathered in batches, looked up in a cache, and written as ids or as tokens with spans.

use super::Tokenizer;
use super::cache::{Cache, Found, HELD, Known, LISTED, UNCACHED};
use super::encoding::Encoding;
use super::source::Origins;
use super::tokenize::{Scratch, TakenPieces};
use super::trimming::spaces;
use crate::encode::bpe::Superwords;
use crate::encode::unigram::Unigram;
use crate::text::segment_table::Lookups;
use crate::text::segments::{BlockSegments, Segment, SegmentSink};

/// Writes segments that are looked up in a cache.
pub(super) trait TakeSegments {
    /// Return the cache.
    fn cache(&self) -> &Cache;

    /// Take the next segment.
    fn take(&mut self, segment: Segment<'_>, known: Found);

    /// For each gathered word, true if a piece begins with it. None if pieces are not divided into words.
    #[inline(always)]
    fn begins(&mut self) -> Option<&mut Vec<bool>> {
        None
    }

    /// Ends the last piece.
    #[inline(always)]
    fn finish(&mut self) {}

    /// Take the segments of a text that were gathered.
    #[inline(always)]
    fn take_all(&mut self, text: &str, lookups: &Lookups) {
        for index in 0..lookups.len() {
            let (segment, known) = self.cache().find(text, lookups, index);
            self.take(segment, known);
        }
    }
}

/// Gathers the segments of a text, looks them up together, and passes them on in order.
pub(super) struct Gathering<'a, T: TakeSegments> {
    text: &'a str,
    lookups: &'a mut Lookups,
    taker: T,
}

impl<'a, T: TakeSegments> Gathering<'a, T> {
    pub(super) fn new(text: &'a str, lookups: &'a mut Lookups, taker: T) -> Self {
        lookups.clear();
        Gathering { text, lookups, taker }
    }

    /// Passes on what is gathered, after which nothing follows.
    pub(super) fn finish(&mut self) {
        self.flush();
        self.taker.finish();
    }

    /// Passes on what is gathered.
    #[inline(never)]
    fn flush(&mut self) {
        let Gathering { text, lookups, taker } = self;
        lookups.prefetch_long(&taker.cache().segments);
        taker.take_all(text, lookups);
        lookups.clear();
    }

    #[inline(always)]
    fn push(&mut self, bytes: &[u8], start: usize, end: usize) {
        if self.lookups.is_full() {
            self.flush();
        }
        self.lookups.push(&self.taker.cache().segments, bytes, (start, end));
    }

    #[inline(always)]
    fn push_block(&mut self, bytes: &[u8], at: usize, block: &BlockSegments) {
        if self.lookups.is_full() {
            self.flush();
        }
        self.lookups.push_block(&self.taker.cache().segments, bytes, at, block.all());
    }
}

impl<T: TakeSegments> SegmentSink for Gathering<'_, T> {
    #[inline(always)]
    fn block(&mut self, bytes: &[u8], at: usize, block: &BlockSegments) {
        if self.taker.begins().is_some() {
            return block.all().each(at, |start, end| self.segment(bytes, start, end));
        }
        self.push_block(bytes, at, block);
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
        self.push_block(bytes, at, block);
        if let Some(all) = self.taker.begins() {
            block.all().each(at, |start, end| all.push(begins(start, end)));
        }
    }

    fn added(&mut self, raw: &str) {
        let known = self.taker.cache().find_alone(raw);
        self.taker.take(Segment { raw, start: 0, added: true }, known);
    }
}

/// Writes ids.
pub(super) struct TakeIds<'a> {
    tokenizer: &'a Tokenizer,
    cache: &'a mut Cache,
    scratch: &'a mut Scratch,
    encoding: &'a mut Encoding,
    /// The sum of the scores of earlier segments, for models that round sums.
    sum: f32,
}

impl<'a> TakeIds<'a> {
    pub(super) fn new(
        tokenizer: &'a Tokenizer,
        cache: &'a mut Cache,
        scratch: &'a mut Scratch,
        encoding: &'a mut Encoding,
    ) -> Self {
        scratch.pieces.last = encoding.end();
        TakeIds { tokenizer, cache, scratch, encoding, sum: 0.0 }
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
    fn cache(&self) -> &Cache {
        self.cache
    }

    #[inline(never)]
    fn take(&mut self, segment: Segment<'_>, known: Found) {
        if let Some(unigram) = self.tokenizer.model.rounding() {
            return self.take_rounded(unigram, &segment, known);
        }
        let known = known.unwrap_or_else(|hash| self.first_seen(&segment, hash));
        if known.kind() <= HELD {
            self.encoding.push_all(known.ids[..known.kind()].iter().copied());
            self.encoding.words += known.words();
        } else if known.kind() == LISTED {
            self.encoding.push_all(self.cache.items(known).iter().copied());
            self.encoding.words += known.words();
        } else {
            self.tokenizer.tokenize_for_ids(&segment, self.scratch);
            self.encoding.push_new(self.scratch);
        }
    }

    #[inline(always)]
    fn take_all(&mut self, text: &str, lookups: &Lookups) {
        let tokenizer = self.tokenizer;
        match (tokenizer.model.rounding(), &tokenizer.superwords) {
            (Some(unigram), _) => (0..lookups.len()).for_each(|index| {
                let (segment, known) = self.cache.find(text, lookups, index);
                self.take_rounded(unigram, &segment, known);
            }),
            (None, None) => self.take_gathered::<false>(text, lookups),
            (None, Some(superwords)) => self.take_words(superwords, text, lookups),
        }
    }
}

impl TakeIds<'_> {
    /// Write the ids of gathered segments. `PIECES`: true to note where pieces of several words begin.
    #[inline(always)]
    fn take_gathered<const PIECES: bool>(&mut self, text: &str, lookups: &Lookups) {
        let (mut next, mut words) = (0, 0);
        while next < lookups.len() {
            let (first, TakenPieces { begins, starts, .. }) =
                (self.encoding.end(), &mut self.scratch.pieces);
            let (segments, mut other) = (&self.cache.segments, None);
            self.encoding.push_each(lookups.len() - next, |pushed| {
                if PIECES && begins.get(next).is_some_and(|&begins| begins) {
                    starts.push(first + pushed);
                }
                if next == lookups.len() {
                    return None;
                }
                match lookups.entry(next, segments, text.as_bytes()) {
                    Some(known) if known.kind() <= HELD => {
                        next += 1;
                        words += known.words();
                        Some((known.padded_ids(), known.kind()))
                    }
                    known => {
                        other = known.copied();
                        None
                    }
                }
            });
            if next < lookups.len() {
                let (segment, known) = Cache::found(text, lookups, next, other);
                self.take(segment, known);
                next += 1;
            }
        }
        self.encoding.words += words;
    }

    /// Write the ids of the words of a batch, and merge the tokens of the pieces that have ended.
    #[inline(never)]
    fn take_words(&mut self, superwords: &Superwords, text: &str, lookups: &Lookups) {
        let words = self.encoding.words;
        self.take_gathered::<true>(text, lookups);
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
    fn first_seen(&mut self, segment: &Segment<'_>, hash: u64) -> Known {
        self.tokenizer.tokenize_for_ids(segment, self.scratch);
        let ids = self.scratch.tokens.iter().map(|token| token.id);
        let words = self.scratch.words_with_tokens();
        match Known::of_ids(ids.clone(), words) {
            Some(known) => self.cache.insert(segment, hash, known),
            None => self.cache.insert_list(segment, hash, ids, words),
        }
    }

    /// Write the ids of a segment whose tokens may depend on the sum of earlier scores.
    #[inline(always)]
    fn take_rounded(&mut self, unigram: &Unigram, segment: &Segment<'_>, known: Found) {
        let known = known.unwrap_or_else(|hash| self.first_seen_rounded(unigram, segment, hash));
        if known.kind() == LISTED && self.push_rounded(known) {
            return;
        }
        self.tokenizer.find_words(segment, self.scratch);
        self.tokenizer.tokenize_anew(&mut self.sum, self.scratch);
        self.encoding.push_new(self.scratch);
    }

    /// Write the ids of an entry, if they are valid after the current sum.
    #[inline(always)]
    fn push_rounded(&mut self, known: Known) -> bool {
        let [limit, tokens, ref items @ ..] = *self.cache.items(known) else { return false };
        let is_below = self.sum.abs() < f32::from_bits(limit);
        if !is_below {
            return false;
        }
        let items = items.as_chunks().0;
        self.sum = items.iter().fold(self.sum, |sum, &[score, _]| sum + f32::from_bits(score));
        self.encoding.push_all(items[..tokens as usize].iter().map(|&[_, id]| id));
        self.encoding.words += usize::from(tokens > 0);
        true
    }

    /// Insert a segment of one word. Its items are the limit of sums, the number of its tokens, and pairs of the
    /// score of a piece and the id of a token. With unknown characters there are more pieces than tokens, or
    /// fewer: the rest is zero. Segments of several words are encoded each time.
    #[cold]
    fn first_seen_rounded(&mut self, unigram: &Unigram, segment: &Segment<'_>, hash: u64) -> Known {
        let mut limit = 0.0f32;
        self.tokenizer.find_words(segment, self.scratch);
        self.tokenizer.tokenize_words(self.scratch, |word, scratch, tokens| {
            limit = unigram.tokens_with_limit(word, &mut scratch.unigram, tokens);
        });
        let Scratch { ends, tokens, model, .. } = &*self.scratch;
        if ends.len() != 1 {
            return self.cache.insert(segment, hash, UNCACHED);
        }
        let scores = &model.unigram.added;
        let mut items = vec![limit.to_bits(), tokens.len() as u32];
        items.extend((0..scores.len().max(tokens.len())).flat_map(|index| {
            let score = scores.get(index).copied().unwrap_or_default();
            [score.to_bits(), tokens.get(index).map_or(0, |token| token.id)]
        }));
        self.cache.insert_list(segment, hash, items.into_iter(), 0)
    }
}

/// Writes ids with spans.
pub(super) struct TakeSpans<'a> {
    pub(super) tokenizer: &'a Tokenizer,
    pub(super) cache: &'a mut Cache,
    pub(super) scratch: &'a mut Scratch,
    pub(super) encoding: &'a mut Encoding,
    pub(super) origins: Origins<'a>,
}

impl TakeSegments for TakeSpans<'_> {
    fn cache(&self) -> &Cache {
        self.cache
    }

    #[inline(always)]
    fn take(&mut self, segment: Segment<'_>, known: Found) {
        let known = match segment.added {
            true => UNCACHED, // an added space has another origin than a space of the text
            false => known.unwrap_or_else(|hash| self.first_seen(&segment, hash)),
        };
        if known.kind() != LISTED {
            self.tokenizer.tokenize(&segment, self.scratch);
            return push_spans(self.tokenizer, &segment, self.scratch, self.origins, self.encoding);
        }
        let tokens = self.cache.items(known).as_chunks().0;
        for &[id, from, to] in tokens {
            let span = self.origins.span(segment.start, [from, to]);
            self.encoding.push_token(id, span, 0);
        }
        self.encoding.words += usize::from(!tokens.is_empty());
        self.encoding.next_word += known.words() as u32;
    }
}

impl TakeSpans<'_> {
    #[cold]
    fn first_seen(&mut self, segment: &Segment<'_>, hash: u64) -> Known {
        self.tokenizer.tokenize(segment, self.scratch);
        let words = self.scratch.ends.len();
        if words > 1 {
            return self.cache.insert(segment, hash, UNCACHED);
        }
        let mut items = Vec::with_capacity(3 * self.scratch.tokens.len());
        self.tokenizer.each_span(self.scratch, |_, id, [from, to], _| items.extend([id, from, to]));
        self.cache.insert_list(segment, hash, items.into_iter(), words)
    }
}

/// Write the tokens of a segment that was tokenized, with their spans.
pub(super) fn push_spans(
    tokenizer: &Tokenizer,
    segment: &Segment<'_>,
    scratch: &Scratch,
    origins: Origins<'_>,
    encoding: &mut Encoding,
) {
    let trims_unknown = tokenizer.trims_unknown();
    tokenizer.each_span(scratch, |word, id, bytes, text| {
        if trims_unknown && Some(id) == tokenizer.unk_id() {
            encoding.push_spaces(spaces(text));
        }
        encoding.push_token(id, origins.span(segment.start, bytes), word);
    });
    encoding.words += scratch.words_with_tokens();
    encoding.next_word += scratch.ends.len() as u32;
}
