//! GPT-2's pre-tokenizer: text to pieces, which keep their spaces; nothing is changed.
//!
//! The pieces are the matches of this regular expression, one behind the other:
//!
//! ```text
//! 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//! ```
//!
//! It is one of the patterns in [`patterns`](crate::text::patterns), the oldest one. What is special here
//! is the space that may be put before a text, and the characters that bytes are written as.

use std::sync::LazyLock;

use foldhash::HashMap;

use crate::base::memory;
use crate::text::patterns::Pattern;
use crate::text::segments::{Each, Segment, SegmentSink};

/// GPT-2's rules of text.
///
/// # Examples
///
/// ```
/// use wordpiece_core::text::byte_level::ByteLevel;
///
/// let rules = ByteLevel { add_prefix_space: false };
/// let mut pieces = Vec::new();
/// rules.segments("It's  a 1st try.", |piece| pieces.push(piece.raw.to_string()));
/// assert_eq!(pieces, ["It", "'s", " ", " a", " 1", "st", " try", "."]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteLevel {
    /// Whether a space is put before a text, and behind each special token, if there is none.
    pub add_prefix_space: bool,
}

impl ByteLevel {
    /// Calls `each` with every piece of a text, or of the part of it from a place on, in order.
    ///
    /// # Arguments
    ///
    /// * `text` - The text.
    /// * `each` - What takes the pieces.
    #[inline(always)]
    pub fn segments(&self, text: &str, each: impl FnMut(Segment<'_>)) {
        self.segments_into(text, text.as_bytes(), &mut Each(each));
    }

    /// Gives every piece of a text to `sink` (see
    /// [`PreTokenizer::segments_into`](crate::text::pre_tokenize::PreTokenizer::segments_into)).
    #[inline(always)]
    pub fn segments_into(&self, text: &str, bytes: &[u8], sink: &mut impl SegmentSink) {
        let first = self.first(text);
        if let Some((raw, _)) = &first {
            sink.added(raw);
        }
        let from = first.map_or(0, |(_, end)| end);
        Pattern::GPT2.split(text, bytes, from, sink);
    }

    /// The first piece, if a space is put before it, and where it ends in the text.
    fn first(&self, text: &str) -> Option<(String, usize)> {
        if !self.add_prefix_space || text.is_empty() || text.starts_with(' ') {
            return None;
        }
        let end = Pattern::GPT2.end_behind_space(text);
        let mut first = String::from(' ');
        memory::push_str(&mut first, &text[..end]);
        Some((first, end))
    }
}

/// The character that GPT-2 writes for a byte: the same one if it is visible, else one from U+0100 on.
#[inline]
pub fn byte_character(byte: u8) -> char {
    BYTE_CHARACTERS[byte as usize]
}

/// The byte that GPT-2 writes a character for, if there is one.
pub fn character_byte(c: char) -> Option<u8> {
    static BYTES: LazyLock<HashMap<char, u8>> =
        LazyLock::new(|| (0..=255).map(|byte| (byte_character(byte), byte)).collect());
    BYTES.get(&c).copied()
}

const BYTE_CHARACTERS: [char; 256] = {
    let mut characters = ['\0'; 256];
    let (mut byte, mut others) = (0, 0);
    while byte < 256 {
        let visible = matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
        let code = if visible { byte } else { 256 + others };
        others += !visible as u32;
        characters[byte as usize] = match char::from_u32(code) {
            Some(c) => c,
            None => panic!("every number below 0xD800 is a character"),
        };
        byte += 1;
    }
    characters
};

#[cfg(test)]
mod tests {
    use super::*;
    use wordpiece_testing::Random;

    fn pieces(rules: &ByteLevel, text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        rules.segments(text, |piece| {
            let added = usize::from(piece.added);
            assert!(text[piece.start..].starts_with(&piece.raw[added..]));
            pieces.push(piece.raw.to_string());
        });
        pieces
    }

    #[test]
    fn a_space_is_put_before_a_text() {
        let parts: &[&str] = &[
            "a", "Zq", " ", "  ", "\n", "\t \r\n", "'", "'s", "1", "42", ".", "!?", "\0", "é", "×",
            "日本", "\u{3000}", "\u{a0}", "½", "\u{301}", "word",
        ];
        let mut random = Random::new(16);
        for _ in 0..if cfg!(debug_assertions) { 3_000 } else { 60_000 } {
            let kinds: Vec<&str> =
                (0..1 + random.below(6)).map(|_| *random.choose(parts)).collect();
            let text: String = (0..random.below(90)).map(|_| *random.choose(&kinds)).collect();
            let plain = pieces(&ByteLevel { add_prefix_space: false }, &text);
            let space = if text.is_empty() || text.starts_with(' ') { "" } else { " " };
            let with_space = format!("{space}{text}");
            let expected = pieces(&ByteLevel { add_prefix_space: false }, &with_space);
            assert_eq!(plain.concat(), text);
            assert_eq!(pieces(&ByteLevel { add_prefix_space: true }, &text), expected, "{text:?}");
        }
    }

    #[test]
    fn bytes_have_visible_characters_of_their_own() {
        let mut characters: Vec<char> = (0..=255).map(byte_character).collect();
        assert_eq!([b'a', b' ', b'\n', 0xAD].map(byte_character), ['a', 'Ġ', 'Ċ', 'Ń']);
        characters.sort();
        characters.dedup();
        assert_eq!(characters.len(), 256);
    }
}
