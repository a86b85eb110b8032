//! The frequent characters of three bytes in a block: ideographs, kana, and punctuation.

use crate::text::blocks::{BLOCK, Lanes, below, masks_at};

/// Return true if a character of [`ThreeByteMasks`] may begin with this byte.
#[inline(always)]
pub(super) fn is_three_byte_lead(byte: u8) -> bool {
    matches!(byte, 0xE2..=0xE9 | 0xEF)
}

/// The first bytes of three-byte characters that lie completely in the block.
pub(super) struct ThreeByteMasks {
    /// U+4E00 to U+9F7F.
    pub(super) ideograph: u64,
    /// The letters of U+3040 to U+30FF.
    pub(super) kana: u64,
    /// Punctuation and symbols: U+2010 to U+2027, U+3001 to U+3003, U+3008 to U+3013, U+FF01 to U+FF0F
    /// and U+FF1A to U+FF20.
    pub(super) sign: u64,
}

impl ThreeByteMasks {
    /// Return the masks of the block at byte `at`.
    #[inline(always)]
    pub(super) fn at(bytes: &[u8], at: usize) -> Self {
        let [e2, e3, e4, e5_to_e8, e9, ef] = masks_at(bytes, at, firsts);
        let [from_b8, to_bd] = masks_at(bytes, at, ideograph_seconds).map(|mask| mask >> 1);
        let inside = below(BLOCK as u32 - 2);
        let ideograph = (e5_to_e8 | e4 & from_b8 | e9 & to_bd) & inside;
        let (mut kana, mut sign) = (0, 0);
        if e2 | e3 | ef != 0 {
            let [x80, x81, x82, x83, bc] = masks_at(bytes, at, seconds).map(|mask| mask >> 1);
            let [dash, bracket, full, y80, y97_to_9c, ya0, ybb] =
                masks_at(bytes, at, thirds).map(|mask| mask >> 2);
            kana = e3 & (x81 & !y80 | x82 & !(y97_to_9c | ya0) | x83 & !ybb) & inside;
            sign = (e2 & x80 & dash | e3 & x80 & bracket | ef & bc & full) & inside;
        }
        ThreeByteMasks { ideograph, kana, sign }
    }
}

#[inline(always)]
fn firsts(v: Lanes) -> [Lanes; 6] {
    [v.is(0xE2), v.is(0xE3), v.is(0xE4), v.in_range(0xE5, 0xE8), v.is(0xE9), v.is(0xEF)]
}

#[inline(always)]
fn ideograph_seconds(v: Lanes) -> [Lanes; 2] {
    [v.in_range(0xB8, 0xBF), v.in_range(0x80, 0xBD)]
}

#[inline(always)]
fn seconds(v: Lanes) -> [Lanes; 5] {
    [v.is(0x80), v.is(0x81), v.is(0x82), v.is(0x83), v.is(0xBC)]
}

/// Third bytes of dashes and quotation marks, of CJK punctuation, of fullwidth punctuation; and of
/// characters in the blocks of kana other than letters.
#[inline(always)]
fn thirds(v: Lanes) -> [Lanes; 7] {
    let dash = v.in_range(0x90, 0xA7);
    let bracket = v.in_range(0x81, 0x83) | v.in_range(0x88, 0x93);
    let full = v.in_range(0x81, 0x8F) | v.in_range(0x9A, 0xA0);
    [dash, bracket, full, v.is(0x80), v.in_range(0x97, 0x9C), v.is(0xA0), v.is(0xBB)]
}
