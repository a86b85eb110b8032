//! Pre-tokenizers, under the names that Hugging Face tokenizers gives them.

use std::ops::Range;

use serde::Deserialize;

use super::aligned::AlignedText;
use super::matches::{Behavior, Matcher, PatternText, Splitting};
use super::normalizer::{prepend, replace, to_byte_characters};
use crate::base::error::{Error, Result};
use crate::text::patterns::Pattern;
use crate::text::unicode::is_punctuation;

/// A step that splits a text into words, or changes it.
#[derive(Debug)]
pub enum PreTokenizer {
    /// At the matches of something.
    Split(Splitting),
    /// By a regular expression that there is a splitter of.
    Pattern(Pattern),
    /// Into pieces of a number of characters.
    FixedLength(usize),
    /// A space before each piece that has none.
    PrefixSpace,
    /// GPT-2's characters for bytes.
    ByteCharacters,
    /// Spaces become a character, which is also put before pieces.
    Spaces {
        /// The character.
        mark: char,
        /// The places before which it is put.
        prepend: Prepend,
    },
}

/// The places of a mark that does not replace a space of the text, with the names of `prepend_scheme` in
/// Hugging Face tokenizers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prepend {
    /// Before each section, or each piece, of a text.
    Always,
    /// Before the first one.
    First,
    /// Nowhere.
    Never,
}

impl Prepend {
    /// Return true if a mark is put before the first section or piece, or before another.
    pub(crate) fn is_wanted(self, is_first: bool) -> bool {
        self == Prepend::Always || self == Prepend::First && is_first
    }
}

/// A pre-tokenizer as a `tokenizer.json` has it.
#[derive(Deserialize)]
#[serde(tag = "type")]
pub enum PreTokenizerJson {
    BertPreTokenizer,
    ByteLevel {
        add_prefix_space: bool,
        #[serde(default = "yes")]
        use_regex: bool,
    },
    CharDelimiterSplit {
        delimiter: char,
    },
    Metaspace {
        replacement: char,
        add_prefix_space: Option<bool>,
        prepend_scheme: Option<Prepend>,
        split: Option<bool>,
    },
    Whitespace,
    WhitespaceSplit,
    Punctuation {
        #[serde(default = "isolated")]
        behavior: Behavior,
    },
    Digits {
        individual_digits: bool,
    },
    Split {
        pattern: PatternText,
        behavior: Behavior,
        invert: bool,
    },
    FixedLength {
        #[serde(default = "five")]
        length: usize,
    },
    Sequence {
        pretokenizers: Vec<PreTokenizerJson>,
    },
}

fn yes() -> bool {
    true
}

fn isolated() -> Behavior {
    Behavior::Isolated
}

fn five() -> usize {
    5
}

/// Return a split at matches.
fn split(matcher: Matcher, behavior: Behavior) -> PreTokenizer {
    PreTokenizer::Split(Splitting { matcher, behavior, invert: false })
}

impl PreTokenizerJson {
    /// Appends what it does, one after the other, to `steps`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] for an invalid regular expression, and for contradicting options.
    pub fn build(self, steps: &mut Vec<PreTokenizer>) -> Result<()> {
        match self {
            PreTokenizerJson::BertPreTokenizer => {
                steps.push(split(Matcher::WhiteSpace, Behavior::Removed));
                steps.push(split(Matcher::Characters(is_punctuation), Behavior::Isolated));
            }
            PreTokenizerJson::ByteLevel { add_prefix_space, use_regex } => {
                steps.extend(add_prefix_space.then_some(PreTokenizer::PrefixSpace));
                steps.extend(use_regex.then_some(PreTokenizer::Pattern(Pattern::GPT2)));
                steps.push(PreTokenizer::ByteCharacters);
            }
            PreTokenizerJson::CharDelimiterSplit { delimiter } => {
                steps.push(split(Matcher::Character(delimiter), Behavior::Removed));
            }
            PreTokenizerJson::Metaspace {
                replacement: mark,
                add_prefix_space,
                prepend_scheme,
                split: splits,
            } => {
                let prepend = match (add_prefix_space, prepend_scheme) {
                    (Some(false), None) => return Err(contradiction()),
                    (Some(false), Some(scheme)) if scheme != Prepend::Never => {
                        return Err(contradiction());
                    }
                    (_, scheme) => scheme.unwrap_or(Prepend::Always),
                };
                steps.push(PreTokenizer::Spaces { mark, prepend });
                if splits.unwrap_or(true) {
                    steps.push(split(Matcher::Character(mark), Behavior::MergedWithNext));
                }
            }
            PreTokenizerJson::Whitespace => steps.push(PreTokenizer::Split(Splitting {
                matcher: Matcher::words(),
                behavior: Behavior::Removed,
                invert: true,
            })),
            PreTokenizerJson::WhitespaceSplit => {
                steps.push(split(Matcher::WhiteSpace, Behavior::Removed));
            }
            PreTokenizerJson::Punctuation { behavior } => {
                steps.push(split(Matcher::Characters(is_punctuation), behavior));
            }
            PreTokenizerJson::Digits { individual_digits } => {
                let behavior =
                    if individual_digits { Behavior::Isolated } else { Behavior::Contiguous };
                steps.push(split(Matcher::Characters(char::is_numeric), behavior));
            }
            PreTokenizerJson::Split { pattern, behavior, invert } => {
                let keeps_all = match behavior {
                    Behavior::Isolated => true,
                    Behavior::Removed => invert, // every character is part of a match
                    _ => false,
                };
                let known = pattern.regex().filter(|_| keeps_all).and_then(Pattern::of_regex);
                steps.push(match known {
                    Some(pattern) => PreTokenizer::Pattern(pattern),
                    None => {
                        let matcher = pattern.build()?;
                        PreTokenizer::Split(Splitting { matcher, behavior, invert })
                    }
                });
            }
            PreTokenizerJson::FixedLength { length: 0 } => {
                return Err(Error::data("the length of FixedLength is 0, not 1 or more"));
            }
            PreTokenizerJson::FixedLength { length } => {
                steps.push(PreTokenizer::FixedLength(length));
            }
            PreTokenizerJson::Sequence { pretokenizers } => {
                let regexes: Vec<&str> =
                    pretokenizers.iter().map_while(PreTokenizerJson::isolated_regex).collect();
                let known = Pattern::of_sequence(&regexes);
                let read = if known.is_some() { regexes.len() } else { 0 };
                steps.extend(known.map(PreTokenizer::Pattern));
                pretokenizers.into_iter().skip(read).try_for_each(|part| part.build(steps))?;
            }
        }
        Ok(())
    }
}

