//! Training, for Python.

use arrow_array::RecordBatch;
use foldhash::HashMap;
use pyo3::prelude::*;

use super::{PyArrowArray, import_batch, import_batches, run, unknown, word_boundary};
use crate::arrow;
use crate::base::error::{Error, Result};
use crate::text::marks::{WordBoundary, WordMarks};
use crate::train::longest::LongestMatch;
use crate::train::round::RoundRuns;
use crate::train::run_sizes::RunSizes;
use crate::train::runs::{PairLevels, Runs};
use crate::train::score::Criterion;
use crate::train::splits::{
    PairCount, PairCounter, PairCounts, Splits, SymbolCounts, WordLimits, count_symbols, pair_hash,
};
use crate::train::splitter::Splitter;
use crate::train::tokens::Tokens;
use crate::train::trainer::{Status, TrainOptions, Trainer};
use crate::train::watch::Limit;

/// How words are marked. `name`: that of a word boundary; `gpt2` for bytes of words that have their
/// spaces already; None for WordPiece's prefix.
fn word_marks(name: Option<&str>, continuing_prefix: &str) -> PyResult<WordMarks> {
    if name == Some("gpt2") {
        return Ok(WordMarks::Bytes { add_space: false });
    }
    Ok(match word_boundary("word_marks", name, "</w>, ▁, bytes or gpt2")? {
        WordBoundary::None => WordMarks::Prefix(continuing_prefix.to_owned()),
        WordBoundary::End => WordMarks::End,
        WordBoundary::SpaceMark => WordMarks::Begin,
        WordBoundary::Bytes => WordMarks::Bytes { add_space: true },
    })
}

/// The counts of the symbols in a part of a word table: of every character with the mark of words, and
/// of every character without it. `first_rank`: the rank of the first word.
#[pyfunction]
#[pyo3(signature = (words, *, first_rank, min_word_count, max_word_length, word_marks=None))]
pub(super) fn symbol_counts(
    py: Python<'_>,
    words: &Bound<'_, PyAny>,
    first_rank: u64,
    min_word_count: u64,
    max_word_length: usize,
    word_marks: Option<&str>,
) -> PyResult<PyArrowArray> {
    let table = import_batch(words)?;
    let marks = self::word_marks(word_marks, "")?;
    let limits = WordLimits { min_count: min_word_count, max_length: max_word_length };
    run(py, || {
        let mut symbols = SymbolCounts::default();
        let table = arrow::count::WordTableBatch::new(&table)?;
        for (rank, (word, count)) in (first_rank..).zip(table.rows()?) {
            if limits.admit(word, count) {
                count_symbols(word, count, rank, &marks, &mut symbols)?;
            }
        }
        Ok(arrow::train::symbol_batch(&symbols)?.into())
    })
}

/// Cuts the words of a table by greedy longest match of a vocabulary, and says what that uses.
#[pyclass(name = "LongestMatch", frozen)]
pub(super) struct PyLongestMatch {
    longest: LongestMatch,
    limits: WordLimits,
}

