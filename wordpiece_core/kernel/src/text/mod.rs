//! Text to words, once for counting and encoding. Knows strings and bytes only.

pub mod pre_tokenize;
pub mod segment_map;
pub mod utf8;
