//! Marks of the beginnings or ends of words in tokens, and so in the symbols of a word before any merge.

use crate::text::byte_level::byte_character;
use crate::text::unicode::only_char;

/// Ends the last symbol of a word.
pub const WORD_END: &str = "</w>";
/// The mark for the space before a word, U+2581.
pub const SPACE_MARK: char = '▁';

/// The mark of a model of merges for the beginnings or ends of words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WordBoundary {
    /// Not at all.
    #[default]
    None,
    /// The last symbol of a word ends with `</w>`.
    End,
    /// A word begins with `▁`.
    SpaceMark,
    /// A word begins with a space, and its symbols are its bytes: each is the character that GPT-2
    /// writes for it.
    Bytes,
}

/// The marks of the beginnings or ends of words. A symbol is a character, and a flag that is true if it has
/// the mark.
///
/// # Examples
///
/// ```
/// use wordpiece_core::text::WordMarks;
///
/// let symbols = |marks: WordMarks, word| {
///     let mut found = Vec::new();
///     marks.each_symbol(word, |character, marked| found.push((character, marked)));
///     found
/// };
/// assert_eq!(symbols(WordMarks::Prefix("##".into()), "ab"), [('a', false), ('b', true)]);
/// assert_eq!(symbols(WordMarks::End, "ab"), [('a', false), ('b', true)]);
/// assert_eq!(symbols(WordMarks::Begin, "a"), [('▁', false), ('a', false)]);
/// assert_eq!(symbols(WordMarks::Bytes { add_space: true }, "a"), [('Ġ', false), ('a', false)]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordMarks {
    /// All symbols of a word but the first carry this prefix, mostly `##`: WordPiece.
    Prefix(String),
    /// The last symbol of a word carries the suffix `</w>`.
    End,
    /// `▁` is put before a word, unless the word begins with it.
    Begin,
    /// The symbols of a word are its bytes in UTF-8, as the characters that GPT-2 writes for them.
    Bytes {
        /// True to put a space before a word that begins with none.
        add_space: bool,
    },
}

/// Return true if a string is the mark for a space.
pub(crate) fn is_space_mark(string: &str) -> bool {
    only_char(string) == Some(SPACE_MARK)
}

impl WordMarks {
    /// Calls `found` with each symbol of a word.
    pub fn each_symbol(&self, word: &str, mut found: impl FnMut(char, bool)) {
        match self {
            WordMarks::Prefix(_) => {
                word.chars().enumerate().for_each(|(index, c)| found(c, index > 0));
            }
            WordMarks::End => {
                let mut rest = word.chars();
                while let Some(c) = rest.next() {
                    found(c, rest.as_str().is_empty());
                }
            }
            WordMarks::Begin => {
                let mark = (!word.starts_with(SPACE_MARK)).then_some(SPACE_MARK);
                mark.into_iter().chain(word.chars()).for_each(|c| found(c, false));
            }
            WordMarks::Bytes { add_space } => {
                let space = (*add_space && !word.starts_with(' ')).then_some(b' ');
                let bytes = space.into_iter().chain(word.bytes());
                bytes.for_each(|byte| found(byte_character(byte), false));
            }
        }
    }

    /// A token without its mark; None if it has none.
    pub fn strip<'a>(&self, token: &'a str) -> Option<&'a str> {
        match self {
            WordMarks::Prefix(prefix) => token.strip_prefix(prefix.as_str()),
            WordMarks::End => token.strip_suffix(WORD_END),
            WordMarks::Begin => token.strip_prefix(SPACE_MARK),
            WordMarks::Bytes { .. } => None,
        }
    }

    /// The prefix of the tokens that continue a word.
    pub fn prefix(&self) -> &str {
        if let WordMarks::Prefix(prefix) = self { prefix } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(marks: &WordMarks, word: &str) -> Vec<String> {
        let mut found = Vec::new();
        marks.each_symbol(word, |c, marked| {
            found.push(format!("{c}{}", "*".repeat(marked as usize)))
        });
        found
    }

    #[test]
    fn words_are_marked_once() {
        assert_eq!(symbols(&WordMarks::End, "é"), ["é*"]);
        assert_eq!(symbols(&WordMarks::End, "abc"), ["a", "b", "c*"]);
        assert_eq!(symbols(&WordMarks::Begin, "▁a▁"), ["▁", "a", "▁"]);
        assert_eq!(symbols(&WordMarks::Begin, "a▁"), ["▁", "a", "▁"]);
        let [spaced, as_it_is] = [true, false].map(|add_space| WordMarks::Bytes { add_space });
        assert_eq!(symbols(&spaced, "é"), ["Ġ", "Ã", "©"]);
        assert_eq!(symbols(&spaced, " a"), ["Ġ", "a"]);
        assert_eq!(symbols(&as_it_is, " a"), ["Ġ", "a"]);
        assert_eq!(symbols(&as_it_is, "a\n"), ["a", "Ċ"]);
    }

    #[test]
    fn marks_come_off() {
        assert_eq!(WordMarks::Prefix("##".into()).strip("##a"), Some("a"));
        assert_eq!(WordMarks::End.strip("a</w>"), Some("a"));
        assert_eq!(WordMarks::Begin.strip("▁a"), Some("a"));
        assert_eq!(WordMarks::Bytes { add_space: true }.strip("Ġa"), None);
    }
}
