//! The tokens of a training, by their ids.

use foldhash::HashMap;

use crate::base::error::{Error, Result};
use crate::text::marks::WordMarks;
use crate::train::splits::OUTSIDE;

/// The tokens of a training, numbered from 0. Their indices are their ids in the vocabulary.
///
/// # Examples
///
/// ```
/// use wordpiece_core::text::WordMarks;
/// use wordpiece_core::train::Tokens;
///
/// let marks = WordMarks::Prefix("##".into());
/// let mut tokens = Tokens::new(vec!["h".into(), "##u".into()], marks, 16);
/// assert_eq!(tokens.merged(0, 1), None);
/// let hu = tokens.add(tokens.merged_string(0, 1));
/// assert_eq!((tokens.id("hu"), tokens.merged(0, 1)), (Some(hu), Some(hu)));
/// ```
pub struct Tokens {
    strings: Vec<Box<str>>,
    ids: HashMap<Box<str>, u32>,
    /// By token, how many characters it has, without its mark.
    lengths: Vec<u32>,
    marks: WordMarks,
    max_length: usize,
    /// The number of tokens at the beginning that no pair may make.
    sealed: u32,
    /// By token, how many words it has: its spaces, without one at its start, and one more.
    words: Vec<u32>,
    /// The maximum number of words of a token that a pair makes.
    max_words: u32,
}

/// The space in the alphabet of bytes.
const SPACE: char = 'Ġ';

impl Tokens {
    /// The tokens that training begins with.
    ///
    /// # Arguments
    ///
    /// * `strings` - The tokens, in the order of their ids, without duplicates.
    /// * `marks` - How words are marked.
    /// * `max_length` - The most characters of a token that a pair makes, without its mark.
    pub fn new(strings: Vec<String>, marks: WordMarks, max_length: usize) -> Self {
        let mut tokens = Tokens {
            strings: Vec::new(),
            ids: HashMap::default(),
            lengths: Vec::new(),
            marks,
            max_length,
            sealed: 0,
            words: Vec::new(),
            max_words: u32::MAX,
        };
        for string in strings {
            tokens.add(string);
        }
        tokens
    }

    /// Seal the present tokens: no pair may make one of them. So the tokens of an extended model are only
    /// made by its own merges.
    pub fn sealed(mut self) -> Self {
        self.sealed = self.strings.len() as u32;
        self
    }

    /// Limits the tokens of bytes that a pair makes to `max_words` words with single spaces between them.
    pub fn with_max_words(mut self, max_words: u32) -> Self {
        self.max_words = max_words;
        self
    }

    /// The tokens, in the order of their ids.
    pub fn strings(&self) -> &[Box<str>] {
        &self.strings
    }

    /// Return the number of tokens.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Return true if there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }

    /// The prefix of the tokens that continue a word.
    pub fn prefix(&self) -> &str {
        self.marks.prefix()
    }

    /// The id of a token, if it is known.
    pub fn id(&self, string: &str) -> Option<u32> {
        self.ids.get(string).copied()
    }

    /// Adds a token, which must not be known yet; returns its id.
    ///
    /// # Panics
    ///
    /// Panics if all 32-bit ids except the two highest are used.
    pub fn add(&mut self, string: String) -> u32 {
        let id = u32::try_from(self.len()).ok().filter(|&id| id < OUTSIDE - 1);
        let id = id.expect("there are fewer than 2^32 - 2 tokens");
        let string: Box<str> = string.into();
        let bare = self.marks.strip(&string).unwrap_or(&string);
        self.lengths.push(bare.chars().count() as u32);
        self.words.push(bare.chars().skip(1).filter(|&c| c == SPACE).count() as u32 + 1);
        self.ids.insert(string.clone(), id);
        self.strings.push(string);
        id
    }

    /// Checks ids of tokens that come from outside, before they are used.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if an id is out of range.
    pub fn check(&self, tokens: impl IntoIterator<Item = u32>) -> Result<()> {
        let unknown = tokens.into_iter().find(|&token| token as usize >= self.len());
        unknown.map_or(Ok(()), |token| Err(no_token(token, self.len())))
    }

    /// Return the number of characters of a word that a symbol of its split represents.
    pub fn length(&self, symbol: u32) -> u32 {
        if symbol == OUTSIDE { 1 } else { self.lengths[symbol as usize] }
    }

    /// Return true if the token of a pair is short enough and not sealed.
    pub fn fits(&self, left: u32, right: u32) -> bool {
        self.length(left) as usize + self.length(right) as usize <= self.max_length
            && (self.max_words == u32::MAX || self.joined_words(left, right) <= self.max_words)
            && (self.sealed == 0 || self.merged(left, right).is_none_or(|id| id >= self.sealed))
    }

    /// Returns the number of words of the token that a pair makes.
    fn joined_words(&self, left: u32, right: u32) -> u32 {
        if left == OUTSIDE || right == OUTSIDE {
            return 1;
        }
        let begins_a_word = self.strings[right as usize].starts_with(SPACE);
        self.words[left as usize] + self.words[right as usize] - u32::from(!begins_a_word)
    }

    /// The token that a pair makes, if it is known.
    pub fn merged(&self, left: u32, right: u32) -> Option<u32> {
        self.id(&self.merged_string(left, right))
    }

    /// The string of the token that a pair makes.
    pub fn merged_string(&self, left: u32, right: u32) -> String {
        let right = &self.strings[right as usize];
        let right = right.strip_prefix(self.prefix()).unwrap_or(right);
        format!("{}{right}", self.strings[left as usize])
    }
}

/// Return the error for an id out of range. `tokens`: the number of tokens.
pub fn no_token(token: u32, tokens: usize) -> Error {
    Error::data(format!("token {token} is not one of the {tokens} of this training"))
}
