//! Sums of counts.

/// The sum of counts exceeds 2^63 - 1.
#[derive(Debug, PartialEq, Eq)]
pub struct CountOverflow;

/// A sum of counts, which must fit into Arrow's int64.
pub fn add(sum: u64, more: u64) -> Result<u64, CountOverflow> {
    sum.checked_add(more).filter(|&sum| sum <= i64::MAX as u64).ok_or(CountOverflow)
}
