//! Training: splits of words and what is counted over them, what of them a round holds, and the
//! merges of a round.
//!
//! `splits` is what a worker makes of a part of the word table. `cut`, `watch`, `runs` and
//! `run_sizes` choose what of it a round must hold; `round`, `heap` and `score` find the best pair
//! and merge it; `trainer` goes from round to round.

pub mod cut;
pub mod heap;
pub mod round;
pub mod run_sizes;
pub mod runs;
pub mod score;
pub mod splits;
pub mod tokens;
pub mod trainer;
pub mod watch;
