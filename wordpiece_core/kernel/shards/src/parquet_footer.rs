//! Reads two parts of Parquet files: the encrypted columns in the footer (pyarrow aborts the process when it
//! reads a chunk of such a column), and the headers of pages.

use std::collections::HashSet;

use super::thrift::{BINARY, LIST, Reader, STRUCT, broken};
use wordpiece_core::{Error, Result};

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
    let mut reader = Reader::new(metadata(tail)?);
    let mut encrypted = Vec::new();
    let mut seen = HashSet::new();
    reader.structure(|reader, field, kind| match (field, kind) {
        (4, LIST) => reader.list(STRUCT, |reader| {
            let mut position = 0;
            reader.structure(|reader, field, kind| match (field, kind) {
                (1, LIST) => reader.list(STRUCT, |reader| {
                    position += 1;
                    let path = encrypted_path(reader, position)?;
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

/// Kinds of pages. Data pages have version 1; pages of version 2 have another kind.
pub(crate) const DATA_PAGE: i64 = 0;
pub(crate) const INDEX_PAGE: i64 = 1;
pub(crate) const DICTIONARY_PAGE: i64 = 2;

/// The header of a page.
pub(crate) struct PageHeader {
    /// The kind of the page: one of the kinds above, or another one.
    pub kind: i64,
    /// The bytes of the page after its header.
    pub size: i64,
    /// The values of a page of data of version 1.
    pub values: i64,
    /// The bytes of the header.
    pub length: usize,
}

/// Reads the header of the page at the beginning of these bytes. (The Parquet library trusts the
/// size of a list, and reads beyond the end.)
///
/// # Errors
///
/// Returns [`Error::Data`] if there is none.
pub(crate) fn page_header(bytes: &[u8]) -> Result<PageHeader> {
    let mut reader = Reader::new(bytes);
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
    header.length = bytes.len() - reader.left();
    Ok(header)
}

/// Return the bytes of the structure in the footer, without its length and the magic number after it.
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

/// Reads a ColumnChunk: its path, if it is encrypted. `position`: its number among the columns, which
/// is named if there is no path.
fn encrypted_path(chunk: &mut Reader, position: usize) -> Result<Option<String>> {
    let (mut path, mut encrypted) = (None, false);
    chunk.structure(|reader, field, kind| match (field, kind) {
        (3, STRUCT) => path_in(reader, 3, &mut path), // meta_data
        (8, STRUCT) => {
            encrypted = true; // crypto_metadata, a union: 2 is a key of the column's own
            reader.structure(|reader, field, kind| match (field, kind) {
                (2, STRUCT) => path_in(reader, 1, &mut path),
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

/// Reads a structure that has a path, which is a list of names, in one of its fields.
fn path_in(structure: &mut Reader, wanted: i16, path: &mut Option<String>) -> Result<()> {
    structure.structure(|reader, field, kind| {
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
        let in_full = [6, 6, 0, 5, 2, 2, 0, 7, 0, 0, 0]; // the fields 3 and 1, numbered in full
        assert_eq!(encrypted_columns(&[&in_full[..], b"PAR1"].concat()), Ok(vec![]));
    }

    #[test]
    fn what_is_no_footer_is_an_error() {
        let good = footer(&[PATH, CRYPTO], b"PAR1");
        let encrypted = encrypted_columns(&footer(&[], b"PARE")).unwrap_err();
        assert_eq!(encrypted, Error::data("the footer is encrypted"));
        for length in 0..good.len() - 8 {
            let bytes = [&good[..length], &good[good.len() - 8..]].concat();
            assert!(encrypted_columns(&bytes).is_err(), "{length}");
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
        let mut random = wordpiece_testing::Random::new(5);
        let good = footer(&[&[PATH, CRYPTO].concat(), PATH], b"PAR1");
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len() - 8);
                bytes[at] = random.below(256) as u8;
            }
            let _ = encrypted_columns(&bytes);
            let _ = page_header(&bytes[random.below(bytes.len())..]);
        }
    }
}
