//! The vocabulary as a double-array trie over bytes.
//!
//! A trie is an automaton: each state represents the bytes that lead to it, and a transition by
//! one byte leads to a longer string of bytes. In a double array the transition from a state by
//! byte `b` goes to the state at index `base + b`, and it exists if that state has the byte `b`. No
//! two states have the same base, so the index and the byte of a state determine its parent. A
//! transition costs one addition, one load and one comparison, and all states share one array.
//!
//! The trie has two roots in one array: one for tokens at the beginning of a word, and one for
//! tokens that continue a word. Without its own root the continuing prefix (`##`) would have to be
//! walked again and again.

use std::ops::Range;

use crate::base::error::{Error, Result};

/// A state, packed into 64 bits: the byte of the transition to it (bits 0 to 7), a mark (bit 8) that is zero where
/// the array has no state, one more than the id of the token that ends here or zero, and the base. The trie knows
/// the number of bits of an id.
#[derive(Clone, Copy, Default)]
pub(crate) struct State(u64);

impl State {
    const MARK: u64 = 1 << 8;
    /// The number of bits for the byte and the mark.
    const ID_SHIFT: u32 = 9;

    fn new(byte: u8) -> Self {
        State(State::MARK | byte as u64)
    }

    /// Return true if the transition by a byte leads to this state.
    #[inline(always)]
    fn has(self, byte: u8) -> bool {
        self.0 & (State::MARK | 0xFF) == State::MARK | byte as u64
    }

    fn is_unused(self) -> bool {
        self.0 == 0
    }
}

/// Stands where there is no token. No token may have this id.
pub const NONE: u32 = u32::MAX;
/// The root of the tokens at the beginning of a word.
pub const INITIAL_ROOT: usize = 0;
/// The root of the tokens that continue a word.
pub const CONTINUING_ROOT: usize = 1;

/// A double-array trie with one root for tokens that begin a word and one for tokens that continue it.
pub struct Trie {
    /// The two roots come first.
    states: Box<[State]>,
    id_bits: u32,
}

/// The bytes of a token, and its id.
type Pattern<'a> = (&'a [u8], u32);

/// A state that has no transitions yet.
struct PendingState {
    state: usize,
    /// The patterns that begin with its bytes.
    patterns: Range<usize>,
    /// The number of its bytes.
    depth: usize,
}

/// The array of a trie while it is built.
struct Building {
    states: Vec<State>,
    /// One bit for each index that is the base of a state.
    bases: Vec<u64>,
    /// All states before this index are in use, or skipped.
    unused_from: usize,
    /// No base may be this or more.
    end: u64,
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
    /// Returns [`Error::Data`] if one more than the largest id, and a base, have more than 55 bits together.
    pub fn new<Bytes: AsRef<[u8]> + ?Sized>(tokens: [Vec<(&Bytes, u32)>; 2]) -> Result<Self> {
        let patterns = tokens.map(sorted);
        let last_id = patterns.iter().flatten().map(|&(_, id)| id).max().unwrap_or(0);
        let id_bits = u32::BITS - last_id.saturating_add(1).leading_zeros();
        let base_shift = State::ID_SHIFT + id_bits;
        let mut building = Building {
            // No transition leads to a root: by byte 255 its parent would have a negative base.
            states: vec![State::new(0xFF); 2],
            bases: Vec::new(),
            unused_from: 2,
            end: 1 << (u64::BITS - base_shift),
        };
        for (root, patterns) in [INITIAL_ROOT, CONTINUING_ROOT].into_iter().zip(&patterns) {
            // The states below a state follow it in the array, so that long tokens take few cache lines.
            let mut pending =
                vec![PendingState { state: root, patterns: 0..patterns.len(), depth: 0 }];
            while let Some(PendingState { state, patterns: range, depth }) = pending.pop() {
                let (ending, longer) = split_ending(&patterns[range.clone()], depth);
                if let Some(&(_, id)) = ending.last() {
                    building.states[state].0 |= (id as u64 + 1) << State::ID_SHIFT;
                }
                let groups = group_by_byte(longer, depth, range.start + ending.len());
                if groups.is_empty() {
                    continue;
                }
                let base = building.find_base(&groups)?;
                building.states[state].0 |= (base as u64) << base_shift;
                for (byte, patterns) in groups.into_iter().rev() {
                    let state = base + byte as usize;
                    building.states[state] = State::new(byte);
                    pending.push(PendingState { state, patterns, depth: depth + 1 });
                }
            }
        }
        // A transition is looked up without knowing if there is one.
        let mut states = building.states;
        states.resize(building.bases.len() * 64 + 256, State::default());
        Ok(Trie { states: states.into(), id_bits })
    }

    /// Return the state of a root.
    #[inline(always)]
    pub(crate) fn root(&self, root: usize) -> State {
        self.states[root]
    }

