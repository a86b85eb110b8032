//! A heap of pairs by an upper bound of their scores.
//!
//! A merge lowers the counts of two tokens, which raises the pmi of every pair with one of them.
//! Rather than touch all those pairs, a pair's key is computed with a lower bound of its tokens'
//! counts, and so is an upper bound of its score until a count falls below its bound. The best
//! pair is then found by walking the heap from the top, past every key that could still beat the
//! best true score seen: few, since keys are tight.

use std::cmp::Ordering;

use crate::score::Score;

/// An upper bound of a pair's score, and the rank of a word that is not after the first with it.
#[derive(Clone, Copy)]
pub struct Key {
    pub bound: Score,
    pub first: u64,
}

impl Key {
    /// The better key is the greater: a higher bound, then an earlier word.
    fn compare(&self, other: &Key) -> Ordering {
        self.bound.compare(&other.bound).then_with(|| other.first.cmp(&self.first))
    }
}

#[derive(Default)]
pub struct PairHeap {
    entries: Vec<(Key, u32)>,
    /// Of each pair, its index in `entries`, or ABSENT.
    slots: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;
/// Children a node has: a flat heap walks less memory.
const ARITY: usize = 4;

impl PairHeap {
    pub fn contains(&self, pair: u32) -> bool {
        self.slots.get(pair as usize).is_some_and(|&slot| slot != ABSENT)
    }

    /// Inserts a pair, or gives it another key.
    pub fn set(&mut self, pair: u32, key: Key) {
        if self.slots.len() <= pair as usize {
            self.slots.resize(pair as usize + 1, ABSENT);
        }
        let slot = self.slots[pair as usize] as usize;
        if slot == ABSENT as usize {
            self.entries.push((key, pair));
            self.rise(self.entries.len() - 1);
        } else {
            let rises = key.compare(&self.entries[slot].0).is_gt();
            self.entries[slot].0 = key;
            if rises { self.rise(slot) } else { self.sink(slot) }
        }
    }

    pub fn remove(&mut self, pair: u32) {
        if !self.contains(pair) {
            return;
        }
        let slot = self.slots[pair as usize] as usize;
        self.slots[pair as usize] = ABSENT;
        let last = self.entries.pop().expect("the heap holds the pair");
        if slot < self.entries.len() {
            self.entries[slot] = last;
            self.slots[last.1 as usize] = slot as u32;
            self.rise(slot);
            self.sink(self.slots[last.1 as usize] as usize);
        }
    }

    /// Visits pairs from the top of the heap. `visit` is given a key and its pair, and says
    /// whether to go on to the pairs below it, whose keys are no better.
    pub fn walk(&self, mut visit: impl FnMut(&Key, u32) -> bool) {
        let mut open: Vec<usize> = (0..self.entries.len().min(1)).collect();
        while let Some(slot) = open.pop() {
            let (key, pair) = &self.entries[slot];
            if visit(key, *pair) {
                let below = slot * ARITY + 1;
                open.extend((below..(below + ARITY).min(self.entries.len())).rev());
            }
        }
    }

    fn rise(&mut self, mut slot: usize) {
        let entry = self.entries[slot];
        while slot > 0 {
            let above = (slot - 1) / ARITY;
            if entry.0.compare(&self.entries[above].0).is_le() {
                break;
            }
            self.put(slot, self.entries[above]);
            slot = above;
        }
        self.put(slot, entry);
    }

    fn sink(&mut self, mut slot: usize) {
        let entry = self.entries[slot];
        loop {
            let below = slot * ARITY + 1;
            let children = below..(below + ARITY).min(self.entries.len());
            let Some(best) =
                children.max_by(|&a, &b| self.entries[a].0.compare(&self.entries[b].0))
            else {
                break;
            };
            if self.entries[best].0.compare(&entry.0).is_le() {
                break;
            }
            self.put(slot, self.entries[best]);
            slot = best;
        }
        self.put(slot, entry);
    }

    fn put(&mut self, slot: usize, entry: (Key, u32)) {
        self.entries[slot] = entry;
        self.slots[entry.1 as usize] = slot as u32;
    }
}
