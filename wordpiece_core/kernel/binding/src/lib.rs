//! The module `wordpiece_core._kernel` of Python. The algorithms are in [`wordpiece_core`].
//!
//! The module [`arrow`] checks Arrow arrays that come from outside, and converts between them and the
//! types of the algorithms. The module `python` has the functions and classes; it is compiled with the feature
//! `python` alone.

pub mod arrow;

#[cfg(feature = "python")]
mod python;
