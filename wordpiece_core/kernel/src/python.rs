//! The Python module `wordpiece_core._kernel`: nothing but conversions.
//!
//! Arrow data comes and goes through the Arrow PyCapsule interface, without a copy. The work is
//! done with the GIL released, and a panic becomes a RuntimeError.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::{
    Array, ArrayRef, BinaryArray, RecordBatch, StringArray, StructArray, make_array,
};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::encode::{Encoder, EncoderOptions, UnkScope};
use crate::score::Criterion;
use crate::splits::{Aggregate, Splits, Splitter, SymbolCounts, WordLimits, count_symbols};
use crate::text::{Text, TextOptions};
use crate::train::{Status, TrainOptions, Trainer};
use crate::{arrow, count, utf8};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// Runs `work` with the GIL released; errors and panics become Python exceptions.
fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, String> + Send) -> PyResult<T> {
    match py.detach(|| catch_unwind(AssertUnwindSafe(work))) {
        Ok(result) => result.map_err(PyValueError::new_err),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("panic");
            Err(PyRuntimeError::new_err(format!("the kernel failed: {text}")))
        }
    }
}

/// Takes an Arrow array over from a Python object.
fn import(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let capsules = object.call_method0("__arrow_c_array__").map_err(|_| {
        let kind = object.get_type().to_string();
        PyTypeError::new_err(format!("expected an Arrow array, not {kind}"))
    })?;
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = capsules.extract()?;
    let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: the names of the capsules say that they point to these structures, valid while the
    // capsules live. `from_raw` moves the array out and marks what it leaves behind as released.
    let data = unsafe {
        let array = FFI_ArrowArray::from_raw(array.as_ptr());
        from_ffi(array, schema.as_ref())
    };
    Ok(arrow::as_bytes(make_array(data.map_err(|error| PyTypeError::new_err(error.to_string()))?)))
}

fn import_batch(object: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let array = import(object)?;
    let columns = array.as_any().downcast_ref::<StructArray>();
    let columns = columns.filter(|columns| columns.null_count() == 0); // as `from` demands
    columns.map(RecordBatch::from).ok_or_else(|| PyTypeError::new_err("expected a record batch"))
}

fn import_batches(objects: &[Bound<'_, PyAny>]) -> PyResult<Vec<RecordBatch>> {
    objects.iter().map(import_batch).collect()
}

/// An Arrow array, or a record batch, on its way to Python: `pyarrow.array(x)` or
/// `pyarrow.record_batch(x)` takes it without a copy.
#[pyclass(frozen)]
struct ArrowArray(ArrayRef);

#[pymethods]
impl ArrowArray {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema; // a producer may ignore it
        let (array, schema) =
            to_ffi(&self.0.to_data()).map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
        Ok((
            PyCapsule::new_with_value(py, schema, SCHEMA)?,
            PyCapsule::new_with_value(py, array, ARRAY)?,
        ))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }
}

impl From<RecordBatch> for ArrowArray {
    fn from(batch: RecordBatch) -> Self {
        ArrowArray(Arc::new(StructArray::from(batch)))
    }
}

fn text_options(
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: bool,
    lowercase: bool,
    pre_tokenizer: &str,
) -> PyResult<TextOptions> {
    let split_punctuation = match pre_tokenizer {
        "bert" => true,
        "whitespace" => false,
        other => return Err(unknown("pre_tokenizer", other, "bert or whitespace")),
    };
    Ok(TextOptions {
        clean_text,
        handle_chinese_chars,
        strip_accents,
        lowercase,
        split_punctuation,
    })
}

fn unknown(option: &str, value: &str, choices: &str) -> PyErr {
    PyValueError::new_err(format!("{option} is {value:?}, not {choices}"))
}

#[pyclass]
struct WordCounter {
    counter: count::WordCounter,
    #[pyo3(get)]
    rows: u64,
    #[pyo3(get)]
    nulls: u64,
    #[pyo3(get)]
    bytes: u64,
    #[pyo3(get)]
    words: u64,
    #[pyo3(get)]
    replaced: u64,
}

#[pymethods]
impl WordCounter {
    #[new]
    #[pyo3(signature = (*, clean_text, handle_chinese_chars, strip_accents, lowercase, pre_tokenizer))]
    fn new(
        clean_text: bool,
        handle_chinese_chars: bool,
        strip_accents: bool,
        lowercase: bool,
        pre_tokenizer: &str,
    ) -> PyResult<Self> {
        let options = text_options(
            clean_text,
            handle_chinese_chars,
            strip_accents,
            lowercase,
            pre_tokenizer,
        )?;
        let counter = count::WordCounter::new(options);
        Ok(WordCounter { counter, rows: 0, nulls: 0, bytes: 0, words: 0, replaced: 0 })
    }

