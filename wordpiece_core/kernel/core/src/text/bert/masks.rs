//! The classes of the bytes of a block in BERT's rules that do not depend on options: ASCII, and frequent
//! characters of two and three bytes.

use crate::text::blocks::{BLOCK, Lanes, below, masks_at};

/// The classes of the bytes of a block, with one bit for each byte. Bytes after the end of the text count
/// as spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AsciiMasks {
    /// ASCII letters and digits.
    pub(super) alphanumeric: u64,
    /// Other visible ASCII characters.
    pub(super) other: u64,
    /// Space, tab, line feed and carriage return.
    pub(super) space: u64,
}

impl AsciiMasks {
    #[inline(always)]
    pub(super) fn at(bytes: &[u8], at: usize, end: usize) -> Self {
        let [alphanumeric, visible, space] = masks_at(bytes, at, ascii);
        let inside = below((end - at).min(BLOCK) as u32);
        let (alphanumeric, visible) = (alphanumeric & inside, visible & inside);
        AsciiMasks { alphanumeric, other: visible & !alphanumeric, space: space | !inside }
    }
}

/// The bytes of the block at `at` that are part of letters of two bytes (see [`is_letter_lead`]), up
/// to the first other character that is not ASCII.
#[inline(always)]
pub(super) fn letters_at(bytes: &[u8], at: usize, end: usize) -> u64 {
    let [leads, continuations] = masks_at(bytes, at, letters_of_two);
    (leads | continuations & (leads << 1)) & below((end - at).min(BLOCK) as u32)
}

/// Return true for the first byte of a two-byte character that is part of words with any options:
/// U+00C0 to U+02FF, U+03C0 to U+053F; Latin and Cyrillic letters among others.
#[inline(always)]
pub(super) fn is_letter_lead(byte: u8) -> bool {
    matches!(byte, 0xC3..=0xCB | 0xCF..=0xD4)
}

/// The first bytes of frequent CJK characters in a block, whatever the options are. They have three
/// bytes, all of them in the block; their words are themselves.
pub(super) struct CjkMasks {
    /// Hiragana and katakana, U+3040 to U+30FF, except U+30A0 and U+30FB, which are punctuation.
    pub(super) kana: u64,
    /// U+4E00 to U+9F7F.
    pub(super) ideograph: u64,
    /// U+3001 to U+3003; U+FF08 to U+FF0A and U+FF0C.
    pub(super) punctuation: u64,
}

impl CjkMasks {
    #[inline(always)]
    pub(super) fn at(bytes: &[u8], at: usize, end: usize) -> Self {
        let first = masks_at(bytes, at, cjk_firsts);
        let second = masks_at(bytes, at, cjk_seconds).map(|mask| mask >> 1);
        let third = masks_at(bytes, at, cjk_thirds).map(|mask| mask >> 2);
        let [e3, e4, e5_to_e8, e9, ef] = first;
        let [x80, x81_to_83, x82, x83, to_bd, from_b8, bc] = second;
        let [y81_to_83, ya0, ybb, comma_or_bracket] = third;
        let inside = below(((end - at).min(BLOCK) as u32).saturating_sub(2));
        CjkMasks {
            kana: e3 & x81_to_83 & !(x82 & ya0 | x83 & ybb) & inside,
            ideograph: (e5_to_e8 | e4 & from_b8 | e9 & to_bd) & inside,
            punctuation: (e3 & x80 & y81_to_83 | ef & bc & comma_or_bracket) & inside,
        }
    }
}

/// Return true if a character of [`CjkMasks`] may begin with this byte.
#[inline(always)]
pub(super) fn is_cjk_lead(byte: u8) -> bool {
    matches!(byte, 0xE3..=0xE9 | 0xEF)
}

/// Return the masks of letters and digits, visible characters, and spaces.
#[inline(always)]
fn ascii(v: Lanes) -> [Lanes; 3] {
    let alphanumeric = v.with_bits(0x20).in_range(b'a', b'z') | v.in_range(b'0', b'9');
    let space = v.in_range(b'\t', b'\n') | v.is(b'\r') | v.is(b' ');
    [alphanumeric, v.in_range(b'!', b'~'), space]
}

/// Return the masks of bytes with `is_letter_lead`, and of bytes that continue a character.
#[inline(always)]
fn letters_of_two(v: Lanes) -> [Lanes; 2] {
    [v.in_range(0xC3, 0xCB) | v.in_range(0xCF, 0xD4), v.in_range(0x80, 0xBF)]
}

/// Return the masks of 0xE3, 0xE4, 0xE5 to 0xE8, 0xE9, 0xEF.
#[inline(always)]
fn cjk_firsts(v: Lanes) -> [Lanes; 5] {
    [v.is(0xE3), v.is(0xE4), v.in_range(0xE5, 0xE8), v.is(0xE9), v.is(0xEF)]
}

/// Return the masks of 0x80, 0x81 to 0x83, 0x82, 0x83, 0x80 to 0xBD, 0xB8 to 0xBF, 0xBC.
#[inline(always)]
fn cjk_seconds(v: Lanes) -> [Lanes; 7] {
    let [x80, x82, x83, xbc] = [0x80, 0x82, 0x83, 0xBC].map(|byte| v.is(byte));
    let [x81_to_83, to_bd] = [v.in_range(0x81, 0x83), v.in_range(0x80, 0xBD)];
    [x80, x81_to_83, x82, x83, to_bd, v.in_range(0xB8, 0xBF), xbc]
}

/// Return the masks of 0x81 to 0x83, 0xA0, 0xBB, 0x88 to 0x8A or 0x8C.
#[inline(always)]
fn cjk_thirds(v: Lanes) -> [Lanes; 4] {
    let comma_or_bracket = v.in_range(0x88, 0x8A) | v.is(0x8C);
    [v.in_range(0x81, 0x83), v.is(0xA0), v.is(0xBB), comma_or_bracket]
}
