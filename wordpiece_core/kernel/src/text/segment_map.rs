//! A hash table from raw segments of text to small values.
//!
//! Counting and encoding look up every segment of every text here, so one lookup must be cheap. A
//! segment of up to 15 bytes, as nearly all are, is its own key: its bytes and its length make one
//! 128-bit number. The key is stored in the slot beside the value, so that a lookup touches one
//! cache line and compares one number; no pointer is followed. Segments of 16 to 31 bytes have a
//! table whose keys are two such numbers. Longer ones go to an ordinary map.
//!
//! The tables use open addressing with linear probing, and are at most half full. Each hashes with a
//! random seed of its own.

use foldhash::HashMap;

use crate::memory;
use crate::text::hash::Seed;
use crate::text::segments::Segment;

/// The length of the longest segments whose key is one number, in bytes.
pub const SHORT: usize = 15;
/// The length of the longest segments whose key is two numbers, in bytes.
pub(crate) const MIDDLE: usize = 31;

/// A table counts as close to its next growth if it has room for fewer segments than this, about
/// as many as a text has.
const NEAR_GROWTH: usize = 256;

/// A map from segments to values, which are copied when the table grows: they should be small.
///
/// # Examples
///
/// ```
/// use _kernel::text::pre_tokenize::{PreTokenizer, TextOptions};
/// use _kernel::text::segment_map::SegmentMap;
///
/// let options = TextOptions {
///     clean_text: true,
///     handle_chinese_chars: true,
///     strip_accents: true,
///     lowercase: true,
///     split_punctuation: true,
/// };
/// let mut counts = SegmentMap::<u64>::default();
/// PreTokenizer::new(options).segments("a b a", |segment| *counts.entry(&segment, || 0) += 1);
/// let mut found = Vec::new();
/// counts.for_each(|segment, count| found.push((segment.to_string(), count)));
/// found.sort();
/// assert_eq!(found, [("a".into(), 2), ("b".into(), 1)]);
/// ```
pub struct SegmentMap<V> {
    pub(crate) short: KeyTable<u128, V>,
    pub(crate) middle: KeyTable<MiddleKey, V>,
    long: HashMap<Box<[u8]>, V>,
    long_bytes: usize,
}

impl<V: Copy + Default> Default for SegmentMap<V> {
    fn default() -> Self {
        SegmentMap {
            short: KeyTable::new(1 << 10),
            middle: KeyTable::new(1 << 6),
            long: HashMap::default(),
            long_bytes: 0,
        }
    }
}

impl<V: Copy + Default> SegmentMap<V> {
    /// How many segments are in the map.
    pub fn len(&self) -> usize {
        self.short.held + self.middle.held + self.long.len()
    }

    /// Whether no segment is in the map.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory that the map takes, in bytes, keys and free slots included.
    pub fn memory(&self) -> usize {
        let long = self.long_table(self.long.capacity()) + self.long.len() * 16 + self.long_bytes;
        self.short.memory() + self.middle.memory() + long
    }

    /// The memory that the map may take while a segment of `length` bytes is put in: with that of a
    /// larger table beside the old one, if one will soon grow.
    pub fn memory_to_insert(&self, length: usize) -> usize {
        let larger = if length <= SHORT {
            self.short.growth(1)
        } else if length <= MIDDLE {
            self.middle.growth(1)
        } else if self.long.len() < self.long.capacity() {
            length + 16
        } else {
            length + 16 + self.long_table(2 * self.long.capacity().max(4))
        };
        self.memory() + larger
    }

    /// The bytes of the table of longer segments with this capacity: the number of its slots is a power
    /// of two, of which seven of eight may be used, and each has a byte beside it.
    fn long_table(&self, capacity: usize) -> usize {
        match capacity {
            0 => 0,
            _ => {
                (capacity * 8).div_ceil(7).next_power_of_two() * (size_of::<(Box<[u8]>, V)>() + 1)
                    + 16
            }
        }
    }

    /// An upper limit of the bytes of all segments together.
    pub fn text_bytes(&self) -> usize {
        self.short.held * SHORT + self.middle.held * MIDDLE + self.long_bytes
    }

    /// The value of a segment, if it is in the map.
    #[inline]
    pub fn get(&self, segment: &Segment<'_>) -> Option<&V> {
        let length = segment.raw.len();
        if length <= SHORT {
            self.short.get(short_key(first_block(segment.rest, 0), length))
        } else {
            self.get_longer(segment.raw.as_bytes())
        }
    }

    #[inline(never)]
    fn get_longer(&self, segment: &[u8]) -> Option<&V> {
        if segment.len() <= MIDDLE {
            return self.middle.get(middle_key(segment));
        }
        self.long.get(segment)
    }