    /// Return the state that the transition from `state`, a state of this trie, by `byte` leads to, if there is one.
    #[inline(always)]
    pub(crate) fn transition(&self, state: State, byte: u8) -> Option<State> {
        let base = (state.0 >> (State::ID_SHIFT + self.id_bits)) as usize;
        let next = self.states[base + byte as usize];
        next.has(byte).then_some(next)
    }

    /// The id of the token whose bytes lead to a state, if there is one.
    #[inline(always)]
    pub(crate) fn token_id(&self, state: State) -> Option<u32> {
        let id = (state.0 >> State::ID_SHIFT) as u32 & ((1u64 << self.id_bits) - 1) as u32;
        id.checked_sub(1)
    }

    /// The length and the id of every token below a root that some bytes begin with, the shortest
    /// first.
    ///
    /// # Panics
    ///
    /// Panics if `root` is not the index of a root.
    #[inline(always)] // as its iterator: in the loops that tokenize words, a call costs some percent
    pub fn prefixes<'a>(&'a self, root: usize, bytes: &'a [u8]) -> Prefixes<'a> {
        Prefixes { trie: self, state: self.root(root), bytes, length: 0 }
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
}

impl Building {
    /// Find the first free base from which the transitions by these bytes lead to unused states.
    fn find_base(&mut self, groups: &[(u8, Range<usize>)]) -> Result<usize> {
        while self.states.get(self.unused_from).is_some_and(|state| !state.is_unused()) {
            self.unused_from += 1;
        }
        let first = groups[0].0 as usize;
        let mut base = self.unused_from.saturating_sub(first).max(2);
        let mut tries = 0;
        loop {
            if base as u64 >= self.end {
                return Err(Error::data("the vocabulary is too large for a trie"));
            }
            if self.states.len() < base + 256 {
                self.states.resize((base + 256) * 3 / 2, State::default());
            }
            self.bases.resize(self.bases.len().max(base / 64 + 1), 0);
            let (word, bit) = (&mut self.bases[base / 64], 1 << (base % 64));
            if *word & bit == 0
                && groups.iter().all(|&(b, _)| self.states[base + b as usize].is_unused())
            {
                *word |= bit;
                return Ok(base);
            }
            base += 1;
            tries += 1;
            // Crowded states are skipped, so that building stays linear in the vocabulary.
            if tries == 512 {
                self.unused_from = base + first;
            }
        }
    }
}

/// The tokens that some bytes begin with (see [`Trie::prefixes`]).
pub struct Prefixes<'a> {
    trie: &'a Trie,
    /// The state that the first `length` bytes lead to.
    state: State,
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
    use wordpiece_testing::Random;

    /// The longest token below a root that a text begins with.
    fn longest(trie: &Trie, root: usize, text: &str) -> Option<u32> {
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

    #[test]
    fn only_tokens_are_found_among_random_bytes() {
        let mut random = Random::new(3);
        for _ in 0..500 {
            let mut bytes = |most: usize| -> Vec<u8> {
                (0..random.below(most))
                    .map(|_| *random.choose(&[0, 1, 2, 3, 97, 254, 255]))
                    .collect()
            };
            let tokens: [Vec<Vec<u8>>; 2] = [(); 2].map(|()| (0..20).map(|_| bytes(6)).collect());
            let listed =
                tokens.each_ref().map(|tokens| tokens.iter().map(Vec::as_slice).zip(0..).collect());
            let trie = Trie::new::<[u8]>(listed).unwrap();
            for (root, tokens) in tokens.iter().enumerate() {
                let text = bytes(12);
                let found: Vec<_> = trie.prefixes(root, &text).collect();
                let id = |prefix: &[u8]| tokens.iter().rposition(|token| token == prefix);
                let lengths = 1..=text.len();
                let expected = lengths.filter_map(|n| Some((n, id(&text[..n])? as u32)));
                assert_eq!(found, expected.collect::<Vec<_>>(), "{text:?} {tokens:?}");
            }
        }
    }

    #[test]
    fn ids_have_any_value_and_too_many_states_are_refused() {
        let last = u32::MAX - 1;
        let tokens = || vec![("a", last), ("ab", 0), ("\u{10FFFF}", 1)];
        let trie = Trie::new([tokens(), tokens()]).unwrap();
        for root in [INITIAL_ROOT, CONTINUING_ROOT] {
            assert_eq!(trie.prefixes(root, b"abc").collect::<Vec<_>>(), [(1, last), (2, 0)]);
        }
        let mut building = Building {
            states: vec![State::new(0xFF); 300],
            bases: vec![],
            unused_from: 2,
            end: 300,
        };
        assert!(building.find_base(&[(0, 0..1)]).is_err());
    }
}
