//! Encoded rows, and packed sequences, as record batches.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, FixedSizeListArray, Int8Array, Int32Array, Int64Array,
    RecordBatch, UInt16Array,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};

use super::{batch, each_row, list, offsets, values};
use wordpiece_core::encode::{BestFit, Packer, RowColumns, Rows, Sequences, TextPair};
use wordpiece_core::internals::{Id, PlacedToken, too_many_ids};
use wordpiece_core::{Error, Result};

/// The type of a column of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdType {
    /// 32 bits, signed.
    Int32,
    /// 16 bits, unsigned, for vocabularies of 65,536 tokens at most.
    UInt16,
}

/// Return the record batch of encoded rows: `input_ids` and the requested columns. The ids must fit into
/// their type.
///
/// # Errors
///
/// Returns [`Error::Data`] if there are 2^31 ids or more.
pub fn encoded(rows: Rows, id_type: IdType) -> Result<RecordBatch> {
    let offsets = OffsetBuffer::new(offsets(&rows.ends)?.into());
    let nulls = super::nulls(&rows.valid);
    let lists = |values| list(offsets.clone(), values, nulls.clone());
    let mut columns = vec![("input_ids", lists(id_array(rows.ids, id_type))?)];
    let masks = [
        ("attention_mask", rows.attention_mask),
        ("token_type_ids", rows.token_type_ids),
        ("special_tokens_mask", rows.special_tokens_mask),
    ];
    for (name, mask) in masks {
        if let Some(mask) = mask {
            columns.push((name, lists(Arc::new(Int8Array::from(mask)))?));
        }
    }
    if let Some(ends) = rows.offset_mapping {
        let field = Arc::new(Field::new("item", DataType::Int32, true));
        let ends = Arc::new(Int32Array::from(ends));
        let pairs = FixedSizeListArray::try_new(field, 2, ends, None).map_err(Error::data)?;
        columns.push(("offset_mapping", lists(Arc::new(pairs))?));
    }
    if let Some(words) = rows.word_ids {
        let some = super::nulls(&words.iter().map(|&word| word >= 0).collect::<Vec<_>>());
        columns.push(("word_ids", lists(Arc::new(Int32Array::new(words.into(), some)))?));
    }
    if let Some(lengths) = rows.num_tokens {
        columns.push(("num_tokens", Arc::new(Int32Array::new(lengths.into(), nulls))));
    }
    if let Some(sources) = rows.sources {
        columns.push(("source_rows", Arc::new(Int64Array::from(sources))));
    }
    batch(columns)
}

/// Ids as an array: signed numbers without a copy.
fn id_array(ids: Vec<u32>, id_type: IdType) -> ArrayRef {
    let length = ids.len();
    match id_type {
        IdType::Int32 => {
            Arc::new(Int32Array::new(ScalarBuffer::new(Buffer::from_vec(ids), 0, length), None))
        }
        IdType::UInt16 => {
            Arc::new(UInt16Array::from(ids.iter().map(|&id| id as u16).collect::<Vec<_>>()))
        }
    }
}

/// The tokens of texts that begin with characters which are not looked at: a first word, and a space.
///
/// # Arguments
///
/// * `counts` - For each text, the number of its tokens.
/// * `ids` - The ids of all tokens.
/// * `offsets` - Two numbers for each token: the character offsets of its start and its end in the text.
/// * `before` - The number of characters before the space. Tokens of these alone are left out.
/// * `vocab_size` - The number of tokens of the vocabulary.
///
/// # Errors
///
/// Returns [`Error::Data`] if an array is not of uint32, or has nulls, if there are not as many values
/// as the counts say, or if an id is not below `vocab_size`.
pub fn placed_tokens(
    [counts, ids, offsets]: &[ArrayRef; 3],
    before: u32,
    vocab_size: usize,
) -> Result<Vec<Vec<PlacedToken>>> {
    let (counts, ids) = (values::<UInt32Type>(counts)?, values::<UInt32Type>(ids)?);
    let offsets = values::<UInt32Type>(offsets)?.as_chunks::<2>().0;
    let all: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    if ids.len() as u64 != all || offsets.len() != ids.len() {
        return Err(Error::data("ids: not as many as the tokens of all texts, or as offsets"));
    }
    if ids.iter().any(|&id| id as usize >= vocab_size) {
        return Err(Error::data(format!("ids: one is beyond the {vocab_size} tokens")));
    }
    let mut all = ids.iter().zip(offsets);
    let placed = |(&id, &[start, end]): (&u32, &[u32; 2])| {
        let place = |at: u32| at.saturating_sub(before).saturating_sub(1);
        (end > before).then(|| PlacedToken { id, start: place(start), end: place(end) })
    };
    let tokens = |&count| all.by_ref().take(count as usize).filter_map(placed).collect();
    Ok(counts.iter().map(tokens).collect())
}

/// A packer of documents, by one of two strategies.
pub enum AnyPacker {
    /// Documents follow each other, and are split.
    Concat(Packer),
    /// Documents stay complete.
    BestFit(BestFit),
}

