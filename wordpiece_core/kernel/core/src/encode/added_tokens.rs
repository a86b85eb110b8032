//! Added tokens: strings that are found in a text before anything else is done with it, as Hugging
//! Face tokenizers finds them (its `AddedVocabulary`).
//!
//! The text is searched twice: first for the tokens that are not `normalized`, and then the text
//! between them for the others. Each search finds the leftmost token, and the longest of these.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;

use crate::base::error::{Error, Result};
use crate::text::unicode::is_whitespace;

/// A string that is found in texts, with its id. The flags are the flags of `AddedToken` in Hugging Face
/// tokenizers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddedToken {
    /// The string.
    pub content: String,
    /// Its id.
    pub id: u32,
    /// True if the white space before it belongs to it.
    pub lstrip: bool,
    /// True if the white space after it belongs to it.
    pub rstrip: bool,
    /// True to find it only where no word character is next to it.
    pub single_word: bool,
    /// True to find it only between the tokens that are not `normalized`: in normalized text with
    /// [`Composed`](crate::text::Composed) rules, in raw text with BERT's.
    pub normalized: bool,
    /// True if texts that have it are counted as texts with a special token.
    pub special: bool,
}

/// Finds the added tokens of a vocabulary.
pub struct AddedTokenSearch {
    /// The search for the tokens that are not `normalized`, and the search for the others.
    searches: [Option<Search>; 2],
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Section {
    /// Text without added tokens, which is not empty.
    Text(Range<usize>),
    /// An added token, with the white space that belongs to it.
    Token(u32, Range<usize>),
}

struct Search {
    tokens: Vec<AddedToken>,
    matcher: AhoCorasick,
    /// The first bytes of the tokens.
    first: Vec<u8>,
}

impl AddedTokenSearch {
    /// Builds the searches. Empty tokens are never found.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Option`] if the tokens are too large for a search.
    pub fn new(tokens: Vec<AddedToken>) -> Result<Self> {
        let found = tokens.into_iter().filter(|token| !token.content.is_empty());
        let (late, early): (Vec<_>, Vec<_>) = found.partition(|token| token.normalized);
        Ok(AddedTokenSearch { searches: [Search::new(early)?, Search::new(late)?] })
    }

    /// Return true if there are `normalized` tokens.
    pub(crate) fn has_late(&self) -> bool {
        self.searches[1].is_some()
    }

    /// Return a search for the `normalized` tokens with some characters removed; None if there are no such tokens. A
    /// text without a match has none of the tokens, even if other characters are replaced by the removed ones.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Option`] if the tokens are too large for a search.
    pub(crate) fn late_without(&self, characters: &[char]) -> Result<Option<AhoCorasick>> {
        let Some(Search { tokens, .. }) = &self.searches[1] else { return Ok(None) };
        let left = tokens.iter().map(|token| token.content.replace(characters, ""));
        let searched = AhoCorasick::new(left);
        searched.map(Some).map_err(|error| Error::option(format!("added tokens: {error}")))
    }

    /// Calls `each` with the sections of a text, in order.
    #[inline]
    pub fn split(&self, text: &str, mut each: impl FnMut(Section)) {
        let [early, late] = self.searches.each_ref().map(Option::as_ref);
        split_by(early, text, 0..text.len(), &mut |section| match section {
            Section::Text(range) => split_by(late, text, range, &mut each),
            token => each(token),
        });
    }

    /// Calls `each` with the sections between the tokens that are not `normalized`.
    pub(crate) fn split_early(&self, text: &str, mut each: impl FnMut(Section)) {
        split_by(self.searches[0].as_ref(), text, 0..text.len(), &mut each);
    }

