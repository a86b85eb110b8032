//! The Python module `wordpiece_core._kernel`: nothing but conversions.
//!
//! Arrow data comes and goes through the Arrow PyCapsule interface, without a copy. The work is
//! done with the GIL released, and a panic becomes a RuntimeError.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::types::{Int32Type, UInt16Type};
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, StringArray, StructArray};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use rustc_hash::FxHashMap;

use crate::arrow::IdType;
use crate::blocks::encode_blocks;
use crate::encode::{Encoder, EncoderOptions};
use crate::error::{Error, Result, caught, note_panic};
use crate::matcher::UnkScope;
use crate::pack::{PackOptions, Packer};
use crate::round::Words;
use crate::rows::{Columns, RowOptions, Texts, Truncation};
use crate::run_sizes::RunSizes;
use crate::runs::{PairLevels, Runs};
use crate::score::Criterion;
use crate::splits::{
    Aggregate, PairCount, PairCounts, Splits, Splitter, SymbolCounts, WordLimits, count_symbols,
    pair_hash,
};
use crate::text::{Text, TextOptions};
use crate::tokens::Tokens;
use crate::train::{Status, TrainOptions, Trainer};
use crate::watch::Limit;
use crate::{arrow, count, footer, import, utf8, words};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

mod exceptions {
    pyo3::import_exception!(wordpiece_core.errors, InputError);
    pyo3::import_exception!(wordpiece_core.errors, OptionError);
}

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        let message = error.to_string();
        match error {
            Error::Data(_) | Error::Overflow => exceptions::InputError::new_err(message),
            Error::Option(_) => exceptions::OptionError::new_err(message),
            Error::Type(_) => PyTypeError::new_err(message),
            Error::Panic(_) => PyRuntimeError::new_err(message),
        }
    }
}

/// Runs `work` with the GIL released; errors and panics become Python exceptions.
fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    Ok(py.detach(|| caught(work))?)
}

/// Takes an Arrow array over from a Python object, and checks it.
fn import(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    check_buffers(object)?;
    let py = object.py();
    let Some(export) = object.getattr_opt("__arrow_c_array__")? else {
        let kind = object.get_type().to_string();
        return Err(Error::Type(format!("expected an Arrow array, not {kind}")).into());
    };
    let capsules = export.call0()?;
    let pair = capsules.extract::<(Bound<'_, PyCapsule>, Bound<'_, PyCapsule>)>();
    let pointers = pair.and_then(|(schema, array)| {
        let schema_pointer = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
        Ok((schema_pointer, array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>()))
    });
    let Ok((schema, array)) = pointers else {
        return Err(Error::Type("__arrow_c_array__ gives no capsules of Arrow's".into()).into());
    };
    // SAFETY: the names of the capsules say that they point to these structures, valid while the
    // capsules live, which is until this function returns. `from_raw` moves the array out and marks
    // what it leaves behind as released.
    let (schema, array) = unsafe { (schema.as_ref(), FFI_ArrowArray::from_raw(array.as_ptr())) };
    // SAFETY: as above; who made the structures is trusted with the pointers in them.
    let data_type = unsafe { import::data_type(schema) }?;
    // SAFETY: the same.
    run(py, || unsafe { import::array(array, &data_type) })
}

/// Of an array of pyarrow's: checks that its buffers are as large as they must be. Only it knows
/// their sizes.
fn check_buffers(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let module = object.get_type().module();
    if !module.is_ok_and(|module| module.to_str().is_ok_and(|name| name.starts_with("pyarrow"))) {
        return Ok(());
    }
    let Some(validate) = object.getattr_opt("validate")? else { return Ok(()) };
    let checked = validate.call0();
    let invalid = |error: PyErr| match error.is_instance_of::<PyValueError>(object.py()) {
        true => Error::data(format!("breaks Arrow's rules: {}", error.value(object.py()))).into(),
        false => error,
    };
    checked.map(|_| ()).map_err(invalid)
}

fn import_batch(object: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let array = import(object)?;
    let columns = array.as_any().downcast_ref::<StructArray>();
    let columns = columns.filter(|columns| columns.null_count() == 0); // as `from` demands
    let wrong = || Error::Type("expected a record batch".into()).into();
    columns.map(RecordBatch::from).ok_or_else(wrong)
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
    Error::option(format!("{option} is {value:?}, not {choices}")).into()
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
    replaced: u64,
}

