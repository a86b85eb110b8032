//! A heap of pairs, ordered by an upper bound of their scores.
//!
//! A merge lowers the counts of two tokens, which raises the pmi of every pair with one of them.
//! To touch all those pairs would cost far more than the merge. Instead, the key of a pair is
//! computed with a lower bound of the counts of its tokens, and so it is an upper bound of the score
//! until a count falls below its bound. The best pair is found by walking the heap from the top,
//! past every key that may still beat the best true score seen so far. These are few, since the
//! bounds are close.

use std::cmp::Ordering;

use crate::train::score::{Score, compare_approx};

/// The sort key of a pair in the heap.
#[derive(Clone, Copy)]
pub struct HeapKey {
    /// An upper bound of its score.
    pub bound: Score,
    /// The index of a run that is the first with the pair, or before it. Of two pairs with equal bounds
    /// the one with the lower index comes first.
    pub first: u32,
}

/// A heap of pairs, which are named by their indices.
#[derive(Default)]
pub struct PairHeap {
    entries: Vec<HeapEntry>,
    /// By pair, its index in `entries`, or `ABSENT`.
    slots: Vec<u32>,
    /// By pair, the bound of its score. Entries have it as a double, which settles most comparisons.
    bounds: Vec<Score>,
}

#[derive(Clone, Copy)]
struct HeapEntry {
    approx: f64,
    first: u32,
    pair: u32,
}

const ABSENT: u32 = u32::MAX;
/// The number of children of a node. A flat heap touches less memory than a binary one.
const ARITY: usize = 4;

impl PairHeap {
    /// Return true if the heap has a pair.
    pub fn contains(&self, pair: u32) -> bool {
        self.slots.get(pair as usize).is_some_and(|&slot| slot != ABSENT)
    }

    /// Puts a pair into the heap, or gives it another key.
    pub fn set(&mut self, pair: u32, key: HeapKey) {
        let entry = HeapEntry { approx: key.bound.approx(), first: key.first, pair };
        if self.slots.len() <= pair as usize {
            self.slots.resize(pair as usize + 1, ABSENT);
            self.bounds.resize(pair as usize + 1, key.bound);
        }
        let slot = self.slots[pair as usize];
        if slot == ABSENT {
            self.bounds[pair as usize] = key.bound;
            self.entries.push(entry);
            self.sift_up(self.entries.len() - 1);
        } else {
            let old = HeapKey { bound: self.bounds[pair as usize], first: self.at(slot).first };
            let order = key.bound.compare(&old.bound).then_with(|| old.first.cmp(&key.first));
            self.bounds[pair as usize] = key.bound;
            self.entries[slot as usize] = entry;
            match order {
                Ordering::Greater => self.sift_up(slot as usize),
                Ordering::Less => self.sift_down(slot as usize),
                Ordering::Equal => {}
            }
        }
    }

    /// Takes a pair out of the heap, if it is there.
    pub(crate) fn remove(&mut self, pair: u32) {
        if !self.contains(pair) {
            return;
        }
        let slot = self.slots[pair as usize] as usize;
        self.slots[pair as usize] = ABSENT;
        let last = self.entries.pop().expect("the heap holds the pair");
        if slot < self.entries.len() {
            self.put(slot, last);
            self.sift_up(slot);
            self.sift_down(self.slots[last.pair as usize] as usize);
        }
    }

    /// Visit pairs from the top of the heap. `visit` is called with a key and its pair; it returns true to
    /// continue with the pairs below, whose keys are not better.
    pub(crate) fn walk(&self, mut visit: impl FnMut(&HeapKey, u32) -> bool) {
        let mut open: Vec<usize> = (0..self.entries.len().min(1)).collect();
        while let Some(slot) = open.pop() {
            let HeapEntry { first, pair, .. } = self.entries[slot];
            if visit(&HeapKey { bound: self.bounds[pair as usize], first }, pair) {
                let below = slot * ARITY + 1;
                open.extend((below..(below + ARITY).min(self.entries.len())).rev());
            }
        }
    }

