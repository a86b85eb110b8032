//! A hash table from raw segments of text to small values, made for one lookup per word.
//!
//! A segment of up to 15 bytes, nearly all of them, is its own key: its bytes and its length in
//! one 128-bit number, stored in the slot beside the value, so that a lookup touches one cache
//! line and compares one number. Longer segments go to an ordinary map.

use rustc_hash::FxHashMap;

/// The longest segment that is stored in its slot.
pub const SHORT: usize = 15;

/// A table is near its next growth when there is room for so many segments: about a text's.
const NEAR_GROWTH: usize = 256;

#[derive(Clone, Copy)]
struct Slot<V> {
    /// Zero marks an empty slot: the length, in the top byte, is never zero.
    key: u128,
    value: V,
}

pub struct SegmentMap<V> {
    slots: Vec<Slot<V>>,
    short: usize,
    long: FxHashMap<Box<[u8]>, V>,
    long_bytes: usize,
}

impl<V: Copy + Default> Default for SegmentMap<V> {
    fn default() -> Self {
        SegmentMap {
            slots: vec![Slot { key: 0, value: V::default() }; 1 << 10],
            short: 0,
            long: FxHashMap::default(),
            long_bytes: 0,
        }
    }
}

impl<V: Copy + Default> SegmentMap<V> {
    pub fn len(&self) -> usize {
        self.short + self.long.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held, keys and free slots included.
    pub fn memory(&self) -> usize {
        let per_long = size_of::<(Box<[u8]>, V)>() * 2 + 16;
        self.slots.len() * size_of::<Slot<V>>() + self.long.len() * per_long + self.long_bytes
    }

    /// The same, and those of slots twice as many if the next segments will ask for them.
    pub fn memory_to_grow(&self) -> usize {
        let grows = self.short * 2 + NEAR_GROWTH > self.slots.len();
        self.memory() + if grows { 2 * self.slots.len() * size_of::<Slot<V>>() } else { 0 }
    }

    /// About how many bytes all segments have.
    pub fn text_bytes(&self) -> usize {
        self.short * SHORT + self.long_bytes
    }

    /// The value of a segment; `new` makes it if the segment is new.
    #[inline]
    pub fn entry(&mut self, segment: &str, new: impl FnOnce() -> V) -> &mut V {
        if segment.len() <= SHORT {
            self.short_entry(key(segment.as_bytes()), new)
        } else {
            self.long_entry(segment.as_bytes(), new)
        }
    }

    #[inline]
    fn short_entry(&mut self, key: u128, new: impl FnOnce() -> V) -> &mut V {
        let mut at = self.find(key);
        if self.slots[at].key != key {
            let value = new();
            if (self.short + 1) * 2 > self.slots.len() {
                self.grow();
                at = self.find(key);
            }
            self.short += 1;
            self.slots[at] = Slot { key, value };
        }
        &mut self.slots[at].value
    }

    /// The slot that holds `key`, or the free one where it belongs.
    #[inline]
    fn find(&self, key: u128) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash(key) as usize & mask;
        while self.slots[at].key != key && self.slots[at].key != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    #[cold]
    fn grow(&mut self) {
        let doubled = vec![Slot { key: 0, value: V::default() }; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, doubled);
        for slot in old.into_iter().filter(|slot| slot.key != 0) {
            let at = self.find(slot.key);
            self.slots[at] = slot;
        }
    }

    #[cold]
    fn long_entry(&mut self, segment: &[u8], new: impl FnOnce() -> V) -> &mut V {
        if !self.long.contains_key(segment) {
            let value = new();
            self.long_bytes += segment.len();
            self.long.insert(segment.into(), value);
        }
        self.long.get_mut(segment).expect("just inserted")
    }

    /// Calls `each` with every segment and its value, in no particular order.
    pub fn for_each(&self, mut each: impl FnMut(&str, V)) {
        for slot in self.slots.iter().filter(|slot| slot.key != 0) {
            let bytes = slot.key.to_le_bytes();
            each(as_str(&bytes[..bytes[SHORT] as usize]), slot.value);
        }
        for (segment, value) in &self.long {
            each(as_str(segment), *value);
        }
    }
}

/// Keys are made from `&str` only.
fn as_str(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("a segment is a string")
}

/// Up to 15 bytes and, in the top byte, how many. Read in two overlapping pieces: a copy of
/// variable length would cost more than the rest of a lookup.
#[inline]
fn key(bytes: &[u8]) -> u128 {
    let n = bytes.len();
    let (low, high) = match n {
        9.. => (first8(bytes), first8(&bytes[n - 8..]) >> (8 * (16 - n))),
        4.. => (first4(bytes) | first4(&bytes[n - 4..]) << (8 * (n - 4)), 0),
        _ => (
            bytes[0] as u64
                | (bytes[n / 2] as u64) << (8 * (n / 2))
                | (bytes[n - 1] as u64) << (8 * (n - 1)),
            0,
        ),
    };
    (low as u128) | (high as u128) << 64 | (n as u128) << (8 * SHORT)
}

#[inline]
fn first8(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

#[inline]
fn first4(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |chunk| u32::from_le_bytes(*chunk) as u64)
}

/// Both halves, mixed by one multiplication whose product is folded onto itself.
#[inline]
fn hash(key: u128) -> u64 {
    const A: u64 = 0x9E37_79B9_7F4A_7C15;
    const B: u64 = 0xD6E8_FEB8_6659_FD93;
    let product = ((key as u64 ^ A) as u128) * (((key >> 64) as u64 ^ B) as u128);
    (product as u64) ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn a_key_is_the_bytes_and_their_number() {
        let bytes: Vec<u8> = (1..=15).collect();
        for n in 1..=15 {
            let mut block = [0; 16];
            block[..n].copy_from_slice(&bytes[..n]);
            block[SHORT] = n as u8;
            assert_eq!(key(&bytes[..n]), u128::from_le_bytes(block), "{n}");
        }
    }

    #[test]
    fn counts_like_a_plain_map() {
        let mut map = SegmentMap::<u64>::default();
        let mut plain = HashMap::new();
        for i in 0..200_000u64 {
            let n = i.wrapping_mul(0x9E37_79B9) % 7_919;
            let segment = format!("{}{n}", "é".repeat((n % 12) as usize));
            *map.entry(&segment, || 0) += 1;
            *plain.entry(segment).or_insert(0) += 1;
        }
        let mut seen = HashMap::new();
        map.for_each(|segment, count| assert!(seen.insert(segment.to_owned(), count).is_none()));
        assert_eq!(map.len(), plain.len());
        assert_eq!(seen, plain);
    }
}
