//! Word tables as record batches.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};

use super::{as_bytes, batch, column, each_row, strings};
use crate::base::error::{Error, Result};
use crate::base::memory;

/// The column of words: strings.
const WORD: &str = "word";
/// The column of counts: int64.
const COUNT: &str = "count";

/// The record batch of a part of a word table. Counts must be below 2^63.
pub fn word_table<'a>(rows: impl Iterator<Item = (&'a str, u64)> + Clone) -> Result<RecordBatch> {
    let words = strings(rows.clone().map(|(word, _)| Some(word)))?;
    let mut counts = memory::with_capacity(words.len());
    counts.extend(rows.map(|(_, count)| count as i64));
    batch(vec![(WORD, Arc::new(words)), (COUNT, Arc::new(Int64Array::from(counts)))])
}

/// A record batch with the columns of a word table.
pub struct WordTableBatch {
    words: ArrayRef,
    counts: Int64Array,
}

impl WordTableBatch {
    /// Takes the columns of a record batch.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if one of them is missing, or the counts are not of int64.
    pub fn new(table: &RecordBatch) -> Result<Self> {
        let words = as_bytes(column(table, WORD)?.clone());
        let counts = column(table, COUNT)?.as_primitive_opt::<Int64Type>();
        let wrong = || Error::data(format!("column {COUNT:?} is not Int64"));
        Ok(WordTableBatch { words, counts: counts.ok_or_else(wrong)?.clone() })
    }

    /// The words and their counts.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if a word is null or no UTF-8, or a count null or negative.
    pub fn rows(&self) -> Result<Vec<(&str, u64)>> {
        let mut rows = memory::with_capacity(self.words.len());
        let mut wrong = None;
        each_row(&self.words, |word| {
            let at = rows.len();
            let word = word.and_then(|word| std::str::from_utf8(word).ok());
            let count = (!self.counts.is_null(at)).then(|| self.counts.value(at));
            let row = word.zip(count.and_then(|count| u64::try_from(count).ok()));
            if row.is_none() {
                wrong.get_or_insert(at);
            }
            rows.push(row.unwrap_or_default());
        })?;
        match wrong {
            Some(at) => {
                let message = format!("row {at} of the word table has no valid word or count");
                Err(Error::data(message))
            }
            None => Ok(rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{
        BinaryArray, BinaryViewArray, Int32Array, LargeStringArray, NullArray, StringArray,
        StringViewArray,
    };

    use super::super::checks::{check_columns, with};
    use super::*;

    #[test]
    fn words_come_back_from_any_type_of_text() {
        let table = word_table([("a", 3), ("é", 1 << 62), ("", 0)].into_iter()).unwrap();
        let words = ["a", "é", ""];
        let arrays: [ArrayRef; 4] = [
            Arc::new(StringArray::from_iter_values(words)),
            Arc::new(LargeStringArray::from_iter_values(words)),
            Arc::new(StringViewArray::from_iter_values(words)),
            Arc::new(BinaryViewArray::from_iter_values(words)),
        ];
        for array in arrays {
            let table = WordTableBatch::new(&with(&table, "word", Some(array))).unwrap();
            assert_eq!(table.rows().unwrap(), [("a", 3), ("é", 1 << 62), ("", 0)]);
        }
        let read = |table: &RecordBatch| WordTableBatch::new(table)?.rows().map(drop);
        check_columns(&table, &["count"], read);
        let bad: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"a", b"\xff", b"b"]));
        let error = read(&with(&table, "word", Some(bad))).unwrap_err().to_string();
        assert_eq!(error, "row 1 of the word table has no valid word or count");
        assert!(read(&with(&table, "word", None)).is_err());
        assert!(read(&with(&table, "word", Some(Arc::new(NullArray::new(3))))).is_err());
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        assert!(read(&with(&table, "word", Some(numbers))).is_err());
    }
}
