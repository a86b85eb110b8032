//! The state of one thread that encodes texts.

use std::ops::Range;

use super::Tokenizer;
use super::cache::{Caches, KEPT_LIMIT};
use super::characters::CharacterIndex;
use super::encoding::Encoding;
use super::plan::{Marks, Plan};
use super::sinks::{Gathering, TakeIds, TakeSegments, TakeSpans, push_spans};
use super::source::Source;
use super::tokenize::{MOST_BYTES, Scratch, too_long};
use super::trimming::SharedSpaces;
use crate::base::error::give_up;
use crate::encode::added_tokens::Section;
use crate::encode::bpe::Parts;
use crate::text::bert::BertRules;
use crate::text::composed::{Composed, PatternSplitter, Pieces, SpaceSplitter};
use crate::text::rules::TextRules;
use crate::text::segment_table::Lookups;
use crate::text::segments::{Each, Segment, SegmentSink};

/// The state of one thread that encodes texts: caches and scratch memory. The caches go back to the tokenizer
/// when the session is dropped.
pub struct Session<'e> {
    pub(super) tokenizer: &'e Tokenizer,
    /// The index of the caches among the caches of the tokenizer.
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
    /// Return true if texts may have 2^31 bytes and more.
    pub(crate) fn takes_any_length(&self) -> bool {
        self.tokenizer.is_wordpiece()
    }

    /// Encode a text: find added tokens that are not normalized, and encode the sections between them.
    ///
    /// # Arguments
    ///
    /// * `text` - The text, at most 2^31 - 1 bytes with spans.
    /// * `spans` - True to find the span of each token.
    /// * `encoding` - The output. It is cleared first.
    pub(crate) fn encode(&mut self, text: &str, spans: bool, encoding: &mut Encoding) {
        encoding.clear();
        self.scratch.spans = spans;
        let tokenizer = self.tokenizer;
        let characters = spans.then(|| CharacterIndex::new(text));
        let source = Source::raw(text, characters.as_ref());
        let (mut added, mut shared) = (0, SharedSpaces::default());
        tokenizer.added_tokens.split_early(text, |section| match section {
            Section::Text(range) => added += self.encode_section(source, range, encoding),
            Section::Token(id, range) => {
                added += 1;
                tokenizer.push_added(id, source, range, &mut shared, encoding);
            }
        });
        encoding.word_tokens = encoding.len() - added;
        if spans && let Some(trimming) = &tokenizer.trimming {
            encoding.prepare_trimming(trimming);
        }
    }

    /// Encode a section of the raw text: split it without normalization if possible; otherwise normalize it, and
    /// encode the sections between the `normalized` added tokens. Return the number of these added tokens.
    fn encode_section(
        &mut self,
        raw: Source<'_>,
        range: Range<usize>,
        encoding: &mut Encoding,
    ) -> usize {
        let tokenizer = self.tokenizer;
        let (start, is_first) = (range.start, range.start == 0);
        let section = raw.section(range);
        if self.encode_raw(section, is_first, encoding) {
            return 0;
        }
        let spans = section.has_spans();
        let changed;
        let source = match &tokenizer.text {
            TextRules::Composed(rules) if !tokenizer.takes_as_it_is(rules, section.text, spans) => {
                changed = rules.normalized(section.text, start, spans);
                check_length(changed.text(), spans);
                section.changed(&changed)
            }
            _ => section,
        };
        let (mut added, mut shared) = (0, SharedSpaces::default());
        tokenizer.added_tokens.split_late(source.text, |section| match section {
            Section::Text(range) => {
                let is_first = is_first && range.start == 0;
                self.encode_normalized(source.section(range), is_first, encoding);
            }
            Section::Token(id, range) => {
                added += 1;
                tokenizer.push_added(id, source, range, &mut shared, encoding);
            }
        });
        added
    }

    /// Encode a section of the raw text without normalizing it as a whole. Return false if that is not possible.
    fn encode_raw(&mut self, section: Source<'_>, is_first: bool, encoding: &mut Encoding) -> bool {
        let tokenizer = self.tokenizer;
        let spans = section.has_spans();
        match (&tokenizer.plan, &tokenizer.text) {
            (Plan::Spaces(splitter), TextRules::Composed(rules))
                if !(spans && tokenizer.spans_depend_on_text()) =>
            {
                let start = splitter.start(rules, section.text, is_first, spans);
                start.is_some_and(|start| {
                    self.encode_segments(section, Segments::Spaces(splitter, start), encoding);
                    true
                })
            }
            (Plan::Marks(marks), _) if !spans => {
                self.encode_marks(marks, section, is_first, encoding)
            }
            _ => false,
        }
    }

    /// Encode a section with its spaces treated as marks. Return false if it must be normalized.
    fn encode_marks(
        &mut self,
        marks: &Marks,
        section: Source<'_>,
        is_first: bool,
        encoding: &mut Encoding,
    ) -> bool {
        let (Some(parts), Some(puts_mark)) =
            (self.tokenizer.model.parts(), marks.puts_mark_before(section.text, is_first))
        else {
            return false;
        };
        self.encode_parts(section, Segments::Raw { parts, puts_mark }, encoding);
        true
    }

    /// Encode a text that is normalized, without added tokens. `is_first`: true for the beginning of the raw text.
    fn encode_normalized(&mut self, source: Source<'_>, is_first: bool, encoding: &mut Encoding) {
        let tokenizer = self.tokenizer;
        match (&tokenizer.plan, &tokenizer.text) {
            (_, TextRules::Bert(rules)) => {
                self.encode_segments(source, Segments::Bert(rules), encoding);
            }
            (Plan::Pattern(pattern), _) => {
                self.encode_segments(source, Segments::Pattern(*pattern), encoding);
            }
            (_, TextRules::Composed(rules)) => {
                let pieces = rules.pieces(source.aligned(), is_first);
                self.encode_pieces(&pieces, source, encoding);
            }
        }
    }

    /// Encode the pieces of a text. If all of it is one piece, its parts are looked up instead.
    fn encode_pieces(&mut self, pieces: &Pieces, source: Source<'_>, encoding: &mut Encoding) {
        let source = source.changed(&pieces.text);
        check_length(source.text, source.has_spans());
        match self.tokenizer.model.parts() {
            Some(parts) if !source.has_spans() && pieces.only().is_some() => {
                self.encode_parts(source, Segments::Parts(parts), encoding);
            }
            _ => self.encode_segments(source, Segments::Pieces(&pieces.ranges), encoding),
        }
    }

    /// Encode segments that are parts of one word.
    fn encode_parts(
        &mut self,
        source: Source<'_>,
        segments: Segments<'_>,
        encoding: &mut Encoding,
    ) {
        let (words, length) = (encoding.words, encoding.len());
        self.encode_segments(source, segments, encoding);
        encoding.words = words + usize::from(encoding.len() > length);
    }

    /// Encode the segments of a text.
    fn encode_segments(
        &mut self,
        source: Source<'_>,
        segments: Segments<'_>,
        encoding: &mut Encoding,
    ) {
        let Session { tokenizer, caches, scratch, .. } = self;
        let tokenizer = *tokenizer;
        let lookups = &mut caches.lookups;
        match source.origins() {
            _ if !tokenizer.is_cached(&segments, source.has_spans()) => {
                let mut sum = 0.0;
                segments.split(
                    source,
                    &mut Each(|segment: Segment<'_>| {
                        match segments {
                            Segments::Pieces(_) => tokenizer.take_piece(&segment, scratch),
                            _ => tokenizer.find_words(&segment, scratch),
                        }
                        tokenizer.tokenize_anew(&mut sum, scratch);
                        match source.origins() {
                            Some(origins) => {
                                push_spans(tokenizer, &segment, scratch, origins, encoding);
                            }
                            None => encoding.push_new(scratch),
                        }
                    }),
                );
            }
            Some(origins) => {
                let cache = &mut caches.spans;
                segments.gather(
                    source,
                    lookups,
                    TakeSpans { tokenizer, cache, scratch, encoding, origins },
                );
            }
            None => {
                let taker = TakeIds::new(tokenizer, &mut caches.ids, scratch, encoding);
                segments.gather(source, lookups, taker);
            }
        }
    }
}

