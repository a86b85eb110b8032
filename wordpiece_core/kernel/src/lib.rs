//! The kernel of wordpiece-beam: counting words, training vocabularies of WordPiece, BPE and Unigram,
//! and encoding.
//!
//! The modules [`text`], [`count`], [`train`], [`unigram`] and [`encode`] are plain Rust over strings and
//! integers; they know neither Arrow nor Python. [`base`] is what several of them use. The module [`arrow`] checks Arrow arrays that come
//! from outside, and converts between them and the types of the other modules. The module [`shards`]
//! writes ids as Parquet. The module `python` is the whole binding; it is compiled with the feature
//! `python` alone.
//!
//! Where to begin reading: [`text::pre_tokenize::PreTokenizer`] (text to words),
//! [`count::counter::WordCounter`] (counting), [`encode::encoder::Encoder`] (words to ids),
//! [`train::splitter::Splitter`] and [`train::trainer::Trainer`] (training by merges),
//! [`unigram::corpus`] (training of Unigram).

#![warn(missing_docs)]

pub mod arrow;
pub mod base;
pub mod count;
pub mod encode;
pub mod shards;
pub mod text;
pub mod train;
pub mod unigram;

#[cfg(test)]
mod oracle;
#[cfg(feature = "python")]
mod python;
