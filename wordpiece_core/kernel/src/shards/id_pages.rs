//! Parquet's data pages of a column of ids, made directly: lists of numbers from 0 up to the size of
//! the vocabulary need neither a table of the values that occur nor a general encoder of levels.
//!
//! For up to 65,536 tokens the dictionary of the column is the whole vocabulary in order, 0, 1, 2, ...
//! So the index of an id is the id, and a page of indices of 16 bits is an array of little-endian
//! numbers: half as many bytes to compress as plain ones, which are of 32 bits. Every reader knows
//! dictionaries. Ids of larger vocabularies are plain.
//!
//! A column of lists has two levels for each id. The repetition level, 0 at the start of a list and
//! else 1, takes one bit. The definition level is 3 for an id, 1 for an empty list, and 0 for a null;
//! it is written as runs, which are long.

use std::sync::OnceLock;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt16Type};
use arrow_array::{Array, ArrayRef, ListArray};
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};

use crate::encode::pack::Id;
use crate::error::{Error, Result};

/// The most ids of a page. With their levels they are just below 256 KB, where zstd looks for shorter
/// matches: pages of this size are the smallest of all, and as fast to write as larger ones.
const PAGE_IDS: usize = 120 << 10;
/// The most tokens for which ids are indices of a dictionary.
const DICTIONARY_TOKENS: u32 = 1 << 16;
/// The level of zstd for pages.
const ZSTD_LEVEL: i32 = 1;
/// The level of zstd for the dictionary, which is compressed once. From this level on it takes a
/// quarter of its size.
const DICTIONARY_LEVEL: i32 = 18;

/// How pages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Not at all.
    None,
    /// Blocks of LZ4 (`LZ4_RAW`).
    Lz4,
    /// Snappy.
    Snappy,
    /// Zstandard, at level 1.
    Zstd,
}

impl Codec {
    /// The name of the codec in Parquet's metadata.
    pub fn in_parquet(self) -> Compression {
        match self {
            Codec::None => Compression::UNCOMPRESSED,
            Codec::Lz4 => Compression::LZ4_RAW,
            Codec::Snappy => Compression::SNAPPY,
            Codec::Zstd => Compression::ZSTD(ZstdLevel::default()),
        }
    }
}

/// Pages with their headers, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// The bytes as they are in a file.
    pub bytes: Vec<u8>,
    /// How many bytes they would be without compression, headers included.
    pub uncompressed: usize,
    /// How many pages there are.
    pub pages: usize,
    /// How many levels they have: ids, empty lists, and nulls.
    pub levels: usize,
    /// How many lists they have.
    pub rows: usize,
}

impl Pages {
    /// Puts the pages of another part behind these.
    pub fn append(&mut self, other: &Pages) {
        self.bytes.extend_from_slice(&other.bytes);
        self.uncompressed += other.uncompressed;
        self.pages += other.pages;
        self.levels += other.levels;
        self.rows += other.rows;
    }
}

/// Makes the pages of columns of ids.
pub struct IdPages {
    tokens: u32,
    codec: Codec,
    dictionary: OnceLock<Pages>,
}

impl IdPages {
    /// For ids below `tokens`.
    pub fn new(tokens: u32, codec: Codec) -> Self {
        IdPages { tokens, codec, dictionary: OnceLock::new() }
    }

    /// The codec of the pages.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// The encoding of the values in the data pages.
    pub fn encoding(&self) -> Encoding {
        if self.tokens <= DICTIONARY_TOKENS { Encoding::RLE_DICTIONARY } else { Encoding::PLAIN }
    }

    /// The page of the dictionary, which comes before the data pages; none for plain ids.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if the codec fails.
    pub fn dictionary(&self) -> Result<Option<&Pages>> {
        if self.encoding() == Encoding::PLAIN {
            return Ok(None);
        }
        if let Some(page) = self.dictionary.get() {
            return Ok(Some(page));
        }
        let ids: Vec<u8> = (0..self.tokens).flat_map(u32::to_le_bytes).collect();
        let mut pages = PageSink::new(self.codec, DICTIONARY_LEVEL)?;
        pages.write(&ids, |buf| Page::DictionaryPage {
            buf,
            num_values: self.tokens,
            encoding: Encoding::PLAIN,
            is_sorted: true,
        })?;
        let page = pages.finish(0);
        Ok(Some(self.dictionary.get_or_init(|| page)))
    }

