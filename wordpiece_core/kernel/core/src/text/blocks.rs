//! Blocks of 64 bytes, whose bytes are classified at once: SIMD instructions make masks of them, numbers
//! with one bit for each byte.

#![allow(unsafe_code)]

/// Bytes in a block.
pub(super) const BLOCK: usize = 64;

/// The lowest `count` bits, up to 64.
#[inline(always)]
pub(super) fn below(count: u32) -> u64 {
    1u64.checked_shl(count).unwrap_or(0).wrapping_sub(1)
}

/// Masks of the block at `at`, with one bit for each byte. Those of bytes that are not there are zero.
///
/// # Arguments
///
/// * `bytes`, `at` - A text, and where the block begins.
/// * `classes` - Gives for 16 bytes those that are in each class.
#[inline(always)]
pub(super) fn masks_at<const N: usize>(
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

/// Calls `each` with the place of every byte of a class, in order.
///
/// # Arguments
///
/// * `bytes`, `from`, `end` - A text, and where in it bytes are looked for.
/// * `class` - Gives for 16 bytes those that are in the class.
/// * `each` - What takes the places.
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
pub(crate) struct Lanes(wide::Vector);

impl Lanes {
    #[inline(always)]
    fn load(bytes: &[u8; 16]) -> Self {
        Lanes(wide::load(bytes))
    }

    /// Which bytes are `byte`.
    #[inline(always)]
    pub(crate) fn is(self, byte: u8) -> Self {
        Lanes(wide::is(self.0, byte))
    }

    /// Which bytes lie in `low..=high`.
    #[inline(always)]
    pub(crate) fn in_range(self, low: u8, high: u8) -> Self {
        Lanes(wide::is_less(self.0, low, high - low + 1))
    }

    /// One bit for each of the truths.
    #[inline(always)]
    fn mask(self) -> u16 {
        wide::mask(self.0)
    }

    /// The bytes with the bits of `bits` set.
    #[inline(always)]
    pub(super) fn with_bits(self, bits: u8) -> Self {
        self | Lanes::load(&[bits; 16])
    }
}

impl std::ops::BitOr for Lanes {
    type Output = Self;

    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        Lanes(wide::or(self.0, other.0))
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::*;

    pub type Vector = __m128i;

    #[inline(always)]
    pub fn load(bytes: &[u8; 16]) -> Vector {
        // SAFETY: these are 16 readable bytes, and the load asks for no alignment.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    pub fn or(a: Vector, b: Vector) -> Vector {
        // SAFETY: every x86_64 processor has SSE2.
        unsafe { _mm_or_si128(a, b) }
    }

    #[inline(always)]
    pub fn is(v: Vector, byte: u8) -> Vector {
        // SAFETY: every x86_64 processor has SSE2.
        unsafe { _mm_cmpeq_epi8(v, _mm_set1_epi8(byte as i8)) }
    }

    /// Which bytes less `low` are less than `count`.
    #[inline(always)]
    pub fn is_less(v: Vector, low: u8, count: u8) -> Vector {
        // The range is shifted to begin at the least signed byte: one signed comparison is enough.
        // SAFETY: every x86_64 processor has SSE2.
        unsafe {
            let shifted = _mm_sub_epi8(v, _mm_set1_epi8((low ^ 0x80) as i8));
            _mm_cmplt_epi8(shifted, _mm_set1_epi8((count ^ 0x80) as i8))
        }
    }

    #[inline(always)]
    pub fn mask(v: Vector) -> u16 {
        // SAFETY: every x86_64 processor has SSE2.
        unsafe { _mm_movemask_epi8(v) as u16 }
    }
}

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod wide {
    use std::arch::aarch64::*;

    pub type Vector = uint8x16_t;

    #[inline(always)]
    pub fn load(bytes: &[u8; 16]) -> Vector {
        // SAFETY: these are 16 readable bytes, and the load asks for no alignment.
        unsafe { vld1q_u8(bytes.as_ptr()) }
    }

    #[inline(always)]
    pub fn or(a: Vector, b: Vector) -> Vector {
        // SAFETY: every aarch64 processor that this is built for has NEON.
        unsafe { vorrq_u8(a, b) }
    }

    #[inline(always)]
    pub fn is(v: Vector, byte: u8) -> Vector {
        // SAFETY: every aarch64 processor that this is built for has NEON.
        unsafe { vceqq_u8(v, vdupq_n_u8(byte)) }
    }

    /// Which bytes less `low` are less than `count`.
    #[inline(always)]
    pub fn is_less(v: Vector, low: u8, count: u8) -> Vector {
        // SAFETY: every aarch64 processor that this is built for has NEON.
        unsafe { vcltq_u8(vsubq_u8(v, vdupq_n_u8(low)), vdupq_n_u8(count)) }
    }

    #[inline(always)]
    pub fn mask(v: Vector) -> u16 {
        // Of each byte one bit is kept, of eight in a row different ones, and neighbours are added.
        // SAFETY: every aarch64 processor that this is built for has NEON.
        unsafe {
            let bits = vandq_u8(v, vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201)));
            let sums = vpaddq_u8(bits, bits);
            let sums = vpaddq_u8(sums, sums);
            vgetq_lane_u16::<0>(vreinterpretq_u16_u8(vpaddq_u8(sums, sums)))
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))))]
mod wide {
    pub type Vector = [u8; 16];

    pub fn load(bytes: &[u8; 16]) -> Vector {
        *bytes
    }

    pub fn or(a: Vector, b: Vector) -> Vector {
        std::array::from_fn(|lane| a[lane] | b[lane])
    }

    pub fn is(v: Vector, byte: u8) -> Vector {
        v.map(|b| if b == byte { 0xFF } else { 0 })
    }

    /// Which bytes less `low` are less than `count`.
    pub fn is_less(v: Vector, low: u8, count: u8) -> Vector {
        v.map(|b| if b.wrapping_sub(low) < count { 0xFF } else { 0 })
    }

    pub fn mask(v: Vector) -> u16 {
        v.iter().rev().fold(0, |mask, b| mask << 1 | (b >> 7) as u16)
    }
}
