//! Counting words, for Python.

use std::borrow::Cow;
use std::collections::BTreeMap;

use arrow_array::{Array, RecordBatch};
use pyo3::prelude::*;

use super::text::text_rules;
use super::{PyArrowArray, import, import_batch, import_batches, import_copy, run};
use crate::arrow::{self, TextRow};
use crate::base::error::{Error, Result};
use crate::count::counter::WordCounter;
use crate::count::word_lists;
use crate::text::pre_tokenize::PreTokenizer;
use crate::text::rules::TextRules;
use crate::text::utf8;

/// Counts the words of texts, separately for each group. It is full when its memory exceeds
/// `most_bytes`.
#[pyclass(name = "WordCounter")]
pub(super) struct PyWordCounter {
    counter: WordCounter,
    /// The number of texts counted, nulls included.
    #[pyo3(get)]
    rows: u64,
    /// The number of texts that were null.
    #[pyo3(get)]
    nulls: u64,
    /// The number of bytes of all texts.
    #[pyo3(get)]
    bytes: u64,
    /// The number of invalid UTF-8 sequences.
    #[pyo3(get)]
    replaced: u64,
}

#[pymethods]
impl PyWordCounter {
    #[new]
    #[pyo3(signature = (*, clean_text, handle_chinese_chars, strip_accents, lowercase,
        pre_tokenizer, most_bytes=usize::MAX))]
    fn new(
        clean_text: bool,
        handle_chinese_chars: bool,
        strip_accents: bool,
        lowercase: bool,
        pre_tokenizer: &str,
        most_bytes: usize,
    ) -> PyResult<Self> {
        let text =
            text_rules(clean_text, handle_chinese_chars, strip_accents, lowercase, pre_tokenizer)?;
        let counter = WordCounter::new(text, most_bytes);
        Ok(PyWordCounter { counter, rows: 0, nulls: 0, bytes: 0, replaced: 0 })
    }

    /// Makes a counter of chunks: of what is between white space, unchanged.
    #[staticmethod]
    #[pyo3(signature = (*, most_bytes=usize::MAX))]
    fn of_chunks(most_bytes: usize) -> Self {
        let counter = WordCounter::new(TextRules::Bert(PreTokenizer::chunks()), most_bytes);
        PyWordCounter { counter, rows: 0, nulls: 0, bytes: 0, replaced: 0 }
    }

    /// The memory that counting on and `take` may need, in bytes.
    #[getter]
    fn memory(&self) -> usize {
        self.counter.memory()
    }

    /// Whether the memory exceeds the limit.
    #[getter]
    fn is_full(&self) -> bool {
        self.counter.is_full()
    }

    /// Counts texts from the first on until the counter is full; returns how many, one at least if there
    /// is one. `groups`: for each text, the name of its group.
    #[pyo3(signature = (texts, groups=None))]
    fn count(
        &mut self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        groups: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<usize> {
        let texts = import(texts)?;
        let groups = groups.map(import_copy).transpose()?;
        run(py, move || {
            if let Some(groups) = groups.as_ref().filter(|groups| groups.len() != texts.len()) {
                let message = format!("{} texts, but {} groups", texts.len(), groups.len());
                return Err(Error::data(message));
            }
            let mut names = Vec::new();
            if let Some(groups) = &groups {
                arrow::each_row(groups, |name| names.push(name.map(|name| utf8::repair(name).0)))?;
            }
            let mut row = 0;
            arrow::each_text(&texts, |text| {
                if self.counter.is_full() {
                    return false;
                }
                self.count_row(names.get(row).and_then(Option::as_deref), text);
                row += 1;
                true
            })?;
            Ok(row)
        })
    }

    /// Adds the words of a table with their counts, as they are.
    fn add(&mut self, py: Python<'_>, words: &Bound<'_, PyAny>) -> PyResult<()> {
        let words = import_batch(words)?;
        run(py, || {
            let words = arrow::count::WordTableBatch::new(&words)?;
            words.rows()?.into_iter().for_each(|(word, count)| self.counter.add(word, count));
            Ok(())
        })
    }

    /// Empties the counter. For each partition and group with words: the number of the partition, the
    /// name of the group, the sum of the counts, and the words with their counts, ordered by word.
    fn take(&mut self, py: Python<'_>, partitions: usize) -> PyResult<Vec<PartitionTuple>> {
        run(py, || {
            let lists = self.counter.take(partitions.max(1))?.into_iter();
            lists
                .map(|list| {
                    let batch = arrow::count::word_table(list.words.iter())?;
                    let group = list.group.map(String::from);
                    Ok((list.partition, group, list.words.total()?, batch.into()))
                })
                .collect()
        })
    }
}

/// A partition, a group, the sum of the counts, and the words with their counts.
type PartitionTuple = (usize, Option<String>, u64, PyArrowArray);

