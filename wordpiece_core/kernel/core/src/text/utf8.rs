//! Bytes to strings: invalid UTF-8 is replaced by U+FFFD, and counted. Valid bytes, nearly all, are
//! checked with SIMD instructions and not copied.

use std::borrow::Cow;

/// The bytes as a string, and how many invalid sequences were replaced. As in Python's
/// `bytes.decode(errors="replace")`, each longest invalid sequence becomes one U+FFFD.
///
/// # Examples
///
/// ```
/// use wordpiece_core::text::utf8::repair;
///
/// assert_eq!(repair("é".as_bytes()), ("é".into(), 0));
/// assert_eq!(repair(b"a\xffb"), ("a\u{FFFD}b".into(), 1));
/// ```
#[inline]
pub fn repair(bytes: &[u8]) -> (Cow<'_, str>, u64) {
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => (Cow::Borrowed(text), 0),
        Err(_) => repaired(bytes),
    }
}

#[cold]
fn repaired(bytes: &[u8]) -> (Cow<'_, str>, u64) {
    let (mut text, mut replaced) = (String::new(), 0);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push('\u{FFFD}');
            replaced += 1;
        }
    }
    (Cow::Owned(text), replaced)
}

/// The lines of a block of text. It is split at every `\n`, and a `\r` before one is dropped. Bytes
/// after the last `\n` are also a line.
pub fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', block).chain(
        // If the block does not end with a line end, its end counts as one.
        block.last().filter(|&&last| last != b'\n').map(|_| block.len()),
    );
    ends.map(move |end| {
        let line = &block[start..end];
        start = end + 1;
        if end < block.len() { line.strip_suffix(b"\r").unwrap_or(line) } else { line }
    })
}

/// Return the first eight bytes of a string as a number. Numbers that differ have the order of the strings.
pub(crate) fn first_bytes(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let padded = || {
        let mut block = [0; 8];
        block[..bytes.len()].copy_from_slice(bytes);
        block
    };
    u64::from_be_bytes(bytes.first_chunk().copied().unwrap_or_else(padded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_line_ends_only() {
        let split = |block: &'static [u8]| lines(block).collect::<Vec<_>>();
        assert_eq!(split(b"a\r\n\nb\rc\r"), [&b"a"[..], b"", b"b\rc\r"]);
        assert_eq!(split(b"a\n"), [b"a"]);
        assert!(split(b"").is_empty());
    }

    #[test]
    fn every_invalid_sequence_counts_once() {
        let (text, replaced) = repair(b"a\xff\xe2\x82b\xf0\x9f");
        assert_eq!((&*text, replaced), ("a\u{FFFD}\u{FFFD}b\u{FFFD}", 3));
    }
}