impl PreTokenizerJson {
    /// The regular expression, if that is all of it.
    fn isolated_regex(&self) -> Option<&str> {
        match self {
            PreTokenizerJson::Split { pattern, behavior: Behavior::Isolated, invert: false } => {
                pattern.regex()
            }
            _ => None,
        }
    }
}

fn contradiction() -> Error {
    Error::data("add_prefix_space of Metaspace is false, but its prepend_scheme is not never")
}

/// A text and the pieces that it is split into, as ranges in order.
#[derive(Debug)]
pub struct Pieces {
    /// The text.
    pub text: AlignedText,
    /// The pieces that are not empty.
    pub ranges: Vec<Range<usize>>,
}

impl Pieces {
    /// A text as one piece, or none if it is empty.
    pub fn new(text: AlignedText) -> Self {
        let whole = 0..text.text().len();
        Pieces { ranges: (!whole.is_empty()).then_some(whole).into_iter().collect(), text }
    }

    /// The text, if all of it is one piece.
    pub fn only(&self) -> Option<&str> {
        let text = self.text.text();
        let is_one = matches!(&self.ranges[..], [range] if range.len() == text.len());
        is_one.then_some(text)
    }

    /// Calls `each` with the range of every piece.
    pub fn each(&self, each: impl FnMut(Range<usize>)) {
        self.ranges.iter().cloned().for_each(each);
    }

    /// Splits every piece into others.
    fn split(&mut self, mut split: impl FnMut(&str, usize, &mut Vec<Range<usize>>)) {
        let mut pieces = Vec::with_capacity(self.ranges.len());
        for range in &self.ranges {
            split(&self.text.text()[range.clone()], range.start, &mut pieces);
        }
        self.ranges = pieces;
    }

    /// Change the text of every piece, and drop text outside of pieces. `change` is called with the start of a
    /// piece, and the piece.
    fn change(&mut self, mut change: impl FnMut(usize, &mut AlignedText)) {
        if let [range] = &mut self.ranges[..]
            && range.len() == self.text.text().len()
        {
            change(0, &mut self.text);
            *range = 0..self.text.text().len();
            return;
        }
        let mut text = self.text.emptied();
        for range in &mut self.ranges {
            let mut piece = self.text.part(range.clone());
            change(range.start, &mut piece);
            let start = text.text().len();
            text.append(&piece);
            *range = start..text.text().len();
        }
        self.text = text;
    }
}

impl PreTokenizer {
    /// Splits the pieces further, or changes them. `is_first`: whether the text of the pieces is at the
    /// beginning of the raw text, if they do not have origins.
    pub(crate) fn apply(&self, pieces: &mut Pieces, is_first: bool) {
        match self {
            PreTokenizer::Split(splitting) => {
                pieces.split(|text, start, found| splitting.split(text, start, found));
            }
            PreTokenizer::Pattern(pattern) => pieces.split(|text, start, found| {
                pattern.segments(text, |piece| {
                    let start = start + piece.start;
                    found.push(start..start + piece.raw.len());
                });
            }),
            PreTokenizer::FixedLength(length) => pieces.split(|text, start, found| {
                let starts = text.char_indices().step_by(*length).map(|(at, _)| start + at);
                let ends = starts.clone().skip(1).chain([start + text.len()]);
                found.extend(starts.zip(ends).map(|(from, to)| from..to));
            }),
            PreTokenizer::PrefixSpace => pieces.change(|_, piece| {
                if !piece.text().starts_with(' ') {
                    prepend(piece, " ");
                }
            }),
            PreTokenizer::ByteCharacters => pieces.change(|_, piece| to_byte_characters(piece)),
            PreTokenizer::Spaces { mark, prepend: scheme } => {
                let string = mark.to_string();
                pieces.change(|start, piece| {
                    let begins = match piece.origin(0..piece.text().len()) {
                        Some((from, _)) => from == 0,
                        None => is_first && start == 0,
                    };
                    replace(piece, &Matcher::Character(' '), &string);
                    if scheme.is_wanted(begins) && !piece.text().starts_with(*mark) {
                        prepend(piece, &string);
                    }
                });
            }
        }
    }

    /// Return true if the step may change the text.
    pub(crate) fn changes_text(&self) -> bool {
        use PreTokenizer::{ByteCharacters, PrefixSpace, Spaces};
        matches!(self, PrefixSpace | ByteCharacters | Spaces { .. })
    }
}
