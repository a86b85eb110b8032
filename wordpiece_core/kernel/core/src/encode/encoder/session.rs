//! What one thread encodes texts with: around the added tokens in them, and segment by segment.

use std::ops::Range;

use super::cache::{Caches, Gathering, TakeIds, TakeRounded, TakeSegments, TakeSpans};
use super::composed::ComposedText;
use super::encoding::Encoding;
use super::spans::{CharPosition, push_added, push_with_spans};
use super::tokenize::Scratch;
use super::trimming::SharedSpaces;
use super::{Encoder, EncoderOptions};
use crate::base::error::Result;
use crate::encode::added_tokens::Section;
use crate::encode::model::Sampler;
use crate::encode::sampling::{Sampling, SplitMix64};
use crate::text::rules::TextRules;
use crate::text::segments::Begin;
use crate::text::segments::Segment;

/// What one thread encodes with: an encoder, and caches. They go back to the encoder when the session
/// is dropped.
pub struct Session<'e> {
    pub(super) encoder: &'e Encoder,
    /// The place of the caches among those of the encoder.
    place: usize,
    pub(super) caches: Caches,
    pub(super) scratch: Scratch,
    pub(super) drawing: Option<Drawing>,
}

/// From this number on, sessions share the places of caches.
const MOST_CACHES: usize = 1 << 10;

/// What tokenizations are sampled with.
pub(super) struct Drawing {
    sampling: Sampling,
    sampler: Sampler,
    /// The numbers of the text.
    random: SplitMix64,
}

impl Encoder {
    /// A session of this encoder, for one thread. It takes over the caches of one that has ended: if
    /// that can be, of one with the same number.
    pub fn session(&self, number: usize) -> Session<'_> {
        let number = number % MOST_CACHES;
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
        let caches = caches.unwrap_or_default();
        Session { encoder: self, place, caches, scratch: Scratch::default(), drawing: None }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if let Ok(mut kept) = self.encoder.caches.lock()
            && let Some(place) = kept.get_mut(self.place)
        {
            *place = Some(std::mem::take(&mut self.caches));
        }
    }
}

impl Session<'_> {
    /// Whether texts may have 2^31 bytes and more.
    pub fn takes_any_length(&self) -> bool {
        self.encoder.is_wordpiece()
    }

    /// Sets how tokenizations are sampled from now on; None: they are not.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Option`](crate::base::error::Error::Option) if words of the model are not drawn so.
    pub fn set_sampling(&mut self, sampling: Option<&Sampling>) -> Result<()> {
        let as_before = self.drawing.as_ref().map(|drawing| &drawing.sampling) == sampling;
        if !as_before {
            let model = &self.encoder.options.model;
            let sampler = sampling.map(|sampling| model.sampler(sampling)).transpose()?;
            self.drawing = sampling.zip(sampler).map(|(&sampling, sampler)| Drawing {
                sampling,
                sampler,
                random: SplitMix64::of(sampling.seed, b""),
            });
        }
        Ok(())
    }

    /// Encodes a text.
    ///
    /// # Arguments
    ///
    /// * `text` - The text. If spans are wanted, it may have 2^31 - 1 bytes at most.
    /// * `spans` - Whether spans are wanted, not ids alone.
    /// * `encoding` - Where the tokens are written. It is cleared first.
    pub fn encode(&mut self, text: &str, spans: bool, encoding: &mut Encoding) {
        encoding.clear();
        if let Some(drawing) = &mut self.drawing {
            drawing.random = SplitMix64::of(drawing.sampling.seed, text.as_bytes());
        }
        let added = match &self.encoder.options.text {
            TextRules::Composed(rules) if !rules.takes_text_as_it_is() => {
                self.encode_composed(ComposedText { rules, text, spans }, encoding)
            }
            _ => self.encode_segments(text, spans, encoding),
        };
        encoding.word_tokens = encoding.len() - added;
        if spans && let Some(trimming) = &self.encoder.options.trimming {
            encoding.prepare_trimming(trimming);
        }
    }

    /// Encodes a text whose segments are found in it. Returns how many added tokens are in it.
    fn encode_segments(&mut self, text: &str, spans: bool, encoding: &mut Encoding) -> usize {
        let mut position = CharPosition::new(text);
        let mut shared = SharedSpaces::default();
        let mut added = 0;
        self.encoder.added_tokens.split(text, |section| match section {
            Section::Text(range) => self.encode_plain(range, spans, &mut position, encoding),
            Section::Token(id, range) => {
                added += 1;
                if spans {
                    push_added(self.encoder, id, range, &mut position, &mut shared, encoding);
                } else {
                    encoding.push(id);
                }
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
        let Session { encoder, caches, scratch, drawing, .. } = self;
        let EncoderOptions { text: rules, model, .. } = &encoder.options;
        let (start, section) = (range.start, &position.text[range]);
        let raw = &section[..rules.section_end(section)];
        let bytes = &position.text.as_bytes()[start..];
        let begin = if start == 0 { Begin::Text } else { Begin::Section };
        position.lost = if spans { rules.lost_characters(raw) } else { 0 };
        let sum = &mut 0.0; // of scores, if they are rounded
        let cached = drawing.is_none() && !(spans && encoder.spans_depend_on_text());
        if !cached {
            rules.segments(raw, begin, |segment| {
                tokenize_anew(encoder, &segment, drawing.as_mut(), sum, scratch);
                if spans {
                    let first = position.segment(start + segment.start);
                    push_with_spans(encoder, &segment, first, scratch, encoding);
                } else {
                    encoding.push_new(scratch);
                }
            });
            return;
        }
        let Caches { ids, spans: spanned, rounded, batch } = caches;
        if spans {
            let cache = spanned;
            let taker = TakeSpans { encoder, cache, scratch, encoding, start, position };
            gather(rules, raw, bytes, begin, Gathering::new(raw, batch, taker));
        } else if let Some(unigram) = model.rounding() {
            let cache = rounded;
            let taker = TakeRounded { encoder, unigram, cache, scratch, encoding, sum };
            gather(rules, raw, bytes, begin, Gathering::new(raw, batch, taker));
        } else {
            let taker = TakeIds { encoder, cache: ids, scratch, encoding };
            gather(rules, raw, bytes, begin, Gathering::new(raw, batch, taker));
        }
    }
}

/// Passes the segments of a section to what takes them. `bytes`: those of the section, and what is
/// behind it.
#[inline(never)]
fn gather<T: TakeSegments>(
    rules: &TextRules,
    section: &str,
    bytes: &[u8],
    begin: Begin,
    mut to: Gathering<'_, T>,
) {
    rules.segments_into(section, bytes, begin, &mut to);
    to.flush();
}

/// Tokenizes a segment that no cache can know: by sampling, or behind a sum of scores.
#[inline]
pub(super) fn tokenize_anew(
    encoder: &Encoder,
    segment: &Segment<'_>,
    mut drawing: Option<&mut Drawing>,
    sum: &mut f32,
    scratch: &mut Scratch,
) {
    let model = &encoder.options.model;
    encoder.tokenize_by(segment.raw, scratch, |word, scratch, tokens| {
        match (&mut drawing, model.rounding()) {
            (Some(Drawing { sampler, random, .. }), _) => {
                model.sampled_tokens(word, sampler, random, scratch, tokens);
            }
            (None, Some(unigram)) => {
                unigram.rounded_tokens(word, sum, &mut scratch.unigram, tokens);
            }
            (None, None) => model.tokens(word, scratch, tokens),
        }
    });
}
