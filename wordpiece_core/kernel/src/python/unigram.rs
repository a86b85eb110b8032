//! Training of a unigram language model, for Python.

use std::sync::Arc;

use arrow_array::RecordBatch;
use foldhash::HashMap;
use pyo3::prelude::*;

use super::{PyArrowArray, import_batch, import_batches, run, unknown};
use crate::arrow;
use crate::base::error::Result;
use crate::base::memory;
use crate::base::sums::add;
use crate::train::splits::WordLimits;
use crate::unigram::corpus::Corpus;
use crate::unigram::lattice::{Calculator, Lattices};
use crate::unigram::model::UnigramModel;
use crate::unigram::runs::{RunCounts, RunCutter};
use crate::unigram::seeds::{self, BestSeeds, SeedPiece};
use crate::unigram::steps;
use crate::unigram::sums::{Summand, Sums};

/// Cuts words into runs, which no piece crosses.
#[pyclass(name = "RunCutter", frozen)]
pub(super) struct PyRunCutter(Arc<Cutter>);

struct Cutter {
    cutter: RunCutter,
    limits: WordLimits,
}

impl Cutter {
    /// Calls `each` with every run of the words of a table, its number of characters and its count.
    fn each_run(
        &self,
        words: &RecordBatch,
        mut each: impl FnMut(&str, usize, u64) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = String::new();
        let mut done = Ok(());
        for (word, count) in arrow::count::WordTableBatch::new(words)?.rows()? {
            if self.limits.admit(word, count) {
                self.cutter.each_run(word, &mut buffer, |run, characters| {
                    if done.is_ok() {
                        done = each(run, characters, count);
                    }
                });
            }
        }
        done
    }
}

#[pymethods]
impl PyRunCutter {
    #[new]
    #[pyo3(signature = (alphabet, *, min_word_count, max_run_length))]
    fn new(alphabet: Option<&str>, min_word_count: u64, max_run_length: usize) -> Self {
        let limits = WordLimits { min_count: min_word_count, max_length: usize::MAX };
        PyRunCutter(Arc::new(Cutter { cutter: RunCutter::new(alphabet, max_run_length), limits }))
    }

    /// The characters of the runs of words, with their counts: `word: string, count: int64`, ordered
    /// by character; and how many characters the runs have, those of each word once.
    fn characters(
        &self,
        py: Python<'_>,
        words: &Bound<'_, PyAny>,
    ) -> PyResult<(PyArrowArray, u64)> {
        let words = import_batch(words)?;
        run(py, || {
            let (mut counts, mut all) = (HashMap::default(), 0);
            self.0.each_run(&words, |run, characters, count| {
                all += characters as u64;
                for c in run.chars() {
                    let sum = counts.entry(c).or_insert(0);
                    *sum = add(*sum, count)?;
                }
                Ok(())
            })?;
            Ok((character_batch(counts)?, all))
        })
    }

    /// The runs of words: `word: string, count: int64`, in any order.
    fn runs(&self, py: Python<'_>, words: &Bound<'_, PyAny>) -> PyResult<PyArrowArray> {
        let words = import_batch(words)?;
        run(py, || {
            let mut runs = RunCounts::default();
            self.0.each_run(&words, |run, _, count| {
                add_run(&mut runs, run, count);
                Ok(())
            })?;
            let rows = runs.iter().map(|(run, &count)| (&**run, count));
            Ok(arrow::count::word_table(rows)?.into())
        })
    }
}

fn add_run(runs: &mut RunCounts, run: &str, count: u64) {
    match runs.get_mut(run) {
        // The characters of all runs are fewer than 2^63: see `add_characters`.
        Some(sum) => *sum += count,
        None => {
            memory::reserve_entry(runs);
            runs.insert(run.into(), count);
        }
    }
}

fn character_batch(counts: HashMap<char, u64>) -> Result<PyArrowArray> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable();
    let rows: Vec<_> = counts.iter().map(|(c, count)| (c.to_string(), *count)).collect();
    Ok(arrow::count::word_table(rows.iter().map(|(c, count)| (&**c, *count)))?.into())
}

/// Adds up the counts of equal characters. All characters must be fewer than 2^63.
#[pyfunction]
pub(super) fn add_characters(
    py: Python<'_>,
    batches: Vec<Bound<'_, PyAny>>,
) -> PyResult<PyArrowArray> {
    let batches = import_batches(&batches)?;
    run(py, || {
        let (mut counts, mut all) = (HashMap::default(), 0);
        for batch in &batches {
            for (text, count) in arrow::count::WordTableBatch::new(batch)?.rows()? {
                all = add(all, count)?;
                for c in text.chars() {
                    *counts.entry(c).or_insert(0) += count;
                }
            }
        }
        character_batch(counts)
    })
}

