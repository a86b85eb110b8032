//! The kernel of wordpiece-beam: counting, training and encoding WordPiece.
//!
//! The modules are plain Rust over strings and integers; `arrow` turns Arrow arrays into their
//! types and back; `python` is the whole binding.

pub mod arrow;
pub mod blocks;
pub mod count;
pub mod cut;
pub mod encode;
pub mod error;
pub mod footer;
pub mod heap;
pub mod import;
pub mod matcher;
pub mod pack;
pub mod round;
pub mod rows;
pub mod run_sizes;
pub mod runs;
pub mod score;
pub mod segment_map;
pub mod splits;
pub mod text;
pub mod tokens;
pub mod train;
pub mod trie;
pub mod utf8;
pub mod watch;
pub mod words;

#[cfg(test)]
mod oracle;
#[cfg(feature = "python")]
mod python;
