//! Arrow arrays from outside, through Arrow's C data interface.
//!
//! The interface does not say how large buffers are: it is for the producer to know. That an array follows the
//! rules of Arrow within its buffers, offsets, views and nulls, arrow-rs checks before anything is read.
//!
//! Strings are taken for bytes: their UTF-8 is not checked here, but repaired where they are read.

use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::{ArrayRef, make_array, new_empty_array};
use arrow_schema::{DataType, Field};

use wordpiece_core::internals::caught;
use wordpiece_core::{Error, Result};

/// How deep types may be nested. What reads them recurses.
const MOST_NESTED: usize = 256;

/// The type of an array, with bytes in place of strings.
///
/// # Errors
///
/// Returns [`Error::Data`] if arrow-rs does not know it, or if it is nested too deep.
pub fn data_type(schema: &FFI_ArrowSchema) -> Result<DataType> {
    let mut level = vec![schema];
    for _ in 0..MOST_NESTED {
        level = level.into_iter().flat_map(FFI_ArrowSchema::children).collect();
    }
    if !level.is_empty() {
        return Err(Error::data(format!("an Arrow array of more than {MOST_NESTED} levels")));
    }
    read(|| Ok(without_strings(DataType::try_from(schema).map_err(Error::data)?)))
}

/// Takes an array over, and checks it.
///
/// # Errors
///
/// Returns [`Error::Data`] if the array was released, or breaks the rules of Arrow.
///
/// # Safety
///
/// `array` must be as the C data interface demands for this type, but for the values in its buffers, which may be any.
/// They must not change while the array is in use.
pub unsafe fn array(array: FFI_ArrowArray, data_type: DataType) -> Result<ArrayRef> {
    if array.is_released() {
        return Err(Error::data("an Arrow array that was taken before"));
    }
    if array.is_empty() {
        return Ok(new_empty_array(&data_type)); // its buffers may be missing, or hold anything
    }
    read(|| {
        // SAFETY: as the caller says.
        let data = unsafe { from_ffi_and_data_type(array, data_type) }.map_err(Error::data)?;
        data.validate_full().map_err(Error::data)?;
        Ok(make_array(data))
    })
}

/// Reads what may be broken: then arrow-rs returns an error, or panics.
fn read<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    caught(work).map_err(|error| match error {
        Error::Panic(_) => Error::data("an Arrow array that cannot be read"),
        error => error.at("an Arrow array"),
    })
}

/// The type with bytes in place of strings.
fn without_strings(data_type: DataType) -> DataType {
    let field = |field: &Arc<Field>| {
        let kind = without_strings(field.data_type().clone());
        // Nulls where there should be none are a matter of the columns that are read.
        Arc::new(Field::clone(field).with_data_type(kind).with_nullable(true))
    };
    match data_type {
        DataType::Utf8 => DataType::Binary,
        DataType::LargeUtf8 => DataType::LargeBinary,
        DataType::Utf8View => DataType::BinaryView,
        DataType::List(item) => DataType::List(field(&item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::ffi::to_ffi;
    use arrow_array::types::Int32Type;
    use arrow_array::{
        Array, BinaryViewArray, LargeStringArray, ListArray, StringArray, StringViewArray,
        StructArray,
    };
    use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};

    use super::*;
    use crate::arrow::each_row;
    use wordpiece_testing::Random;

    fn through(made: &dyn Array) -> Result<ArrayRef> {
        let (array, schema) = to_ffi(&made.to_data()).unwrap();
        // SAFETY: arrow-rs made them.
        unsafe { super::array(array, data_type(&schema)?) }
    }

    fn rows(array: &ArrayRef) -> Vec<Option<Vec<u8>>> {
        let mut rows = Vec::new();
        each_row(array, |row| rows.push(row.map(<[u8]>::to_vec))).unwrap();
        rows
    }

    #[test]
    fn texts_of_every_type_and_slices_of_them_arrive_as_they_are() {
        let mut random = Random::new(20);
        for _ in 0..300 {
            let text = |random: &mut Random| random.word(&['a', 'é', '中'], 12);
            let texts: Vec<_> = (0..random.below(20))
                .map(|_| (random.below(4) > 0).then(|| text(&mut random)))
                .collect();
            let from = random.below(texts.len() + 1);
            let length = random.below(texts.len() - from + 1);
            let arrays: [ArrayRef; 3] = [
                Arc::new(StringArray::from(texts.clone())),
                Arc::new(LargeStringArray::from(texts.clone())),
                Arc::new(StringViewArray::from_iter(texts.clone())),
            ];
            let some = texts[from..from + length].iter();
            let expected: Vec<_> = some.map(|text| text.clone().map(String::into_bytes)).collect();
            for array in arrays {
                assert_eq!(rows(&through(&array.slice(from, length)).unwrap()), expected);
            }
        }
    }

    #[test]
    fn lists_and_batches_arrive_as_they_are() {
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
            Some(vec![Some(1), Some(2)]),
            None,
            Some(vec![]),
        ]);
        let texts = StringArray::from(vec!["a", "b", "c"]);
        let columns: Vec<(_, ArrayRef)> =
            vec![("lists", Arc::new(lists.clone())), ("texts", Arc::new(texts))];
        let batch = StructArray::try_from(columns).unwrap().slice(1, 2);
        let found = through(&batch).unwrap();
        assert_eq!(found.as_struct().column(0).as_list::<i32>(), &lists.slice(1, 2));
        assert_eq!(rows(found.as_struct().column(1)), [Some(b"b".to_vec()), Some(b"c".to_vec())]);
    }

    #[test]
    fn offsets_and_views_that_lead_elsewhere_are_refused() {
        let data = Buffer::from(b"abcd");
        for (offsets, fits) in
            [([0, 2, 4], true), ([1, 1, 1], true), ([0, 3, 2], false), ([0, -1, 2], false)]
        {
            let offsets: ScalarBuffer<i32> = offsets.to_vec().into();
            // SAFETY: none; the array is never read.
            let texts = unsafe {
                StringArray::new_unchecked(OffsetBuffer::new_unchecked(offsets), data.clone(), None)
            };
            assert_eq!(through(&texts).is_ok(), fits, "{:?}", texts.value_offsets());
        }
        for (length, fits) in [(20u128, true), (21, false), (u32::MAX as u128, false)] {
            let view = length | u128::from(u32::from_le_bytes(*b"xxxx")) << 32;
            // SAFETY: none; as above.
            let array = unsafe {
                let data = Buffer::from(vec![b'x'; 20]);
                BinaryViewArray::new_unchecked(vec![view].into(), [data].into(), None)
            };
            assert_eq!(through(&array).is_ok(), fits, "{length}");
        }
    }

    #[test]
    fn what_was_released_is_refused() {
        // SAFETY: an empty structure is one that was released.
        let error = unsafe { super::array(FFI_ArrowArray::empty(), DataType::Int32) }.unwrap_err();
        assert_eq!(error.to_string(), "an Arrow array that was taken before");
    }
}
