//! Arrow arrays to the kernel's types and back.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt16Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, FixedSizeListArray,
    Float64Array, Int8Array, Int32Array, Int64Array, LargeBinaryArray, ListArray, PrimitiveArray,
    RecordBatch, StringArray, UInt16Array, UInt32Array,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema};
use rustc_hash::FxHashMap;

use crate::pack::{Id, Packer, Sequences};
use crate::rows::Rows;
use crate::run_sizes::{RunSizes, Sampled};
use crate::splits::{CountOverflow, PairCount, PairCounts, Splits, SymbolCounts, add_pair};
use crate::train::{Candidate, Merge};
use crate::watch::Limit;

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

/// How ids are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdType {
    Int32,
    UInt16,
}

/// Encoded rows as columns: `input_ids`, and those that were asked for.
pub fn encoded(rows: Rows, id_type: IdType) -> Result<RecordBatch> {
    let mut offsets = vec![0i32];
    for &end in &rows.ends {
        offsets.push(i32::try_from(end).map_err(|_| "more than 2^31 ids in one batch")?);
    }
    let offsets = OffsetBuffer::new(offsets.into());
    let nulls = NullBuffer::from(rows.valid);
    let nulls = (nulls.null_count() > 0).then_some(nulls);
    let lists = |values| list(offsets.clone(), values, nulls.clone());
    let ids: ArrayRef = match id_type {
        IdType::Int32 => Arc::new(int32_array(rows.ids)),
        IdType::UInt16 => {
            Arc::new(UInt16Array::from_iter_values(rows.ids.iter().map(|&id| id as u16)))
        }
    };
    let mut columns = vec![("input_ids", lists(ids)?)];
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
        let pairs = FixedSizeListArray::try_new(field, 2, ends, None).map_err(text)?;
        columns.push(("offset_mapping", lists(Arc::new(pairs))?));
    }
    if let Some(words) = rows.word_ids {
        let some = NullBuffer::from_iter(words.iter().map(|&word| word >= 0));
        columns.push(("word_ids", lists(Arc::new(Int32Array::new(words.into(), Some(some))))?));
    }
    if let Some(lengths) = rows.num_tokens {
        columns.push(("num_tokens", Arc::new(Int32Array::new(lengths.into(), nulls))));
    }
    if let Some(sources) = rows.sources {
        columns.push(("source_rows", Arc::new(Int64Array::from(sources))));
    }
    batch(columns)
}

/// Ids as signed numbers, without a copy.
fn int32_array(ids: Vec<u32>) -> Int32Array {
    let length = ids.len();
    Int32Array::new(ScalarBuffer::new(Buffer::from_vec(ids), 0, length), None)
}

fn list(
    offsets: OffsetBuffer<i32>,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let field = Arc::new(Field::new("item", values.data_type().clone(), true));
    Ok(Arc::new(ListArray::try_new(field, offsets, values, nulls).map_err(text)?))
}

/// Adds documents of ids, the first of them in row `first_row`, and returns what is full.
pub fn pack<P: ArrowPrimitiveType<Native: Id>>(
    packer: &mut Packer<P::Native>,
    documents: &ArrayRef,
    first_row: i64,
    vocab_size: u32,
) -> Result<Sequences<P::Native>> {
    let wrong =
        || format!("ids: a list of {} is wanted, not {}", P::DATA_TYPE, documents.data_type());
    let lists = documents.as_list_opt::<i32>().ok_or_else(wrong)?;
    let values = lists.values().as_primitive_opt::<P>().ok_or_else(wrong)?;
    let ends = lists.value_offsets();
    let rows = (0..lists.len()).filter(|&row| lists.is_valid(row)).map(|row| {
        (first_row + row as i64, &values.values()[ends[row] as usize..ends[row + 1] as usize])
    });
    if values.null_count() > 0 {
        return Err("ids: null among the ids of a document".into());
    }
    for (row, ids) in rows.clone() {
        let largest = ids.iter().fold(0, |largest, id| id.value().max(largest));
        if largest >= vocab_size && !ids.is_empty() {
            return Err(format!("ids: row {row} has an id beyond the {vocab_size} tokens"));
        }
    }
    let most = packer.most(lists.len(), (ends[lists.len()] - ends[0]) as usize);
    i32::try_from(most).map_err(|_| "more than 2^31 ids in one batch")?;
    Ok(packer.add(rows, most))
}

