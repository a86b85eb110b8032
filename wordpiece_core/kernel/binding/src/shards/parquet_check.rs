//! Checks that a Parquet footer is made as Parquet defines it, before the Parquet library reads it.
//!
//! The library takes fields to be of the type that they should have, whatever type is written there.
//! It also reserves memory for as many children as an element of the schema says it has, and recurses as
//! deep as they are nested. So bytes that no writer makes could have it ask for more memory than there
//! is, which ends the process.

use super::thrift::{BINARY, LIST, Reader, STRUCT, broken};
use wordpiece_core::Result;

/// How deep groups of a schema may be nested. A list takes two levels.
const MOST_NESTED: usize = 300;

/// The fields of a structure that have a type of their own, by number; integers of 16 bits and more are
/// written alike.
type Fields = &'static [(i16, Kind)];

enum Kind {
    Flag,
    Byte,
    Integer,
    Double,
    Binary,
    List(&'static Kind),
    Structure(Fields),
    /// The list of the elements of a schema.
    Schema,
}

use Kind::{Binary, Byte, Double, Flag, Integer, List, Schema, Structure};

const EMPTY: Kind = Structure(&[]);
const KEY_VALUE: Kind = Structure(&[(1, Binary), (2, Binary)]);
const TIME_UNIT: Kind = Structure(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]);
const TIME: Kind = Structure(&[(1, Flag), (2, TIME_UNIT)]);
const LOGICAL_TYPE: Kind = Structure(&[
    (1, EMPTY),                                    // STRING
    (2, EMPTY),                                    // MAP
    (3, EMPTY),                                    // LIST
    (4, EMPTY),                                    // ENUM
    (5, Structure(&[(1, Integer), (2, Integer)])), // DECIMAL
    (6, EMPTY),                                    // DATE
    (7, TIME),                                     // TIME
    (8, TIME),                                     // TIMESTAMP
    (10, Structure(&[(1, Byte), (2, Flag)])),      // INTEGER
    (11, EMPTY),                                   // UNKNOWN
    (12, EMPTY),                                   // JSON
    (13, EMPTY),                                   // BSON
    (14, EMPTY),                                   // UUID
    (15, EMPTY),                                   // FLOAT16
    (16, Structure(&[(1, Byte)])),                 // VARIANT
    (17, Structure(&[(1, Binary)])),               // GEOMETRY
    (18, Structure(&[(1, Binary), (2, Integer)])), // GEOGRAPHY
]);
const NUM_CHILDREN: i16 = 5;
const SCHEMA_ELEMENT: Fields = &[
    (1, Integer), // type
    (2, Integer), // type_length
    (3, Integer), // repetition_type
    (4, Binary),  // name
    (NUM_CHILDREN, Integer),
    (6, Integer), // converted_type
    (7, Integer), // scale
    (8, Integer), // precision
    (9, Integer), // field_id
    (10, LOGICAL_TYPE),
];
const STATISTICS: Kind = Structure(&[
    (1, Binary),  // max
    (2, Binary),  // min
    (3, Integer), // null_count
    (4, Integer), // distinct_count
    (5, Binary),  // max_value
    (6, Binary),  // min_value
    (7, Flag),    // is_max_value_exact
    (8, Flag),    // is_min_value_exact
    (9, Integer), // nan_count
]);
const BOUNDING_BOX: Kind = Structure(&[
    (1, Double),
    (2, Double),
    (3, Double),
    (4, Double),
    (5, Double),
    (6, Double),
    (7, Double),
    (8, Double),
]);
const COLUMN_METADATA: Kind = Structure(&[
    (1, Integer),        // type
    (2, List(&Integer)), // encodings
    (3, List(&Binary)),  // path_in_schema
    (4, Integer),        // codec
    (5, Integer),        // num_values
    (6, Integer),        // total_uncompressed_size
    (7, Integer),        // total_compressed_size
    (8, List(&KEY_VALUE)),
    (9, Integer),  // data_page_offset
    (10, Integer), // index_page_offset
    (11, Integer), // dictionary_page_offset
    (12, STATISTICS),
    (13, List(&Structure(&[(1, Integer), (2, Integer), (3, Integer)]))), // encoding_stats
    (14, Integer),                                                       // bloom_filter_offset
    (15, Integer),                                                       // bloom_filter_length
    (16, Structure(&[(1, Integer), (2, List(&Integer)), (3, List(&Integer))])), // size_statistics
    (17, Structure(&[(1, BOUNDING_BOX), (2, List(&Integer))])),          // geospatial_statistics
]);
const COLUMN_CHUNK: Kind = Structure(&[
    (1, Binary),  // file_path
    (2, Integer), // file_offset
    (3, COLUMN_METADATA),
    (4, Integer), // offset_index_offset
    (5, Integer), // offset_index_length
    (6, Integer), // column_index_offset
    (7, Integer), // column_index_length
    (8, Structure(&[(1, EMPTY), (2, Structure(&[(1, List(&Binary)), (2, Binary)]))])), // crypto_metadata
    (9, Binary), // encrypted_column_metadata
]);
const ROW_GROUP: Kind = Structure(&[
    (1, List(&COLUMN_CHUNK)),
    (2, Integer),                                                 // total_byte_size
    (3, Integer),                                                 // num_rows
    (4, List(&Structure(&[(1, Integer), (2, Flag), (3, Flag)]))), // sorting_columns
    (5, Integer),                                                 // file_offset
    (6, Integer),                                                 // total_compressed_size
    (7, Integer),                                                 // ordinal
]);
const ENCRYPTION: Kind = Structure(&[(1, Binary), (2, Binary), (3, Flag)]);
const FILE_METADATA: Fields = &[
    (1, Integer), // version
    (2, Schema),
    (3, Integer), // num_rows
    (4, List(&ROW_GROUP)),
    (5, List(&KEY_VALUE)),
    (6, Binary),                                         // created_by
    (7, List(&Structure(&[(1, EMPTY), (2, EMPTY)]))),    // column_orders
    (8, Structure(&[(1, ENCRYPTION), (2, ENCRYPTION)])), // encryption_algorithm
    (9, Binary),                                         // footer_signing_key_metadata
];

