//! Training, for Python.

use pyo3::prelude::*;

use super::encode::PyBpe;
use super::exchange::{GivenBatch, GivenBatches, PyArrowArray};
use super::{PyResult, choice, run, table};
use crate::arrow::count::each_word;
use crate::arrow::train as tables;
use wordpiece_core::internals::{
    LongestMatch, PairCount, PairCounter, PairLevels, RunSizes, Runs, SymbolCounts, count_symbols,
};
use wordpiece_core::text::WordMarks;
use wordpiece_core::train::{
    Criterion, RoundRuns, SplitScratch, Splits, Splitter, Status, Ties, Tokens, TrainOptions,
    Trainer, WordLimits,
};
use wordpiece_core::{Error, Result};

/// Return the word marks for a name. `gpt2`: bytes of words that include their spaces; None: the prefix of
/// WordPiece.
fn marks(name: Option<&str>, continuing_prefix: &str) -> PyResult<WordMarks> {
    let Some(name) = name else { return Ok(WordMarks::Prefix(continuing_prefix.to_owned())) };
    let [bytes, gpt2] = [true, false].map(|add_space| WordMarks::Bytes { add_space });
    let all = [("</w>", WordMarks::End), ("▁", WordMarks::Begin), ("bytes", bytes), ("gpt2", gpt2)];
    choice("word_marks", name, &all)
}

#[pyfunction]
#[pyo3(signature = (words, *, first_rank, min_word_count, max_word_length, word_marks=None))]
pub(super) fn symbol_counts(
    py: Python<'_>,
    words: GivenBatch,
    first_rank: u64,
    min_word_count: u64,
    max_word_length: usize,
    word_marks: Option<&str>,
) -> PyResult<PyArrowArray> {
    let marks = marks(word_marks, "")?;
    let limits = WordLimits { min_count: min_word_count, max_length: max_word_length };
    table(py, || {
        let mut symbols = SymbolCounts::default();
        each_word(&words.0, limits, first_rank, |rank, word, count| {
            count_symbols(word, count, rank, &marks, &mut symbols)
        })?;
        tables::symbol_batch(&symbols)
    })
}

/// Tokenizes the words of a table by greedy longest match of a vocabulary, and says what that uses.
#[pyclass(name = "LongestMatch", frozen)]
pub(super) struct PyLongestMatch {
    longest: LongestMatch,
    limits: WordLimits,
}

#[pymethods]
impl PyLongestMatch {
    #[new]
    #[pyo3(signature = (tokens, dropped=Vec::new(), *, continuing_prefix, min_word_count,
        max_word_length))]
    fn new(
        py: Python<'_>,
        tokens: Vec<String>,
        dropped: Vec<u32>,
        continuing_prefix: &str,
        min_word_count: u64,
        max_word_length: usize,
    ) -> PyResult<Self> {
        let longest = run(py, || LongestMatch::new(&tokens, continuing_prefix, &dropped))?;
        let limits = WordLimits { min_count: min_word_count, max_length: max_word_length };
        Ok(PyLongestMatch { longest, limits })
    }

    fn missing_symbols(
        &self,
        py: Python<'_>,
        words: GivenBatch,
        first_rank: u64,
    ) -> PyResult<(PyArrowArray, u64)> {
        run(py, || {
            let (mut missing, mut symbols) = (SymbolCounts::default(), 0);
            each_word(&words.0, self.limits, first_rank, |rank, word, count| {
                symbols += self.longest.count_missing(word, count, rank, &mut missing)?;
                Ok(())
            })?;
            Ok((tables::symbol_batch(&missing)?.into(), symbols))
        })
    }

    fn uses(&self, py: Python<'_>, words: GivenBatch, old: u32) -> PyResult<PyArrowArray> {
        table(py, || {
            let mut sums = self.longest.no_uses();
            each_word(&words.0, self.limits, 0, |_, word, count| {
                self.longest.add_uses(word, count, old, &mut sums)
            })?;
            tables::use_batch(sums)
        })
    }

    fn losses(&self, py: Python<'_>, words: GivenBatch) -> PyResult<PyArrowArray> {
        table(py, || {
            let mut sums = self.longest.no_losses();
            each_word(&words.0, self.limits, 0, |_, word, count| {
                self.longest.add_losses(word, count, &mut sums)
            })?;
            tables::loss_batch(sums)
        })
    }
}

/// Splits words into tokens by merges.
#[pyclass(name = "Splitter", frozen)]
pub(super) struct PySplitter {
    splitter: Splitter,
    limits: WordLimits,
}