impl Tokenizer {
    /// Return true if a section is known to be normalized, and its segments can be found in it.
    fn takes_as_it_is(&self, rules: &Composed, section: &str, spans: bool) -> bool {
        (!spans || matches!(self.plan, Plan::Pattern(_))) && rules.leaves(section)
    }

    /// Return true if segments are looked up in a cache. `spans`: true to find spans.
    fn is_cached(&self, segments: &Segments<'_>, spans: bool) -> bool {
        let is_key = match segments {
            // Other segments are keys: parts of raw text.
            Segments::Pieces(_) => !matches!(self.plan, Plan::Spaces(_)),
            _ => true,
        };
        is_key && !(spans && self.spans_depend_on_text())
    }

    /// Write an added token of a text.
    fn push_added(
        &self,
        id: u32,
        source: Source<'_>,
        range: Range<usize>,
        shared: &mut SharedSpaces,
        encoding: &mut Encoding,
    ) {
        encoding.special_tokens += self.special.contains(&id) as usize;
        let Some(origins) = source.origins() else { return encoding.push(id) };
        let span = origins.span(range.start, [0, range.len() as u32]);
        if self.trimming.is_some() {
            // The white space that belongs to the token also counts.
            encoding.push_spaces(shared.of(source.text, range));
        }
        encoding.push_token(id, span, 0);
        encoding.next_word += 1;
    }
}