    /// The value of a segment. If the segment is not in the map, it is put in with the value that
    /// `new` makes.
    #[inline]
    pub fn entry(&mut self, segment: &Segment<'_>, new: impl FnOnce() -> V) -> &mut V {
        let length = segment.raw.len();
        if length <= SHORT {
            self.short.entry(short_key(first_block(segment.rest, 0), length), new)
        } else {
            self.longer_entry(segment.raw.as_bytes(), new)
        }
    }

    #[inline(never)]
    fn longer_entry(&mut self, segment: &[u8], new: impl FnOnce() -> V) -> &mut V {
        if segment.len() <= MIDDLE {
            return self.middle.entry(middle_key(segment), new);
        }
        self.long_entry(segment, new)
    }

    /// The value of a segment of 32 bytes or more.
    pub(crate) fn long_entry(&mut self, segment: &[u8], new: impl FnOnce() -> V) -> &mut V {
        if !self.long.contains_key(segment) {
            let value = new();
            memory::reserve_entry(&mut self.long);
            self.long_bytes += segment.len();
            self.long.insert(memory::boxed(segment), value);
        }
        self.long.get_mut(segment).expect("just inserted")
    }

    /// Calls `each` with every segment and its value, in no particular order.
    pub fn for_each(&self, mut each: impl FnMut(&str, V)) {
        self.short.for_each(|key, value| {
            let bytes = key.to_le_bytes();
            each(as_str(&bytes[..bytes[SHORT] as usize]), value);
        });
        self.middle.for_each(|MiddleKey(low, high), value| {
            let mut bytes = [0; MIDDLE + 1];
            bytes[..16].copy_from_slice(&low.to_le_bytes());
            bytes[16..].copy_from_slice(&high.to_le_bytes());
            each(as_str(&bytes[..bytes[MIDDLE] as usize]), value);
        });
        for (segment, value) in &self.long {
            each(as_str(segment), *value);
        }
    }
}

/// A table of one kind of keys, with open addressing, at most half full.
pub(crate) struct KeyTable<K, V> {
    slots: Vec<KeySlot<K, V>>,
    held: usize,
    seed: Seed,
}

#[derive(Clone, Copy)]
struct KeySlot<K, V> {
    /// The default, zero, marks an empty slot: a key's length, in its top byte, is never zero.
    key: K,
    value: V,
}

/// The key of a segment of 16 to 31 bytes. It is compared as two numbers; an array would be compared
/// by a call.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) struct MiddleKey(u128, u128);

pub(crate) trait SegmentKey: Copy + PartialEq + Default {
    fn hash(self, seed: Seed) -> u64;
}

impl<K: SegmentKey, V: Copy + Default> KeyTable<K, V> {
    /// An empty table. `slots`: how many slots, a power of two.
    pub(crate) fn new(slots: usize) -> Self {
        let free = KeySlot { key: K::default(), value: V::default() };
        KeyTable { slots: memory::filled(free, slots), held: 0, seed: Seed::random() }
    }

    pub(crate) fn held(&self) -> usize {
        self.held
    }

    pub(crate) fn memory(&self) -> usize {
        self.slots.len() * size_of::<KeySlot<K, V>>()
    }

    /// The bytes of a table twice the size, if this one will soon be half full. `gathered`: how many
    /// keys will be put in next.
    pub(crate) fn growth(&self, gathered: usize) -> usize {
        let soon = (self.held + gathered) * 2 + NEAR_GROWTH;
        if soon > self.slots.len() { 2 * self.memory() } else { 0 }
    }

    #[inline]
    pub(crate) fn get(&self, key: K) -> Option<&V> {
        let slot = &self.slots[self.find(key)];
        (slot.key == key).then_some(&slot.value)
    }

    #[inline]
    pub(crate) fn entry(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        let mut at = self.find(key);
        if self.slots[at].key != key {
            let value = new();
            if (self.held + 1) * 2 > self.slots.len() {
                self.grow();
                at = self.find(key);
            }
            self.held += 1;
            self.slots[at] = KeySlot { key, value };
        }
        &mut self.slots[at].value
    }

