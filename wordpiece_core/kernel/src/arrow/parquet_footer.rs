//! Structures of a Parquet file, read safely from any bytes: the columns that are encrypted (pyarrow
//! does not say, and aborts the process when it reads the chunk of such a column), the nesting of the
//! schema, and the headers of pages.
//!
//! They are in Thrift's compact protocol. Only the fields that are asked for are read, and the rest is
//! skipped. Every step takes at least one byte, so that reading any bytes takes no longer than they
//! are long, and the depth is limited.

use std::collections::HashSet;

use crate::error::{Error, Result};

// The types of the compact protocol that have a size or parts of their own.
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// How deep structures may be nested. Those of Parquet are seven deep.
const MOST_DEPTH: usize = 32;

/// How deep groups of a schema may be nested. A list takes two levels.
const MOST_NESTED: usize = 300;

/// The paths of the columns that are encrypted, as `a.b`, in the order of the file, each once.
///
/// # Arguments
///
/// * `tail` - The end of a file, from the beginning of its footer or from before it.
///
/// # Errors
///
/// Returns [`Error::Data`] if the footer is encrypted itself, or if there is none.
pub fn encrypted_columns(tail: &[u8]) -> Result<Vec<String>> {
    let mut reader = Reader { left: metadata(tail)?, depth: 0 };
    let mut encrypted = Vec::new();
    let mut seen = HashSet::new();
    reader.structure(|reader, field, kind| match (field, kind) {
        (4, LIST) => reader.list(STRUCT, |reader| {
            let mut position = 0;
            reader.structure(|reader, field, kind| match (field, kind) {
                (1, LIST) => reader.list(STRUCT, |reader| {
                    position += 1;
                    let path = reader.encrypted_path(position)?;
                    encrypted.extend(path.filter(|path| seen.insert(path.clone())));
                    Ok(())
                }),
                _ => reader.skip(kind),
            })
        }),
        _ => reader.skip(kind),
    })?;
    Ok(encrypted)
}

/// Checks the schema in a footer before the Parquet library reads it: that reserves memory for as many
/// children as an element says it has, and recurses as deep as they are nested.
///
/// # Arguments
///
/// * `metadata` - The footer, without its length and the magic number behind it.
///
/// # Errors
///
/// Returns [`Error::Data`] if elements have more children than there are, or are nested too deep.
pub(crate) fn check_schema(metadata: &[u8]) -> Result<()> {
    let mut reader = Reader { left: metadata, depth: 0 };
    reader.structure(|reader, field, kind| match (field, kind) {
        (2, LIST) => {
            let mut places = reader.clone().list_head()?.1; // for elements that are children
            let mut open = Vec::new(); // of each group around: how many of its children are to come
            reader.list(STRUCT, |reader| {
                let children = reader.number_of_children()?;
                places = places.checked_sub(children).ok_or_else(broken)?;
                while open.pop_if(|left| *left == 0).is_some() {}
                if let Some(left) = open.last_mut() {
                    *left -= 1;
                }
                open.push(children);
                if open.len() > MOST_NESTED { Err(broken()) } else { Ok(()) }
            })
        }
        _ => reader.skip(kind),
    })
}

/// The header of a page.
pub(crate) struct PageHeader {
    /// What the page is: 0 is data of version 1, 1 an index, 2 a dictionary, 3 data of version 2.
    pub kind: i64,
    /// The bytes of the page after its header.
    pub size: i64,
    /// The values of a page of data of version 1.
    pub values: i64,
    /// The bytes of the header.
    pub length: usize,
}

/// Reads the header of the page at the beginning of these bytes. (The Parquet library takes the size
/// of a list at its word, and goes on beyond the end.)
///
/// # Errors
///
/// Returns [`Error::Data`] if there is none.
pub(crate) fn page_header(bytes: &[u8]) -> Result<PageHeader> {
    let mut reader = Reader { left: bytes, depth: 0 };
    let mut header = PageHeader { kind: -1, size: -1, values: 0, length: 0 };
    reader.structure(|reader, field, kind| match (field, kind) {
        (1, 4..=6) => reader.integer().map(|kind| header.kind = kind),
        (3, 4..=6) => reader.integer().map(|size| header.size = size),
        (5, STRUCT) => reader.structure(|reader, field, kind| match (field, kind) {
            (1, 4..=6) => reader.integer().map(|values| header.values = values),
            _ => reader.skip(kind),
        }),
        _ => reader.skip(kind),
    })?;
    header.length = bytes.len() - reader.left.len();
    Ok(header)
}

/// The bytes of the structure in the footer, without its length and the magic number behind it.
pub(crate) fn metadata(tail: &[u8]) -> Result<&[u8]> {
    let Some((rest, [l0, l1, l2, l3, magic @ ..])) = tail.split_last_chunk::<8>() else {
        return Err(broken());
    };
    match magic {
        b"PAR1" => {}
        b"PARE" => return Err(Error::data("the footer is encrypted")),
        _ => return Err(broken()),
    }
    let length = u32::from_le_bytes([*l0, *l1, *l2, *l3]) as usize;
    let start = rest.len().checked_sub(length).ok_or_else(broken)?;
    Ok(&rest[start..])
}