    /// Call `each` with the sections of such a section between the `normalized` tokens.
    pub(crate) fn split_late(&self, text: &str, mut each: impl FnMut(Section)) {
        split_by(self.searches[1].as_ref(), text, 0..text.len(), &mut each);
    }
}

impl Search {
    fn new(tokens: Vec<AddedToken>) -> Result<Option<Self>> {
        if tokens.is_empty() {
            return Ok(None);
        }
        let matcher = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(tokens.iter().map(|token| &token.content))
            .map_err(|error| Error::option(format!("added tokens: {error}")))?;
        let mut first: Vec<u8> = tokens.iter().map(|token| token.content.as_bytes()[0]).collect();
        first.sort_unstable();
        first.dedup();
        Ok(Some(Search { tokens, matcher, first }))
    }

    /// Return false only if a text has none of the tokens. To start the matcher takes longer than to search a short
    /// text. With more than three first bytes, always true.
    #[inline]
    fn may_match(&self, text: &str) -> bool {
        match *self.first {
            [a] => memchr::memchr(a, text.as_bytes()).is_some(),
            [a, b] => memchr::memchr2(a, b, text.as_bytes()).is_some(),
            [a, b, c] => memchr::memchr3(a, b, c, text.as_bytes()).is_some(),
            _ => true,
        }
    }

    /// Call `each` with the sections of a range of a text.
    fn split(&self, text: &str, range: Range<usize>, each: &mut impl FnMut(Section)) {
        let mut from = range.start;
        let mut taken = range.start; // the end of the last white space that was looked for
        let searched = &text[..range.end];
        for found in self.matcher.find_iter(&searched[range.start..]) {
            let token = &self.tokens[found.pattern().as_usize()];
            let (mut start, mut end) = (range.start + found.start(), range.start + found.end());
            if token.single_word && !is_single_word(&searched[range.start..], found.range()) {
                continue;
            }
            if token.lstrip {
                let before = &searched[from.min(start)..start];
                start =
                    from.max(start - (before.len() - before.trim_end_matches(is_whitespace).len()));
            }
            if from < start {
                each(Section::Text(from..start));
            }
            if token.rstrip {
                // A token in such white space takes the rest of it.
                if end > taken {
                    taken = range.end - searched[end..].trim_start_matches(is_whitespace).len();
                }
                end = taken;
            }
            if end <= start {
                continue; // it is white space of the token before it, which has all of it
            }
            from = end;
            each(Section::Token(token.id, start..end));
        }
        if from < range.end {
            each(Section::Text(from..range.end));
        }
    }
}

/// Return true if no word character is next to a range.
fn is_single_word(text: &str, range: Range<usize>) -> bool {
    static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\A\w").expect("it is one"));
    let is_word = |c: Option<char>| c.is_some_and(|c| WORD.is_match(c.encode_utf8(&mut [0; 4])));
    !is_word(text[..range.start].chars().next_back()) && !is_word(text[range.end..].chars().next())
}

/// Call `each` with the sections of a range of a text: one section of text if no token can be there.
#[inline(always)]
fn split_by(
    search: Option<&Search>,
    text: &str,
    range: Range<usize>,
    each: &mut impl FnMut(Section),
) {
    match search.filter(|search| search.may_match(&text[range.clone()])) {
        Some(search) => search.split(text, range, each),
        None if !range.is_empty() => each(Section::Text(range)),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_in_white_space_of_the_one_before_it_is_found_only_if_some_is_left() {
        let token = |content: &str, id, lstrip, rstrip| AddedToken {
            content: content.into(),
            id,
            lstrip,
            rstrip,
            ..AddedToken::default()
        };
        let newline = token("\n", 1, false, true);
        let found = |other| {
            let search = AddedTokenSearch::new(vec![newline.clone(), other]).expect("few tokens");
            let mut found = Vec::new();
            search.split("a\n\t\n a", |section| found.push(section));
            found
        };
        let text = |range| Section::Text(range);
        let expected = [text(0..1), Section::Token(1, 1..5), Section::Token(1, 3..5), text(5..6)];
        assert_eq!(found(token("\t", 2, true, true)), expected);
        assert_eq!(found(token("\t", 2, true, false)), expected); // tokenizers panics
        let tab = Section::Token(2, 2..3);
        let [a, first, second, rest] = expected;
        assert_eq!(found(token("\t", 2, false, false)), [a, first, tab, second, rest]);
    }
}
