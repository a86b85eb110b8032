//! Text handling, for Python.

use std::sync::Arc;

use arrow_array::ArrayRef;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;

use super::exchange::{GivenArray, PyArrowArray};
use super::{Exception, PyResult, choice, run};
use crate::arrow;
use wordpiece_core::internals::{CsvRows, unicode};
use wordpiece_core::text::{Composed, TextOptions, TextRules};
use wordpiece_core::{Error, Result, caught};

/// The rules of a `tokenizer.json`.
#[pyclass(name = "Composed", frozen)]
pub(super) struct PyComposed(Arc<Composed>);

#[pymethods]
impl PyComposed {
    #[new]
    #[pyo3(signature = (normalizer, pre_tokenizer, *, of_bytes))]
    fn new(
        py: Python<'_>,
        normalizer: Option<&str>,
        pre_tokenizer: Option<&str>,
        of_bytes: bool,
    ) -> PyResult<Self> {
        run(py, || Ok(PyComposed(Arc::new(Composed::new(normalizer, pre_tokenizer, of_bytes)?))))
    }

    #[staticmethod]
    fn gpt2(add_prefix_space: bool) -> Self {
        PyComposed(Arc::new(Composed::gpt2(add_prefix_space)))
    }

    fn normalized(&self, py: Python<'_>, token: &str) -> PyResult<String> {
        run(py, || Ok(self.0.normalized_token(token)))
    }
}

/// The options of text, by their names in Python: see `TextOptions.for_kernel`. `rules` take the place
/// of the others.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct TextMapping<'py> {
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: bool,
    lowercase: bool,
    pre_tokenizer: String,
    #[pyo3(default)]
    rules: Option<PyRef<'py, PyComposed>>,
    /// A normalizer and a pre-tokenizer, as JSON.
    #[pyo3(default)]
    composed: Option<(Option<String>, Option<String>)>,
}

/// The rules for splitting text, as an argument.
pub(super) struct GivenText(pub TextRules);

impl<'py> FromPyObject<'_, 'py> for GivenText {
    type Error = Exception;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let given: TextMapping<'_> = object.extract()?;
        let TextMapping { clean_text, handle_chinese_chars, strip_accents, lowercase, .. } = given;
        let pre_tokenizers = [("bert", Some(true)), ("whitespace", Some(false)), ("gpt2", None)];
        let own = match choice("pre_tokenizer", &given.pre_tokenizer, &pre_tokenizers)? {
            Some(split_punctuation) => TextRules::from(TextOptions {
                clean_text,
                handle_chinese_chars,
                strip_accents,
                lowercase,
                split_punctuation,
            }),
            None if clean_text || handle_chinese_chars || strip_accents || lowercase => {
                let message = "pre_tokenizer: gpt2 takes text as it is; turn the other options off";
                return Err(Error::option(message).into());
            }
            None => Composed::gpt2(false).into(),
        };
        Ok(GivenText(match given.rules {
            Some(rules) => TextRules::Composed(Arc::clone(&rules.0)),
            None => match given.composed {
                Some((normalizer, pre_tokenizer)) => {
                    let (normalizer, pre_tokenizer) =
                        (normalizer.as_deref(), pre_tokenizer.as_deref());
                    let rules = caught(|| Composed::new(normalizer, pre_tokenizer, false))?;
                    rules.into()
                }
                None => own,
            },
        }))
    }
}

/// Work on texts whose result is an array.
fn array(py: Python<'_>, work: impl FnOnce() -> Result<ArrayRef> + Send) -> PyResult<PyArrowArray> {
    Ok(PyArrowArray(run(py, work)?))
}

/// The function of pyarrow would load pandas.
#[pyfunction]
pub(super) fn string_array(texts: Vec<Option<PyBackedStr>>) -> PyResult<PyArrowArray> {
    let texts: Vec<_> = texts.iter().map(Option::as_deref).collect();
    let strings = caught(|| arrow::strings(texts.into_iter()))?;
    Ok(PyArrowArray(Arc::new(strings)))
}

#[pyfunction]
pub(super) fn repair_utf8(py: Python<'_>, array: GivenArray) -> PyResult<(PyArrowArray, u64)> {
    let (strings, replaced) = run(py, || arrow::text::repaired(&array.0))?;
    Ok((PyArrowArray(strings), replaced))
}

#[pyfunction]
pub(super) fn split_lines(py: Python<'_>, block: PyBuffer<u8>) -> PyResult<(PyArrowArray, u64)> {
    let block = block.to_vec(py)?;
    let (strings, replaced) = run(py, || arrow::text::lines(&block))?;
    Ok((PyArrowArray(strings), replaced))
}

/// Finds the ends of CSV rows.
#[pyclass(name = "CsvRows")]
pub(super) struct PyCsvRows(CsvRows);

#[pymethods]
impl PyCsvRows {
    #[new]
    #[pyo3(signature = (delimiter, *, quoting=true))]
    fn new(delimiter: char, quoting: bool) -> PyResult<Self> {
        let delimiter = u8::try_from(delimiter)
            .map_err(|_| Error::option("delimiter: expected a single-byte character"))?;
        Ok(PyCsvRows(CsvRows::new(delimiter, quoting)))
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.0.rows()
    }

    fn scan(&mut self, py: Python<'_>, block: &[u8]) -> PyResult<usize> {
        let rows = &mut self.0;
        run(py, || rows.scan(block))
    }

    fn finish(&self) -> PyResult<()> {
        Ok(self.0.finish()?)
    }
}

#[pyfunction]
pub(super) fn pre_tokenize(
    py: Python<'_>,
    texts: GivenArray,
    text: GivenText,
) -> PyResult<PyArrowArray> {
    array(py, || arrow::text::words(&texts.0, &text.0))
}

#[pyfunction]
pub(super) fn lowercase(text: &str) -> String {
    text.chars().flat_map(unicode::lowercase).collect()
}

#[pyfunction]
pub(super) fn hash_texts(py: Python<'_>, texts: GivenArray, key: &[u8]) -> PyResult<PyArrowArray> {
    array(py, || arrow::text::hashes(&texts.0, key))
}

#[pyfunction]
pub(super) fn hash_numbers(
    py: Python<'_>,
    first: u64,
    rows: usize,
    key: &[u8],
) -> PyResult<PyArrowArray> {
    array(py, || arrow::text::hashes_of_numbers(first, rows, key))
}