fn broken() -> Error {
    Error::data("not the footer of a Parquet file, or a broken one")
}

#[derive(Clone)]
struct Reader<'a> {
    left: &'a [u8],
    depth: usize,
}

impl<'a> Reader<'a> {
    /// Reads a ColumnChunk: its path, if it is encrypted. `position`: its number among the columns, which
    /// is named if there is no path.
    fn encrypted_path(&mut self, position: usize) -> Result<Option<String>> {
        let (mut path, mut encrypted) = (None, false);
        self.structure(|reader, field, kind| match (field, kind) {
            (3, STRUCT) => reader.path_in(3, &mut path), // meta_data
            (8, STRUCT) => {
                encrypted = true; // crypto_metadata, a union: 2 is a key of the column's own
                reader.structure(|reader, field, kind| match (field, kind) {
                    (2, STRUCT) => reader.path_in(1, &mut path),
                    _ => reader.skip(kind),
                })
            }
            (9, _) => {
                encrypted = true; // encrypted_column_metadata
                reader.skip(kind)
            }
            _ => reader.skip(kind),
        })?;
        Ok(encrypted.then(|| path.unwrap_or_else(|| format!("column {position}"))))
    }

    /// Reads a SchemaElement: how many children it has.
    fn number_of_children(&mut self) -> Result<u64> {
        let mut children = 0;
        self.structure(|reader, field, kind| match (field, kind) {
            (5, 4..=6) => {
                children = u64::try_from(reader.integer()?).map_err(|_| broken())?;
                Ok(())
            }
            _ => reader.skip(kind),
        })?;
        Ok(children)
    }

    /// Reads a structure that has a path, which is a list of names, in one of its fields.
    fn path_in(&mut self, wanted: i16, path: &mut Option<String>) -> Result<()> {
        self.structure(|reader, field, kind| {
            if (field, kind) != (wanted, LIST) {
                return reader.skip(kind);
            }
            let mut names = Vec::new();
            reader.list(BINARY, |reader| {
                names.push(String::from_utf8_lossy(reader.binary()?));
                Ok(())
            })?;
            *path = Some(names.join("."));
            Ok(())
        })
    }

