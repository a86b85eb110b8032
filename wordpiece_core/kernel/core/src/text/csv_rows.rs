//! Finds the ends of rows of a CSV file with the quotes of RFC 4180.
//!
//! The file comes in blocks of any size. Whoever parses only complete rows gets the same rows for
//! all sizes.

use crate::base::error::{Error, Result};

/// Finds the ends of rows.
///
/// # Examples
///
/// ```
/// use wordpiece_core::internals::CsvRows;
///
/// let mut rows = CsvRows::new(b',', true);
/// assert_eq!(rows.scan(b"text,n\n\"two\r").unwrap(), 7);
/// assert_eq!(rows.scan(b"\nlines\",1\n").unwrap(), 10);
/// assert!(rows.scan(b"\"a\"b,2\n").unwrap_err().to_string().starts_with("row 3: "));
/// ```
pub struct CsvRows {
    delimiter: u8,
    quoting: bool,
    state: State,
    is_blank: bool,
    rows: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// A field begins.
    Start,
    /// Inside a field without quotes.
    Unquoted,
    /// Inside a quoted field.
    Quoted,
    /// After a quote in a quoted field, which ends the field unless another quote follows.
    Quote,
    /// After a carriage return, which ends the row; a line feed may belong to it.
    Return,
}

impl CsvRows {
    /// For a file from its beginning. Without `quoting`, a quote is a character like any other.
    pub fn new(delimiter: u8, quoting: bool) -> Self {
        CsvRows { delimiter, quoting, state: State::Start, is_blank: true, rows: 0 }
    }

    /// Return the number of complete rows, with the first one and without blank lines.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Reads the next block of the file. Returns where the last row that is known to be complete
    /// ends in the block; 0 if there is none.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if a quoted field does not end before a delimiter or a line end.
    pub fn scan(&mut self, block: &[u8]) -> Result<usize> {
        let (mut at, mut end) = (0, 0);
        while let Some(&byte) = block.get(at) {
            match self.state {
                State::Return => {
                    let is_line_feed = byte == b'\n';
                    self.state = State::Start;
                    at += usize::from(is_line_feed);
                    end = at;
                    continue;
                }
                State::Quoted => match memchr::memchr(b'"', &block[at..]) {
                    None => break,
                    Some(quote) => {
                        at += quote;
                        self.state = State::Quote;
                    }
                },
                State::Quote if byte == b'"' => self.state = State::Quoted,
                State::Quote if !self.ends_field(byte) => return Err(self.misplaced_quote(byte)),
                State::Start if byte == b'"' && self.quoting => {
                    (self.state, self.is_blank) = (State::Quoted, false);
                }
                _ => match memchr::memchr3(self.delimiter, b'\n', b'\r', &block[at..]) {
                    None => {
                        (self.state, self.is_blank) = (State::Unquoted, false);
                        break;
                    }
                    Some(length) => {
                        self.is_blank &= length == 0;
                        at += length;
                        if self.end_field(block[at]) {
                            end = at + 1;
                        }
                    }
                },
            }
            at += 1;
        }
        Ok(end)
    }

    /// Ends the field before a byte. Returns whether a row ends with it.
    fn end_field(&mut self, byte: u8) -> bool {
        if byte == self.delimiter {
            (self.state, self.is_blank) = (State::Start, false);
            return false;
        }
        self.rows += u64::from(!self.is_blank);
        self.is_blank = true;
        self.state = if byte == b'\r' { State::Return } else { State::Start };
        byte == b'\n'
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if a quoted field has no end.
    pub fn finish(&self) -> Result<()> {
        if self.state == State::Quoted {
            return Err(Error::data(format!("row {}: a quote is not closed", self.rows + 1)));
        }
        Ok(())
    }

    fn ends_field(&self, byte: u8) -> bool {
        byte == self.delimiter || byte == b'\n' || byte == b'\r'
    }

    fn misplaced_quote(&self, byte: u8) -> Error {
        let row = self.rows + 1;
        let byte = byte.escape_ascii();
        Error::data(format!("row {row}: a quoted field ends before {byte}, not before a delimiter"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of a file that comes in blocks of a size.
    fn rows(file: &[u8], size: usize, quoting: bool) -> Result<Vec<Vec<u8>>> {
        let (mut scanner, mut held, mut found) = (CsvRows::new(b',', quoting), Vec::new(), vec![]);
        for block in file.chunks(size) {
            let end = scanner.scan(block)?;
            held.extend_from_slice(&block[..end]);
            if end > 0 {
                found.push(std::mem::take(&mut held));
            }
            held.extend_from_slice(&block[end..]);
        }
        scanner.finish()?;
        found.push(held);
        Ok(found)
    }

    #[test]
    fn blocks_end_where_rows_do_for_any_size() {
        let file = b"a,b\r\n\"x\r\ny\",\"\"\"\"\r\r\n\n5\",\n\"\",\"\r\n\"";
        let ends = [5, 17, 19, 20, 24];
        for size in 1..=file.len() {
            let mut at = 0;
            for block in rows(file, size, true).unwrap() {
                at += block.len();
                assert!(at == file.len() || ends.contains(&at), "{size}: {at}");
            }
            assert_eq!(at, file.len());
        }
    }

    #[test]
    fn quotes_in_wrong_places_are_named_with_their_row() {
        let message = |file: &[u8], size| rows(file, size, true).unwrap_err().to_string();
        for size in 1..12 {
            assert_eq!(message(b"a\n\n1\n\"x\ny", size), "row 3: a quote is not closed");
            let misplaced = message(b"a\r\n1\r\n\"x\"y\n", size);
            assert_eq!(misplaced, "row 3: a quoted field ends before y, not before a delimiter");
            assert!(rows(b"a\n\"x\n\"x\"y\n", size, false).is_ok());
        }
    }
}