#[pymethods]
impl WordCounter {
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
        let options = text_options(
            clean_text,
            handle_chinese_chars,
            strip_accents,
            lowercase,
            pre_tokenizer,
        )?;
        let counter = count::WordCounter::new(options, most_bytes);
        Ok(WordCounter { counter, rows: 0, nulls: 0, bytes: 0, replaced: 0 })
    }

    #[getter]
    fn memory(&self) -> usize {
        self.counter.memory()
    }

    #[getter]
    fn is_full(&self) -> bool {
        self.counter.is_full()
    }

    #[pyo3(signature = (texts, groups=None))]
    fn count(
        &mut self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        groups: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<usize> {
        let texts = import(texts)?;
        let groups = groups.map(import).transpose()?;
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
            arrow::each_row(&texts, |text| {
                if !self.counter.is_full() {
                    self.count_row(names.get(row).and_then(Option::as_deref), text);
                    row += 1;
                }
            })?;
            Ok(row)
        })
    }

    fn add(&mut self, py: Python<'_>, words: &Bound<'_, PyAny>) -> PyResult<()> {
        let words = import_batch(words)?;
        run(py, || {
            let words = arrow::WordTable::new(&words)?;
            words.rows()?.into_iter().for_each(|(word, count)| self.counter.add(word, count));
            Ok(())
        })
    }

    fn take(&mut self, py: Python<'_>, partitions: usize) -> PyResult<Vec<Taken>> {
        run(py, || {
            let lists = self.counter.take(partitions.max(1))?.into_iter();
            lists
                .map(|list| {
                    let batch = arrow::word_table(list.words.iter())?;
                    let group = list.group.map(String::from);
                    Ok((list.partition, group, list.words.total()?, batch.into()))
                })
                .collect()
        })
    }
}

/// A partition, a group, the sum of the counts, and the words with theirs.
type Taken = (usize, Option<String>, u64, ArrowArray);

impl WordCounter {
    fn count_row(&mut self, group: Option<&str>, text: Option<&[u8]>) {
        self.rows += 1;
        let Some(text) = text else {
            self.nulls += 1;
            return;
        };
        let (repaired, replaced) = utf8::repair(text);
        self.bytes += text.len() as u64;
        self.replaced += replaced;
        self.counter.count(group, &repaired);
    }
}

fn word_tables(batches: &[RecordBatch]) -> Result<Vec<arrow::WordTable>> {
    batches.iter().map(arrow::WordTable::new).collect()
}

#[pyfunction]
fn merge_word_counts(py: Python<'_>, batches: Vec<Bound<'_, PyAny>>) -> PyResult<ArrowArray> {
    let batches = import_batches(&batches)?;
    run(py, || {
        let mut words = words::Words::default();
        for table in word_tables(&batches)? {
            table.rows()?.into_iter().for_each(|(word, count)| words.push(word, count));
        }
        words.sort_and_sum()?;
        let mut rows: Vec<_> = words.iter().collect();
        words::by_count(&mut rows);
        Ok(arrow::word_table(rows.into_iter())?.into())
    })
}

#[pyfunction]
fn merge_sorted_words(py: Python<'_>, batches: Vec<Bound<'_, PyAny>>) -> PyResult<ArrowArray> {
    let batches = import_batches(&batches)?;
    run(py, || {
        let tables = word_tables(&batches)?;
        let lists = tables.iter().map(|table| Ok(table.rows()?.into_iter()));
        let rows = words::side_by_side(lists.collect::<Result<_>>()?);
        let sums = words::sum(rows.map(|(word, count, _)| (word, count)))?;
        Ok(arrow::word_table(sums.into_iter())?.into())
    })
}

