//! Record batches of what workers count and send in a round of training, and of the log of merges.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt16Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, UInt16Array, UInt32Array,
};
use arrow_buffer::OffsetBuffer;
use foldhash::HashMap;

use super::{batch, column, counts, list, offsets, strings, to_int64, to_uint32, values};
use crate::base::error::{Error, Result};
use crate::base::memory;
use crate::train::longest::{Losses, Uses};
use crate::train::run_sizes::{RunSizes, SampledRun};
use crate::train::splits::{PairCount, PairCounts, Place, Splits, SymbolCounts, add_pair};
use crate::train::tokens::no_token;
use crate::train::trainer::{Candidate, Merge};
use crate::train::watch::Limit;

/// The record batch of splits: `rank, offset, count: int64, symbols: list<uint32>`.
///
/// # Errors
///
/// Returns [`Error::Data`] if there are 2^31 symbols or more.
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

/// Reads the record batch of [`splits_batch`].
///
/// # Errors
///
/// Returns [`Error::Data`] if a column is missing, of another type, has nulls, or negative counts.
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
        symbols: memory::collected(symbols.values()[first..last].iter().copied()),
        ends: memory::collected(ends[1..].iter().map(|&end| end as usize - first)),
    })
}

/// The record batch of a sample of runs, ordered by hash: `hash: int64, length: uint32`, and of type
/// uint16 `first_max_level` and `last_max_level`: the lowest and the highest `max_level` for which it is a run.
pub fn sample_batch(sizes: &RunSizes) -> Result<RecordBatch> {
    let mut rows: Vec<_> = sizes.sample().collect();
    rows.sort_unstable_by_key(|(hash, _)| *hash);
    let uint16 = |value: fn(&SampledRun) -> u16| -> ArrayRef {
        Arc::new(UInt16Array::from_iter_values(rows.iter().map(|(_, sampled)| value(sampled))))
    };
    batch(vec![
        ("hash", to_int64(rows.iter().map(|(hash, _)| *hash))),
        ("length", to_uint32(rows.iter().map(|(_, sampled)| sampled.length))),
        ("first_max_level", uint16(|sampled| sampled.first_max_level)),
        ("last_max_level", uint16(|sampled| sampled.last_max_level)),
    ])
}

/// Adds the runs in a record batch of [`sample_batch`].
///
/// # Errors
///
/// Returns [`Error::Data`] if a column is missing, of another type, has nulls, or negative counts.
pub fn add_sample(sizes: &mut RunSizes, table: &RecordBatch) -> Result<()> {
    let hashes = values::<Int64Type>(table, "hash")?;
    let lengths = values::<UInt32Type>(table, "length")?;
    let first = values::<UInt16Type>(table, "first_max_level")?;
    let last = values::<UInt16Type>(table, "last_max_level")?;
    for row in 0..table.num_rows() {
        let run = SampledRun {
            length: lengths[row],
            first_max_level: first[row],
            last_max_level: last[row],
        };
        sizes.add(hashes[row] as u64, run);
    }
    Ok(())
}

/// The record batch of the counts of symbols, ordered by symbol: `character: string,
/// marked: bool, count, first_rank, first_offset: int64`.
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

/// The record batch of the uses of tokens, a row for each: `uses: int64, is_harmful: bool`.
pub fn use_batch(sums: &Uses) -> Result<RecordBatch> {
    batch(vec![
        ("uses", to_int64(sums.uses.iter().copied())),
        ("is_harmful", Arc::new(BooleanArray::from(sums.is_harmful.clone()))),
    ])
}

/// The record batch of what tokens are worth, a row for each: `uses, losses: int64, is_needed,
/// is_missed: bool`.
pub fn loss_batch(sums: &Losses) -> Result<RecordBatch> {
    batch(vec![
        ("uses", to_int64(sums.uses.iter().copied())),
        ("losses", Arc::new(Int64Array::from(sums.losses.clone()))),
        ("is_needed", Arc::new(BooleanArray::from(sums.is_needed.clone()))),
        ("is_missed", Arc::new(BooleanArray::from(sums.is_missed.clone()))),
    ])
}

