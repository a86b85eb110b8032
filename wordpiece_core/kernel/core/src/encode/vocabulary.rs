//! The vocabulary that models read, and the tokens that they return.

use foldhash::HashSet;

/// A vocabulary for a model.
#[derive(Clone, Copy)]
pub(crate) struct Vocabulary<'a> {
    /// The tokens, by id.
    pub tokens: &'a [&'a str],
    /// The id of the unknown token, if there is one.
    pub unk_id: Option<u32>,
    /// The ids of tokens that are never the result of encoding a word.
    pub hidden: &'a HashSet<u32>,
}

impl<'a> Vocabulary<'a> {
    /// Return the tokens that words may be encoded to, with their ids.
    pub fn shown(self) -> impl Iterator<Item = (&'a str, u32)> + Clone {
        let tokens = self.tokens.iter().copied().zip(0..);
        tokens.filter(move |(_, id)| !self.hidden.contains(id))
    }
}

/// A token of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// The id of the token.
    pub id: u32,
    /// The number of bytes of the word that the token covers, at most `u32::MAX`; 0 if it covers the same bytes
    /// as the token before it.
    pub length: u32,
}
