//! Counting words, training vocabularies of WordPiece, BPE and Unigram, and encoding.
//!
//! | to | read first |
//! |---|---|
//! | split texts into words | [`text::BertRules`] |
//! | count words | [`count::WordCounter`] |
//! | train WordPiece or BPE | [`train::Splitter`], [`train::Trainer`] |
//! | train Unigram | [`unigram::Corpus`] |
//! | encode texts | [`encode::Encoder`] |
//!
//! Functions that can fail return an [`Error`], whose message has one line. A panic is a fault of this crate. Encoders,
//! splitters and rules of text are shared by threads; sessions, counters and trainers belong to one.
//!
//! | feature, all on by default | |
//! |---|---|
//! | `train` | the modules `train` and `unigram` |
//! | `threads` | several threads for a batch of texts, and for training; without it all is done by the caller's |
//! | `onig` | the regular expressions of a `tokenizer.json` but for those of published tokenizers; takes a C compiler |
//!
//! # Examples
//!
//! A text is encoded by a vocabulary of WordPiece:
//!
//! ```
//! use wordpiece_core::encode::{Encoder, EncoderOptions, Encoding, Model, UnkScope, WordPiece};
//! use wordpiece_core::text::{Composed, TextOptions, TextRules};
//!
//! let vocabulary = ["[UNK]", "hug", "##s"].into_iter().zip(0..);
//! let model = Model::WordPiece(WordPiece::new(vocabulary, "##", 0, UnkScope::Word, 100)?);
//! let encoder = Encoder::new(EncoderOptions::new(TextOptions::default(), model, 3))?;
//! let mut encoding = Encoding::default();
//! encoder.session(0).encode("Hugs, pug", false, &mut encoding);
//! assert_eq!(encoding.ids(), [1, 2, 0, 0]);
//!
//! // In place of BERT's, the normalizers and pre-tokenizers of any tokenizer.json:
//! let digits = r#"{"type": "Digits", "individual_digits": true}"#;
//! let rules = Composed::new(Some(r#"{"type": "NFKC"}"#), Some(digits), false)?;
//! let _rules = TextRules::Composed(rules.into());
//! # Ok::<(), wordpiece_core::Error>(())
//! ```
//!
//! Two texts are counted, five tokens are trained by the score of WordPiece, and a text is encoded:
//!
//! ```
//! use wordpiece_core::Result;
//! use wordpiece_core::count::WordCounter;
//! use wordpiece_core::encode::{Encoder, EncoderOptions, Encoding, Model, UnkScope, WordPiece};
//! use wordpiece_core::text::{TextOptions, WordMarks};
//! use wordpiece_core::train::{
//!     Criterion, RoundRuns, SplitScratch, Splits, Splitter, Tokens, TrainOptions, Trainer,
//! };
//!
//! fn main() -> Result<()> {
//!     let bert = TextOptions::default();
//!     let mut counter = WordCounter::new(bert, usize::MAX);
//!     counter.count(None, "Hug a pug,");
//!     counter.count(None, "a pug hugs.");
//!     let words = &counter.take(1)?[0].words;
//!
//!     let marks = WordMarks::Prefix("##".into());
//!     let symbols = ["[UNK]", ",", ".", "a", "h", "p", "##u", "##g", "##s"].map(String::from);
//!     let splitter = Splitter::new(symbols.iter().map(|s| &**s).zip(0..), marks.clone(), &[]);
//!     let (mut splits, mut split) = (Splits::default(), Vec::new());
//!     let mut scratch = SplitScratch::default();
//!     for (rank, (word, count)) in words.iter().enumerate() {
//!         splitter.split(word, &mut scratch, &mut split);
//!         splits.push((rank as u64, 0), count, &split);
//!     }
//!     let mut runs = RoundRuns::default();
//!     runs.extend(&splits)?;
//!     let options =
//!         TrainOptions { vocab_size: 14, criterion: Criterion::Pmi, min_pair_count: Some(1) };
//!     let mut trainer = Trainer::new(Tokens::new(symbols.into(), marks, 100), options);
//!     trainer.start_whole_round(runs)?;
//!     trainer.run(usize::MAX);
//!     let tokens = trainer.tokens().strings();
//!     assert_eq!(tokens[9..], ["hu", "pu", "hug", "hugs", "pug"].map(Box::from));
//!
//!     let vocabulary = tokens.iter().map(|token| &**token).zip(0..);
//!     let model = WordPiece::new(vocabulary, "##", 0, UnkScope::Word, 100)?;
//!     let options = EncoderOptions::new(bert, Model::WordPiece(model), tokens.len());
//!     let encoder = Encoder::new(options)?;
//!     let mut encoding = Encoding::default();
//!     encoder.session(0).encode("A hug!", false, &mut encoding);
//!     assert_eq!(encoding.ids(), [3, 11, 0]); // a, hug, [UNK]
//!     Ok(())
//! }
//! ```

#![cfg_attr(not(feature = "train"), allow(dead_code))] // what training shares with the rest
#![deny(unsafe_code)] // but for `base::memory` and one loop of `encode::encoder::encoding`

pub mod base;
pub mod count;
pub mod encode;
pub mod text;
#[cfg(feature = "train")]
pub mod train;
#[cfg(feature = "train")]
pub mod unigram;

pub use base::error::{Error, Result};

#[cfg(all(test, feature = "train"))]
mod oracle;

const fn is_shared<T: Send + Sync>() {}
const fn is_sent<T: Send>() {}

/// What threads share, and what one of them may have been given by another.
const _: () = {
    is_shared::<encode::Encoder>();
    is_shared::<text::TextRules>();
    is_sent::<encode::Session<'_>>();
    is_sent::<count::WordCounter>();
};

#[cfg(feature = "train")]
const _: () = {
    is_shared::<train::Splitter>();
    is_sent::<train::Trainer>();
};