/// Checks a footer.
///
/// # Arguments
///
/// * `metadata` - The footer, without its length and the magic number behind it.
///
/// # Errors
///
/// Returns [`Error::Data`](wordpiece_core::Error::Data) if a field is not of the type that Parquet
/// defines, or if elements of the schema have more children than there are, or are nested too deep.
pub(crate) fn check_footer(metadata: &[u8]) -> Result<()> {
    check(&mut Reader::strict(metadata), &Structure(FILE_METADATA))
}

/// Reads a value, which must be of a kind.
fn check(reader: &mut Reader, kind: &Kind) -> Result<()> {
    match kind {
        Flag => Ok(()), // a field's type is its value
        Byte => reader.byte().map(drop),
        Integer => reader.integer().map(drop),
        Double => reader.skip(7),
        Binary => reader.binary().map(drop),
        List(kind) => {
            let size = list_of(reader, kind)?;
            (0..size).try_for_each(|_| check(reader, kind))
        }
        Structure(fields) => {
            reader.structure(|reader, field, found| check_field(reader, fields, field, found))
        }
        Schema => check_schema(reader),
    }
}

/// Reads a field of a structure with these fields. One that is not known here is skipped.
fn check_field(reader: &mut Reader, fields: Fields, field: i16, found: u8) -> Result<()> {
    match fields.iter().find(|(number, _)| *number == field) {
        None => reader.skip(found),
        Some((_, kind)) if is_written_as(kind, found) => check(reader, kind),
        Some(_) => Err(broken()),
    }
}

/// Reads the head of a list, whose elements must be of a kind: how many there are.
fn list_of(reader: &mut Reader, kind: &Kind) -> Result<u64> {
    let (found, size) = reader.list_head()?;
    if size > 0 && !is_written_as(kind, found) { Err(broken()) } else { Ok(size) }
}

