//! Counting words, training vocabularies of WordPiece, BPE and Unigram, and encoding.
//!
//! | to | read first |
//! |---|---|
//! | split texts into words | [`text::pre_tokenize::PreTokenizer`] |
//! | count words | [`count::counter::WordCounter`] |
//! | train WordPiece or BPE | [`train::splitter::Splitter`], [`train::trainer::Trainer`] |
//! | train Unigram | [`unigram::corpus::Corpus`] |
//! | encode texts | [`encode::encoder::Encoder`] |
//!
//! Functions that can fail return an [`Error`](base::error::Error), whose message has one line.
//!
//! # Examples
//!
//! Two texts are counted, five tokens are trained by the score of WordPiece, and a text is encoded:
//!
//! ```
//! use wordpiece_core::base::error::Result;
//! use wordpiece_core::count::counter::WordCounter;
//! use wordpiece_core::encode::encoder::{Encoder, EncoderOptions, Encoding};
//! use wordpiece_core::encode::matcher::UnkScope;
//! use wordpiece_core::encode::model::{Model, WordPiece};
//! use wordpiece_core::text::marks::WordMarks;
//! use wordpiece_core::text::pre_tokenize::TextOptions;
//! use wordpiece_core::train::round::RoundRuns;
//! use wordpiece_core::train::score::Criterion;
//! use wordpiece_core::train::splits::Splits;
//! use wordpiece_core::train::splitter::{SplitScratch, Splitter};
//! use wordpiece_core::train::tokens::Tokens;
//! use wordpiece_core::train::trainer::{TrainOptions, Trainer};
//!
//! fn main() -> Result<()> {
//!     let bert = TextOptions {
//!         clean_text: true,
//!         handle_chinese_chars: true,
//!         strip_accents: true,
//!         lowercase: true,
//!         split_punctuation: true,
//!     };
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
//!     let encoder = Encoder::new(EncoderOptions {
//!         text: bert.into(),
//!         model: Model::WordPiece(WordPiece::new(vocabulary, "##", 0, UnkScope::Word, 100)?),
//!         vocab_size: tokens.len(),
//!         unk_id: Some(0),
//!         added_tokens: Vec::new(),
//!         trimming: None,
//!     })?;
//!     let mut encoding = Encoding::default();
//!     encoder.session(0).encode("A hug!", false, &mut encoding);
//!     assert_eq!(encoding.ids(), [3, 11, 0]); // a, hug, [UNK]
//!     Ok(())
//! }
//! ```

#![deny(unsafe_code)] // but for `base::memory`, `text::blocks` and one loop of `encode::encoder::encoding`

pub mod base;
pub mod count;
pub mod encode;
pub mod text;
pub mod train;
pub mod unigram;

#[cfg(test)]
mod oracle;
