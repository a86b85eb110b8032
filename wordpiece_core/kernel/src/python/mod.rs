//! The Python module `wordpiece_core._kernel`: conversions, and nothing else.
//!
//! Arrow data is exchanged through the Arrow PyCapsule interface, without a copy. The work is done
//! with the GIL released. Errors become exceptions, and so does a panic: RuntimeError. The Python
//! class `X` is the Rust type `PyX`, which wraps the type `X` of the kernel. What Python sees is
//! described in `wordpiece_core/_kernel.pyi`, too.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use crate::arrow::import::{self, Sizes};
use crate::base::error::{Error, Result, caught, note_panic};
use crate::text::marks::WordBoundary;

mod count;
mod encode;
mod rules;
mod shards;
mod text;
mod train;
mod unigram;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const EXPORT: &str = "__arrow_c_array__";

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
            Error::Memory(_) => PyMemoryError::new_err(message),
            Error::Panic(_) => PyRuntimeError::new_err(message),
        }
    }
}

/// Runs `work` with the GIL released; errors and panics become Python exceptions.
fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    Ok(py.detach(|| caught(work))?)
}

/// Takes an Arrow array over from a Python object, and checks it. The bytes of its strings are those of
/// the object.
fn import(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    import_from(object, false)
}

/// The same with a copy of the bytes of its strings, which can be trusted to stay as they are.
fn import_copy(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    import_from(object, true)
}

fn import_from(object: &Bound<'_, PyAny>, copies_text: bool) -> PyResult<ArrayRef> {
    let py = object.py();
    let own_class = pyarrow_class(object)?;
    let capsules = if let Some(class) = &own_class {
        class.call_method1(EXPORT, (object,))? // not that of a class which inherits from it
    } else if let Some(export) = object.getattr_opt(EXPORT)? {
        export.call0()?
    } else {
        let kind = object.get_type().to_string();
        return Err(Error::Type(format!("expected an Arrow array, not {kind}")).into());
    };
    let mut sizes = Sizes::default();
    if let Some(class) = &own_class {
        add_sizes(class, object, &mut sizes)?;
    }
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
    // SAFETY: as above; the producer of the structures is trusted with the pointers in them.
    let data_type = unsafe { import::data_type(schema) }?;
    // SAFETY: the same.
    run(py, || unsafe { import::array(array, &data_type, &sizes, copies_text) })
}

/// The class of pyarrow that an object is of: an array or a record batch, also of a class that inherits
/// from one of them, as those of extension types may. None: the object is not pyarrow's.
fn pyarrow_class<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    // Where pyarrow was not imported, there are no objects of it.
    let modules = object.py().import("sys")?.getattr("modules")?;
    let Ok(pyarrow) = modules.get_item("pyarrow.lib") else { return Ok(None) };
    for name in ["Array", "RecordBatch"] {
        let class = pyarrow.getattr(name)?;
        if object.is_instance(&class)? {
            return Ok(Some(class));
        }
    }
    Ok(None)
}

/// Adds the sizes of the buffers of an array or a record batch of pyarrow, which alone knows them.
fn add_sizes(
    class: &Bound<'_, PyAny>,
    object: &Bound<'_, PyAny>,
    sizes: &mut Sizes,
) -> PyResult<()> {
    if !class.hasattr("buffers")? {
        let columns = class.getattr("columns")?.call_method1("__get__", (object,))?;
        let array = class.py().import("pyarrow.lib")?.getattr("Array")?;
        return columns.try_iter()?.try_for_each(|column| add_sizes(&array, &column?, sizes));
    }
    for buffer in class.call_method1("buffers", (object,))?.try_iter()? {
        let buffer = buffer?;
        if !buffer.is_none() {
            sizes.add(buffer.getattr("address")?.extract()?, buffer.getattr("size")?.extract()?);
        }
    }
    Ok(())
}

/// Takes a record batch over from a Python object, and checks it.
fn import_batch(object: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let array = import(object)?;
    let columns = array.as_any().downcast_ref::<StructArray>();
    let columns = columns.filter(|columns| columns.null_count() == 0); // otherwise `from` would panic
    let wrong = || Error::Type("expected a record batch".into()).into();
    columns.map(RecordBatch::from).ok_or_else(wrong)
}

