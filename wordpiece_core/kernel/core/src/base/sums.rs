//! Sums of counts. A sum that does not fit into Arrow's int64 is an error.

use crate::base::error::{Error, Result};

/// Adds to a sum of counts.
///
/// # Errors
///
/// Returns [`Error::Overflow`] if the sum exceeds 2^63 - 1.
#[inline]
pub fn add(sum: u64, more: u64) -> Result<u64> {
    sum.checked_add(more).filter(|&sum| sum <= i64::MAX as u64).ok_or(Error::Overflow)
}
