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

use std::sync::{Mutex, OnceLock};

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};

use wordpiece_core::internals::Id;
use wordpiece_core::{Error, Result};

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
/// More bytes than the header of a page has.
const PAGE_HEADER: usize = 1 << 10;
/// The most bytes of memory for pages that are kept for those to come.
const MOST_KEPT: usize = 8 << 20;

/// The compression of pages.
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
    /// The bytes for the file.
    pub(super) bytes: Bytes,
    /// The number of uncompressed bytes, with headers.
    pub(super) uncompressed: usize,
    /// The number of pages.
    pub(super) pages: usize,
    /// The number of levels: ids, empty lists and nulls.
    pub(super) levels: usize,
    /// The number of lists, nulls included.
    pub rows: usize,
    /// The number of nulls.
    pub nulls: usize,
    /// The number of ids.
    pub ids: usize,
}

/// Makes the pages of columns of ids.
pub struct IdPages {
    tokens: u32,
    codec: Codec,
    dictionary: OnceLock<Pages>,
    /// Sinks of earlier pages, for reuse.
    kept: Mutex<Vec<PageSink>>,
}

impl IdPages {
    /// For ids below `tokens`.
    pub fn new(tokens: u32, codec: Codec) -> Self {
        IdPages { tokens, codec, dictionary: OnceLock::new(), kept: Mutex::default() }
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
        let mut sink = PageSink::new(self.codec, DICTIONARY_LEVEL)?;
        sink.plain.extend((0..self.tokens).flat_map(u32::to_le_bytes));
        sink.write(|buf| Page::DictionaryPage {
            buf,
            num_values: self.tokens,
            encoding: Encoding::PLAIN,
            is_sorted: true,
        })?;
        let page = sink.take();
        Ok(Some(self.dictionary.get_or_init(|| page)))
    }

    /// Return a sink that makes pages from single lists.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if the codec fails.
    pub fn writer(&self) -> Result<IdPageWriter<'_>> {
        let kept = self.kept.lock().map_or_else(|_| None, |mut kept| kept.pop());
        let sink = kept.map_or_else(|| PageSink::new(self.codec, ZSTD_LEVEL), Ok)?;
        Ok(IdPageWriter { maker: self, sink, page: DataPage::default() })
    }
}

/// Makes data pages of lists that come one at a time.
pub struct IdPageWriter<'m> {
    maker: &'m IdPages,
    sink: PageSink,
    page: DataPage,
}

