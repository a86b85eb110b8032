//! Training of a unigram language model, for Python.

use std::sync::Arc;

use pyo3::prelude::*;

use super::exchange::{GivenBatch, GivenBatches, PyArrowArray};
use super::{PyResult, choice, run, table};
use crate::arrow::count::{WordTableBatch, word_table};
use crate::arrow::unigram::{self as tables, PieceSums, TableSplitter};
use wordpiece_core::Result;
use wordpiece_core::internals::{Calculator, Lattices, RunCounts, add_run, seeds};
use wordpiece_core::train::WordLimits;
use wordpiece_core::unigram::{Corpus, RunSplitter, Summand, Sums, UnigramModel};

/// Splits words into runs, which no piece crosses.
#[pyclass(name = "RunSplitter", frozen)]
pub(super) struct PyRunSplitter(Arc<TableSplitter>);

#[pymethods]
impl PyRunSplitter {
    #[new]
    #[pyo3(signature = (alphabet, *, min_word_count, max_run_length))]
    fn new(
        py: Python<'_>,
        alphabet: Option<&str>,
        min_word_count: u64,
        max_run_length: usize,
    ) -> PyResult<Self> {
        let limits = WordLimits { min_count: min_word_count, max_length: usize::MAX };
        let splitter = run(py, || Ok(RunSplitter::new(alphabet, max_run_length)))?;
        Ok(PyRunSplitter(Arc::new(TableSplitter { splitter, limits })))
    }

    fn characters(&self, py: Python<'_>, words: GivenBatch) -> PyResult<(PyArrowArray, u64)> {
        let (characters, all) = run(py, || self.0.characters(&words.0))?;
        Ok((characters.into(), all))
    }

    fn runs(&self, py: Python<'_>, words: GivenBatch) -> PyResult<PyArrowArray> {
        table(py, || self.0.runs(&words.0))
    }
}

#[pyfunction]
pub(super) fn add_characters(py: Python<'_>, batches: GivenBatches) -> PyResult<PyArrowArray> {
    table(py, || tables::add_characters(&batches.0))
}

/// Counts the suffixes of runs, by partition.
#[pyclass(name = "SuffixCounter")]
pub(super) struct PySuffixCounter {
    splitter: Arc<TableSplitter>,
    runs: RunCounts,
    text: usize,
    max_length: usize,
    partitions: usize,
}

#[pymethods]
impl PySuffixCounter {
    #[new]
    #[pyo3(signature = (splitter, *, max_length, partitions))]
    fn new(splitter: &Bound<'_, PyRunSplitter>, max_length: usize, partitions: usize) -> Self {
        let splitter = splitter.get().0.clone();
        PySuffixCounter { splitter, runs: RunCounts::default(), text: 0, max_length, partitions }
    }

    /// The approximate memory of the runs and of `take`, in bytes.
    #[getter]
    fn memory(&self) -> usize {
        self.runs.capacity() * 64 + self.text * (64 + self.max_length)
    }

    fn add(&mut self, py: Python<'_>, words: GivenBatch) -> PyResult<()> {
        run(py, || {
            self.splitter.each_run(&words.0, |run, _, count| {
                self.text += run.len();
                add_run(&mut self.runs, run, count)
            })
        })
    }

    fn take(&mut self, py: Python<'_>) -> PyResult<Vec<(usize, PyArrowArray)>> {
        run(py, || {
            let runs = std::mem::take(&mut self.runs);
            self.text = 0;
            let parts = seeds::suffixes_of(&runs, self.max_length, self.partitions)?;
            let some = parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty());
            some.map(|(number, part)| Ok((number, word_table(part.iter().copied())?.into())))
                .collect()
        })
    }
}

#[pyfunction]
pub(super) fn find_seeds(
    py: Python<'_>,
    suffixes: GivenBatches,
    most: usize,
) -> PyResult<PyArrowArray> {
    table(py, || tables::seeds_in(&suffixes.0, most))
}

#[pyfunction]
pub(super) fn best_seeds(
    py: Python<'_>,
    batches: GivenBatches,
    most: usize,
) -> PyResult<PyArrowArray> {
    table(py, || tables::best_seeds(&batches.0, most))
}

/// A unigram language model in training.
#[pyclass(name = "UnigramModel", frozen)]
pub(super) struct PyUnigramModel(Arc<UnigramModel>);

impl PyUnigramModel {
    fn made(py: Python<'_>, make: impl FnOnce() -> Result<UnigramModel> + Send) -> PyResult<Self> {
        Ok(PyUnigramModel(Arc::new(run(py, make)?)))
    }
}

