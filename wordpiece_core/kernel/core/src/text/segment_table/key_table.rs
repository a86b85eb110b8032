//! A table of keys of one kind, with open addressing by lines.

use super::batch::{BATCH, Keys, MISSING};
use super::keys::SegmentKey;
use crate::base::hash::Seed;
use crate::base::prefetch::prefetch;

/// A table of one kind of keys, with open addressing by lines, at most three quarters full.
pub(super) struct KeyTable<K, const SLOTS: usize> {
    pub(super) lines: Vec<Line<K, SLOTS>>,
    pub(super) held: usize,
    seed: Seed,
}

/// A few keys and their values, in one or two cache lines. A key is in the line given by its hash or, if that was
/// full, in a later line. All keys of a line are compared without branches.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Line<K, const SLOTS: usize> {
    /// The default, zero, marks an empty slot: a key's length, in its top byte, is never zero. Slots
    /// are filled in order.
    pub(super) keys: [K; SLOTS],
    pub(super) values: [u64; SLOTS],
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

impl<K: SegmentKey, const SLOTS: usize> Default for KeyTable<K, SLOTS> {
    fn default() -> Self {
        KeyTable { lines: vec![Line::default(); 1 << 4], held: 0, seed: Seed::random() }
    }
}

impl<K: SegmentKey, const SLOTS: usize> KeyTable<K, SLOTS> {
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
        if needed > self.lines.len() { needed * size_of::<Line<K, SLOTS>>() } else { 0 }
    }

    #[inline]
    pub(super) fn get(&self, key: K) -> Option<u64> {
        let (at, slot) = self.place(key);
        self.lines[at].values.get(slot).copied()
    }

    #[inline(always)]
    pub(super) fn entry(&mut self, key: K) -> &mut u64 {
        let (mut at, mut slot) = self.place(key);
        if slot == SLOTS {
            (at, slot) = self.insert(key, at);
        }
        &mut self.lines[at].values[slot % SLOTS]
    }

    /// Puts a key in that is not there. `at`: the line where it belongs.
    #[cold]
    pub(super) fn insert(&mut self, key: K, mut at: usize) -> (usize, usize) {
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
    pub(super) fn count<const IN_ORDER: bool>(&mut self, keys: &mut Keys<K, IN_ORDER>) {
        let keys = &keys.keys[..std::mem::take(&mut keys.held)];
        keys.iter().for_each(|&key| self.prefetch(key));
        keys.iter().for_each(|&key| *self.entry(key) += 1);
    }

    #[inline(always)]
    pub(super) fn find_all(&self, keys: &mut Keys<K, true>, values: &mut [u64; BATCH]) {
        let held = std::mem::take(&mut keys.held);
        let keys_held = &keys.keys[..held];
        keys_held.iter().for_each(|&key| self.prefetch(key));
        for (&key, &place) in keys_held.iter().zip(&keys.places) {
            values[place as usize] = self.get(key).unwrap_or(MISSING);
        }
    }

    /// Asks for the memory of the line where `key` belongs, without waiting for it.
    #[inline(always)]
    pub(super) fn prefetch(&self, key: K) {
        prefetch(&self.lines[key.hash(self.seed) as usize & (self.lines.len() - 1)]);
    }

    /// The line that holds `key` and the slot in it; or the line where it belongs, and the number of
    /// slots.
    #[inline(always)]
    pub(super) fn place(&self, key: K) -> (usize, usize) {
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

    pub(super) fn for_each(&self, mut each: impl FnMut(K, u64)) {
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
}
