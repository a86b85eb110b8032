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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::Int32Array;

    use super::*;
    use crate::arrow::encode::{IdType, encoded};
    use wordpiece_core::encode::{
        Layout, RowOptions, TextPair, Tokenizer, TokenizerOptions, WordPieceOptions, encode_rows,
    };
    use wordpiece_core::text::TextOptions;
    use wordpiece_shards::id_pages::Codec;

    #[test]
    fn only_lists_of_ids_of_the_vocabulary_have_pages() {
        let maker = IdPages::new(10, Codec::Lz4);
        let fails = |ids: &ArrayRef| {
            matches!(pages(&maker, std::slice::from_ref(ids)), Err(Error::Data(_)))
        };
        let lists = |ids: Vec<Option<i32>>| -> ArrayRef {
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([Some(ids)]))
        };
        assert!(!fails(&lists(vec![Some(9)])));
        for bad in [Some(10), Some(-1), None] {
            assert!(fails(&lists(vec![Some(1), bad])));
        }
        let flat: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        assert!(fails(&flat));
    }

    const VOCABULARY: [&str; 6] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##b"];

    fn tokenizer() -> Tokenizer {
        let (text, model) = (TextOptions::default(), WordPieceOptions::default());
        let options = TokenizerOptions::new(&VOCABULARY, text, model);
        Tokenizer::new(TokenizerOptions { unk_id: Some(1), ..options }).unwrap()
    }

    #[test]
    fn pages_are_those_of_the_arrays() {
        let tokenizer = tokenizer();
        let [short, long] = ["ab a c ".repeat(20_000), "a ".repeat(200_000)];
        let given = ["", "a", &short, "abb c", &long, "", "b"].repeat(2);
        let valid = |i: usize| i % 5 != 3;
        let texts: Vec<TextPair<'_>> = given
            .iter()
            .enumerate()
            .map(|(i, text)| (valid(i).then_some(text.as_bytes()), None))
            .collect();
        for padded in [false, true] {
            let options = RowOptions {
                layouts: std::array::from_fn(|_| Layout {
                    added: [vec![(2, 0)], vec![], vec![(3, 0)]],
                    ..Layout::default()
                }),
                max_length: padded.then_some(1000),
                pad_id: padded.then_some(0),
                ..RowOptions::default()
            };
            let rows = encode_rows(&mut tokenizer.session(0), &options, &texts, 0).unwrap();
            let ids = rows.ids.clone();
            let encoded = encoded(rows, IdType::Int32).unwrap();
            let maker = IdPages::new(VOCABULARY.len() as u32, Codec::Zstd);
            let mut writer = maker.writer().unwrap();
            add_lists(&mut writer, encoded.column(0)).unwrap();
            let wanted = writer.finish().unwrap();
            let counts = [wanted.rows, wanted.nulls, wanted.ids];
            assert_eq!(counts, [texts.len(), 3, ids.len()]);
            // Then with memory that was used before.
            for least in [0, ids.len()] {
                let (pages, rows) = maker.encoded(&tokenizer, &options, &texts, least).unwrap();
                assert_eq!((pages.as_ref(), &rows.ids), (Some(&wanted), &ids));
            }
            let few = maker.encoded(&tokenizer, &options, &texts, ids.len() + 1).unwrap();
            assert_eq!((few.0, few.1.ids), (None, ids));
        }
    }
}