    /// Calls `each` with the number and the type of every field, whose value it must read.
    fn structure(&mut self, mut each: impl FnMut(&mut Self, i16, u8) -> Result<()>) -> Result<()> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(broken());
        }
        let mut field = 0i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                self.depth -= 1;
                return Ok(());
            }
            field = match head >> 4 {
                0 => self.integer()? as i16,
                more => field.checked_add(more.into()).ok_or_else(broken)?,
            };
            each(self, field, head & 15)?;
        }
    }

    /// Calls `each` for every element of a list, which it must read.
    fn list(&mut self, wanted: u8, mut each: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let (kind, size) = self.list_head()?;
        if kind != wanted && size > 0 {
            return Err(broken());
        }
        (0..size).try_for_each(|_| each(self))
    }

    fn list_head(&mut self) -> Result<(u8, u64)> {
        let head = self.byte()?;
        let size = if head >> 4 == 15 { self.varint()? } else { (head >> 4).into() };
        Ok((head & 15, size))
    }

    fn binary(&mut self) -> Result<&'a [u8]> {
        let size = self.varint()?;
        self.take(size)
    }

    /// Skips a value that is a field's. (Among fields the type of a bool is its value; in lists it
    /// takes a byte.)
    fn skip(&mut self, kind: u8) -> Result<()> {
        match kind {
            1 | 2 => Ok(()),
            3 => self.take(1).map(drop),
            4..=6 => self.varint().map(drop),
            7 => self.take(8).map(drop),
            BINARY => self.binary().map(drop),
            LIST | 10 => {
                let (kind, size) = self.list_head()?;
                (0..size).try_for_each(|_| self.skip_element(kind))
            }
            11 => {
                let size = self.varint()?;
                let kinds = if size > 0 { self.byte()? } else { 0 };
                (0..size).try_for_each(|_| {
                    self.skip_element(kinds >> 4)?;
                    self.skip_element(kinds & 15)
                })
            }
            STRUCT => self.structure(|reader, _, kind| reader.skip(kind)),
            13 => self.take(16).map(drop),
            _ => Err(broken()),
        }
    }

    /// Skips an element of a list or a map. Lists of lists count as depth, too.
    fn skip_element(&mut self, kind: u8) -> Result<()> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(broken());
        }
        self.skip(if kind <= 2 { 3 } else { kind })?;
        self.depth -= 1;
        Ok(())
    }

    fn integer(&mut self) -> Result<i64> {
        let number = self.varint()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64)) // zigzag
    }

    fn varint(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(number);
            }
        }
        Err(broken())
    }

    fn byte(&mut self) -> Result<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn take(&mut self, size: u64) -> Result<&'a [u8]> {
        let size = usize::try_from(size).map_err(|_| broken())?;
        let (taken, left) = self.left.split_at_checked(size).ok_or_else(broken)?;
        self.left = left;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A footer of one row group with these chunks, as the bytes of their fields.
    fn footer(chunks: &[&[u8]], magic: &[u8; 4]) -> Vec<u8> {
        let mut bytes = vec![0x15, 2]; // version: 1
        bytes.extend([0x39, 0x1C]); // field 4: a list of one struct
        bytes.extend([0x19, (chunks.len() as u8) << 4 | STRUCT]);
        chunks.iter().for_each(|chunk| bytes.extend([*chunk, &[0]].concat()));
        bytes.extend([0, 0]);
        let length = bytes.len() as u32;
        [b"PAR1....", &bytes[..], &length.to_le_bytes(), magic].concat()
    }

    /// Field 3 (metadata) with the path `a.b`.
    const PATH: &[u8] = &[0x3C, 0x39, 0x28, 1, b'a', 1, b'b', 0];
    /// After that field 8 with a key of its own and the path `c`, and field 9.
    const CRYPTO: &[u8] = &[0x5C, 0x2C, 0x19, 0x18, 1, b'c', 0, 0, 0x18, 2, 7, 7];

    #[test]
    fn encrypted_columns_are_named_once() {
        let mixed = [PATH, CRYPTO].concat();
        let by_metadata = [PATH, &[0x68, 1, 7]].concat(); // field 9 alone
        let nameless: &[u8] = &[0x98, 1, 7];
        let chunks = [PATH, &mixed, &mixed, &by_metadata, nameless];
        let columns = encrypted_columns(&footer(&chunks, b"PAR1")).unwrap();
        assert_eq!(columns, ["c", "a.b", "column 5"]);
        assert_eq!(encrypted_columns(&footer(&[PATH], b"PAR1")), Ok(vec![]));
    }

    #[test]
    fn what_is_no_footer_is_an_error() {
        let good = footer(&[PATH, CRYPTO], b"PAR1");
        let encrypted = encrypted_columns(&footer(&[], b"PARE")).unwrap_err();
        assert_eq!(encrypted, Error::data("the footer is encrypted"));
        for cut in 0..good.len() - 8 {
            let bytes = [&good[..cut], &good[good.len() - 8..]].concat();
            assert!(encrypted_columns(&bytes).is_err(), "{cut}");
        }
        for tail in [&b""[..], b"PAR1", b"\0\0\0\0PAR2", b"\xff\xff\xff\xffPAR1"] {
            assert_eq!(encrypted_columns(tail), Err(broken()));
        }
        for deep in [&[0x1C; 999][..], &[0x19; 999], &[0x1B; 999], &[0x19, 0xFC]] {
            let length = (deep.len() as u32).to_le_bytes();
            assert!(encrypted_columns(&[deep, &length, b"PAR1"].concat()).is_err());
        }
    }

    #[test]
    fn a_schema_has_as_many_children_as_it_says_and_is_not_too_deep() {
        // Elements with nothing but their numbers of children (field 5), as a list in field 2.
        let schema = |children: &[u8]| {
            let mut bytes = vec![0x29, 0xFC];
            bytes.extend([children.len() as u8 | 128, (children.len() >> 7) as u8]);
            children.iter().for_each(|number| bytes.extend([0x55, number << 1, 0]));
            [&bytes[..], &[0]].concat()
        };
        let chain = |length: usize| schema(&[&vec![1; length - 1][..], &[0]].concat());
        assert_eq!(check_schema(&schema(&[2, 0, 1, 0])), Ok(()));
        assert_eq!(check_schema(&chain(MOST_NESTED)), Ok(()));
        assert_eq!(check_schema(&schema(&vec![0; 5000])), Ok(()));
        assert_eq!(check_schema(&chain(MOST_NESTED + 1)), Err(broken()));
        assert_eq!(check_schema(&schema(&[2, 0, 3, 0])), Err(broken()));
        let huge = [0x29, 0x1C, 0x55, 0xA7, 0xA7, 0xA7, 0xA7, 8, 0, 0];
        assert_eq!(check_schema(&huge), Err(broken()));
    }

    #[test]
    fn a_page_header_is_read_to_its_end() {
        // type: DATA_PAGE; uncompressed_page_size: 9; compressed_page_size: 5; num_values: 3
        let bytes = [0x15, 0, 0x15, 18, 0x15, 10, 0x2C, 0x15, 6, 0, 0, 77];
        let header = page_header(&bytes).unwrap();
        assert_eq!((header.kind, header.size, header.values, header.length), (0, 5, 3, 11));
        assert!((0..11).all(|end| page_header(&bytes[..end]).is_err()));
        let endless = [0x19, 0xF8, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]; // a list of 2^48 texts
        assert!(page_header(&endless).is_err());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic() {
        let mut random = crate::oracle::Random::new(5);
        let good = footer(&[&[PATH, CRYPTO].concat(), PATH], b"PAR1");
        for _ in 0..if cfg!(miri) { 100 } else { 20_000 } {
            let mut bytes = good.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len() - 8);
                bytes[at] = random.below(256) as u8;
            }
            let _ = encrypted_columns(&bytes);
        }
    }
}
