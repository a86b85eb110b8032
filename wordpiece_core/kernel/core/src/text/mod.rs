//! Text to words: the rules that counting and encoding share. Knows strings and bytes only.

pub(crate) mod blocks;
pub mod byte_level;
pub(crate) mod charsmap;
pub mod compile;
pub mod composed;
pub mod csv_rows;
pub mod marks;
pub mod patterns;
pub mod pre_tokenize;
pub mod rules;
pub(crate) mod segment_table;
pub mod segments;
pub mod sentences;
pub mod unicode;
pub mod utf8;