#[pyfunction]
#[pyo3(signature = (batches, weights, *, min_count))]
fn weigh_sorted_words(
    py: Python<'_>,
    batches: Vec<Bound<'_, PyAny>>,
    weights: Vec<u128>,
    min_count: u64,
) -> PyResult<ArrowArray> {
    let batches = import_batches(&batches)?;
    if weights.len() != batches.len() {
        return Err(Error::option("give a weight for every batch").into());
    }
    run(py, || {
        let tables = word_tables(&batches)?;
        let lists = tables.iter().map(|table| Ok(table.rows()?.into_iter()));
        let rows = words::side_by_side(lists.collect::<Result<_>>()?);
        let mut sums = words::weighted_sum(rows, &weights)?;
        sums.retain(|&(_, count)| count >= min_count);
        words::by_count(&mut sums);
        Ok(arrow::word_table(sums.into_iter())?.into())
    })
}

#[pyfunction]
fn draw_words(py: Python<'_>, words: &Bound<'_, PyAny>, every: u64) -> PyResult<ArrowArray> {
    let words = import_batch(words)?;
    run(py, || {
        let table = arrow::WordTable::new(&words)?;
        let drawn = table.rows()?.into_iter().filter(|(word, _)| words::is_drawn(word, every));
        Ok(arrow::word_table(drawn.collect::<Vec<_>>().into_iter())?.into())
    })
}

/// Python strings, or None, as an Arrow array. (Arrow's own way would load pandas.)
#[pyfunction]
fn string_array(texts: Vec<Option<PyBackedStr>>) -> PyResult<ArrowArray> {
    let texts: Vec<_> = texts.iter().map(Option::as_deref).collect();
    let bytes: usize = texts.iter().flatten().map(|text| text.len()).sum();
    if bytes > i32::MAX as usize {
        let message = format!("{bytes} bytes of text are too many for one batch");
        return Err(Error::data(message).into());
    }
    Ok(ArrowArray(Arc::new(arrow::strings(texts.into_iter()))))
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

/// The paths of the encrypted columns of a Parquet file, by the end of it.
#[pyfunction]
fn encrypted_columns(py: Python<'_>, tail: &[u8]) -> PyResult<Vec<String>> {
    run(py, || footer::encrypted_columns(tail))
}

#[pyclass(name = "Encoder", frozen)]
struct PyEncoder {
    encoder: Encoder,
    /// [CLS] and [SEP], and [PAD], as far as the vocabulary has them.
    added: Option<[u32; 2]>,
    pad_id: Option<u32>,
}

#[pymethods]
impl PyEncoder {
    #[new]
    #[pyo3(signature = (vocab, *, clean_text, handle_chinese_chars, strip_accents, lowercase,
        pre_tokenizer, unk_token, continuing_prefix, max_word_length, unk_scope, special_tokens))]
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
        run(py, || {
            let tokens = vocab.iter().map(String::as_str).zip(0..);
            let ids: FxHashMap<&str, u32> = tokens.clone().collect();
            let id = |token: &str| ids.get(token).copied();
            let known = |token: &str| {
                id(token).ok_or_else(|| Error::option(format!("the vocabulary has no {token}")))
            };
            let special_tokens = special_tokens.into_iter().map(|t| known(&t).map(|id| (t, id)));
            let options = EncoderOptions {
                text,
                unk_id: known(unk_token)?,
                continuing_prefix,
                max_word_length,
                unk_scope,
                special_tokens: special_tokens.collect::<Result<_>>()?,
            };
            let encoder = Encoder::new(tokens, options)?;
            let added = id("[CLS]").zip(id("[SEP]")).map(|(cls, sep)| [cls, sep]);
            Ok(PyEncoder { encoder, added, pad_id: id("[PAD]") })
        })
    }

    #[pyo3(signature = (texts, pairs=None, *, add_special_tokens, split_special_tokens, max_length,
        truncation, stride, padding, columns, id_type, threads))]
    #[allow(clippy::too_many_arguments)]
    fn encode(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        pairs: Option<&Bound<'_, PyAny>>,
        add_special_tokens: bool,
        split_special_tokens: bool,
        max_length: Option<usize>,
        truncation: &str,
        stride: Option<usize>,
        padding: bool,
        columns: Vec<String>,
        id_type: &str,
        threads: usize,
    ) -> PyResult<(Vec<ArrowArray>, usize, usize)> {
        if threads == 0 {
            return Err(Error::option("threads: 0 is not a whole number from 1").into());
        }
        let texts = import(texts)?;
        let pairs = pairs.map(import).transpose()?;
        let options = RowOptions {
            added: self.added.filter(|_| add_special_tokens),
            max_length,
            truncation: match truncation {
                "longest_first" => Truncation::LongestFirst,
                "only_first" => Truncation::OnlyFirst,
                "only_second" => Truncation::OnlySecond,
                other => return Err(unknown("truncation", other, "longest_first, only_...")),
            },
            stride,
            pad_id: self.pad_id.filter(|_| padding),
            split_special_tokens,
            columns: wanted_columns(&columns)?,
        };
        let id_type = match id_type {
            "int32" => IdType::Int32,
            "uint16" => IdType::UInt16,
            other => return Err(unknown("id_type", other, "int32 or uint16")),
        };
        run(py, || {
            let texts = text_rows(&texts, pairs.as_ref())?;
            let blocks = encode_blocks(&self.encoder, &options, &texts, threads, |rows| {
                let (tokens, unknown) = (rows.tokens, self.encoder.unk_id());
                let unknown = rows.ids.iter().filter(|&&id| id == unknown).count();
                Ok((arrow::encoded(rows, id_type)?, tokens, unknown))
            })?;
            let tokens = blocks.iter().map(|(_, tokens, _)| tokens).sum();
            let unknown = blocks.iter().map(|(.., unknown)| unknown).sum();
            Ok((blocks.into_iter().map(|(batch, ..)| batch.into()).collect(), tokens, unknown))
        })
    }
}

