//! Column chunks of a Parquet file that can be copied to another one without changes.

use bytes::Bytes;
use parquet::basic::{ColumnOrder, Compression, CompressionCodec, Encoding, SortOrder};
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader,
    RowGroupMetaData,
};
use parquet::file::statistics::Statistics;
use parquet::schema::types::SchemaDescriptor;

use crate::parquet_footer;
use wordpiece_core::{Error, Result, caught};

/// The encodings that every reader knows.
#[allow(deprecated)] // old files have levels that are packed by bits
const KNOWN: [Encoding; 5] = [
    Encoding::PLAIN,
    Encoding::RLE,
    Encoding::BIT_PACKED,
    Encoding::PLAIN_DICTIONARY,
    Encoding::RLE_DICTIONARY,
];

/// The footer of a Parquet file, and which of its columns another file can take over.
pub struct ChunkSource {
    metadata: ParquetMetaData,
    /// The columns that are stored in the same way in both files: for each, its leaves.
    columns: Vec<Vec<usize>>,
    codec: CompressionCodec,
}

/// Column chunks of a row group, with their metadata. Offsets count from the start of each chunk.
pub struct Chunks {
    /// The number of rows of the row group.
    pub rows: usize,
    /// The names of the columns, each with all its leaves.
    pub names: Vec<String>,
    pub(super) leaves: Vec<(ColumnChunkMetaData, Bytes)>,
}

impl ChunkSource {
    /// # Arguments
    ///
    /// * `footer` - The metadata of the file, as Arrow writes it: a Parquet file without anything else. Of other
    ///   bytes the library may ask for any memory.
    /// * `target` - A Parquet file whose columns are stored like the columns of the new file.
    /// * `codec` - The codec of the new file. Chunks of another one are not copied.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if one of the files is not a readable Parquet file.
    pub fn new(footer: &Bytes, target: &Bytes, codec: CompressionCodec) -> Result<Self> {
        let metadata = metadata_of(footer)?;
        let target = metadata_of(target)?;
        let target = target.file_metadata().schema_descr();
        let here = metadata.file_metadata().schema_descr();
        let same = target.root_schema().get_fields().iter().filter_map(|field| {
            let found = here.root_schema().get_fields().iter().position(|other| other == field);
            found.map(|root| leaves_of(here, root))
        });
        Ok(ChunkSource { columns: same.collect(), codec, metadata })
    }

    /// Return the offsets and the sizes, in bytes, of the chunks that can be copied.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Option`] if there is no such row group.
    pub fn ranges(&self, group: usize) -> Result<Vec<(u64, u64)>> {
        let group = self.group(group)?;
        let leaves = self.columns_of(group).into_iter().flatten().copied();
        Ok(leaves.filter_map(|leaf| range(group.column(leaf))).collect())
    }

    /// The chunks of a row group, from the bytes at its `ranges`. Columns whose pages do not add up to
    /// their chunks are left out.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Option`] if there is no such row group.
    pub fn chunks(&self, group: usize, data: Vec<Bytes>) -> Result<Chunks> {
        let group = self.group(group)?;
        let mut data = data.into_iter();
        let mut chunks =
            Chunks { rows: group.num_rows() as usize, names: Vec::new(), leaves: Vec::new() };
        for column in self.columns_of(group) {
            let data: Vec<Bytes> = data.by_ref().take(column.len()).collect();
            if data.len() < column.len() {
                return Err(Error::option("bytes of chunks are missing"));
            }
            let leaves = column.iter().zip(data).map(|(&leaf, bytes)| {
                let metadata = self.own_metadata(group, leaf)?;
                let whole = adds_up(&metadata, &bytes).unwrap_or(false);
                Ok(whole.then_some((metadata, bytes)))
            });
            if let Some(leaves) = leaves.collect::<Result<Option<Vec<_>>>>()? {
                let path = leaves.first().map(|(metadata, _)| metadata.column_path());
                chunks.names.extend(path.and_then(|path| path.parts().first().cloned()));
                chunks.leaves.extend(leaves);
            }
        }
        Ok(chunks)
    }

    fn group(&self, number: usize) -> Result<&RowGroupMetaData> {
        let missing = || Error::option(format!("there is no row group {number}"));
        self.metadata.row_groups().get(number).ok_or_else(missing)
    }