#[pymethods]
impl PyLongestMatch {
    /// `dropped`: ids of `tokens` that are no part of the vocabulary.
    #[new]
    #[pyo3(signature = (tokens, dropped=Vec::new(), *, continuing_prefix, min_word_count,
        max_word_length))]
    fn new(
        tokens: Vec<String>,
        dropped: Vec<u32>,
        continuing_prefix: &str,
        min_word_count: u64,
        max_word_length: usize,
    ) -> PyResult<Self> {
        let longest = LongestMatch::new(&tokens, continuing_prefix, &dropped)?;
        let limits = WordLimits { min_count: min_word_count, max_length: max_word_length };
        Ok(PyLongestMatch { longest, limits })
    }

    /// The symbols that no token fits, as `symbol_counts` has them, and how many symbols all words
    /// are cut into, each word once.
    fn missing_symbols(
        &self,
        py: Python<'_>,
        words: &Bound<'_, PyAny>,
        first_rank: u64,
    ) -> PyResult<(PyArrowArray, u64)> {
        let table = import_batch(words)?;
        run(py, || {
            let (mut missing, mut symbols) = (SymbolCounts::default(), 0);
            let table = arrow::count::WordTableBatch::new(&table)?;
            for (rank, (word, count)) in (first_rank..).zip(table.rows()?) {
                if self.limits.admit(word, count) {
                    symbols += self.longest.count_missing(word, count, rank, &mut missing)?;
                }
            }
            Ok((arrow::train::symbol_batch(&missing)?.into(), symbols))
        })
    }

    /// By token, how often it is used, and whether it is in the way of a word that the first `old`
    /// tokens can cut: `uses: int64`, `is_harmful: bool`.
    fn uses(&self, py: Python<'_>, words: &Bound<'_, PyAny>, old: u32) -> PyResult<PyArrowArray> {
        let table = import_batch(words)?;
        run(py, || {
            let mut sums = self.longest.no_uses();
            let table = arrow::count::WordTableBatch::new(&table)?;
            for (word, count) in table.rows()? {
                if self.limits.admit(word, count) {
                    self.longest.add_uses(word, count, old, &mut sums)?;
                }
            }
            Ok(arrow::train::use_batch(sums)?.into())
        })
    }

    /// By token, how often it is used, and what words would lose without it: `uses, losses: int64`,
    /// `is_needed, is_missed: bool`.
    fn losses(&self, py: Python<'_>, words: &Bound<'_, PyAny>) -> PyResult<PyArrowArray> {
        let table = import_batch(words)?;
        run(py, || {
            let mut sums = self.longest.no_losses();
            let table = arrow::count::WordTableBatch::new(&table)?;
            for (word, count) in table.rows()? {
                if self.limits.admit(word, count) {
                    self.longest.add_losses(word, count, &mut sums)?;
                }
            }
            Ok(arrow::train::loss_batch(sums)?.into())
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
        tokens=None, word_marks=None))]
    fn new(
        alphabet: Vec<(String, u32)>,
        merges: Option<&Bound<'_, PyAny>>,
        continuing_prefix: &str,
        min_word_count: u64,
        max_word_length: usize,
        tokens: Option<Vec<String>>,
        word_marks: Option<&str>,
    ) -> PyResult<Self> {
        let merges = match merges {
            Some(merges) => arrow::train::Merges::read(&import_batch(merges)?)?,
            None => Vec::new(),
        };
        let merges: Vec<_> = merges.iter().map(|m| (m.left, m.right, m.token)).collect();
        let symbols = alphabet.iter().map(|(symbol, id)| (symbol.as_str(), *id));
        let splitter = match tokens {
            None => {
                let marks = self::word_marks(word_marks, continuing_prefix)?;
                Splitter::new(symbols, marks, &merges)
            }
            Some(tokens) => {
                let longest = LongestMatch::new(&tokens, continuing_prefix, &[])?;
                Splitter::of_longest_match(longest, &merges)
            }
        };
        let limits = WordLimits { min_count: min_word_count, max_length: max_word_length };
        Ok(PySplitter { splitter, limits })
    }

    /// The splits of the words in a part of a word table. `first_rank`: the rank of the first word.
    fn split(
        &self,
        py: Python<'_>,
        words: &Bound<'_, PyAny>,
        first_rank: u64,
    ) -> PyResult<PyArrowArray> {
        let table = import_batch(words)?;
        run(py, || {
            let mut splits = Splits::default();
            let mut symbols = Vec::new();
            let table = arrow::count::WordTableBatch::new(&table)?;
            for (rank, (word, count)) in (first_rank..).zip(table.rows()?) {
                if self.limits.admit(word, count) {
                    self.splitter.split(word, &mut symbols);
                    if self.splitter.admits(&symbols) {
                        splits.push((rank, 0), count, &symbols);
                    }
                }
            }
            Ok(arrow::train::splits_batch(splits)?.into())
        })
    }

    /// Applies the merges to splits.
    fn merge(&self, py: Python<'_>, splits: &Bound<'_, PyAny>) -> PyResult<PyArrowArray> {
        let splits = import_batch(splits)?;
        run(py, || {
            let mut merged = Splits::default();
            let mut symbols = Vec::new();
            for (first, count, split) in arrow::train::read_splits(&splits)?.iter() {
                symbols.clear();
                symbols.extend_from_slice(split);
                self.splitter.merge(&mut symbols);
                merged.push(first, count, &symbols);
            }
            Ok(arrow::train::splits_batch(merged)?.into())
        })
    }
}

