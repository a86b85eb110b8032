//! What the bytes of a block are to BERT's rules, whatever the options are: the classes of ASCII, and
//! frequent characters of two and three bytes.

use crate::text::blocks::{BLOCK, below, masks_at};

/// What the bytes of a block are, with one bit for each byte. Bytes behind the end of the text count
/// as spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Classes {
    /// ASCII letters and digits.
    pub(super) alphanumeric: u64,
    /// Other visible ASCII characters.
    pub(super) other: u64,
    /// Space, tab, line feed and carriage return.
    pub(super) space: u64,
}

impl Classes {
    #[inline(always)]
    pub(super) fn at(bytes: &[u8], at: usize, end: usize) -> Self {
        let [alphanumeric, visible, space] = masks_at(bytes, at, wide::classes);
        let inside = below((end - at).min(BLOCK) as u32);
        let (alphanumeric, visible) = (alphanumeric & inside, visible & inside);
        Classes { alphanumeric, other: visible & !alphanumeric, space: space | !inside }
    }
}

/// The bytes of the block at `at` that are part of letters of two bytes (see [`is_letter_lead`]), up
/// to the first other character that is not ASCII.
#[inline(always)]
pub(super) fn letters_at(bytes: &[u8], at: usize, end: usize) -> u64 {
    let [leads, continuations] = masks_at(bytes, at, wide::letters);
    (leads | continuations & (leads << 1)) & below((end - at).min(BLOCK) as u32)
}

/// Whether this is the first byte of a character of two bytes that is part of words, whatever the
/// options are: U+00C0 to U+02FF, U+03C0 to U+053F; Latin and Cyrillic letters among others.
#[inline(always)]
pub(super) fn is_letter_lead(byte: u8) -> bool {
    matches!(byte, 0xC3..=0xCB | 0xCF..=0xD4)
}

/// The first bytes of frequent CJK characters in a block, whatever the options are. They have three
/// bytes, all of them in the block; their words are themselves.
pub(super) struct CjkLeads {
    /// Hiragana and katakana, U+3040 to U+30FF, but for U+30A0 and U+30FB, which are punctuation.
    pub(super) kana: u64,
    /// U+4E00 to U+9F7F.
    pub(super) ideograph: u64,
    /// U+3001 to U+3003; U+FF08 to U+FF0A and U+FF0C.
    pub(super) punctuation: u64,
}

impl CjkLeads {
    #[inline(always)]
    pub(super) fn at(bytes: &[u8], at: usize, end: usize) -> Self {
        let first = masks_at(bytes, at, wide::cjk_firsts);
        let second = masks_at(bytes, at, wide::cjk_seconds).map(|mask| mask >> 1);
        let third = masks_at(bytes, at, wide::cjk_thirds).map(|mask| mask >> 2);
        let [e3, e4, e5_to_e8, e9, ef] = first;
        let [x80, x81_to_83, x82, x83, to_bd, from_b8, bc] = second;
        let [y81_to_83, ya0, ybb, comma_or_bracket] = third;
        let inside = below(((end - at).min(BLOCK) as u32).saturating_sub(2));
        CjkLeads {
            kana: e3 & x81_to_83 & !(x82 & ya0 | x83 & ybb) & inside,
            ideograph: (e5_to_e8 | e4 & from_b8 | e9 & to_bd) & inside,
            punctuation: (e3 & x80 & y81_to_83 | ef & bc & comma_or_bracket) & inside,
        }
    }
}

/// Whether a character of [`CjkLeads`] may begin with this byte.
#[inline(always)]
pub(super) fn is_cjk_lead(byte: u8) -> bool {
    matches!(byte, 0xE3..=0xE9 | 0xEF)
}

