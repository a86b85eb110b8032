//! Arrow arrays to the kernel's types and back.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeListArray, Float64Array, Int32Array,
    Int64Array, LargeBinaryArray, ListArray, RecordBatch, StringArray, UInt32Array,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema};

use crate::encode::{IdRows, Piece};
use crate::splits::{Aggregate, CountOverflow, PairCount, Splits, SymbolCounts};
use crate::train::Merge;

pub type Result<T> = std::result::Result<T, String>;

impl From<CountOverflow> for String {
    fn from(_: CountOverflow) -> String {
        "counts add up to more than 2^63 - 1; scale them down".into()
    }
}

/// An array of strings as one of bytes, without a copy: whoever made it may not have checked that
/// the strings are UTF-8.
pub fn as_bytes(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Utf8 => Arc::new(BinaryArray::from(array.as_string::<i32>().clone())),
        DataType::LargeUtf8 => Arc::new(LargeBinaryArray::from(array.as_string::<i64>().clone())),
        DataType::Utf8View => Arc::new(array.as_string_view().clone().to_binary_view()),
        _ => array,
    }
}

/// Calls `each` with every row of an array of bytes; None is a null.
pub fn each_row<'a>(array: &'a dyn Array, mut each: impl FnMut(Option<&'a [u8]>)) -> Result<()> {
    match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().iter().for_each(each),
        DataType::LargeBinary => array.as_binary::<i64>().iter().for_each(each),
        DataType::BinaryView => array.as_binary_view().iter().for_each(each),
        DataType::Null => (0..array.len()).for_each(|_| each(None)),
        other => return Err(format!("text must be strings or bytes, not {other}")),
    }
    Ok(())
}

/// A string array of rows; None is a null.
pub fn strings<'a>(rows: impl Iterator<Item = Option<&'a str>>) -> StringArray {
    let mut builder = StringBuilder::new();
    rows.for_each(|row| builder.append_option(row));
    builder.finish()
}

/// `list<int32>` of ids, with the nulls of the array that was encoded.
pub fn ids(rows: Vec<IdRows>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let mut offsets = vec![0i32];
    let mut base = 0;
    for part in &rows {
        for &end in &part.ends {
            let end = i32::try_from(base + end).map_err(|_| "more than 2^31 ids in one batch")?;
            offsets.push(end);
        }
        base += part.values.len();
    }
    let values = match <[IdRows; 1]>::try_from(rows) {
        Ok([only]) => only.values,
        Err(parts) => {
            let parts: Vec<_> = parts.into_iter().map(|part| part.values).collect();
            parts.concat()
        }
    };
    let values = Int32Array::new(ScalarBuffer::new(Buffer::from_vec(values), 0, base), None);
    list(offsets, Arc::new(values), nulls)
}

/// `list<fixed_size_list<int32>[2]>` of offsets, and `list<int32>` of ids.
pub fn pieces(rows: &[Vec<Piece>], nulls: Option<NullBuffer>) -> Result<(ArrayRef, ArrayRef)> {
    let all = || rows.iter().flatten();
    let mut offsets = vec![0i32];
    for row in rows {
        let end = offsets[offsets.len() - 1] as usize + row.len();
        offsets.push(i32::try_from(end).map_err(|_| "more than 2^31 ids in one batch")?);
    }
    let ids: Int32Array = all().map(|piece| piece.id as i32).collect();
    let ends: Int32Array = all().flat_map(|p| [p.start as i32, p.end as i32]).collect();
    let field = Arc::new(Field::new("item", DataType::Int32, true));
    let ends = FixedSizeListArray::try_new(field, 2, Arc::new(ends), None).map_err(text)?;
    let ids = list(offsets.clone(), Arc::new(ids), nulls.clone())?;
    Ok((ids, list(offsets, Arc::new(ends), nulls)?))
}

fn list(offsets: Vec<i32>, values: ArrayRef, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let field = Arc::new(Field::new("item", values.data_type().clone(), true));
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(Arc::new(ListArray::try_new(field, offsets, values, nulls).map_err(text)?))
}

/// `list<string>` of words, a list per row.
pub fn word_lists(rows: &[Option<Vec<String>>]) -> Result<ArrayRef> {
    let words = strings(rows.iter().flatten().flatten().map(|word| Some(word.as_str())));
    let mut offsets = vec![0i32];
    for row in rows {
        offsets.push(offsets[offsets.len() - 1] + row.as_ref().map_or(0, Vec::len) as i32);
    }
    let nulls = NullBuffer::from_iter(rows.iter().map(Option::is_some));
    list(offsets, Arc::new(words), Some(nulls))
}

