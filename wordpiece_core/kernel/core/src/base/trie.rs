//! The vocabulary as a double-array trie over bytes.
//!
//! A trie is an automaton: each state represents the bytes that lead to it, and a transition by
//! one byte leads to a longer string of bytes. In a double array the transition from a state by
//! byte `b` goes to the state at index `base + b`, and it exists if the `check` of that state names
//! the state that it came from. So a transition costs one addition, one load and one comparison,
//! and the arrays of all states share their gaps.
//!
//! The trie has two roots in one array: one for tokens at the beginning of a word, and one for
//! tokens that continue a word. Without its own root the continuing prefix (`##`) would have to be
//! walked again and again.

use std::collections::VecDeque;
use std::ops::Range;

use crate::base::error::{Error, Result};

#[derive(Clone, Copy)]
struct State {
    /// The transition by byte `b` leads to the state at index `base + b`.
    base: u32,
    /// The state that the transition to this one comes from, `NONE` if the index is not in use.
    check: u32,
    /// The id of the token that ends here, or `NONE`.
    token_id: u32,
}

/// Stands where there is no state and no token. No token may have this id.
pub const NONE: u32 = u32::MAX;
/// The root of the tokens at the beginning of a word.
pub const INITIAL_ROOT: u32 = 0;
/// The root of the tokens that continue a word.
pub const CONTINUING_ROOT: u32 = 1;

/// The `check` of the roots, to which no transition leads.
const NO_PARENT: u32 = u32::MAX - 1;
const UNUSED: State = State { base: 0, check: NONE, token_id: NONE };

/// The most states that a trie can have: their indices are of 32 bits, without the two values above.
const MAX_STATES: usize = NO_PARENT as usize;

/// A double-array trie with one root for tokens that begin a word and one for tokens that continue it.
pub struct Trie {
    states: Vec<State>,
}

/// The bytes of a token, and its id.
type Pattern<'a> = (&'a [u8], u32);

/// A state that has no transitions yet: the patterns that begin with its bytes, and how many bytes
/// those are.
struct PendingState {
    state: u32,
    root: usize,
    patterns: Range<usize>,
    depth: usize,
}

impl Trie {
    /// Builds a trie, in time linear in the bytes of all tokens, apart from sorting them.
    ///
    /// # Arguments
    ///
    /// * `tokens` - For each of the two roots, the tokens and their ids. Empty tokens are left out.
    ///   Of equal tokens the last one counts. No id may be [`NONE`].
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if the trie would have 2^32 - 2 states or more.
    pub fn new<Bytes: AsRef<[u8]> + ?Sized>(tokens: [Vec<(&Bytes, u32)>; 2]) -> Result<Self> {
        let patterns = tokens.map(sorted);
        let mut trie = Trie { states: vec![UNUSED; 258] };
        let mut pending = VecDeque::new();
        for (root, patterns) in [INITIAL_ROOT, CONTINUING_ROOT].into_iter().zip(&patterns) {
            trie.states[root as usize].check = NO_PARENT;
            pending.push_back(PendingState {
                state: root,
                root: root as usize,
                patterns: 0..patterns.len(),
                depth: 0,
            });
        }
        let mut unused_from = 2;
        while let Some(PendingState { state, root, patterns: range, depth }) = pending.pop_front() {
            let (ending, longer) = split_ending(&patterns[root][range.clone()], depth);
            if let Some(&(_, id)) = ending.last() {
                trie.states[state as usize].token_id = id;
            }
            let groups = group_by_byte(longer, depth, range.start + ending.len());
            if groups.is_empty() {
                continue;
            }
            let base = trie.find_base(&groups, &mut unused_from)?;
            trie.states[state as usize].base = base as u32;
            for (last_byte, range) in groups {
                // `find_base` has checked that every index from this base fits into 32 bits.
                let child = (base + last_byte as usize) as u32;
                trie.states[child as usize].check = state;
                let (patterns, depth) = (range, depth + 1);
                pending.push_back(PendingState { state: child, root, patterns, depth });
            }
        }
        Ok(trie)
    }

    /// The state that the transition from `state` by `byte` leads to, if there is one.
    ///
    /// # Panics
    ///
    /// Panics if `state` is not the index of a state of this trie.
    #[inline]
    pub(crate) fn transition(&self, state: u32, byte: u8) -> Option<u32> {
        let child = self.states[state as usize].base + byte as u32;
        (self.states[child as usize].check == state).then_some(child)
    }

    /// The id of the token whose bytes lead to a state, if there is one.
    ///
    /// # Panics
    ///
    /// Panics if `state` is not the index of a state of this trie.
    #[inline]
    pub(crate) fn token_id(&self, state: u32) -> Option<u32> {
        let id = self.states[state as usize].token_id;
        (id != NONE).then_some(id)
    }

    /// The length and the id of every token below a root that some bytes begin with, the shortest
    /// first.
    ///
    /// # Panics
    ///
    /// Panics if `root` is not the index of a state of this trie.
    #[inline(always)] // as its iterator: in the loops that tokenize words, a call costs some percent
    pub fn prefixes<'a>(&'a self, root: u32, bytes: &'a [u8]) -> Prefixes<'a> {
        Prefixes { trie: self, state: root, bytes, length: 0 }
    }

