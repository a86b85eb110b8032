//! Texts whose words are those of composed rules: of a text that a normalizer has changed, and that
//! pre-tokenizers may change, too.

use std::ops::Range;

use aho_corasick::AhoCorasick;

use super::Tokenizer;
use super::cache::{Cache, Gathering, SpannedToken, TakeIds, TakeSegments};
use super::encoding::Encoding;
use super::session::Session;
use super::spans::{CharPosition, push_added, spans};
use super::tokenize::{MOST_BYTES, Scratch, tokenize_anew, too_long};
use super::trimming::{SharedSpaces, spaces};
use crate::base::error::give_up;
use crate::encode::added_tokens::Section;
use crate::encode::bpe::Parts;
use crate::text::composed::{AlignedText, Composed, Origin, Pieces};
use crate::text::rules::TextRules;
use crate::text::segment_table::Batch;
use crate::text::segments::{Segment, SegmentSink};

/// A text that is normalized: with its origins, or as it was.
#[derive(Clone, Copy)]
enum Normalized<'a> {
    AsItWas(&'a str),
    Changed(&'a AlignedText),
}

impl<'a> Normalized<'a> {
    fn text(self) -> &'a str {
        match self {
            Normalized::AsItWas(text) => text,
            Normalized::Changed(text) => text.text(),
        }
    }

    fn part(self, range: Range<usize>) -> AlignedText {
        match self {
            Normalized::AsItWas(text) => AlignedText::new(&text[range], 0, false),
            Normalized::Changed(text) => text.part(range),
        }
    }
}

/// What is encoded, and whether spans are wanted.
pub(super) struct ComposedText<'a> {
    pub(super) rules: &'a Composed,
    pub(super) text: &'a str,
    pub(super) spans: bool,
}

impl<'e> Session<'e> {
    /// Encodes a text. Returns how many added tokens are in it.
    pub(super) fn encode_composed(
        &mut self,
        ComposedText { rules, text, spans }: ComposedText<'_>,
        encoding: &mut Encoding,
    ) -> usize {
        let tokenizer = self.tokenizer;
        let characters = CharacterOffsets::new(text, (0, 0), spans);
        let (mut added, mut shared) = (0, SharedSpaces::default());
        tokenizer.added_tokens.split_early(text, |section| match section {
            Section::Token(id, range) => {
                added += 1;
                let origin = (range.start as u32, range.end as u32);
                let span = spans.then(|| characters.of(origin));
                push_added(tokenizer, id, || shared.of(text, range), span, encoding);
            }
            Section::Text(range) => {
                let part = &text[range.clone()];
                if !spans && let Some(parts) = self.raw_parts(rules, part) {
                    let puts_mark = rules.puts_mark_before(part, range.start == 0);
                    return self.push_raw_parts(parts, part, puts_mark, encoding);
                }
                let changed;
                let normalized = if !spans && rules.leaves(part) {
                    Normalized::AsItWas(part)
                } else {
                    changed = rules.normalized(part, range.start, spans);
                    Normalized::Changed(&changed)
                };
                let mut shared = SharedSpaces::default();
                tokenizer.added_tokens.split_late(normalized.text(), |section| match section {
                    Section::Token(id, found) => {
                        added += 1;
                        let origin = match normalized {
                            Normalized::Changed(text) if spans => text.origin(found.clone()),
                            _ => None,
                        };
                        let span = origin.map(|origin| characters.of(origin));
                        let spaces = || shared.of(normalized.text(), found);
                        push_added(tokenizer, id, spaces, span, encoding);
                    }
                    Section::Text(found) => {
                        let is_first = range.start == 0 && found.start == 0;
                        if !spans && rules.splits_in_place() {
                            let (from, text) = (found.start, normalized.text());
                            let (part, bytes) = (&text[found], &text.as_bytes()[from..]);
                            self.push_ids(part, encoding, |gathering| {
                                rules.split_in_place(part, bytes, gathering);
                            });
                        } else {
                            let pieces = rules.pieces(normalized.part(found), is_first);
                            self.push_pieces(&pieces, spans.then_some(&characters), encoding);
                        }
                    }
                });
            }
        });
        added
    }

