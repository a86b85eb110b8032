//! The cold path: a segment is normalized, and the model tokenizes its words.

use super::Tokenizer;
use super::cache::TakenPieces;
use super::composed::CharacterOffsets;
use crate::base::error::{Error, give_up};
use crate::encode::model::ModelScratch;
use crate::encode::wordpiece::Token;
use crate::text::byte_level::byte_character;
use crate::text::composed::Composed;
use crate::text::rules::TextRules;
use crate::text::segments::Segment;

/// The length of a segment, in bytes, from which on memory for its words is asked for at once.
const LONG: usize = 1 << 12;

/// What segments are tokenized in. It is kept, so that memory is asked for only once.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) model: ModelScratch,
    pub(super) pieces: TakenPieces,
    /// The words of a segment, one behind the other.
    pub(super) word: String,
    pub(super) tokens: Vec<Token>,
    /// The tokens of one of several words.
    part: Vec<Token>,
    /// Where each word ends in `tokens`, and in `word`.
    pub(super) ends: Vec<(usize, usize)>,
    /// Whether `origin` is wanted.
    pub(super) spans: bool,
    /// For each byte of the words, or of the characters that stand for these, the characters of the segment that
    /// it comes from.
    pub(super) origin: Vec<[u32; 2]>,
}

impl Scratch {
    /// How many words of the segment that was tokenized have tokens.
    pub(super) fn words_with_tokens(&self) -> usize {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|&(end, _)| end));
        self.ends.iter().zip(starts).filter(|((end, _), start)| end > start).count()
    }
}

/// The most bytes of a text, as long as positions in it are of 32 bits.
pub(crate) const MOST_BYTES: usize = if cfg!(test) { 1 << 23 } else { i32::MAX as usize };

/// The error of a text that is longer now.
pub(super) fn too_long(text: &str) -> Error {
    Error::data(format!("a text has {} bytes once it is normalized, over {MOST_BYTES}", text.len()))
}

impl Tokenizer {
    /// Puts the mark of words before a word.
    #[inline]
    fn put_mark(&self, word: &mut String) {
        if let Some(mark) = self.word_mark
            && !word.is_empty()
            && !word.starts_with(mark)
        {
            word.insert(0, mark);
        }
    }

    /// Tokenizes the words of a segment.
    pub(super) fn tokenize(&self, segment: &Segment<'_>, scratch: &mut Scratch) {
        self.find_words(segment, scratch);
        let model = &self.model;
        self.tokenize_words(scratch, |word, scratch, tokens| model.tokens(word, scratch, tokens));
    }

    /// Tokenizes a segment for the cache of ids: if there are superwords, by the merges of words.
    pub(super) fn tokenize_for_ids(&self, segment: &Segment<'_>, scratch: &mut Scratch) {
        let Some(superwords) = &self.superwords else { return self.tokenize(segment, scratch) };
        self.find_words(segment, scratch);
        self.tokenize_words(scratch, |word, scratch, tokens| {
            superwords.tokens(word, &mut scratch.bpe, tokens);
        });
    }

    /// Writes the words of a segment into the scratch.
    pub(super) fn find_words(&self, segment: &Segment<'_>, scratch: &mut Scratch) {
        match &self.text {
            TextRules::Composed(rules) if self.splits_at_spaces => {
                find_pieces(rules, segment.raw, scratch);
            }
            rules => {
                let word = &mut scratch.word;
                if segment.raw.len() > LONG {
                    // Of Hangul, accents are three times as long.
                    word.reserve(3 * segment.raw.len());
                }
                rules.normalize(segment.raw, word);
                self.put_mark(word);
                self.take_word(segment, scratch);
            }
        }
    }

    /// Writes a piece of composed rules into the scratch: it is a word already.
    pub(super) fn take_piece(&self, piece: &Segment<'_>, scratch: &mut Scratch) {
        scratch.word.clear();
        scratch.word.push_str(piece.raw);
        self.take_word(piece, scratch);
    }

    fn take_word(&self, segment: &Segment<'_>, scratch: &mut Scratch) {
        let Scratch { word, ends, origin, spans, .. } = scratch;
        ends.clear();
        ends.extend((!word.is_empty()).then_some((0, word.len())));
        if *spans {
            self.find_origin(segment, word, origin);
        }
    }

    /// Tokenizes the words in the scratch.
    #[inline]
    pub(super) fn tokenize_words(
        &self,
        scratch: &mut Scratch,
        mut tokenize: impl FnMut(&str, &mut ModelScratch, &mut Vec<Token>),
    ) {
        let Scratch { model, word, tokens, part, ends, .. } = scratch;
        if word.len() > MOST_BYTES && !self.is_wordpiece() {
            give_up(too_long(word));
        }
        let mut start = 0;
        for (until, end) in ends {
            if start == 0 {
                tokenize(&word[..*end], model, tokens);
            } else {
                tokenize(&word[start..*end], model, part);
                tokens.extend_from_slice(part);
            }
            (*until, start) = (tokens.len(), *end);
        }
        if start == 0 {
            tokens.clear();
        }
    }

    /// Writes the characters of a segment that each byte of its word, or of the characters that stand for these
    /// bytes, comes from. A mark that is not in the text comes from the character behind it.
    #[cold]
    fn find_origin(&self, segment: &Segment<'_>, word: &str, origin: &mut Vec<[u32; 2]>) {
        let of_bytes = self.model.is_of_bytes();
        let width = |c: char| match of_bytes {
            true => c.encode_utf8(&mut [0; 4]).bytes().map(|b| byte_character(b).len_utf8()).sum(),
            false => c.len_utf8(),
        };
        origin.clear();
        let mut begins_added = segment.added;
        let place = |index: usize| {
            let index = (index as u32).saturating_sub(segment.added as u32);
            [index, index + 1]
        };
        self.text.each_normalized(segment.raw, |c, index| {
            if index > 0 && std::mem::take(&mut begins_added) {
                origin.fill(place(index));
            }
            if origin.is_empty() && self.word_mark.is_some_and(|mark| mark != c) {
                origin.resize(self.word_mark.map_or(0, width), place(index));
            }
            origin.resize(origin.len() + width(c), place(index));
        });
        debug_assert!(of_bytes || origin.len() == word.len());
    }
}

/// Tokenizes the words in the scratch without a cache, because the result may depend on the sum of the
/// scores before them.
#[inline]
pub(super) fn tokenize_anew(tokenizer: &Tokenizer, sum: &mut f32, scratch: &mut Scratch) {
    let model = &tokenizer.model;
    tokenizer.tokenize_words(scratch, |word, scratch, tokens| match model.rounding() {
        Some(unigram) => unigram.rounded_tokens(word, sum, &mut scratch.unigram, tokens),
        None => model.tokens(word, scratch, tokens),
    });
}

/// Writes the pieces of a segment that is split before it is normalized into the scratch.
fn find_pieces(rules: &Composed, raw: &str, scratch: &mut Scratch) {
    let Scratch { word, ends, origin, spans, .. } = scratch;
    let pieces = rules.segment_pieces(raw, *spans);
    word.clear();
    word.push_str(pieces.text.text());
    ends.clear();
    ends.extend(pieces.ranges.iter().map(|range| (0, range.end)));
    if *spans {
        let characters = CharacterOffsets::new(raw, (0, 0), true);
        origin.clear();
        let origins = pieces.text.origins(0..word.len());
        origin.extend(origins.iter().map(|&origin| characters.of(origin)));
    }
}