impl PyWordCounter {
    fn count_row(&mut self, group: Option<&str>, row: Option<TextRow<'_>>) {
        self.rows += 1;
        let Some(TextRow { text, bytes, length, replaced }) = row else {
            self.nulls += 1;
            return;
        };
        self.bytes += length as u64;
        self.replaced += replaced;
        match text {
            Cow::Borrowed(text) => self.counter.count_in_place(group, text, bytes),
            Cow::Owned(text) => self.counter.count(group, &text),
        }
    }
}

fn word_tables(batches: &[RecordBatch]) -> Result<Vec<arrow::count::WordTableBatch>> {
    batches.iter().map(arrow::count::WordTableBatch::new).collect()
}

/// The rows of word tables that have no word in common, in the order of word tables, which each of
/// them has: by count, the largest first, then by word.
#[pyfunction]
pub(super) fn join_word_tables(
    py: Python<'_>,
    batches: Vec<Bound<'_, PyAny>>,
) -> PyResult<PyArrowArray> {
    let batches = import_batches(&batches)?;
    run(py, || {
        let tables = word_tables(&batches)?;
        let mut rows = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
        for table in &tables {
            rows.append(&mut table.rows()?);
        }
        // A stable sort finds what is in order already, and merges it.
        rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        Ok(arrow::count::word_table(rows.into_iter())?.into())
    })
}

/// Adds up the counts of equal words. Every batch must be ordered by word, and so is the result.
#[pyfunction]
pub(super) fn merge_sorted_words(
    py: Python<'_>,
    batches: Vec<Bound<'_, PyAny>>,
) -> PyResult<PyArrowArray> {
    let batches = import_batches(&batches)?;
    run(py, || {
        let tables = word_tables(&batches)?;
        let lists = tables.iter().map(|table| Ok(table.rows()?.into_iter()));
        let rows = word_lists::side_by_side(lists.collect::<Result<_>>()?);
        let sums = word_lists::sum(rows.map(|(word, count, _)| (word, count)))?;
        Ok(arrow::count::word_table(sums.into_iter())?.into())
    })
}

/// Adds up the counts of equal words, each count times the weight of its batch, which is in units of
/// 2^-32. A sum is rounded once, to the nearest whole number, halves up; for a word that occurs it is
/// 1 at least. Every batch must be ordered by word. The result is ordered by count, the largest first,
/// then by word, without words whose sum is below `min_count`.
#[pyfunction]
#[pyo3(signature = (batches, weights, *, min_count))]
pub(super) fn weigh_sorted_words(
    py: Python<'_>,
    batches: Vec<Bound<'_, PyAny>>,
    weights: Vec<u128>,
    min_count: u64,
) -> PyResult<PyArrowArray> {
    let batches = import_batches(&batches)?;
    if weights.len() != batches.len() {
        return Err(Error::option("give a weight for every batch").into());
    }
    run(py, || {
        let tables = word_tables(&batches)?;
        let lists = tables.iter().map(|table| Ok(table.rows()?.into_iter()));
        let rows = word_lists::side_by_side(lists.collect::<Result<_>>()?);
        let mut sums = word_lists::weighted_sum(rows, &weights)?;
        sums.retain(|&(_, count)| count >= min_count);
        word_lists::by_count(&mut sums);
        Ok(arrow::count::word_table(sums.into_iter())?.into())
    })
}

/// The rows whose words are in a sample of about one of `every` words. That depends on the word alone.
#[pyfunction]
pub(super) fn draw_words(
    py: Python<'_>,
    words: &Bound<'_, PyAny>,
    every: u64,
) -> PyResult<PyArrowArray> {
    let words = import_batch(words)?;
    run(py, || {
        let table = arrow::count::WordTableBatch::new(&words)?;
        let drawn = table.rows()?.into_iter().filter(|(word, _)| word_lists::is_drawn(word, every));
        Ok(arrow::count::word_table(drawn.collect::<Vec<_>>().into_iter())?.into())
    })
}

/// Divides words by partition, as `WordCounter::take` does, and keeps their order. Gives partitions
/// with their words.
#[pyfunction]
pub(super) fn partition_words(
    py: Python<'_>,
    words: &Bound<'_, PyAny>,
    partitions: usize,
) -> PyResult<Vec<(usize, PyArrowArray)>> {
    let words = import_batch(words)?;
    run(py, || {
        let table = arrow::count::WordTableBatch::new(&words)?;
        let mut parts: BTreeMap<usize, Vec<(&str, u64)>> = BTreeMap::new();
        for (word, count) in table.rows()? {
            let partition = word_lists::partition(word, partitions.max(1));
            parts.entry(partition).or_default().push((word, count));
        }
        let batches = parts.into_iter();
        batches
            .map(|(n, rows)| Ok((n, arrow::count::word_table(rows.into_iter())?.into())))
            .collect()
    })
}
