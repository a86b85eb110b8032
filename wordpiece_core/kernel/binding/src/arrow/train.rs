//! Record batches of what workers count and send in a round of training, and of the log of merges.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, UInt32Array};
use arrow_buffer::OffsetBuffer;
use foldhash::HashMap;

use super::table::{Bits, Column, Count, Offset, table};
use super::{batch, column, list, offsets, strings, to_int64};
use wordpiece_core::internals::{
    Candidate, Losses, PairCount, PairCounter, PairCounts, Place, RunSizes, SampledRun,
    SymbolCounts, Uses, add_pair, no_token, pair_partition,
};
use wordpiece_core::train::{Merge, Splits};
use wordpiece_core::{Error, Result};

table! {
    /// Splits without their symbols: places and counts.
    SplitPlaces, |row: (Place, u64)| {
        rank: Count = row.0.0,
        offset: Offset = row.0.1,
        count: Count = row.1,
    } => (Place, u64) { ((rank, offset), count) }
}

table! {
    /// The counts of tokens.
    TokenCounts, |row: (u32, u64)| {
        token: UInt32Type = row.0,
        count: Count = row.1,
    } => (u32, u64) { (token, count) }
}

table! {
    /// The tokens of pairs.
    Pairs, |pair: (u32, u32)| {
        left: UInt32Type = pair.0,
        right: UInt32Type = pair.1,
    } => (u32, u32) { (left, right) }
}

table! {
    /// The counts of pairs, without the pairs.
    CountsOfPairs, |pair: PairCount| {
        count: Count = pair.count,
        first_rank: Count = pair.first.0,
        first_offset: Offset = pair.first.1,
    } => PairCount { PairCount { count, first: (first_rank, first_offset) } }
}

table! {
    /// The levels of pairs, without the pairs.
    Levels, |given: u16| { level: UInt16Type = *given } => u16 { level }
}

table! {
    /// A log of merges.
    Merges, |merge: Merge| {
        left: UInt32Type = merge.left,
        right: UInt32Type = merge.right,
        token: UInt32Type = merge.token,
        score: Float64Type = merge.score,
        pair_count: Count = merge.pair_count,
        left_count: Count = merge.left_count,
        right_count: Count = merge.right_count,
    } => Merge { Merge { left, right, token, score, pair_count, left_count, right_count } }
}

table! {
    /// A sample of runs, by their hashes.
    SampledRuns, |run: (u64, SampledRun)| {
        hash: Bits = run.0,
        length: UInt32Type = run.1.length,
        first_max_level: UInt16Type = run.1.first_max_level,
        last_max_level: UInt16Type = run.1.last_max_level,
    } => (u64, SampledRun) { (hash, SampledRun { length, first_max_level, last_max_level }) }
}

/// The column of the symbols of splits: lists of uint32.
const SYMBOLS: &str = "symbols";

/// The record batch of splits: [`SplitPlaces`] and their symbols.
///
/// # Errors
///
/// Returns [`Error::Data`] if there are 2^31 symbols or more.
pub fn splits_batch(splits: Splits) -> Result<RecordBatch> {
    let offsets = OffsetBuffer::new(offsets(&splits.ends)?.into());
    let rows = splits.firsts.iter().copied().zip(splits.counts.iter().copied());
    let mut columns = SplitPlaces::columns(rows)?;
    columns.push((SYMBOLS, list(offsets, Arc::new(UInt32Array::from(splits.symbols)), None)?));
    batch(columns)
}

