//! Texts between added tokens, and where their bytes come from in the raw text.

use std::ops::Range;

use super::characters::CharacterIndex;
use crate::text::composed::AlignedText;

/// A text without added tokens: a section of the raw text, or a section that was changed.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    /// The bytes of the text, and of the text after it.
    pub(super) bytes: &'a [u8],
    place: Place<'a>,
    /// The characters of the raw text; None without spans.
    characters: Option<&'a CharacterIndex>,
}

/// The place of a text in another.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// The text that was changed, with the origin of each byte; None if it is the raw text.
    changed: Option<&'a AlignedText>,
    /// The offset in that text, in bytes.
    start: usize,
}

/// The characters of the raw text that the bytes of a text come from.
#[derive(Clone, Copy)]
pub(super) struct Origins<'a> {
    place: Place<'a>,
    characters: &'a CharacterIndex,
}

impl<'a> Source<'a> {
    /// Return the raw text. `characters`: None without spans.
    pub(super) fn raw(text: &'a str, characters: Option<&'a CharacterIndex>) -> Self {
        let place = Place { changed: None, start: 0 };
        Source { text, bytes: text.as_bytes(), place, characters }
    }

    /// Return a text that was made from this one.
    pub(super) fn changed<'b>(&self, text: &'b AlignedText) -> Source<'b>
    where
        'a: 'b,
    {
        let place = Place { changed: Some(text), start: 0 };
        let Source { characters, .. } = *self;
        Source { text: text.text(), bytes: text.text().as_bytes(), place, characters }
    }

    /// Return a range of the text.
    pub(super) fn section(&self, range: Range<usize>) -> Self {
        let place = Place { start: self.place.start + range.start, ..self.place };
        let bytes = &self.bytes[range.start..];
        Source { text: &self.text[range], bytes, place, ..*self }
    }

    /// Return true if tokens get spans.
    pub(super) fn has_spans(&self) -> bool {
        self.characters.is_some()
    }

    /// Return the origins of the bytes; None without spans.
    pub(super) fn origins(&self) -> Option<Origins<'a>> {
        self.characters.map(|characters| Origins { place: self.place, characters })
    }

    /// Copy the text, so that it can be changed.
    pub(super) fn aligned(&self) -> AlignedText {
        let Place { changed, start } = self.place;
        match changed {
            Some(text) => text.part(start..start + self.text.len()),
            None => AlignedText::new(self.text, start, self.has_spans()),
        }
    }
}

impl Origins<'_> {
    /// Return the characters of the raw text that a range of bytes comes from. `start`: the offset in the text that
    /// the range `from..to` is counted from.
    #[inline(always)]
    pub(super) fn span(&self, start: usize, [from, to]: [u32; 2]) -> [u32; 2] {
        let start = self.place.start + start;
        let mut bytes = [start + from as usize, start + to as usize];
        if let Some(text) = self.place.changed {
            let (from, to) = text.origin(bytes[0]..bytes[1]).unwrap_or_default();
            bytes = [from as usize, to as usize];
        }
        bytes.map(|at| self.characters.before(at))
    }
}