#[pymethods]
impl PySplitter {
    #[new]
    #[pyo3(signature = (alphabet, merges, *, continuing_prefix, min_word_count, max_word_length,
        tokens=None, model=None, hidden=Vec::new(), word_marks=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        alphabet: Vec<(String, u32)>,
        merges: Option<GivenBatch>,
        continuing_prefix: &str,
        min_word_count: u64,
        max_word_length: usize,
        tokens: Option<Vec<String>>,
        model: Option<Py<PyBpe>>,
        hidden: Vec<u32>,
        word_marks: Option<&str>,
    ) -> PyResult<Self> {
        let marks = marks(word_marks, continuing_prefix)?;
        let model = model.as_ref().map(Py::get);
        let splitter = run(py, || {
            let merges = merges.map_or(Ok(Vec::new()), |merges| tables::Merges::read(&merges.0))?;
            let merges: Vec<_> = merges.iter().map(|m| (m.left, m.right, m.token)).collect();
            let symbols = alphabet.iter().map(|(symbol, id)| (symbol.as_str(), *id));
            Ok(match (tokens, model) {
                (None, _) => Splitter::new(symbols, marks, &merges),
                (Some(tokens), Some(model)) => {
                    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
                    Splitter::of_bpe(&tokens, &hidden, model.options(), &merges)?
                }
                (Some(tokens), None) => {
                    let longest = LongestMatch::new(&tokens, continuing_prefix, &[])?;
                    Splitter::of_longest_match(longest, &merges)
                }
            })
        })?;
        let limits = WordLimits { min_count: min_word_count, max_length: max_word_length };
        Ok(PySplitter { splitter, limits })
    }

    fn split(&self, py: Python<'_>, words: GivenBatch, first_rank: u64) -> PyResult<PyArrowArray> {
        table(py, || {
            let (mut splits, mut symbols) = (Splits::default(), Vec::new());
            let mut scratch = SplitScratch::default();
            each_word(&words.0, self.limits, first_rank, |rank, word, count| {
                self.splitter.split(word, &mut scratch, &mut symbols);
                if self.splitter.admits(&symbols) {
                    splits.push((rank, 0), count, &symbols);
                }
                Ok(())
            })?;
            tables::splits_batch(splits)
        })
    }

    fn merge(&self, py: Python<'_>, splits: GivenBatch) -> PyResult<PyArrowArray> {
        table(py, || {
            let (mut merged, mut symbols) = (Splits::default(), Vec::new());
            for (first, count, split) in tables::read_splits(&splits.0)?.iter() {
                symbols.clear();
                symbols.extend_from_slice(split);
                self.splitter.merge(&mut symbols);
                merged.push(first, count, &symbols);
            }
            tables::splits_batch(merged)
        })
    }
}

/// Counts tokens and pairs over splits.
#[pyclass(name = "PairCounter")]
pub(super) struct PyPairCounter(PairCounter);

#[pymethods]
impl PyPairCounter {
    #[new]
    fn new() -> Self {
        PyPairCounter(PairCounter::default())
    }

    #[getter]
    fn symbols(&self) -> u64 {
        self.0.symbols
    }

    #[getter]
    fn memory(&self) -> usize {
        self.0.pairs.capacity() * size_of::<((u32, u32), PairCount)>() * 3
    }

    fn add_splits(&mut self, py: Python<'_>, splits: GivenBatch) -> PyResult<()> {
        run(py, || {
            for (first, count, symbols) in tables::read_splits(&splits.0)?.iter() {
                self.0.add_split(first, count, symbols)?;
            }
            Ok(())
        })
    }

    fn unigrams(&self, py: Python<'_>) -> PyResult<PyArrowArray> {
        table(py, || tables::unigram_batch(&self.0.unigrams))
    }

    fn take_pairs(
        &mut self,
        py: Python<'_>,
        partitions: usize,
    ) -> PyResult<Vec<(usize, PyArrowArray)>> {
        let pairs = std::mem::take(&mut self.0.pairs);
        let parts = run(py, || tables::partitioned_pairs(pairs, partitions))?;
        Ok(parts.into_iter().map(|(partition, pairs)| (partition, pairs.into())).collect())
    }
}

#[pyfunction]
pub(super) fn add_unigrams(py: Python<'_>, batches: GivenBatches) -> PyResult<PyArrowArray> {
    table(py, || tables::added_unigrams(&batches.0))
}

#[pyfunction]
pub(super) fn add_pairs(py: Python<'_>, batches: GivenBatches) -> PyResult<PyArrowArray> {
    table(py, || tables::sorted_pairs(tables::sum_of_pairs(&batches.0)?.into_iter().collect()))
}

