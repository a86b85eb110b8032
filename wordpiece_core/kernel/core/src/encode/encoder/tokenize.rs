//! The cold path: a segment is normalized, and the model tokenizes its words.

use super::Encoder;
use crate::base::error::{Error, give_up};
use crate::base::memory;
use crate::encode::matcher::Token;
use crate::encode::model::ModelScratch;
use crate::text::metaspace::marked_words;
use crate::text::rules::TextRules;

/// The length of a segment, in bytes, from which on memory for its words is asked for at once.
const LONG: usize = 1 << 12;

/// What segments are tokenized in. It is kept, so that memory is asked for only once.
#[derive(Default)]
pub(super) struct Scratch {
    model: ModelScratch,
    /// The words of a segment, one behind the other.
    pub(super) word: String,
    pub(super) tokens: Vec<Token>,
    /// The tokens of one of several words.
    part: Vec<Token>,
    /// Where each word ends in `tokens`, and in `word`.
    pub(super) ends: Vec<(usize, usize)>,
    /// For each byte of the word, the index of the character of the segment that it comes from.
    pub(super) origin: Vec<u32>,
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

impl Encoder {
    /// Puts the mark of words before a word.
    #[inline]
    pub(super) fn put_mark(&self, word: &mut String) {
        if let Some(mark) = self.word_mark
            && !word.is_empty()
            && !word.starts_with(mark)
        {
            word.insert(0, mark);
        }
    }

    /// Writes the tokens of a segment into `scratch.tokens`, and its words into `scratch.word`.
    pub(super) fn tokenize(&self, raw: &str, scratch: &mut Scratch) {
        let model = &self.options.model;
        self.tokenize_by(raw, scratch, |word, scratch, tokens| model.tokens(word, scratch, tokens));
    }

    /// The same, if `tokenize` tokenizes the words.
    #[inline]
    pub(super) fn tokenize_by(
        &self,
        raw: &str,
        scratch: &mut Scratch,
        mut tokenize: impl FnMut(&str, &mut ModelScratch, &mut Vec<Token>),
    ) {
        let Scratch { model, word, tokens, part, ends, .. } = scratch;
        if raw.len() > LONG {
            memory::reserve_text(word, 3 * raw.len()); // of Hangul, accents are three times as long
        }
        self.options.text.normalize(raw, word);
        self.put_mark(word);
        if word.len() > MOST_BYTES && !self.is_wordpiece() {
            give_up(too_long(word));
        }
        ends.clear();
        let first = self.first_word(word);
        tokenize(&word[..first], model, tokens);
        ends.extend((first > 0).then_some((tokens.len(), first)));
        let mut at = first;
        while at < word.len() {
            let end = at + self.first_word(&word[at..]);
            tokenize(&word[at..end], model, part);
            memory::extend_from_slice(tokens, part);
            memory::push(ends, (tokens.len(), end));
            at = end;
        }
    }

    /// The length of the first of the words that a segment has become.
    #[inline]
    fn first_word(&self, words: &str) -> usize {
        match self.options.text {
            TextRules::Bert(_) | TextRules::Composed(_) => words.len(),
            TextRules::Metaspace(_) => marked_words(words).next().map_or(0, str::len),
        }
    }
}