    /// Encodes a part of a text without added tokens, which is normalized as a whole.
    pub(super) fn encode_whole(
        &mut self,
        range: Range<usize>,
        spans: bool,
        position: &mut CharPosition<'_>,
        encoding: &mut Encoding,
    ) {
        let TextRules::Composed(rules) = &self.tokenizer.text else { return };
        let (start, part) = (range.start, &position.text[range]);
        let first = if spans { position.move_to(start) } else { 0 };
        let characters = CharacterOffsets::new(part, (start as u32, first), spans);
        let pieces = rules.pieces(rules.normalized(part, start, spans), start == 0);
        self.push_pieces(&pieces, spans.then_some(&characters), encoding);
    }

    /// Where a part of a text is split as it is, if its spaces are only marked: its model has the parts of
    /// the marked one.
    fn raw_parts(&self, rules: &Composed, part: &str) -> Option<&'e Parts> {
        if !rules.only_marks_spaces() {
            return None;
        }
        let Tokenizer { model, late_tokens, .. } = self.tokenizer;
        let is_found = |late: &AhoCorasick| late.is_match(part);
        model.parts().filter(|_| !late_tokens.as_ref().is_some_and(is_found))
    }

    /// Appends the ids of a part of a text that is split so. `puts_mark`: whether a mark is put before it.
    fn push_raw_parts(
        &mut self,
        parts: &Parts,
        text: &str,
        puts_mark: bool,
        encoding: &mut Encoding,
    ) {
        let mut is_first = puts_mark;
        self.push_word(text, encoding, |gathering| {
            parts.each(text, true, |Range { start, end }| {
                if !std::mem::take(&mut is_first) {
                    return gathering.segment(text.as_bytes(), start, end);
                }
                let mut first = String::from(' '); // it becomes the mark
                first.push_str(&text[..end]);
                gathering.added(&first);
            });
        });
    }

    /// Appends the ids of the segments of a text that `find` gathers.
    #[inline(always)]
    fn push_ids(
        &mut self,
        text: &str,
        encoding: &mut Encoding,
        find: impl FnOnce(&mut Gathering<'_, TakeIds<'_>>),
    ) {
        let Session { tokenizer, caches, scratch, .. } = self;
        let taker = TakeIds::new(tokenizer, &mut caches.ids, scratch, encoding);
        let mut gathering = Gathering::new(text, &mut caches.batch, taker);
        find(&mut gathering);
        gathering.finish();
    }

    /// The same if all of them are one word.
    #[inline(always)]
    fn push_word(
        &mut self,
        text: &str,
        encoding: &mut Encoding,
        find: impl FnOnce(&mut Gathering<'_, TakeIds<'_>>),
    ) {
        let (words, length) = (encoding.words, encoding.len());
        self.push_ids(text, encoding, find);
        encoding.words = words + usize::from(encoding.len() > length);
    }

    /// Appends the tokens of pieces. `characters`: if spans are wanted.
    fn push_pieces(
        &mut self,
        pieces: &Pieces,
        characters: Option<&CharacterOffsets>,
        encoding: &mut Encoding,
    ) {
        let Session { tokenizer, caches, scratch, .. } = self;
        let (tokenizer, text) = (*tokenizer, pieces.text.text());
        let bytes = text.as_bytes();
        if characters.is_some() && text.len() > MOST_BYTES {
            give_up(too_long(text));
        }
        let model = &tokenizer.model;
        // If texts are split at spaces, the keys of the caches are segments.
        if tokenizer.splits_at_spaces || model.rounding().is_some() {
            self.push_pieces_anew(pieces, characters, encoding);
        } else if let Some(characters) = characters {
            let cache = &mut caches.spans;
            let taker =
                TakeAligned { tokenizer, cache, scratch, encoding, text: &pieces.text, characters };
            let mut gathering = Gathering::new(text, &mut caches.batch, taker);
            pieces.each(|range| gathering.segment(bytes, range.start, range.end));
            gathering.finish();
        } else if let (Some(parts), Some(word)) = (model.parts(), pieces.only()) {
            self.push_word(text, encoding, |gathering| {
                parts.each(word, false, |part| gathering.segment(bytes, part.start, part.end));
            });
        } else {
            self.push_ids(text, encoding, |gathering| {
                pieces.each(|range| gathering.segment(bytes, range.start, range.end));
            });
        }
    }

    /// The same without a cache.
    fn push_pieces_anew(
        &mut self,
        pieces: &Pieces,
        characters: Option<&CharacterOffsets>,
        encoding: &mut Encoding,
    ) {
        let Session { tokenizer, scratch, .. } = self;
        let (text, mut sum) = (&pieces.text, 0.0);
        pieces.each(|range| {
            let raw = &text.text()[range.clone()];
            let piece = Segment { raw, start: range.start, added: false };
            tokenizer.take_piece(&piece, scratch);
            tokenize_anew(tokenizer, &mut sum, scratch);
            let Some(characters) = characters else { return encoding.push_new(scratch) };
            let mut tokens = Vec::new();
            spans(tokenizer, scratch, |_, token, _| tokens.push(token));
            push_spanned(tokenizer, &tokens, &piece, text, characters, encoding);
        });
    }
}

