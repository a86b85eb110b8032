//! Text handling, for Python.

use std::sync::Arc;

use arrow_array::{Array, BinaryArray, StringArray, UInt64Array};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use super::rules::Rules;
use super::{PyArrowArray, import, run, unknown};
use crate::arrow;
use crate::base::error::{Error, caught};
use crate::base::hash::KeyedHash;
use crate::base::memory;
use crate::shards::parquet_footer;
use crate::text::byte_level::ByteLevel;
use crate::text::pre_tokenize::TextOptions;
use crate::text::rules::TextRules;
use crate::text::segments::Begin;
use crate::text::unicode;
use crate::text::utf8::{self, TextCopy};

/// The rules of text, from the names of the options in Python.
pub(super) fn text_rules(
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: bool,
    lowercase: bool,
    pre_tokenizer: &str,
) -> PyResult<TextRules> {
    let split_punctuation = match pre_tokenizer {
        "bert" => true,
        "whitespace" => false,
        "gpt2" if !(clean_text || handle_chinese_chars || strip_accents || lowercase) => {
            return Ok(TextRules::ByteLevel(ByteLevel { add_prefix_space: false }));
        }
        "gpt2" => {
            let message = "pre_tokenizer: gpt2 takes text as it is; turn the other options off";
            return Err(Error::option(message).into());
        }
        other => return Err(unknown("pre_tokenizer", other, "bert, whitespace or gpt2")),
    };
    let options = TextOptions {
        clean_text,
        handle_chinese_chars,
        strip_accents,
        lowercase,
        split_punctuation,
    };
    Ok(options.into())
}

/// Makes an Arrow array of Python strings, each of which may be None. (The function of pyarrow would
/// load pandas.)
#[pyfunction]
pub(super) fn string_array(texts: Vec<Option<PyBackedStr>>) -> PyResult<PyArrowArray> {
    let texts: Vec<_> = texts.iter().map(Option::as_deref).collect();
    let strings = caught(|| arrow::strings(texts.into_iter()))?;
    Ok(PyArrowArray(Arc::new(strings)))
}

/// The strings of an array of strings or bytes, with invalid UTF-8 replaced by U+FFFD, and how many
/// invalid sequences were replaced.
#[pyfunction]
pub(super) fn repair_utf8(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
) -> PyResult<(PyArrowArray, u64)> {
    let array = import(array)?;
    run(py, || {
        // If nothing needs repair, the bytes are not copied.
        if let Some(bytes) = array.as_any().downcast_ref::<BinaryArray>()
            && let Ok(valid) = StringArray::try_from_binary(bytes.clone())
        {
            return Ok((PyArrowArray(Arc::new(valid)), 0));
        }
        let mut rows = memory::with_capacity(array.len());
        arrow::each_row(&array, |row| rows.push(row.map(utf8::repair)))?;
        let replaced = rows.iter().flatten().map(|(_, replaced)| replaced).sum();
        let strings = arrow::strings(rows.iter().map(|row| row.as_ref().map(|(text, _)| &**text)))?;
        Ok((PyArrowArray(Arc::new(strings)), replaced))
    })
}

/// The lines of a block of bytes as strings, and how many invalid UTF-8 sequences were replaced.
#[pyfunction]
pub(super) fn split_lines(py: Python<'_>, block: PyBuffer<u8>) -> PyResult<(PyArrowArray, u64)> {
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
        let strings = arrow::strings(rows.iter().map(|row| Some(&**row)))?;
        Ok((PyArrowArray(Arc::new(strings)), replaced))
    })
}

/// The words of texts, as an array of type `list<string>`.
#[pyfunction]
#[pyo3(signature = (texts, *, clean_text, handle_chinese_chars, strip_accents, lowercase,
    pre_tokenizer, rules=None))]
#[allow(clippy::too_many_arguments)]
pub(super) fn pre_tokenize(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: bool,
    lowercase: bool,
    pre_tokenizer: &str,
    rules: Option<Rules<'_>>,
) -> PyResult<PyArrowArray> {
    let own =
        text_rules(clean_text, handle_chinese_chars, strip_accents, lowercase, pre_tokenizer)?;
    let rules = rules.map_or(own, TextRules::from);
    let texts = import(texts)?;
    run(py, || {
        let mut rows = memory::with_capacity(texts.len());
        let mut copy = TextCopy::default();
        arrow::each_row(&texts, |row| {
            rows.push(row.map(|row| {
                let mut words = Vec::new();
                let mut word = String::new();
                let text = copy.of(row).0;
                let text = &text[..rules.section_end(&text)];
                rules.segments(text, Begin::Text, |segment| {
                    rules.normalize(segment.raw, &mut word);
                    words.extend(rules.words(&word).map(String::from));
                });
                words
            }));
        })?;
        Ok(PyArrowArray(arrow::string_lists(&rows)?))
    })
}

/// A text with each character in lowercase, by the tables of the kernel.
#[pyfunction]
pub(super) fn lowercase(text: &str) -> String {
    text.chars().flat_map(unicode::lowercase).collect()
}

/// The keyed hash of each row of an array of strings or bytes. A null hashes as the empty string.
#[pyfunction]
pub(super) fn hash_texts(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    key: &[u8],
) -> PyResult<PyArrowArray> {
    let texts = import(texts)?;
    run(py, || {
        let hash = KeyedHash::new(key)?;
        let mut hashes = memory::with_capacity(texts.len());
        arrow::each_row(&texts, |row| hashes.push(hash.of(row.unwrap_or_default())))?;
        Ok(PyArrowArray(Arc::new(UInt64Array::from(hashes))))
    })
}

/// The keyed hash of each of `rows` consecutive numbers, as 8 bytes, the lowest first.
#[pyfunction]
pub(super) fn hash_numbers(
    py: Python<'_>,
    first: u64,
    rows: usize,
    key: &[u8],
) -> PyResult<PyArrowArray> {
    run(py, || {
        let hash = KeyedHash::new(key)?;
        let numbers = (0..rows).map(|row| first.wrapping_add(row as u64));
        let hashes = memory::collected(numbers.map(|n| hash.of(&n.to_le_bytes())));
        Ok(PyArrowArray(Arc::new(UInt64Array::from(hashes))))
    })
}

/// The paths of the encrypted columns of a Parquet file. `tail`: the end of the file, from the
/// beginning of its footer or from before it.
#[pyfunction]
pub(super) fn encrypted_columns(py: Python<'_>, tail: &[u8]) -> PyResult<Vec<String>> {
    run(py, || parquet_footer::encrypted_columns(tail))
}
