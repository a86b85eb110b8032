//! A hash table from raw segments of text to numbers, which looks up many segments at once.
//!
//! Counting and encoding look up every segment of every text here. A segment of up to 31 bytes, as
//! nearly all are, is its own key: its bytes and its length make a number of 64, 128 or 256 bits. The
//! key is stored in the slot together with the value, so that a lookup touches one cache line and
//! follows no pointer. The segments of a text are gathered in a [`Batch`]; then the slots of all are
//! asked for, and only then read: so no lookup waits for memory. Longer segments go to an ordinary map.
//!
//! The tables use open addressing with linear probing by lines of a few slots, and are at most three
//! quarters full: memory that is waited for costs more than a second line. Each hashes with a random seed of
//! its own.

use foldhash::HashMap;

use crate::base::hash::Seed;
use crate::base::prefetch::prefetch;
use crate::text::segments::Bounds;

/// The length of the longest segments whose key has 8 bytes, in bytes. Their slots have 16, so that
/// the frequent ones fit into the processor's caches.
const TINY: usize = 7;
/// The length of the longest segments whose key is one number of 16 bytes, in bytes.
const SHORT: usize = 15;
/// The length of the longest segments whose key is two such numbers, in bytes.
const MIDDLE: usize = 31;

/// The lengths that the segments of each kind do not reach.
const TINY_END: usize = TINY + 1;
const SHORT_END: usize = SHORT + 1;
const MIDDLE_END: usize = MIDDLE + 1;

/// The most segments that are gathered. A power of two.
const BATCH: usize = 256;
/// The most segments in 64 bytes.
const BLOCK_SEGMENTS: usize = 64;

/// The value of a gathered segment that is not in the table. No segment may have it.
pub const MISSING: u64 = u64::MAX;

/// A map from segments to numbers.
#[derive(Default)]
pub struct SegmentTable {
    tiny: KeyTable<u64, 4>,
    short: KeyTable<u128, 2>,
    middle: KeyTable<MiddleKey, 3>,
    long: HashMap<Box<[u8]>, u64>,
    long_bytes: usize,
}

impl SegmentTable {
    /// How many segments are in the table.
    pub fn len(&self) -> usize {
        self.tiny.held + self.short.held + self.middle.held + self.long.len()
    }

    /// The memory that the table takes, in bytes, keys and free slots included.
    pub fn memory(&self) -> usize {
        let long = long_table(self.long.capacity()) + self.long.len() * 16 + self.long_bytes;
        self.tiny.memory() + self.short.memory() + self.middle.memory() + long
    }

    /// The memory that the table may take while a segment of `length` bytes is put in: a larger table
    /// is filled before the old one goes.
    pub(crate) fn memory_to_insert(&self, length: usize) -> usize {
        let more = match length {
            0..TINY_END => self.tiny.growth(1),
            TINY_END..SHORT_END => self.short.growth(1),
            SHORT_END..MIDDLE_END => self.middle.growth(1),
            _ if self.long.len() < self.long.capacity() => length + 16,
            _ => length + 16 + long_table(2 * self.long.capacity().max(4)),
        };
        self.memory() + more
    }

    /// An upper limit of the bytes of all segments together.
    pub(crate) fn text_bytes(&self) -> usize {
        self.tiny.held * TINY
            + self.short.held * SHORT
            + self.middle.held * MIDDLE
            + self.long_bytes
    }

    /// The value of a segment, if it is in the table.
    pub fn get(&self, segment: &[u8]) -> Option<u64> {
        match segment.len() {
            0..TINY_END => self.tiny.get(tiny_key(segment)),
            TINY_END..SHORT_END => {
                self.short.get(short_key(first_block(segment, 0), segment.len()))
            }
            SHORT_END..MIDDLE_END => self.middle.get(middle_key(segment)),
            _ => self.long.get(segment).copied(),
        }
    }

    /// The value of a segment, which is 0 if it was not in the table.
    pub fn entry(&mut self, segment: &[u8]) -> &mut u64 {
        match segment.len() {
            0..TINY_END => self.tiny.entry(tiny_key(segment)),
            TINY_END..SHORT_END => {
                self.short.entry(short_key(first_block(segment, 0), segment.len()))
            }
            SHORT_END..MIDDLE_END => self.middle.entry(middle_key(segment)),
            _ => {
                if !self.long.contains_key(segment) {
                    self.long_bytes += segment.len();
                    self.long.insert(Box::<[u8]>::from(segment), 0);
                }
                self.long.get_mut(segment).expect("just inserted")
            }
        }
    }

