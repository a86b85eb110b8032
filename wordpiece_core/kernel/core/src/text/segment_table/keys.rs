//! The keys of segments: up to 31 bytes and their length, or a hash and the length of a longer segment.

use crate::base::hash::Seed;

/// The length of the longest segments whose key has 8 bytes, in bytes. Their slots have 16, so that
/// the frequent ones fit into the processor's caches.
pub(super) const TINY: usize = 7;
/// The length of the longest segments whose key is one number of 16 bytes, in bytes.
pub(super) const SHORT: usize = 15;
/// The length of the longest segments whose key is two such numbers, in bytes.
pub(super) const MIDDLE: usize = 31;

/// The lengths that the segments of each kind do not reach.
pub(super) const TINY_END: usize = TINY + 1;
pub(super) const SHORT_END: usize = SHORT + 1;
pub(super) const MIDDLE_END: usize = MIDDLE + 1;

/// The key of a segment. The default key marks an empty slot.
pub(super) trait SegmentKey: Copy + PartialEq + Default {
    fn hash(self, seed: Seed) -> u64;
}

/// The key of a segment of 16 to 31 bytes. It is compared as two numbers; an array would be compared
/// by a call.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct MiddleKey(pub(super) u128, pub(super) u128);

/// Return the key of up to 7 bytes: the bytes and, in the top byte, their number. `short`: their key of 16 bytes.
#[inline(always)]
pub(super) fn tiny_key(short: u128, length: usize) -> u64 {
    short as u64 | (length as u64) << (8 * TINY)
}

/// Return the key of up to 15 bytes.
#[inline]
pub(super) fn short_key_of(bytes: &[u8]) -> u128 {
    short_key(first_block(bytes, 0), bytes.len())
}

/// The first `length` bytes of a block, up to 15, and in the top byte how many. Sixteen were read and
/// the others are masked: a copy of variable length would cost more than the rest of a lookup.
#[inline]
pub(super) fn short_key(block: u128, length: usize) -> u128 {
    block & MASKS[length & SHORT] | (length as u128) << (8 * SHORT)
}

/// Return 16 bytes of a text from `at` on. Bytes after its end are zero.
#[inline]
pub(super) fn first_block(text: &[u8], at: usize) -> u128 {
    match text[at..].first_chunk() {
        Some(block) => u128::from_le_bytes(*block),
        None => last_block(text, at),
    }
}

const MASKS: [u128; SHORT + 1] = {
    let mut masks = [0; SHORT + 1];
    let mut length = 1;
    while length <= SHORT {
        masks[length] = masks[length - 1] << 8 | 0xFF;
        length += 1;
    }
    masks
};

/// The last bytes of a text, fewer than 16 from `at` on.
#[inline]
fn last_block(text: &[u8], at: usize) -> u128 {
    let rest = &text[at..];
    let back = |bytes: usize| 8 * (rest.len() - bytes) as u32;
    // The first bytes and the last ones, which may be the same in part.
    if let (Some(first), Some(last)) = (rest.first_chunk(), rest.last_chunk()) {
        return u64::from_le_bytes(*first) as u128 | (u64::from_le_bytes(*last) as u128) << back(8);
    }
    if let (Some(first), Some(last)) = (rest.first_chunk(), rest.last_chunk()) {
        return u32::from_le_bytes(*first) as u128 | (u32::from_le_bytes(*last) as u128) << back(4);
    }
    rest.iter().rev().fold(0, |block, &byte| block << 8 | byte as u128)
}

/// From 16 to 31 bytes and, in the top byte, how many.
#[inline]
pub(super) fn middle_key(bytes: &[u8]) -> MiddleKey {
    let n = bytes.len();
    let last = first16(&bytes[n - 16..]);
    let high = last.checked_shr(8 * (32 - n as u32)).unwrap_or(0);
    MiddleKey(first16(bytes), high | (n as u128) << (8 * 15))
}

#[inline]
fn first16(bytes: &[u8]) -> u128 {
    bytes.first_chunk().map_or(0, |chunk| u128::from_le_bytes(*chunk))
}

impl SegmentKey for u64 {
    #[inline]
    fn hash(self, seed: Seed) -> u64 {
        seed.hash(self, 0)
    }
}

impl SegmentKey for u128 {
    #[inline]
    fn hash(self, seed: Seed) -> u64 {
        seed.hash(self as u64, (self >> 64) as u64)
    }
}

impl SegmentKey for MiddleKey {
    #[inline]
    fn hash(self, seed: Seed) -> u64 {
        let MiddleKey(low, high) = self;
        seed.hash(low.hash(seed) ^ high as u64, (high >> 64) as u64)
    }
}

/// The key of a long segment. Keys with the same hash and length are equal; the table compares the bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct LongKey {
    /// The hash, at least 1: the default key marks an empty slot.
    pub(super) hash: u64,
    pub(super) length: usize,
    /// The offset of the segment in the list of bytes.
    pub(super) start: usize,
}

impl PartialEq for LongKey {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        (self.hash, self.length) == (other.hash, other.length)
    }
}

impl SegmentKey for LongKey {
    #[inline(always)]
    fn hash(self, _: Seed) -> u64 {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_bytes_and_their_number() {
        let bytes: Vec<u8> = (1..=31).collect();
        for n in 1..=31 {
            let mut block = [0; 32];
            block[..n].copy_from_slice(&bytes[..n]);
            if n <= SHORT {
                block[SHORT] = n as u8;
                assert_eq!(
                    short_key(first_block(&bytes[..n], 0), n).to_le_bytes(),
                    block[..16],
                    "{n}"
                );
                assert_eq!(short_key(first_block(&bytes, 0), n).to_le_bytes(), block[..16], "{n}");
            } else {
                block[MIDDLE] = n as u8;
                let MiddleKey(low, high) = middle_key(&bytes[..n]);
                let key = [low, high].map(u128::to_le_bytes).concat();
                assert_eq!(key, block, "{n}");
            }
        }
    }
}
