//! Encoding: the words of a text to ids (`encoder`), between added tokens (`added_tokens`), by a model (`model`): WordPiece (`matcher`), BPE (`bpe`) or a unigram language model (`unigram`), at random if that is wanted
//! (`sampling`), with tokens of bytes for unknown characters (`byte_fallback`); ids to rows (`rows`) or
//! to sequences of one length (`pack`), on several threads (`blocks`); and how text is split, in sums
//! (`measure`).

pub mod added_tokens;
pub mod blocks;
pub mod bpe;
pub(crate) mod byte_fallback;
pub mod encoder;
pub mod matcher;
pub mod measure;
pub mod model;
pub mod pack;
pub mod rows;
pub mod sampling;
pub mod unigram;