/// The levels of the pairs that a round may leave whole.
#[pyclass(name = "PairLevels", frozen)]
pub(super) struct PyPairLevels(PairLevels);

#[pymethods]
impl PyPairLevels {
    #[new]
    fn new(py: Python<'_>, candidates: GivenBatch) -> PyResult<Self> {
        let levels = run(py, || tables::read_pair_levels(&candidates.0))?;
        Ok(PyPairLevels(PairLevels(levels)))
    }
}

/// Finds the highest level up to which pairs can be left whole, so that the runs are within a budget of
/// tokens.
#[pyclass(name = "RunSizes")]
pub(super) struct PyRunSizes(RunSizes);

#[pymethods]
impl PyRunSizes {
    #[new]
    fn new(budget: u64, max_level: u16) -> Self {
        PyRunSizes(RunSizes::new(budget, max_level))
    }

    #[getter]
    fn max_level(&self) -> u16 {
        self.0.max_level()
    }

    fn add_splits(
        &mut self,
        py: Python<'_>,
        splits: GivenBatch,
        levels: &Bound<'_, PyPairLevels>,
    ) -> PyResult<()> {
        let levels = &levels.get().0;
        run(py, || {
            self.0.add_splits(&tables::read_splits(&splits.0)?, levels);
            Ok(())
        })
    }

    fn add_sample(&mut self, py: Python<'_>, sample: GivenBatch) -> PyResult<()> {
        run(py, || {
            let sample = tables::SampledRuns::rows(&sample.0)?;
            sample.for_each(|(hash, run)| self.0.add(hash, run));
            Ok(())
        })
    }

    fn sample(&self, py: Python<'_>) -> PyResult<PyArrowArray> {
        table(py, || tables::sample_batch(&self.0))
    }
}

/// The distinct runs of splits, with the sums of their counts.
#[pyclass(name = "Runs")]
pub(super) struct PyRuns(Runs);

#[pymethods]
impl PyRuns {
    #[new]
    fn new() -> Self {
        PyRuns(Runs::default())
    }

    fn add_splits(
        &mut self,
        py: Python<'_>,
        splits: GivenBatch,
        levels: &Bound<'_, PyPairLevels>,
        max_level: u16,
    ) -> PyResult<()> {
        let levels = &levels.get().0;
        run(py, || self.0.add_splits(&tables::read_splits(&splits.0)?, levels, max_level))
    }

    fn add_runs(&mut self, py: Python<'_>, runs: GivenBatch) -> PyResult<()> {
        run(py, || self.0.add_runs(&tables::read_splits(&runs.0)?))
    }

    /// The memory of the table and of taking it out, in bytes.
    #[getter]
    fn memory(&self) -> usize {
        self.0.memory() * 2
    }

    fn take_partitions(
        &mut self,
        py: Python<'_>,
        partitions: usize,
        most: usize,
    ) -> PyResult<Vec<(usize, PyArrowArray)>> {
        run(py, || {
            let parts = self.0.take_partitions(partitions.max(1), most.max(1));
            parts.map(|(n, part)| Ok((n, tables::splits_batch(part)?.into()))).collect()
        })
    }

    fn take(&mut self, py: Python<'_>, most: usize) -> PyResult<Vec<PyArrowArray>> {
        run(py, || {
            let parts = self.0.take_sorted(most.max(1));
            parts.map(|part| Ok(tables::splits_batch(part)?.into())).collect()
        })
    }
}

/// Merges pairs in rounds: `add_splits`, then `start_round`, then `run` until the round is over.
#[pyclass(name = "Trainer")]
pub(super) struct PyTrainer {
    trainer: Trainer,
    /// The runs of the next round.
    waiting: RoundRuns,
}

impl PyTrainer {
    /// The counts of all tokens so far.
    fn unigrams(&self, batch: &GivenBatch) -> Result<Vec<u64>> {
        tables::unigrams_by_token(&batch.0, self.trainer.tokens().len())
    }
}

