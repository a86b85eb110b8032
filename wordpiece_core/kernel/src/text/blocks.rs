//! Blocks of 64 bytes, whose bytes are classified at once: SIMD instructions make masks of them, numbers
//! with one bit for each byte.

/// Bytes in a block.
pub(super) const BLOCK: usize = 64;

/// The lowest `count` bits, up to 64.
#[inline(always)]
pub(super) fn below(count: u32) -> u64 {
    1u64.checked_shl(count).unwrap_or(0).wrapping_sub(1)
}

/// Masks of the block at `at`, with one bit for each byte. Those of bytes that are not there are zero.
/// `masks` gives those of 16 bytes.
#[inline(always)]
pub(super) fn masks_at<const N: usize>(
    bytes: &[u8],
    at: usize,
    masks: impl Fn(&[u8; 16]) -> [u16; N],
) -> [u64; N] {
    let of = |block: &[u8; BLOCK]| {
        let mut all = [0; N];
        for (number, part) in block.as_chunks().0.iter().enumerate() {
            for (all, mask) in all.iter_mut().zip(masks(part)) {
                *all |= (mask as u64) << (16 * number);
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

/// What masks are made with.
#[cfg(target_arch = "x86_64")]
pub(super) mod wide {
    use std::arch::x86_64::*;

    #[inline]
    #[target_feature(enable = "sse2")]
    pub fn load(block: &[u8; 16]) -> __m128i {
        // SAFETY: `block` is 16 readable bytes, and the load asks for no alignment.
        unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
    }

    /// All ones in the bytes of `v` that are `byte`.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub fn is(v: __m128i, byte: u8) -> __m128i {
        _mm_cmpeq_epi8(v, _mm_set1_epi8(byte as i8))
    }

    /// All ones in the bytes of `v` that lie in `low..low + count`.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub fn in_range(v: __m128i, low: u8, count: u8) -> __m128i {
        // The range is shifted to begin at the least signed byte, so that one signed comparison is
        // enough.
        let shifted = _mm_sub_epi8(v, _mm_set1_epi8((low ^ 0x80) as i8));
        _mm_cmplt_epi8(shifted, _mm_set1_epi8((count ^ 0x80) as i8))
    }
}

/// What masks are made with.
#[cfg(not(target_arch = "x86_64"))]
pub(super) mod wide {
    /// A bit for each byte that is in a class.
    pub fn mask(block: &[u8; 16], is_in: impl Fn(&u8) -> bool) -> u16 {
        block.iter().rev().fold(0, |mask, b| mask << 1 | is_in(b) as u16)
    }
}
