//! Parquet files assembled from column chunks: chunks of ids, from their pages; chunks of the source
//! file; and chunks of all other columns, from a Parquet file by another writer. Chunks are copied without
//! changes.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{ColumnOrder, Encoding, PageType};
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{
    ColumnChunkMetaData, KeyValue, PageEncodingStats, ParquetMetaData, RowGroupMetaData,
};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnDescPtr;

use crate::id_pages::{IdPages, Pages};
use crate::source::{Chunks, metadata_of};
use wordpiece_core::{Error, Result};

/// Bytes of a row group in addition to its chunks, mainly for the dictionary of the ids.
const BESIDE_CHUNKS: usize = 64 << 10;

/// A Parquet file that is being written. Its bytes are returned after each row group.
pub struct ShardFile {
    writer: SerializedFileWriter<Vec<u8>>,
    ids: String,
}

impl ShardFile {
    /// # Arguments
    ///
    /// * `empty` - A Parquet file without rows. The new file has its schema and its metadata.
    /// * `ids` - The name of the column of ids.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if `empty` is not a Parquet file.
    pub fn new(empty: &Bytes, ids: String) -> Result<Self> {
        let metadata = metadata_of(empty)?;
        let file = metadata.file_metadata();
        let properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_key_value_metadata(file.key_value_metadata().cloned())
            .set_offset_index_disabled(true)
            .build();
        let schema = file.schema_descr().root_schema_ptr();
        let writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties));
        Ok(ShardFile { writer: writer.map_err(Error::data)?, ids })
    }

    /// Adds a row group, and returns the bytes of the file up to here that were not returned before.
    ///
    /// # Arguments
    ///
    /// * `others` - A Parquet file of one row group, with the columns that are not in the other two.
    /// * `copied` - Chunks of a row group that has the same rows.
    /// * `pages` - The pages of the ids, if they are not among the others.
    /// * `maker` - What has made the pages.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if the columns differ from the schema, or if their numbers of rows differ.
    pub fn add_row_group(
        &mut self,
        others: Option<&Bytes>,
        copied: Option<&Chunks>,
        pages: &[&Pages],
        maker: Option<&IdPages>,
    ) -> Result<Vec<u8>> {
        let read = others.map(metadata_of).transpose()?;
        let group = read.as_ref().map(only_row_group).transpose()?;
        let mut chunks = group.map_or(&[][..], RowGroupMetaData::columns).iter();
        let columns = self.writer.schema_descr().columns().to_vec();
        self.writer.inner_mut().reserve(size(others, copied, pages));
        let mut row_group = self.writer.next_row_group().map_err(Error::data)?;
        for column in columns {
            let is_ids = !pages.is_empty() && column.path().parts().first() == Some(&self.ids);
            let (bytes, metadata, rows) = if is_ids {
                let maker = maker.ok_or_else(|| Error::option("pages without their maker"))?;
                let (chunk, metadata) = ids_chunk(column, pages, maker)?;
                (chunk, metadata, pages.iter().map(|pages| pages.rows).sum())
            } else if let Some((copied, (metadata, bytes))) = copied_leaf(copied, &column) {
                (bytes.clone(), metadata.clone(), copied.rows)
            } else {
                let wanting = || Error::data(format!("column {} is missing", column.path()));
                let rows = group.map_or(0, RowGroupMetaData::num_rows) as usize;
                let chunk = chunks.next().ok_or_else(wanting)?;
                (others.cloned().unwrap_or_default(), chunk.clone(), rows)
            };
            let metadata = with_sure_bounds(metadata)?;
            let close = ColumnCloseResult {
                bytes_written: metadata.compressed_size() as u64,
                rows_written: rows as u64,
                metadata,
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            row_group.append_column(&bytes, close).map_err(Error::data)?;
        }
        row_group.close().map_err(Error::data)?;
        if let Some(chunk) = chunks.next() {
            return Err(Error::data(format!(
                "column {} is not in the schema",
                chunk.column_path()
            )));
        }
        self.writer.flush().map_err(Error::data)?;
        Ok(std::mem::take(self.writer.inner_mut()))
    }

    /// Ends the file, and returns the bytes that were not returned before.
    ///
    /// # Arguments
    ///
    /// * `metadata` - Keys and values to add to the metadata of the footer.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if the metadata cannot be written.
    pub fn finish(mut self, metadata: Vec<(String, String)>) -> Result<Vec<u8>> {
        for (key, value) in metadata {
            self.writer.append_key_value_metadata(KeyValue::new(key, value));
        }
        self.writer.into_inner().map_err(Error::data)
    }
}

