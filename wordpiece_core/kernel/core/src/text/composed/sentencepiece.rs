//! SentencePiece's `Normalizer`, which runs before its models.

use aho_corasick::{AhoCorasick, Anchored, Input, MatchKind, StartKind};
use serde::Deserialize;

use super::aligned::{AlignedText, Writer};
use crate::base::error::{Error, Result};
use crate::text::charsmap::CharsMap;
use crate::text::marks::SPACE_MARK;

/// The options, by the names that they have in a model of SentencePiece.
#[derive(Deserialize)]
pub struct SentencePieceJson {
    precompiled_charsmap: String,
    add_dummy_prefix: bool,
    remove_extra_whitespaces: bool,
    escape_whitespaces: bool,
    treat_whitespace_as_suffix: bool,
    /// Strings that do not change.
    user_defined_symbols: Vec<String>,
}

/// A map of characters, and what becomes of spaces.
#[derive(Debug)]
pub struct SentencePiece {
    map: CharsMap,
    space: char,
    adds_first: bool,
    adds_last: bool,
    removes_extra: bool,
    symbols: Option<AhoCorasick>,
}

impl SentencePiece {
    /// Makes it of the options.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] for a map that cannot be read, and for too many symbols.
    pub fn new(options: SentencePieceJson) -> Result<Self> {
        let adds = options.add_dummy_prefix;
        let of_symbols = |error| Error::data(format!("user_defined_symbols: {error}"));
        let user_defined = options.user_defined_symbols;
        if user_defined.iter().any(String::is_empty) {
            return Err(Error::data("user_defined_symbols: one is empty"));
        }
        let symbols = (!user_defined.is_empty())
            .then(|| {
                AhoCorasick::builder()
                    .match_kind(MatchKind::LeftmostLongest)
                    .start_kind(StartKind::Anchored)
                    .build(&user_defined)
            })
            .transpose()
            .map_err(of_symbols)?;
        Ok(SentencePiece {
            map: CharsMap::of_base64(&options.precompiled_charsmap)?,
            space: if options.escape_whitespaces { SPACE_MARK } else { ' ' },
            adds_first: adds && !options.treat_whitespace_as_suffix,
            adds_last: adds && options.treat_whitespace_as_suffix,
            removes_extra: options.remove_extra_whitespaces,
            symbols,
        })
    }

    /// Return true if a mark is put before a text and spaces are otherwise only replaced by marks; false if
    /// spaces are only replaced; None if more is done.
    pub(crate) fn adds_mark(&self) -> Option<bool> {
        let only_marks = self.map.is_empty() && self.symbols.is_none() && self.space == SPACE_MARK;
        (only_marks && !self.removes_extra && !self.adds_last).then_some(self.adds_first)
    }

    /// The map, whether a mark is put before texts, and whether several spaces are one; None if more is done,
    /// or no marks are made.
    pub(crate) fn map_of_words(&self) -> Option<(&CharsMap, bool, bool)> {
        let of_words = self.symbols.is_none() && self.space == SPACE_MARK && !self.adds_last;
        of_words.then_some((&self.map, self.adds_first, self.removes_extra))
    }

    /// Normalize a text. `continues`: true if it continues another text.
    pub fn normalize(&self, text: &mut AlignedText, continues: bool) {
        text.rewrite(|old, new| self.write(old, new, continues));
    }

    fn write(&self, old: &str, new: &mut Writer<'_>, continues: bool) {
        let mut at = 0;
        while self.removes_extra && !continues && at < old.len() {
            let (result, length) = self.chunk(&old[at..]);
            if result != " " {
                break;
            }
            at += length;
        }
        if at == old.len() {
            return;
        }
        if self.adds_first && !continues {
            new.write(self.space, at..at);
        }
        let mut is_behind_space = self.removes_extra && !continues;
        while at < old.len() {
            let (result, length) = self.chunk(&old[at..]);
            let result = if is_behind_space { result.trim_start_matches(' ') } else { result };
            for c in result.chars() {
                new.write(if c == ' ' { self.space } else { c }, at..at + length);
            }
            if !result.is_empty() {
                is_behind_space = self.removes_extra && result.ends_with(' ');
            }
            at += length;
        }
        if self.removes_extra {
            new.trim_end(self.space);
        }
        if self.adds_last {
            new.write(self.space, at..at);
        }
    }

    /// Return the result for the beginning of a text, and the length of that beginning in bytes.
    #[inline]
    fn chunk<'a>(&'a self, text: &'a str) -> (&'a str, usize) {
        if let Some(symbols) = &self.symbols
            && let Some(found) = symbols.find(Input::new(text).anchored(Anchored::Yes))
        {
            return (&text[..found.end()], found.end());
        }
        self.map.longest(text).map_or_else(
            || {
                let length = text.chars().next().map_or(0, char::len_utf8);
                (&text[..length], length)
            },
            |(length, result)| (result, length),
        )
    }
}
