//! The Python module `wordpiece_core._kernel`: conversions, and nothing else.
//!
//! Arrow data is exchanged through the Arrow PyCapsule interface, without a copy. The work is done
//! with the GIL released. Errors become exceptions, and so does a panic: RuntimeError. The Python
//! class `X` is the Rust type `PyX`, which wraps the type `X` of the kernel. `wordpiece_core/_kernel.pyi`
//! declares the interface for Python.

use arrow_array::RecordBatch;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

use exchange::PyArrowArray;
use wordpiece_core::{Error, Result, caught};

mod count;
mod encode;
mod exchange;
mod shards;
mod text;
mod train;
mod unigram;

mod exceptions {
    pyo3::import_exception!(wordpiece_core.errors, InputError);
    pyo3::import_exception!(wordpiece_core.errors, OptionError);
}

/// An exception, also for errors of the algorithms.
pub struct Exception(PyErr);

/// The result of what Python calls.
type PyResult<T> = std::result::Result<T, Exception>;

impl From<Error> for Exception {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        Exception(match error {
            Error::Data(_) | Error::Overflow => exceptions::InputError::new_err(message),
            Error::Option(_) => exceptions::OptionError::new_err(message),
            Error::Type(_) => PyTypeError::new_err(message),
            _ => PyRuntimeError::new_err(message), // a panic
        })
    }
}

impl From<PyErr> for Exception {
    fn from(error: PyErr) -> Self {
        Exception(error)
    }
}

impl From<Exception> for PyErr {
    fn from(exception: Exception) -> PyErr {
        exception.0
    }
}

/// Runs `work` with the GIL released; errors and panics become Python exceptions.
fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    Ok(py.detach(|| caught(work))?)
}

/// Run work whose result is a record batch.
fn table(
    py: Python<'_>,
    work: impl FnOnce() -> Result<RecordBatch> + Send,
) -> PyResult<PyArrowArray> {
    Ok(run(py, work)?.into())
}

/// Return the value for the name of a choice, or an exception that lists the choices.
fn choice<T: Clone>(option: &str, value: &str, choices: &[(&str, T)]) -> PyResult<T> {
    let found = choices.iter().find(|(name, _)| *name == value);
    found.map(|(_, choice)| choice.clone()).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let (last, others) = names.split_last().expect("there are choices");
        Error::option(format!("{option} is {value:?}, not {} or {last}", others.join(", "))).into()
    })
}

/// The Rust kernel of wordpiece-beam. `_kernel.pyi` describes its contents.
#[pymodule]
mod _kernel {
    #[pymodule_export]
    use super::count::{
        PyWordCounter, draw_words, join_word_tables, merge_sorted_words, partition_words,
        weigh_sorted_words,
    };
    #[pymodule_export]
    use super::encode::{PyBpe, PyEncoder, PyMeasurer, PyPacker, PyUnigram, merges_of_ranks};
    #[pymodule_export]
    use super::shards::{
        PyChunkSource, PyChunks, PyIdPages, PyPages, PyShardFile, encrypted_columns,
    };
    #[pymodule_export]
    use super::text::{
        PyComposed, PyCsvRows, hash_numbers, hash_texts, lowercase, pre_tokenize, repair_utf8,
        split_lines, string_array,
    };
    #[pymodule_export]
    use super::train::{
        PyLongestMatch, PyPairCounter, PyPairLevels, PyRunSizes, PyRuns, PySplitter, PyTrainer,
        add_pairs, add_unigrams, symbol_counts,
    };
    #[pymodule_export]
    use super::unigram::{
        PyRunCorpus, PyRunSplitter, PyRunSums, PySuffixCounter, PyUnigramModel, add_characters,
        add_run_sums, best_seeds, find_seeds,
    };
    #[pymodule_export]
    const FRACTION_BITS: u32 = wordpiece_core::internals::word_lists::FRACTION_BITS;
    use pyo3::prelude::*;
    use wordpiece_core::internals::note_panic;

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        // The hook belongs to this library. `run` reports the panics that it notes.
        std::panic::set_hook(Box::new(note_panic));
        Ok(())
    }
}