/// Counts tokens and pairs over splits.
#[pyclass(name = "PairCounter")]
pub(super) struct PyPairCounter {
    counter: PairCounter,
}

#[pymethods]
impl PyPairCounter {
    #[new]
    fn new() -> Self {
        PyPairCounter { counter: PairCounter::default() }
    }

    /// The number of symbols in all splits, whatever the counts of the splits.
    #[getter]
    fn symbols(&self) -> u64 {
        self.counter.symbols
    }

    /// The memory that the table of pairs takes, and that `take_pairs` takes beside it, in bytes.
    #[getter]
    fn memory(&self) -> usize {
        self.counter.pairs.capacity() * size_of::<((u32, u32), PairCount)>() * 3
    }

    /// Counts the tokens and the pairs of splits.
    fn add_splits(&mut self, py: Python<'_>, splits: &Bound<'_, PyAny>) -> PyResult<()> {
        let splits = import_batch(splits)?;
        run(py, || {
            for (first, count, symbols) in arrow::train::read_splits(&splits)?.iter() {
                self.counter.add_split(first, count, symbols)?;
            }
            Ok(())
        })
    }

    /// The counts of tokens.
    fn unigrams(&self, py: Python<'_>) -> PyResult<PyArrowArray> {
        run(py, || Ok(arrow::train::unigram_batch(&self.counter.unigrams)?.into()))
    }

    /// Empties the table of pairs. For each partition with pairs: its number, and a batch ordered by
    /// pair. The partition depends on the pair alone.
    fn take_pairs(
        &mut self,
        py: Python<'_>,
        partitions: usize,
    ) -> PyResult<Vec<(usize, PyArrowArray)>> {
        run(py, || {
            let mut parts = vec![Vec::new(); partitions.max(1)];
            for (pair, count) in std::mem::take(&mut self.counter.pairs) {
                let partition = (pair_hash(pair) >> 32) as usize % parts.len();
                parts[partition].push((pair, count));
            }
            let mut batches = Vec::new();
            for (partition, mut rows) in parts.into_iter().enumerate() {
                rows.sort_unstable_by_key(|(pair, _)| *pair);
                if !rows.is_empty() {
                    batches.push((partition, arrow::train::pair_batch(&rows)?.into()));
                }
            }
            Ok(batches)
        })
    }
}

/// Adds up the counts of equal tokens.
#[pyfunction]
pub(super) fn add_unigrams(
    py: Python<'_>,
    batches: Vec<Bound<'_, PyAny>>,
) -> PyResult<PyArrowArray> {
    let batches = import_batches(&batches)?;
    run(py, || {
        let mut sums = PairCounter::default();
        for batch in &batches {
            for (token, count) in arrow::train::TokenCounts::read(batch)? {
                sums.add_unigram(token, count)?;
            }
        }
        Ok(arrow::train::unigram_batch(&sums.unigrams)?.into())
    })
}

/// Adds up the counts of equal pairs.
fn sum_of_pairs(batches: &[RecordBatch]) -> Result<PairCounts> {
    let mut sums = PairCounts::default();
    batches.iter().try_for_each(|batch| arrow::train::add_pairs(&mut sums, batch))?;
    Ok(sums)
}

/// Adds up the counts of equal pairs. The result is ordered by pair.
#[pyfunction]
pub(super) fn add_pairs(py: Python<'_>, batches: Vec<Bound<'_, PyAny>>) -> PyResult<PyArrowArray> {
    let batches = import_batches(&batches)?;
    run(py, || {
        let mut rows: Vec<_> = sum_of_pairs(&batches)?.into_iter().collect();
        rows.sort_unstable_by_key(|(pair, _)| *pair);
        Ok(arrow::train::pair_batch(&rows)?.into())
    })
}