    /// The data pages of lists of ids. A list that fits into a page is not divided.
    ///
    /// # Arguments
    ///
    /// * `lists` - Lists of int32 or uint16.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if the lists are of another type, or if an id is null or not below the
    /// number of tokens.
    pub fn pages(&self, lists: &ArrayRef) -> Result<Pages> {
        let wrong =
            || Error::data(format!("ids: lists of int32 or uint16, not {}", lists.data_type()));
        let lists = lists.as_list_opt::<i32>().ok_or_else(wrong)?;
        let values = lists.values();
        if values.null_count() > 0 {
            return Err(Error::data("ids: null among the ids of a list"));
        }
        match values.data_type() {
            DataType::Int32 => self.of_values(lists, values.as_primitive::<Int32Type>().values()),
            DataType::UInt16 => self.of_values(lists, values.as_primitive::<UInt16Type>().values()),
            _ => Err(wrong()),
        }
    }

    fn of_values<T: Id>(&self, lists: &ListArray, values: &[T]) -> Result<Pages> {
        let mut pages = PageSink::new(self.codec, ZSTD_LEVEL)?;
        let mut page = DataPage::default();
        let ends = lists.value_offsets();
        for row in 0..lists.len() {
            let ids = &values[ends[row] as usize..ends[row + 1] as usize];
            if page.levels + ids.len().max(1) > PAGE_IDS {
                self.end(&mut page, &mut pages)?;
            }
            if lists.is_null(row) || ids.is_empty() {
                page.add_levels(1, if lists.is_null(row) { NULL } else { EMPTY }, true);
                continue;
            }
            for (number, some) in ids.chunks(PAGE_IDS).enumerate() {
                if number > 0 {
                    self.end(&mut page, &mut pages)?;
                }
                page.add_levels(some.len(), ID, number == 0);
                self.add_values(some, &mut page.values)
                    .map_err(|error| error.at(format!("ids: row {row}")))?;
            }
        }
        self.end(&mut page, &mut pages)?;
        Ok(pages.finish(lists.len()))
    }

    /// Adds ids as they are in a page: indices of the dictionary, or plain.
    fn add_values<T: Id>(&self, ids: &[T], to: &mut Vec<u8>) -> Result<()> {
        let largest = ids.iter().fold(0, |largest, id| id.value().max(largest));
        if largest >= self.tokens {
            return Err(Error::data(format!("an id is beyond the {} tokens", self.tokens)));
        }
        let start = to.len();
        match self.encoding() {
            Encoding::PLAIN => {
                to.resize(start + 4 * ids.len(), 0);
                let places = to[start..].chunks_exact_mut(4);
                places.zip(ids).for_each(|(to, id)| to.copy_from_slice(&id.value().to_le_bytes()));
            }
            _ => {
                to.resize(start + 2 * ids.len(), 0);
                let places = to[start..].chunks_exact_mut(2);
                places
                    .zip(ids)
                    .for_each(|(to, id)| to.copy_from_slice(&(id.value() as u16).to_le_bytes()));
            }
        }
        Ok(())
    }

    /// Writes a data page, if it has anything, and empties it.
    fn end(&self, page: &mut DataPage, pages: &mut PageSink) -> Result<()> {
        let encoding = self.encoding();
        if page.levels > 0 {
            let levels = page.levels;
            pages.levels += levels;
            pages.write(&page.bytes(encoding), |buf| Page::DataPage {
                buf,
                num_values: levels as u32, // up to PAGE_IDS
                encoding,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            })?;
        }
        page.clear();
        Ok(())
    }
}

/// The definition level of a null.
const NULL: u8 = 0;
/// The definition level of an empty list.
const EMPTY: u8 = 1;
/// The definition level of an id.
const ID: u8 = 3;