/// The metadata of a chunk without bounds of floating-point numbers. This library says in the footer
/// that such bounds are in the total order of IEEE 754, which is unknown for other writers.
fn with_sure_bounds(metadata: ColumnChunkMetaData) -> Result<ColumnChunkMetaData> {
    let column = metadata.column_descr();
    let (logical, converted) = (column.logical_type_ref(), column.converted_type());
    let order = ColumnOrder::column_order_for_type(logical, converted, column.physical_type());
    let Some(found) = metadata.statistics().filter(|_| order == ColumnOrder::IEEE_754_TOTAL_ORDER)
    else {
        return Ok(metadata);
    };
    let (distinct, nulls) = (found.distinct_count_opt(), found.null_count_opt());
    let statistics = match found {
        Statistics::Float(_) => Statistics::float(None, None, distinct, nulls, false),
        Statistics::Double(_) => Statistics::double(None, None, distinct, nulls, false),
        _ => Statistics::fixed_len_byte_array(None, None, distinct, nulls, false),
    };
    metadata.into_builder().set_statistics(statistics).build().map_err(Error::data)
}

/// About how many bytes a row group takes.
fn size(others: Option<&Bytes>, copied: Option<&Chunks>, pages: &[&Pages]) -> usize {
    let copied = copied.map_or(&[][..], |copied| &copied.leaves);
    let copied: usize = copied.iter().map(|(_, bytes)| bytes.len()).sum();
    let pages: usize = pages.iter().map(|pages| pages.bytes.len()).sum();
    others.map_or(0, Bytes::len) + copied + pages + BESIDE_CHUNKS
}

type Leaf = (ColumnChunkMetaData, Bytes);

/// The copied chunk of a column, if there is one.
fn copied_leaf<'a>(
    copied: Option<&'a Chunks>,
    column: &ColumnDescPtr,
) -> Option<(&'a Chunks, &'a Leaf)> {
    let copied = copied?;
    let leaf = copied.leaves.iter().find(|(metadata, _)| metadata.column_path() == column.path());
    leaf.map(|leaf| (copied, leaf))
}

fn only_row_group(metadata: &ParquetMetaData) -> Result<&RowGroupMetaData> {
    match metadata.row_groups() {
        [group] => Ok(group),
        groups => Err(Error::data(format!("{} row groups, not one", groups.len()))),
    }
}

/// The column chunk of ids, and its metadata. Offsets count from its start.
fn ids_chunk(
    column: ColumnDescPtr,
    parts: &[&Pages],
    maker: &IdPages,
) -> Result<(Bytes, ColumnChunkMetaData)> {
    let dictionary = maker.dictionary()?;
    let start = dictionary.map_or(0, |page| page.bytes.len());
    let all = || dictionary.into_iter().chain(parts.iter().copied());
    let sum = |of: fn(&Pages) -> usize| all().map(of).sum::<usize>();
    let of_pages = |page_type, encoding, count: usize| PageEncodingStats {
        page_type,
        encoding,
        count: count as i32,
    };
    let dictionaries = usize::from(dictionary.is_some());
    let data_pages = sum(|pages| pages.pages) - dictionaries;
    let mut stats = vec![of_pages(PageType::DATA_PAGE, maker.encoding(), data_pages)];
    let mut encodings = vec![Encoding::RLE, maker.encoding()];
    if dictionary.is_some() {
        stats.insert(0, of_pages(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1));
        encodings.insert(0, Encoding::PLAIN);
    }
    let metadata = ColumnChunkMetaData::builder(column)
        .set_compression(maker.codec().in_parquet())
        .set_encodings(encodings)
        .set_page_encoding_stats(stats)
        .set_num_values(sum(|pages| pages.levels) as i64)
        .set_total_compressed_size(sum(|pages| pages.bytes.len()) as i64)
        .set_total_uncompressed_size(sum(|pages| pages.uncompressed) as i64)
        .set_dictionary_page_offset(dictionary.map(|_| 0))
        .set_data_page_offset(start as i64)
        .build()
        .map_err(Error::data)?;
    let mut bytes = Vec::with_capacity(sum(|pages| pages.bytes.len()));
    all().for_each(|pages| bytes.extend_from_slice(&pages.bytes));
    Ok((bytes.into(), metadata))
}
