//! SentencePiece's compiled maps of characters: strings of text, and what they become.
//!
//! A map has the size of a double array in bytes, as 4 bytes; the double array, of units of 4 bytes,
//! which finds strings byte by byte (Darts-clone's format); and the results, each followed by a zero
//! byte. All numbers are little-endian.

use crate::base::error::{Error, Result};

/// A compiled map of characters, checked.
#[derive(Debug, Default)]
pub struct CharsMap {
    units: Vec<u32>,
    results: String,
    /// A bit for each character: whether a text may be changed that has it. Every string of the map has one.
    may_change: Vec<u64>,
}

/// The node of the double array that strings begin at.
const ROOT: usize = 0;

/// The bytes by which strings go on from a node, and the nodes there.
type Ways = Box<[(u8, usize)]>;

/// The most beginnings of strings in a map, and the most bytes of a string. SentencePiece's own maps
/// have fewer than a million, of up to 12 bytes.
const MOST_STRINGS: usize = 1 << 24;
const MOST_BYTES: usize = 1 << 10;

impl CharsMap {
    /// Reads a map. An empty one changes nothing.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if the map is damaged.
    pub fn new(compiled: &[u8]) -> Result<Self> {
        if compiled.is_empty() {
            return Ok(CharsMap::default());
        }
        let damaged = |what: &str| Error::data(format!("the map of characters is damaged: {what}"));
        let (size, rest) = compiled.split_first_chunk().ok_or_else(|| damaged("it has no size"))?;
        let size = u32::from_le_bytes(*size) as usize;
        if !size.is_multiple_of(4) || size == 0 || size > rest.len() {
            return Err(damaged("the size of its array"));
        }
        let (array, results) = rest.split_at(size);
        let units = array.as_chunks().0.iter().map(|unit| u32::from_le_bytes(*unit)).collect();
        let results = String::from_utf8(results.to_vec()).map_err(|_| damaged("no UTF-8"))?;
        if !(results.is_empty() || results.ends_with('\0')) {
            return Err(damaged("its results have no end"));
        }
        let mut map = CharsMap { units, results, may_change: Vec::new() };
        map.may_change = map.check().map_err(damaged)?;
        Ok(map)
    }

    /// Read a compiled map from base64, as in a `tokenizer.json`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] for text that is not base64, and for an invalid map.
    pub(crate) fn of_base64(text: &str) -> Result<Self> {
        let map = data_encoding::BASE64.decode(text.as_bytes());
        CharsMap::new(&map.map_err(|_| Error::data("precompiled_charsmap is not base64"))?)
    }

    /// Return true if the map is empty.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Return true if a text is known to have no string of the map. The check is quick.
    #[inline]
    pub fn leaves(&self, text: &str) -> bool {
        let is_left = |c: char| self.may_change[c as usize / 64] >> (c as usize % 64) & 1 == 0;
        self.is_empty() || text.chars().all(is_left)
    }

    /// Checks that all strings and results are there. Strings may share nodes, but not without end. Returns a bit
    /// for each character that is the last of a string: of several, that is one which few texts have.
    fn check(&self) -> std::result::Result<Vec<u64>, &'static str> {
        let mut strings = 0;
        let mut last_ones = vec![0; 0x11_0000 / 64];
        let mut fault = Ok(());
        self.walk(&mut |string, result| {
            strings += 1;
            if strings > MOST_STRINGS || string.len() > MOST_BYTES {
                fault = Err("its array has no end");
            } else if let Some(at) = result {
                let is_there = self.results.is_char_boundary(at) && at < self.results.len();
                match std::str::from_utf8(string).map(|string| string.chars().next_back()) {
                    Ok(Some(last)) if is_there => {
                        last_ones[last as usize / 64] |= 1 << (last as usize % 64);
                    }
                    _ => fault = Err("a string or its result is not there"),
                }
            }
            fault.is_ok()
        });
        fault.map(|()| last_ones)
    }

    /// Calls `each` with every beginning of a string, and where the result begins if it is a whole one;
    /// until it says no.
    fn walk(&self, each: &mut impl FnMut(&[u8], Option<usize>) -> bool) {
        let mut children: Vec<Option<Ways>> = vec![None; self.units.len()];
        let mut string = Vec::new();
        // For each byte of the string, the node before it, and how many ways from there were taken.
        let mut path: Vec<_> = (!self.units.is_empty()).then_some((ROOT, 0)).into_iter().collect();
        while let Some((node, taken)) = path.last_mut() {
            let node = *node;
            let ways = children[node].get_or_insert_with(|| {
                (1..=255).filter_map(|byte| Some((byte, self.child(node, byte)?))).collect()
            });
            if let Some(&(byte, child)) = ways.get(*taken) {
                *taken += 1;
                string.push(byte);
                if !each(&string, self.leaf(child)) {
                    return;
                }
                path.push((child, 0));
            } else {
                path.pop();
                string.pop();
            }
        }
    }

    /// Calls `each` with every string of the map and what it becomes, in the order of bytes.
    pub fn for_each(&self, mut each: impl FnMut(&str, &str)) {
        self.walk(&mut |string, result| {
            if let Some(at) = result {
                each(std::str::from_utf8(string).expect("checked"), self.result(at));
            }
            true
        });
    }

    /// The node that a byte leads to. No string holds a zero byte.
    #[inline]
    fn child(&self, node: usize, byte: u8) -> Option<usize> {
        let child = node ^ offset(self.units[node]) ^ byte as usize;
        let unit = *self.units.get(child)?;
        (byte > 0 && unit & (1 << 31 | 0xFF) == byte as u32).then_some(child)
    }

    /// Return the offset of the result for the string that ends at a node.
    #[inline]
    fn leaf(&self, node: usize) -> Option<usize> {
        let unit = self.units[node];
        if unit >> 8 & 1 == 0 {
            return None;
        }
        let leaf = self.units.get(node ^ offset(unit)).copied().unwrap_or(u32::MAX);
        Some((leaf & !(1 << 31)) as usize)
    }

    fn result(&self, at: usize) -> &str {
        let rest = &self.results[at..];
        &rest[..rest.find('\0').unwrap_or(rest.len())]
    }

    /// The strings of the map that `text` begins with, the shortest first: their lengths in bytes, and
    /// where their results begin.
    #[inline]
    fn prefixes(&self, text: &str) -> impl Iterator<Item = (usize, usize)> {
        let mut node = (!self.units.is_empty()).then_some(ROOT);
        let found = text.bytes().zip(1..).map_while(move |(byte, length)| {
            node = node.and_then(|node| self.child(node, byte));
            node.map(|node| self.leaf(node).map(|at| (length, at)))
        });
        found.flatten()
    }

    /// The longest string of the map that `text` begins with: its length in bytes, and what it
    /// becomes.
    #[inline]
    pub fn longest(&self, text: &str) -> Option<(usize, &str)> {
        self.prefixes(text).last().map(|(length, at)| (length, self.result(at)))
    }

    /// Return the result for the shortest string of the map that `text` begins with.
    #[inline]
    pub(crate) fn shortest(&self, text: &str) -> Option<&str> {
        self.prefixes(text).next().map(|(_, at)| self.result(at))
    }
}

/// Return the offset that a unit adds to the number of its node.
#[inline]
fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & 1 << 9) >> 6)) as usize
}