    /// Return the longest tokens of a word, in order, with the length of each in bytes: from the first root at the
    /// beginning, and from the second root after that. Where no token fits, there is None for one character.
    /// `admits`: returns true for tokens that may be used.
    #[inline(always)]
    pub fn longest_tokens(
        &self,
        word: &str,
        admits: impl Fn(u32) -> bool,
    ) -> impl Iterator<Item = (Option<u32>, usize)> {
        let (mut root, mut rest) = (INITIAL_ROOT, word);
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let fitting = self.prefixes(root, rest.as_bytes()).filter(|&(_, id)| admits(id));
            let (length, id) =
                fitting.last().map_or((first.len_utf8(), None), |(length, id)| (length, Some(id)));
            (root, rest) = (CONTINUING_ROOT, &rest[length..]);
            Some((id, length))
        })
    }

    /// Finds the first base at which the transitions by all these bytes lead to unused states.
    /// `from`: all states before this index are in use, or skipped.
    fn find_base(&mut self, groups: &[(u8, Range<usize>)], from: &mut usize) -> Result<usize> {
        while self.states.get(*from).is_some_and(|state| state.check != NONE) {
            *from += 1;
        }
        let first = groups[0].0 as usize;
        let mut base = (*from).saturating_sub(first).max(1);
        let mut tries = 0;
        loop {
            if self.states.len() < base + 256 {
                if base + 256 > MAX_STATES {
                    return Err(Error::data("the vocabulary is too large for 2^32 states"));
                }
                self.states.resize(((base + 256) * 3 / 2).min(MAX_STATES), UNUSED);
            }
            if groups.iter().all(|&(b, _)| self.states[base + b as usize].check == NONE) {
                return Ok(base);
            }
            base += 1;
            tries += 1;
            // Crowded states are skipped, so that building stays linear in the vocabulary.
            if tries == 512 {
                *from = base + first;
            }
        }
    }
}

/// The tokens that some bytes begin with (see [`Trie::prefixes`]).
pub struct Prefixes<'a> {
    trie: &'a Trie,
    /// The state that the first `length` bytes lead to.
    state: u32,
    bytes: &'a [u8],
    length: usize,
}

impl Iterator for Prefixes<'_> {
    type Item = (usize, u32);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, u32)> {
        while let Some(&byte) = self.bytes.get(self.length) {
            let Some(next) = self.trie.transition(self.state, byte) else { break };
            self.state = next;
            self.length += 1;
            if let Some(id) = self.trie.token_id(next) {
                return Some((self.length, id));
            }
        }
        None
    }
}

fn sorted<Bytes: AsRef<[u8]> + ?Sized>(tokens: Vec<(&Bytes, u32)>) -> Vec<Pattern<'_>> {
    let patterns = tokens.into_iter().map(|(token, id)| (token.as_ref(), id));
    let mut patterns: Vec<_> = patterns.filter(|(bytes, _)| !bytes.is_empty()).collect();
    patterns.sort_by_key(|&(bytes, _)| bytes);
    patterns
}

/// Split sorted patterns with the same first `depth` bytes into patterns that end there, and longer patterns.
fn split_ending<'a, 'b>(
    patterns: &'b [Pattern<'a>],
    depth: usize,
) -> (&'b [Pattern<'a>], &'b [Pattern<'a>]) {
    patterns.split_at(patterns.iter().take_while(|(bytes, _)| bytes.len() == depth).count())
}

/// The ranges of patterns with the same byte at `depth`. `start`: the index of the first pattern.
fn group_by_byte(
    patterns: &[Pattern<'_>],
    depth: usize,
    mut start: usize,
) -> Vec<(u8, Range<usize>)> {
    patterns
        .chunk_by(|a, b| a.0[depth] == b.0[depth])
        .map(|group| {
            let range = start..start + group.len();
            start = range.end;
            (group[0].0[depth], range)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest token below a root that a text begins with.
    fn longest(trie: &Trie, root: u32, text: &str) -> Option<u32> {
        trie.prefixes(root, text.as_bytes()).last().map(|(_, id)| id)
    }

    #[test]
    fn holds_many_tokens_below_two_roots() {
        let tokens: Vec<String> = (0..50_000u32).map(|i| format!("{:x}", i * 7919)).collect();
        let listed: Vec<_> = tokens.iter().map(String::as_str).zip(0..).collect();
        let others = vec![("", 7), ("é", 1), ("éa", 2), ("\u{10FFFF}", 3)];
        let trie = Trie::new([listed.clone(), others.clone()]).unwrap();
        for (token, id) in listed {
            assert_eq!(longest(&trie, INITIAL_ROOT, token), Some(id));
        }
        for &(token, id) in &others[1..] {
            assert_eq!(longest(&trie, CONTINUING_ROOT, token), Some(id));
            assert_eq!(longest(&trie, INITIAL_ROOT, token), None);
        }
        assert_eq!(longest(&Trie::new::<str>([vec![], vec![]]).unwrap(), INITIAL_ROOT, "a"), None);
    }
}