fn wanted_columns(names: &[String]) -> PyResult<Columns> {
    let mut columns = Columns::default();
    for name in names {
        *match name.as_str() {
            "attention_mask" => &mut columns.attention_mask,
            "token_type_ids" => &mut columns.token_type_ids,
            "special_tokens_mask" => &mut columns.special_tokens_mask,
            "offset_mapping" => &mut columns.offset_mapping,
            "word_ids" => &mut columns.word_ids,
            "num_tokens" => &mut columns.num_tokens,
            other => return Err(unknown("columns", other, "columns of encoded texts")),
        } = true;
    }
    Ok(columns)
}

/// Texts, each with the second one of its pair, if there are pairs.
fn text_rows<'a>(texts: &'a ArrayRef, pairs: Option<&'a ArrayRef>) -> Result<Vec<Texts<'a>>> {
    let mut rows = Vec::with_capacity(texts.len());
    arrow::each_row(texts, |text| rows.push((text, None)))?;
    if let Some(pairs) = pairs {
        if pairs.len() != rows.len() {
            let message = format!("{} texts, but {} second ones", rows.len(), pairs.len());
            return Err(Error::data(message));
        }
        let mut left = rows.iter_mut();
        arrow::each_row(pairs, |pair| {
            if let Some(row) = left.next() {
                row.1 = Some(pair);
            }
        })?;
    }
    Ok(rows)
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
            Some(merges) => arrow::read_merges(&import_batch(merges)?)?,
            None => Vec::new(),
        };
        let merges: Vec<_> = merges.iter().map(|m| (m.left, m.right, m.token)).collect();
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
                    splits.push((rank, 0), count, &symbols);
                }
            }
            Ok(arrow::splits_batch(splits)?.into())
        })
    }

    /// Splits after the merges, from splits before them.
    fn merge(&self, py: Python<'_>, splits: &Bound<'_, PyAny>) -> PyResult<ArrowArray> {
        let splits = import_batch(splits)?;
        run(py, || {
            let mut merged = Splits::default();
            let mut symbols = Vec::new();
            for (first, count, split) in arrow::read_splits(&splits)?.iter() {
                symbols.clear();
                symbols.extend_from_slice(split);
                self.splitter.merge(&mut symbols);
                merged.push(first, count, &symbols);
            }
            Ok(arrow::splits_batch(merged)?.into())
        })
    }
}

/// Counts of tokens and pairs over splits, from splits or from other counts.
#[pyclass]
struct PairCounter {
    counts: Aggregate,
}

#[pymethods]
impl PairCounter {
    #[new]
    fn new() -> Self {
        PairCounter { counts: Aggregate::default() }
    }

    /// Tokens in the splits added, each split's once.
    #[getter]
    fn symbols(&self) -> u64 {
        self.counts.symbols
    }