impl IdPageWriter<'_> {
    /// Append a list of ids, or a null for None.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if an id is not below the number of tokens.
    pub fn add<T: Id>(&mut self, list: Option<&[T]>) -> Result<()> {
        let ids = list.unwrap_or_default();
        if self.page.levels + ids.len().max(1) > PAGE_IDS {
            self.end_page()?;
        }
        if ids.is_empty() {
            self.page.add_levels(1, if list.is_none() { NULL } else { EMPTY }, true);
        }
        for (number, some) in ids.chunks(PAGE_IDS).enumerate() {
            if number > 0 {
                self.end_page()?;
            }
            self.page.add_levels(some.len(), ID, number == 0);
            self.add_values(some)?;
        }
        let counts = &mut self.sink.pages;
        counts.rows += 1;
        counts.nulls += usize::from(list.is_none());
        counts.ids += ids.len();
        Ok(())
    }

    /// Ends the page that the last list is in, so that the next one begins another.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if the codec fails.
    pub fn end_page(&mut self) -> Result<()> {
        let (encoding, levels) = (self.maker.encoding(), self.page.levels);
        if levels > 0 {
            self.page.write(encoding, &mut self.sink.plain);
            self.sink.write(|buf| Page::DataPage {
                buf,
                num_values: levels as u32, // up to PAGE_IDS
                encoding,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            })?;
            self.sink.pages.levels += levels;
        }
        self.page.clear();
        Ok(())
    }

    /// The pages of all lists.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if the codec fails.
    pub fn finish(mut self) -> Result<Pages> {
        self.end_page()?;
        let IdPageWriter { maker, mut sink, .. } = self;
        let pages = sink.take();
        if let Ok(mut kept) = maker.kept.lock() {
            kept.push(sink);
        }
        Ok(pages)
    }

    /// Append ids in the encoding of the page: indices of the dictionary, or plain.
    fn add_values<T: Id>(&mut self, ids: &[T]) -> Result<()> {
        let largest = ids.iter().fold(0, |largest, id| id.value().max(largest));
        let IdPages { tokens, .. } = *self.maker;
        if largest >= tokens {
            let row = self.sink.pages.rows;
            return Err(Error::data(format!(
                "ids: row {row}: an id is beyond the {tokens} tokens"
            )));
        }
        match self.maker.encoding() {
            Encoding::PLAIN => self.page.add_values(ids, |id| id.value().to_le_bytes()),
            _ => self.page.add_values(ids, |id| (id.value() as u16).to_le_bytes()),
        }
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
    /// The starts of lists.
    starts: Vec<usize>,
    /// Definition levels, and how often each is repeated.
    runs: Vec<(u8, usize)>,
    /// The ids are in the first `filled` bytes.
    values: Vec<u8>,
    filled: usize,
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

    /// Adds ids, up to `PAGE_IDS` in all.
    fn add_values<T: Id, const N: usize>(&mut self, ids: &[T], bytes: impl Fn(&T) -> [u8; N]) {
        self.values.resize(N * PAGE_IDS, 0);
        let end = self.filled + N * ids.len();
        let places = self.values[self.filled..end].as_chunks_mut().0;
        places.iter_mut().zip(ids).for_each(|(to, id)| *to = bytes(id));
        self.filled = end;
    }

    fn clear(&mut self) {
        self.levels = 0;
        self.starts.clear();
        self.runs.clear();
        self.filled = 0;
    }

    /// Appends the page without its header: repetition levels, definition levels, values.
    fn write(&self, encoding: Encoding, page: &mut Vec<u8>) {
        with_length(page, |page| {
            let start = bit_packed(page, self.levels);
            page.resize(start + self.levels / 8, 0xff);
            if !self.levels.is_multiple_of(8) {
                page.push((1 << (self.levels % 8)) - 1);
            }
            for &at in &self.starts {
                page[start + at / 8] &= !(1 << (at % 8));
            }
        });
        with_length(page, |page| {
            for &(definition, length) in &self.runs {
                varint(page, length << 1);
                page.push(definition);
            }
        });
        let values = &self.values[..self.filled];
        if encoding == Encoding::PLAIN {
            return page.extend_from_slice(values);
        }
        page.push(16); // the bits of an index
        let ids = values.len() / 2;
        if ids > 0 {
            let start = bit_packed(page, ids);
            page.extend_from_slice(values);
            page.resize(start + 2 * ids.next_multiple_of(8), 0);
        }
    }
}

/// A copy of some bytes.
pub fn copy_of(bytes: &[u8]) -> Bytes {
    let mut copy = Vec::with_capacity(bytes.len());
    copy.extend_from_slice(bytes);
    copy.into()
}

