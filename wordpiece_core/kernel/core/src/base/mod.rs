//! Building blocks for the other modules: errors, sums of counts, numbers of a wide range, hashes, tries,
//! threads and prefetching.

pub(crate) mod error;
pub(crate) mod hash;
pub(crate) mod prefetch;
pub mod sums;
pub(crate) mod threads;
pub(crate) mod trie;
pub(crate) mod wide;
