//! The kernel of wordpiece-beam: counting, training and encoding WordPiece.
//!
//! A folder is a room. `text`, `count`, `train` and `encode` are plain Rust over strings and
//! integers; `arrow` checks Arrow arrays from outside, and turns them into the types of the others
//! and back; `python` is the whole binding.

pub mod arrow;
pub mod count;
pub mod encode;
pub mod error;
pub mod text;
pub mod train;

#[cfg(test)]
mod oracle;
#[cfg(feature = "python")]
mod python;