    /// Asks for the memory of the slot where `key` belongs, without waiting for it.
    #[inline(always)]
    pub(crate) fn prefetch(&self, key: K) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            let slot = &self.slots[key.hash(self.seed) as usize & (self.slots.len() - 1)];
            // SAFETY: every x86_64 processor has SSE, and a prefetch reads and writes nothing.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(slot).cast());
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = key;
    }

    /// The slot that holds `key`, or the free one where it belongs.
    #[inline]
    fn find(&self, key: K) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = key.hash(self.seed) as usize & mask;
        while self.slots[at].key != key && self.slots[at].key != K::default() {
            at = (at + 1) & mask;
        }
        at
    }

    #[cold]
    fn grow(&mut self) {
        let free = KeySlot { key: K::default(), value: V::default() };
        let larger = memory::filled(free, self.slots.len() * 2);
        let old = std::mem::replace(&mut self.slots, larger);
        for slot in old.into_iter().filter(|slot| slot.key != K::default()) {
            let at = self.find(slot.key);
            self.slots[at] = slot;
        }
    }

    pub(crate) fn for_each(&self, mut each: impl FnMut(K, V)) {
        let held = self.slots.iter().filter(|slot| slot.key != K::default());
        held.for_each(|slot| each(slot.key, slot.value));
    }
}

/// The string of a key. Keys are made from strings only.
fn as_str(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("a segment is a string")
}

/// The first `length` bytes of a block, up to 15, and in the top byte how many. Sixteen were read and
/// the others are masked: a copy of variable length would cost more than the rest of a lookup.
#[inline]
pub(crate) fn short_key(block: u128, length: usize) -> u128 {
    block & MASKS[length & SHORT] | (length as u128) << (8 * SHORT)
}

/// The 16 bytes of a text from `at` on. Bytes behind its end are zero.
#[inline]
pub(crate) fn first_block(text: &[u8], at: usize) -> u128 {
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

#[cold]
fn last_block(text: &[u8], at: usize) -> u128 {
    let rest = text.len() - at;
    match text.last_chunk() {
        Some(block) => u128::from_le_bytes(*block).checked_shr(8 * (16 - rest as u32)).unwrap_or(0),
        None => {
            let mut block = [0; 16];
            block[..rest].copy_from_slice(&text[at..]);
            u128::from_le_bytes(block)
        }
    }
}

/// From 16 to 31 bytes and, in the top byte, how many.
#[inline]
pub(crate) fn middle_key(bytes: &[u8]) -> MiddleKey {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

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

    /// How many slots are looked at on average to find a key, in the middle one of tables of many seeds.
    fn probes<K: SegmentKey>(keys: impl Iterator<Item = K>) -> f64 {
        let keys: Vec<K> = keys.collect();
        let mut found: Vec<usize> = (0..9)
            .map(|_| {
                let mut table = KeyTable::new(1 << 6);
                keys.iter().for_each(|&key| *table.entry(key, || 0) += 1);
                let mask = table.slots.len() - 1;
                let begin = |key: K| key.hash(table.seed) as usize;
                keys.iter().map(|&key| (table.find(key).wrapping_sub(begin(key)) & mask) + 1).sum()
            })
            .collect();
        found.sort_unstable();
        found[4] as f64 / keys.len() as f64
    }

    #[test]
    fn keys_that_differ_in_few_bits_do_not_collide() {
        const KEYS: u128 = 1 << 12;
        // Random places take 1.5 probes where half of the slots are held.
        for shift in (0..=108).step_by(6) {
            let key = |n: u128| n << shift | 1 << 123;
            let all = [
                probes((1..KEYS).map(key)),
                probes((1..KEYS).map(|n| MiddleKey(key(n), 16 << 120))),
                probes((1..KEYS).map(|n| MiddleKey(7, key(n)))),
                probes((1..KEYS).map(|n| MiddleKey(key(n), key(n)))),
            ];
            assert!(all.iter().all(|&probes| probes < 4.0), "{shift}: {all:?}");
        }
    }

    #[test]
    fn nobody_knows_where_the_keys_of_a_table_are() {
        let hashes = || {
            let table = KeyTable::<u128, u32>::new(1 << 6);
            [1u128 << 120, 3 << 64, 5].map(|key| key.hash(table.seed))
        };
        assert_ne!(hashes(), hashes());
    }

    #[test]
    fn counts_like_a_plain_map() {
        let mut map = SegmentMap::<u64>::default();
        let mut plain = HashMap::new();
        for i in 0..if cfg!(miri) { 2_000 } else { 200_000u64 } {
            let n = i.wrapping_mul(0x9E37_79B9) % 7_919;
            let segment = format!("{}{n}", "é".repeat((n % 17) as usize));
            let rest = segment.as_bytes();
            let key = Segment { raw: &segment, start: 0, added: false, alone: None, rest };
            *map.entry(&key, || 0) += 1;
            *plain.entry(segment).or_insert(0) += 1;
        }
        let mut seen = HashMap::new();
        map.for_each(|segment, count| assert!(seen.insert(segment.to_owned(), count).is_none()));
        assert_eq!(map.len(), plain.len());
        assert_eq!(seen, plain);
    }
}
