//! Segments to tokens without a cache: a segment is normalized, and the model tokenizes its words.

use super::Tokenizer;
use super::plan::Plan;
use crate::base::error::{Error, give_up};
use crate::encode::model::{Model, ModelScratch};
use crate::encode::vocabulary::Token;
use crate::text::byte_level::byte_character;
use crate::text::composed::{Composed, SpaceSplitter};
use crate::text::marks::SPACE_MARK;
use crate::text::rules::TextRules;
use crate::text::segments::Segment;

/// The length of a segment, in bytes, from which on memory for its words is reserved.
const LONG: usize = 1 << 12;

/// Scratch memory for tokenizing segments, kept to avoid allocations.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) model: ModelScratch,
    pub(super) pieces: TakenPieces,
    /// The concatenated words of a segment.
    pub(super) word: String,
    pub(super) tokens: Vec<Token>,
    /// The tokens of one of several words.
    part: Vec<Token>,
    /// The end of each word in `tokens`, and in `word`.
    pub(super) ends: Vec<(usize, usize)>,
    /// True to fill `origin`.
    pub(super) spans: bool,
    /// For each byte of the words, or of GPT-2's characters for these bytes, the range of bytes of the segment
    /// that it comes from.
    pub(super) origin: Vec<[u32; 2]>,
}

/// Pieces of several words, whose words are looked up.
#[derive(Default)]
pub(super) struct TakenPieces {
    /// For each word of the batch, true if a piece begins with it.
    pub(super) begins: Vec<bool>,
    /// Index of the first token of each piece in the batch.
    pub(super) starts: Vec<usize>,
    /// Index of the first token of the last piece.
    pub(super) last: usize,
}

impl Scratch {
    /// Return the number of words that have tokens.
    pub(super) fn words_with_tokens(&self) -> usize {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|&(end, _)| end));
        self.ends.iter().zip(starts).filter(|((end, _), start)| end > start).count()
    }
}

/// The most bytes of a text with 32-bit offsets.
pub(crate) const MOST_BYTES: usize = if cfg!(test) { 1 << 23 } else { i32::MAX as usize };

/// Return the error for a text that is too long after normalization.
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

    /// Write the words of a segment into the scratch.
    pub(super) fn find_words(&self, segment: &Segment<'_>, scratch: &mut Scratch) {
        match (&self.plan, &self.text) {
            (Plan::Spaces(splitter), TextRules::Composed(rules)) => {
                find_pieces(splitter, rules, segment.raw, scratch);
            }
            (Plan::Marks(_), _) => {
                scratch.word.clear();
                let mark = |c| if c == ' ' { SPACE_MARK } else { c };
                scratch.word.extend(segment.raw.chars().map(mark));
                self.take_word(segment, scratch);
            }
            (_, rules) => {
                let word = &mut scratch.word;
                if segment.raw.len() > LONG {
                    word.reserve(3 * segment.raw.len()); // decomposed Hangul is three times as long
                }
                rules.normalize(segment.raw, word);
                self.put_mark(word);
                self.take_word(segment, scratch);
            }
        }
    }

    /// Write a piece, which is one word already, into the scratch.
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

    /// Write the origin of each byte of the word of a segment: the bytes of the character that it comes from. An
    /// added mark has the origin of the character after it.
    #[cold]
    fn find_origin(&self, segment: &Segment<'_>, word: &str, origin: &mut Vec<[u32; 2]>) {
        let of_bytes = self.model.is_of_bytes();
        let width = |c: char| match of_bytes {
            true => c.encode_utf8(&mut [0; 4]).bytes().map(|b| byte_character(b).len_utf8()).sum(),
            false => c.len_utf8(),
        };
        let mut begins_added = segment.added;
        let (added, text) = segment.raw.split_at(usize::from(segment.added)); // a space
        let mut starts: Vec<u32> = text.char_indices().map(|(at, _)| at as u32).collect();
        // An added space may be all of a segment: its origin is the character after it.
        starts.extend([text.len() as u32, text.len() as u32 + 1]);
        let place = |index: usize| {
            let index = index.saturating_sub(added.len());
            [starts[index], starts[index + 1]]
        };
        origin.clear();
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

    /// Tokenize the words in the scratch without a cache, because the result may depend on the sum of earlier scores.
    #[inline]
    pub(super) fn tokenize_anew(&self, sum: &mut f32, scratch: &mut Scratch) {
        let model = &self.model;
        self.tokenize_words(scratch, |word, scratch, tokens| match model.rounding() {
            Some(unigram) => unigram.rounded_tokens(word, sum, &mut scratch.unigram, tokens),
            None => model.tokens(word, scratch, tokens),
        });
    }

    /// Call `each` with every token of a segment that was tokenized: the index of its word, its id, its range of
    /// bytes in the segment, and, for Unigram, its text in the normalized word.
    #[cold]
    pub(super) fn each_span(
        &self,
        scratch: &Scratch,
        mut each: impl FnMut(u32, u32, [u32; 2], &str),
    ) {
        let Scratch { word, tokens, ends, origin, .. } = scratch;
        let of_bytes = self.model.is_of_bytes();
        let (mut next, mut from, mut last, mut text) = (0, 0usize, [0, 0], "");
        for (number, &(end, to)) in (0..).zip(ends.iter()) {
            let to = if of_bytes { origin.len() } else { to };
            let mut at = from;
            for &Token { id, length } in &tokens[next..end] {
                if length > 0 {
                    // A length may be limited to 32 bits, but then the token covers the word.
                    at = at.min(to - 1);
                    let until = at.saturating_add(length as usize).min(to);
                    last = [origin[at][0], origin[until - 1][1]];
                    text = word.get(at..until).unwrap_or_default();
                    at = until;
                }
                each(number, id, last, text);
            }
            (next, from) = (end, to);
        }
    }

    /// Return true if spans depend on more than the segment: on earlier segments, or on the text of unknown tokens.
    pub(super) fn spans_depend_on_text(&self) -> bool {
        self.model.rounding().is_some() || self.trims_unknown()
    }

    /// Return true if offsets of unknown tokens are trimmed by their text: Hugging Face's Unigram keeps it as the
    /// token's string.
    pub(super) fn trims_unknown(&self) -> bool {
        self.trimming.is_some() && matches!(self.model, Model::Unigram(_))
    }
}

/// Write the pieces of a segment of raw text into the scratch.
fn find_pieces(splitter: &SpaceSplitter, rules: &Composed, raw: &str, scratch: &mut Scratch) {
    let Scratch { word, ends, origin, spans, .. } = scratch;
    let pieces = splitter.pieces(rules, raw, *spans);
    word.clear();
    word.push_str(pieces.text.text());
    ends.clear();
    ends.extend(pieces.ranges.iter().map(|range| (0, range.end)));
    if *spans {
        origin.clear();
        let origins = pieces.text.origins(0..word.len());
        origin.extend(origins.iter().map(|&(from, to)| [from, to]));
    }
}