#[pymethods]
impl PyTrainer {
    #[new]
    #[pyo3(signature = (tokens, *, vocab_size, criterion, min_pair_count, max_token_length,
        continuing_prefix, sealed=false, word_marks=None, max_words=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        tokens: Vec<String>,
        vocab_size: usize,
        criterion: &str,
        min_pair_count: Option<u64>,
        max_token_length: usize,
        continuing_prefix: &str,
        sealed: bool,
        word_marks: Option<&str>,
        max_words: Option<u32>,
    ) -> PyResult<Self> {
        let marks = marks(word_marks, continuing_prefix)?;
        let criteria = [
            ("pmi", Criterion::Pmi),
            ("likelihood", Criterion::Likelihood),
            ("frequency", Criterion::Frequency),
        ];
        let criterion = choice("criterion", criterion, &criteria)?;
        let ties = if max_words.is_some() { Ties::SmallestIds } else { Ties::FirstPlace };
        let options = TrainOptions { vocab_size, criterion, min_pair_count, ties };
        let trainer = run(py, || {
            let tokens = Tokens::new(tokens, marks, max_token_length);
            let tokens = tokens.with_max_words(max_words.unwrap_or(u32::MAX));
            Ok(Trainer::new(if sealed { tokens.sealed() } else { tokens }, options))
        })?;
        Ok(PyTrainer { trainer, waiting: RoundRuns::default() })
    }

    /// The least count of an eligible pair; 0 if it falls during training, before the start.
    #[getter]
    fn support(&self) -> u64 {
        self.trainer.support()
    }

    #[getter]
    fn tokens(&self) -> Vec<String> {
        self.trainer.tokens().strings().iter().map(|token| token.to_string()).collect()
    }

    /// The current number of tokens.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.trainer.tokens().len()
    }

    fn aim_at(&mut self, vocab_size: usize) {
        self.trainer.set_vocab_size(vocab_size);
    }

    fn restore(&mut self, py: Python<'_>, merges: GivenBatch, support: u64) -> PyResult<()> {
        run(py, || self.trainer.restore(tables::Merges::read(&merges.0)?, support))
    }

    fn add_splits(&mut self, py: Python<'_>, splits: GivenBatch) -> PyResult<()> {
        run(py, || {
            let splits = tables::read_splits(&splits.0)?;
            self.trainer.check_splits(&splits)?;
            self.waiting.extend(&splits)
        })
    }

    /// Begins a round over all splits. They must have been added.
    fn start_whole_round(&mut self, py: Python<'_>) -> PyResult<()> {
        let runs = std::mem::take(&mut self.waiting);
        run(py, || self.trainer.start_whole_round(runs))
    }

    /// Begins a round over the runs that have been added. `max_level`: the highest level of the pairs that
    /// splits were not divided at; `candidates`: the best pair is the one of level 0.
    #[pyo3(signature = (unigrams, *, largest, max_level, candidates))]
    fn start_round(
        &mut self,
        py: Python<'_>,
        unigrams: GivenBatch,
        largest: u64,
        max_level: u16,
        candidates: GivenBatch,
    ) -> PyResult<()> {
        let runs = std::mem::take(&mut self.waiting);
        run(py, || {
            let unigrams = self.unigrams(&unigrams)?;
            let candidates = tables::read_candidates(&candidates.0)?;
            let best = candidates.into_iter().find(|(.., level)| *level == 0);
            let best = best.map(|(pair, count, _)| (pair, count));
            self.trainer.start_round(runs, unigrams, largest, max_level, best)
        })
    }

    fn run(&mut self, py: Python<'_>, most: usize) -> PyResult<&'static str> {
        run(py, || {
            Ok(match self.trainer.run(most) {
                Status::Running => "running",
                Status::RoundOver => "round over",
                Status::Done => "done",
            })
        })
    }

    fn largest(&self, py: Python<'_>, pairs: GivenBatch) -> PyResult<u64> {
        run(py, || self.trainer.largest(&tables::sum_of_pairs(&[pairs.0])?))
    }

    #[pyo3(signature = (unigrams, pairs, *, largest, most, max_level=None))]
    fn candidates(
        &self,
        py: Python<'_>,
        unigrams: GivenBatch,
        pairs: GivenBatches,
        largest: u64,
        most: usize,
        max_level: Option<u16>,
    ) -> PyResult<(PyArrowArray, u16)> {
        run(py, || {
            let (unigrams, pairs) = (self.unigrams(&unigrams)?, tables::sum_of_pairs(&pairs.0)?);
            let chosen = self.trainer.candidates(&unigrams, &pairs, largest, most, max_level)?;
            Ok((tables::candidate_batch(&chosen.pairs)?.into(), chosen.max_level))
        })
    }

    #[pyo3(signature = (first=0))]
    fn merges(&self, py: Python<'_>, first: usize) -> PyResult<PyArrowArray> {
        table(py, || {
            let merges = self.trainer.merges();
            let none = || Error::option(format!("first: {first}, of {} merges", merges.len()));
            tables::Merges::batch(merges.get(first..).ok_or_else(none)?.iter())
        })
    }
}
