//! GPT-2's pre-tokenizer: text to pieces, which keep their spaces; nothing is changed.
//!
//! The pieces are the matches of this regular expression, one behind the other:
//!
//! ```text
//! 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//! ```
//!
//! So a piece is a run of letters, of numbers or of other visible characters, with one space before
//! it; or the white space before that, of which the last character belongs to what follows if it is a
//! space, and is a piece by itself if not. Only at the beginning of a piece, `'s` and its like are
//! pieces. ASCII, and most Latin and Cyrillic letters, are cut 64 bytes at once, as in
//! [`pre_tokenize`](crate::text::pre_tokenize).
//!
//! The categories are those of Unicode 16, as in Hugging Face tokenizers.

use std::sync::LazyLock;

use foldhash::HashMap;
use unicode_general_category::{GeneralCategory, get_general_category};

use crate::base::memory;
use crate::text::blocks::{BLOCK, Lanes, below, masks_at};
use crate::text::segments::{BlockSegments, Each, Segment, SegmentSink};
use crate::text::unicode::is_whitespace;

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

/// What a character is to the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Letter,
    Number,
    Space,
    Other,
}

/// The class of every character.
static CLASSES: LazyLock<Box<[Class]>> = LazyLock::new(|| (0..0x11_0000).map(class_of).collect());

fn class_of(code: u32) -> Class {
    use GeneralCategory::*;
    let Some(c) = char::from_u32(code) else {
        return Class::Other; // a surrogate: never in a string
    };
    match get_general_category(c) {
        _ if is_whitespace(c) => Class::Space,
        UppercaseLetter | LowercaseLetter | TitlecaseLetter | ModifierLetter | OtherLetter => {
            Class::Letter
        }
        DecimalNumber | LetterNumber | OtherNumber => Class::Number,
        _ => Class::Other,
    }
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
        split(text, bytes, from, sink);
    }

    /// The first piece, if a space is put before it, and where it ends in the text.
    fn first(&self, text: &str) -> Option<(String, usize)> {
        if !self.add_prefix_space || text.is_empty() || text.starts_with(' ') {
            return None;
        }
        let end = match class(first_char(text)) {
            Class::Space => white_space_end(text, 0, true),
            of_run => run_end(text, 0, of_run),
        };
        let mut first = String::from(' ');
        memory::push_str(&mut first, &text[..end]);
        Some((first, end))
    }
}

#[inline(always)]
fn class(c: char) -> Class {
    CLASSES[c as usize]
}

#[inline(always)]
fn first_char(text: &str) -> char {
    text.chars().next().unwrap_or('\0')
}

#[inline(always)]
fn split(text: &str, bytes: &[u8], from: usize, sink: &mut impl SegmentSink) {
    let mut at = from;
    while at < text.len() {
        let after_space = at + (bytes[at] == b' ') as usize;
        let first = if after_space < text.len() { bytes[after_space] } else { b' ' };
        if first.is_ascii() || is_letter_lead(first) {
            let block = block(bytes, at, text.len());
            sink.block(bytes, at, &block);
            at += block.done as usize;
            if at >= text.len() {
                return;
            }
            if block.done > 0 && block.stop >= BLOCK as u32 - 1 {
                continue;
            }
        }
        let end = piece_end(text, at);
        sink.segment(bytes, at, end);
        at = end;
    }
}

/// Where the piece that begins at `at` ends.
fn piece_end(text: &str, at: usize) -> usize {
    let c = first_char(&text[at..]);
    match class(c) {
        Class::Other if c == '\'' && contraction(&text.as_bytes()[at..]) > 0 => {
            at + contraction(&text.as_bytes()[at..])
        }
        Class::Space if c == ' ' => match text[at + 1..].chars().next().map(class) {
            Some(Class::Space) => white_space_end(text, at, false),
            Some(of_run) => run_end(text, at + 1, of_run),
            None => at + 1,
        },
        Class::Space => white_space_end(text, at, false),
        of_run => run_end(text, at, of_run),
    }
}