    /// Bytes that the table of pairs takes, and taking it out.
    #[getter]
    fn memory(&self) -> usize {
        self.counts.pairs.capacity() * size_of::<((u32, u32), PairCount)>() * 3
    }

    fn add_splits(&mut self, py: Python<'_>, splits: &Bound<'_, PyAny>) -> PyResult<()> {
        let splits = import_batch(splits)?;
        run(py, || {
            for (first, count, symbols) in arrow::read_splits(&splits)?.iter() {
                self.counts.add_split(first, count, symbols)?;
            }
            Ok(())
        })
    }

    fn unigrams(&self, py: Python<'_>) -> PyResult<ArrowArray> {
        run(py, || Ok(arrow::unigram_batch(&self.counts.unigrams)?.into()))
    }

    /// Takes the counts of pairs out: (partition, batch). The partition depends on the pair alone.
    fn take_pairs(
        &mut self,
        py: Python<'_>,
        partitions: usize,
    ) -> PyResult<Vec<(usize, ArrowArray)>> {
        run(py, || {
            let mut parts = vec![Vec::new(); partitions.max(1)];
            for (pair, count) in std::mem::take(&mut self.counts.pairs) {
                let partition = (pair_hash(pair) >> 32) as usize % parts.len();
                parts[partition].push((pair, count));
            }
            let mut batches = Vec::new();
            for (partition, mut rows) in parts.into_iter().enumerate() {
                rows.sort_unstable_by_key(|(pair, _)| *pair);
                if !rows.is_empty() {
                    batches.push((partition, arrow::pair_batch(&rows)?.into()));
                }
            }
            Ok(batches)
        })
    }
}

/// Sums counts of equal tokens.
#[pyfunction]
fn add_unigrams(py: Python<'_>, batches: Vec<Bound<'_, PyAny>>) -> PyResult<ArrowArray> {
    let batches = import_batches(&batches)?;
    run(py, || {
        let mut sums = Aggregate::default();
        for batch in &batches {
            for (token, count) in arrow::read_unigrams(batch)? {
                sums.add_unigram(token, count)?;
            }
        }
        Ok(arrow::unigram_batch(&sums.unigrams)?.into())
    })
}

fn sum_of_pairs(batches: &[RecordBatch]) -> Result<PairCounts> {
    let mut sums = PairCounts::default();
    batches.iter().try_for_each(|batch| arrow::add_pairs(&mut sums, batch))?;
    Ok(sums)
}

/// Sums counts of equal pairs.
#[pyfunction]
fn add_pairs(py: Python<'_>, batches: Vec<Bound<'_, PyAny>>) -> PyResult<ArrowArray> {
    let batches = import_batches(&batches)?;
    run(py, || {
        let mut rows: Vec<_> = sum_of_pairs(&batches)?.into_iter().collect();
        rows.sort_unstable_by_key(|(pair, _)| *pair);
        Ok(arrow::pair_batch(&rows)?.into())
    })
}

/// Joins limits of parts of the pairs.
#[pyfunction]
fn join_limits(py: Python<'_>, batches: Vec<Bound<'_, PyAny>>) -> PyResult<ArrowArray> {
    let batches = import_batches(&batches)?;
    run(py, || {
        let mut joined = FxHashMap::default();
        for batch in &batches {
            for (token, limit) in arrow::read_limits(batch)? {
                joined.entry(token).or_insert(Limit::NONE).join(&limit);
            }
        }
        Ok(arrow::limit_batch(&joined)?.into())
    })
}

/// The pairs that need not be cut.
#[pyclass(frozen)]
struct Candidates {
    levels: PairLevels,
}

#[pymethods]
impl Candidates {
    #[new]
    fn new(candidates: &Bound<'_, PyAny>, whole_splits: bool) -> PyResult<Self> {
        let levels = arrow::read_pair_levels(&import_batch(candidates)?)?;
        Ok(Candidates { levels: PairLevels { levels, whole_splits } })
    }
}

/// How many tokens the distinct runs of splits have at every level.
#[pyclass(name = "RunSizes")]
struct PyRunSizes(RunSizes);

#[pymethods]
impl PyRunSizes {
    #[new]
    fn new(budget: u64, level: u16) -> Self {
        PyRunSizes(RunSizes::new(budget, level))
    }

