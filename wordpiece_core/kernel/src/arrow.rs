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

use crate::error::{Error, Result};
use crate::pack::{Id, Packer, Sequences};
use crate::rows::{Rows, too_many_ids};
use crate::run_sizes::{RunSizes, Sampled};
use crate::splits::{PairCount, PairCounts, Place, Splits, SymbolCounts, add_pair};
use crate::tokens::no_token;
use crate::train::{Candidate, Merge};
use crate::watch::Limit;

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
        other => return Err(Error::data(format!("text must be strings or bytes, not {other}"))),
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
        offsets.push(i32::try_from(end).map_err(|_| too_many_ids())?);
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
        let pairs = FixedSizeListArray::try_new(field, 2, ends, None).map_err(Error::data)?;
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
    Ok(Arc::new(ListArray::try_new(field, offsets, values, nulls).map_err(Error::data)?))
}

/// Adds documents of ids, the first of them in row `first_row`, and returns what is full.
pub fn pack<P: ArrowPrimitiveType<Native: Id>>(
    packer: &mut Packer<P::Native>,
    documents: &ArrayRef,
    first_row: i64,
    vocab_size: u32,
) -> Result<Sequences<P::Native>> {
    let wrong = || {
        let (wanted, given) = (P::DATA_TYPE, documents.data_type());
        Error::data(format!("ids: a list of {wanted} is wanted, not {given}"))
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
    let most = packer.most(lists.len(), (ends[lists.len()] - ends[0]) as usize);
    i32::try_from(most).map_err(|_| too_many_ids())?;
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
            other => return Err(Error::option(format!("columns: {other} cannot be packed"))),
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
        let counts = column(table, "count")?.as_primitive_opt::<Int64Type>();
        let wrong = || Error::data("column \"count\" is not Int64");
        Ok(WordTable { words, counts: counts.ok_or_else(wrong)?.clone() })
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
            Some(at) => {
                let message = format!("row {at} of the word table has no valid word or count");
                Err(Error::data(message))
            }
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
    let too_many = || Error::data("more than 2^31 symbols in one batch");
    let end = |&end| i32::try_from(end).map_err(|_| too_many());
    std::iter::once(Ok(0)).chain(ends.iter().map(end)).collect()
}

/// The rows of `splits_batch`.
pub fn read_splits(table: &RecordBatch) -> Result<Splits> {
    let lists = column(table, "symbols")?.as_list_opt::<i32>();
    let symbols = lists.and_then(|lists| lists.values().as_primitive_opt::<UInt32Type>());
    let (Some(lists), Some(symbols)) = (lists, symbols) else {
        return Err(Error::data("column \"symbols\" is not a list of UInt32"));
    };
    if lists.null_count() > 0 || symbols.null_count() > 0 {
        return Err(Error::data("column \"symbols\" has nulls"));
    }
    let ends = lists.value_offsets();
    let (first, last) = (ends[0] as usize, ends[lists.len()] as usize);
    Ok(Splits {
        firsts: places(table, ["rank", "offset"], |row| (ends[row + 1] - ends[row]) as usize)?,
        counts: counts(table, "count")?,
        symbols: symbols.values()[first..last].to_vec(),
        ends: ends[1..].iter().map(|&end| end as usize - first).collect(),
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
    let hashes = values::<Int64Type>(table, "hash")?;
    let lengths = values::<UInt32Type>(table, "length")?;
    let tightest = values::<UInt16Type>(table, "tightest")?;
    let loosest = values::<UInt16Type>(table, "loosest")?;
    for row in 0..table.num_rows() {
        let (length, tightest, loosest) = (lengths[row], tightest[row], loosest[row]);
        sizes.add(hashes[row] as u64, Sampled { length, tightest, loosest });
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
    let tokens = values::<UInt32Type>(table, "token")?;
    Ok(tokens.iter().copied().zip(counts(table, "count")?).collect())
}

/// Counts by token, from the rows of `unigram_batch`. `tokens`: how many there are.
pub fn unigrams_by_token(table: &RecordBatch, tokens: usize) -> Result<Vec<u64>> {
    let mut by_token = vec![0; tokens];
    for (token, count) in read_unigrams(table)? {
        *by_token.get_mut(token as usize).ok_or_else(|| no_token(token, tokens))? = count;
    }
    Ok(by_token)
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
pub fn add_pairs(sums: &mut PairCounts, pairs: &RecordBatch) -> Result<()> {
    let (count, merges) = (counts(pairs, "count")?, counts(pairs, "merges")?);
    let firsts = places(pairs, ["first_rank", "first_offset"], |_| 0)?;
    for (row, pair) in read_pairs(pairs)?.into_iter().enumerate() {
        let more = PairCount { count: count[row], merges: merges[row], first: firsts[row] };
        add_pair(sums, pair, more)?;
    }
    Ok(())
}

/// The rows of `candidate_batch`, each pair once.
pub fn read_candidates(table: &RecordBatch) -> Result<Vec<Candidate>> {
    let levels = read_pair_levels(table)?;
    let mut counts = PairCounts::default();
    add_pairs(&mut counts, table)?;
    let pairs = read_pairs(table)?;
    if levels.len() < pairs.len() {
        return Err(Error::data("a pair is twice among the candidates"));
    }
    Ok(pairs.into_iter().map(|pair| (pair, counts[&pair], levels[&pair])).collect())
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
    let tokens = values::<UInt32Type>(table, "token")?;
    let limits = counts(table, "count")?.into_iter().zip(counts(table, "rare")?);
    let limits = limits.map(|(count, rare)| Limit { count, rare, ..Limit::NONE });
    let mut rows: Vec<_> = tokens.iter().copied().zip(limits).collect();
    for fall in 0..Limit::NONE.scores.len() {
        let scores = values::<Float64Type>(table, &format!("score_{fall}"))?;
        for (row, &score) in rows.iter_mut().zip(scores) {
            row.1.scores[fall] = score;
        }
    }
    Ok(rows)
}

/// The levels of pairs.
pub fn read_pair_levels(table: &RecordBatch) -> Result<FxHashMap<(u32, u32), u16>> {
    let levels = values::<UInt16Type>(table, "level")?;
    Ok(read_pairs(table)?.into_iter().zip(levels.iter().copied()).collect())
}

/// The columns `left` and `right`.
pub fn read_pairs(table: &RecordBatch) -> Result<Vec<(u32, u32)>> {
    let left = values::<UInt32Type>(table, "left")?;
    let right = values::<UInt32Type>(table, "right")?;
    Ok(left.iter().copied().zip(right.iter().copied()).collect())
}

/// The rows of `merge_batch`.
pub fn read_merges(table: &RecordBatch) -> Result<Vec<Merge>> {
    let tokens = values::<UInt32Type>(table, "token")?;
    let scores = values::<Float64Type>(table, "score")?;
    let count = |name| counts(table, name);
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
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(Error::data)
}

pub fn to_int64(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values.map(|value| value as i64)))
}

pub fn to_uint32(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(values))
}

fn column<'a>(table: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef> {
    let wanting = || Error::data(format!("no column {name:?} of a type that the kernel reads"));
    table.column_by_name(name).ok_or_else(wanting)
}

/// A column of numbers, all of them there: where a null is, the array holds anything.
fn numbers<'a, P: ArrowPrimitiveType>(
    table: &'a RecordBatch,
    name: &str,
) -> Result<&'a PrimitiveArray<P>> {
    let column = column(table, name)?;
    let wrong = || {
        let (wanted, given) = (P::DATA_TYPE, column.data_type());
        Error::data(format!("column {name:?} is {given}, not {wanted}"))
    };
    let numbers = column.as_primitive_opt::<P>().ok_or_else(wrong)?;
    match numbers.null_count() {
        0 => Ok(numbers),
        nulls => Err(Error::data(format!("column {name:?} has {nulls} nulls"))),
    }
}

