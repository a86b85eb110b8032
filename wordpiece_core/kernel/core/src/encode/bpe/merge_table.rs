//! The ranks of pairs.

use crate::base::hash::Seed;
use crate::base::trie::NONE;

/// The ranks of pairs: a hash table with open addressing, at most half full. Most pairs that are looked
/// up are not there, which a much smaller Bloom filter says of nearly all of them.
pub(super) struct MergeTable {
    slots: Box<[MergeSlot]>,
    /// A Bloom filter of the pairs: two bits for each, in one word.
    may_hold: Box<[u64]>,
    seed: Seed,
}

/// The number of bits of the filter for each slot.
const BITS: usize = 4;

#[derive(Clone, Copy)]
struct MergeSlot {
    left: u32,
    right: u32,
    /// `NONE` marks a free slot.
    rank: u32,
}

impl MergeTable {
    /// Return an empty table with room for a number of pairs.
    pub(super) fn new(pairs: usize) -> Self {
        MergeTable::with_bits(pairs, BITS)
    }

    /// Return an empty table with `bits` bits of the filter for each slot.
    pub(super) fn with_bits(pairs: usize, bits: usize) -> Self {
        let slots = (2 * pairs).next_power_of_two().max(2);
        let free = MergeSlot { left: NONE, right: NONE, rank: NONE };
        let may_hold = vec![0; (slots * bits).div_ceil(64)].into();
        MergeTable { slots: vec![free; slots].into(), may_hold, seed: Seed::random() }
    }

    /// Insert a pair. Return false if it was there.
    pub(super) fn insert(&mut self, left: u32, right: u32, rank: u32) -> bool {
        let hash = self.hash(left, right);
        let (word, bits) = self.bits(hash);
        self.may_hold[word] |= bits;
        let at = self.find(hash, left, right);
        let is_new = self.slots[at].rank == NONE;
        if is_new {
            self.slots[at] = MergeSlot { left, right, rank };
        }
        is_new
    }

    /// Return false if the filter shows that a pair is missing.
    #[inline(always)]
    pub(super) fn may_hold(&self, left: u32, right: u32) -> bool {
        self.may_hold_hash(self.hash(left, right))
    }

    #[inline(always)]
    fn may_hold_hash(&self, hash: u64) -> bool {
        let (word, bits) = self.bits(hash);
        self.may_hold[word] & bits == bits
    }

    /// Return the rank of a pair, or `NONE`.
    #[inline]
    pub(super) fn rank(&self, left: u32, right: u32) -> u32 {
        let hash = self.hash(left, right);
        if !self.may_hold_hash(hash) {
            return NONE;
        }
        self.slots[self.find(hash, left, right)].rank
    }

    #[inline(always)]
    fn hash(&self, left: u32, right: u32) -> u64 {
        self.seed.hash(left.into(), right.into())
    }

    #[inline(always)]
    fn bits(&self, hash: u64) -> (usize, u64) {
        let word = (hash >> 32) as usize & (self.may_hold.len() - 1);
        (word, 1 << (hash >> 58) | 1 << (hash >> 52 & 63))
    }

    #[inline]
    fn find(&self, hash: u64, left: u32, right: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.rank == NONE || slot.left == left && slot.right == right {
                return at;
            }
            at = (at + 1) & mask;
        }
    }
}