    /// The loosest level at which the runs are within the budget.
    #[getter]
    fn level(&self) -> u16 {
        self.0.level()
    }

    fn add_splits(
        &mut self,
        py: Python<'_>,
        splits: &Bound<'_, PyAny>,
        candidates: &Bound<'_, Candidates>,
    ) -> PyResult<()> {
        let (splits, candidates) = (import_batch(splits)?, candidates.get());
        run(py, || {
            self.0.add_splits(&arrow::read_splits(&splits)?, &candidates.levels);
            Ok(())
        })
    }

    fn add_sample(&mut self, py: Python<'_>, sample: &Bound<'_, PyAny>) -> PyResult<()> {
        let sample = import_batch(sample)?;
        run(py, || arrow::add_sample(&mut self.0, &sample))
    }

    fn sample(&self, py: Python<'_>) -> PyResult<ArrowArray> {
        run(py, || Ok(arrow::sample_batch(&self.0)?.into()))
    }
}

/// The distinct runs of splits.
#[pyclass(name = "Runs")]
struct PyRuns {
    runs: Runs,
}

#[pymethods]
impl PyRuns {
    #[new]
    fn new() -> Self {
        PyRuns { runs: Runs::default() }
    }

    fn add_splits(
        &mut self,
        py: Python<'_>,
        splits: &Bound<'_, PyAny>,
        candidates: &Bound<'_, Candidates>,
        level: u16,
    ) -> PyResult<()> {
        let (splits, candidates) = (import_batch(splits)?, candidates.get());
        run(py, || {
            let splits = arrow::read_splits(&splits)?;
            Ok(self.runs.add_splits(&splits, &candidates.levels, level)?)
        })
    }

    /// Adds what `take` gave of other runs.
    fn add_runs(&mut self, py: Python<'_>, runs: &Bound<'_, PyAny>) -> PyResult<()> {
        let runs = import_batch(runs)?;
        run(py, || Ok(self.runs.add_runs(&arrow::read_splits(&runs)?)?))
    }

    /// Takes the runs out, in the order of their places, `most` in a batch.
    fn take(&mut self, py: Python<'_>, most: usize) -> PyResult<Vec<ArrowArray>> {
        run(py, || {
            let parts = self.runs.take_sorted(most.max(1));
            parts.map(|part| Ok(arrow::splits_batch(part)?.into())).collect()
        })
    }
}

#[pyclass(name = "Trainer")]
struct PyTrainer {
    trainer: Trainer,
    waiting: Words,
}