/// The values of a column of numbers.
fn values<'a, P: ArrowPrimitiveType>(
    table: &'a RecordBatch,
    name: &str,
) -> Result<&'a [P::Native]> {
    Ok(numbers::<P>(table, name)?.values())
}

/// A column of counts or of places, none of them below zero.
fn counts(table: &RecordBatch, name: &str) -> Result<Vec<u64>> {
    let values = values::<Int64Type>(table, name)?;
    match values.iter().position(|&value| value < 0) {
        None => Ok(values.iter().map(|&value| value as u64).collect()),
        Some(row) => Err(Error::data(format!("column {name:?}: {} in row {row}", values[row]))),
    }
}

/// Places: the columns of these names. `reach`: how far each row's thing goes on.
fn places(
    table: &RecordBatch,
    [ranks, offsets]: [&str; 2],
    reach: impl Fn(usize) -> usize,
) -> Result<Vec<Place>> {
    let (ranks, found) = (counts(table, ranks)?, counts(table, offsets)?);
    let rows = ranks.into_iter().zip(found).enumerate();
    let place = |(row, (rank, offset)): (usize, (u64, u64))| {
        let end = offset.checked_add(reach(row) as u64).filter(|&end| end <= u32::MAX as u64);
        let too_far = || Error::data(format!("column {offsets:?}: {offset} in row {row}"));
        end.map(|_| (rank, offset as u32)).ok_or_else(too_far)
    };
    rows.map(place).collect()
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

#[cfg(test)]
mod tests {
    use arrow_array::{BinaryViewArray, LargeStringArray, NullArray, StringViewArray};

    use super::*;
    use crate::oracle::Random;
    use crate::pack::PackOptions;

    /// A batch with one column in another's place, or left out.
    fn with(batch: &RecordBatch, name: &str, column: Option<ArrayRef>) -> RecordBatch {
        let schema = batch.schema();
        let columns = schema.fields().iter().zip(batch.columns()).filter_map(|(field, old)| {
            let new = if field.name() == name { column.clone() } else { Some(old.clone()) };
            Some((field.name().as_str(), new?))
        });
        super::batch(columns.collect()).unwrap()
    }

    /// Without any of these columns, with another type, or a null, or a number below zero, a batch
    /// is refused.
    fn check_columns(
        batch: &RecordBatch,
        names: &[&str],
        read: impl Fn(&RecordBatch) -> Result<()>,
    ) {
        assert_eq!(read(batch), Ok(()));
        let rows = batch.num_rows();
        for name in names {
            assert!(read(&with(batch, name, None)).is_err(), "{name}");
            let texts = StringArray::from(vec!["1"; rows]);
            assert!(read(&with(batch, name, Some(Arc::new(texts)))).is_err(), "{name}");
            let kind = batch.column_by_name(name).unwrap().data_type().clone();
            let nulls = arrow_array::new_null_array(&kind, rows);
            assert!(read(&with(batch, name, Some(nulls))).is_err(), "{name}");
            if kind == DataType::Int64 && *name != "hash" {
                let negative: ArrayRef = Arc::new(Int64Array::from(vec![-1; rows]));
                let error = read(&with(batch, name, Some(negative))).unwrap_err();
                assert!(matches!(error, Error::Data(_)), "{name}");
            }
        }
    }

    fn splits(random: &mut Random) -> Splits {
        let mut splits = Splits::default();
        for rank in 0..1 + random.below(9) as u64 {
            let symbols: Vec<_> = (0..random.below(5)).map(|_| random.below(99) as u32).collect();
            splits.push((rank, random.below(9) as u32), random.below(99) as u64, &symbols);
        }
        splits
    }

    #[test]
    fn splits_come_back_also_from_a_slice() {
        let mut random = Random::new(30);
        for _ in 0..if cfg!(miri) { 5 } else { 200 } {
            let made = splits(&mut random);
            let rows: Vec<_> = made.iter().map(|(p, n, s)| (p, n, s.to_vec())).collect();
            let batch = splits_batch(made).unwrap();
            let from = random.below(rows.len() + 1);
            let found = read_splits(&batch.slice(from, rows.len() - from)).unwrap();
            let found: Vec<_> = found.iter().map(|(p, n, s)| (p, n, s.to_vec())).collect();
            assert_eq!(found, rows[from..]);
            let names = ["rank", "offset", "count", "symbols"];
            check_columns(&batch, &names, |batch| read_splits(batch).map(drop));
        }
        let mut far = Splits::default();
        far.push((0, u32::MAX), 1, &[]);
        assert!(read_splits(&splits_batch(far).unwrap()).is_ok());
        let mut far = Splits::default();
        far.push((0, u32::MAX), 1, &[1]);
        assert!(read_splits(&splits_batch(far).unwrap()).is_err());
    }

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
            let table = WordTable::new(&with(&table, "word", Some(array))).unwrap();
            assert_eq!(table.rows().unwrap(), [("a", 3), ("é", 1 << 62), ("", 0)]);
        }
        let read = |table: &RecordBatch| WordTable::new(table)?.rows().map(drop);
        check_columns(&table, &["count"], read);
        let bad: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"a", b"\xff", b"b"]));
        let error = read(&with(&table, "word", Some(bad))).unwrap_err().to_string();
        assert_eq!(error, "row 1 of the word table has no valid word or count");
        assert!(read(&with(&table, "word", None)).is_err());
        assert!(read(&with(&table, "word", Some(Arc::new(NullArray::new(3))))).is_err());
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        assert!(read(&with(&table, "word", Some(numbers))).is_err());
    }

    #[test]
    fn counts_of_tokens_and_pairs_come_back() {
        let mut random = Random::new(31);
        for _ in 0..if cfg!(miri) { 5 } else { 100 } {
            let mut random_pair = || {
                (
                    (random.below(9) as u32, random.below(9) as u32),
                    PairCount {
                        count: random.below(99) as u64,
                        merges: random.below(99) as u64,
                        first: (random.below(99) as u64, random.below(99) as u32),
                    },
                )
            };
            let pairs: PairCounts = (0..9).map(|_| random_pair()).collect();
            let rows: Vec<_> = pairs.iter().map(|(&pair, &count)| (pair, count)).collect();
            let batch = pair_batch(&rows).unwrap();
            let read = |batch: &RecordBatch| {
                let mut found = PairCounts::default();
                add_pairs(&mut found, batch).map(|()| found)
            };
            assert_eq!(read(&batch), Ok(pairs.clone()));
            let names = ["left", "right", "count", "merges", "first_rank", "first_offset"];
            check_columns(&batch, &names, |batch| read(batch).map(drop));

            let mut candidates: Vec<Candidate> =
                rows.iter().zip(0..).map(|(&(pair, count), level)| (pair, count, level)).collect();
            let batch = candidate_batch(&candidates).unwrap();
            assert_eq!(read_candidates(&batch), Ok(candidates.clone()));
            check_columns(&batch, &["level"], |batch| read_candidates(batch).map(drop));
            candidates.push(candidates[0]);
            assert!(read_candidates(&candidate_batch(&candidates).unwrap()).is_err());

            let unigrams: FxHashMap<u32, u64> =
                rows.iter().map(|((left, _), count)| (*left, count.count)).collect();
            let batch = unigram_batch(&unigrams).unwrap();
            let by_token = unigrams_by_token(&batch, 9).unwrap();
            assert!((0..9).all(|t| by_token[t as usize] == *unigrams.get(&t).unwrap_or(&0)));
            let most = *unigrams.keys().max().unwrap() as usize;
            assert_eq!(unigrams_by_token(&batch, most), Err(no_token(most as u32, most)));
            check_columns(&batch, &["token", "count"], |batch| read_unigrams(batch).map(drop));
        }
        let pair = ((1, 2), PairCount { count: i64::MAX as u64, merges: 1, first: (0, 0) });
        let twice = pair_batch(&[pair, pair]).unwrap();
        assert_eq!(add_pairs(&mut PairCounts::default(), &twice), Err(Error::Overflow));
    }

    #[test]
    fn limits_merges_and_samples_come_back() {
        let limit = Limit { scores: [0.5, 1.0, 1.5, 2.0, 2.5, f64::INFINITY], count: 3, rare: 4 };
        let limits: FxHashMap<u32, Limit> = [(3, limit), (1, Limit::NONE)].into_iter().collect();
        let batch = limit_batch(&limits).unwrap();
        assert_eq!(read_limits(&batch), Ok(vec![(1, Limit::NONE), (3, limit)]));
        let names = ["token", "count", "rare", "score_0", "score_5"];
        check_columns(&batch, &names, |batch| read_limits(batch).map(drop));

        let merge = |n: u32| Merge {
            left: n,
            right: n + 1,
            token: n + 2,
            score: f64::from(n),
            pair_count: 7,
            left_count: 8,
            right_count: 9,
        };
        let merges: Vec<_> = (0..3).map(merge).collect();
        let batch = merge_batch(&merges).unwrap();
        assert_eq!(read_merges(&batch), Ok(merges));
        let names = ["left", "right", "token", "score", "pair_count", "left_count", "right_count"];
        check_columns(&batch, &names, |batch| read_merges(batch).map(drop));

        let mut sizes = RunSizes::new(100, 9);
        sizes.add(u64::MAX, Sampled { length: 3, tightest: 1, loosest: 4 });
        sizes.add(5, Sampled { length: 2, tightest: 0, loosest: 9 });
        let batch = sample_batch(&sizes).unwrap();
        let mut found = RunSizes::new(100, 9);
        add_sample(&mut found, &batch).unwrap();
        let sorted = |sizes: &RunSizes| {
            let mut rows: Vec<_> = sizes.sample().collect();
            rows.sort_unstable_by_key(|row| row.0);
            rows
        };
        assert_eq!(sorted(&found), sorted(&sizes));
        let names = ["hash", "length", "tightest", "loosest"];
        check_columns(&batch, &names, |b| add_sample(&mut RunSizes::new(100, 9), b));
    }

    #[test]
    fn symbols_and_words_are_written_in_order() {
        let mut symbols = SymbolCounts::default();
        crate::splits::count_symbols("ba", 2, 7, &mut symbols).unwrap();
        let batch = symbol_batch(&symbols).unwrap();
        let names = ["character", "continuing", "count", "first_rank", "first_offset"];
        assert_eq!(batch.schema().fields().iter().map(|f| f.name()).collect::<Vec<_>>(), names);
        assert_eq!(batch.column(0).as_string::<i32>(), &StringArray::from(vec!["a", "b"]));
        assert_eq!(counts(&batch, "first_offset"), Ok(vec![1, 0]));
        let lists = word_lists(&[Some(vec!["a".into(), "b".into()]), None, Some(vec![])]).unwrap();
        assert_eq!(lists.as_list::<i32>().value_offsets(), [0, 2, 2, 2]);
        assert_eq!((lists.len(), lists.null_count()), (3, 1));
    }

    #[test]
    fn ids_are_packed_from_lists_of_their_type_alone() {
        let options = PackOptions { length: 4, cls_id: 1, sep_id: 2, pad_id: Some(0) };
        let mut packer = Packer::<i32>::new(options).unwrap();
        let lists = |rows: Vec<Option<Vec<Option<i32>>>>| -> ArrayRef {
            Arc::new(ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>(rows))
        };
        let mut add =
            |ids: &ArrayRef, size| pack::<arrow_array::types::Int32Type>(&mut packer, ids, 0, size);
        let good = lists(vec![Some(vec![Some(5), Some(6)]), None, Some(vec![])]);
        for (bad, size) in [
            (lists(vec![Some(vec![Some(5), None])]), 9),
            (lists(vec![Some(vec![Some(-1)])]), 9),
            (good.clone(), 6),
            (Arc::new(Int32Array::from(vec![5])), 9),
            (Arc::new(NullArray::new(1)), 9),
        ] {
            assert!(matches!(add(&bad, size), Err(Error::Data(_))));
        }
        let full = add(&good.slice(0, 3), 7).unwrap();
        assert_eq!(full.ids, [1, 5, 6, 2]);
        let names = ["attention_mask", "num_tokens"].map(String::from);
        let batch = packed_batch::<arrow_array::types::Int32Type>(full.clone(), &names).unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns()), (1, 5));
        let other = packed_batch::<arrow_array::types::Int32Type>(full, &["word_ids".into()]);
        assert!(matches!(other, Err(Error::Option(_))));
    }
}