/// A word table: `word: string, count: int64`.
pub fn word_table<'a>(rows: impl Iterator<Item = (&'a str, u64)> + Clone) -> Result<RecordBatch> {
    let words = strings(rows.clone().map(|(word, _)| Some(word)));
    let counts: Int64Array = rows.map(|(_, count)| Some(count as i64)).collect();
    batch(vec![("word", Arc::new(words)), ("count", Arc::new(counts))])
}

/// The rows of a word table.
pub struct WordTable {
    words: ArrayRef,
    counts: Int64Array,
}

impl WordTable {
    pub fn new(table: &RecordBatch) -> Result<Self> {
        let words = as_bytes(column(table, "word")?.clone());
        Ok(WordTable { words, counts: int64(table, "count")?.clone() })
    }

    /// Words and counts. Nulls, negative counts and invalid UTF-8 are errors.
    pub fn rows(&self) -> Result<Vec<(&str, u64)>> {
        let mut rows = Vec::with_capacity(self.words.len());
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
            Some(at) => Err(format!("row {at} of the word table has no valid word or count")),
            None => Ok(rows),
        }
    }
}

/// Splits: `rank: int64, count: int64, symbols: list<uint32>`.
pub fn splits_batch(splits: Splits) -> Result<RecordBatch> {
    let mut offsets = vec![0i32];
    for &end in &splits.ends {
        offsets.push(i32::try_from(end).map_err(|_| "more than 2^31 symbols in one batch")?);
    }
    let symbols = list(offsets, Arc::new(UInt32Array::from(splits.symbols)), None)?;
    batch(vec![
        ("rank", to_int64(splits.ranks.into_iter())),
        ("count", to_int64(splits.counts.into_iter())),
        ("symbols", symbols),
    ])
}

pub fn read_splits(table: &RecordBatch) -> Result<Splits> {
    let lists = column(table, "symbols")?.as_list_opt::<i32>().ok_or("symbols: not a list")?;
    let values =
        lists.values().as_primitive_opt::<UInt32Type>().ok_or("symbols: not a list of uint32")?;
    let first = lists.value_offsets()[0] as usize;
    let ends: Vec<usize> =
        lists.value_offsets()[1..].iter().map(|&end| end as usize - first).collect();
    let last = first + ends.last().copied().unwrap_or(0);
    Ok(Splits {
        ranks: unsigned(int64(table, "rank")?),
        counts: unsigned(int64(table, "count")?),
        symbols: values.values()[first..last].to_vec(),
        ends,
    })
}

/// `character: string, continuing: bool, count, first_rank, first_offset: int64`.
pub fn symbol_batch(symbols: &SymbolCounts) -> Result<RecordBatch> {
    let mut rows: Vec<_> = symbols.iter().collect();
    rows.sort_unstable_by_key(|(symbol, _)| **symbol);
    let characters: Vec<String> = rows.iter().map(|((c, _), _)| c.to_string()).collect();
    let continuing: BooleanArray = rows.iter().map(|((_, further), _)| Some(*further)).collect();
    batch(vec![
        ("character", Arc::new(strings(characters.iter().map(|c| Some(c.as_str()))))),
        ("continuing", Arc::new(continuing)),
        ("count", to_int64(rows.iter().map(|(_, symbol)| symbol.count))),
        ("first_rank", to_int64(rows.iter().map(|(_, symbol)| symbol.first.0))),
        ("first_offset", to_int64(rows.iter().map(|(_, symbol)| symbol.first.1 as u64))),
    ])
}

/// `token: uint32, count: int64`.
pub fn unigram_batch(counts: &Aggregate) -> Result<RecordBatch> {
    let mut rows: Vec<_> = counts.unigrams.iter().map(|(&token, &count)| (token, count)).collect();
    rows.sort_unstable();
    batch(vec![
        ("token", to_uint32(rows.iter().map(|row| row.0))),
        ("count", to_int64(rows.iter().map(|row| row.1))),
    ])
}

