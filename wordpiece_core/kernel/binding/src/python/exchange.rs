//! Arrow arrays to and from Python, through the Arrow PyCapsule interface.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use super::{Exception, PyResult, run};
use crate::arrow::import::{self, Sizes};
use wordpiece_core::Error;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const EXPORT: &str = "__arrow_c_array__";

/// An array that was given, taken over and checked. The bytes of its strings are those of the object.
pub(super) struct GivenArray(pub ArrayRef);

impl<'py> FromPyObject<'_, 'py> for GivenArray {
    type Error = Exception;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(GivenArray(import(&object, false)?))
    }
}

/// The same with a copy of the bytes of its strings, which can be trusted to stay as they are.
pub(super) struct CopiedArray(pub ArrayRef);

impl<'py> FromPyObject<'_, 'py> for CopiedArray {
    type Error = Exception;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(CopiedArray(import(&object, true)?))
    }
}

/// A record batch that was given, taken over and checked.
pub(super) struct GivenBatch(pub RecordBatch);

impl<'py> FromPyObject<'_, 'py> for GivenBatch {
    type Error = Exception;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let array = import(&object, false)?;
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

fn import(object: &Bound<'_, PyAny>, copies_text: bool) -> PyResult<ArrayRef> {
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