/// The levels and the ids of a page.
#[derive(Default)]
struct DataPage {
    levels: usize,
    /// Where lists start.
    starts: Vec<usize>,
    /// Definition levels, and how often each is repeated.
    runs: Vec<(u8, usize)>,
    values: Vec<u8>,
}

impl DataPage {
    /// Adds levels of the same kind. `starts`: whether a list starts with the first of them.
    fn add_levels(&mut self, count: usize, definition: u8, starts: bool) {
        if starts {
            self.starts.push(self.levels);
        }
        self.levels += count;
        match self.runs.last_mut() {
            Some((last, length)) if *last == definition => *length += count,
            _ => self.runs.push((definition, count)),
        }
    }

    fn clear(&mut self) {
        self.levels = 0;
        self.starts.clear();
        self.runs.clear();
        self.values.clear();
    }

    /// The page without its header: repetition levels, definition levels, values.
    fn bytes(&self, encoding: Encoding) -> Vec<u8> {
        let mut page =
            Vec::with_capacity(self.values.len() + self.levels / 8 + 6 * self.runs.len() + 64);
        with_length(&mut page, |page| {
            let start = bit_packed(page, self.levels);
            page.resize(start + self.levels / 8, 0xff);
            if !self.levels.is_multiple_of(8) {
                page.push((1 << (self.levels % 8)) - 1);
            }
            for &at in &self.starts {
                page[start + at / 8] &= !(1 << (at % 8));
            }
        });
        with_length(&mut page, |page| {
            for &(definition, length) in &self.runs {
                varint(page, length << 1);
                page.push(definition);
            }
        });
        if encoding == Encoding::PLAIN {
            page.extend_from_slice(&self.values);
            return page;
        }
        page.push(16); // the bits of an index
        let ids = self.values.len() / 2;
        if ids > 0 {
            let start = bit_packed(&mut page, ids);
            page.extend_from_slice(&self.values);
            page.resize(start + 2 * ids.next_multiple_of(8), 0);
        }
        page
    }
}

