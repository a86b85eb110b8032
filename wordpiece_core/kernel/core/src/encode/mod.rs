//! Encoding: the words of a text to ids (`tokenizer`), between added tokens (`added_tokens`), by a model (`model`):
//! WordPiece (`wordpiece`), BPE (`bpe`) or a unigram language model (`unigram`), with byte tokens for unknown
//! characters (`byte_fallback`); ids to rows (`rows`) or to sequences of one length (`pack`,
//! `best_fit`), on several threads (`blocks`); and metrics of tokenized text (`measure`).

pub(crate) mod added_tokens;
pub(crate) mod best_fit;
pub(crate) mod blocks;
pub(crate) mod bpe;
pub(crate) mod byte_fallback;
pub(crate) mod measure;
pub(crate) mod model;
pub(crate) mod pack;
pub(crate) mod rows;
pub(crate) mod tokenizer;
pub(crate) mod unigram;
pub(crate) mod vocabulary;
pub(crate) mod wordpiece;

pub use added_tokens::AddedToken;
pub use best_fit::BestFit;
pub use blocks::encode_blocks;
pub use bpe::{BpeOptions, merges_of_ranks};
pub use model::ModelOptions;
pub use pack::{PackOptions, Packer, Sequences};
pub use rows::{Layout, RowColumns, RowOptions, Rows, TextPair, Truncation, encode_rows};
pub use tokenizer::{Session, Tokenizer, TokenizerOptions};
pub use unigram::UnigramOptions;
pub use wordpiece::{UnkScope, WordPieceOptions};
