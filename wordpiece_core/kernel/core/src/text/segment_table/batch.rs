//! Segments that are counted together.

use super::keys::{
    MIDDLE, MiddleKey, SHORT, SegmentKey, TINY, first_block, middle_key, short_key, tiny_key,
};
use crate::text::segments::Bounds;

/// The most segments that are gathered. A power of two.
pub(super) const BATCH: usize = 256;
/// The most segments in 64 bytes.
pub(super) const BLOCK_SEGMENTS: usize = 64;

/// Segments that are counted together. Segments of more than 31 bytes are counted one by one.
#[derive(Default)]
pub struct Batch {
    pub(super) tiny: Keys<u64>,
    pub(super) short: Keys<u128>,
    pub(super) middle: Keys<MiddleKey>,
}

impl Batch {
    /// Return true if the segments of a block might not fit.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.tiny.held.max(self.short.held).max(self.middle.held) > BATCH - BLOCK_SEGMENTS
    }

    /// Return the number of segments.
    pub fn len(&self) -> usize {
        self.tiny.held + self.short.held + self.middle.held
    }

    /// Gathers the segments of a block. The batch must not be full.
    ///
    /// # Arguments
    ///
    /// * `bytes` - The bytes of a text, which may continue after it.
    /// * `at` - The offset of the block.
    /// * `bounds` - The bounds of the segments.
    /// * `longer` - Takes segments of more than 31 bytes.
    #[inline(always)]
    pub(crate) fn push_block(
        &mut self,
        bytes: &[u8],
        at: usize,
        mut bounds: Bounds,
        mut longer: impl FnMut(&[u8]),
    ) {
        // They are not in memory as long as the loop runs.
        let (mut tiny, mut short) = (self.tiny.held, self.short.held);
        while let Some((start, end)) = bounds.pop(at) {
            let length = end - start;
            if length <= SHORT {
                // Both lists are written to, and one of them keeps the key: which one cannot be
                // foretold, and a branch that goes wrong would cost more.
                let key = short_key(first_block(bytes, start), length);
                self.tiny.put(tiny, tiny_key(key, length));
                self.short.put(short, key);
                tiny += (length <= TINY) as usize;
                short += (length > TINY) as usize;
            } else {
                self.push_longer(&bytes[start..end], &mut longer);
            }
        }
        (self.tiny.held, self.short.held) = (tiny, short);
    }

    /// Gathers the segment `bytes[start..end]`. The batch must not be full. `longer`: as before.
    #[inline(always)]
    pub fn push(&mut self, bytes: &[u8], start: usize, end: usize, longer: impl FnMut(&[u8])) {
        let length = end - start;
        if length > SHORT {
            self.push_longer(&bytes[start..end], longer);
        } else {
            let key = short_key(first_block(bytes, start), length);
            if length <= TINY {
                self.tiny.push(tiny_key(key, length));
            } else {
                self.short.push(key);
            }
        }
    }

    #[inline(never)]
    fn push_longer(&mut self, segment: &[u8], mut longer: impl FnMut(&[u8])) {
        if segment.len() <= MIDDLE {
            self.middle.push(middle_key(segment));
        } else {
            longer(segment);
        }
    }

    /// An upper limit of the bytes of the gathered segments.
    pub(crate) fn text_bytes(&self) -> usize {
        self.tiny.held * TINY + self.short.held * SHORT + self.middle.held * MIDDLE
    }
}

/// Keys of segments of one kind.
pub(super) struct Keys<K> {
    pub(super) keys: [K; BATCH],
    pub(super) held: usize,
}

impl<K: SegmentKey> Default for Keys<K> {
    fn default() -> Self {
        Keys { keys: [K::default(); BATCH], held: 0 }
    }
}

impl<K: SegmentKey> Keys<K> {
    #[inline(always)]
    fn put(&mut self, at: usize, key: K) {
        self.keys[at % BATCH] = key;
    }

    #[inline(always)]
    fn push(&mut self, key: K) {
        self.put(self.held, key);
        self.held += 1;
    }
}