/// The length of the `'s`, `'ll` or the like that the bytes begin with; 0 if there is none.
#[inline]
fn contraction(bytes: &[u8]) -> usize {
    match bytes {
        [b'\'', b's' | b't' | b'm' | b'd', ..] => 2,
        [b'\'', b'r' | b'v', b'e', ..] | [b'\'', b'l', b'l', ..] => 3,
        _ => 0,
    }
}

/// Where the characters of a class end that begin at `at`.
fn run_end(text: &str, at: usize, of_run: Class) -> usize {
    let mut places = text[at..].char_indices();
    places.find(|&(_, c)| class(c) != of_run).map_or(text.len(), |(end, _)| at + end)
}

/// Where the piece of white space ends that begins at `at`: before its last character if something
/// else follows. `is_more`: more white space is before it, so that the piece may end at `at`.
fn white_space_end(text: &str, at: usize, is_more: bool) -> usize {
    let end = run_end(text, at, Class::Space);
    let last = text[at..end].chars().next_back().map_or(0, char::len_utf8);
    if end == text.len() || end - last == at && !is_more { end } else { end - last }
}

/// Whether this is the first byte of two that are a letter. Of those with 0xC3, `×` and `÷` are none.
#[inline(always)]
fn is_letter_lead(byte: u8) -> bool {
    matches!(byte, 0xC3..=0xCA | 0xD0 | 0xD1 | 0xD3)
}

/// The pieces in the block at byte `at`, where a piece begins. `end`: of the text.
#[inline(always)]
fn block(bytes: &[u8], at: usize, end: usize) -> BlockSegments {
    let [mut letter, number, white, space, apostrophe, mut high] = masks_at(bytes, at, ascii);
    let inside = below((end - at).min(BLOCK) as u32);
    if high & inside != 0 {
        let letters = letters_at(bytes, at) & inside;
        (letter, high) = (letter | letters, high & !letters);
    }
    let stop = (high | !inside).trailing_zeros();
    let known = below(stop);
    let [letter, number, white] = [letter, number, white].map(|mask| mask & known);
    let other = known & !(letter | number | white);
    let first_of = |mask: u64| mask & !(mask << 1);
    let runs = first_of(letter) | first_of(number) | first_of(other);
    // What follows the last character that is known may be white space too.
    let last_white = white & !(white >> 1) & (known >> 1);
    let mut starts = runs & !(space << 1) | first_of(white) | last_white;
    let mut candidates = starts & apostrophe & (letter >> 1);
    while candidates != 0 {
        let place = candidates.trailing_zeros();
        candidates &= candidates - 1;
        let length = contraction(&bytes[at + place as usize..end]) as u32;
        if length > 0 {
            starts &= !(2 << place);
            starts |= letter & 1u64.checked_shl(place + length).unwrap_or(0);
        }
    }
    // The end of the last piece is not known, unless the text ends there.
    let is_last = at + stop as usize == end && stop < BLOCK as u32;
    let done = if is_last { stop } else { starts.checked_ilog2().unwrap_or(0) };
    let ends = (starts & !1 | 1u64.checked_shl(done).unwrap_or(0)) & below(done + 1) & !1;
    let starts = starts & below(done);
    let alone = starts & ends >> 1;
    BlockSegments {
        words: starts & !alone,
        ends: ends & !(alone << 1),
        alone,
        cjk_alone: 0,
        done,
        stop,
    }
}

/// The bytes of the block at `at` that are those of letters of two bytes (see [`is_letter_lead`]),
/// both in the block.
#[inline(always)]
fn letters_at(bytes: &[u8], at: usize) -> u64 {
    let [leads, c3, signs] = masks_at(bytes, at, letters_of_two);
    let leads = leads & !(c3 & signs >> 1) & below(BLOCK as u32 - 1);
    leads | leads << 1
}

/// Which bytes are ASCII letters, digits, ASCII white space, spaces, apostrophes, not ASCII.
#[inline(always)]
fn ascii(v: Lanes) -> [Lanes; 6] {
    let letter = v.with_bits(0x20).in_range(b'a', b'z');
    let space = v.is(b' ');
    let white = space | v.in_range(b'\t', b'\r');
    [letter, v.in_range(b'0', b'9'), white, space, v.is(b'\''), v.in_range(0x80, 0xFF)]
}

