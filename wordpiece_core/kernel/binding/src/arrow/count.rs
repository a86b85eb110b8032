//! Word tables as record batches.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};

use super::{TextRow, batch, column, each_row, each_text, strings};
use wordpiece_core::count::WordCounter;
use wordpiece_core::internals::{utf8, word_lists};
use wordpiece_core::train::WordLimits;
use wordpiece_core::{Error, Result};

/// The column of words: strings.
const WORD: &str = "word";
/// The column of counts: int64.
const COUNT: &str = "count";

/// The record batch of a part of a word table. Counts must be below 2^63.
pub fn word_table<'a>(rows: impl Iterator<Item = (&'a str, u64)> + Clone) -> Result<RecordBatch> {
    let words = strings(rows.clone().map(|(word, _)| Some(word)))?;
    let mut counts = Vec::with_capacity(words.len());
    counts.extend(rows.map(|(_, count)| count as i64));
    batch(vec![(WORD, Arc::new(words)), (COUNT, Arc::new(Int64Array::from(counts)))])
}

/// A record batch with the columns of a word table.
pub struct WordTableBatch {
    words: ArrayRef,
    counts: Int64Array,
}

impl WordTableBatch {
    /// Takes the columns of a record batch.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if one of them is missing, or the counts are not of int64.
    pub fn new(table: &RecordBatch) -> Result<Self> {
        let words = column(table, WORD)?.clone();
        let counts = column(table, COUNT)?.as_primitive_opt::<Int64Type>();
        let wrong = || Error::data(format!("column {COUNT:?} is not Int64"));
        Ok(WordTableBatch { words, counts: counts.ok_or_else(wrong)?.clone() })
    }

    /// The words and their counts.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if a word is null or no UTF-8, or a count null or negative.
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

/// Calls `each` with the words of a table that take part: their ranks, from `first_rank` on, the words,
/// and their counts.
pub fn each_word(
    table: &RecordBatch,
    limits: WordLimits,
    first_rank: u64,
    mut each: impl FnMut(u64, &str, u64) -> Result<()>,
) -> Result<()> {
    for (rank, (word, count)) in (first_rank..).zip(WordTableBatch::new(table)?.rows()?) {
        if limits.admit(word, count) {
            each(rank, word, count)?;
        }
    }
    Ok(())
}

fn word_tables(batches: &[RecordBatch]) -> Result<Vec<WordTableBatch>> {
    batches.iter().map(WordTableBatch::new).collect()
}

/// Calls `with` with the rows of all tables, one table after the other.
pub fn with_rows<T>(
    batches: &[RecordBatch],
    with: impl FnOnce(Vec<(&str, u64)>) -> Result<T>,
) -> Result<T> {
    let tables = word_tables(batches)?;
    let mut rows = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
    for table in &tables {
        rows.append(&mut table.rows()?);
    }
    with(rows)
}

/// The rows of word tables that have no word in common, in the order of word tables, which each of
/// them has: by count, the largest first, then by word.
pub fn joined(batches: &[RecordBatch]) -> Result<RecordBatch> {
    with_rows(batches, |mut rows| {
        // A stable sort merges parts that are already sorted.
        rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        word_table(rows.into_iter())
    })
}

/// Adds up the counts of equal words. Every batch must be ordered by word, and so is the result.
pub fn merged(batches: &[RecordBatch]) -> Result<RecordBatch> {
    let tables = word_tables(batches)?;
    let lists = tables.iter().map(|table| Ok(table.rows()?.into_iter()));
    let rows = word_lists::side_by_side(lists.collect::<Result<_>>()?);
    word_table(word_lists::sum(rows.map(|(word, count, _)| (word, count)))?.into_iter())
}

/// Adds up the counts of equal words, each count times the weight of its batch, which is in units of
/// 2^-32. A sum is rounded once, to the nearest whole number, halves up; for a word that occurs it is
/// 1 at least. Every batch must be ordered by word. The result is ordered by count, the largest first,
/// then by word, without words whose sum is below `min_count`.
pub fn weighed(batches: &[RecordBatch], weights: &[u128], min_count: u64) -> Result<RecordBatch> {
    if weights.len() != batches.len() {
        return Err(Error::option("weights: expected one for each batch"));
    }
    let tables = word_tables(batches)?;
    let lists = tables.iter().map(|table| Ok(table.rows()?.into_iter()));
    let rows = word_lists::side_by_side(lists.collect::<Result<_>>()?);
    let mut sums = word_lists::weighted_sum(rows, weights)?;
    sums.retain(|&(_, count)| count >= min_count);
    word_lists::by_count(&mut sums);
    word_table(sums.into_iter())
}

/// The rows whose words are in a sample of about one of `every` words. That depends on the word alone.
pub fn drawn(table: &RecordBatch, every: u64) -> Result<RecordBatch> {
    let table = WordTableBatch::new(table)?;
    let mut rows = table.rows()?;
    rows.retain(|(word, _)| word_lists::is_drawn(word, every));
    word_table(rows.into_iter())
}

/// Partitions with their words, in the order of the table.
pub fn partitioned(table: &RecordBatch, partitions: usize) -> Result<Vec<(usize, RecordBatch)>> {
    let table = WordTableBatch::new(table)?;
    let mut parts: BTreeMap<usize, Vec<(&str, u64)>> = BTreeMap::new();
    for (word, count) in table.rows()? {
        let partition = word_lists::partition(word, partitions.max(1));
        parts.entry(partition).or_default().push((word, count));
    }
    parts.into_iter().map(|(n, rows)| Ok((n, word_table(rows.into_iter())?))).collect()
}

/// Counts the words of texts in arrays.
pub struct TextCounter {
    /// The words so far.
    pub words: WordCounter,
    /// The number of texts counted, nulls included.
    pub rows: u64,
    /// The number of texts that were null.
    pub nulls: u64,
    /// The number of bytes of all texts.
    pub bytes: u64,
    /// The number of invalid UTF-8 sequences.
    pub replaced: u64,
}

impl TextCounter {
    /// Makes a counter that has counted nothing.
    pub fn new(words: WordCounter) -> Self {
        TextCounter { words, rows: 0, nulls: 0, bytes: 0, replaced: 0 }
    }

    /// Counts texts from the first on until the counter is full; returns how many, one at least if there
    /// is one. `groups`: for each text, the name of its group.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if an array is of another type, or there are not as many groups as texts.
    pub fn count(&mut self, texts: &ArrayRef, groups: Option<&ArrayRef>) -> Result<usize> {
        let mut names = Vec::new();
        if let Some(groups) = groups {
            if groups.len() != texts.len() {
                let message = format!("{} texts, but {} groups", texts.len(), groups.len());
                return Err(Error::data(message));
            }
            each_row(groups, |name| names.push(name.map(|name| utf8::repair(name).0)))?;
        }
        let mut row = 0;
        each_text(texts, |text| {
            if self.words.is_full() {
                return false;
            }
            self.count_row(names.get(row).and_then(Option::as_deref), text);
            row += 1;
            true
        })?;
        Ok(row)
    }

    fn count_row(&mut self, group: Option<&str>, row: Option<TextRow<'_>>) {
        self.rows += 1;
        let Some(TextRow { text, bytes, length, replaced }) = row else {
            self.nulls += 1;
            return;
        };
        self.bytes += length as u64;
        self.replaced += replaced;
        match text {
            Cow::Borrowed(text) => self.words.count_in_place(group, text, bytes),
            Cow::Owned(text) => self.words.count(group, &text),
        }
    }
}
