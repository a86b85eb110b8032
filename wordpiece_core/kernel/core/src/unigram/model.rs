//! A unigram language model: pieces with their scores.

use std::sync::{Arc, OnceLock};

use crate::base::error::{Error, Result};
use crate::base::trie::{INITIAL_ROOT, State, Trie};

/// Pieces, in the order of their strings, without duplicates, and their scores: the natural
/// logarithms of their probabilities.
pub struct UnigramModel {
    /// The pieces.
    pub(super) pieces: Arc<Vec<Arc<str>>>,
    /// Their scores.
    pub(super) scores: Vec<f64>,
    /// Their probabilities.
    pub(super) probabilities: Vec<f64>,
    /// Their lengths in characters.
    pub(super) lengths: Vec<u32>,
    finder: OnceLock<Finder>,
}

impl UnigramModel {
    /// A model of pieces in the order of their strings.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if the pieces are not in order, or a score is not the logarithm of a probability.
    pub fn new(pieces: Vec<Arc<str>>, scores: Vec<f64>) -> Result<Self> {
        if !pieces.is_sorted_by(|a, b| a < b) || pieces.first().is_some_and(|p| p.is_empty()) {
            return Err(Error::data("pieces are not in the order of their strings"));
        }
        let lengths = pieces.iter().map(|piece| piece.chars().count() as u32).collect();
        UnigramModel::with_lengths(Arc::new(pieces), lengths, scores)
    }

    /// The model of some of its pieces, in order, with other scores.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if a score is not the logarithm of a probability.
    pub(crate) fn subset(&self, ids: &[usize], scores: Vec<f64>) -> Result<Self> {
        let pieces = match ids.len() == self.len() {
            true => self.pieces.clone(),
            false => Arc::new(ids.iter().map(|&id| self.pieces[id].clone()).collect()),
        };
        UnigramModel::with_lengths(pieces, ids.iter().map(|&id| self.lengths[id]).collect(), scores)
    }

    fn with_lengths(
        pieces: Arc<Vec<Arc<str>>>,
        lengths: Vec<u32>,
        scores: Vec<f64>,
    ) -> Result<Self> {
        if scores.len() != pieces.len() || scores.iter().any(|s| !s.is_finite() || *s > 700.0) {
            return Err(Error::data("a piece has no valid score"));
        }
        // By a library in Rust, so that every machine has the same.
        let probabilities = scores.iter().map(|&score| libm::exp(score)).collect();
        Ok(UnigramModel { pieces, scores, probabilities, lengths, finder: OnceLock::new() })
    }

    /// The pieces.
    pub fn pieces(&self) -> &[Arc<str>] {
        &self.pieces
    }

    /// Their scores.
    pub fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// Return the number of pieces.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Return true if there are no pieces.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Return the trie of the pieces. It is built once.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if there are too many pieces for it.
    pub fn finder(&self) -> Result<&Finder> {
        if let Some(finder) = self.finder.get() {
            return Ok(finder);
        }
        let pieces = self.pieces.iter().map(|piece| &**piece).zip(0..).collect();
        let finder = Finder { trie: Trie::new([pieces, Vec::new()])? };
        Ok(self.finder.get_or_init(|| finder))
    }
}

/// Finds the pieces in runs.
pub struct Finder {
    trie: Trie,
}

/// The number of places of a run that are searched in turn, so that they wait for memory together: in a large
/// trie each step misses the caches.
pub const LANES: usize = 8;

/// The state of a search at one place.
#[derive(Default)]
pub struct Lane {
    state: State,
    at: usize,
    characters: u32,
    found: Vec<(u32, u32)>,
}

impl Finder {
    /// For each character of a run in turn, calls `each` with the ids and the lengths, in characters,
    /// of all pieces that begin there, shorter ones first. `lanes` keep their memory for the next run.
    pub(crate) fn each_place(
        &self,
        run: &str,
        lanes: &mut [Lane; LANES],
        mut each: impl FnMut(&[(u32, u32)]),
    ) {
        let mut starts = run.char_indices();
        loop {
            let mut used = 0;
            for (lane, (at, _)) in lanes.iter_mut().zip(&mut starts) {
                lane.begin(&self.trie, at);
                used += 1;
            }
            let mut walking: [usize; LANES] = std::array::from_fn(|lane| lane);
            let mut left = used;
            while left > 0 {
                let mut kept = 0;
                for i in 0..left {
                    let lane = walking[i];
                    walking[kept] = lane;
                    kept += usize::from(lanes[lane].step(&self.trie, run.as_bytes()));
                }
                left = kept;
            }
            lanes[..used].iter().for_each(|lane| each(&lane.found));
            if used < LANES {
                return;
            }
        }
    }
}

impl Lane {
    fn begin(&mut self, trie: &Trie, at: usize) {
        (self.state, self.at, self.characters) = (trie.root(INITIAL_ROOT), at, 0);
        self.found.clear();
    }

    /// Takes the next byte of the run. Returns whether a longer piece may follow.
    #[inline]
    fn step(&mut self, trie: &Trie, run: &[u8]) -> bool {
        let Some(&byte) = run.get(self.at) else { return false };
        let Some(next) = trie.transition(self.state, byte) else { return false };
        (self.state, self.at) = (next, self.at + 1);
        self.characters += u32::from(byte & 0xC0 != 0x80);
        if let Some(id) = trie.token_id(next) {
            self.found.push((id, self.characters));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_at_each_place_are_those_that_its_text_begins_with() {
        let pieces = ["a", "aa", "aaa", "ab", "b", "ba", "é", "éa", "字", "字a字"];
        let model =
            UnigramModel::new(pieces.map(Arc::from).to_vec(), vec![-1.0; pieces.len()]).unwrap();
        let mut lanes = <[Lane; LANES]>::default();
        let letters: Vec<char> = "aabaé字x".chars().collect();
        for length in 0..3 * LANES {
            let run: String = (0..length).map(|i| letters[i * i % letters.len()]).collect();
            let mut found = Vec::new();
            model.finder().unwrap().each_place(&run, &mut lanes, |pieces| {
                found.push(pieces.to_vec());
            });
            let ids = 0..pieces.len() as u32;
            let here = |text: &str| -> Vec<(u32, u32)> {
                let begins = ids.clone().filter(|id| text.starts_with(pieces[*id as usize]));
                begins.map(|id| (id, pieces[id as usize].chars().count() as u32)).collect()
            };
            let expected: Vec<_> = run.char_indices().map(|(at, _)| here(&run[at..])).collect();
            assert_eq!(found, expected);
        }
    }
}
