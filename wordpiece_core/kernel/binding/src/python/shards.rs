//! Shards of ids as Parquet, for Python.

use std::sync::Mutex;

use bytes::Bytes;
use parquet::basic::CompressionCodec;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::exchange::GivenArray;
use super::{PyResult, choice, run};
use crate::arrow;
use wordpiece_core::Error;
use wordpiece_shards::id_pages::{Codec, IdPages, Pages, copy_of};
use wordpiece_shards::parquet_footer;
use wordpiece_shards::shard_file::ShardFile;
use wordpiece_shards::source::{ChunkSource, Chunks};

/// Makes the pages of ids.
#[pyclass(name = "IdPages", frozen)]
pub(super) struct PyIdPages(pub(super) IdPages);

/// Compressed pages of ids.
#[pyclass(name = "Pages", frozen)]
pub(super) struct PyPages(pub(super) Pages);

#[pymethods]
impl PyIdPages {
    #[new]
    #[pyo3(signature = (*, tokens, compression))]
    fn new(tokens: u32, compression: &str) -> PyResult<Self> {
        let codecs = [
            ("none", Codec::None),
            ("lz4", Codec::Lz4),
            ("snappy", Codec::Snappy),
            ("zstd", Codec::Zstd),
        ];
        Ok(PyIdPages(IdPages::new(tokens, choice("compression", compression, &codecs)?)))
    }

    /// The pages of arrays of lists, one array after the other.
    fn pages(&self, py: Python<'_>, lists: Vec<GivenArray>) -> PyResult<PyPages> {
        let lists: Vec<_> = lists.into_iter().map(|lists| lists.0).collect();
        run(py, || Ok(PyPages(arrow::shards::pages(&self.0, &lists)?)))
    }
}

#[pymethods]
impl PyPages {
    /// The number of rows, nulls included.
    #[getter]
    fn rows(&self) -> usize {
        self.0.rows
    }

    /// The number of rows that are null.
    #[getter]
    fn nulls(&self) -> usize {
        self.0.nulls
    }

    /// The number of ids.
    #[getter]
    fn ids(&self) -> usize {
        self.0.ids
    }
}

/// A Parquet file whose column chunks may be copied.
#[pyclass(name = "ChunkSource", frozen)]
pub(super) struct PyChunkSource(ChunkSource);

/// Column chunks of a row group.
#[pyclass(name = "Chunks", frozen)]
pub(super) struct PyChunks(Chunks);

#[pymethods]
impl PyChunkSource {
    #[new]
    #[pyo3(signature = (footer, wanted, *, compression))]
    fn new(py: Python<'_>, footer: &[u8], wanted: &[u8], compression: &str) -> PyResult<Self> {
        let codecs = [
            ("none", CompressionCodec::UNCOMPRESSED),
            ("brotli", CompressionCodec::BROTLI),
            ("gzip", CompressionCodec::GZIP),
            ("lz4", CompressionCodec::LZ4_RAW),
            ("snappy", CompressionCodec::SNAPPY),
            ("zstd", CompressionCodec::ZSTD),
        ];
        let codec = choice("compression", compression, &codecs)?;
        run(py, || {
            let source = ChunkSource::new(&copy_of(footer), &copy_of(wanted), codec)?;
            Ok(PyChunkSource(source))
        })
    }

    /// Offset and length of the chunks of a row group that can be copied.
    fn ranges(&self, group: usize) -> PyResult<Vec<(u64, u64)>> {
        Ok(self.0.ranges(group)?)
    }

    /// These chunks, from their bytes.
    fn chunks(&self, py: Python<'_>, group: usize, data: Vec<PyBackedBytes>) -> PyResult<PyChunks> {
        let data = data.into_iter().map(Bytes::from_owner).collect();
        run(py, || Ok(PyChunks(self.0.chunks(group, data)?)))
    }
}

#[pymethods]
impl PyChunks {
    /// The rows of the row group.
    #[getter]
    fn rows(&self) -> usize {
        self.0.rows
    }

    /// The names of the columns.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.names.clone()
    }
}

/// A Parquet file that is being written.
#[pyclass(name = "ShardFile", frozen)]
pub(super) struct PyShardFile {
    file: Mutex<Option<ShardFile>>,
    maker: Option<Py<PyIdPages>>,
}

#[pymethods]
impl PyShardFile {
    #[new]
    fn new(
        py: Python<'_>,
        empty: &[u8],
        ids: String,
        maker: Option<Py<PyIdPages>>,
    ) -> PyResult<Self> {
        let file = run(py, || ShardFile::new(&copy_of(empty), ids))?;
        Ok(PyShardFile { file: Mutex::new(Some(file)), maker })
    }

    /// Adds a row group. Returns the bytes of the file up to its end that were not returned before.
    fn add_row_group<'py>(
        &self,
        py: Python<'py>,
        others: Option<&[u8]>,
        copied: Option<Py<PyChunks>>,
        pages: Vec<Py<PyPages>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let pages: Vec<&Pages> = pages.iter().map(|pages| &pages.get().0).collect();
        let copied = copied.as_ref().map(|copied| &copied.get().0);
        let maker = self.maker.as_ref().map(|maker| &maker.get().0);
        let done = run(py, || {
            let others = others.map(copy_of);
            let mut file = self.file.lock().unwrap_or_else(|error| error.into_inner());
            let file = file.as_mut().ok_or_else(finished)?;
            file.add_row_group(others.as_ref(), copied, &pages, maker)
        })?;
        Ok(PyBytes::new(py, &done))
    }

    /// Ends the file, and returns the bytes that were not returned before.
    fn finish<'py>(
        &self,
        py: Python<'py>,
        metadata: Vec<(String, String)>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let done = run(py, || {
            let file = self.file.lock().unwrap_or_else(|error| error.into_inner()).take();
            file.ok_or_else(finished)?.finish(metadata)
        })?;
        Ok(PyBytes::new(py, &done))
    }
}

#[pyfunction]
pub(super) fn encrypted_columns(py: Python<'_>, tail: &[u8]) -> PyResult<Vec<String>> {
    run(py, || parquet_footer::encrypted_columns(tail))
}

fn finished() -> Error {
    Error::option("the file is finished")
}
