//! Training: splits of words and what is counted over them, what of them a round holds, and the
//! merges of a round.
//!
//! Training goes in rounds. At the beginning of a round the tokens and pairs are counted over the
//! whole corpus; then the round merges pairs in the runs that it holds in memory, until it is uncertain
//! which pair is the best of the whole corpus. `splits`, `splitter` and `tokens` have what a worker
//! makes of a part of the word table. `threshold`, `runs` and `run_sizes` choose what of it a round must
//! hold. `round`, `heap` and `score` find the best pair and merge it. `trainer` goes from round to
//! round. `longest` tokenizes words by a vocabulary that is to be extended or pruned.

pub(crate) mod heap;
pub(crate) mod longest;
pub(crate) mod round;
pub(crate) mod run_sizes;
pub(crate) mod runs;
pub(crate) mod score;
pub(crate) mod splits;
pub(crate) mod splitter;
pub(crate) mod threshold;
pub(crate) mod tokens;
pub(crate) mod trainer;

pub use round::RoundRuns;
pub use score::Criterion;
pub use splits::{Splits, WordLimits};
pub use splitter::{SplitScratch, Splitter};
pub use tokens::Tokens;
pub use trainer::{Merge, Status, Ties, TrainOptions, Trainer};