/// Reads the elements of a schema, in each of which are as many of those after it as it has children.
fn check_schema(reader: &mut Reader) -> Result<()> {
    let size = list_of(reader, &Structure(SCHEMA_ELEMENT))?;
    let mut places = size; // for elements that are children
    let mut open = Vec::new(); // of each group around: how many of its children are to come
    (0..size).try_for_each(|_| {
        let children = number_of_children(reader)?;
        places = places.checked_sub(children).ok_or_else(broken)?;
        while open.pop_if(|left| *left == 0).is_some() {}
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        open.push(children);
        if open.len() > MOST_NESTED { Err(broken()) } else { Ok(()) }
    })
}

/// Reads an element of a schema: how many children it has.
fn number_of_children(reader: &mut Reader) -> Result<u64> {
    let mut children = 0;
    reader.structure(|reader, field, found| match (field, found) {
        (NUM_CHILDREN, 4..=6) => {
            children = u64::try_from(reader.integer()?).map_err(|_| broken())?;
            Ok(())
        }
        _ => check_field(reader, SCHEMA_ELEMENT, field, found),
    })?;
    Ok(children)
}

/// Whether a kind has the type of the protocol that was found.
fn is_written_as(kind: &Kind, found: u8) -> bool {
    match kind {
        Flag => matches!(found, 1 | 2),
        Byte => found == 3,
        Integer => matches!(found, 4..=6),
        Double => found == 7,
        Binary => found == BINARY,
        List(_) | Schema => found == LIST,
        Structure(_) => found == STRUCT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements of a schema with nothing but their numbers of children.
    fn schema(children: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x29, 0xFC];
        bytes.extend([children.len() as u8 | 128, (children.len() >> 7) as u8]);
        children.iter().for_each(|number| bytes.extend([0x55, number << 1, 0]));
        [&bytes[..], &[0]].concat()
    }

    #[test]
    fn a_schema_has_as_many_children_as_it_says_and_is_not_too_deep() {
        let chain = |length: usize| schema(&[&vec![1; length - 1][..], &[0]].concat());
        assert_eq!(check_footer(&schema(&[2, 0, 1, 0])), Ok(()));
        assert_eq!(check_footer(&chain(MOST_NESTED)), Ok(()));
        assert_eq!(check_footer(&schema(&vec![0; 5000])), Ok(()));
        assert_eq!(check_footer(&chain(MOST_NESTED + 1)), Err(broken()));
        assert_eq!(check_footer(&schema(&[2, 0, 3, 0])), Err(broken()));
        let huge = [0x29, 0x1C, 0x55, 0xA7, 0xA7, 0xA7, 0xA7, 8, 0, 0];
        assert_eq!(check_footer(&huge), Err(broken()));
    }

    #[test]
    fn a_field_of_another_type_is_an_error_and_an_unknown_field_is_none() {
        assert_eq!(check_footer(&[0x15, 2, 0]), Ok(())); // version: 1
        assert_eq!(check_footer(&[0x18, 1, 7, 0]), Err(broken())); // version: a text
        assert_eq!(check_footer(&[0x29, 0x15, 2, 0]), Err(broken())); // a schema of numbers
        assert_eq!(check_footer(&[0xD8, 1, 7, 0]), Ok(())); // field 13: a text
        assert_eq!(check_footer(&[0x49, 0x1C, 0x19, 0x0C, 0, 0]), Ok(())); // a row group of nothing
        assert_eq!(check_footer(&[0xD9, 0x25, 2, 4, 0]), Ok(())); // field 13: numbers
        assert_eq!(check_footer(&[0xD9, 0x21, 1, 2, 0]), Err(broken())); // field 13: flags
        assert_eq!(check_footer(&[0xDB, 1, 0x88, 0, 0, 0]), Err(broken())); // field 13: a map
        assert_eq!(check_footer(&[0x05, 2, 2, 0]), Err(broken())); // field 1, numbered in full
        let logical = |fields: &[u8]| [&[0x29, 0x1C, 0xAC], fields, &[0, 0, 0]].concat();
        assert_eq!(check_footer(&logical(&[0xAC, 0x13, 8, 0x11, 0])), Ok(())); // INTEGER
        assert_eq!(check_footer(&logical(&[0xAC, 0x15, 8, 0x11, 0])), Err(broken()));
    }
}