    #[getter]
    fn memory(&self) -> usize {
        self.counter.memory()
    }

    fn count(&mut self, py: Python<'_>, texts: &Bound<'_, PyAny>) -> PyResult<()> {
        let texts = import(texts)?;
        run(py, move || {
            arrow::each_row(&texts, |row| {
                self.rows += 1;
                let Some(row) = row else {
                    self.nulls += 1;
                    return;
                };
                let (text, replaced) = utf8::repair(row);
                self.bytes += row.len() as u64;
                self.replaced += replaced;
                self.counter.count(&text);
            })
        })
    }

    fn take(&mut self, py: Python<'_>, partitions: usize) -> PyResult<Vec<(usize, ArrowArray)>> {
        run(py, || {
            let lists = self.counter.take(partitions.max(1));
            let mut batches = Vec::new();
            for (partition, list) in lists.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
                self.words += list.iter().map(|(_, count)| count).sum::<u64>();
                let rows = list.iter().map(|(word, count)| (&**word, *count));
                batches.push((partition, arrow::word_table(rows)?.into()));
            }
            Ok(batches)
        })
    }
}

#[pyfunction]
fn merge_word_counts(py: Python<'_>, batches: Vec<Bound<'_, PyAny>>) -> PyResult<ArrowArray> {
    let batches = import_batches(&batches)?;
    run(py, || {
        let tables =
            batches.iter().map(arrow::WordTable::new).collect::<arrow::Result<Vec<_>>>()?;
        let rows = tables.iter().map(|table| table.rows()).collect::<arrow::Result<Vec<_>>>()?;
        let merged =
            count::merge(rows.into_iter().flatten()).ok_or(crate::splits::CountOverflow)?;
        Ok(arrow::word_table(merged.into_iter())?.into())
    })
}