    /// Adds 1 to the value of every gathered segment. The batch is empty then.
    #[inline(never)]
    pub fn count(&mut self, batch: &mut Batch<false>) {
        self.tiny.count(&mut batch.tiny);
        self.short.count(&mut batch.short);
        self.middle.count(&mut batch.middle);
        batch.held = 0;
    }

    /// Finds the values of all gathered segments (see [`Batch::values`]).
    #[inline]
    pub fn find(&self, batch: &mut Batch<true>) {
        self.tiny.find_all(&mut batch.tiny, &mut batch.values);
        self.short.find_all(&mut batch.short, &mut batch.values);
        self.middle.find_all(&mut batch.middle, &mut batch.values);
    }

    /// The memory that counting a batch may take beyond that of the table.
    pub(crate) fn growth(&self, batch: &Batch<false>) -> usize {
        self.tiny.growth(batch.tiny.held)
            + self.short.growth(batch.short.held)
            + self.middle.growth(batch.middle.held)
    }

    /// Calls `each` with every segment and its value, in no particular order.
    pub fn for_each(&self, mut each: impl FnMut(&str, u64)) {
        self.tiny.for_each(|key, value| {
            let bytes = key.to_le_bytes();
            each(as_str(&bytes[..bytes[TINY] as usize]), value);
        });
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

/// The bytes of the map of longer segments with this capacity: the number of its slots is a power of
/// two, of which seven of eight may be used, and each has a byte of its own.
fn long_table(capacity: usize) -> usize {
    match capacity {
        0 => 0,
        _ => {
            (capacity * 8).div_ceil(7).next_power_of_two() * (size_of::<(Box<[u8]>, u64)>() + 1)
                + 16
        }
    }
}

/// Segments of a text that are looked up together. `IN_ORDER`: whether the place of each is kept.
pub struct Batch<const IN_ORDER: bool> {
    tiny: Keys<u64, IN_ORDER>,
    short: Keys<u128, IN_ORDER>,
    middle: Keys<MiddleKey, IN_ORDER>,
    bounds: [(usize, usize); BATCH],
    values: [u64; BATCH],
    held: usize,
}

impl<const IN_ORDER: bool> Default for Batch<IN_ORDER> {
    fn default() -> Self {
        Batch {
            tiny: Keys::default(),
            short: Keys::default(),
            middle: Keys::default(),
            bounds: [(0, 0); BATCH],
            values: [0; BATCH],
            held: 0,
        }
    }
}

impl<const IN_ORDER: bool> Batch<IN_ORDER> {
    /// Whether the segments of a block might not fit any more.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.held > BATCH - BLOCK_SEGMENTS
    }

    /// How many segments there are.
    pub fn len(&self) -> usize {
        self.held
    }

    /// Gathers the segments of a block. The batch must not be full.
    ///
    /// # Arguments
    ///
    /// * `bytes` - Those of a text, and what may be behind it.
    /// * `at` - Where the block begins.
    /// * `bounds` - Those of the segments.
    /// * `longer` - Takes segments of more than 31 bytes, which are not looked up with the others.
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
        } else {
            self.values[place % BATCH] = MISSING;
            longer(segment);
        }
    }

    /// An upper limit of the bytes of the gathered segments.
    pub(crate) fn text_bytes(&self) -> usize {
        self.tiny.held * TINY + self.short.held * SHORT + self.middle.held * MIDDLE
    }
}