/// Joins the limits of parts of the pairs.
#[pyfunction]
pub(super) fn join_limits(
    py: Python<'_>,
    batches: Vec<Bound<'_, PyAny>>,
) -> PyResult<PyArrowArray> {
    let batches = import_batches(&batches)?;
    run(py, || {
        let mut joined = HashMap::default();
        for batch in &batches {
            for (token, limit) in arrow::train::Limits::read(batch)? {
                joined.entry(token).or_insert(Limit::NONE).join(&limit);
            }
        }
        Ok(arrow::train::limit_batch(&joined)?.into())
    })
}

/// The levels of the pairs that a round may leave whole, from the batch of `Trainer.candidates`.
/// `whole_splits`: whether a split is held whole if one of its pairs is.
#[pyclass(name = "PairLevels", frozen)]
pub(super) struct PyPairLevels {
    levels: PairLevels,
}

#[pymethods]
impl PyPairLevels {
    #[new]
    fn new(candidates: &Bound<'_, PyAny>, whole_splits: bool) -> PyResult<Self> {
        let levels = arrow::train::read_pair_levels(&import_batch(candidates)?)?;
        Ok(PyPairLevels { levels: PairLevels { levels, whole_splits } })
    }
}

/// Finds the highest level up to which pairs can be left whole, so that the runs are within a budget of
/// tokens. It works on a sample, which does not depend on the order of the splits.
#[pyclass(name = "RunSizes")]
pub(super) struct PyRunSizes(RunSizes);

#[pymethods]
impl PyRunSizes {
    /// `max_level`: the highest level that is considered.
    #[new]
    fn new(budget: u64, max_level: u16) -> Self {
        PyRunSizes(RunSizes::new(budget, max_level))
    }

    /// The highest level for which the runs are within the budget; 0 if there is none.
    #[getter]
    fn max_level(&self) -> u16 {
        self.0.max_level()
    }

    /// Adds the runs of splits. `levels`: of pairs.
    fn add_splits(
        &mut self,
        py: Python<'_>,
        splits: &Bound<'_, PyAny>,
        levels: &Bound<'_, PyPairLevels>,
    ) -> PyResult<()> {
        let (splits, levels) = (import_batch(splits)?, levels.get());
        run(py, || {
            self.0.add_splits(&arrow::train::read_splits(&splits)?, &levels.levels);
            Ok(())
        })
    }

    /// Adds what `sample` has given.
    fn add_sample(&mut self, py: Python<'_>, sample: &Bound<'_, PyAny>) -> PyResult<()> {
        let sample = import_batch(sample)?;
        run(py, || {
            let sample = arrow::train::SampledRuns::read(&sample)?;
            sample.into_iter().for_each(|(hash, run)| self.0.add(hash, run));
            Ok(())
        })
    }

    /// The sample: `hash`, `length`, `first_max_level`, `last_max_level`.
    fn sample(&self, py: Python<'_>) -> PyResult<PyArrowArray> {
        run(py, || Ok(arrow::train::sample_batch(&self.0)?.into()))
    }
}

/// The distinct runs of splits, with the sums of their counts.
#[pyclass(name = "Runs")]
pub(super) struct PyRuns {
    runs: Runs,
}

#[pymethods]
impl PyRuns {
    #[new]
    fn new() -> Self {
        PyRuns { runs: Runs::default() }
    }

    /// Adds the runs of splits, cut at all pairs of a higher level than `max_level`.
    fn add_splits(
        &mut self,
        py: Python<'_>,
        splits: &Bound<'_, PyAny>,
        levels: &Bound<'_, PyPairLevels>,
        max_level: u16,
    ) -> PyResult<()> {
        let (splits, levels) = (import_batch(splits)?, levels.get());
        run(py, || {
            let splits = arrow::train::read_splits(&splits)?;
            self.runs.add_splits(&splits, &levels.levels, max_level)
        })
    }

