//! What several of the other modules use: errors, memory that may be wanting, sums of counts, numbers of
//! a wide range, hashes, tries, and threads. It knows none of them.

pub(crate) mod error;
pub(crate) mod hash;
pub mod memory;
pub mod sums;
pub(crate) mod threads;
pub(crate) mod trie;
pub(crate) mod wide;
