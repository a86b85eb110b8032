//! A unigram language model: pieces with their scores.

use std::sync::{Arc, OnceLock};

use crate::encode::trie::{INITIAL_ROOT, Trie};
use crate::error::{Error, Result};

/// Pieces, in the order of their strings, without duplicates, and their scores: the natural
/// logarithms of their probabilities.
pub struct Model {
    /// The pieces.
    pub pieces: Arc<Vec<Box<str>>>,
    /// Their scores.
    pub scores: Vec<f64>,
    /// Their probabilities.
    pub probabilities: Vec<f64>,
    /// Their lengths in characters.
    pub lengths: Vec<u32>,
    finder: OnceLock<Finder>,
}

impl Model {
    /// A model of pieces in the order of their strings.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if the pieces are not in order, or a score is no number that a
    /// logarithm of a probability can be.
    pub fn new(pieces: Vec<Box<str>>, scores: Vec<f64>) -> Result<Self> {
        if !pieces.is_sorted_by(|a, b| a < b) || pieces.first().is_some_and(|p| p.is_empty()) {
            return Err(Error::data("pieces are not in the order of their strings"));
        }
        if scores.len() != pieces.len() || scores.iter().any(|s| !s.is_finite() || *s > 700.0) {
            return Err(Error::data("a piece has no valid score"));
        }
        let lengths = pieces.iter().map(|piece| piece.chars().count() as u32).collect();
        // By a library in Rust, so that every machine has the same.
        let probabilities = scores.iter().map(|&score| libm::exp(score)).collect();
        Ok(Model {
            pieces: Arc::new(pieces),
            scores,
            probabilities,
            lengths,
            finder: OnceLock::new(),
        })
    }

    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// What finds the pieces. It is made once.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if there are too many pieces for it.
    pub fn finder(&self) -> Result<&Finder> {
        if let Some(finder) = self.finder.get() {
            return Ok(finder);
        }
        let pieces = self.pieces.iter().map(|piece| &**piece).zip(0..).collect();
        let finder = Finder { trie: Trie::new([pieces, Vec::new()])?.0 };
        Ok(self.finder.get_or_init(|| finder))
    }
}

/// Finds the pieces in runs.
pub struct Finder {
    trie: Trie,
}

impl Finder {
    /// Calls `each` with the id and the length, in characters, of every piece that a text begins
    /// with.
    #[inline]
    pub fn each_match(&self, text: &str, mut each: impl FnMut(u32, u32)) {
        let (mut state, mut characters) = (INITIAL_ROOT, 0);
        for &byte in text.as_bytes() {
            let Some(next) = self.trie.transition(state, byte) else { return };
            state = next;
            characters += u32::from(byte & 0xC0 != 0x80);
            if let Some(id) = self.trie.token_id(state) {
                each(id, characters);
            }
        }
    }
}
