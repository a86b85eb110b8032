//! Encoding: the words of a text to ids (`encoder`, `matcher`, `trie`), ids to rows (`rows`) or to
//! sequences of one length (`pack`), on several threads (`blocks`); and how text is cut, in sums
//! (`measure`).

pub mod blocks;
pub mod encoder;
pub mod matcher;
pub mod measure;
pub mod pack;
pub mod rows;
pub mod trie;