    /// Adds what `take` has given for other runs.
    fn add_runs(&mut self, py: Python<'_>, runs: &Bound<'_, PyAny>) -> PyResult<()> {
        let runs = import_batch(runs)?;
        run(py, || self.runs.add_runs(&arrow::train::read_splits(&runs)?))
    }

    /// The memory that the table takes, and that taking it out takes beside it, in bytes.
    #[getter]
    fn memory(&self) -> usize {
        self.runs.memory() * 2
    }

    /// Empties the table. Partitions and their runs, `most` in a batch, in no order. The partition
    /// depends on the run alone.
    fn take_partitions(
        &mut self,
        py: Python<'_>,
        partitions: usize,
        most: usize,
    ) -> PyResult<Vec<(usize, PyArrowArray)>> {
        run(py, || {
            let parts = self.runs.take_partitions(partitions.max(1), most.max(1));
            parts.map(|(n, part)| Ok((n, arrow::train::splits_batch(part)?.into()))).collect()
        })
    }

    /// Empties the table. The runs are in the order of their places, `most` in a batch.
    fn take(&mut self, py: Python<'_>, most: usize) -> PyResult<Vec<PyArrowArray>> {
        run(py, || {
            let parts = self.runs.take_sorted(most.max(1));
            parts.map(|part| Ok(arrow::train::splits_batch(part)?.into())).collect()
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

#[pymethods]
impl PyTrainer {
    #[new]
    #[pyo3(signature = (tokens, *, vocab_size, criterion, min_pair_count, max_token_length,
        continuing_prefix, word_marks=None))]
    fn new(
        tokens: Vec<String>,
        vocab_size: usize,
        criterion: &str,
        min_pair_count: Option<u64>,
        max_token_length: usize,
        continuing_prefix: &str,
        word_marks: Option<&str>,
    ) -> PyResult<Self> {
        let marks = self::word_marks(word_marks, continuing_prefix)?;
        let criterion = match criterion {
            "pmi" => Criterion::Pmi,
            "likelihood" => Criterion::Likelihood,
            "frequency" => Criterion::Frequency,
            other => return Err(unknown("criterion", other, "pmi, likelihood or frequency")),
        };
        let tokens = Tokens::new(tokens, marks, max_token_length);
        let trainer = Trainer::new(tokens, TrainOptions { vocab_size, criterion, min_pair_count });
        Ok(PyTrainer { trainer, waiting: RoundRuns::default() })
    }

    /// Whether rounds under a budget watch the best pairs: then they hold whole splits and need limits.
    #[getter]
    fn watches(&self) -> bool {
        self.trainer.watches()
    }

    /// The count that makes a pair eligible now; 0 if it falls and training has not begun.
    #[getter]
    fn support(&self) -> u64 {
        self.trainer.support()
    }

    /// The tokens so far.
    #[getter]
    fn tokens(&self) -> Vec<String> {
        self.trainer.tokens().strings().iter().map(|token| token.to_string()).collect()
    }

    /// How many tokens there are so far.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.trainer.tokens().len()
    }

    /// Sets how many tokens are to be trained, also when so many as were wanted before are there.
    fn aim_at(&mut self, vocab_size: usize) {
        self.trainer.set_vocab_size(vocab_size);
    }

    /// Takes over a round that another trainer of the same training has made: its merges, and the
    /// support after it.
    fn restore(&mut self, py: Python<'_>, merges: &Bound<'_, PyAny>, support: u64) -> PyResult<()> {
        let merges = import_batch(merges)?;
        run(py, || self.trainer.restore(arrow::train::Merges::read(&merges)?, support))
    }

