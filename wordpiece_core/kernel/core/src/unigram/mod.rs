//! Training of a unigram language model (Kudo 2018, "Subword Regularization", section 3.2), as
//! SentencePiece trains it.
//!
//! Words are split into runs (`runs`), which no piece crosses. The frequent substrings of runs are the
//! pieces that training begins with (`seeds`). Then the probabilities of pieces are estimated by
//! expectation maximization, and the pieces are dropped that the likelihood misses least (`steps`),
//! until few enough are left. What is summed over runs (`lattice`, `sums`) is the same on any
//! machine: a run takes additions and multiplications in a fixed order, and what it gives is rounded
//! to a whole number of units before it is added up. `corpus` keeps the runs in memory.

pub(crate) mod corpus;
pub(crate) mod lattice;
pub(crate) mod model;
pub(crate) mod runs;
#[doc(hidden)] // see `internals`
pub mod seeds;
#[doc(hidden)] // see `internals`
pub mod steps;
pub(crate) mod sums;

pub use corpus::Corpus;
pub use model::UnigramModel;
pub use sums::{Summand, Sums};
