//! Counting words: a table that grows with the text, and lists of words with counts that are merged.

pub(crate) mod counter;
pub(crate) mod segment_counts;
#[doc(hidden)] // see `internals`
pub mod word_lists;

pub use counter::{WordCounter, WordPartition};
pub use word_lists::WordList;