/// Reads the record batch of [`splits_batch`].
pub fn read_splits(table: &RecordBatch) -> Result<Splits> {
    let lists = column(table, SYMBOLS)?.as_list_opt::<i32>();
    let symbols = lists.and_then(|lists| lists.values().as_primitive_opt::<UInt32Type>());
    let (Some(lists), Some(symbols)) = (lists, symbols) else {
        return Err(Error::data(format!("column {SYMBOLS:?} is not a list of UInt32")));
    };
    if lists.null_count() > 0 || symbols.null_count() > 0 {
        return Err(Error::data(format!("column {SYMBOLS:?} has nulls")));
    }
    let (mut firsts, mut counts) =
        (Vec::with_capacity(lists.len()), Vec::with_capacity(lists.len()));
    let ends = lists.value_offsets();
    for (row, (first, count)) in SplitPlaces::rows(table)?.enumerate() {
        if first.1.checked_add((ends[row + 1] - ends[row]) as u32).is_none() {
            return Err(Error::data(format!("column \"offset\": {} in row {row}", first.1)));
        }
        firsts.push(first);
        counts.push(count);
    }
    let (first, last) = (ends[0] as usize, ends[lists.len()] as usize);
    Ok(Splits {
        firsts,
        counts,
        symbols: symbols.values()[first..last].to_vec(),
        ends: ends[1..].iter().map(|&end| end as usize - first).collect(),
    })
}

/// The record batch of a sample of runs, ordered by hash.
pub fn sample_batch(sizes: &RunSizes) -> Result<RecordBatch> {
    let mut rows: Vec<_> = sizes.sample().collect();
    rows.sort_unstable_by_key(|(hash, _)| *hash);
    SampledRuns::batch(rows.into_iter())
}

/// The record batch of the counts of symbols, ordered by symbol.
pub fn symbol_batch(symbols: &SymbolCounts) -> Result<RecordBatch> {
    let mut rows: Vec<_> = symbols.iter().collect();
    rows.sort_unstable_by_key(|(symbol, _)| **symbol);
    let characters: Vec<String> = rows.iter().map(|((c, _), _)| c.to_string()).collect();
    let marked: BooleanArray = rows.iter().map(|((_, marked), _)| Some(*marked)).collect();
    batch(vec![
        ("character", Arc::new(strings(characters.iter().map(|c| Some(c.as_str())))?)),
        ("marked", Arc::new(marked)),
        ("count", to_int64(rows.iter().map(|(_, symbol)| symbol.count))),
        ("first_rank", to_int64(rows.iter().map(|(_, symbol)| symbol.first.0))),
        ("first_offset", to_int64(rows.iter().map(|(_, symbol)| symbol.first.1 as u64))),
    ])
}

/// The record batch of the uses of tokens, a row for each.
pub fn use_batch(sums: Uses) -> Result<RecordBatch> {
    batch(vec![
        ("uses", to_int64(sums.uses.iter().copied())),
        ("is_harmful", Arc::new(BooleanArray::from(sums.is_harmful))),
    ])
}

/// The record batch of what tokens are worth, a row for each.
pub fn loss_batch(sums: Losses) -> Result<RecordBatch> {
    batch(vec![
        ("uses", to_int64(sums.uses.iter().copied())),
        ("losses", Arc::new(Int64Array::from(sums.losses))),
        ("is_needed", Arc::new(BooleanArray::from(sums.is_needed))),
        ("is_missed", Arc::new(BooleanArray::from(sums.is_missed))),
    ])
}

/// The record batch of [`TokenCounts`], ordered by token.
pub fn unigram_batch(counts: &HashMap<u32, u64>) -> Result<RecordBatch> {
    let mut rows: Vec<_> = counts.iter().map(|(&token, &count)| (token, count)).collect();
    rows.sort_unstable();
    TokenCounts::batch(rows.into_iter())
}

/// Reads [`TokenCounts`] into a vector of the count of each token. `tokens`: how many tokens there are.
///
/// # Errors
///
/// Returns the errors of [`TokenCounts::read`]; also for a token that is out of range.
pub fn unigrams_by_token(table: &RecordBatch, tokens: usize) -> Result<Vec<u64>> {
    let mut by_token = vec![0; tokens];
    for (token, count) in TokenCounts::rows(table)? {
        *by_token.get_mut(token as usize).ok_or_else(|| no_token(token, tokens))? = count;
    }
    Ok(by_token)
}