#[pyfunction]
fn repair_utf8(py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<(ArrowArray, u64)> {
    let array = import(array)?;
    run(py, || {
        // Without a copy, if nothing needs repair.
        if let Some(bytes) = array.as_any().downcast_ref::<BinaryArray>()
            && let Ok(valid) = StringArray::try_from_binary(bytes.clone())
        {
            return Ok((ArrowArray(Arc::new(valid)), 0));
        }
        let mut rows = Vec::with_capacity(array.len());
        arrow::each_row(&array, |row| rows.push(row.map(utf8::repair)))?;
        let replaced = rows.iter().flatten().map(|(_, replaced)| replaced).sum();
        let strings = arrow::strings(rows.iter().map(|row| row.as_ref().map(|(text, _)| &**text)));
        Ok((ArrowArray(Arc::new(strings)), replaced))
    })
}

#[pyfunction]
fn split_lines(py: Python<'_>, block: PyBuffer<u8>) -> PyResult<(ArrowArray, u64)> {
    let block = block.to_vec(py)?;
    run(py, || {
        let mut replaced = 0;
        let rows: Vec<_> = utf8::lines(&block)
            .map(|line| {
                let (text, more) = utf8::repair(line);
                replaced += more;
                text
            })
            .collect();
        let strings = arrow::strings(rows.iter().map(|row| Some(&**row)));
        Ok((ArrowArray(Arc::new(strings)), replaced))
    })
}

#[pyfunction]
#[pyo3(signature = (texts, *, clean_text, handle_chinese_chars, strip_accents, lowercase, pre_tokenizer))]
fn pre_tokenize(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: bool,
    lowercase: bool,
    pre_tokenizer: &str,
) -> PyResult<ArrowArray> {
    let options =
        text_options(clean_text, handle_chinese_chars, strip_accents, lowercase, pre_tokenizer)?;
    let texts = import(texts)?;
    run(py, || {
        let rules = Text::new(options);
        let mut rows = Vec::with_capacity(texts.len());
        arrow::each_row(&texts, |row| {
            rows.push(row.map(|row| {
                let mut words = Vec::new();
                let mut word = String::new();
                rules.segments(&utf8::repair(row).0, |segment| {
                    rules.normalize(segment.raw, &mut word);
                    words.extend((!word.is_empty()).then(|| word.clone()));
                });
                words
            }));
        })?;
        Ok(ArrowArray(arrow::word_lists(&rows)?))
    })
}

#[pyclass(name = "Encoder", frozen)]
struct PyEncoder(Encoder);

#[pymethods]
impl PyEncoder {
    #[new]
    #[pyo3(signature = (vocab, *, clean_text, handle_chinese_chars, strip_accents, lowercase,
        pre_tokenizer, unk_token, continuing_prefix, max_word_length, unk_scope, special_tokens,
        prefix_ids, suffix_ids))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        vocab: Vec<String>,
        clean_text: bool,
        handle_chinese_chars: bool,
        strip_accents: bool,
        lowercase: bool,
        pre_tokenizer: &str,
        unk_token: &str,
        continuing_prefix: String,
        max_word_length: usize,
        unk_scope: &str,
        special_tokens: Vec<String>,
        prefix_ids: Vec<u32>,
        suffix_ids: Vec<u32>,
    ) -> PyResult<Self> {
        let text = text_options(
            clean_text,
            handle_chinese_chars,
            strip_accents,
            lowercase,
            pre_tokenizer,
        )?;
        let unk_scope = match unk_scope {
            "word" => UnkScope::Word,
            "character" => UnkScope::Character,
            other => return Err(unknown("unk_scope", other, "word or character")),
        };
        let encoder = run(py, || {
            let tokens = vocab.iter().map(String::as_str).zip(0..);
            let ids: FxHashMap<&str, u32> = tokens.clone().collect();
            let id = |token: &str| {
                ids.get(token).copied().ok_or(format!("the vocabulary has no {token}"))
            };
            let special_tokens = special_tokens.into_iter().map(|t| id(&t).map(|id| (t, id)));
            let options = EncoderOptions {
                text,
                unk_id: id(unk_token)?,
                continuing_prefix,
                max_word_length,
                unk_scope,
                special_tokens: special_tokens.collect::<Result<_, _>>()?,
                prefix_ids,
                suffix_ids,
            };
            Encoder::new(tokens, options)
        });
        Ok(PyEncoder(encoder?))
    }

    #[pyo3(signature = (texts, *, add_special_tokens, threads=1))]
    fn encode(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        add_special_tokens: bool,
        threads: usize,
    ) -> PyResult<(ArrowArray, u64)> {
        let texts = import(texts)?;
        run(py, || {
            let rows = texts.len().div_ceil(threads.max(1)).max(1);
            let parts: Vec<_> = (0..texts.len())
                .step_by(rows)
                .map(|start| texts.slice(start, rows.min(texts.len() - start)))
                .collect();
            let encoded = std::thread::scope(|scope| {
                let work = |part: &ArrayRef| encode_part(&self.0, part, add_special_tokens);
                let (first, rest) = match parts.split_first() {
                    Some((first, rest)) => (Some(first), rest),
                    None => (None, &[][..]),
                };
                let others: Vec<_> =
                    rest.iter().map(|part| scope.spawn(move || work(part))).collect();
                let first = first.map(work).into_iter();
                let others = others.into_iter().map(|other| match other.join() {
                    Ok(result) => result,
                    Err(panic) => std::panic::resume_unwind(panic),
                });
                first.chain(others).collect::<Result<Vec<_>, _>>()
            })?;
            let unknown = self.0.unk_id();
            let ids = encoded.iter().flat_map(|part| &part.values);
            let unknown = ids.filter(|&&id| id == unknown).count() as u64;
            let nulls = texts.logical_nulls();
            Ok((ArrowArray(arrow::ids(encoded, nulls)?), unknown))
        })
    }

    #[pyo3(signature = (texts, *, add_special_tokens))]
    fn encode_with_offsets(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        add_special_tokens: bool,
    ) -> PyResult<(ArrowArray, ArrowArray, u64)> {
        let texts = import(texts)?;
        run(py, || {
            let mut rows = Vec::with_capacity(texts.len());
            arrow::each_row(&texts, |row| {
                rows.push(row.map_or_else(Vec::new, |row| {
                    self.0.encode_with_offsets(&utf8::repair(row).0, add_special_tokens)
                }));
            })?;
            let unknown = self.0.unk_id();
            let unknown = rows.iter().flatten().filter(|piece| piece.id == unknown).count() as u64;
            let (ids, offsets) = arrow::pieces(&rows, texts.logical_nulls())?;
            Ok((ArrowArray(ids), ArrowArray(offsets), unknown))
        })
    }
}

fn encode_part(
    encoder: &Encoder,
    texts: &ArrayRef,
    add_special_tokens: bool,
) -> Result<crate::encode::IdRows, String> {
    let mut rows = Vec::with_capacity(texts.len());
    arrow::each_row(texts, |row| rows.push(row))?;
    Ok(encoder.encode(rows.into_iter(), add_special_tokens))
}

