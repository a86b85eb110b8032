//! Segments that are looked up together.

use super::keys::{
    LongKey, MIDDLE, MiddleKey, SHORT, SegmentKey, TINY, first_block, middle_key, short_key,
};
use crate::text::segments::Bounds;

/// The most segments that are gathered. A power of two.
pub(super) const BATCH: usize = 256;
/// The most segments in 64 bytes.
const BLOCK_SEGMENTS: usize = 64;

/// The value of a gathered segment that is not in the table. No segment may have it.
pub const MISSING: u64 = u64::MAX;

/// Segments of a text that are looked up together. `IN_ORDER`: whether the place of each is kept.
pub struct Batch<const IN_ORDER: bool> {
    pub(super) tiny: Keys<u64, IN_ORDER>,
    pub(super) short: Keys<u128, IN_ORDER>,
    pub(super) middle: Keys<MiddleKey, IN_ORDER>,
    pub(super) long: Keys<LongKey, IN_ORDER>,
    pub(super) bounds: [(usize, usize); BATCH],
    pub(super) values: [u64; BATCH],
    pub(super) held: usize,
}

impl<const IN_ORDER: bool> Default for Batch<IN_ORDER> {
    fn default() -> Self {
        Batch {
            tiny: Keys::default(),
            short: Keys::default(),
            middle: Keys::default(),
            long: Keys::default(),
            bounds: [(0, 0); BATCH],
            values: [0; BATCH],
            held: 0,
        }
    }
}

impl<const IN_ORDER: bool> Batch<IN_ORDER> {
    /// Return true if the segments of a block might not fit.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.held > BATCH - BLOCK_SEGMENTS
    }

    /// Return the number of segments.
    pub fn len(&self) -> usize {
        self.held
    }

    /// Gathers the segments of a block. The batch must not be full.
    ///
    /// # Arguments
    ///
    /// * `bytes` - The bytes of a text, which may continue after it.
    /// * `at` - The offset of the block.
    /// * `bounds` - The bounds of the segments.
    /// * `longer` - Takes segments of more than 31 bytes, unless the order is kept.
    #[inline(always)]
    pub(crate) fn push_block(
        &mut self,
        bytes: &[u8],
        at: usize,
        mut bounds: Bounds,
        mut longer: impl FnMut(&[u8]),
    ) {
        // They are not in memory as long as the loop runs.
        let (mut held, mut tiny, mut short) = (self.held, self.tiny.held, self.short.held);
        while let Some((start, end)) = bounds.pop(at) {
            let length = end - start;
            if IN_ORDER {
                self.bounds[held % BATCH] = (start, end);
            }
            if length <= SHORT {
                // Both lists are written to, and one of them keeps the key: which one cannot be
                // foretold, and a branch that goes wrong would cost more.
                let key = short_key(first_block(bytes, start), length);
                self.tiny.put(tiny, key as u64 | (length as u64) << (8 * TINY), held);
                self.short.put(short, key, held);
                tiny += (length <= TINY) as usize;
                short += (length > TINY) as usize;
            } else {
                self.push_longer(&bytes[start..end], held, &mut longer);
            }
            held += 1;
        }
        (self.held, self.tiny.held, self.short.held) = (held, tiny, short);
    }

    /// Gathers the segment `bytes[start..end]`. The batch must not be full. `longer`: as before.
    #[inline(always)]
    pub fn push(&mut self, bytes: &[u8], start: usize, end: usize, longer: impl FnMut(&[u8])) {
        let (length, place) = (end - start, self.held);
        if IN_ORDER {
            self.bounds[place % BATCH] = (start, end);
        }
        if length > SHORT {
            self.push_longer(&bytes[start..end], place, longer);
        } else {
            let key = short_key(first_block(bytes, start), length);
            if length <= TINY {
                self.tiny.push(key as u64 | (length as u64) << (8 * TINY), place);
            } else {
                self.short.push(key, place);
            }
        }
        self.held += 1;
    }

    #[inline(never)]
    fn push_longer(&mut self, segment: &[u8], place: usize, mut longer: impl FnMut(&[u8])) {
        if segment.len() <= MIDDLE {
            self.middle.push(middle_key(segment), place);
        } else if IN_ORDER {
            self.long.push(LongKey::default(), place); // the key is made when it is looked up
        } else {
            longer(segment);
        }
    }

    /// An upper limit of the bytes of the gathered segments.
    pub(crate) fn text_bytes(&self) -> usize {
        self.tiny.held * TINY + self.short.held * SHORT + self.middle.held * MIDDLE
    }
}

impl Batch<true> {
    /// Return the bounds and the value of each segment, in order. The value is
    /// [`MISSING`] if it is not in the table.
    #[inline(always)]
    pub fn values(&self) -> impl Iterator<Item = (usize, usize, u64)> {
        let found = self.bounds.iter().zip(&self.values).take(self.held);
        found.map(|(&(start, end), &value)| (start, end, value))
    }

    /// Empties the batch.
    pub fn clear(&mut self) {
        self.held = 0;
    }
}

/// Keys of segments of one kind.
pub(super) struct Keys<K, const IN_ORDER: bool> {
    pub(super) keys: [K; BATCH],
    /// The number of each segment in the batch.
    pub(super) places: [u8; BATCH],
    pub(super) held: usize,
}

impl<K: SegmentKey, const IN_ORDER: bool> Default for Keys<K, IN_ORDER> {
    fn default() -> Self {
        Keys { keys: [K::default(); BATCH], places: [0; BATCH], held: 0 }
    }
}

impl<K: SegmentKey, const IN_ORDER: bool> Keys<K, IN_ORDER> {
    #[inline(always)]
    fn put(&mut self, at: usize, key: K, place: usize) {
        self.keys[at % BATCH] = key;
        if IN_ORDER {
            self.places[at % BATCH] = place as u8;
        }
    }

    #[inline(always)]
    fn push(&mut self, key: K, place: usize) {
        self.put(self.held, key, place);
        self.held += 1;
    }
}
