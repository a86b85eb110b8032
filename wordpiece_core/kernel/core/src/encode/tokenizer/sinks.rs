//! Sinks that encode segments: gathered in batches, looked up in a cache, and written as ids or as tokens with spans.

use super::Tokenizer;
use super::cache::{ANEW, Cache, HELD, Known, LISTED};
use super::encoding::Encoding;
use super::source::Origins;
use super::tokenize::{Scratch, TakenPieces};
use super::trimming::spaces;
use crate::encode::bpe::Superwords;
use crate::encode::unigram::Unigram;
use crate::text::segment_table::{Batch, MISSING};
use crate::text::segments::{BlockSegments, Segment, SegmentSink};

/// Writes segments that were looked up in a cache.
pub(super) trait TakeSegments {
    /// Looks up the segments of a batch of a text.
    fn find(&mut self, text: &str, batch: &mut Batch<true>);

    /// Takes the next segment. `found`: its entry in the cache, or [`MISSING`].
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

/// Gathers the segments of a text, looks them up together, and passes them on in order.
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
        taker.find(text, batch);
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

    #[inline(always)]
    fn push_block(&mut self, bytes: &[u8], at: usize, block: &BlockSegments) {
        if self.batch.is_full() {
            self.flush();
        }
        self.batch.push_block(bytes, at, block.all(), |_| {});
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
        self.taker.take(Segment { raw, start: 0, added: true }, MISSING);
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
    fn find(&mut self, text: &str, batch: &mut Batch<true>) {
        self.cache.find(text, batch);
    }

    #[inline(never)]
    fn take(&mut self, segment: Segment<'_>, found: u64) {
        if let Some(unigram) = self.tokenizer.model.rounding() {
            return self.take_rounded(unigram, &segment, found);
        }
        let known = self.cache.get(&segment, found).unwrap_or_else(|| self.first_seen(&segment));
        if known.kind() as usize <= HELD {
            let ids = self.tokenizer.held_ids.unpack(known);
            self.encoding.push_all(ids[..known.kind() as usize].iter().copied());
            self.encoding.words += self.tokenizer.held_ids.words(known);
        } else if known.kind() == LISTED {
            self.encoding.push_all(self.cache.items(known).iter().copied());
            self.encoding.words += known.words();
        } else {
            self.tokenizer.tokenize_for_ids(&segment, self.scratch);
            self.encoding.push_new(self.scratch);
        }
    }

    #[inline(always)]
    fn take_all(&mut self, text: &str, batch: &Batch<true>) {
        match &self.tokenizer.superwords {
            None => self.take_batch::<false>(text, batch),
            Some(superwords) => self.take_words(superwords, text, batch),
        }
    }
}

impl TakeIds<'_> {
    /// Write the ids of a batch. `PIECES`: true to note where pieces of several words begin.
    #[inline(always)]
    fn take_batch<const PIECES: bool>(&mut self, text: &str, batch: &Batch<true>) {
        let held_ids = self.tokenizer.held_ids;
        let (mut values, mut words, mut left) = (batch.values(), 0, batch.len());
        while left > 0 {
            let mut other = None;
            let (first, TakenPieces { begins, starts, .. }) =
                (self.encoding.end(), &mut self.scratch.pieces);
            self.encoding.push_each(left, |pushed| {
                let (start, end, found) = values.next()?;
                let known = Known(found);
                if PIECES && begins[batch.len() - left] {
                    starts.push(first + pushed);
                }
                left -= 1;
                if known.kind() as usize > HELD {
                    other = Some((start, end, found));
                    return None;
                }
                words += held_ids.words(known);
                Some((held_ids.unpack(known), known.kind() as usize))
            });
            if let Some((start, end, found)) = other {
                self.take(Segment { raw: &text[start..end], start, added: false }, found);
            }
        }
        self.encoding.words += words;
    }

    /// Write the ids of the words of a batch, and merge the tokens of the pieces that have ended.
    #[inline(never)]
    fn take_words(&mut self, superwords: &Superwords, text: &str, batch: &Batch<true>) {
        let words = self.encoding.words;
        self.take_batch::<true>(text, batch);
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
        let ids = self.scratch.tokens.iter().map(|token| token.id);
        let words = self.scratch.words_with_tokens();
        match self.tokenizer.held_ids.pack(ids.clone(), words) {
            Some(known) => self.cache.insert(segment, known),
            None => self.cache.insert_list(segment, ids, words),
        }
    }

    /// Write the ids of a segment whose tokens may depend on the sum of earlier scores.
    #[inline(always)]
    fn take_rounded(&mut self, unigram: &Unigram, segment: &Segment<'_>, found: u64) {
        let known = self.cache.get(segment, found);
        let known = known.unwrap_or_else(|| self.first_seen_rounded(unigram, segment));
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
    fn first_seen_rounded(&mut self, unigram: &Unigram, segment: &Segment<'_>) -> Known {
        let mut limit = 0.0f32;
        self.tokenizer.find_words(segment, self.scratch);
        self.tokenizer.tokenize_words(self.scratch, |word, scratch, tokens| {
            limit = unigram.tokens_with_limit(word, &mut scratch.unigram, tokens);
        });
        let Scratch { ends, tokens, model, .. } = &*self.scratch;
        if ends.len() != 1 {
            return self.cache.insert(segment, ANEW);
        }
        let scores = &model.unigram.added;
        let mut items = vec![limit.to_bits(), tokens.len() as u32];
        items.extend((0..scores.len().max(tokens.len())).flat_map(|index| {
            let score = scores.get(index).copied().unwrap_or_default();
            [score.to_bits(), tokens.get(index).map_or(0, |token| token.id)]
        }));
        self.cache.insert_list(segment, items.into_iter(), 0)
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
    fn find(&mut self, text: &str, batch: &mut Batch<true>) {
        self.cache.find(text, batch);
    }

    #[inline(always)]
    fn take(&mut self, segment: Segment<'_>, found: u64) {
        let known = match segment.added {
            true => ANEW, // an added space has another origin than a space of the text
            false => self.cache.get(&segment, found).unwrap_or_else(|| self.first_seen(&segment)),
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
    fn first_seen(&mut self, segment: &Segment<'_>) -> Known {
        self.tokenizer.tokenize(segment, self.scratch);
        let words = self.scratch.ends.len();
        if words > 1 {
            return self.cache.insert(segment, ANEW);
        }
        let mut items = Vec::with_capacity(3 * self.scratch.tokens.len());
        self.tokenizer.each_span(self.scratch, |_, id, [from, to], _| items.extend([id, from, to]));
        self.cache.insert_list(segment, items.into_iter(), words)
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