/// Appends the tokens of a piece, each of which stands for characters of that.
fn push_spanned(
    tokenizer: &Tokenizer,
    tokens: &[SpannedToken],
    piece: &Segment<'_>,
    text: &AlignedText,
    characters: &CharacterOffsets,
    encoding: &mut Encoding,
) {
    let trims_unknown = tokenizer.trims_unknown();
    let mut place = CharPosition::new(piece.raw);
    for &(id, span) in tokens {
        let [from, to] = span.map(|index| place.byte_of(index));
        if trims_unknown && Some(id) == tokenizer.unk_id() {
            encoding.push_spaces(spaces(&piece.raw[from..to]));
        }
        let origin = text.origin(piece.start + from..piece.start + to).unwrap_or_default();
        encoding.push_token(&(id, characters.of(origin)), 0, 0);
    }
    encoding.words += usize::from(!tokens.is_empty());
    encoding.next_word += 1;
}

/// Appends the ids of pieces, and what each stands for in the raw text.
struct TakeAligned<'a> {
    tokenizer: &'a Tokenizer,
    cache: &'a mut Cache<SpannedToken>,
    scratch: &'a mut Scratch,
    encoding: &'a mut Encoding,
    text: &'a AlignedText,
    characters: &'a CharacterOffsets,
}

impl TakeSegments for TakeAligned<'_> {
    fn find(&mut self, batch: &mut Batch<true>) {
        self.cache.find(batch);
    }

    fn take(&mut self, piece: Segment<'_>, found: u64) {
        let TakeAligned { tokenizer, cache, scratch, encoding, text, characters } = self;
        cache.with_tokens(tokenizer, scratch, &piece, found, |tokens| {
            push_spanned(tokenizer, tokens, &piece, text, characters, encoding);
        });
    }
}

/// How many characters of a text are before each of its bytes.
pub(super) struct CharacterOffsets {
    /// Where the part begins that they are known of, in bytes and in characters.
    start: Origin,
    /// None if all have one byte.
    offsets: Option<Vec<u32>>,
}

impl CharacterOffsets {
    /// Counts the characters of a part of a text, if that is wanted. `start`: where it begins, in bytes and in
    /// characters.
    pub(super) fn new(part: &str, start: Origin, wanted: bool) -> Self {
        if !wanted || part.is_ascii() {
            return CharacterOffsets { start, offsets: None };
        }
        let mut characters = 0;
        let offsets = part.bytes().map(|byte| {
            let before = characters;
            characters += u32::from(byte & 0xC0 != 0x80);
            before
        });
        let mut offsets: Vec<u32> = offsets.collect();
        offsets.push(characters);
        CharacterOffsets { start, offsets: Some(offsets) }
    }

    /// The characters of a range of bytes.
    pub(super) fn of(&self, (start, end): Origin) -> [u32; 2] {
        [start, end].map(|at| {
            let Some(at) = at.checked_sub(self.start.0) else { return 0 };
            self.start.1 + self.offsets.as_ref().map_or(at, |offsets| offsets[at as usize])
        })
    }
}