/// Counts of the characters of words, by whether they begin a word.
#[pyfunction]
#[pyo3(signature = (words, *, first_rank, min_word_count, max_word_length))]
fn symbol_counts(
    py: Python<'_>,
    words: &Bound<'_, PyAny>,
    first_rank: u64,
    min_word_count: u64,
    max_word_length: usize,
) -> PyResult<ArrowArray> {
    let table = import_batch(words)?;
    let limits = WordLimits { min_count: min_word_count, max_length: max_word_length };
    run(py, || {
        let mut symbols = SymbolCounts::default();
        let table = arrow::WordTable::new(&table)?;
        for (rank, (word, count)) in (first_rank..).zip(table.rows()?) {
            if limits.admit(word, count) {
                count_symbols(word, count, rank, &mut symbols)?;
            }
        }
        Ok(arrow::symbol_batch(&symbols)?.into())
    })
}

#[pyclass(name = "Splitter", frozen)]
struct PySplitter {
    splitter: Splitter,
    limits: WordLimits,
}

#[pymethods]
impl PySplitter {
    #[new]
    #[pyo3(signature = (alphabet, merges, *, continuing_prefix, min_word_count, max_word_length))]
    fn new(
        alphabet: Vec<(String, u32)>,
        merges: Option<&Bound<'_, PyAny>>,
        continuing_prefix: &str,
        min_word_count: u64,
        max_word_length: usize,
    ) -> PyResult<Self> {
        let merges = match merges {
            Some(merges) => {
                arrow::read_merges(&import_batch(merges)?).map_err(PyValueError::new_err)?
            }
            None => Vec::new(),
        };
        let symbols = alphabet.iter().map(|(symbol, id)| (symbol.as_str(), *id));
        let splitter = Splitter::new(symbols, continuing_prefix, &merges);
        let limits = WordLimits { min_count: min_word_count, max_length: max_word_length };
        Ok(PySplitter { splitter, limits })
    }

    /// The splits of the words of a table whose first word has rank `first_rank`.
    fn split(
        &self,
        py: Python<'_>,
        words: &Bound<'_, PyAny>,
        first_rank: u64,
    ) -> PyResult<ArrowArray> {
        let table = import_batch(words)?;
        run(py, || {
            let mut splits = Splits::default();
            let mut symbols = Vec::new();
            let table = arrow::WordTable::new(&table)?;
            for (rank, (word, count)) in (first_rank..).zip(table.rows()?) {
                if self.limits.admit(word, count) {
                    self.splitter.split(word, &mut symbols);
                    splits.push(rank, count, &symbols);
                }
            }
            Ok(arrow::splits_batch(splits)?.into())
        })
    }
}

/// Counts of tokens and pairs over splits, from splits or from other counts.
#[pyclass]
#[derive(Default)]
struct PairCounter {
    counts: Aggregate,
}

#[pymethods]
impl PairCounter {
    #[new]
    fn new() -> Self {
        PairCounter::default()
    }

    fn add_splits(&mut self, py: Python<'_>, splits: &Bound<'_, PyAny>) -> PyResult<()> {
        let splits = import_batch(splits)?;
        run(py, || {
            for (rank, count, symbols) in arrow::read_splits(&splits)?.iter() {
                self.counts.add_word(rank, count, symbols)?;
            }
            Ok(())
        })
    }

    fn add_counts(
        &mut self,
        py: Python<'_>,
        unigrams: &Bound<'_, PyAny>,
        pairs: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (unigrams, pairs) = (import_batch(unigrams)?, import_batch(pairs)?);
        run(py, || arrow::add_counts(&mut self.counts, &unigrams, &pairs))
    }

    fn unigrams(&self, py: Python<'_>) -> PyResult<ArrowArray> {
        run(py, || Ok(arrow::unigram_batch(&self.counts)?.into()))
    }

    fn pairs(&self, py: Python<'_>) -> PyResult<ArrowArray> {
        run(py, || Ok(arrow::pair_batch(&self.counts)?.into()))
    }
}

/// The words of splits that contain one of the pairs.
#[pyfunction]
fn words_with_pairs(
    py: Python<'_>,
    splits: &Bound<'_, PyAny>,
    pairs: &Bound<'_, PyAny>,
) -> PyResult<ArrowArray> {
    let (splits, pairs) = (import_batch(splits)?, import_batch(pairs)?);
    run(py, || {
        let pairs: FxHashSet<_> = arrow::read_pairs(&pairs)?.into_iter().collect();
        Ok(arrow::splits_batch(arrow::read_splits(&splits)?.containing(&pairs))?.into())
    })
}

