//! The tokens of a training, by their ids.

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::train::splits::OUTSIDE;

pub struct Tokens {
    strings: Vec<Box<str>>,
    ids: FxHashMap<Box<str>, u32>,
    lengths: Vec<u32>,
    prefix: String,
    max_length: usize,
}

impl Tokens {
    /// `strings`: in id order, without duplicates. `max_length`: of a token that a pair makes, in
    /// characters, the continuing prefix not counted.
    pub fn new(strings: Vec<String>, prefix: String, max_length: usize) -> Self {
        let (ids, lengths) = (FxHashMap::default(), Vec::new());
        let mut tokens = Tokens { strings: Vec::new(), ids, lengths, prefix, max_length };
        for string in strings {
            tokens.add(string);
        }
        tokens
    }

    pub fn strings(&self) -> &[Box<str>] {
        &self.strings
    }

    pub fn len(&self) -> usize {
        self.strings.len()
    }

    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }

    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub fn id(&self, string: &str) -> Option<u32> {
        self.ids.get(string).copied()
    }

    pub fn add(&mut self, string: String) -> u32 {
        let id = self.len() as u32;
        let string: Box<str> = string.into();
        self.lengths.push(self.bare(&string).chars().count() as u32);
        self.ids.insert(string.clone(), id);
        self.strings.push(string);
        id
    }

    /// Fails if one of these is not a token. Tokens from outside are checked before their use.
    pub fn check(&self, tokens: impl IntoIterator<Item = u32>) -> Result<()> {
        let unknown = tokens.into_iter().find(|&token| token as usize >= self.len());
        unknown.map_or(Ok(()), |token| Err(no_token(token, self.len())))
    }

    /// What a symbol of a split spells, in characters.
    pub fn length(&self, symbol: u32) -> u32 {
        if symbol == OUTSIDE { 1 } else { self.lengths[symbol as usize] }
    }

    /// Whether the token that a pair makes is not too long.
    pub fn fits(&self, left: u32, right: u32) -> bool {
        self.length(left) as usize + self.length(right) as usize <= self.max_length
    }

    /// The token that a pair makes, if it is known.
    pub fn merged(&self, left: u32, right: u32) -> Option<u32> {
        self.id(&self.merged_string(left, right))
    }

    pub fn merged_string(&self, left: u32, right: u32) -> String {
        let right = self.bare(&self.strings[right as usize]);
        format!("{}{right}", self.strings[left as usize])
    }

    fn bare<'a>(&self, string: &'a str) -> &'a str {
        string.strip_prefix(&*self.prefix).unwrap_or(string)
    }
}

/// What is wrong with a token that is not there.
pub fn no_token(token: u32, tokens: usize) -> Error {
    Error::data(format!("token {token} is not one of the {tokens} of this training"))
}