    /// Return the columns whose chunks in this row group can all be copied.
    fn columns_of(&self, group: &RowGroupMetaData) -> Vec<&Vec<usize>> {
        let fits = |&leaf: &usize| {
            let chunk = group.column(leaf);
            let is_known = chunk.encodings().all(|encoding| KNOWN.contains(&encoding));
            chunk.compression_codec() == self.codec && is_known && range(chunk).is_some()
        };
        self.columns.iter().filter(|column| column.iter().all(fits)).collect()
    }

    /// The metadata of a chunk that is alone in a file: without what lies elsewhere, and without
    /// statistics whose order is not said.
    fn own_metadata(&self, group: &RowGroupMetaData, leaf: usize) -> Result<ColumnChunkMetaData> {
        let chunk = group.column(leaf);
        let start = range(chunk).map_or(0, |(start, _)| start as i64);
        let mut own = ColumnChunkMetaData::builder(chunk.column_descr_ptr())
            .set_compression(Compression::from(self.codec))
            .set_encodings_mask(*chunk.encodings_mask())
            .set_num_values(chunk.num_values())
            .set_total_compressed_size(chunk.compressed_size())
            .set_total_uncompressed_size(chunk.uncompressed_size())
            .set_data_page_offset(chunk.data_page_offset() - start)
            .set_dictionary_page_offset(chunk.dictionary_page_offset().map(|at| at - start));
        let order = self.metadata.file_metadata().column_order(leaf);
        let is_ordered = matches!(order, ColumnOrder::TYPE_DEFINED_ORDER(order)
            if order != SortOrder::UNDEFINED);
        let is_sure = |statistics: &Statistics| {
            let bounds = [statistics.min_bytes_opt(), statistics.max_bytes_opt()];
            !statistics.is_min_max_deprecated() || bounds == [None, None]
        };
        if let Some(statistics) = chunk.statistics().filter(|found| is_ordered && is_sure(found)) {
            own = own.set_statistics(statistics.clone());
        }
        if let Some(stats) = chunk.page_encoding_stats() {
            own = own.set_page_encoding_stats(stats.clone());
        }
        own.build().map_err(Error::data)
    }
}

/// The metadata of a Parquet file, with the encodings of all its pages. For what cannot be right the library returns
/// an error, or panics.
pub(crate) fn metadata_of(file: &Bytes) -> Result<ParquetMetaData> {
    let footer = parquet_footer::metadata(file)?;
    let options = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
    let read = || ParquetMetaDataReader::decode_metadata_with_options(footer, Some(&options));
    caught(|| read().map_err(Error::data)).map_err(|error| match error {
        Error::Panic(_) => Error::data("the metadata of a Parquet file cannot be right"),
        error => error,
    })
}

/// The leaves of a top-level column.
fn leaves_of(schema: &SchemaDescriptor, root: usize) -> Vec<usize> {
    (0..schema.num_columns()).filter(|&leaf| schema.get_column_root_idx(leaf) == root).collect()
}

/// Return the offset and the size of a chunk in its file; None if its metadata is invalid, or if it is in
/// another file.
fn range(chunk: &ColumnChunkMetaData) -> Option<(u64, u64)> {
    let data = chunk.data_page_offset();
    let start = chunk.dictionary_page_offset().unwrap_or(data);
    let is_sound = start >= 4 && start <= data && chunk.compressed_size() > 0;
    (is_sound && chunk.file_path().is_none())
        .then(|| (start as u64, chunk.compressed_size() as u64))
}

/// Return true if the pages of a chunk fill it, have the number of values in its metadata, and have version
/// 1, which every reader supports. Old writers gave some chunks a wrong size, which readers correct.
fn adds_up(chunk: &ColumnChunkMetaData, bytes: &Bytes) -> Result<bool> {
    if bytes.len() as i64 != chunk.compressed_size() {
        return Ok(false);
    }
    let (mut left, mut levels) = (&bytes[..], 0i64);
    while !left.is_empty() {
        let page = parquet_footer::page_header(left)?;
        match page.kind {
            parquet_footer::DATA_PAGE => levels = levels.saturating_add(page.values.max(0)),
            parquet_footer::INDEX_PAGE | parquet_footer::DICTIONARY_PAGE => {}
            _ => return Ok(false), // above all a page of version 2
        }
        let size = usize::try_from(page.size).map_err(Error::data)?;
        let Some(rest) = left[page.length..].get(size..) else { return Ok(false) };
        left = rest;
    }
    Ok(levels == chunk.num_values())
}