/// `input_ids`, the columns named, `document_starts: list<int32>`, `document_rows: list<int64>`.
pub fn packed_batch<P: ArrowPrimitiveType<Native: Id>>(
    sequences: Sequences<P::Native>,
    names: &[String],
) -> Result<RecordBatch> {
    let length = (sequences.ids.len() / sequences.len().max(1)) as i32;
    let ends: Vec<i32> = (0..=sequences.len() as i32).map(|row| row * length).collect();
    let ends = OffsetBuffer::new(ends.into());
    let mut others: Vec<(&str, ArrayRef)> = Vec::new();
    for name in names {
        let mask = match name.as_str() {
            "attention_mask" => sequences.attention_mask(),
            "token_type_ids" => vec![0; sequences.ids.len()],
            "special_tokens_mask" => sequences.special_tokens_mask(),
            "num_tokens" => {
                others.push((name, Arc::new(Int32Array::from(sequences.num_tokens()))));
                continue;
            }
            other => return Err(format!("columns: {other} cannot be packed")),
        };
        others.push((name, list(ends.clone(), Arc::new(Int8Array::from(mask)), None)?));
    }
    let documents = OffsetBuffer::new(offsets(&sequences.document_ends)?.into());
    let starts = Arc::new(Int32Array::from(sequences.document_starts));
    let rows = Arc::new(Int64Array::from(sequences.document_rows));
    let ids = Arc::new(PrimitiveArray::<P>::new(sequences.ids.into(), None));
    let mut columns = vec![("input_ids", list(ends, ids, None)?)];
    columns.append(&mut others);
    columns.push(("document_starts", list(documents.clone(), starts, None)?));
    columns.push(("document_rows", list(documents, rows, None)?));
    batch(columns)
}

