//! Splits of a word with marks for spaces into parts, whose tokens together are the tokens of the word, so that
//! parts can be cached. Most parts are words with the spaces before them.

use std::ops::Range;

use foldhash::HashSet;

use crate::text::blocks::{Lanes, each_in_class};
use crate::text::marks::SPACE_MARK;
use crate::text::unicode::only_char;

/// The mark in UTF-8.
const MARK: [u8; 3] = {
    let mut bytes = [0; 3];
    SPACE_MARK.encode_utf8(&mut bytes);
    bytes
};

/// The characters after which a word is split, if a [`SPACE_MARK`] follows.
pub(crate) struct Parts {
    ascii: [bool; 128],
    others: Others,
}

/// Characters other than ASCII.
struct Others {
    /// The characters before a mark inside of tokens.
    joined: HashSet<char>,
    /// The characters that are symbols; None if it does not matter.
    symbols: Option<HashSet<char>>,
}

impl Others {
    fn end(&self, c: char) -> bool {
        let is_known = self.symbols.as_ref().is_none_or(|symbols| symbols.contains(&c));
        c != SPACE_MARK && is_known && !self.joined.contains(&c)
    }
}

impl Parts {
    /// Makes them of a vocabulary.
    ///
    /// # Arguments
    ///
    /// * `tokens` - The tokens.
    /// * `unknown_ends` - True if an unknown character separates the text before it from a mark after it: it does
    ///   not vanish, and no merge takes its tokens.
    pub fn new<'a>(tokens: impl Iterator<Item = &'a str> + Clone, unknown_ends: bool) -> Self {
        let mut joined = HashSet::default();
        for token in tokens.clone() {
            let pairs = token.chars().zip(token.chars().skip(1));
            joined.extend(pairs.filter(|pair| pair.1 == SPACE_MARK).map(|pair| pair.0));
        }
        let symbols = (!unknown_ends).then(|| tokens.filter_map(only_char).collect());
        let others = Others { joined, symbols };
        Parts { ascii: std::array::from_fn(|byte| others.end(byte as u8 as char)), others }
    }

    /// Calls `each` with the range of every part of a word.
    ///
    /// # Arguments
    ///
    /// * `word` - The word.
    /// * `spaces` - True if spaces are treated as marks.
    /// * `each` - What takes the parts.
    #[inline(always)]
    pub fn each(&self, word: &str, spaces: bool, mut each: impl FnMut(Range<usize>)) {
        let (bytes, mut start) = (word.as_bytes(), 0);
        let [first, ..] = MARK;
        let is_first = |lanes: Lanes| match spaces {
            true => lanes.is(b' ') | lanes.is(first),
            false => lanes.is(first),
        };
        each_in_class(bytes, 1, bytes.len(), is_first, |at| {
            let is_mark = bytes[at] == b' ' || bytes[at..].starts_with(&MARK);
            if is_mark && self.end_before(word, at) && !(spaces && bytes[at - 1] == b' ') {
                each(start..at);
                start = at;
            }
        });
        each(start..word.len());
    }

    #[inline(always)]
    fn end_before(&self, word: &str, at: usize) -> bool {
        match self.ascii.get(word.as_bytes()[at - 1] as usize) {
            Some(&ends) => ends,
            None => word[..at].chars().next_back().is_some_and(|c| self.others.end(c)),
        }
    }
}
