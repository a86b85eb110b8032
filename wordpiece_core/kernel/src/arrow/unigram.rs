//! Record batches of the training of a unigram language model.

use std::sync::Arc;

use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Float64Array, RecordBatch};

use super::{as_bytes, batch, column, each_row, strings, to_int64, values};
use crate::base::error::{Error, Result};
use crate::unigram::model::UnigramModel;

/// The record batch of a model: `piece: string, score: double`.
///
/// # Errors
///
/// None that a model can have.
pub fn model_batch(model: &UnigramModel) -> Result<RecordBatch> {
    let pieces = strings(model.pieces().iter().map(|piece| Some(&**piece)))?;
    let scores = Float64Array::from(model.scores().to_vec());
    batch(vec![("piece", Arc::new(pieces)), ("score", Arc::new(scores))])
}

/// Reads the record batch of [`model_batch`].
///
/// # Errors
///
/// Returns [`Error::Data`] if a column is missing, of another type, or has nulls, and for what is no
/// model.
pub fn read_model(table: &RecordBatch) -> Result<UnigramModel> {
    let column = as_bytes(column(table, "piece")?.clone());
    let mut pieces: Vec<Arc<str>> = Vec::with_capacity(table.num_rows());
    each_row(&column, |piece| {
        let piece = piece.and_then(|piece| std::str::from_utf8(piece).ok());
        pieces.push(piece.unwrap_or_default().into());
    })?;
    UnigramModel::new(pieces, values::<Float64Type>(table, "score")?.to_vec())
}

/// The record batch of sums, numbers of 128 bits: `high, low: int64`.
///
/// # Errors
///
/// None that numbers can have.
pub fn sum_batch(sums: &[u128]) -> Result<RecordBatch> {
    let high = to_int64(sums.iter().map(|sum| (sum >> 64) as u64));
    let low = to_int64(sums.iter().map(|sum| *sum as u64));
    batch(vec![("high", high), ("low", low)])
}

/// Reads the record batch of [`sum_batch`].
///
/// # Errors
///
/// Returns [`Error::Data`] if a column is missing, of another type, or has nulls.
pub fn read_sums(table: &RecordBatch) -> Result<Vec<u128>> {
    let high = values::<Int64Type>(table, "high")?;
    let low = values::<Int64Type>(table, "low")?;
    let join = |(&high, &low): (&i64, &i64)| (high as u64 as u128) << 64 | low as u64 as u128;
    Ok(high.iter().zip(low).map(join).collect())
}

/// Adds the sums in record batches of [`sum_batch`].
///
/// # Errors
///
/// Returns [`Error::Data`] if one cannot be read, or they are not of equal length.
pub fn add_sums(batches: &[RecordBatch]) -> Result<Vec<u128>> {
    let mut sums: Vec<u128> = Vec::new();
    for (number, batch) in batches.iter().enumerate() {
        let more = read_sums(batch)?;
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
        check_columns(&table, &["piece", "score"], |table| read_model(table).map(drop));
        let sums = [0, 1, u64::MAX as u128, 1 << 100, u128::MAX >> 1];
        let table = sum_batch(&sums).unwrap();
        assert_eq!(read_sums(&table).unwrap(), sums);
        let doubled: Vec<u128> = sums.iter().map(|sum| sum * 2).collect();
        assert_eq!(add_sums(&[table.clone(), table.clone()]).unwrap(), doubled);
        let short = sum_batch(&sums[1..]).unwrap();
        assert!(add_sums(&[table, short]).is_err());
    }
}
