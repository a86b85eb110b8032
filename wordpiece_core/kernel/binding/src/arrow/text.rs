//! Texts in arrays: repaired, split into lines or words, and hashed.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, StringArray, UInt64Array};

use super::{each_row, string_lists, strings};
use wordpiece_core::Result;
use wordpiece_core::internals::{KeyedHash, utf8};
use wordpiece_core::text::TextRules;

/// The strings of an array of strings or bytes, with invalid UTF-8 replaced by U+FFFD, and how many
/// invalid sequences were replaced.
pub fn repaired(array: &ArrayRef) -> Result<(ArrayRef, u64)> {
    // If nothing needs repair, the bytes are not copied.
    if let Some(bytes) = array.as_any().downcast_ref::<BinaryArray>()
        && let Ok(valid) = StringArray::try_from_binary(bytes.clone())
    {
        return Ok((Arc::new(valid), 0));
    }
    let mut rows = Vec::with_capacity(array.len());
    each_row(array, |row| rows.push(row.map(utf8::repair)))?;
    let replaced = rows.iter().flatten().map(|(_, replaced)| replaced).sum();
    let strings = strings(rows.iter().map(|row| row.as_ref().map(|(text, _)| &**text)))?;
    Ok((Arc::new(strings), replaced))
}

/// The lines of a block of bytes as strings, and how many invalid UTF-8 sequences were replaced.
pub fn lines(block: &[u8]) -> Result<(ArrayRef, u64)> {
    let rows: Vec<_> = utf8::lines(block).map(utf8::repair).collect();
    let replaced = rows.iter().map(|(_, replaced)| replaced).sum();
    Ok((Arc::new(strings(rows.iter().map(|(text, _)| Some(&**text)))?), replaced))
}

/// The words of texts, as an array of type `list<string>`.
pub fn words(texts: &ArrayRef, rules: &TextRules) -> Result<ArrayRef> {
    let mut rows = Vec::with_capacity(texts.len());
    let mut word = String::new();
    each_row(texts, |row| {
        rows.push(row.map(|row| {
            let mut words = Vec::new();
            let text = utf8::repair(row).0;
            rules.segments(&text, |segment| {
                rules.normalize(segment.raw, &mut word);
                words.extend((!word.is_empty()).then(|| word.clone()));
            });
            words
        }));
    })?;
    string_lists(&rows)
}

/// The keyed hash of each row of an array of strings or bytes. A null hashes as the empty string.
pub fn hashes(texts: &ArrayRef, key: &[u8]) -> Result<ArrayRef> {
    let hash = KeyedHash::new(key)?;
    let mut hashes = Vec::with_capacity(texts.len());
    each_row(texts, |row| hashes.push(hash.of(row.unwrap_or_default())))?;
    Ok(Arc::new(UInt64Array::from(hashes)))
}

/// The keyed hash of each of `rows` consecutive numbers, as 8 bytes, the lowest first.
///
/// # Errors
///
/// Returns an error for a key that is too long.
pub fn hashes_of_numbers(first: u64, rows: usize, key: &[u8]) -> Result<ArrayRef> {
    let hash = KeyedHash::new(key)?;
    let numbers = (0..rows).map(|row| first.wrapping_add(row as u64));
    let hashes = numbers.map(|number| hash.of(&number.to_le_bytes())).collect::<Vec<_>>();
    Ok(Arc::new(UInt64Array::from(hashes)))
}