/// Stop with an error if a text is too long for spans after normalization.
fn check_length(text: &str, spans: bool) {
    if spans && text.len() > MOST_BYTES {
        give_up(too_long(text));
    }
}

/// The segments of a text.
enum Segments<'a> {
    /// Segments by BERT's rules.
    Bert(&'a BertRules),
    /// The matches of a pattern.
    Pattern(PatternSplitter),
    /// Segments that begin before spaces; the first one begins at an offset.
    Spaces(&'a SpaceSplitter, usize),
    /// The parts of a word with spaces treated as marks. `puts_mark`: true if a mark is put before the word.
    Raw { parts: &'a Parts, puts_mark: bool },
    /// The parts of a word.
    Parts(&'a Parts),
    /// Ranges of the text.
    Pieces(&'a [Range<usize>]),
}

impl Segments<'_> {
    /// Pass the segments of a text to a sink.
    #[inline(always)]
    fn split(&self, Source { text, bytes, .. }: Source<'_>, sink: &mut impl SegmentSink) {
        match *self {
            Segments::Bert(rules) => rules.segments_into(text, bytes, sink),
            Segments::Pattern(pattern) => pattern.split(text, bytes, sink),
            Segments::Spaces(splitter, start) => splitter.split(text, bytes, start, sink),
            Segments::Raw { parts, mut puts_mark } => parts.each(text, true, |range| {
                if std::mem::take(&mut puts_mark) {
                    let mut first = String::from(' '); // it becomes the mark
                    first.push_str(&text[..range.end]);
                    return sink.added(&first);
                }
                sink.segment(bytes, range.start, range.end);
            }),
            Segments::Parts(parts) => {
                parts.each(text, false, |range| sink.segment(bytes, range.start, range.end));
            }
            Segments::Pieces(ranges) => {
                ranges.iter().for_each(|range| sink.segment(bytes, range.start, range.end));
            }
        }
    }

    /// Look up the segments of a text in batches, and pass them to `taker`.
    #[inline(never)]
    fn gather<T: TakeSegments>(&self, source: Source<'_>, lookups: &mut Lookups, taker: T) {
        let mut gathering = Gathering::new(source.text, lookups, taker);
        self.split(source, &mut gathering);
        gathering.finish();
    }
}
