//! Tables of records: each is described once, and written and read by that.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Int64Type};
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch};

use super::{column, column_values, each_row, strings, to_int64};
use wordpiece_core::{Error, Result};

/// A kind of column: its values in Rust and in Arrow. Numbers are stored without conversion, and cannot be
/// null.
pub(super) trait Column {
    /// The value of a row.
    type Value;

    /// The array of these values.
    fn write(values: impl ExactSizeIterator<Item = Self::Value>) -> Result<ArrayRef>;

    /// The values of the column of this name.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if it is missing, of another type, or has nulls or values that it may not
    /// have.
    fn read(table: &RecordBatch, name: &str) -> Result<impl ExactSizeIterator<Item = Self::Value>>;
}

impl<P: ArrowPrimitiveType> Column for P {
    type Value = P::Native;

    fn write(values: impl ExactSizeIterator<Item = P::Native>) -> Result<ArrayRef> {
        Ok(Arc::new(PrimitiveArray::<P>::new(values.collect::<Vec<_>>().into(), None)))
    }

    fn read(table: &RecordBatch, name: &str) -> Result<impl ExactSizeIterator<Item = P::Native>> {
        Ok(column_values::<P>(table, name)?.iter().copied())
    }
}

/// Numbers of an unsigned type, as int64.
pub(super) struct Unsigned<N>(PhantomData<N>);

/// Counts, or places.
pub(super) type Count = Unsigned<u64>;
/// Places of 32 bits.
pub(super) type Offset = Unsigned<u32>;

impl<N: TryFrom<i64> + Into<u64>> Column for Unsigned<N> {
    type Value = N;

    fn write(values: impl ExactSizeIterator<Item = N>) -> Result<ArrayRef> {
        Ok(to_int64(values.map(N::into)))
    }

    fn read(table: &RecordBatch, name: &str) -> Result<impl ExactSizeIterator<Item = N>> {
        let values = column_values::<Int64Type>(table, name)?;
        let mut read = Vec::with_capacity(values.len());
        for (row, &value) in values.iter().enumerate() {
            let wrong = |_| Error::data(format!("column {name:?}: {value} in row {row}"));
            read.push(N::try_from(value).map_err(wrong)?);
        }
        Ok(read.into_iter())
    }
}

/// Unsigned 64-bit numbers, stored with the same bits as int64.
pub(super) struct Bits;

impl Column for Bits {
    type Value = u64;

    fn write(values: impl ExactSizeIterator<Item = u64>) -> Result<ArrayRef> {
        Ok(to_int64(values))
    }

    fn read(table: &RecordBatch, name: &str) -> Result<impl ExactSizeIterator<Item = u64>> {
        Ok(column_values::<Int64Type>(table, name)?.iter().map(|&bits| bits as u64))
    }
}

/// Strings. What is null, or no UTF-8, is read as an empty one.
pub(super) struct Text;

impl Column for Text {
    type Value = Arc<str>;

    fn write(values: impl ExactSizeIterator<Item = Arc<str>>) -> Result<ArrayRef> {
        let texts = values.collect::<Vec<_>>();
        Ok(Arc::new(strings(texts.iter().map(|text| Some(&**text)))?))
    }

    fn read(table: &RecordBatch, name: &str) -> Result<impl ExactSizeIterator<Item = Arc<str>>> {
        let mut texts = Vec::with_capacity(table.num_rows());
        each_row(column(table, name)?, |text| {
            let text = text.and_then(|text| std::str::from_utf8(text).ok());
            texts.push(Arc::from(text.unwrap_or_default()));
        })?;
        Ok(texts.into_iter())
    }
}

/// Describe a table: the type of the rows that are written, and for each column its name, its kind and its value;
/// then the type of the rows that are read, and how they are made from the values of the columns.
macro_rules! table {
    ($(#[$doc:meta])* $name:ident, |$row:ident: $given:ty| {
        $($column:ident: $kind:ident = $value:expr),* $(,)?
    } => $read:ty { $made:expr }) => {
        $(#[$doc])*
        pub struct $name;

        impl $name {
            /// The names of the columns.
            pub const COLUMNS: &[&str] = &[$(stringify!($column)),*];

            /// The columns of rows, with their names.
            fn columns(
                rows: impl ExactSizeIterator<Item = impl std::borrow::Borrow<$given>> + Clone,
            ) -> Result<Vec<(&'static str, ArrayRef)>> {
                Ok(vec![$((
                    stringify!($column),
                    <$kind as Column>::write(rows.clone().map(|row| {
                        let $row: &$given = std::borrow::Borrow::borrow(&row);
                        $value
                    }))?,
                )),*])
            }

            /// The record batch of rows.
            ///
            /// # Errors
            ///
            /// Returns [`Error::Data`](wordpiece_core::Error::Data) if strings take 2^31 bytes or
            /// more.
            pub fn batch(
                rows: impl ExactSizeIterator<Item = impl std::borrow::Borrow<$given>> + Clone,
            ) -> Result<RecordBatch> {
                $crate::arrow::batch(Self::columns(rows)?)
            }

            /// Return the rows of a record batch, which may have additional columns.
            ///
            /// # Errors
            ///
            /// Returns [`Error::Data`](wordpiece_core::Error::Data) if a column is missing, of
            /// another type, has nulls, or negative counts.
            pub fn rows(table: &RecordBatch) -> Result<impl ExactSizeIterator<Item = $read>> {
                $(let mut $column = <$kind as Column>::read(table, stringify!($column))?;)*
                Ok((0..table.num_rows()).map(move |_| {
                    $(let $column = $column.next().expect("a value for each row");)*
                    $made
                }))
            }

            /// Return the rows as a vector.
            pub fn read(table: &RecordBatch) -> Result<Vec<$read>> {
                Ok(Self::rows(table)?.collect::<Vec<_>>())
            }
        }
    };
}
pub(super) use table;
