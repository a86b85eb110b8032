//! Counting words: a table that grows with the text, lists of words that are put together, and sums
//! of counts.

pub mod counter;
pub mod sums;
pub mod word_lists;
