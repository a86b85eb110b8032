//! Byte-pair encoding with superwords: tokens that cross spaces.
//!
//! A piece of several words rarely repeats, so a cache of pieces does not help. But all merges before the first
//! merge that crosses a space stay inside words. So words are encoded with these merges and cached, and the
//! later merges are applied to the tokens of the piece. The result is the same, because ranks put the first
//! merges first, and none of them needs the token of a later merge.

use foldhash::HashSet;

use super::merge_table::MergeTable;
use super::{Bpe, BpeOptions, BpeScratch, SHORT, bytes_of};
use crate::base::error::Result;
use crate::base::trie::NONE;
use crate::encode::vocabulary::{Token, Vocabulary};
use crate::text::blocks::each_in_class;
use crate::text::byte_level::byte_character;
use crate::text::marks::WordBoundary;

/// The merges of words, and the merges of superwords.
pub(crate) struct Superwords {
    words: Bpe,
    later: MergeTable,
    /// The tokens that later merges make, from the first rank on.
    made: Vec<u32>,
    first_rank: u32,
}

impl Superwords {
    /// Divides the merges of a model. None if no merge crosses a space, or if words cannot be encoded on their
    /// own.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Bpe::new`].
    pub(crate) fn new(
        vocabulary: Vocabulary<'_>,
        options: &BpeOptions<'_>,
        model: &Bpe,
    ) -> Result<Option<Self>> {
        let is_usual = options.word_boundary == WordBoundary::Bytes
            && options.tied.is_empty()
            && !options.ignore_merges
            && (0..=u8::MAX).all(|byte| model.inner.id(byte_character(byte)) != NONE);
        let crosses = |&id: &u32| {
            let bytes = bytes_of(vocabulary.tokens[id as usize]).unwrap_or_default();
            bytes.windows(2).any(|pair| pair[1] == b' ' && ends_word(pair[0]))
        };
        let Some(first) = model.made.iter().position(crosses).filter(|_| is_usual) else {
            return Ok(None);
        };
        let (words, superwords) = options.merges.split_at(first);
        let made: HashSet<u32> = model.made[first..].iter().copied().collect();
        if words.iter().any(|(left, right)| made.contains(left) || made.contains(right)) {
            return Ok(None);
        }
        let mut later = MergeTable::with_bits(superwords.len(), BITS);
        for (&(left, right), rank) in superwords.iter().zip(first as u32..) {
            if model.merges.rank(left, right) == rank {
                later.insert(left, right, rank);
            }
        }
        let words = Bpe::new(vocabulary, BpeOptions { merges: words, ..options.clone() })?;
        let made = model.made[first..].to_vec();
        Ok(Some(Superwords { words, later, made, first_rank: first as u32 }))
    }

    /// Calls `each` with the bounds of every word of a piece.
    #[inline(always)]
    pub(crate) fn each_word(
        bytes: &[u8],
        mut start: usize,
        end: usize,
        mut each: impl FnMut(usize, usize),
    ) {
        each_in_class(
            bytes,
            start + 1,
            end,
            |lanes| lanes.is(b' '),
            |at| {
                if ends_word(bytes[at - 1]) {
                    each(start, at);
                    start = at;
                }
            },
        );
        each(start, end);
    }

    /// Splits a word into its tokens, like [`Bpe::tokens`].
    pub(crate) fn tokens(&self, word: &str, scratch: &mut BpeScratch, tokens: &mut Vec<Token>) {
        self.words.tokens(word, scratch, tokens);
    }

    /// Merges the tokens of the words of pieces.
    ///
    /// # Arguments
    ///
    /// * `ids` - The tokens. From index `from` on, tokens of words are replaced by tokens of pieces.
    /// * `from` - The start of the first piece.
    /// * `ends` - The ends of pieces. Tokens after the last end do not change.
    /// * `scratch` - What pieces are merged in.
    ///
    /// Returns the new end of the last piece.
    pub(crate) fn merge(
        &self,
        ids: &mut Vec<u32>,
        from: usize,
        ends: &[usize],
        scratch: &mut BpeScratch,
    ) -> usize {
        let (mut start, mut free) = (from, from);
        let mut found = std::mem::take(&mut scratch.found);
        let until = ends.last().copied().unwrap_or(from);
        self.find_pairs(&ids[from..until], from, &mut found);
        let mut next = &found[..];
        for &end in ends {
            let here = next.iter().take_while(|&&at| at + 1 < end).count();
            let (pairs, behind) = next.split_at(here);
            // The next pair may cross the end of the piece.
            next =
                if behind.first() == Some(&(end.wrapping_sub(1))) { &behind[1..] } else { behind };
            let length = match pairs {
                [] => end - start,
                _ => self.merge_piece(
                    &mut ids[start..end],
                    pairs.iter().map(|at| at - start),
                    scratch,
                ),
            };
            if free < start {
                ids.copy_within(start..start + length, free);
            }
            (start, free) = (end, free + length);
        }
        scratch.found = found;
        let left = ids.len() - start;
        ids.copy_within(start.., free);
        ids.truncate(free + left);
        free
    }

    /// Finds the pairs that might be merged, by the index of their left token.
    #[inline(always)]
    fn find_pairs(&self, ids: &[u32], from: usize, found: &mut Vec<usize>) {
        found.clear();
        found.resize(ids.len(), 0);
        let mut count = 0;
        for (at, pair) in ids.windows(2).enumerate() {
            found[count] = from + at;
            count += usize::from(self.later.may_hold(pair[0], pair[1]));
        }
        found.truncate(count);
    }

    /// Merges the tokens of a piece, and returns how many are left. `pairs`: the indices of the pairs that
    /// might be merged.
    #[inline(never)]
    fn merge_piece(
        &self,
        ids: &mut [u32],
        pairs: impl Iterator<Item = usize>,
        scratch: &mut BpeScratch,
    ) -> usize {
        let rank = |left, right| self.later.rank(left, right);
        if ids.len() > SHORT {
            let mut symbols = ids.to_vec();
            let made = |rank, _, _| self.made(rank);
            scratch.merge_all(&mut symbols, |left, right, _| rank(left, right), made);
            ids[..symbols.len()].copy_from_slice(&symbols);
            return symbols.len();
        }
        let mut ranks = [NONE; SHORT];
        for at in pairs {
            ranks[at] = rank(ids[at], ids[at + 1]);
        }
        let mut length = ids.len();
        loop {
            let (mut at, mut best) = (0, NONE);
            for (index, &rank) in ranks[..length - 1].iter().enumerate() {
                if rank < best {
                    (at, best) = (index, rank);
                }
            }
            if best == NONE {
                return length;
            }
            ids[at] = self.made(best);
            ids.copy_within(at + 2..length, at + 1);
            ranks.copy_within(at + 1..length, at);
            length -= 1;
            if at > 0 {
                ranks[at - 1] = rank(ids[at - 1], ids[at]);
            }
            ranks[at] = if at + 1 < length { rank(ids[at], ids[at + 1]) } else { NONE };
        }
    }

    #[inline]
    fn made(&self, rank: u32) -> u32 {
        self.made[(rank - self.first_rank) as usize]
    }
}

/// Bits for each slot of the table of later merges: most words are in no superword, so a pair that is not there
/// should rarely be looked up.
const BITS: usize = 32;

/// Returns true if a space after this byte begins a word.
#[inline(always)]
fn ends_word(byte: u8) -> bool {
    !matches!(byte, b' ' | b'\t'..=b'\r')
}
