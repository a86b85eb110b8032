//! Record batches of what workers count and send in a round of training, and of the log of merges.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, UInt32Array};
use arrow_buffer::OffsetBuffer;
use foldhash::HashMap;

use super::table::{Bits, Column, Count, Offset, table};
use super::{batch, column, list, offsets, strings, to_int64};
use wordpiece_core::base::memory;
use wordpiece_core::train::no_token;
use wordpiece_core::train::{
    Candidate, Losses, Merge, PairCount, PairCounter, PairCounts, Place, RunSizes, SampledRun,
    Splits, SymbolCounts, Uses, add_pair, pair_hash,
};
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
        (memory::with_capacity(lists.len()), memory::with_capacity(lists.len()));
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
        symbols: memory::collected(symbols.values()[first..last].iter().copied()),
        ends: memory::collected(ends[1..].iter().map(|&end| end as usize - first)),
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
/// The same as for [`TokenCounts::read`]; also for a token that is none of them.
pub fn unigrams_by_token(table: &RecordBatch, tokens: usize) -> Result<Vec<u64>> {
    let mut by_token = memory::filled(0, tokens);
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
    rows.try_for_each(|(pair, more)| Ok(add_pair(sums, pair, more)?))
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
/// The same as for [`Pairs::read`]; also if a pair is there twice.
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
        let partition = (pair_hash(pair) >> 32) as usize % parts.len();
        parts[partition].push((pair, count));
    }
    let some = parts.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty());
    some.map(|(partition, rows)| Ok((partition, sorted_pairs(rows)?))).collect()
}

#[cfg(test)]
mod tests {
    use arrow_array::StringArray;

    use super::super::checks::check_columns;
    use super::super::string_lists;
    use super::*;
    use wordpiece_testing::Random;

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
        for _ in 0..200 {
            let made = splits(&mut random);
            let rows: Vec<_> = made.iter().map(|(p, n, s)| (p, n, s.to_vec())).collect();
            let batch = splits_batch(made).unwrap();
            let from = random.below(rows.len() + 1);
            let found = read_splits(&batch.slice(from, rows.len() - from)).unwrap();
            let found: Vec<_> = found.iter().map(|(p, n, s)| (p, n, s.to_vec())).collect();
            assert_eq!(found, rows[from..]);
            let names = [SplitPlaces::COLUMNS, &[SYMBOLS]].concat();
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
    fn counts_of_tokens_and_pairs_come_back() {
        let mut random = Random::new(31);
        for _ in 0..100 {
            let mut random_pair = || {
                (
                    (random.below(9) as u32, random.below(9) as u32),
                    PairCount {
                        count: random.below(99) as u64,
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
            let names = [Pairs::COLUMNS, CountsOfPairs::COLUMNS].concat();
            check_columns(&batch, &names, |batch| read(batch).map(drop));

            let mut candidates: Vec<Candidate> =
                rows.iter().zip(0..).map(|(&(pair, count), level)| (pair, count, level)).collect();
            let batch = candidate_batch(&candidates).unwrap();
            assert_eq!(read_candidates(&batch), Ok(candidates.clone()));
            check_columns(&batch, Levels::COLUMNS, |batch| read_candidates(batch).map(drop));
            candidates.push(candidates[0]);
            assert!(read_candidates(&candidate_batch(&candidates).unwrap()).is_err());

            let unigrams: HashMap<u32, u64> =
                rows.iter().map(|((left, _), count)| (*left, count.count)).collect();
            let batch = unigram_batch(&unigrams).unwrap();
            let by_token = unigrams_by_token(&batch, 9).unwrap();
            assert!((0..9).all(|t| by_token[t as usize] == *unigrams.get(&t).unwrap_or(&0)));
            let most = *unigrams.keys().max().unwrap() as usize;
            assert_eq!(unigrams_by_token(&batch, most), Err(no_token(most as u32, most)));
            check_columns(&batch, TokenCounts::COLUMNS, |batch| TokenCounts::read(batch).map(drop));
        }
        let pair = ((1, 2), PairCount { count: i64::MAX as u64, first: (0, 0) });
        let twice = pair_batch(&[pair, pair]).unwrap();
        assert_eq!(add_pairs(&mut PairCounts::default(), &twice), Err(Error::Overflow));
    }

    #[test]
    fn merges_and_samples_come_back() {
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
        let batch = Merges::batch(merges.iter()).unwrap();
        assert_eq!(Merges::read(&batch), Ok(merges));
        check_columns(&batch, Merges::COLUMNS, |batch| Merges::read(batch).map(drop));

        let mut sizes = RunSizes::new(100, 9);
        sizes.add(u64::MAX, SampledRun { length: 3, first_max_level: 1, last_max_level: 4 });
        sizes.add(5, SampledRun { length: 2, first_max_level: 0, last_max_level: 9 });
        let batch = sample_batch(&sizes).unwrap();
        let mut found = RunSizes::new(100, 9);
        SampledRuns::read(&batch).unwrap().into_iter().for_each(|(hash, run)| found.add(hash, run));
        let sorted = |sizes: &RunSizes| {
            let mut rows: Vec<_> = sizes.sample().collect();
            rows.sort_unstable_by_key(|row| row.0);
            rows
        };
        assert_eq!(sorted(&found), sorted(&sizes));
        check_columns(&batch, SampledRuns::COLUMNS, |batch| SampledRuns::read(batch).map(drop));
    }

    #[test]
    fn symbols_and_words_are_written_in_order() {
        let mut symbols = SymbolCounts::default();
        let marks = wordpiece_core::text::WordMarks::Prefix("##".into());
        wordpiece_core::train::count_symbols("ba", 2, 7, &marks, &mut symbols).unwrap();
        let batch = symbol_batch(&symbols).unwrap();
        let names = ["character", "marked", "count", "first_rank", "first_offset"];
        assert_eq!(batch.schema().fields().iter().map(|f| f.name()).collect::<Vec<_>>(), names);
        assert_eq!(batch.column(0).as_string::<i32>(), &StringArray::from(vec!["a", "b"]));
        assert!(Count::read(&batch, "first_offset").unwrap().eq([1, 0]));
        let lists =
            string_lists(&[Some(vec!["a".into(), "b".into()]), None, Some(vec![])]).unwrap();
        assert_eq!(lists.as_list::<i32>().value_offsets(), [0, 2, 2, 2]);
        assert_eq!((lists.len(), lists.null_count()), (3, 1));
    }
}