#[pymethods]
impl PyTrainer {
    #[new]
    #[pyo3(signature = (tokens, *, vocab_size, criterion, min_pair_count, max_token_length,
        continuing_prefix))]
    fn new(
        tokens: Vec<String>,
        vocab_size: usize,
        criterion: &str,
        min_pair_count: Option<u64>,
        max_token_length: usize,
        continuing_prefix: String,
    ) -> PyResult<Self> {
        let criterion = match criterion {
            "pmi" => Criterion::Pmi,
            "likelihood" => Criterion::Likelihood,
            "frequency" => Criterion::Frequency,
            other => return Err(unknown("criterion", other, "pmi, likelihood or frequency")),
        };
        let tokens = Tokens::new(tokens, continuing_prefix, max_token_length);
        let trainer = Trainer::new(tokens, TrainOptions { vocab_size, criterion, min_pair_count });
        Ok(PyTrainer { trainer, waiting: Words::default() })
    }

    /// Whether rounds under a budget watch the best pairs, and hold whole splits.
    #[getter]
    fn watches(&self) -> bool {
        self.trainer.watches()
    }

    #[getter]
    fn support(&self) -> u64 {
        self.trainer.support()
    }

    #[getter]
    fn tokens(&self) -> Vec<String> {
        self.trainer.tokens().strings().iter().map(|token| token.to_string()).collect()
    }

    #[getter]
    fn vocab_size(&self) -> usize {
        self.trainer.tokens().len()
    }

    /// Takes up where another trainer of the same training was.
    fn restore(&mut self, py: Python<'_>, merges: &Bound<'_, PyAny>, support: u64) -> PyResult<()> {
        let merges = import_batch(merges)?;
        run(py, || self.trainer.restore(arrow::read_merges(&merges)?, support))
    }

    /// Adds splits or runs to the next round, in the order of their places.
    fn add_splits(&mut self, py: Python<'_>, splits: &Bound<'_, PyAny>) -> PyResult<()> {
        let splits = import_batch(splits)?;
        run(py, || {
            let splits = arrow::read_splits(&splits)?;
            self.trainer.check_splits(&splits)?;
            self.waiting.extend(&splits)
        })
    }

    /// Begins a round over all splits, which have been added.
    fn start_whole_round(&mut self, py: Python<'_>) -> PyResult<()> {
        let words = std::mem::take(&mut self.waiting);
        run(py, || self.trainer.start_whole_round(words))
    }

    /// Begins a round over the runs that have been added.
    #[pyo3(signature = (unigrams, *, largest, level, candidates, limits=None))]
    fn start_round(
        &mut self,
        py: Python<'_>,
        unigrams: &Bound<'_, PyAny>,
        largest: u64,
        level: u16,
        candidates: &Bound<'_, PyAny>,
        limits: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (unigrams, candidates) = (import_batch(unigrams)?, import_batch(candidates)?);
        let limits = limits.map(import_batch).transpose()?;
        let words = std::mem::take(&mut self.waiting);
        run(py, || {
            let unigrams = arrow::unigrams_by_token(&unigrams, self.trainer.tokens().len())?;
            let candidates = arrow::read_candidates(&candidates)?;
            if limits.is_none() && self.trainer.watches() {
                let message = "a round that watches pairs needs the limits of the others";
                return Err(Error::option(message));
            }
            let limits = limits.as_ref().map_or(Ok(Vec::new()), arrow::read_limits)?;
            self.trainer.start_round(words, unigrams, largest, level, &candidates, &limits)
        })
    }

    /// Makes up to `most` merges: "running", "round over" or "done".
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

    /// The pairs that a round may leave whole, and the level up to which all are there.
    #[pyo3(signature = (unigrams, pairs, *, largest, most, loosest=None))]
    fn candidates(
        &self,
        py: Python<'_>,
        unigrams: &Bound<'_, PyAny>,
        pairs: Vec<Bound<'_, PyAny>>,
        largest: u64,
        most: usize,
        loosest: Option<u16>,
    ) -> PyResult<(ArrowArray, u16)> {
        let (unigrams, pairs) = (import_batch(unigrams)?, import_batches(&pairs)?);
        run(py, || {
            let unigrams = arrow::unigrams_by_token(&unigrams, self.trainer.tokens().len())?;
            let pairs = sum_of_pairs(&pairs)?;
            let chosen = self.trainer.candidates(&unigrams, &pairs, largest, most, loosest)?;
            Ok((arrow::candidate_batch(&chosen.pairs)?.into(), chosen.loosest))
        })
    }

    /// The limits of the pairs that are no candidates, by token.
    #[pyo3(signature = (unigrams, pairs, *, candidates, largest))]
    fn limits(
        &self,
        py: Python<'_>,
        unigrams: &Bound<'_, PyAny>,
        pairs: Vec<Bound<'_, PyAny>>,
        candidates: &Bound<'_, PyAny>,
        largest: u64,
    ) -> PyResult<ArrowArray> {
        let (unigrams, pairs) = (import_batch(unigrams)?, import_batches(&pairs)?);
        let known = import_batch(candidates)?;
        run(py, || {
            let unigrams = arrow::unigrams_by_token(&unigrams, self.trainer.tokens().len())?;
            let (pairs, known) = (sum_of_pairs(&pairs)?, arrow::read_pair_levels(&known)?);
            let limits = self.trainer.limits(&unigrams, &pairs, &known, largest)?;
            Ok(arrow::limit_batch(&limits)?.into())
        })
    }

    /// The merges from step `first` (from 0) on: `left, right, token: uint32, score: double,
    /// pair_count, left_count, right_count: int64`.
    #[pyo3(signature = (first=0))]
    fn merges(&self, py: Python<'_>, first: usize) -> PyResult<ArrowArray> {
        run(py, || {
            let merges = self.trainer.merges();
            let none = || Error::option(format!("first: {first}, of {} merges", merges.len()));
            Ok(arrow::merge_batch(merges.get(first..).ok_or_else(none)?)?.into())
        })
    }
}

