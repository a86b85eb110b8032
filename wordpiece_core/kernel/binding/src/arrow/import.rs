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

use wordpiece_core::{Error, Result, caught};

/// The maximum depth of nested types, which are read recursively.
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
/// `array` must be valid for this type by the C data interface, except for the values in its buffers.
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
