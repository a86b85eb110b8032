//! Counting words, training vocabularies of WordPiece, BPE and Unigram, and encoding.
//!
//! | to | read first |
//! |---|---|
//! | split texts into words | [`text::BertRules`] |
//! | count words | [`count::WordCounter`] |
//! | train WordPiece or BPE | [`train::Splitter`], [`train::Trainer`] |
//! | train Unigram | [`unigram::Corpus`] |
//! | encode texts | [`encode::Tokenizer`] |
//!
//! Functions that can fail return an [`Error`] with a message of one line. If memory runs out, or a regular
//! expression takes too long, work unwinds: [`encode::Tokenizer`] returns the error, and [`caught`] returns it for
//! other work. Threads can share tokenizers, splitters and text rules; sessions, counters and trainers belong to
//! one thread.
//!
//! | feature, all on by default | |
//! |---|---|
//! | `train` | the modules `train` and `unigram` |
//! | `threads` | several threads for a batch of texts, and for training; without it all is done by the caller's |
//! | `onig` | all regular expressions of a `tokenizer.json`; without it only the expressions of GPT-2, GPT-4, GPT-4o, Llama 3, Qwen and DeepSeek. Takes a C compiler |
//!
//! # Examples
//!
//! A tokenizer is made of plain data, and encodes texts:
//!
//! ```
//! use wordpiece_core::encode::{Layout, RowOptions, Tokenizer, TokenizerOptions, WordPieceOptions};
//! use wordpiece_core::text::{Composed, TextOptions};
//!
//! let vocabulary = ["[UNK]", "[CLS]", "[SEP]", "hug", "##s"];
//! let model = WordPieceOptions::default();
//! let options = TokenizerOptions::new(&vocabulary, TextOptions::default(), model);
//! let tokenizer = Tokenizer::new(TokenizerOptions { unk_id: Some(0), ..options })?;
//! let template = Layout { added: [vec![(1, 0)], vec![], vec![(2, 0)]], ..Layout::default() };
//! let options = RowOptions { layouts: [template, Layout::default()], ..RowOptions::default() };
//! let rows = tokenizer.encode(&["Hugs, pug", "hug"], &options)?;
//! assert!(rows.lists().flatten().eq([&[1, 3, 4, 0, 0, 2][..], &[1, 3, 2]]));
//!
//! // In place of BERT's, the normalizers and pre-tokenizers of any tokenizer.json:
//! let digits = r#"{"type": "Digits", "individual_digits": true}"#;
//! let rules = Composed::new(Some(r#"{"type": "NFKC"}"#), Some(digits), false)?;
//! let options = TokenizerOptions::new(&vocabulary, rules, WordPieceOptions::default());
//! let tokenizer = Tokenizer::new(TokenizerOptions { unk_id: Some(0), ..options })?;
//! assert_eq!(tokenizer.encode(&["hugs1"], &RowOptions::default())?.ids, [3, 4, 0]);
//! # Ok::<(), wordpiece_core::Error>(())
//! ```
//!
//! Two texts are counted, five tokens are trained by the score of WordPiece, and a text is encoded:
//!
#![cfg_attr(feature = "train", doc = "```")]
#![cfg_attr(not(feature = "train"), doc = "```ignore")]
//! use wordpiece_core::Result;
//! use wordpiece_core::count::WordCounter;
//! use wordpiece_core::encode::{RowOptions, Tokenizer, TokenizerOptions, WordPieceOptions};
//! use wordpiece_core::text::{TextOptions, WordMarks};
//! use wordpiece_core::train::{
//!     Criterion, RoundRuns, SplitScratch, Splits, Splitter, Ties, Tokens, TrainOptions, Trainer,
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
//!         TrainOptions { vocab_size: 14, criterion: Criterion::Pmi, min_pair_count: Some(1), ties: Ties::FirstPlace };
//!     let mut trainer = Trainer::new(Tokens::new(symbols.into(), marks, 100), options);
//!     trainer.start_whole_round(runs)?;
//!     trainer.run(usize::MAX);
//!     let tokens = trainer.tokens().strings();
//!     assert_eq!(tokens[9..], ["hu", "pu", "hug", "hugs", "pug"].map(Box::from));
//!
//!     let vocabulary: Vec<&str> = tokens.iter().map(|token| &**token).collect();
//!     let options = TokenizerOptions::new(&vocabulary, bert, WordPieceOptions::default());
//!     let tokenizer = Tokenizer::new(TokenizerOptions { unk_id: Some(0), ..options })?;
//!     let rows = tokenizer.encode(&["A hug!"], &RowOptions::default())?;
//!     assert_eq!(rows.ids, [3, 11, 0]); // a, hug, [UNK]
//!     Ok(())
//! }
//! ```

#![cfg_attr(not(feature = "train"), allow(dead_code))] // what training shares with the rest
#![deny(unsafe_code)] // except in `base::prefetch` and one loop of `encode::tokenizer::encoding`

mod base;
pub mod count;
pub mod encode;
#[doc(hidden)]
pub mod internals;
pub mod text;
#[cfg(feature = "train")]
pub mod train;
#[cfg(feature = "train")]
pub mod unigram;

pub use base::error::{Error, Result, caught};

#[cfg(all(test, feature = "train"))]
mod oracle;

const fn is_shared<T: Send + Sync>() {}
const fn is_sent<T: Send>() {}

/// Types that threads share, and types that can be sent to another thread.
const _: () = {
    is_shared::<encode::Tokenizer>();
    is_shared::<text::TextRules>();
    is_sent::<encode::Session<'_>>();
    is_sent::<count::WordCounter>();
};

#[cfg(feature = "train")]
const _: () = {
    is_shared::<train::Splitter>();
    is_sent::<train::Trainer>();
};
