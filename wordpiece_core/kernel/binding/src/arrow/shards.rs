//! Columns of ids as pages of Parquet.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt16Type};
use arrow_array::{Array, ArrayRef, ListArray};
use arrow_schema::DataType;

use wordpiece_core::internals::Id;
use wordpiece_core::{Error, Result};
use wordpiece_shards::id_pages::{IdPageWriter, IdPages, Pages};

/// The data pages of arrays of lists of ids. Each array begins a page, and a list that fits into a page
/// is not divided.
///
/// # Arguments
///
/// * `maker` - Makes the pages.
/// * `arrays` - Lists of int32 or uint16.
///
/// # Errors
///
/// Returns [`Error::Data`] if the lists are of another type, or if an id is null or not below the
/// number of tokens.
pub fn pages(maker: &IdPages, arrays: &[ArrayRef]) -> Result<Pages> {
    let mut pages = maker.writer()?;
    for lists in arrays {
        add_lists(&mut pages, lists)?;
        pages.end_page()?;
    }
    pages.finish()
}

fn add_lists(pages: &mut IdPageWriter<'_>, array: &ArrayRef) -> Result<()> {
    let wrong = || Error::data(format!("ids: lists of int32 or uint16, not {}", array.data_type()));
    let lists = array.as_list_opt::<i32>().ok_or_else(wrong)?;
    let values = lists.values();
    if values.null_count() > 0 {
        return Err(Error::data("ids: null among the ids of a list"));
    }
    match values.data_type() {
        DataType::Int32 => add_ids(pages, lists, values.as_primitive::<Int32Type>().values()),
        DataType::UInt16 => add_ids(pages, lists, values.as_primitive::<UInt16Type>().values()),
        _ => Err(wrong()),
    }
}

fn add_ids<T: Id>(pages: &mut IdPageWriter<'_>, lists: &ListArray, ids: &[T]) -> Result<()> {
    let ends = lists.value_offsets();
    (0..lists.len()).try_for_each(|row| {
        let ids = &ids[ends[row] as usize..ends[row + 1] as usize];
        pages.add(lists.is_valid(row).then_some(ids))
    })
}