/// Packs documents; returns the sequences that are full.
///
/// # Arguments
///
/// * `packer` - The packer.
/// * `documents` - Lists of ids, one for each document. Nulls are left out.
/// * `first_row` - The row of the first document.
/// * `vocab_size` - The number of tokens.
///
/// # Errors
///
/// Returns [`Error::Data`] if the ids are of another type, null, or not below `vocab_size`, or if
/// there would be 2^31 ids or more.
pub fn pack<P: ArrowPrimitiveType<Native: Id>>(
    packer: &mut AnyPacker,
    documents: &ArrayRef,
    first_row: i64,
    vocab_size: u32,
) -> Result<Sequences> {
    let wrong = || {
        let (expected, found) = (P::DATA_TYPE, documents.data_type());
        Error::data(format!("ids: expected a list of {expected}, got {found}"))
    };
    let lists = documents.as_list_opt::<i32>().ok_or_else(wrong)?;
    let values = lists.values().as_primitive_opt::<P>().ok_or_else(wrong)?;
    let ends = lists.value_offsets();
    let rows = (0..lists.len()).filter(|&row| lists.is_valid(row)).map(|row| {
        (first_row + row as i64, &values.values()[ends[row] as usize..ends[row + 1] as usize])
    });
    if values.null_count() > 0 {
        return Err(Error::data("ids: null among the ids of a document"));
    }
    for (row, ids) in rows.clone() {
        let largest = ids.iter().fold(0, |largest, id| id.value().max(largest));
        if largest >= vocab_size && !ids.is_empty() {
            let message = format!("ids: row {row} has an id beyond the {vocab_size} tokens");
            return Err(Error::data(message));
        }
    }
    let given = (lists.len(), (ends[lists.len()] - ends[0]) as usize);
    let most = match packer {
        AnyPacker::Concat(packer) => packer.most(given.0, given.1),
        AnyPacker::BestFit(packer) => packer.most(given.0, given.1),
    };
    i32::try_from(most).map_err(|_| too_many_ids())?;
    Ok(match packer {
        AnyPacker::Concat(packer) => packer.add(rows, most),
        AnyPacker::BestFit(packer) => packer.add(rows, given.1),
    })
}

/// The record batch of packed sequences: `input_ids`, the columns of these names,
/// `document_starts: list<int32>`, and `document_rows: list<int64>`.
///
/// # Errors
///
/// Returns [`Error::Option`] if there is no column of a name.
pub fn packed_batch(
    sequences: Sequences,
    id_type: IdType,
    names: &[String],
) -> Result<RecordBatch> {
    // `pack` has checked that all ids can be counted by 32 bits.
    let length = sequences.length() as i32;
    let documents = OffsetBuffer::new(offsets(&sequences.document_ends)?.into());
    let ends: Vec<i32> = (0..=sequences.len() as i32).map(|row| row * length).collect();
    let ends = OffsetBuffer::new(ends.into());
    let mut others: Vec<(&str, ArrayRef)> = Vec::new();
    for name in names {
        let mask = |values| list(ends.clone(), Arc::new(Int8Array::from(values)), None);
        let numbers = |values| list(ends.clone(), Arc::new(Int32Array::from(values)), None);
        let column = match name.as_str() {
            "attention_mask" => mask(sequences.attention_mask())?,
            "token_type_ids" => mask(vec![0; sequences.ids.len()])?,
            "special_tokens_mask" => mask(sequences.special_tokens_mask())?,
            "position_ids" => numbers(sequences.position_ids())?,
            "document_ids" => numbers(sequences.document_ids())?,
            "document_lengths" => {
                let lengths = Int32Array::from(sequences.document_lengths());
                list(documents.clone(), Arc::new(lengths), None)?
            }
            "num_tokens" => Arc::new(Int32Array::from(sequences.lengths.clone())),
            other => return Err(Error::option(format!("columns: {other} cannot be packed"))),
        };
        others.push((name, column));
    }
    let starts = Arc::new(Int32Array::from(sequences.document_starts));
    let rows = Arc::new(Int64Array::from(sequences.document_rows));
    let ids = id_array(sequences.ids, id_type);
    let mut columns = vec![("input_ids", list(ends, ids, None)?)];
    columns.append(&mut others);
    columns.push(("document_starts", list(documents.clone(), starts, None)?));
    columns.push(("document_rows", list(documents, rows, None)?));
    batch(columns)
}

/// The texts, each with the second text of its pair if there are pairs.
///
/// # Errors
///
/// Returns [`Error::Data`] if an array does not contain text, or the number of second texts differs.
pub fn text_rows<'a>(
    texts: &'a ArrayRef,
    pairs: Option<&'a ArrayRef>,
) -> Result<Vec<TextPair<'a>>> {
    let mut rows = Vec::with_capacity(texts.len());
    each_row(texts, |text| rows.push((text, None)))?;
    if let Some(pairs) = pairs {
        if pairs.len() != rows.len() {
            let message = format!("{} texts, but {} second ones", rows.len(), pairs.len());
            return Err(Error::data(message));
        }
        let mut left = rows.iter_mut();
        each_row(pairs, |pair| {
            if let Some(row) = left.next() {
                row.1 = Some(pair);
            }
        })?;
    }
    Ok(rows)
}

/// The columns of encoded rows that have these names.
///
/// # Errors
///
/// Returns [`Error::Option`] if there is no column of a name.
pub fn row_columns(names: &[String]) -> Result<RowColumns> {
    let mut columns = RowColumns::default();
    for name in names {
        *match name.as_str() {
            "attention_mask" => &mut columns.attention_mask,
            "token_type_ids" => &mut columns.token_type_ids,
            "special_tokens_mask" => &mut columns.special_tokens_mask,
            "offset_mapping" => &mut columns.offset_mapping,
            "word_ids" => &mut columns.word_ids,
            "num_tokens" => &mut columns.num_tokens,
            other => {
                return Err(Error::option(format!(
                    "columns: {other:?} is not a column of encoded texts"
                )));
            }
        } = true;
    }
    Ok(columns)
}
