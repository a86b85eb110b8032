//! Counting words, for Python.

use pyo3::prelude::*;

use super::encode::AddedTokenMapping;
use super::exchange::{GivenArray, GivenBatch, GivenBatches, PyArrowArray};
use super::text::GivenText;
use super::{PyResult, run, table};
use crate::arrow::count::{self, TextCounter, WordTableBatch};
use wordpiece_core::count::WordCounter;
use wordpiece_core::text::{BertRules, TextRules};

/// Counts the words of texts, separately for each group. It is full when its memory exceeds
/// `most_bytes`.
#[pyclass(name = "WordCounter")]
pub(super) struct PyWordCounter(TextCounter);

impl PyWordCounter {
    fn of(words: WordCounter) -> Self {
        PyWordCounter(TextCounter::new(words))
    }
}

#[pymethods]
impl PyWordCounter {
    #[new]
    #[pyo3(signature = (text, *, most_bytes=usize::MAX, split_at=Vec::new()))]
    fn new(text: GivenText, most_bytes: usize, split_at: Vec<AddedTokenMapping>) -> PyResult<Self> {
        let tokens = split_at.into_iter().map(|token| token.with_id(0)).collect();
        Ok(PyWordCounter::of(WordCounter::new(text.0, most_bytes).split_at(tokens)?))
    }

    #[staticmethod]
    #[pyo3(signature = (*, most_bytes=usize::MAX))]
    fn of_chunks(most_bytes: usize) -> Self {
        PyWordCounter::of(WordCounter::new(TextRules::Bert(BertRules::chunks()), most_bytes))
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.0.rows
    }

    #[getter]
    fn nulls(&self) -> u64 {
        self.0.nulls
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes
    }

    #[getter]
    fn replaced(&self) -> u64 {
        self.0.replaced
    }

    #[getter]
    fn memory(&self) -> usize {
        self.0.words.memory()
    }

    #[getter]
    fn is_full(&self) -> bool {
        self.0.words.is_full()
    }

    #[pyo3(signature = (texts, groups=None))]
    fn count(
        &mut self,
        py: Python<'_>,
        texts: GivenArray,
        groups: Option<GivenArray>,
    ) -> PyResult<usize> {
        run(py, || self.0.count(&texts.0, groups.as_ref().map(|groups| &groups.0)))
    }

    fn add(&mut self, py: Python<'_>, words: GivenBatch) -> PyResult<()> {
        run(py, || {
            let words = WordTableBatch::new(&words.0)?;
            words.rows()?.into_iter().for_each(|(word, count)| self.0.words.add(word, count));
            Ok(())
        })
    }

    fn take(&mut self, py: Python<'_>, partitions: usize) -> PyResult<Vec<PartitionTuple>> {
        run(py, || {
            let lists = self.0.words.take(partitions.max(1))?.into_iter();
            lists
                .map(|list| {
                    let batch = count::word_table(list.words.iter())?;
                    let group = list.group.map(String::from);
                    Ok((list.partition, group, list.words.total()?, batch.into()))
                })
                .collect()
        })
    }
}

/// A partition, a group, the sum of the counts, and the words with their counts.
type PartitionTuple = (usize, Option<String>, u64, PyArrowArray);

#[pyfunction]
pub(super) fn join_word_tables(py: Python<'_>, batches: GivenBatches) -> PyResult<PyArrowArray> {
    table(py, || count::joined(&batches.0))
}

#[pyfunction]
pub(super) fn merge_sorted_words(py: Python<'_>, batches: GivenBatches) -> PyResult<PyArrowArray> {
    table(py, || count::merged(&batches.0))
}

#[pyfunction]
#[pyo3(signature = (batches, weights, *, min_count))]
pub(super) fn weigh_sorted_words(
    py: Python<'_>,
    batches: GivenBatches,
    weights: Vec<u128>,
    min_count: u64,
) -> PyResult<PyArrowArray> {
    table(py, || count::weighed(&batches.0, &weights, min_count))
}

#[pyfunction]
pub(super) fn draw_words(py: Python<'_>, words: GivenBatch, every: u64) -> PyResult<PyArrowArray> {
    table(py, || count::drawn(&words.0, every))
}

#[pyfunction]
pub(super) fn partition_words(
    py: Python<'_>,
    words: GivenBatch,
    partitions: usize,
) -> PyResult<Vec<(usize, PyArrowArray)>> {
    let parts = run(py, || count::partitioned(&words.0, partitions))?;
    Ok(parts.into_iter().map(|(number, words)| (number, words.into())).collect())
}
