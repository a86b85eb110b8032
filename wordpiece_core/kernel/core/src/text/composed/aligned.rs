//! Text that is changed step by step, with the place in the raw text that each byte comes from.

use std::ops::Range;

/// The bytes of the raw text that a byte comes from, as the offsets of their beginning and their end.
pub type Origin = (u32, u32);

/// A text with optional origins of its bytes.
#[derive(Clone, Debug, Default)]
pub struct AlignedText {
    text: String,
    origins: Option<Vec<Origin>>,
    /// The offset in the raw text, in bytes.
    start: u32,
}

impl AlignedText {
    /// Return a part of a raw text, unchanged.
    ///
    /// # Arguments
    ///
    /// * `part` - The part.
    /// * `start` - The offset of the part in the raw text, in bytes.
    /// * `aligned` - True to keep the origins of bytes.
    pub fn new(part: &str, start: usize, aligned: bool) -> Self {
        let mut text = String::new();
        text.push_str(part);
        AlignedText { text, origins: aligned.then(|| origins_of(part, start)), start: start as u32 }
    }

    /// Return the current text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Return the origin of a range of the text that is not empty; None without origins.
    pub fn origin(&self, range: Range<usize>) -> Option<Origin> {
        let origins = self.origins.as_ref()?.get(range)?;
        Some((origins.first()?.0, origins.last()?.1))
    }

    /// Return the origins of a range of the text; empty without origins.
    pub(crate) fn origins(&self, range: Range<usize>) -> &[Origin] {
        self.origins.as_ref().and_then(|origins| origins.get(range)).unwrap_or_default()
    }

    /// A copy of a range of the text.
    pub fn part(&self, range: Range<usize>) -> Self {
        let mut text = String::new();
        text.push_str(&self.text[range.clone()]);
        let origins = self.origins.as_ref().map(|origins| origins[range].to_vec());
        let first = origins.as_ref().and_then(|origins| origins.first());
        let start = first.map_or(self.start, |first| first.0);
        AlignedText { text, origins, start }
    }

    /// Appends another text.
    pub fn append(&mut self, other: &Self) {
        self.text.push_str(&other.text);
        if let (Some(origins), Some(more)) = (&mut self.origins, &other.origins) {
            origins.extend_from_slice(more);
        }
    }

    /// Leaves out what is at the end, again and again.
    pub(crate) fn trim_end(&mut self, c: char) {
        let end = self.text.trim_end_matches(c).len();
        self.text.truncate(end);
        if let Some(origins) = &mut self.origins {
            origins.truncate(end);
        }
    }

    /// An empty text that others can be appended to, in place of this one.
    pub fn emptied(&self) -> Self {
        let origins = self.is_aligned().then(Vec::new);
        AlignedText { text: String::new(), origins, start: self.start }
    }

    /// Return true if the text has origins.
    pub(crate) fn is_aligned(&self) -> bool {
        self.origins.is_some()
    }

    /// Changes the text. `write` is called with the text before, and writes the text afterwards.
    pub(crate) fn rewrite(&mut self, write: impl FnOnce(&str, &mut Writer<'_>)) {
        let old = std::mem::take(self);
        let mut new = old.emptied();
        new.text.reserve(old.text.len());
        let rest = old.text.chars();
        let old_origins = old.origins.as_deref().unwrap_or_default();
        write(&old.text, &mut Writer { new: &mut new, old: &old, old_origins, rest, at: 0 });
        *self = new;
    }
}

/// Return the origins of unchanged text: the origin of a byte is its whole character.
fn origins_of(part: &str, start: usize) -> Vec<Origin> {
    let mut origins = Vec::with_capacity(part.len());
    for (at, c) in part.char_indices() {
        let (from, to) = (start + at, start + at + c.len_utf8());
        origins.extend((from..to).map(|_| (from as u32, to as u32)));
    }
    origins
}

/// Writes a changed text, character by character, and keeps up with where the old one is read.
pub struct Writer<'a> {
    new: &'a mut AlignedText,
    old: &'a AlignedText,
    old_origins: &'a [Origin],
    /// The characters of the old text that are not yet replaced, and the offset of the first.
    rest: std::str::Chars<'a>,
    at: usize,
}

impl Writer<'_> {
    /// Leaves out the next characters of the old text.
    pub fn skip(&mut self, characters: usize) {
        let skipped = self.rest.by_ref().take(characters);
        self.at += skipped.map(char::len_utf8).sum::<usize>();
    }

    /// Writes a character.
    ///
    /// # Arguments
    ///
    /// * `c` - The character.
    /// * `change` - 0: it replaces the next character of the old text; -n: the next character and n more;
    ///   1: it is inserted, with the origin of the character before it.
    pub fn push(&mut self, c: char, change: isize) {
        if self.new.is_aligned() {
            let place = if change > 0 { self.at.checked_sub(1) } else { Some(self.at) };
            let last = || self.old_origins.last().copied().unwrap_or(self.begin());
            let at = |at| self.old_origins.get(at).copied().unwrap_or_else(last);
            let origin = place.map_or(self.begin(), at);
            if change <= 0 {
                self.skip(1 + change.unsigned_abs());
            }
            self.insert(c, origin);
        } else {
            self.new.text.push(c);
        }
    }

    /// Copies a range of the old text.
    pub fn copy(&mut self, range: Range<usize>) {
        self.new.text.push_str(&self.old.text[range.clone()]);
        if let Some(origins) = &mut self.new.origins {
            origins.extend_from_slice(&self.old_origins[range]);
        }
    }

    /// Writes a string. `place`: the byte of the old text whose origin it has; None: none.
    pub fn put(&mut self, content: &str, place: Option<usize>) {
        let origin = place.and_then(|at| self.old_origins.get(at)).copied();
        let origin = origin.unwrap_or(self.begin());
        self.new.text.push_str(content);
        if let Some(origins) = &mut self.new.origins {
            origins.resize(self.new.text.len(), origin);
        }
    }

    /// Write a character with the origin of a range of the old text; for an empty range, its place.
    pub fn write(&mut self, c: char, range: Range<usize>) {
        let origin = match self.old_origins.get(range.clone()) {
            None | Some([]) => {
                let at = range.start.checked_sub(1).and_then(|last| self.old_origins.get(last));
                let at = at.map_or_else(|| self.old_origins.first().map(|o| o.0), |o| Some(o.1));
                at.map_or(self.begin(), |at| (at, at))
            }
            Some([first, .., last]) => (first.0, last.1),
            Some([only]) => *only,
        };
        self.insert(c, origin);
    }

    /// The origin of what is put in before all else.
    fn begin(&self) -> Origin {
        (self.old.start, self.old.start)
    }

    /// Leaves out what is at the end of what was written, again and again.
    pub(crate) fn trim_end(&mut self, c: char) {
        self.new.trim_end(c);
    }

    fn insert(&mut self, c: char, origin: Origin) {
        self.new.text.push(c);
        if let Some(origins) = &mut self.new.origins {
            origins.resize(self.new.text.len(), origin);
        }
    }
}