fn pair_columns(
    rows: impl ExactSizeIterator<Item = ((u32, u32), PairCount)> + Clone,
) -> Result<Vec<(&'static str, ArrayRef)>> {
    let mut columns = Pairs::columns(rows.clone().map(|(pair, _)| pair))?;
    columns.append(&mut CountsOfPairs::columns(rows.map(|(_, count)| count))?);
    Ok(columns)
}

/// The record batch of the counts of pairs, in the order given: [`Pairs`] and [`CountsOfPairs`].
pub fn pair_batch(rows: &[((u32, u32), PairCount)]) -> Result<RecordBatch> {
    batch(pair_columns(rows.iter().copied())?)
}

/// Adds the record batch of [`pair_batch`] to counts of pairs.
pub fn add_pairs(sums: &mut PairCounts, table: &RecordBatch) -> Result<()> {
    let mut rows = Pairs::rows(table)?.zip(CountsOfPairs::rows(table)?);
    rows.try_for_each(|(pair, more)| add_pair(sums, pair, more))
}

/// The record batch of candidates: the columns of [`pair_batch`], and [`Levels`].
pub fn candidate_batch(rows: &[Candidate]) -> Result<RecordBatch> {
    let mut columns = pair_columns(rows.iter().map(|&(pair, count, _)| (pair, count)))?;
    columns.append(&mut Levels::columns(rows.iter().map(|row| row.2))?);
    batch(columns)
}

/// Reads the record batch of [`candidate_batch`].
///
/// # Errors
///
/// Returns the errors of [`Pairs::read`], and [`Error::Data`] if a pair occurs twice.
pub fn read_candidates(table: &RecordBatch) -> Result<Vec<Candidate>> {
    let pairs = Pairs::rows(table)?.zip(CountsOfPairs::rows(table)?);
    let rows = pairs.zip(Levels::rows(table)?).map(|((pair, count), level)| (pair, count, level));
    let rows: Vec<Candidate> = rows.collect();
    if read_pair_levels(table)?.len() < rows.len() {
        return Err(Error::data("a pair is twice among the candidates"));
    }
    Ok(rows)
}

/// The levels of pairs, from the record batch of [`candidate_batch`].
pub fn read_pair_levels(table: &RecordBatch) -> Result<HashMap<(u32, u32), u16>> {
    Ok(Pairs::rows(table)?.zip(Levels::rows(table)?).collect())
}

/// Adds up the counts of equal tokens.
pub fn added_unigrams(batches: &[RecordBatch]) -> Result<RecordBatch> {
    let mut sums = PairCounter::default();
    for batch in batches {
        for (token, count) in TokenCounts::rows(batch)? {
            sums.add_unigram(token, count)?;
        }
    }
    unigram_batch(&sums.unigrams)
}

/// The sums of the counts of equal pairs.
pub fn sum_of_pairs(batches: &[RecordBatch]) -> Result<PairCounts> {
    let mut sums = PairCounts::default();
    batches.iter().try_for_each(|batch| add_pairs(&mut sums, batch))?;
    Ok(sums)
}

/// The record batch of the counts of pairs, ordered by pair.
pub fn sorted_pairs(mut rows: Vec<((u32, u32), PairCount)>) -> Result<RecordBatch> {
    rows.sort_unstable_by_key(|(pair, _)| *pair);
    pair_batch(&rows)
}

/// For each partition with pairs its number, and a batch ordered by pair. The partition depends on the
/// pair alone.
pub fn partitioned_pairs(
    pairs: PairCounts,
    partitions: usize,
) -> Result<Vec<(usize, RecordBatch)>> {
    let mut parts = vec![Vec::new(); partitions.max(1)];
    for (pair, count) in pairs {
        parts[pair_partition(pair, partitions)].push((pair, count));
    }
    let some = parts.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty());
    some.map(|(partition, rows)| Ok((partition, sorted_pairs(rows)?))).collect()
}
