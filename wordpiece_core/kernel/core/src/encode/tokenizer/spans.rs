//! What tokens stand for: which characters of the raw text.

use super::Tokenizer;
use super::encoding::Encoding;
use super::tokenize::Scratch;
use super::trimming::spaces;
use crate::encode::model::Model;
use crate::encode::wordpiece::Token;

/// Appends an added token. `spaces`: those that it begins with, and ends with; `span`: if spans are wanted.
pub(super) fn push_added(
    tokenizer: &Tokenizer,
    id: u32,
    spaces: impl FnOnce() -> [u32; 2],
    span: Option<[u32; 2]>,
    encoding: &mut Encoding,
) {
    encoding.special_tokens += tokenizer.special.contains(&id) as usize;
    let Some(span) = span else {
        return encoding.push(id);
    };
    if tokenizer.trimming.is_some() {
        // The white space that belongs to it counts, too.
        encoding.push_spaces(spaces());
    }
    encoding.push_token(&(id, span), 0, 0);
    encoding.next_word += 1;
}

/// Appends the tokens of a segment that was tokenized, with their spans.
pub(super) fn push_with_spans(
    tokenizer: &Tokenizer,
    first: u32,
    scratch: &Scratch,
    encoding: &mut Encoding,
) {
    let trims_unknown = tokenizer.trims_unknown();
    spans(tokenizer, scratch, |word, token, text| {
        if trims_unknown && Some(token.0) == tokenizer.unk_id() {
            encoding.push_spaces(spaces(text));
        }
        encoding.push_token(&token, first, word);
    });
    encoding.words += scratch.words_with_tokens();
    encoding.next_word += scratch.ends.len() as u32;
}

/// Calls `each` with every token of a segment that was tokenized: the number of its word; its id, and the
/// characters that it stands for; and, of Unigram, what it stands for in the normalized word.
#[cold]
pub(super) fn spans(
    tokenizer: &Tokenizer,
    scratch: &Scratch,
    mut each: impl FnMut(u32, (u32, [u32; 2]), &str),
) {
    let Scratch { word, tokens, ends, origin, .. } = scratch;
    let of_bytes = tokenizer.model.is_of_bytes();
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
            each(number, (id, last), text);
        }
        (next, from) = (end, to);
    }
}

impl Tokenizer {
    /// Whether spans depend on more than the segment: on what is before it, or on the text of unknown
    /// tokens.
    pub(super) fn spans_depend_on_text(&self) -> bool {
        self.model.rounding().is_some() || self.trims_unknown()
    }

    /// Whether offsets of unknown tokens are trimmed by their text: Hugging Face's Unigram keeps it as
    /// the token's string.
    pub(super) fn trims_unknown(&self) -> bool {
        self.trimming.is_some() && matches!(self.model, Model::Unigram(_))
    }
}

/// A position in a text, in bytes and in characters. The text has fewer than 2^31 bytes if spans are
/// wanted.
pub(super) struct CharPosition<'a> {
    pub(super) text: &'a str,
    byte: usize,
    character: u32,
    /// The position before the last move: it is mostly one of two that is moved, so that no text is
    /// counted again and again where tokens share white space.
    other: (usize, u32),
}

impl<'a> CharPosition<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        CharPosition { text, byte: 0, character: 0, other: (0, 0) }
    }

    /// Moves to a byte offset, and returns the number of characters before it. It may be before that of the
    /// last call: an added token may begin in white space that the one before it has taken.
    #[inline]
    pub(super) fn move_to(&mut self, byte: usize) -> u32 {
        let here = (self.byte, self.character);
        let jumps = byte < self.byte || (self.byte..=byte).contains(&self.other.0);
        if jumps {
            (self.byte, self.character) = self.other;
        }
        if byte < self.byte {
            self.character -= self.text[byte..self.byte].chars().count() as u32;
        } else {
            self.character += self.text[self.byte..byte].chars().count() as u32;
        }
        self.byte = byte;
        if jumps || self.other.0 < byte {
            self.other = here;
        }
        self.character
    }

    /// Moves to a character, and returns the number of bytes before it.
    pub(super) fn byte_of(&mut self, character: u32) -> usize {
        let (before, behind) = self.text.split_at(self.byte);
        let moved = character.abs_diff(self.character) as usize;
        if character < self.character {
            self.byte -= before.chars().rev().take(moved).map(char::len_utf8).sum::<usize>();
        } else {
            self.byte += behind.chars().take(moved).map(char::len_utf8).sum::<usize>();
        }
        self.character = character;
        self.byte
    }
}