/// Counts the suffixes of runs, by partition.
#[pyclass(name = "SuffixCounter")]
pub(super) struct PySuffixCounter {
    cutter: Arc<Cutter>,
    runs: RunCounts,
    text: usize,
    max_length: usize,
    partitions: usize,
}

#[pymethods]
impl PySuffixCounter {
    #[new]
    #[pyo3(signature = (cutter, *, max_length, partitions))]
    fn new(cutter: &Bound<'_, PyRunCutter>, max_length: usize, partitions: usize) -> Self {
        let cutter = cutter.get().0.clone();
        PySuffixCounter { cutter, runs: RunCounts::default(), text: 0, max_length, partitions }
    }

    /// The memory that the runs take, and that `take` takes beside it, in bytes, about.
    #[getter]
    fn memory(&self) -> usize {
        self.runs.capacity() * 64 + self.text * (64 + self.max_length)
    }

    /// Adds the runs of words.
    fn add(&mut self, py: Python<'_>, words: &Bound<'_, PyAny>) -> PyResult<()> {
        let words = import_batch(words)?;
        run(py, || {
            let (runs, text) = (&mut self.runs, &mut self.text);
            self.cutter.each_run(&words, |run, _, count| {
                *text += run.len();
                add_run(runs, run, count);
                Ok(())
            })
        })
    }

    /// Forgets the runs. For each partition with suffixes: its number, and a batch of
    /// `word: string, count: int64`.
    fn take(&mut self, py: Python<'_>) -> PyResult<Vec<(usize, PyArrowArray)>> {
        run(py, || {
            let runs = std::mem::take(&mut self.runs);
            self.text = 0;
            let parts = seeds::suffixes_of(&runs, self.max_length, self.partitions);
            let some = parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty());
            some.map(|(number, part)| {
                Ok((number, arrow::count::word_table(part.iter().copied())?.into()))
            })
            .collect()
        })
    }
}

fn seed_batch(seeds: Vec<SeedPiece>) -> Result<PyArrowArray> {
    let rows = seeds.iter().map(|seed| (&*seed.piece, seed.count));
    Ok(arrow::count::word_table(rows)?.into())
}

/// The best seeds among the suffixes of a partition, the best first: `word: string, count: int64`.
#[pyfunction]
pub(super) fn find_seeds(
    py: Python<'_>,
    suffixes: Vec<Bound<'_, PyAny>>,
    most: usize,
) -> PyResult<PyArrowArray> {
    let batches = import_batches(&suffixes)?;
    run(py, || {
        let tables: Result<Vec<_>> =
            batches.iter().map(arrow::count::WordTableBatch::new).collect();
        let tables = tables?;
        let mut rows = Vec::new();
        for table in &tables {
            rows.extend(table.rows()?);
        }
        let mut best = BestSeeds::new(most);
        seeds::find_seeds(rows, &mut best);
        seed_batch(best.finish())
    })
}

/// The best seeds among those of partitions, the best first.
#[pyfunction]
pub(super) fn best_seeds(
    py: Python<'_>,
    batches: Vec<Bound<'_, PyAny>>,
    most: usize,
) -> PyResult<PyArrowArray> {
    let batches = import_batches(&batches)?;
    run(py, || {
        let mut best = BestSeeds::new(most);
        for batch in &batches {
            for (piece, count) in arrow::count::WordTableBatch::new(batch)?.rows()? {
                let characters = piece.chars().count();
                best.push(SeedPiece { piece: piece.into(), count, characters });
            }
        }
        seed_batch(best.finish())
    })
}

/// A unigram language model in training.
#[pyclass(name = "UnigramModel", frozen)]
pub(super) struct PyUnigramModel(Arc<UnigramModel>);

#[pymethods]
impl PyUnigramModel {
    /// Of a batch `piece: string, score: double`, in the order of the pieces.
    #[new]
    fn new(py: Python<'_>, pieces: &Bound<'_, PyAny>) -> PyResult<Self> {
        let pieces = import_batch(pieces)?;
        run(py, || Ok(PyUnigramModel(Arc::new(arrow::unigram::read_model(&pieces)?))))
    }

    /// The model that training begins with. `characters`, `seeds`: `word: string, count: int64`.
    #[staticmethod]
    fn first(
        py: Python<'_>,
        characters: &Bound<'_, PyAny>,
        seeds: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let batches = [import_batch(characters)?, import_batch(seeds)?];
        run(py, || {
            let mut weighted = Vec::new();
            for batch in &batches {
                for (piece, count) in arrow::count::WordTableBatch::new(batch)?.rows()? {
                    let weight = count as u128 * piece.chars().count() as u128;
                    weighted.push((piece.into(), weight));
                }
            }
            Ok(PyUnigramModel(Arc::new(steps::first_model(weighted)?)))
        })
    }

