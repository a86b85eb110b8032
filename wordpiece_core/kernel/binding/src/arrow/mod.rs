//! Arrow arrays from outside, checked, and converted to the types of the other modules and back.
//!
//! `import` takes arrays over. The other files have the tables of counting, training and encoding.
//! Columns are read where they are, without a copy, except where they must be changed.
//!
//! Functions that read a table return [`Error::Data`] if a column is missing, has another type, or has nulls or
//! negative counts; functions that write one, if strings or lists have 2^31 bytes or values and more. Sums of
//! counts over 2^63 - 1 are [`Error::Overflow`].

pub mod count;
pub mod encode;
pub mod import;
pub mod shards;
mod table;
pub mod text;
pub mod train;
pub mod unigram;

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, GenericBinaryArray, Int64Array, ListArray,
    OffsetSizeTrait, RecordBatch, StringArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Schema};

use wordpiece_core::internals::utf8::repair;
use wordpiece_core::{Error, Result};

/// Call `each` with every row of an array of bytes, and with None for nulls.
///
/// # Errors
///
/// Returns [`Error::Data`] if the array is of another type.
pub fn each_row<'a>(array: &'a dyn Array, mut each: impl FnMut(Option<&'a [u8]>)) -> Result<()> {
    match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().iter().for_each(each),
        DataType::LargeBinary => array.as_binary::<i64>().iter().for_each(each),
        DataType::BinaryView => array.as_binary_view().iter().for_each(each),
        DataType::Null => (0..array.len()).for_each(|_| each(None)),
        other => return Err(Error::data(format!("text must be strings or bytes, not {other}"))),
    }
    Ok(())
}

/// A row of an array of bytes as a string (see [`repair`]).
pub struct TextRow<'a> {
    /// The text.
    pub text: Cow<'a, str>,
    /// The original bytes of the row, and bytes after it.
    pub bytes: &'a [u8],
    /// The number of bytes of the row.
    pub length: usize,
    /// The number of invalid sequences that were replaced.
    pub replaced: u64,
}

impl<'a> TextRow<'a> {
    fn of(row: &'a [u8], bytes: &'a [u8]) -> Self {
        let (text, replaced) = repair(row);
        TextRow { text, bytes, length: row.len(), replaced }
    }
}

/// The approximate number of bytes of text that are checked together: enough to make a check cheap, and few
/// enough to stay in the processor's caches.
const CHECKED_AT_ONCE: usize = 1 << 16;

/// Call `each` with every row of an array of bytes as a string, and with None for nulls, until it returns
/// false.
///
/// # Errors
///
/// Returns [`Error::Data`] if the array is of another type.
pub fn each_text<'a>(
    array: &'a dyn Array,
    mut each: impl FnMut(Option<TextRow<'a>>) -> bool,
) -> Result<()> {
    match array.data_type() {
        DataType::Binary => each_text_in_blocks(array.as_binary::<i32>(), each),
        DataType::LargeBinary => each_text_in_blocks(array.as_binary::<i64>(), each),
        _ => {
            let mut more = true;
            each_row(array, |row| more = more && each(row.map(|row| TextRow::of(row, row))))?;
        }
    }
    Ok(())
}

/// Consecutive rows are checked together. If they are one valid string, and each row begins at a
/// character of it, then each row is valid; if not, it is checked alone.
fn each_text_in_blocks<'a, O: OffsetSizeTrait>(
    array: &'a GenericBinaryArray<O>,
    mut each: impl FnMut(Option<TextRow<'a>>) -> bool,
) {
    let values = array.values().as_slice();
    let place = |row: usize| array.value_offsets()[row].as_usize();
    let mut first = 0;
    while first < array.len() {
        let start = place(first);
        let more = first + 1..array.len();
        let last = more.take_while(|&row| place(row + 1) - start <= CHECKED_AT_ONCE).last();
        let next = last.unwrap_or(first) + 1;
        let valid = simdutf8::basic::from_utf8(&values[start..place(next)]).ok();
        for row in first..next {
            let (from, to) = (place(row), place(row + 1));
            let bytes = &values[from..];
            let text = match valid.and_then(|text| text.get(from - start..to - start)) {
                Some(text) => TextRow { text: text.into(), bytes, length: text.len(), replaced: 0 },
                None => TextRow::of(&values[from..to], bytes),
            };
            if !each(array.is_valid(row).then_some(text)) {
                return;
            }
        }
        first = next;
    }
}