/// Takes record batches over from Python objects, and checks them.
fn import_batches(objects: &[Bound<'_, PyAny>]) -> PyResult<Vec<RecordBatch>> {
    objects.iter().map(import_batch).collect()
}

/// An Arrow array, or a record batch, as a result for Python. `pyarrow.array(x)` or
/// `pyarrow.record_batch(x)` takes it over without a copy.
#[pyclass(name = "ArrowArray", frozen)]
struct PyArrowArray(ArrayRef);

#[pymethods]
impl PyArrowArray {
    /// Exports the array by the Arrow PyCapsule interface. A requested schema is ignored.
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

    /// The number of rows.
    fn __len__(&self) -> usize {
        self.0.len()
    }
}

impl From<RecordBatch> for PyArrowArray {
    fn from(batch: RecordBatch) -> Self {
        PyArrowArray(Arc::new(StructArray::from(batch)))
    }
}

/// The error of an option whose value is none of its choices.
fn unknown(option: &str, value: &str, choices: &str) -> PyErr {
    Error::option(format!("{option} is {value:?}, not {choices}")).into()
}

/// The word boundary that an option names; `choices`: what it may be.
fn word_boundary(option: &str, name: Option<&str>, choices: &str) -> PyResult<WordBoundary> {
    let found =
        name.map(|name| WordBoundary::named(name).ok_or_else(|| unknown(option, name, choices)));
    Ok(found.transpose()?.unwrap_or(WordBoundary::None))
}

/// The Rust kernel of wordpiece-beam. `_kernel.pyi` describes what is in it.
#[pymodule]
fn _kernel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // The hook is that of this library alone. `run` reports what it has noted.
    std::panic::set_hook(Box::new(note_panic));
    module.add("FRACTION_BITS", crate::count::word_lists::FRACTION_BITS)?;
    module.add_class::<count::PyWordCounter>()?;
    module.add_class::<rules::PyByteLevel>()?;
    module.add_class::<rules::PyMetaspace>()?;
    module.add_class::<encode::PyEncoder>()?;
    module.add_class::<encode::PyPacker>()?;
    module.add_class::<encode::PyBpe>()?;
    module.add_class::<encode::PyUnigram>()?;
    module.add_class::<encode::PyMeasurer>()?;
    module.add_class::<shards::PyChunkSource>()?;
    module.add_class::<shards::PyChunks>()?;
    module.add_class::<shards::PyIdPages>()?;
    module.add_class::<shards::PyPages>()?;
    module.add_class::<shards::PyShardFile>()?;
    module.add_class::<train::PyLongestMatch>()?;
    module.add_class::<train::PySplitter>()?;
    module.add_class::<train::PyPairCounter>()?;
    module.add_class::<train::PyPairLevels>()?;
    module.add_class::<train::PyRunSizes>()?;
    module.add_class::<train::PyRuns>()?;
    module.add_class::<train::PyTrainer>()?;
    module.add_class::<unigram::PyRunCutter>()?;
    module.add_class::<unigram::PyRunCorpus>()?;
    module.add_class::<unigram::PyRunSums>()?;
    module.add_class::<unigram::PySuffixCounter>()?;
    module.add_class::<unigram::PyUnigramModel>()?;
    module.add_function(wrap_pyfunction!(unigram::add_characters, module)?)?;
    module.add_function(wrap_pyfunction!(unigram::add_run_sums, module)?)?;
    module.add_function(wrap_pyfunction!(unigram::best_seeds, module)?)?;
    module.add_function(wrap_pyfunction!(unigram::find_seeds, module)?)?;
    module.add_function(wrap_pyfunction!(count::join_word_tables, module)?)?;
    module.add_function(wrap_pyfunction!(count::merge_sorted_words, module)?)?;
    module.add_function(wrap_pyfunction!(count::weigh_sorted_words, module)?)?;
    module.add_function(wrap_pyfunction!(count::draw_words, module)?)?;
    module.add_function(wrap_pyfunction!(count::partition_words, module)?)?;
    module.add_function(wrap_pyfunction!(rules::compile_charsmap, module)?)?;
    module.add_function(wrap_pyfunction!(text::lowercase, module)?)?;
    module.add_function(wrap_pyfunction!(text::string_array, module)?)?;
    module.add_function(wrap_pyfunction!(text::repair_utf8, module)?)?;
    module.add_function(wrap_pyfunction!(text::split_lines, module)?)?;
    module.add_function(wrap_pyfunction!(text::hash_texts, module)?)?;
    module.add_function(wrap_pyfunction!(text::hash_numbers, module)?)?;
    module.add_function(wrap_pyfunction!(text::encrypted_columns, module)?)?;
    module.add_function(wrap_pyfunction!(text::pre_tokenize, module)?)?;
    module.add_function(wrap_pyfunction!(train::symbol_counts, module)?)?;
    module.add_function(wrap_pyfunction!(train::add_unigrams, module)?)?;
    module.add_function(wrap_pyfunction!(train::add_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(train::join_limits, module)?)?;
    Ok(())
}
