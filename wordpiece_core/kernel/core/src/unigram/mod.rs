//! Training of a unigram language model (Kudo 2018, "Subword Regularization", section 3.2), as
//! SentencePiece trains it.
//!
//! Words are split into runs (`runs`), which no piece crosses. The frequent substrings of runs are the
//! pieces that training begins with (`seeds`). Then the probabilities of pieces are estimated by
//! expectation maximization, and the pieces are dropped that the likelihood misses least (`steps`),
//! until few enough are left. What is summed over runs (`lattice`, `sums`) is the same on any
//! machine: a run takes additions and multiplications in a fixed order, and what it gives is rounded
//! to a whole number of units before it is added up. `corpus` keeps the runs in memory.
//!
//! # Examples
//!
//! Eight pieces are trained: the characters, and what covers most of the words.
//!
//! ```
//! use std::collections::BTreeMap;
//! use wordpiece_core::unigram::{Corpus, RunSplitter, Summand, first_model};
//!
//! let words = [("hug", 10), ("pug", 5), ("hugs", 5)];
//! let splitter = RunSplitter::new(None, 100);
//! let (mut corpus, mut characters) = (Corpus::default(), BTreeMap::new());
//! for (word, count) in words {
//!     splitter.each_run(word, &mut String::new(), |run, _| {
//!         corpus.add(run, count).unwrap();
//!         run.chars().for_each(|c| *characters.entry(c).or_insert(0) += u128::from(count));
//!     });
//! }
//! let seeds = corpus.seeds(16, 1000, 1)?.into_iter();
//! let seeds = seeds.map(|seed| (seed.piece.into(), u128::from(seed.count) * seed.characters as u128));
//! let characters = characters.into_iter().map(|(c, count)| (c.to_string().into(), count));
//! let mut model = first_model(characters.chain(seeds).collect())?;
//! while model.len() > 8 {
//!     for _ in 0..2 {
//!         let expected = corpus.sums(&model, Summand::Expected, 1 << 20, 1)?;
//!         model = model.maximized(&expected.by_piece)?;
//!     }
//!     let best = corpus.sums(&model, Summand::Best, 1 << 20, 1)?;
//!     model = model.pruned(&best.by_piece, (model.len() * 3 / 4).max(8), 1)?;
//! }
//! let pieces: Vec<&str> = model.pieces().iter().map(|piece| &**piece).collect();
//! assert_eq!(pieces, ["g", "h", "p", "s", "u", "▁", "▁hug", "▁pug"]);
//! # Ok::<(), wordpiece_core::Error>(())
//! ```

pub(crate) mod corpus;
pub(crate) mod lattice;
pub(crate) mod model;
pub(crate) mod runs;
#[doc(hidden)] // see `internals`
pub mod seeds;
pub(crate) mod steps;
pub(crate) mod sums;

pub use corpus::Corpus;
pub use model::UnigramModel;
pub use runs::RunSplitter;
pub use seeds::SeedPiece;
pub use steps::first_model;
pub use sums::{Summand, Sums};
