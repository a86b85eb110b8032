//! Thrift's compact protocol, in which Parquet writes its structures, read safely from any bytes: every
//! step takes at least one byte, so that it takes no longer than they are long, and the depth is limited.

use wordpiece_core::{Error, Result};

// The types that have a size or parts of their own.
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// The maximum depth of nested structures. Parquet needs seven.
const MOST_DEPTH: usize = 32;

pub(super) fn broken() -> Error {
    Error::data("not the footer of a Parquet file, or a broken one")
}

/// Reads values one after the other. `depth`: how deep in structures and lists it is.
pub(super) struct Reader<'a> {
    left: &'a [u8],
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Reader { left: bytes, depth: 0 }
    }

    /// Return the number of bytes left.
    pub(super) fn left(&self) -> usize {
        self.left.len()
    }

    /// Calls `each` with the number and the type of every field, whose value it must read.
    pub(super) fn structure(
        &mut self,
        mut each: impl FnMut(&mut Self, i16, u8) -> Result<()>,
    ) -> Result<()> {
        self.nested(|reader| {
            let mut field = 0i16;
            loop {
                let head = reader.byte()?;
                if head == 0 {
                    return Ok(());
                }
                field = match head >> 4 {
                    0 => reader.integer()? as i16,
                    more => field.checked_add(more.into()).ok_or_else(broken)?,
                };
                each(reader, field, head & 15)?;
            }
        })
    }

    /// Reads a part that is one level deeper.
    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(broken());
        }
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    /// Calls `each` for every element of a list, which it must read.
    pub(super) fn list(
        &mut self,
        wanted: u8,
        mut each: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let (kind, size) = self.list_head()?;
        if kind != wanted && size > 0 {
            return Err(broken());
        }
        (0..size).try_for_each(|_| each(self))
    }

    pub(super) fn list_head(&mut self) -> Result<(u8, u64)> {
        let head = self.byte()?;
        let size = if head >> 4 == 15 { self.varint()? } else { (head >> 4).into() };
        Ok((head & 15, size))
    }

    pub(super) fn binary(&mut self) -> Result<&'a [u8]> {
        let size = self.varint()?;
        self.take(size)
    }

    /// Skips a value that is a field's. (Among fields the type of a bool is its value; in lists it
    /// takes a byte.)
    pub(super) fn skip(&mut self, kind: u8) -> Result<()> {
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

    /// Skips an element of a list or a map. Lists of lists also count as depth.
    fn skip_element(&mut self, kind: u8) -> Result<()> {
        self.nested(|reader| reader.skip(if kind <= 2 { 3 } else { kind }))
    }

    pub(super) fn integer(&mut self) -> Result<i64> {
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

    pub(super) fn byte(&mut self) -> Result<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn take(&mut self, size: u64) -> Result<&'a [u8]> {
        let size = usize::try_from(size).map_err(|_| broken())?;
        let (taken, left) = self.left.split_at_checked(size).ok_or_else(broken)?;
        self.left = left;
        Ok(taken)
    }
}