    /// The batch that it can be made of again.
    fn pieces(&self, py: Python<'_>) -> PyResult<PyArrowArray> {
        run(py, || Ok(arrow::unigram::model_batch(&self.0)?.into()))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The model after the M step. `sums`: those of "expected".
    fn maximized(&self, py: Python<'_>, sums: &Bound<'_, PyAny>) -> PyResult<Self> {
        let sums = import_batch(sums)?;
        run(py, || {
            let model = self.0.maximized(&arrow::unigram::PieceSums::read(&sums)?)?;
            Ok(PyUnigramModel(Arc::new(model)))
        })
    }

    /// The model without the pieces that are missed least. `sums`: those of "best".
    fn pruned(
        &self,
        py: Python<'_>,
        sums: &Bound<'_, PyAny>,
        size: usize,
        threads: usize,
    ) -> PyResult<Self> {
        let sums = import_batch(sums)?;
        run(py, || {
            let sums = arrow::unigram::PieceSums::read(&sums)?;
            Ok(PyUnigramModel(Arc::new(self.0.pruned(&sums, size, threads)?)))
        })
    }
}

/// Sums over runs: see `_kernel.pyi`.
#[pyclass(name = "RunSums")]
pub(super) struct PyRunSums {
    cutter: Arc<Cutter>,
    model: Arc<UnigramModel>,
    what: Summand,
    sums: Sums,
}

#[pymethods]
impl PyRunSums {
    #[new]
    fn new(
        cutter: &Bound<'_, PyRunCutter>,
        model: &Bound<'_, PyUnigramModel>,
        what: &str,
    ) -> PyResult<Self> {
        let (cutter, model) = (cutter.get().0.clone(), model.get().0.clone());
        let what = summand(what)?;
        let sums = Sums::new(model.len());
        Ok(PyRunSums { cutter, model, what, sums })
    }

    /// Adds the runs of words.
    fn add(&mut self, py: Python<'_>, words: &Bound<'_, PyAny>) -> PyResult<()> {
        let words = import_batch(words)?;
        run(py, || {
            let (mut lattices, mut calculator) = (Lattices::default(), Calculator::default());
            let (finder, sums, what) = (self.model.finder()?, &mut self.sums, self.what);
            self.cutter.each_run(&words, |run, characters, count| {
                lattices.clear();
                lattices.push(run, finder);
                let lattice = lattices.lattice(0..characters);
                sums.add_run(what, &lattice, count, &self.model, &mut calculator)
            })
        })
    }

    /// The sums by piece, `high, low: int64`, and the logarithm of the likelihood.
    fn sums(&self, py: Python<'_>) -> PyResult<(PyArrowArray, i128)> {
        run(py, || given(&self.sums))
    }
}

fn summand(what: &str) -> PyResult<Summand> {
    match what {
        "expected" => Ok(Summand::Expected),
        "best" => Ok(Summand::Best),
        other => Err(unknown("what", other, "expected or best")),
    }
}

fn given(sums: &Sums) -> Result<(PyArrowArray, i128)> {
    Ok((
        arrow::unigram::PieceSums::batch(sums.by_piece.iter().copied())?.into(),
        sums.log_likelihood,
    ))
}

/// Adds up sums by piece.
#[pyfunction]
pub(super) fn add_run_sums(
    py: Python<'_>,
    batches: Vec<Bound<'_, PyAny>>,
) -> PyResult<PyArrowArray> {
    let batches = import_batches(&batches)?;
    run(py, || {
        let sums = arrow::unigram::add_sums(&batches)?;
        Ok(arrow::unigram::PieceSums::batch(sums.into_iter())?.into())
    })
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

    /// Adds runs: `word: string, count: int64`.
    fn add(&mut self, py: Python<'_>, runs: &Bound<'_, PyAny>) -> PyResult<()> {
        let runs = import_batch(runs)?;
        run(py, || {
            for (run, count) in arrow::count::WordTableBatch::new(&runs)?.rows()? {
                self.corpus.add(run, count);
            }
            Ok(())
        })
    }

    /// The best seeds, the best first: `word: string, count: int64`.
    fn seeds(&mut self, py: Python<'_>, max_length: usize, most: usize) -> PyResult<PyArrowArray> {
        let threads = self.threads;
        run(py, || seed_batch(self.corpus.seeds(max_length, most, threads)))
    }

    /// See `RunSums.sums`.
    fn sums(
        &mut self,
        py: Python<'_>,
        model: &Bound<'_, PyUnigramModel>,
        what: &str,
    ) -> PyResult<(PyArrowArray, i128)> {
        let (model, what) = (model.get().0.clone(), summand(what)?);
        let (most_bytes, threads) = (self.most_bytes, self.threads);
        run(py, || given(&self.corpus.sums(&model, what, most_bytes, threads)?))
    }
}
