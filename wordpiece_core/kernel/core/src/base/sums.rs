//! Sums of counts. A sum must fit into Arrow's int64; one that does not is an error.

/// The error of a sum of counts that exceeds 2^63 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountOverflow;

/// Adds to a sum of counts.
///
/// # Errors
///
/// Returns [`CountOverflow`] if the sum exceeds 2^63 - 1.
pub fn add(sum: u64, more: u64) -> Result<u64, CountOverflow> {
    sum.checked_add(more).filter(|&sum| sum <= i64::MAX as u64).ok_or(CountOverflow)
}