/// The record batch of the counts of tokens, ordered by token: `token: uint32, count: int64`.
pub fn unigram_batch(counts: &HashMap<u32, u64>) -> Result<RecordBatch> {
    let mut rows: Vec<_> = counts.iter().map(|(&token, &count)| (token, count)).collect();
    rows.sort_unstable();
    batch(vec![
        ("token", to_uint32(rows.iter().map(|row| row.0))),
        ("count", to_int64(rows.iter().map(|row| row.1))),
    ])
}

/// Reads the record batch of [`unigram_batch`]: tokens and their counts.
///
/// # Errors
///
/// Returns [`Error::Data`] if a column is missing, of another type, has nulls, or negative counts.
pub fn read_unigrams(table: &RecordBatch) -> Result<Vec<(u32, u64)>> {
    let tokens = values::<UInt32Type>(table, "token")?;
    Ok(tokens.iter().copied().zip(counts(table, "count")?).collect())
}

/// Reads the record batch of [`unigram_batch`] into a vector of the count of each token. `tokens`: how
/// many tokens there are.
///
/// # Errors
///
/// The same as for [`read_unigrams`]; also for a token that is none of them.
pub fn unigrams_by_token(table: &RecordBatch, tokens: usize) -> Result<Vec<u64>> {
    let mut by_token = memory::filled(0, tokens);
    for (token, count) in read_unigrams(table)? {
        *by_token.get_mut(token as usize).ok_or_else(|| no_token(token, tokens))? = count;
    }
    Ok(by_token)
}

/// The record batch of the counts of pairs, in the order given: `left, right: uint32, count, merges,
/// first_rank, first_offset: int64`.
pub fn pair_batch(rows: &[((u32, u32), PairCount)]) -> Result<RecordBatch> {
    batch(pair_columns(rows))
}