/// A packer of one of the types of ids.
enum AnyPacker {
    Int32(Packer<i32>),
    UInt16(Packer<u16>),
}

#[pyclass(name = "Packer")]
struct PyPacker {
    packer: AnyPacker,
    vocab_size: u32,
    columns: Vec<String>,
}

#[pymethods]
impl PyPacker {
    #[new]
    #[pyo3(signature = (*, length, cls_id, sep_id, pad_id, vocab_size, id_type, columns))]
    fn new(
        length: usize,
        cls_id: u32,
        sep_id: u32,
        pad_id: Option<u32>,
        vocab_size: u32,
        id_type: &str,
        columns: Vec<String>,
    ) -> PyResult<Self> {
        let options = PackOptions { length, cls_id, sep_id, pad_id };
        let packer = match id_type {
            "int32" => Packer::new(options).map(AnyPacker::Int32),
            "uint16" => Packer::new(options).map(AnyPacker::UInt16),
            other => return Err(unknown("id_type", other, "int32 or uint16")),
        };
        Ok(PyPacker { packer: packer?, vocab_size, columns })
    }

    #[getter]
    fn dropped(&self) -> u64 {
        match &self.packer {
            AnyPacker::Int32(packer) => packer.dropped(),
            AnyPacker::UInt16(packer) => packer.dropped(),
        }
    }

    fn add(
        &mut self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        first_row: i64,
    ) -> PyResult<ArrowArray> {
        let ids = import(ids)?;
        let (columns, size) = (&self.columns, self.vocab_size);
        run(py, || {
            let batch = match &mut self.packer {
                AnyPacker::Int32(packer) => {
                    let full = arrow::pack::<Int32Type>(packer, &ids, first_row, size)?;
                    arrow::packed_batch::<Int32Type>(full, columns)
                }
                AnyPacker::UInt16(packer) => {
                    let full = arrow::pack::<UInt16Type>(packer, &ids, first_row, size)?;
                    arrow::packed_batch::<UInt16Type>(full, columns)
                }
            };
            Ok(batch?.into())
        })
    }

    fn finish(&mut self, py: Python<'_>) -> PyResult<ArrowArray> {
        run(py, || {
            let batch = match &mut self.packer {
                AnyPacker::Int32(p) => arrow::packed_batch::<Int32Type>(p.finish(), &self.columns),
                AnyPacker::UInt16(p) => {
                    arrow::packed_batch::<UInt16Type>(p.finish(), &self.columns)
                }
            };
            Ok(batch?.into())
        })
    }
}

#[pymodule]
fn _kernel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    std::panic::set_hook(Box::new(note_panic)); // of this library alone; `run` reports them
    module.add_class::<WordCounter>()?;
    module.add_class::<PyEncoder>()?;
    module.add_class::<PyPacker>()?;
    module.add_class::<PySplitter>()?;
    module.add_class::<PairCounter>()?;
    module.add_class::<Candidates>()?;
    module.add_class::<PyRunSizes>()?;
    module.add_class::<PyRuns>()?;
    module.add_class::<PyTrainer>()?;
    module.add_function(wrap_pyfunction!(merge_word_counts, module)?)?;
    module.add_function(wrap_pyfunction!(merge_sorted_words, module)?)?;
    module.add_function(wrap_pyfunction!(weigh_sorted_words, module)?)?;
    module.add_function(wrap_pyfunction!(draw_words, module)?)?;
    module.add_function(wrap_pyfunction!(string_array, module)?)?;
    module.add_function(wrap_pyfunction!(repair_utf8, module)?)?;
    module.add_function(wrap_pyfunction!(split_lines, module)?)?;
    module.add_function(wrap_pyfunction!(encrypted_columns, module)?)?;
    module.add_function(wrap_pyfunction!(pre_tokenize, module)?)?;
    module.add_function(wrap_pyfunction!(symbol_counts, module)?)?;
    module.add_function(wrap_pyfunction!(add_unigrams, module)?)?;
    module.add_function(wrap_pyfunction!(add_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(join_limits, module)?)?;
    Ok(())
}