#[pymethods]
impl PyUnigramModel {
    #[new]
    fn new(py: Python<'_>, pieces: GivenBatch) -> PyResult<Self> {
        PyUnigramModel::made(py, || tables::read_model(&pieces.0))
    }

    #[staticmethod]
    fn first(py: Python<'_>, characters: GivenBatch, seeds: GivenBatch) -> PyResult<Self> {
        PyUnigramModel::made(py, || tables::first_model(&[characters.0, seeds.0]))
    }

    fn pieces(&self, py: Python<'_>) -> PyResult<PyArrowArray> {
        table(py, || tables::model_batch(&self.0))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn maximized(&self, py: Python<'_>, sums: GivenBatch) -> PyResult<Self> {
        PyUnigramModel::made(py, || self.0.maximized(&PieceSums::read(&sums.0)?))
    }

    fn pruned(
        &self,
        py: Python<'_>,
        sums: GivenBatch,
        size: usize,
        threads: usize,
    ) -> PyResult<Self> {
        PyUnigramModel::made(py, || self.0.pruned(&PieceSums::read(&sums.0)?, size, threads))
    }
}

/// Sums over runs.
#[pyclass(name = "RunSums")]
pub(super) struct PyRunSums {
    splitter: Arc<TableSplitter>,
    model: Arc<UnigramModel>,
    what: Summand,
    sums: Sums,
}

#[pymethods]
impl PyRunSums {
    #[new]
    fn new(
        splitter: &Bound<'_, PyRunSplitter>,
        model: &Bound<'_, PyUnigramModel>,
        what: &str,
    ) -> PyResult<Self> {
        let (splitter, model) = (splitter.get().0.clone(), model.get().0.clone());
        let sums = Sums::new(model.len());
        Ok(PyRunSums { splitter, model, what: summand(what)?, sums })
    }

    fn add(&mut self, py: Python<'_>, words: GivenBatch) -> PyResult<()> {
        run(py, || {
            let (mut lattices, mut calculator) = (Lattices::default(), Calculator::default());
            let (finder, sums, what) = (self.model.finder()?, &mut self.sums, self.what);
            self.splitter.each_run(&words.0, |run, characters, count| {
                lattices.clear();
                lattices.push(run, finder);
                let lattice = lattices.lattice(0..characters);
                sums.add_run(what, &lattice, count, &self.model, &mut calculator)
            })
        })
    }

    fn sums(&self, py: Python<'_>) -> PyResult<(PyArrowArray, i128)> {
        run(py, || given(&self.sums))
    }
}

fn summand(what: &str) -> PyResult<Summand> {
    choice("what", what, &[("expected", Summand::Expected), ("best", Summand::Best)])
}

fn given(sums: &Sums) -> Result<(PyArrowArray, i128)> {
    Ok((PieceSums::batch(sums.by_piece.iter())?.into(), sums.log_likelihood))
}

#[pyfunction]
pub(super) fn add_run_sums(py: Python<'_>, batches: GivenBatches) -> PyResult<PyArrowArray> {
    table(py, || PieceSums::batch(tables::add_sums(&batches.0)?.iter()))
}

/// The runs of all words in memory.
#[pyclass(name = "RunCorpus")]
pub(super) struct PyRunCorpus {
    corpus: Corpus,
    most_bytes: usize,
    threads: usize,
}

#[pymethods]
impl PyRunCorpus {
    #[new]
    #[pyo3(signature = (*, most_bytes, threads))]
    fn new(most_bytes: usize, threads: usize) -> Self {
        PyRunCorpus { corpus: Corpus::default(), most_bytes, threads }
    }

    fn add(&mut self, py: Python<'_>, runs: GivenBatch) -> PyResult<()> {
        run(py, || {
            let runs = WordTableBatch::new(&runs.0)?;
            runs.rows()?.into_iter().try_for_each(|(run, count)| self.corpus.add(run, count))
        })
    }

    fn seeds(&mut self, py: Python<'_>, max_length: usize, most: usize) -> PyResult<PyArrowArray> {
        table(py, || tables::seed_batch(&self.corpus.seeds(max_length, most, self.threads)?))
    }

    fn sums(
        &mut self,
        py: Python<'_>,
        model: &Bound<'_, PyUnigramModel>,
        what: &str,
    ) -> PyResult<(PyArrowArray, i128)> {
        let (model, what) = (model.get().0.clone(), summand(what)?);
        run(py, || given(&self.corpus.sums(&model, what, self.most_bytes, self.threads)?))
    }
}
