//! Blocks of 64 bytes, classified by SIMD instructions into masks: numbers with one bit for each byte.

use wide::i8x16;

/// Bytes in a block.
pub(crate) const BLOCK: usize = 64;

/// The lowest `count` bits, up to 64.
#[inline(always)]
pub(crate) fn below(count: u32) -> u64 {
    1u64.checked_shl(count).unwrap_or(0).wrapping_sub(1)
}

/// Return masks of the block at `at`, with one bit for each byte, and zero after the end of the text.
///
/// # Arguments
///
/// * `bytes`, `at` - A text, and the offset of the block.
/// * `classes` - Returns for 16 bytes the members of each class.
#[inline(always)]
pub(crate) fn masks_at<const N: usize>(
    bytes: &[u8],
    at: usize,
    classes: impl Fn(Lanes) -> [Lanes; N],
) -> [u64; N] {
    let of = |block: &[u8; BLOCK]| {
        let mut all = [0; N];
        for (number, part) in block.as_chunks().0.iter().enumerate() {
            for (all, class) in all.iter_mut().zip(classes(Lanes::load(part))) {
                *all |= (class.mask() as u64) << (16 * number);
            }
        }
        all
    };
    if let Some(block) = bytes[at..].first_chunk() {
        return of(block);
    }
    let beyond = at + BLOCK - bytes.len();
    let all = match bytes.last_chunk() {
        Some(block) => of(block),
        None => {
            let mut block = [0; BLOCK];
            block[BLOCK - bytes.len()..].copy_from_slice(bytes);
            of(&block)
        }
    };
    all.map(|mask| mask >> beyond)
}

/// All bytes of characters of three bytes, from their first ones.
#[inline(always)]
pub(super) fn three_bytes(first: u64) -> u64 {
    first | first << 1 | first << 2
}

/// Calls `each` with the place of every byte of a class, in order.
///
/// # Arguments
///
/// * `bytes`, `from`, `end` - A text, and the range to search.
/// * `class` - Returns for 16 bytes the members of the class.
/// * `each` - Called with the offsets.
#[inline(always)]
pub(crate) fn each_in_class(
    bytes: &[u8],
    from: usize,
    end: usize,
    class: impl Fn(Lanes) -> Lanes,
    mut each: impl FnMut(usize),
) {
    for at in (from..end).step_by(BLOCK) {
        let [mask] = masks_at(bytes, at, |lanes| [class(lanes)]);
        let mut left = mask & below((end - at).min(BLOCK) as u32);
        while left != 0 {
            each(at + left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
}

/// Sixteen bytes, or a truth for each: all bits of a byte are set, or none.
#[derive(Clone, Copy)]
pub(crate) struct Lanes(i8x16);

impl Lanes {
    #[inline(always)]
    fn load(bytes: &[u8; 16]) -> Self {
        Lanes(i8x16::new(bytes.map(u8::cast_signed)))
    }

    /// Return true for bytes equal to `byte`.
    #[inline(always)]
    pub(crate) fn is(self, byte: u8) -> Self {
        Lanes(self.0.simd_eq(i8x16::splat(byte.cast_signed())))
    }

    /// Return true for bytes in `low..=high`.
    #[inline(always)]
    pub(crate) fn in_range(self, low: u8, high: u8) -> Self {
        // The range is shifted to begin at the least signed byte: one signed comparison is enough.
        let [low, beyond] = [low, high - low + 1].map(|byte| (byte ^ 0x80).cast_signed());
        Lanes((self.0 - i8x16::splat(low)).simd_lt(i8x16::splat(beyond)))
    }

    /// One bit for each of the truths.
    #[inline(always)]
    fn mask(self) -> u16 {
        self.0.to_bitmask() as u16
    }

    /// The bytes with the bits of `bits` set.
    #[inline(always)]
    pub(super) fn with_bits(self, bits: u8) -> Self {
        self | Lanes(i8x16::splat(bits.cast_signed()))
    }
}

impl std::ops::BitOr for Lanes {
    type Output = Self;

    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        Lanes(self.0 | other.0)
    }
}
