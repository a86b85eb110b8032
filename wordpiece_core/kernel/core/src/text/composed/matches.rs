//! Searches for strings, regular expressions and kinds of characters, and ways to split a text at matches: the
//! `SplitDelimiterBehavior` of Hugging Face tokenizers.

use std::ops::Range;

use serde::Deserialize;

use super::user_regex::UserRegex;
use crate::base::error::Result;
use crate::text::unicode::is_whitespace;

/// A search in texts.
#[derive(Debug)]
pub enum Matcher {
    /// A string that is not empty.
    Text(String),
    /// A regular expression, in Oniguruma's syntax, by which Hugging Face tokenizers reads it.
    Regex(UserRegex),
    /// Two spaces or more.
    Spaces,
    /// Each character of white space.
    WhiteSpace,
    /// Each character of a kind.
    Characters(fn(char) -> bool),
    /// This character.
    Character(char),
    /// Runs of word characters, and of others that are not white space.
    Words(regex::Regex),
}

/// A pattern as a `tokenizer.json` has it.
#[derive(Debug, Deserialize)]
pub enum PatternText {
    String(String),
    Regex(String),
}

impl PatternText {
    /// The regular expression, if it is one.
    pub fn regex(&self) -> Option<&str> {
        match self {
            PatternText::Regex(regex) => Some(regex),
            PatternText::String(_) => None,
        }
    }

    /// Return the search.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] for an invalid regular expression.
    pub fn build(self) -> Result<Matcher> {
        let pattern = match self {
            PatternText::String(text) if !text.is_empty() => return Ok(Matcher::Text(text)),
            PatternText::Regex(text) if text == " {2,}" => return Ok(Matcher::Spaces),
            PatternText::String(text) | PatternText::Regex(text) => text,
        };
        Ok(Matcher::Regex(UserRegex::new(pattern)?))
    }
}

impl Matcher {
    /// The words of Hugging Face's `Whitespace`, which also uses this crate. Oniguruma's `\w` has ², ³, ¹, ¼, ½ and ¾ in
    /// addition, but not the joiners U+200C and U+200D.
    pub fn words() -> Self {
        Matcher::Words(regex::Regex::new(r"\w+|[^\w\s]+").expect("it is one"))
    }

    /// Return true if a text has a match.
    pub(crate) fn is_found_in(&self, text: &str) -> bool {
        match self {
            Matcher::Text(string) => text.contains(string.as_str()),
            Matcher::Regex(regex) => regex.find_from(text, 0).is_some(),
            Matcher::Spaces => text.contains("  "),
            Matcher::WhiteSpace => text.contains(is_whitespace),
            Matcher::Characters(is_one) => text.contains(is_one),
            Matcher::Character(c) => text.contains(*c),
            Matcher::Words(regex) => regex.is_match(text),
        }
    }

    /// Calls `each` with every match and everything between, in order: the range, and whether it is a
    /// match. A match may be empty, but nothing between is.
    pub fn each(&self, text: &str, mut each: impl FnMut(Range<usize>, bool)) {
        let mut from = 0;
        let mut found = |range: Range<usize>| {
            if from < range.start {
                each(from..range.start, false);
            }
            from = range.end;
            each(range, true);
        };
        let of_part = |(at, part): (usize, &str)| at..at + part.len();
        if !text.is_empty() {
            match self {
                Matcher::Text(string) => {
                    text.match_indices(string.as_str()).map(of_part).for_each(&mut found);
                }
                Matcher::Regex(regex) => {
                    regex.find_all(text).for_each(&mut found);
                }
                Matcher::Spaces => {
                    let mut from = 0;
                    while let Some(at) = text[from..].find("  ") {
                        let rest = text[from + at..].trim_start_matches(' ');
                        let end = text.len() - rest.len();
                        found(from + at..end);
                        from = end;
                    }
                }
                Matcher::WhiteSpace => {
                    text.match_indices(is_whitespace).map(of_part).for_each(&mut found);
                }
                Matcher::Characters(is_one) => {
                    text.match_indices(is_one).map(of_part).for_each(&mut found);
                }
                Matcher::Character(c) => {
                    text.match_indices(*c).map(of_part).for_each(&mut found);
                }
                Matcher::Words(regex) => {
                    regex.find_iter(text).for_each(|found_one| found(found_one.range()));
                }
            }
        }
        if from < text.len() {
            each(from..text.len(), false);
        }
    }
}

/// The treatment of the matches that a text is split at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Behavior {
    /// They are left out.
    Removed,
    /// Each is a piece of its own.
    Isolated,
    /// Each is the end of the piece before it.
    MergedWithPrevious,
    /// Each match begins the next piece.
    MergedWithNext,
    /// Adjacent matches are one piece.
    Contiguous,
}

/// A way to split a text.
#[derive(Debug)]
pub struct Splitting {
    /// The search for matches.
    pub matcher: Matcher,
    /// The treatment of the matches.
    pub behavior: Behavior,
    /// True to treat the text between matches as the matches.
    pub invert: bool,
}

impl Splitting {
    /// Append the pieces of a text that are not empty to `pieces`, as ranges plus `start`.
    pub fn split(&self, text: &str, start: usize, pieces: &mut Vec<Range<usize>>) {
        let first = pieces.len();
        let mut after_match = false;
        self.matcher.each(text, |range, is_match| {
            let is_match = is_match != self.invert;
            let joins = match self.behavior {
                Behavior::Removed | Behavior::Isolated => false,
                Behavior::Contiguous => is_match == after_match,
                Behavior::MergedWithPrevious => is_match && !after_match,
                Behavior::MergedWithNext => !is_match && after_match,
            };
            after_match = is_match;
            if is_match && self.behavior == Behavior::Removed {
                return;
            }
            let range = start + range.start..start + range.end;
            match pieces[first..].last_mut() {
                Some(last) if joins => last.end = range.end,
                _ => pieces.push(range),
            }
        });
        remove_empty(pieces, first);
    }
}

/// Removes the empty pieces from a place on. There are few.
fn remove_empty(pieces: &mut Vec<Range<usize>>, first: usize) {
    if pieces[first..].iter().any(Range::is_empty) {
        let kept: Vec<_> = pieces.drain(first..).filter(|piece| !piece.is_empty()).collect();
        pieces.extend(kept);
    }
}