/// Return an array of strings, with nulls for None.
///
/// # Errors
///
/// Returns [`Error::Data`] if there are 2^31 bytes or more.
pub fn strings<'a>(rows: impl Iterator<Item = Option<&'a str>>) -> Result<StringArray> {
    let (mut ends, mut bytes, mut valid) = (vec![0i32], Vec::new(), Vec::new());
    for row in rows {
        bytes.extend_from_slice(row.unwrap_or_default().as_bytes());
        let end = i32::try_from(bytes.len());
        ends.push(end.map_err(|_| Error::data("more than 2^31 bytes in one batch"))?);
        valid.push(row.is_some());
    }
    let offsets = OffsetBuffer::new(ends.into());
    // SAFETY: the offsets ascend to the number of bytes, and each row is a string.
    Ok(unsafe { StringArray::new_unchecked(offsets, Buffer::from_vec(bytes), nulls(&valid)) })
}

/// Return the bitmap of rows that are not null; None if no row is null.
pub fn nulls(valid: &[bool]) -> Option<NullBuffer> {
    let bytes = valid
        .chunks(8)
        .map(|eight| eight.iter().rev().fold(0, |bits, &bit| bits << 1 | u8::from(bit)));
    let bits = Buffer::from_vec(bytes.collect::<Vec<_>>());
    let nulls = NullBuffer::new(BooleanBuffer::new(bits, 0, valid.len()));
    (nulls.null_count() > 0).then_some(nulls)
}

/// Return an array of type `list<string>`, with nulls for None.
///
/// # Errors
///
/// Returns [`Error::Data`] if there are 2^31 strings or more.
pub fn string_lists(rows: &[Option<Vec<String>>]) -> Result<ArrayRef> {
    let words = strings(rows.iter().flatten().flatten().map(|word| Some(word.as_str())))?;
    let mut offsets = vec![0i32];
    for row in rows {
        let length = i32::try_from(row.as_ref().map_or(0, Vec::len)).ok();
        let end = length.and_then(|length| offsets[offsets.len() - 1].checked_add(length));
        let end = end.ok_or_else(|| Error::data("more than 2^31 words in one batch"))?;
        offsets.push(end);
    }
    let valid = rows.iter().map(Option::is_some).collect::<Vec<_>>();
    list(OffsetBuffer::new(offsets.into()), Arc::new(words), nulls(&valid))
}

/// A record batch of columns with these names.
///
/// # Errors
///
/// Returns [`Error::Data`] if the columns are not of the same length.
pub fn batch(columns: Vec<(&str, ArrayRef)>) -> Result<RecordBatch> {
    let fields: Vec<_> = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true))
        .collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(Error::data)
}

/// An array of int64. The values must be below 2^63, or hashes, whose bits are kept.
pub fn to_int64(values: impl ExactSizeIterator<Item = u64>) -> ArrayRef {
    Arc::new(Int64Array::from(values.map(|value| value as i64).collect::<Vec<_>>()))
}

fn column<'a>(table: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef> {
    let wanting = || Error::data(format!("no column {name:?}"));
    table.column_by_name(name).ok_or_else(wanting)
}

/// The values of an array of numbers without nulls: where a null is, it may hold anything.
///
/// # Errors
///
/// Returns [`Error::Data`] if the array is of another type, or has nulls.
pub fn values<P: ArrowPrimitiveType>(array: &ArrayRef) -> Result<&[P::Native]> {
    let (expected, found) = (P::DATA_TYPE, array.data_type());
    let wrong = || Error::data(format!("expected an array of {expected}, got {found}"));
    let numbers = array.as_primitive_opt::<P>().ok_or_else(wrong)?;
    match numbers.null_count() {
        0 => Ok(numbers.values()),
        nulls => Err(Error::data(format!("{nulls} nulls in an array of {expected}"))),
    }
}

fn column_values<'a, P: ArrowPrimitiveType>(
    table: &'a RecordBatch,
    name: &str,
) -> Result<&'a [P::Native]> {
    values::<P>(column(table, name)?).map_err(|error| error.at(format!("column {name:?}")))
}

fn list(
    offsets: OffsetBuffer<i32>,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let field = Arc::new(Field::new("item", values.data_type().clone(), true));
    Ok(Arc::new(ListArray::try_new(field, offsets, values, nulls).map_err(Error::data)?))
}

fn offsets(ends: &[usize]) -> Result<Vec<i32>> {
    let mut offsets = Vec::with_capacity(ends.len() + 1);
    offsets.push(0);
    for &end in ends {
        let end = i32::try_from(end);
        offsets.push(end.map_err(|_| Error::data("more than 2^31 values in one batch"))?);
    }
    Ok(offsets)
}