/// Writes what `write` does, with its length before it.
fn with_length(page: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = page.len();
    page.extend_from_slice(&[0; 4]);
    write(page);
    let length = (page.len() - start - 4) as u32; // of a page, whose size is bounded
    page[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// The header of a run of so many bit-packed values. Returns where the values begin.
fn bit_packed(page: &mut Vec<u8>, values: usize) -> usize {
    varint(page, values.div_ceil(8) << 1 | 1);
    page.len()
}

/// A number in groups of seven bits (ULEB128).
fn varint(page: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        page.push(value as u8 | 0x80);
        value >>= 7;
    }
    page.push(value as u8);
}

/// Compresses pages and writes them with their headers.
struct PageSink {
    codec: Codec,
    zstd: Option<zstd::bulk::Compressor<'static>>,
    pages: Pages,
    levels: usize,
}

impl PageSink {
    fn new(codec: Codec, level: i32) -> Result<Self> {
        let zstd = (codec == Codec::Zstd).then(|| zstd::bulk::Compressor::new(level));
        let zstd = zstd.transpose().map_err(Error::data)?;
        Ok(PageSink { codec, zstd, pages: Pages::default(), levels: 0 })
    }

    /// Writes a page. `page` makes it from its compressed bytes.
    fn write(&mut self, bytes: &[u8], page: impl FnOnce(Bytes) -> Page) -> Result<()> {
        let compressed = match (&mut self.zstd, self.codec) {
            (Some(zstd), _) => zstd.compress(bytes).map_err(Error::data)?,
            (None, Codec::Lz4) => lz4_flex::block::compress(bytes),
            (None, Codec::Snappy) => {
                snap::raw::Encoder::new().compress_vec(bytes).map_err(Error::data)?
            }
            (None, Codec::None | Codec::Zstd) => bytes.to_vec(),
        };
        let mut sink = TrackedWrite::new(std::mem::take(&mut self.pages.bytes));
        let page = CompressedPage::new(page(compressed.into()), bytes.len());
        let written = SerializedPageWriter::new(&mut sink).write_page(page).map_err(Error::data)?;
        self.pages.bytes = sink.into_inner().map_err(Error::data)?;
        self.pages.uncompressed += written.uncompressed_size;
        self.pages.pages += 1;
        Ok(())
    }

    fn finish(mut self, rows: usize) -> Pages {
        (self.pages.levels, self.pages.rows) = (self.levels, rows);
        self.pages
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    type Rows = Vec<Option<Vec<Option<i32>>>>;

    fn lists(rows: Rows) -> ArrayRef {
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(rows))
    }

    /// The bytes of the only page, without its header.
    fn only_page(tokens: u32, rows: Rows) -> Vec<u8> {
        let pages = IdPages::new(tokens, Codec::None).pages(&lists(rows)).unwrap();
        assert_eq!((pages.pages, pages.uncompressed), (1, pages.bytes.len()));
        // The header ends with the ends of two structures; two zeros stand nowhere before them.
        let header = pages.bytes.windows(2).position(|ends| ends == [0, 0]).unwrap();
        pages.bytes[header + 2..].to_vec()
    }

    #[test]
    fn a_page_has_a_bit_for_each_repetition_runs_of_definitions_and_the_ids() {
        let rows = || vec![Some(vec![Some(7), Some(258)]), None, Some(vec![]), Some(vec![Some(9)])];
        let levels = [
            vec![2, 0, 0, 0, 1 << 1 | 1, 0b0_0010], // one group of eight bits; the second id goes on
            vec![8, 0, 0, 0, 2 << 1, ID, 1 << 1, NULL, 1 << 1, EMPTY, 1 << 1, ID],
        ]
        .concat();
        let indices = [&[16, 1 << 1 | 1, 7, 0, 2, 1, 9, 0][..], &[0; 10]].concat();
        assert_eq!(only_page(300, rows()), [levels.clone(), indices].concat());
        let plain = vec![7, 0, 0, 0, 2, 1, 0, 0, 9, 0, 0, 0];
        assert_eq!(only_page(DICTIONARY_TOKENS + 1, rows()), [levels, plain].concat());
        // Without ids there are no indices, but their width.
        let none = [2, 0, 0, 0, 1 << 1 | 1, 0, 2, 0, 0, 0, 2 << 1, NULL, 16];
        assert_eq!(only_page(300, vec![None, None]), none);
    }

    #[test]
    fn a_list_begins_a_page_if_it_does_not_fit_into_the_one_before() {
        let rows = |lengths: &[usize]| {
            let row = |&length| Some(vec![Some(1); length]);
            lists(lengths.iter().map(row).collect())
        };
        let of = |lengths: &[usize]| {
            let pages = IdPages::new(9, Codec::Zstd).pages(&rows(lengths)).unwrap();
            assert_eq!(pages.rows, lengths.len());
            assert_eq!(pages.levels, lengths.iter().map(|&length| length.max(1)).sum::<usize>());
            pages.pages
        };
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[PAGE_IDS]), 1);
        assert_eq!(of(&[PAGE_IDS - 1, 0]), 1);
        assert_eq!(of(&[PAGE_IDS, 0]), 2);
        assert_eq!(of(&[1, PAGE_IDS]), 2);
        assert_eq!(of(&[1, 2 * PAGE_IDS + 1, 1]), 4);
    }

    #[test]
    fn only_lists_of_ids_of_the_vocabulary_have_pages() {
        let maker = IdPages::new(10, Codec::Lz4);
        let fails = |ids: &ArrayRef| matches!(maker.pages(ids), Err(Error::Data(_)));
        assert!(!fails(&lists(vec![Some(vec![Some(9)])])));
        for bad in [Some(10), Some(-1), None] {
            assert!(fails(&lists(vec![Some(vec![Some(1), bad])])));
        }
        let flat: ArrayRef = Arc::new(arrow_array::Int32Array::from(vec![1]));
        assert!(fails(&flat));
        let (plain, small) = (IdPages::new(DICTIONARY_TOKENS + 1, Codec::Zstd), maker);
        assert!(plain.dictionary().unwrap().is_none());
        assert_eq!(small.dictionary().unwrap().unwrap().pages, 1);
    }
}