/// Which bytes are those that `is_letter_lead`, are 0xC3, are 0x97 or 0xB7.
#[inline(always)]
fn letters_of_two(v: Lanes) -> [Lanes; 3] {
    let cyrillic = v.in_range(0xD0, 0xD1) | v.is(0xD3);
    [v.in_range(0xC3, 0xCA) | cyrillic, v.is(0xC3), v.is(0x97) | v.is(0xB7)]
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
    use crate::count::segment_counts::SegmentCounts;
    use wordpiece_testing::Random;

    const RULES: ByteLevel = ByteLevel { add_prefix_space: false };

    fn pieces(rules: &ByteLevel, text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        rules.segments(text, |piece| {
            let added = usize::from(piece.added);
            assert!(text[piece.start..].starts_with(&piece.raw[added..]));
            pieces.push(piece.raw.to_string());
        });
        pieces
    }

    /// The pieces by their definition, one by one.
    fn plain_pieces(text: &str) -> Vec<&str> {
        let (mut pieces, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let end = piece_end(text, at);
            pieces.push(&text[at..end]);
            at = end;
        }
        pieces
    }

    #[test]
    fn letters_of_two_bytes_are_letters() {
        let is_letter = |c: char| {
            let mut bytes = [0; 2];
            c.encode_utf8(&mut bytes);
            is_letter_lead(bytes[0]) && !matches!(c, '×' | '÷')
        };
        let letters: Vec<char> = ('\u{80}'..='\u{7FF}').filter(|&c| is_letter(c)).collect();
        assert_eq!(letters.len(), 11 * 64 - 2);
        assert!(letters.iter().all(|&c| class(c) == Class::Letter));
    }

    #[test]
    fn pieces_are_cut_at_every_place_in_a_block() {
        let parts: &[&str] = &[
            "a", "Zq", " ", "  ", "\n", "\t \r\n", "'", "'s", "'re", "'ll", "'l", "'v", "1", "42",
            ".", "!?", "\0", "\u{b}", "é", "×", "ß÷", "ж", "日本", "\u{3000}", "\u{a0}", "½", "٣",
            "\u{301}", "ʰ", "’", "🙂", "word", "the", "\u{85}",
        ];
        let long = ["x".repeat(70), " ".repeat(70), "é".repeat(40), "-".repeat(70)];
        let mut random = Random::new(16);
        let choose =
            |random: &mut Random, below: usize| *random.choose(&(0..below).collect::<Vec<_>>());
        for _ in 0..if cfg!(debug_assertions) { 3_000 } else { 60_000 } {
            let kinds = 1 + choose(&mut random, parts.len());
            let number = choose(&mut random, 90);
            let mut text: String = (0..number).map(|_| parts[choose(&mut random, kinds)]).collect();
            if choose(&mut random, 8) == 0 {
                text.push_str(&long[choose(&mut random, long.len())]);
                text.push_str(parts[choose(&mut random, parts.len())]);
            }
            let plain = plain_pieces(&text);
            assert_eq!(pieces(&RULES, &text), plain, "{text:?}");
            let prefixed = ByteLevel { add_prefix_space: true };
            let with_space = if text.is_empty() || text.starts_with(' ') {
                text.clone()
            } else {
                format!(" {text}")
            };
            assert_eq!(pieces(&prefixed, &text), plain_pieces(&with_space), "{text:?}");
            check_counts(&text, &plain);
        }
    }

    fn check_counts(text: &str, plain: &[&str]) {
        let mut counts = SegmentCounts::default();
        let behind = text.to_string() + "s x'";
        RULES.segments_into(text, behind.as_bytes(), &mut counts);
        let mut found = Vec::new();
        counts.for_each(|piece, count| (0..count).for_each(|_| found.push(piece.to_string())));
        found.sort();
        let mut plain = plain.to_vec();
        plain.sort();
        assert_eq!(found, plain, "{text:?}");
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
