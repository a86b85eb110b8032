//! Record batches of the training of a unigram language model.

use std::sync::Arc;

use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, RecordBatch};

use super::table::{Bits, Column, Text, table};
use crate::base::error::{Error, Result};
use crate::unigram::model::UnigramModel;

table! {
    /// The pieces of a model, with their scores.
    Pieces, |row: (Arc<str>, f64)| {
        piece: Text = row.0.clone(),
        score: Float64Type = row.1,
    } => (Arc<str>, f64) { (piece, score) }
}

table! {
    /// Sums, numbers of 128 bits.
    PieceSums, |sum: u128| {
        high: Bits = (sum >> 64) as u64,
        low: Bits = *sum as u64,
    } => u128 { (high as u128) << 64 | low as u128 }
}

/// The record batch of a model: its [`Pieces`].
///
/// # Errors
///
/// None that a model can have.
pub fn model_batch(model: &UnigramModel) -> Result<RecordBatch> {
    Pieces::batch(model.pieces().iter().cloned().zip(model.scores().iter().copied()))
}

/// Reads the record batch of [`model_batch`].
///
/// # Errors
///
/// Returns [`Error::Data`] if a column is missing, of another type, or has nulls, and for what is no
/// model.
pub fn read_model(table: &RecordBatch) -> Result<UnigramModel> {
    let (pieces, scores) = Pieces::read(table)?.into_iter().unzip();
    UnigramModel::new(pieces, scores)
}

/// Adds the sums in record batches of [`PieceSums`].
///
/// # Errors
///
/// Returns [`Error::Data`] if one cannot be read, or they are not of equal length.
pub fn add_sums(batches: &[RecordBatch]) -> Result<Vec<u128>> {
    let mut sums: Vec<u128> = Vec::new();
    for (number, batch) in batches.iter().enumerate() {
        let more = PieceSums::read(batch)?;
        if number == 0 {
            sums = more;
            continue;
        }
        if more.len() != sums.len() {
            return Err(Error::data("sums over other pieces"));
        }
        for (sum, more) in sums.iter_mut().zip(more) {
            *sum = sum.checked_add(more).ok_or(Error::Overflow)?;
        }
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::super::checks::check_columns;
    use super::*;

    #[test]
    fn batches_come_back() {
        let model = UnigramModel::new(vec!["a".into(), "é".into()], vec![-1.5, -0.5]).unwrap();
        let table = model_batch(&model).unwrap();
        let back = read_model(&table).unwrap();
        assert_eq!((back.pieces(), back.scores()), (model.pieces(), model.scores()));
        check_columns(&table, Pieces::COLUMNS, |table| read_model(table).map(drop));
        let sums = [0, 1, u64::MAX as u128, 1 << 100, u128::MAX >> 1];
        let table = PieceSums::batch(sums.iter().copied()).unwrap();
        assert_eq!(PieceSums::read(&table).unwrap(), sums);
        let doubled: Vec<u128> = sums.iter().map(|sum| sum * 2).collect();
        assert_eq!(add_sums(&[table.clone(), table.clone()]).unwrap(), doubled);
        let short = PieceSums::batch(sums[1..].iter().copied()).unwrap();
        assert!(add_sums(&[table, short]).is_err());
    }
}