    /// Adds splits or runs to the next round, in the order of their places.
    fn add_splits(&mut self, py: Python<'_>, splits: &Bound<'_, PyAny>) -> PyResult<()> {
        let splits = import_batch(splits)?;
        run(py, || {
            let splits = arrow::train::read_splits(&splits)?;
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
    /// splits were not cut at.
    #[pyo3(signature = (unigrams, *, largest, max_level, candidates, limits=None))]
    fn start_round(
        &mut self,
        py: Python<'_>,
        unigrams: &Bound<'_, PyAny>,
        largest: u64,
        max_level: u16,
        candidates: &Bound<'_, PyAny>,
        limits: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (unigrams, candidates) = (import_batch(unigrams)?, import_batch(candidates)?);
        let limits = limits.map(import_batch).transpose()?;
        let runs = std::mem::take(&mut self.waiting);
        run(py, || {
            let unigrams = arrow::train::unigrams_by_token(&unigrams, self.trainer.tokens().len())?;
            let candidates = arrow::train::read_candidates(&candidates)?;
            if limits.is_none() && self.trainer.watches() {
                let message = "a round that watches pairs needs the limits of the others";
                return Err(Error::option(message));
            }
            let limits = limits.as_ref().map_or(Ok(Vec::new()), arrow::train::Limits::read)?;
            self.trainer.start_round(runs, unigrams, largest, max_level, &candidates, &limits)
        })
    }

    /// Makes up to `most` merges. Returns "running", "round over" or "done".
    fn run(&mut self, py: Python<'_>, most: usize) -> PyResult<&'static str> {
        run(py, || {
            Ok(match self.trainer.run(most) {
                Status::Running => "running",
                Status::RoundOver => "round over",
                Status::Done => "done",
            })
        })
    }

    /// The largest count of a pair that may be merged.
    fn largest(&self, py: Python<'_>, pairs: &Bound<'_, PyAny>) -> PyResult<u64> {
        let pairs = import_batch(pairs)?;
        run(py, || self.trainer.largest(&sum_of_pairs(&[pairs])?))
    }

    /// The pairs that a round may leave whole, about `most`, and the level up to which all pairs are
    /// among them. `max_level`: for pairs chosen from parts, the lowest of the levels returned with them.
    #[pyo3(signature = (unigrams, pairs, *, largest, most, max_level=None))]
    fn candidates(
        &self,
        py: Python<'_>,
        unigrams: &Bound<'_, PyAny>,
        pairs: Vec<Bound<'_, PyAny>>,
        largest: u64,
        most: usize,
        max_level: Option<u16>,
    ) -> PyResult<(PyArrowArray, u16)> {
        let (unigrams, pairs) = (import_batch(unigrams)?, import_batches(&pairs)?);
        run(py, || {
            let unigrams = arrow::train::unigrams_by_token(&unigrams, self.trainer.tokens().len())?;
            let pairs = sum_of_pairs(&pairs)?;
            let chosen = self.trainer.candidates(&unigrams, &pairs, largest, most, max_level)?;
            Ok((arrow::train::candidate_batch(&chosen.pairs)?.into(), chosen.max_level))
        })
    }

    /// The limits of the scores of all pairs that are no candidates, by token.
    #[pyo3(signature = (unigrams, pairs, *, candidates, largest))]
    fn limits(
        &self,
        py: Python<'_>,
        unigrams: &Bound<'_, PyAny>,
        pairs: Vec<Bound<'_, PyAny>>,
        candidates: &Bound<'_, PyAny>,
        largest: u64,
    ) -> PyResult<PyArrowArray> {
        let (unigrams, pairs) = (import_batch(unigrams)?, import_batches(&pairs)?);
        let known = import_batch(candidates)?;
        run(py, || {
            let unigrams = arrow::train::unigrams_by_token(&unigrams, self.trainer.tokens().len())?;
            let (pairs, known) = (sum_of_pairs(&pairs)?, arrow::train::read_pair_levels(&known)?);
            let limits = self.trainer.limits(&unigrams, &pairs, &known, largest)?;
            Ok(arrow::train::limit_batch(&limits)?.into())
        })
    }

    /// The merges from step `first` on, counted from 0: `left, right, token: uint32, score: double,
    /// pair_count, left_count, right_count: int64`.
    #[pyo3(signature = (first=0))]
    fn merges(&self, py: Python<'_>, first: usize) -> PyResult<PyArrowArray> {
        run(py, || {
            let merges = self.trainer.merges();
            let none = || Error::option(format!("first: {first}, of {} merges", merges.len()));
            Ok(arrow::train::Merges::batch(merges.get(first..).ok_or_else(none)?.iter())?.into())
        })
    }
}