/// `list<string>` of words, a list per row.
pub fn word_lists(rows: &[Option<Vec<String>>]) -> Result<ArrayRef> {
    let words = strings(rows.iter().flatten().flatten().map(|word| Some(word.as_str())));
    let mut offsets = vec![0i32];
    for row in rows {
        offsets.push(offsets[offsets.len() - 1] + row.as_ref().map_or(0, Vec::len) as i32);
    }
    let nulls = NullBuffer::from_iter(rows.iter().map(Option::is_some));
    list(OffsetBuffer::new(offsets.into()), Arc::new(words), Some(nulls))
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

/// Splits: `rank, offset, count: int64, symbols: list<uint32>`.
pub fn splits_batch(splits: Splits) -> Result<RecordBatch> {
    batch(splits_columns(splits)?)
}

fn splits_columns(splits: Splits) -> Result<Vec<(&'static str, ArrayRef)>> {
    let offsets = offsets(&splits.ends)?;
    Ok(vec![
        ("rank", to_int64(splits.firsts.iter().map(|first| first.0))),
        ("offset", to_int64(splits.firsts.iter().map(|first| first.1 as u64))),
        ("count", to_int64(splits.counts.into_iter())),
        (
            "symbols",
            list(
                OffsetBuffer::new(offsets.into()),
                Arc::new(UInt32Array::from(splits.symbols)),
                None,
            )?,
        ),
    ])
}

fn offsets(ends: &[usize]) -> Result<Vec<i32>> {
    let end = |&end| i32::try_from(end).map_err(|_| "more than 2^31 symbols in one batch".into());
    std::iter::once(Ok(0)).chain(ends.iter().map(end)).collect()
}

pub fn read_splits(table: &RecordBatch) -> Result<Splits> {
    let lists = column(table, "symbols")?.as_list_opt::<i32>().ok_or("symbols: not a list")?;
    let values =
        lists.values().as_primitive_opt::<UInt32Type>().ok_or("symbols: not a list of uint32")?;
    let first = lists.value_offsets()[0] as usize;
    let ends: Vec<usize> =
        lists.value_offsets()[1..].iter().map(|&end| end as usize - first).collect();
    let last = first + ends.last().copied().unwrap_or(0);
    let (ranks, offsets) = (int64(table, "rank")?.values(), int64(table, "offset")?.values());
    let firsts = ranks.iter().zip(offsets).map(|(&rank, &offset)| (rank as u64, offset as u32));
    Ok(Splits {
        firsts: firsts.collect(),
        counts: unsigned(int64(table, "count")?),
        symbols: values.values()[first..last].to_vec(),
        ends,
    })
}

/// A sample of runs: `hash: int64, length: uint32, tightest, loosest: uint16`.
pub fn sample_batch(sizes: &RunSizes) -> Result<RecordBatch> {
    let mut rows: Vec<_> = sizes.sample().collect();
    rows.sort_unstable_by_key(|(hash, _)| *hash);
    let uint16 = |level: fn(&Sampled) -> u16| -> ArrayRef {
        Arc::new(UInt16Array::from_iter_values(rows.iter().map(|(_, sampled)| level(sampled))))
    };
    batch(vec![
        ("hash", to_int64(rows.iter().map(|(hash, _)| *hash))),
        ("length", to_uint32(rows.iter().map(|(_, sampled)| sampled.length))),
        ("tightest", uint16(|sampled| sampled.tightest)),
        ("loosest", uint16(|sampled| sampled.loosest)),
    ])
}

/// Adds the rows of `sample_batch`.
pub fn add_sample(sizes: &mut RunSizes, table: &RecordBatch) -> Result<()> {
    let (hashes, lengths) = (int64(table, "hash")?.values(), uint32(table, "length")?.values());
    let (tightest, loosest) = (uint16(table, "tightest")?, uint16(table, "loosest")?);
    for row in 0..table.num_rows() {
        let (tightest, loosest) = (tightest.value(row), loosest.value(row));
        sizes.add(hashes[row] as u64, Sampled { length: lengths[row], tightest, loosest });
    }
    Ok(())
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
pub fn unigram_batch(counts: &FxHashMap<u32, u64>) -> Result<RecordBatch> {
    let mut rows: Vec<_> = counts.iter().map(|(&token, &count)| (token, count)).collect();
    rows.sort_unstable();
    batch(vec![
        ("token", to_uint32(rows.iter().map(|row| row.0))),
        ("count", to_int64(rows.iter().map(|row| row.1))),
    ])
}

/// The rows of `unigram_batch`.
pub fn read_unigrams(table: &RecordBatch) -> Result<Vec<(u32, u64)>> {
    let (tokens, counts) = (uint32(table, "token")?, int64(table, "count")?);
    let rows = tokens.values().iter().zip(counts.values());
    Ok(rows.map(|(&token, &count)| (token, count as u64)).collect())
}

/// Counts by token, from the rows of `unigram_batch`.
pub fn unigrams_by_token(table: &RecordBatch, tokens: usize) -> Result<Vec<u64>> {
    let mut counts = vec![0; tokens];
    read_unigrams(table)?.into_iter().for_each(|(token, count)| counts[token as usize] = count);
    Ok(counts)
}

/// `left, right: uint32, count, merges, first_rank, first_offset: int64`, in the order given.
pub fn pair_batch(rows: &[((u32, u32), PairCount)]) -> Result<RecordBatch> {
    batch(pair_columns(rows))
}

/// As pairs, and `level: uint16`.
pub fn candidate_batch(rows: &[Candidate]) -> Result<RecordBatch> {
    let pairs: Vec<_> = rows.iter().map(|(pair, count, _)| (*pair, *count)).collect();
    let mut columns = pair_columns(&pairs);
    let levels = UInt16Array::from_iter_values(rows.iter().map(|(_, _, level)| *level));
    columns.push(("level", Arc::new(levels)));
    batch(columns)
}

fn pair_columns(rows: &[((u32, u32), PairCount)]) -> Vec<(&'static str, ArrayRef)> {
    vec![
        ("left", to_uint32(rows.iter().map(|(pair, _)| pair.0))),
        ("right", to_uint32(rows.iter().map(|(pair, _)| pair.1))),
        ("count", to_int64(rows.iter().map(|(_, pair)| pair.count))),
        ("merges", to_int64(rows.iter().map(|(_, pair)| pair.merges))),
        ("first_rank", to_int64(rows.iter().map(|(_, pair)| pair.first.0))),
        ("first_offset", to_int64(rows.iter().map(|(_, pair)| pair.first.1 as u64))),
    ]
}

/// Adds the rows of `pair_batch` to counts.
pub fn add_pairs(counts: &mut PairCounts, pairs: &RecordBatch) -> Result<()> {
    let column = |name| int64(pairs, name).map(|column| column.values().clone());
    let (count, merges) = (column("count")?, column("merges")?);
    let (rank, offset) = (column("first_rank")?, column("first_offset")?);
    for (row, pair) in read_pairs(pairs)?.into_iter().enumerate() {
        let more = PairCount {
            count: count[row] as u64,
            merges: merges[row] as u64,
            first: (rank[row] as u64, offset[row] as u32),
        };
        add_pair(counts, pair, more)?;
    }
    Ok(())
}

/// The rows of `candidate_batch`.
pub fn read_candidates(table: &RecordBatch) -> Result<Vec<Candidate>> {
    let levels = read_pair_levels(table)?;
    let mut counts = PairCounts::default();
    add_pairs(&mut counts, table)?;
    let pairs = read_pairs(table)?.into_iter();
    Ok(pairs.map(|pair| (pair, counts[&pair], levels[&pair])).collect())
}

/// `token: uint32, count, rare: int64` and, for each fall of the tokens' counts, a score: double.
pub fn limit_batch(limits: &FxHashMap<u32, Limit>) -> Result<RecordBatch> {
    let mut rows: Vec<_> = limits.iter().collect();
    rows.sort_unstable_by_key(|(token, _)| **token);
    let mut columns = vec![
        ("token".to_string(), to_uint32(rows.iter().map(|(token, _)| **token))),
        ("count".to_string(), to_int64(rows.iter().map(|(_, limit)| limit.count))),
        ("rare".to_string(), to_int64(rows.iter().map(|(_, limit)| limit.rare))),
    ];
    for fall in 0..Limit::NONE.scores.len() {
        let scores = rows.iter().map(|(_, limit)| limit.scores[fall]);
        let scores: ArrayRef = Arc::new(Float64Array::from_iter_values(scores));
        columns.push((format!("score_{fall}"), scores));
    }
    batch(columns.iter().map(|(name, column)| (name.as_str(), column.clone())).collect())
}

/// The rows of `limit_batch`.
pub fn read_limits(table: &RecordBatch) -> Result<Vec<(u32, Limit)>> {
    let tokens = uint32(table, "token")?.values();
    let (count, rare) = (unsigned(int64(table, "count")?), unsigned(int64(table, "rare")?));
    let limits =
        count.into_iter().zip(rare).map(|(count, rare)| Limit { count, rare, ..Limit::NONE });
    let mut rows: Vec<_> = tokens.iter().copied().zip(limits).collect();
    for fall in 0..Limit::NONE.scores.len() {
        let scores = column(table, &format!("score_{fall}"))?;
        let scores = scores.as_primitive_opt::<Float64Type>().ok_or("a score is not double")?;
        for (row, &score) in rows.iter_mut().zip(scores.values()) {
            row.1.scores[fall] = score;
        }
    }
    Ok(rows)
}

/// The levels of pairs.
pub fn read_pair_levels(table: &RecordBatch) -> Result<FxHashMap<(u32, u32), u16>> {
    let levels = uint16(table, "level")?.values();
    Ok(read_pairs(table)?.into_iter().zip(levels.iter().copied()).collect())
}

/// The columns `left` and `right`.
pub fn read_pairs(table: &RecordBatch) -> Result<Vec<(u32, u32)>> {
    let (left, right) = (uint32(table, "left")?, uint32(table, "right")?);
    Ok(left.values().iter().copied().zip(right.values().iter().copied()).collect())
}

/// The rows of `merge_batch`.
pub fn read_merges(table: &RecordBatch) -> Result<Vec<Merge>> {
    let tokens = uint32(table, "token")?.values();
    let scores = column(table, "score")?.as_primitive_opt::<Float64Type>();
    let scores = scores.ok_or("column \"score\" is not double")?.values();
    let count = |name| int64(table, name).map(unsigned);
    let (pair, left, right) = (count("pair_count")?, count("left_count")?, count("right_count")?);
    let pairs = read_pairs(table)?.into_iter().enumerate();
    let merge = |(row, pair_tokens): (usize, (u32, u32))| Merge {
        left: pair_tokens.0,
        right: pair_tokens.1,
        token: tokens[row],
        score: scores[row],
        pair_count: pair[row],
        left_count: left[row],
        right_count: right[row],
    };
    Ok(pairs.map(merge).collect())
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

fn uint16<'a>(table: &'a RecordBatch, name: &str) -> Result<&'a UInt16Array> {
    let column = column(table, name)?;
    column.as_primitive_opt::<UInt16Type>().ok_or(format!("column {name:?} is not uint16"))
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
