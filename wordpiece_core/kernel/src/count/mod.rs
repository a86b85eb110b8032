//! Counting words: a table that grows with the text, lists of words with counts that are merged,
//! and sums of counts that must not overflow.

pub mod counter;
pub mod segment_counts;
pub mod sums;
pub mod word_lists;