/// All bytes of characters of three bytes, from their first ones.
#[inline(always)]
pub(super) fn three_bytes(first: u64) -> u64 {
    first | first << 1 | first << 2
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::*;

    use crate::text::blocks::wide::{in_range, is, load};

    /// A bit for each byte that is a letter or digit, a visible character, a space.
    #[inline(always)]
    pub fn classes(block: &[u8; 16]) -> [u16; 3] {
        // SAFETY: every x86_64 processor has SSE2.
        unsafe {
            let v = load(block);
            let letter = in_range(_mm_or_si128(v, _mm_set1_epi8(0x20)), b'a', 26);
            let alphanumeric = _mm_or_si128(letter, in_range(v, b'0', 10));
            let blank = _mm_or_si128(in_range(v, b'\t', 2), is(v, b'\r'));
            let space = _mm_or_si128(blank, is(v, b' '));
            [alphanumeric, in_range(v, b'!', 94), space].map(|v| _mm_movemask_epi8(v) as u16)
        }
    }

    /// A bit for each byte that `is_letter_lead`, and for each that continues a character.
    #[inline(always)]
    pub fn letters(block: &[u8; 16]) -> [u16; 2] {
        // SAFETY: every x86_64 processor has SSE2.
        unsafe {
            let v = load(block);
            let lead = _mm_or_si128(in_range(v, 0xC3, 9), in_range(v, 0xCF, 6));
            [lead, in_range(v, 0x80, 64)].map(|v| _mm_movemask_epi8(v) as u16)
        }
    }

    /// A bit for each byte that is 0xE3, 0xE4, 0xE5 to 0xE8, 0xE9, 0xEF.
    #[inline(always)]
    pub fn cjk_firsts(block: &[u8; 16]) -> [u16; 5] {
        // SAFETY: every x86_64 processor has SSE2.
        unsafe {
            let v = load(block);
            [is(v, 0xE3), is(v, 0xE4), in_range(v, 0xE5, 4), is(v, 0xE9), is(v, 0xEF)]
                .map(|v| _mm_movemask_epi8(v) as u16)
        }
    }

    /// A bit for each byte that is 0x80, 0x81 to 0x83, 0x82, 0x83, 0x80 to 0xBD, 0xB8 to 0xBF, 0xBC.
    #[inline(always)]
    pub fn cjk_seconds(block: &[u8; 16]) -> [u16; 7] {
        // SAFETY: every x86_64 processor has SSE2.
        unsafe {
            let v = load(block);
            let [x80, x82, x83, xbc] = [0x80, 0x82, 0x83, 0xBC].map(|byte| is(v, byte));
            let to_bd = in_range(v, 0x80, 0x3E);
            [x80, in_range(v, 0x81, 3), x82, x83, to_bd, in_range(v, 0xB8, 8), xbc]
                .map(|v| _mm_movemask_epi8(v) as u16)
        }
    }

    /// A bit for each byte that is 0x81 to 0x83, 0xA0, 0xBB, 0x88 to 0x8A or 0x8C.
    #[inline(always)]
    pub fn cjk_thirds(block: &[u8; 16]) -> [u16; 4] {
        // SAFETY: every x86_64 processor has SSE2.
        unsafe {
            let v = load(block);
            let last = _mm_or_si128(in_range(v, 0x88, 3), is(v, 0x8C));
            [in_range(v, 0x81, 3), is(v, 0xA0), is(v, 0xBB), last]
                .map(|v| _mm_movemask_epi8(v) as u16)
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod wide {
    use crate::text::blocks::wide::mask;

    pub fn classes(block: &[u8; 16]) -> [u16; 3] {
        let space = |b: &u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r');
        [
            mask(block, u8::is_ascii_alphanumeric),
            mask(block, u8::is_ascii_graphic),
            mask(block, space),
        ]
    }

    pub fn letters(block: &[u8; 16]) -> [u16; 2] {
        [mask(block, |&b| super::is_letter_lead(b)), mask(block, |b| matches!(b, 0x80..=0xBF))]
    }

    pub fn cjk_firsts(block: &[u8; 16]) -> [u16; 5] {
        let any = |low, high| mask(block, |b| (low..=high).contains(b));
        [any(0xE3, 0xE3), any(0xE4, 0xE4), any(0xE5, 0xE8), any(0xE9, 0xE9), any(0xEF, 0xEF)]
    }

    pub fn cjk_seconds(block: &[u8; 16]) -> [u16; 7] {
        let any = |low, high| mask(block, |b| (low..=high).contains(b));
        let [x80, x82, x83, xbc] = [0x80, 0x82, 0x83, 0xBC].map(|byte| any(byte, byte));
        [x80, any(0x81, 0x83), x82, x83, any(0x80, 0xBD), any(0xB8, 0xBF), xbc]
    }

    pub fn cjk_thirds(block: &[u8; 16]) -> [u16; 4] {
        let any = |low, high| mask(block, |b| (low..=high).contains(b));
        [any(0x81, 0x83), any(0xA0, 0xA0), any(0xBB, 0xBB), any(0x88, 0x8A) | any(0x8C, 0x8C)]
    }
}
