//! Training: splits of words and what is counted over them, what of them a round holds, and the
//! merges of a round.
//!
//! Training goes in rounds. At the beginning of a round the tokens and pairs are counted over the
//! whole corpus; then the round merges pairs in what it holds in memory, as long as it is certain
//! which pair is the best of the whole corpus. `splits`, `splitter` and `tokens` have what a worker
//! makes of a part of the word table. `threshold`, `runs` and `run_sizes` choose what of it a round must
//! hold. `round`, `heap` and `score` find the best pair and merge it. `trainer` goes from round to
//! round. `longest` tokenizes words by a vocabulary that is to be extended or pruned.

pub(crate) mod heap;
pub mod longest;
pub mod round;
pub mod run_sizes;
pub mod runs;
pub mod score;
pub mod splits;
pub mod splitter;
pub(crate) mod threshold;
pub mod tokens;
pub mod trainer;