/// `left, right: uint32, count, merges, tokens, first_rank, first_offset: int64`.
pub fn pair_batch(counts: &Aggregate) -> Result<RecordBatch> {
    let mut rows: Vec<_> = counts.pairs.iter().map(|(&pair, &count)| (pair, count)).collect();
    rows.sort_unstable_by_key(|(pair, _)| *pair);
    batch(vec![
        ("left", to_uint32(rows.iter().map(|(pair, _)| pair.0))),
        ("right", to_uint32(rows.iter().map(|(pair, _)| pair.1))),
        ("count", to_int64(rows.iter().map(|(_, pair)| pair.count))),
        ("merges", to_int64(rows.iter().map(|(_, pair)| pair.merges))),
        ("tokens", to_int64(rows.iter().map(|(_, pair)| pair.tokens))),
        ("first_rank", to_int64(rows.iter().map(|(_, pair)| pair.first.0))),
        ("first_offset", to_int64(rows.iter().map(|(_, pair)| pair.first.1 as u64))),
    ])
}

/// Adds the rows of `unigram_batch` and `pair_batch` to counts.
pub fn add_counts(
    counts: &mut Aggregate,
    unigrams: &RecordBatch,
    pairs: &RecordBatch,
) -> Result<()> {
    let (tokens, sums) = (uint32(unigrams, "token")?, int64(unigrams, "count")?);
    for (&token, &count) in tokens.values().iter().zip(sums.values()) {
        counts.add_unigram(token, count as u64)?;
    }
    let column = |name| int64(pairs, name).map(|column| column.values().clone());
    let (count, merges, tokens) = (column("count")?, column("merges")?, column("tokens")?);
    let (rank, offset) = (column("first_rank")?, column("first_offset")?);
    for (row, pair) in read_pairs(pairs)?.into_iter().enumerate() {
        let more = PairCount {
            count: count[row] as u64,
            merges: merges[row] as u64,
            tokens: tokens[row] as u64,
            first: (rank[row] as u64, offset[row] as u32),
        };
        counts.add_pair(pair, more)?;
    }
    Ok(())
}

/// The columns `left` and `right`.
pub fn read_pairs(table: &RecordBatch) -> Result<Vec<(u32, u32)>> {
    let (left, right) = (uint32(table, "left")?, uint32(table, "right")?);
    Ok(left.values().iter().copied().zip(right.values().iter().copied()).collect())
}

pub fn read_merges(table: &RecordBatch) -> Result<Vec<(u32, u32, u32)>> {
    let tokens = uint32(table, "token")?.values();
    Ok(read_pairs(table)?.into_iter().zip(tokens).map(|((l, r), &t)| (l, r, t)).collect())
}

pub fn batch(columns: Vec<(&str, ArrayRef)>) -> Result<RecordBatch> {
    let fields: Vec<_> = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true))
        .collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(text)
}

pub fn to_int64(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values.map(|value| value as i64)))
}

pub fn to_uint32(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(values))
}

fn column<'a>(table: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef> {
    table.column_by_name(name).ok_or(format!("no column {name:?}"))
}

fn int64<'a>(table: &'a RecordBatch, name: &str) -> Result<&'a Int64Array> {
    let column = column(table, name)?;
    column.as_primitive_opt::<Int64Type>().ok_or(format!("column {name:?} is not int64"))
}

fn uint32<'a>(table: &'a RecordBatch, name: &str) -> Result<&'a UInt32Array> {
    let column = column(table, name)?;
    column.as_primitive_opt::<UInt32Type>().ok_or(format!("column {name:?} is not uint32"))
}

fn unsigned(column: &Int64Array) -> Vec<u64> {
    column.values().iter().map(|&value| value as u64).collect()
}

pub fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The training log, with tokens by their ids.
pub fn merge_batch(merges: &[Merge]) -> Result<RecordBatch> {
    let scores = Float64Array::from_iter_values(merges.iter().map(|merge| merge.score));
    batch(vec![
        ("left", to_uint32(merges.iter().map(|merge| merge.left))),
        ("right", to_uint32(merges.iter().map(|merge| merge.right))),
        ("token", to_uint32(merges.iter().map(|merge| merge.token))),
        ("score", Arc::new(scores)),
        ("pair_count", to_int64(merges.iter().map(|merge| merge.pair_count))),
        ("left_count", to_int64(merges.iter().map(|merge| merge.left_count))),
        ("right_count", to_int64(merges.iter().map(|merge| merge.right_count))),
    ])
}
