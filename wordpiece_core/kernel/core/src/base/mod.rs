//! Building blocks for the other modules: errors, sums of counts, wide numbers, hashes, tries, threads and
//! prefetching. Depends on no other module.

pub(crate) mod error;
pub(crate) mod hash;
pub(crate) mod prefetch;
pub mod sums;
pub(crate) mod threads;
pub(crate) mod trie;
pub(crate) mod wide;