impl Batch<true> {
    /// What was found of each segment, in order: its bounds in the text, and its value, which is
    /// [`MISSING`] if it has to be looked up by itself. Segments of more than 31 bytes always have to.
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
struct Keys<K, const IN_ORDER: bool> {
    keys: [K; BATCH],
    /// The number of each segment in the batch.
    places: [u8; BATCH],
    held: usize,
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

/// A table of one kind of keys, with open addressing by lines, at most three quarters full.
struct KeyTable<K, const SLOTS: usize> {
    lines: Vec<Line<K, SLOTS>>,
    held: usize,
    seed: Seed,
}

/// A cache line, or two: so many keys and their values. A key is in the line that its hash says, or in one
/// of those behind it if that was full. All keys of a line are compared, without a branch for each.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line<K, const SLOTS: usize> {
    /// The default, zero, marks an empty slot: a key's length, in its top byte, is never zero. Slots
    /// are filled in order.
    keys: [K; SLOTS],
    values: [u64; SLOTS],
}

impl<K: SegmentKey, const SLOTS: usize> Default for Line<K, SLOTS> {
    fn default() -> Self {
        Line { keys: [K::default(); SLOTS], values: [0; SLOTS] }
    }
}

impl<K: SegmentKey, const SLOTS: usize> Line<K, SLOTS> {
    /// The first slot that holds `key`, or the number of slots.
    #[inline(always)]
    fn slot_of(&self, key: K) -> usize {
        let mut slot = SLOTS;
        for (at, held) in self.keys.iter().enumerate().rev() {
            slot = if *held == key { at } else { slot };
        }
        slot
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.keys[SLOTS - 1] != K::default()
    }
}

/// The key of a segment of 16 to 31 bytes. It is compared as two numbers; an array would be compared
/// by a call.
#[derive(Clone, Copy, Default, PartialEq)]
struct MiddleKey(u128, u128);

trait SegmentKey: Copy + PartialEq + Default {
    fn hash(self, seed: Seed) -> u64;
}

impl<K: SegmentKey, const SLOTS: usize> Default for KeyTable<K, SLOTS> {
    fn default() -> Self {
        KeyTable { lines: vec![Line::default(); 1 << 4], held: 0, seed: Seed::random() }
    }
}

impl<K: SegmentKey, const SLOTS: usize> KeyTable<K, SLOTS> {
    fn memory(&self) -> usize {
        size_of_val(&self.lines[..])
    }

    /// The least lines that so many keys do not fill to more than three quarters.
    fn lines_for(keys: usize) -> usize {
        (keys * 4).div_ceil(3 * SLOTS).next_power_of_two()
    }

    /// The bytes of the larger tables that may be made while so many keys are put in.
    fn growth(&self, more: usize) -> usize {
        let needed = Self::lines_for(self.held + more);
        if needed > self.lines.len() { needed * size_of::<Line<K, SLOTS>>() } else { 0 }
    }

    #[inline]
    fn get(&self, key: K) -> Option<u64> {
        let (at, slot) = self.place(key);
        self.lines[at].values.get(slot).copied()
    }

    #[inline(always)]
    fn entry(&mut self, key: K) -> &mut u64 {
        let (mut at, mut slot) = self.place(key);
        if slot == SLOTS {
            (at, slot) = self.insert(key, at);
        }
        &mut self.lines[at].values[slot % SLOTS]
    }

    /// Puts a key in that is not there. `at`: the line where it belongs.
    #[cold]
    fn insert(&mut self, key: K, mut at: usize) -> (usize, usize) {
        if Self::lines_for(self.held + 1) > self.lines.len() {
            self.grow();
            (at, _) = self.place(key);
        }
        self.held += 1;
        let slot = self.lines[at].slot_of(K::default());
        self.lines[at].keys[slot] = key;
        (at, slot)
    }

    #[inline(always)]
    fn count<const IN_ORDER: bool>(&mut self, keys: &mut Keys<K, IN_ORDER>) {
        let keys = &keys.keys[..std::mem::take(&mut keys.held)];
        keys.iter().for_each(|&key| self.prefetch(key));
        keys.iter().for_each(|&key| *self.entry(key) += 1);
    }

    #[inline(always)]
    fn find_all(&self, keys: &mut Keys<K, true>, values: &mut [u64; BATCH]) {
        let held = std::mem::take(&mut keys.held);
        let keys_held = &keys.keys[..held];
        keys_held.iter().for_each(|&key| self.prefetch(key));
        for (&key, &place) in keys_held.iter().zip(&keys.places) {
            values[place as usize] = self.get(key).unwrap_or(MISSING);
        }
    }

    /// Asks for the memory of the line where `key` belongs, without waiting for it.
    #[inline(always)]
    fn prefetch(&self, key: K) {
        prefetch(&self.lines[key.hash(self.seed) as usize & (self.lines.len() - 1)]);
    }

