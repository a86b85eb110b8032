//! What tokens stand for: which characters of the raw text.

use super::Encoder;
use super::cut::Scratch;
use super::encoding::Encoding;
use crate::encode::matcher::Token;
use crate::text::byte_level::byte_character;
use crate::text::segments::Segment;

/// Appends the tokens of a segment that was cut, with their spans.
pub(super) fn push_with_spans(
    encoder: &Encoder,
    segment: &Segment<'_>,
    first: u32,
    scratch: &mut Scratch,
    encoding: &mut Encoding,
) {
    let begins = first == 0;
    spans(encoder, segment, begins, scratch, |word, token| {
        encoding.push_token(&token, first, word)
    });
    encoding.words += scratch.words_with_tokens();
    encoding.next_word += scratch.ends.len() as u32;
}

/// Calls `each` with every token of a segment that was cut: the number of its word, its id, and the
/// characters that it stands for. `begins`: whether the segment is at the beginning of the text.
#[cold]
pub(super) fn spans(
    encoder: &Encoder,
    segment: &Segment<'_>,
    begins: bool,
    scratch: &mut Scratch,
    mut each: impl FnMut(u32, (u32, [u32; 2])),
) {
    let Scratch { word, tokens, ends, origin, .. } = scratch;
    encoder.find_origin(segment, word, origin);
    let (mut next, mut from, mut last) = (0, 0usize, [0, 0]);
    for (number, &(end, to)) in (0..).zip(ends.iter()) {
        let to = if encoder.options.model.is_of_bytes() { origin.len() } else { to };
        let mut at = from;
        for &Token { id, length } in &tokens[next..end] {
            if length > 0 {
                // A length may be cut to 32 bits, but then the token covers the word.
                at = at.min(to - 1);
                let until = at.saturating_add(length as usize).min(to);
                last = [origin[at], origin[until - 1] + 1];
                if let Some(keeps_first) = encoder.trim {
                    let [leading, trailing] = encoder.options.model.spaces(id);
                    let keep = u32::from(keeps_first && begins && last[0] == 0);
                    trim(&mut last, leading.saturating_sub(keep), trailing);
                }
                at = until;
            }
            each(number, (id, last));
        }
        (next, from) = (end, to);
    }
}

impl Encoder {
    /// Where, in a text, the span of a special token begins that is at `start`, with the white space
    /// before it from `white` on, if it takes that.
    pub(super) fn special_start(&self, text: &str, white: usize, start: usize) -> usize {
        let Some(keeps_first) = self.trim.filter(|_| white < start) else { return white };
        // All but one space at the beginning of a text are left out.
        let kept = usize::from(keeps_first && white == 0);
        let spaces = text[white..start].char_indices().rev().take(kept);
        spaces.last().map_or(start, |(at, _)| white + at)
    }
}

/// Takes spaces off both ends of a span, as Hugging Face tokenizers does.
fn trim([start, end]: &mut [u32; 2], leading: u32, trailing: u32) {
    *start = (*start + leading).min(*end);
    if *end >= trailing {
        *end = (*end - trailing).max(*start);
    }
}

impl Encoder {
    /// Writes for each byte of the words of a segment, or for each byte of the characters that stand
    /// for these, the index of the character of the segment that it comes from. A mark comes from the
    /// character behind it.
    fn find_origin(&self, segment: &Segment<'_>, word: &str, origin: &mut Vec<u32>) {
        let of_bytes = self.options.model.is_of_bytes();
        let width = |c: char| match of_bytes {
            true => c.encode_utf8(&mut [0; 4]).bytes().map(|b| byte_character(b).len_utf8()).sum(),
            false => c.len_utf8(),
        };
        origin.clear();
        // A space that is not in the text has the place of what is behind it.
        let place = |index: usize| (index as u32).saturating_sub(segment.added as u32);
        self.options.text.each_normalized(segment.raw, |c, index| {
            if origin.is_empty() && self.word_mark.is_some_and(|mark| mark != c) {
                origin.resize(self.word_mark.map_or(0, width), place(index));
            }
            origin.resize(origin.len() + width(c), place(index));
        });
        debug_assert!(of_bytes || origin.len() == word.len());
    }
}

/// A position in a text, in bytes and in characters. It moves forward only. The text has fewer than
/// 2^31 bytes (see `SessionOptions::spans`).
pub(super) struct CharPosition<'a> {
    pub(super) text: &'a str,
    byte: usize,
    character: u32,
}

impl<'a> CharPosition<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        CharPosition { text, byte: 0, character: 0 }
    }

    /// Moves to a byte offset; returns the number of characters before it.
    #[inline]
    pub(super) fn move_to(&mut self, byte: usize) -> u32 {
        self.character += self.text[self.byte..byte].chars().count() as u32;
        self.byte = byte;
        self.character
    }
}