#[pyclass(name = "Trainer")]
struct PyTrainer(Trainer);

#[pymethods]
impl PyTrainer {
    #[new]
    #[pyo3(signature = (tokens, *, vocab_size, criterion, min_pair_count, max_token_length,
        continuing_prefix, support=0))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        tokens: Vec<String>,
        vocab_size: usize,
        criterion: &str,
        min_pair_count: Option<u64>,
        max_token_length: usize,
        continuing_prefix: String,
        support: u64,
    ) -> PyResult<Self> {
        let criterion = match criterion {
            "pmi" => Criterion::Pmi,
            "likelihood" => Criterion::Likelihood,
            "frequency" => Criterion::Frequency,
            other => return Err(unknown("criterion", other, "pmi, likelihood or frequency")),
        };
        let options = TrainOptions {
            vocab_size,
            criterion,
            min_pair_count,
            max_token_length,
            continuing_prefix,
        };
        let mut trainer = Trainer::new(tokens, options);
        if support > 0 {
            trainer.set_support(support);
        }
        Ok(PyTrainer(trainer))
    }

    #[getter]
    fn support(&self) -> u64 {
        self.0.support()
    }

    #[getter]
    fn tokens(&self) -> Vec<String> {
        self.0.tokens().iter().map(|token| token.to_string()).collect()
    }

    #[getter]
    fn vocab_size(&self) -> usize {
        self.0.tokens().len()
    }

    fn start_round(
        &mut self,
        py: Python<'_>,
        unigrams: &Bound<'_, PyAny>,
        pairs: &Bound<'_, PyAny>,
        splits: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (unigrams, pairs) = (import_batch(unigrams)?, import_batch(pairs)?);
        let splits = import_batches(&splits)?;
        run(py, || {
            let mut counts = Aggregate::default();
            arrow::add_counts(&mut counts, &unigrams, &pairs)?;
            let splits = splits.iter().map(arrow::read_splits).collect::<Result<_, _>>()?;
            Ok(self.0.start_round(&counts, splits)?)
        })
    }

    /// Makes up to `most` merges: "running", "round over" or "done".
    fn run(&mut self, py: Python<'_>, most: usize) -> PyResult<&'static str> {
        run(py, || {
            Ok(match self.0.run(most) {
                Status::Running => "running",
                Status::RoundOver => "round over",
                Status::Done => "done",
            })
        })
    }

    /// The pairs whose words a round should gather.
    fn hot_pairs(
        &mut self,
        py: Python<'_>,
        unigrams: &Bound<'_, PyAny>,
        pairs: &Bound<'_, PyAny>,
        budget: u64,
    ) -> PyResult<ArrowArray> {
        let (unigrams, pairs) = (import_batch(unigrams)?, import_batch(pairs)?);
        run(py, || {
            let mut counts = Aggregate::default();
            arrow::add_counts(&mut counts, &unigrams, &pairs)?;
            let mut hot: Vec<_> = self.0.hot_pairs(&counts, budget).into_iter().collect();
            hot.sort_unstable();
            let left = arrow::to_uint32(hot.iter().map(|pair| pair.0));
            let right = arrow::to_uint32(hot.iter().map(|pair| pair.1));
            Ok(arrow::batch(vec![("left", left), ("right", right)])?.into())
        })
    }

    /// `left, right, token: uint32, score: double, pair_count, left_count, right_count: int64`.
    fn merges(&self, py: Python<'_>) -> PyResult<ArrowArray> {
        run(py, || Ok(arrow::merge_batch(self.0.merges())?.into()))
    }
}

#[pymodule]
fn _kernel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // `run` reports panics of this module; Rust's own report would come on top of it.
    std::panic::set_hook(Box::new(|_| {}));
    module.add_class::<WordCounter>()?;
    module.add_class::<PyEncoder>()?;
    module.add_class::<PySplitter>()?;
    module.add_class::<PairCounter>()?;
    module.add_class::<PyTrainer>()?;
    module.add_function(wrap_pyfunction!(merge_word_counts, module)?)?;
    module.add_function(wrap_pyfunction!(repair_utf8, module)?)?;
    module.add_function(wrap_pyfunction!(split_lines, module)?)?;
    module.add_function(wrap_pyfunction!(pre_tokenize, module)?)?;
    module.add_function(wrap_pyfunction!(symbol_counts, module)?)?;
    module.add_function(wrap_pyfunction!(words_with_pairs, module)?)?;
    Ok(())
}