    fn at(&self, slot: u32) -> &HeapEntry {
        &self.entries[slot as usize]
    }

    /// The better key is the greater: a higher bound, then an earlier run.
    fn compare(&self, a: &HeapEntry, b: &HeapEntry) -> Ordering {
        compare_approx(a.approx, b.approx).unwrap_or_else(|| {
            let bounds = [a, b].map(|entry| &self.bounds[entry.pair as usize]);
            bounds[0].compare(bounds[1]).then_with(|| b.first.cmp(&a.first))
        })
    }

    fn sift_up(&mut self, mut slot: usize) {
        let entry = self.entries[slot];
        while slot > 0 {
            let above = (slot - 1) / ARITY;
            if self.compare(&entry, &self.entries[above]).is_le() {
                break;
            }
            self.put(slot, self.entries[above]);
            slot = above;
        }
        self.put(slot, entry);
    }

    fn sift_down(&mut self, mut slot: usize) {
        let entry = self.entries[slot];
        loop {
            let below = slot * ARITY + 1;
            let children = below..(below + ARITY).min(self.entries.len());
            let best = children.max_by(|&a, &b| self.compare(&self.entries[a], &self.entries[b]));
            let Some(best) = best else { break };
            if self.compare(&self.entries[best], &entry).is_le() {
                break;
            }
            self.put(slot, self.entries[best]);
            slot = best;
        }
        self.put(slot, entry);
    }

    fn put(&mut self, slot: usize, entry: HeapEntry) {
        self.entries[slot] = entry;
        self.slots[entry.pair as usize] = slot as u32; // it fits, since a pair is a u32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::train::score::{Counts, Criterion};
    use wordpiece_testing::Random;

    fn score(pair: u64, left: u64) -> Score {
        let counts =
            Counts { pair, merges: pair, left, right: left, merged: 0, total: 9, same: false };
        Score::of(Criterion::Pmi, &counts)
    }

    /// From the best to the worst: by score, then by the earlier run.
    fn order(a: &HeapKey, b: &HeapKey) -> Ordering {
        b.bound.compare(&a.bound).then(a.first.cmp(&b.first))
    }

    #[test]
    fn the_heap_gives_what_a_sorted_list_gives() {
        let mut random = Random::new(4);
        for _ in 0..200 {
            let (mut heap, mut plain) = (PairHeap::default(), HashMap::<u32, HeapKey>::new());
            for _ in 0..random.below(300) {
                let pair = random.below(60) as u32;
                if random.below(4) == 0 {
                    heap.remove(pair);
                    plain.remove(&pair);
                } else {
                    // There are few scores, some of them equal and some nearly equal.
                    let n = [1, 2, 3, 1 << 40][random.below(4)] + random.below(2) as u64;
                    let key = HeapKey { bound: score(n, n), first: random.below(3) as u32 };
                    heap.set(pair, key);
                    plain.insert(pair, key);
                }
                assert_eq!(heap.contains(pair), plain.contains_key(&pair));
            }
            let mut visited = Vec::new();
            heap.walk(|_, pair| {
                visited.push(pair);
                true
            });
            visited.sort_unstable();
            let mut all: Vec<u32> = plain.keys().copied().collect();
            all.sort_unstable();
            assert_eq!(visited, all);
            all.sort_by(|a, b| order(&plain[a], &plain[b]));
            for expected in all {
                let mut top = None;
                heap.walk(|key, pair| {
                    top = Some((*key, pair));
                    false
                });
                let (key, pair) = top.unwrap();
                assert!(
                    order(&key, &plain[&expected]).is_eq() && order(&key, &plain[&pair]).is_eq()
                );
                heap.remove(pair);
            }
            heap.walk(|_, _| unreachable!("the heap is empty"));
        }
    }
}
