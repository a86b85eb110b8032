//! The ranks of pairs.

use crate::encode::trie::NONE;

/// The ranks of pairs: a hash table with open addressing, at most half full.
pub(super) struct MergeTable {
    slots: Box<[MergeSlot]>,
    shift: u32,
}

#[derive(Clone, Copy)]
struct MergeSlot {
    left: u32,
    right: u32,
    /// `NONE` marks a free slot.
    rank: u32,
}

impl MergeTable {
    /// An empty table with room for so many pairs.
    pub(super) fn new(pairs: usize) -> Self {
        let slots = (2 * pairs).next_power_of_two().max(2);
        let free = MergeSlot { left: NONE, right: NONE, rank: NONE };
        MergeTable { slots: vec![free; slots].into(), shift: 64 - slots.ilog2() }
    }

    /// Puts a pair in; returns false if it was there.
    pub(super) fn insert(&mut self, left: u32, right: u32, rank: u32) -> bool {
        let at = self.find(left, right);
        let is_new = self.slots[at].rank == NONE;
        if is_new {
            self.slots[at] = MergeSlot { left, right, rank };
        }
        is_new
    }

    /// The rank of a pair; `NONE` if it is not there.
    #[inline]
    pub(super) fn rank(&self, left: u32, right: u32) -> u32 {
        self.slots[self.find(left, right)].rank
    }

    #[inline]
    fn find(&self, left: u32, right: u32) -> usize {
        let key = (left as u64) << 32 | right as u64;
        let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut at =
            ((mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> self.shift) as usize;
        loop {
            let slot = &self.slots[at];
            if slot.rank == NONE || slot.left == left && slot.right == right {
                return at;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }
}