    /// The line that holds `key` and the slot in it; or the line where it belongs, and the number of
    /// slots.
    #[inline(always)]
    fn place(&self, key: K) -> (usize, usize) {
        let mask = self.lines.len() - 1;
        let mut at = key.hash(self.seed) as usize & mask;
        loop {
            let line = &self.lines[at];
            let slot = line.slot_of(key);
            if slot < SLOTS || !line.is_full() {
                return (at, slot);
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![Line::default(); self.lines.len() * 2];
        let old = std::mem::replace(&mut self.lines, larger);
        for line in old {
            for (key, value) in line.keys.into_iter().zip(line.values) {
                if key != K::default() {
                    let (at, _) = self.place(key);
                    let slot = self.lines[at].slot_of(K::default());
                    self.lines[at].keys[slot] = key;
                    self.lines[at].values[slot] = value;
                }
            }
        }
    }

    fn for_each(&self, mut each: impl FnMut(K, u64)) {
        for line in &self.lines {
            let held = line.keys.iter().zip(&line.values).filter(|(key, _)| **key != K::default());
            held.for_each(|(&key, &value)| each(key, value));
        }
    }
}

/// The string of a key. Keys are made from strings only.
fn as_str(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("a segment is a string")
}

/// Up to 7 bytes and, in the top byte, how many.
fn tiny_key(bytes: &[u8]) -> u64 {
    short_key(first_block(bytes, 0), bytes.len()) as u64 | (bytes.len() as u64) << (8 * TINY)
}

/// The first `length` bytes of a block, up to 15, and in the top byte how many. Sixteen were read and
/// the others are masked: a copy of variable length would cost more than the rest of a lookup.
#[inline]
fn short_key(block: u128, length: usize) -> u128 {
    block & MASKS[length & SHORT] | (length as u128) << (8 * SHORT)
}

/// The 16 bytes of a text from `at` on. Bytes behind its end are zero.
#[inline]
fn first_block(text: &[u8], at: usize) -> u128 {
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
fn middle_key(bytes: &[u8]) -> MiddleKey {
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

    /// How many lines are looked at on average to find a key, in the middle one of tables of many seeds.
    fn probes<K: SegmentKey, const SLOTS: usize>(keys: impl Iterator<Item = K>) -> f64 {
        let keys: Vec<K> = keys.collect();
        let mut found: Vec<usize> = (0..9)
            .map(|_| {
                let mut table = KeyTable::<K, SLOTS>::default();
                keys.iter().for_each(|&key| *table.entry(key) += 1);
                let mask = table.lines.len() - 1;
                let begin = |key: K| key.hash(table.seed) as usize;
                let looked_at = |key| (table.place(key).0.wrapping_sub(begin(key)) & mask) + 1;
                keys.iter().map(|&key| looked_at(key)).sum()
            })
            .collect();
        found.sort_unstable();
        found[4] as f64 / keys.len() as f64
    }

    #[test]
    fn keys_that_differ_in_few_bits_do_not_collide() {
        const KEYS: u128 = 1 << 12;
        // Random places take 1.5 lines at most where two thirds of the slots are held.
        for shift in (0..=108).step_by(6) {
            let key = |n: u128| n << shift | 1 << 123;
            let all = [
                probes::<_, 2>((1..KEYS).map(key)),
                probes::<_, 3>((1..KEYS).map(|n| MiddleKey(key(n), 16 << 120))),
                probes::<_, 3>((1..KEYS).map(|n| MiddleKey(7, key(n)))),
                probes::<_, 3>((1..KEYS).map(|n| MiddleKey(key(n), key(n)))),
            ];
            assert!(all.iter().all(|&probes| probes < 4.0), "{shift}: {all:?}");
        }
    }

    #[test]
    fn nobody_knows_where_the_keys_of_a_table_are() {
        let hashes = || {
            let table = KeyTable::<u128, 2>::default();
            [1u128 << 120, 3 << 64, 5].map(|key| key.hash(table.seed))
        };
        assert_ne!(hashes(), hashes());
    }

    #[test]
    fn counts_like_a_plain_map() {
        let mut map = SegmentTable::default();
        let mut plain = HashMap::new();
        for i in 0..200_000u64 {
            let n = i.wrapping_mul(0x9E37_79B9) % 7_919;
            let segment = format!("{}{n}", "é".repeat((n % 17) as usize));
            *map.entry(segment.as_bytes()) += 1;
            *plain.entry(segment).or_insert(0) += 1;
        }
        let mut seen = HashMap::new();
        map.for_each(|segment, count| assert!(seen.insert(segment.to_owned(), count).is_none()));
        assert_eq!(map.len(), plain.len());
        assert_eq!(seen, plain);
    }
}
