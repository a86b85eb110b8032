//! Arrow arrays to and from Python, through the Arrow PyCapsule interface.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use super::{Exception, PyResult, run};
use crate::arrow::import;
use wordpiece_core::Error;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// An array that was given, taken over and checked.
pub(super) struct GivenArray(pub ArrayRef);

impl<'py> FromPyObject<'_, 'py> for GivenArray {
    type Error = Exception;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(GivenArray(import(&object)?))
    }
}

/// A record batch that was given, taken over and checked.
pub(super) struct GivenBatch(pub RecordBatch);

impl<'py> FromPyObject<'_, 'py> for GivenBatch {
    type Error = Exception;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let array = import(&object)?;
        let columns = array.as_any().downcast_ref::<StructArray>();
        let columns = columns.filter(|columns| columns.null_count() == 0); // or `from` would panic
        let wrong = || Error::Type("expected a record batch".into()).into();
        columns.map(|columns| GivenBatch(RecordBatch::from(columns))).ok_or_else(wrong)
    }
}

/// Record batches that were given.
pub(super) struct GivenBatches(pub Vec<RecordBatch>);

impl<'py> FromPyObject<'_, 'py> for GivenBatches {
    type Error = Exception;

    fn extract(objects: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let batches: Vec<GivenBatch> = objects.extract()?;
        Ok(GivenBatches(batches.into_iter().map(|batch| batch.0).collect()))
    }
}

fn import(object: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    check_sizes(object)?;
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
    // the source as released.
    let (schema, array) = unsafe { (schema.as_ref(), FFI_ArrowArray::from_raw(array.as_ptr())) };
    let data_type = import::data_type(schema)?;
    // SAFETY: as above; the producer of the structures is trusted with the pointers in them.
    run(object.py(), || unsafe { import::array(array, data_type) })
}

/// Checks that the buffers of an array or a record batch of pyarrow, which alone knows their sizes, are as large as
/// its type and length require.
fn check_sizes(object: &Bound<'_, PyAny>) -> PyResult<()> {
    // If pyarrow was not imported, the object is not from pyarrow.
    let modules = object.py().import("sys")?.getattr("modules")?;
    let Ok(pyarrow) = modules.get_item("pyarrow.lib") else { return Ok(()) };
    if object.is_instance(&pyarrow.getattr("Array")?)?
        || object.is_instance(&pyarrow.getattr("RecordBatch")?)?
    {
        let checked = object.call_method0("validate");
        checked.map_err(|error| {
            let said = error.value(object.py()).to_string();
            Error::data(said.lines().next().unwrap_or_default()).at("an Arrow array")
        })?;
    }
    Ok(())
}

/// An Arrow array, or a record batch, as a result for Python. `pyarrow.array(x)` or
/// `pyarrow.record_batch(x)` takes it over without a copy.
#[pyclass(name = "ArrowArray", frozen)]
pub(super) struct PyArrowArray(pub ArrayRef);

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
