//! Sums of scores that are rounded to 32 bits, from the beginning of the text on, as sentencepiece
//! rounds them: for which sums before a word its segmentation stays the same.

use std::ops::{Add, Sub};

use super::{Unigram, UnigramScratch};
use crate::base::trie::NONE;
use crate::encode::vocabulary::Token;

/// The limit of sums above which sentencepiece restarts from 0.
const RESET_AT: f32 = 100_000.0;

/// If all scores are multiples of this, 32-bit sums up to `RESET_AT` and beyond are exact.
const EXACT_STEP: f64 = 1.0 / 64.0;

/// A number that scores are added up in.
pub(super) trait ScoreSum:
    Copy + Default + PartialOrd + Add<Output = Self> + Sub<Output = Self>
{
    /// Return true if a sum is so large that it restarts.
    fn resets(self) -> bool;
}

impl ScoreSum for f64 {
    #[inline]
    fn resets(self) -> bool {
        false
    }
}

impl ScoreSum for f32 {
    #[inline]
    fn resets(self) -> bool {
        self.abs() > RESET_AT
    }
}

impl Unigram {
    /// Return true if the segmentation of a word depends on earlier text: sums are rounded to 32 bits, and not all
    /// sums of these scores are exact.
    pub fn rounds(&self) -> bool {
        self.rounded.is_some()
    }

    /// Tokenize a word after a sum, rounded like sentencepiece.
    ///
    /// # Arguments
    ///
    /// * `word`, `scratch`, `tokens` - As for [`Unigram::tokens`].
    /// * `sum` - The sum of scores before the word. The scores of the word are added.
    ///
    /// # Panics
    ///
    /// Panics unless [`Unigram::rounds`].
    pub(crate) fn rounded_tokens(
        &self,
        word: &str,
        sum: &mut f32,
        scratch: &mut UnigramScratch,
        tokens: &mut Vec<Token>,
    ) {
        let scores = self.rounded.as_deref().expect("sums are rounded");
        let UnigramScratch { rounded, pieces, .. } = scratch;
        let unk_score = self.unk_score as f32;
        self.find_best(word, scores, unk_score, *sum, rounded, pieces);
        *sum = rounded.last().map_or(*sum, |node| node.score);
        self.push_tokens(word, pieces, tokens);
    }

    /// Segments a word as [`Unigram::tokens`] does; the scores of the pieces, in 32 bits, are in the scratch then.
    /// Returns a limit: the segmentation is the same after all sums with a smaller absolute value.
    ///
    /// # Panics
    ///
    /// Panics unless [`Unigram::rounds`].
    pub(crate) fn tokens_with_limit(
        &self,
        word: &str,
        scratch: &mut UnigramScratch,
        tokens: &mut Vec<Token>,
    ) -> f32 {
        self.tokens(word, scratch, tokens);
        let scores = self.rounded.as_deref().expect("sums are rounded");
        let UnigramScratch { nodes, pieces, chosen, added, .. } = scratch;
        added.clear();
        added.extend(pieces.iter().map(|&(.., id)| {
            if id == self.unk_id { self.unk_score as f32 } else { scores[id as usize] }
        }));
        chosen.clear();
        chosen.resize(nodes.len(), false);
        pieces.iter().for_each(|&(_, end, _)| chosen[end as usize] = true);
        let mut margin = f64::INFINITY; // by which each choice was made, at least
        self.each_candidate(word, 0, |start, end, id| {
            let node = nodes[end];
            if chosen[end] && (node.start, node.id) != (start as u32, id) {
                margin = margin.min(node.score - (nodes[start].score + self.score(id)));
            }
        });
        let reached = nodes.iter().filter(|node| node.start != NONE);
        let reach = reached.map(|node| node.score.abs()).fold(0.0, f64::max);
        // Each step rounds one sum by 2^-24 of it at most, and a choice compares two sums. The number of steps is an
        // upper bound, and the margin a lower bound.
        let steps = word.chars().count() as f64 + 4.0;
        let most = (margin - margin.min(1.0) * 1e-6 - 1e-6) / (steps * f64::from(f32::EPSILON));
        (most.min(0.99 * f64::from(RESET_AT)) - 1.001 * reach - 1.0) as f32
    }
}

/// Return true if 32-bit sums of such scores are exact.
pub(super) fn is_exact(score: f64) -> bool {
    score.abs() < 1000.0 && (score / EXACT_STEP).fract() == 0.0
}
