//! A table of keys of one kind, with open addressing by lines.

use super::batch::Keys;
use super::keys::SegmentKey;
use crate::base::hash::Seed;
use crate::base::prefetch::prefetch;

/// A table of one kind of keys, with open addressing by lines, at most three quarters full.
pub(super) struct KeyTable<K, V, const SLOTS: usize> {
    pub(super) lines: Vec<Line<K, V, SLOTS>>,
    pub(super) held: usize,
    seed: Seed,
}

/// A few keys and their values, in one or two cache lines. A key is in the line given by its hash or, if that was
/// full, in a later line. All keys of a line are compared without branches.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line<K, V, const SLOTS: usize> {
    /// The default, zero, marks an empty slot: a key's length, in its top byte, is never zero. Slots
    /// are filled in order.
    pub(super) keys: [K; SLOTS],
    pub(super) values: [V; SLOTS],
}

impl<K: SegmentKey, V: Copy + Default, const SLOTS: usize> Default for Line<K, V, SLOTS> {
    fn default() -> Self {
        Line { keys: [K::default(); SLOTS], values: [V::default(); SLOTS] }
    }
}

impl<K: SegmentKey, V, const SLOTS: usize> Line<K, V, SLOTS> {
    /// The slot that holds `key`; a larger number than any slot if there is none. It is computed from a mask:
    /// compilers make branches of comparisons, and the slot of a key is unpredictable.
    #[inline(always)]
    fn slot_of(&self, key: K) -> usize {
        let slots = self.keys.iter().enumerate();
        let mask = slots.fold(0, |mask, (slot, held)| mask | u32::from(*held == key) << slot);
        mask.trailing_zeros() as usize
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.keys[SLOTS - 1] != K::default()
    }
}

impl<K: SegmentKey, V: Copy + Default, const SLOTS: usize> Default for KeyTable<K, V, SLOTS> {
    fn default() -> Self {
        KeyTable { lines: vec![Line::default(); 1 << 4], held: 0, seed: Seed::random() }
    }
}

impl<K: SegmentKey, const SLOTS: usize> KeyTable<K, u64, SLOTS> {
    /// Adds 1 to the value of every key.
    #[inline(always)]
    pub(super) fn count(&mut self, keys: &mut Keys<K>) {
        let keys = &keys.keys[..std::mem::take(&mut keys.held)];
        keys.iter().for_each(|&key| self.prefetch(self.hash(key)));
        keys.iter().for_each(|&key| self.add(key));
    }

    /// Adds 1 to the value of a key.
    #[inline(always)]
    pub(super) fn add(&mut self, key: K) {
        *self.entry(key, self.hash(key)) += 1;
    }
}

impl<K: SegmentKey, V: Copy + Default, const SLOTS: usize> KeyTable<K, V, SLOTS> {
    pub(super) fn memory(&self) -> usize {
        size_of_val(&self.lines[..])
    }

    /// Return the number of lines that `keys` keys fill to at most three quarters.
    fn lines_for(keys: usize) -> usize {
        (keys * 4).div_ceil(3 * SLOTS).next_power_of_two()
    }

    /// Return the bytes of a larger table, if `more` keys do not fit.
    pub(super) fn growth(&self, more: usize) -> usize {
        let needed = Self::lines_for(self.held + more);
        if needed > self.lines.len() { needed * size_of::<Line<K, V, SLOTS>>() } else { 0 }
    }

    /// Empties the table, and gives its memory back.
    pub(super) fn clear(&mut self) {
        *self = KeyTable { seed: self.seed, ..Self::default() };
    }

    #[inline(always)]
    pub(super) fn hash(&self, key: K) -> u64 {
        key.hash(self.seed)
    }

    #[inline(always)]
    pub(super) fn get(&self, key: K, hash: u64) -> Option<&V> {
        let at = hash as usize & (self.lines.len() - 1);
        let line = &self.lines[at];
        let slot = line.slot_of(key);
        if slot < SLOTS {
            return Some(&line.values[slot]);
        }
        if line.is_full() { self.get_later(key, hash) } else { None }
    }

    #[inline(never)]
    fn get_later(&self, key: K, hash: u64) -> Option<&V> {
        let (at, slot) = self.place(key, hash);
        self.lines[at].values.get(slot)
    }

    #[inline(always)]
    pub(super) fn entry(&mut self, key: K, hash: u64) -> &mut V {
        let (mut at, mut slot) = self.place(key, hash);
        if slot >= SLOTS {
            (at, slot) = self.insert(key, hash, at);
        }
        &mut self.lines[at].values[slot % SLOTS]
    }

    /// Puts a key in that is not there. `at`: the line where it belongs.
    #[cold]
    pub(super) fn insert(&mut self, key: K, hash: u64, mut at: usize) -> (usize, usize) {
        if Self::lines_for(self.held + 1) > self.lines.len() {
            self.grow();
            (at, _) = self.place(key, hash);
        }
        self.held += 1;
        let slot = self.lines[at].slot_of(K::default());
        self.lines[at].keys[slot] = key;
        (at, slot)
    }

    /// Asks for the memory of the line where a key with this hash belongs, without waiting for it.
    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        prefetch(&self.lines[hash as usize & (self.lines.len() - 1)]);
    }

    /// The line that holds `key` and the slot in it; or the line where it belongs, and a larger number than any slot.
    #[inline(always)]
    pub(super) fn place(&self, key: K, hash: u64) -> (usize, usize) {
        let mask = self.lines.len() - 1;
        let mut at = hash as usize & mask;
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
                    let (at, _) = self.place(key, self.hash(key));
                    let slot = self.lines[at].slot_of(K::default());
                    self.lines[at].keys[slot] = key;
                    self.lines[at].values[slot] = value;
                }
            }
        }
    }

    pub(super) fn for_each(&self, mut each: impl FnMut(K, V)) {
        for line in &self.lines {
            let held = line.keys.iter().zip(&line.values).filter(|(key, _)| **key != K::default());
            held.for_each(|(&key, &value)| each(key, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::MiddleKey;
    use super::*;

    /// Return the mean number of lines that a search looks at, as the median over seeds.
    fn probes<K: SegmentKey, const SLOTS: usize>(keys: impl Iterator<Item = K>) -> f64 {
        let keys: Vec<K> = keys.collect();
        let mut found: Vec<usize> = (0..9)
            .map(|_| {
                let mut table = KeyTable::<K, u64, SLOTS>::default();
                keys.iter().for_each(|&key| table.add(key));
                let mask = table.lines.len() - 1;
                let begin = |key: K| table.hash(key) as usize;
                let looked_at =
                    |key| (table.place(key, table.hash(key)).0.wrapping_sub(begin(key)) & mask) + 1;
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
            let table = KeyTable::<u128, u64, 2>::default();
            [1u128 << 120, 3 << 64, 5].map(|key| table.hash(key))
        };
        assert_ne!(hashes(), hashes());
    }
}