/// Writes what `write` does, with its length before it.
fn with_length(page: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = page.len();
    page.extend_from_slice(&[0; 4]);
    write(page);
    let length = (page.len() - start - 4) as u32; // of a page, whose size is bounded
    page[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Write the header of a run of bit-packed values. Return the offset of the values.
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

/// Compresses pages and writes them with their headers. Its memory is used again and again.
struct PageSink {
    codec: Codec,
    zstd: Option<zstd::bulk::Compressor<'static>>,
    /// The page that is written next.
    plain: Vec<u8>,
    compressed: Vec<u8>,
    /// The pages that are written.
    done: Vec<u8>,
    /// The counts of the pages.
    pages: Pages,
}

impl PageSink {
    fn new(codec: Codec, level: i32) -> Result<Self> {
        let zstd = (codec == Codec::Zstd).then(|| zstd::bulk::Compressor::new(level));
        let zstd = zstd.transpose().map_err(Error::data)?;
        let (plain, compressed, done) = Default::default();
        Ok(PageSink { codec, zstd, plain, compressed, done, pages: Pages::default() })
    }

    /// Writes the page that is in `plain`, and empties it. `page` makes it from its compressed bytes.
    fn write(&mut self, page: impl FnOnce(Bytes) -> Page) -> Result<()> {
        let PageSink { codec, zstd, plain, compressed, done, pages } = self;
        match (zstd, *codec) {
            (Some(zstd), _) => {
                compressed.clear();
                compressed.reserve(zstd::zstd_safe::compress_bound(plain.len()));
                zstd.compress_to_buffer(plain, compressed).map_err(Error::data)?;
            }
            (None, Codec::Lz4) => *compressed = lz4_flex::block::compress(plain),
            (None, Codec::Snappy) => {
                *compressed = snap::raw::Encoder::new().compress_vec(plain).map_err(Error::data)?;
            }
            (None, Codec::None | Codec::Zstd) => compressed.clone_from(plain),
        }
        done.reserve(compressed.len() + PAGE_HEADER);
        let bytes = Bytes::from(std::mem::take(compressed));
        let mut sink = TrackedWrite::new(std::mem::take(done));
        let page = CompressedPage::new(page(bytes.clone()), plain.len());
        let written = SerializedPageWriter::new(&mut sink).write_page(page).map_err(Error::data)?;
        *done = sink.into_inner().map_err(Error::data)?;
        *compressed = bytes.into(); // the page is gone, so nothing is copied
        plain.clear();
        pages.uncompressed += written.uncompressed_size;
        pages.pages += 1;
        Ok(())
    }

    /// The pages that are written. After that there are none.
    fn take(&mut self) -> Pages {
        let pages = Pages { bytes: copy_of(&self.done), ..std::mem::take(&mut self.pages) };
        self.done.clear();
        self.done.shrink_to(MOST_KEPT);
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type List<'a> = Option<&'a [u32]>;

    fn pages(tokens: u32, codec: Codec, lists: &[List<'_>]) -> Result<Pages> {
        let maker = IdPages::new(tokens, codec);
        let mut pages = maker.writer()?;
        lists.iter().try_for_each(|list| pages.add(*list))?;
        pages.finish()
    }

    /// The bytes of the only page, without its header.
    fn only_page(tokens: u32, lists: &[List<'_>]) -> Vec<u8> {
        let pages = pages(tokens, Codec::None, lists).unwrap();
        assert_eq!((pages.pages, pages.uncompressed), (1, pages.bytes.len()));
        // The header ends with the ends of two structures; two zeros stand nowhere before them.
        let header = pages.bytes.windows(2).position(|ends| ends == [0, 0]).unwrap();
        pages.bytes[header + 2..].to_vec()
    }

    #[test]
    fn a_page_has_a_bit_for_each_repetition_runs_of_definitions_and_the_ids() {
        let lists: [List<'_>; 4] = [Some(&[7, 258]), None, Some(&[]), Some(&[9])];
        let levels = [
            vec![2, 0, 0, 0, 1 << 1 | 1, 0b0_0010], // one group of eight bits; the second id continues
            vec![8, 0, 0, 0, 2 << 1, ID, 1 << 1, NULL, 1 << 1, EMPTY, 1 << 1, ID],
        ]
        .concat();
        let indices = [&[16, 1 << 1 | 1, 7, 0, 2, 1, 9, 0][..], &[0; 10]].concat();
        assert_eq!(only_page(300, &lists), [levels.clone(), indices].concat());
        let plain = vec![7, 0, 0, 0, 2, 1, 0, 0, 9, 0, 0, 0];
        assert_eq!(only_page(DICTIONARY_TOKENS + 1, &lists), [levels, plain].concat());
        // Without ids there are no indices, but their width.
        let none = [2, 0, 0, 0, 1 << 1 | 1, 0, 2, 0, 0, 0, 2 << 1, NULL, 16];
        assert_eq!(only_page(300, &[None, None]), none);
    }

    #[test]
    fn a_list_begins_a_page_if_it_does_not_fit_into_the_one_before() {
        let of = |lengths: &[usize]| {
            let ids = vec![1; 3 * PAGE_IDS];
            let lists: Vec<_> = lengths.iter().map(|&length| Some(&ids[..length])).collect();
            let pages = pages(9, Codec::Zstd, &lists).unwrap();
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
    fn only_ids_of_the_vocabulary_have_pages() {
        assert!(pages(10, Codec::Lz4, &[Some(&[9])]).is_ok());
        assert!(matches!(pages(10, Codec::Lz4, &[Some(&[1, 10])]), Err(Error::Data(_))));
        let [plain, small] = [DICTIONARY_TOKENS + 1, 10].map(|n| IdPages::new(n, Codec::Zstd));
        assert!(plain.dictionary().unwrap().is_none());
        assert_eq!(small.dictionary().unwrap().unwrap().pages, 1);
    }
}
