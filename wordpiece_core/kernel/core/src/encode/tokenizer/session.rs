//! What one thread encodes texts with: around the added tokens in them, and segment by segment.

use std::ops::Range;

use super::Tokenizer;
use super::cache::{Caches, Gathering, KEPT_LIMIT, TakeIds, TakeRounded, TakeSegments, TakeSpans};
use super::composed::ComposedText;
use super::encoding::Encoding;
use super::spans::{CharPosition, push_added, push_with_spans};
use super::tokenize::{Scratch, tokenize_anew};
use super::trimming::SharedSpaces;
use crate::encode::added_tokens::Section;
use crate::text::rules::TextRules;
use crate::text::segment_table::Batch;

/// What one thread encodes with: a tokenizer, and caches. They go back to the tokenizer when the session
/// is dropped.
pub struct Session<'e> {
    pub(super) tokenizer: &'e Tokenizer,
    /// The place of the caches among those of the tokenizer.
    place: usize,
    pub(super) caches: Caches,
    pub(super) scratch: Scratch,
}

/// From this number on, sessions share the places of caches.
const MOST_CACHES: usize = 1 << 10;

impl Tokenizer {
    /// Return a session for thread `thread` of `threads`. It takes over the caches of an earlier session,
    /// preferably of the same thread.
    pub fn session(&self, thread: usize, threads: usize) -> Session<'_> {
        let number = thread % MOST_CACHES;
        let (mut place, mut caches) = (number, None);
        if let Ok(mut kept) = self.caches.lock() {
            if kept.len() <= number {
                kept.resize_with(number + 1, || Some(Caches::default()));
            }
            if kept[number].is_none() {
                place = kept.iter().rposition(Option::is_some).unwrap_or(kept.len());
            }
            match kept.get_mut(place) {
                Some(found) => caches = found.take(),
                None => kept.push(None),
            }
        }
        let mut caches = caches.unwrap_or_default();
        caches.share(threads);
        Session { tokenizer: self, place, caches, scratch: Scratch::default() }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if let Ok(mut kept) = self.tokenizer.caches.lock()
            && self.place < kept.len()
        {
            let mut caches = std::mem::take(&mut self.caches);
            let others: usize = kept.iter().flatten().map(Caches::memory).sum();
            if others + caches.memory() > KEPT_LIMIT {
                caches = Caches::default();
            }
            kept[self.place] = Some(caches);
        }
    }
}

impl Session<'_> {
    /// Whether texts may have 2^31 bytes and more.
    pub(crate) fn takes_any_length(&self) -> bool {
        self.tokenizer.is_wordpiece()
    }

    /// Encodes a text.
    ///
    /// # Arguments
    ///
    /// * `text` - The text. If spans are wanted, it may have 2^31 - 1 bytes at most.
    /// * `spans` - Whether spans are wanted, not ids alone.
    /// * `encoding` - Where the tokens are written. It is cleared first.
    pub(crate) fn encode(&mut self, text: &str, spans: bool, encoding: &mut Encoding) {
        encoding.clear();
        self.scratch.spans = spans;
        let added = match &self.tokenizer.text {
            TextRules::Composed(rules)
                if !rules.takes_text_as_it_is() && !self.tokenizer.splits_at_spaces =>
            {
                self.encode_composed(ComposedText { rules, text, spans }, encoding)
            }
            _ => self.encode_segments(text, spans, encoding),
        };
        encoding.word_tokens = encoding.len() - added;
        if spans && let Some(trimming) = &self.tokenizer.trimming {
            encoding.prepare_trimming(trimming);
        }
    }

    /// Encodes a text whose segments are found in it. Returns how many added tokens are in it.
    fn encode_segments(&mut self, text: &str, spans: bool, encoding: &mut Encoding) -> usize {
        let mut position = CharPosition::new(text);
        let mut shared = SharedSpaces::default();
        let mut added = 0;
        self.tokenizer.added_tokens.split(text, |section| match section {
            Section::Text(range) => self.encode_plain(range, spans, &mut position, encoding),
            Section::Token(id, range) => {
                added += 1;
                let span = [range.start, range.end];
                let span = spans.then(|| span.map(|at| position.move_to(at)));
                push_added(self.tokenizer, id, || shared.of(text, range), span, encoding);
            }
        });
        added
    }

    /// Encodes a range of the text that has no added tokens.
    fn encode_plain(
        &mut self,
        range: Range<usize>,
        spans: bool,
        position: &mut CharPosition<'_>,
        encoding: &mut Encoding,
    ) {
        let Session { tokenizer, caches, scratch, .. } = self;
        let cached = !(spans && tokenizer.spans_depend_on_text());
        if !cached && tokenizer.splits_at_spaces {
            return self.encode_whole(range, spans, position, encoding);
        }
        let (start, section) = (range.start, &position.text[range.clone()]);
        let sum = &mut 0.0; // of scores, if they are rounded
        if !cached {
            tokenizer.text.segments(section, |segment| {
                tokenizer.find_words(&segment, scratch);
                tokenize_anew(tokenizer, sum, scratch);
                if spans {
                    let first = position.move_to(start + segment.start);
                    push_with_spans(tokenizer, first, scratch, encoding);
                } else {
                    encoding.push_new(scratch);
                }
            });
            return;
        }
        let section = SectionText { tokenizer, text: position.text, range: range.clone(), spans };
        let Caches { ids, spans: spanned, rounded, batch } = caches;
        let is_encoded = if spans {
            let cache = spanned;
            let taker = TakeSpans { tokenizer, cache, scratch, encoding, start, position };
            section.gather(batch, taker)
        } else if let Some(unigram) = tokenizer.model.rounding() {
            let cache = rounded;
            section.gather(batch, TakeRounded { tokenizer, unigram, cache, scratch, encoding, sum })
        } else {
            section.gather(batch, TakeIds::new(tokenizer, ids, scratch, encoding))
        };
        if !is_encoded {
            self.encode_whole(range, spans, position, encoding);
        }
    }
}

/// A range of a text that has no added tokens.
struct SectionText<'a> {
    tokenizer: &'a Tokenizer,
    text: &'a str,
    range: Range<usize>,
    spans: bool,
}

impl SectionText<'_> {
    /// Passes the segments to what takes them; returns whether there are segments.
    #[inline(never)]
    fn gather<T: TakeSegments>(&self, batch: &mut Batch<true>, taker: T) -> bool {
        let Range { start, .. } = self.range;
        let (part, bytes) = (&self.text[self.range.clone()], &self.text.as_bytes()[start..]);
        let mut to = Gathering::new(part, batch, taker);
        let is_split = match &self.tokenizer.text {
            TextRules::Composed(rules) if self.tokenizer.splits_at_spaces => {
                rules.split_at_spaces(part, bytes, start == 0, self.spans, &mut to)
            }
            rules => {
                rules.segments_into(part, bytes, &mut to);
                true
            }
        };
        to.finish();
        is_split
    }
}