/// The record batch of candidates: the columns of [`pair_batch`], and `level: uint16`.
pub fn candidate_batch(rows: &[Candidate]) -> Result<RecordBatch> {
    let pairs = memory::collected(rows.iter().map(|(pair, count, _)| (*pair, *count)));
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

/// Adds the record batch of [`pair_batch`] to counts of pairs.
///
/// # Errors
///
/// Returns [`Error::Data`] if a column is missing, of another type, has nulls, or negative counts, and
/// [`Error::Overflow`] if a count exceeds 2^63 - 1.
pub fn add_pairs(sums: &mut PairCounts, pairs: &RecordBatch) -> Result<()> {
    let (count, merges) = (counts(pairs, "count")?, counts(pairs, "merges")?);
    let firsts = places(pairs, ["first_rank", "first_offset"], |_| 0)?;
    for (row, pair) in read_pairs(pairs)?.into_iter().enumerate() {
        let more = PairCount { count: count[row], merges: merges[row], first: firsts[row] };
        add_pair(sums, pair, more)?;
    }
    Ok(())
}

/// Reads the record batch of [`candidate_batch`].
///
/// # Errors
///
/// The same as for [`add_pairs`]; also if a pair is there twice.
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

/// The record batch of limits, ordered by token: `token: uint32, count, rare: int64`, and the columns
/// `score_0`, `score_1`, ... of doubles, one for each entry of [`Limit::scores`].
pub fn limit_batch(limits: &HashMap<u32, Limit>) -> Result<RecordBatch> {
    let mut rows: Vec<_> = limits.iter().collect();
    rows.sort_unstable_by_key(|(token, _)| **token);
    let mut columns = vec![
        ("token".to_string(), to_uint32(rows.iter().map(|(token, _)| **token))),
        ("count".to_string(), to_int64(rows.iter().map(|(_, limit)| limit.count))),
        ("rare".to_string(), to_int64(rows.iter().map(|(_, limit)| limit.rare))),
    ];
    for index in 0..Limit::NONE.scores.len() {
        let scores = rows.iter().map(|(_, limit)| limit.scores[index]);
        let scores: ArrayRef = Arc::new(Float64Array::from_iter_values(scores));
        columns.push((format!("score_{index}"), scores));
    }
    batch(columns.iter().map(|(name, column)| (name.as_str(), column.clone())).collect())
}

/// Reads the record batch of [`limit_batch`]: tokens, and the limits of their pairs.
///
/// # Errors
///
/// Returns [`Error::Data`] if a column is missing, of another type, has nulls, or negative counts.
pub fn read_limits(table: &RecordBatch) -> Result<Vec<(u32, Limit)>> {
    let tokens = values::<UInt32Type>(table, "token")?;
    let limits = counts(table, "count")?.into_iter().zip(counts(table, "rare")?);
    let limits = limits.map(|(count, rare)| Limit { count, rare, ..Limit::NONE });
    let mut rows: Vec<_> = tokens.iter().copied().zip(limits).collect();
    for index in 0..Limit::NONE.scores.len() {
        let scores = values::<Float64Type>(table, &format!("score_{index}"))?;
        for (row, &score) in rows.iter_mut().zip(scores) {
            row.1.scores[index] = score;
        }
    }
    Ok(rows)
}

/// The levels of pairs, from the record batch of [`candidate_batch`].
///
/// # Errors
///
/// Returns [`Error::Data`] if a column is missing, of another type, has nulls, or negative counts.
pub fn read_pair_levels(table: &RecordBatch) -> Result<HashMap<(u32, u32), u16>> {
    let levels = values::<UInt16Type>(table, "level")?;
    Ok(read_pairs(table)?.into_iter().zip(levels.iter().copied()).collect())
}

/// The pairs in the columns `left` and `right`.
///
/// # Errors
///
/// Returns [`Error::Data`] if a column is missing, of another type, or has nulls.
pub fn read_pairs(table: &RecordBatch) -> Result<Vec<(u32, u32)>> {
    let left = values::<UInt32Type>(table, "left")?;
    let right = values::<UInt32Type>(table, "right")?;
    Ok(left.iter().copied().zip(right.iter().copied()).collect())
}

/// Reads the record batch of [`merge_batch`].
///
/// # Errors
///
/// Returns [`Error::Data`] if a column is missing, of another type, has nulls, or negative counts.
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

/// Reads places from the columns of these names. `reach`: for each row, how many symbols must come
/// behind the place without the offset exceeding 32 bits.
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

/// The record batch of a log of merges: the columns are the fields of [`Merge`].
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
    use arrow_array::StringArray;

    use super::super::checks::check_columns;
    use super::super::string_lists;
    use super::*;
    use crate::oracle::Random;

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

            let unigrams: HashMap<u32, u64> =
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
        let limits: HashMap<u32, Limit> = [(3, limit), (1, Limit::NONE)].into_iter().collect();
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
        sizes.add(u64::MAX, SampledRun { length: 3, first_max_level: 1, last_max_level: 4 });
        sizes.add(5, SampledRun { length: 2, first_max_level: 0, last_max_level: 9 });
        let batch = sample_batch(&sizes).unwrap();
        let mut found = RunSizes::new(100, 9);
        add_sample(&mut found, &batch).unwrap();
        let sorted = |sizes: &RunSizes| {
            let mut rows: Vec<_> = sizes.sample().collect();
            rows.sort_unstable_by_key(|row| row.0);
            rows
        };
        assert_eq!(sorted(&found), sorted(&sizes));
        let names = ["hash", "length", "first_max_level", "last_max_level"];
        check_columns(&batch, &names, |b| add_sample(&mut RunSizes::new(100, 9), b));
    }

    #[test]
    fn symbols_and_words_are_written_in_order() {
        let mut symbols = SymbolCounts::default();
        let marks = crate::text::marks::WordMarks::Prefix("##".into());
        crate::train::splits::count_symbols("ba", 2, 7, &marks, &mut symbols).unwrap();
        let batch = symbol_batch(&symbols).unwrap();
        let names = ["character", "marked", "count", "first_rank", "first_offset"];
        assert_eq!(batch.schema().fields().iter().map(|f| f.name()).collect::<Vec<_>>(), names);
        assert_eq!(batch.column(0).as_string::<i32>(), &StringArray::from(vec!["a", "b"]));
        assert_eq!(counts(&batch, "first_offset"), Ok(vec![1, 0]));
        let lists =
            string_lists(&[Some(vec!["a".into(), "b".into()]), None, Some(vec![])]).unwrap();
        assert_eq!(lists.as_list::<i32>().value_offsets(), [0, 2, 2, 2]);
        assert_eq!((lists.len(), lists.null_count()), (3, 1));
    }
}
