//! Sums of scores that are rounded to 32 bits, from the beginning of the text on, as sentencepiece
//! rounds them: for which sums before a word its segmentation stays the same.

use std::ops::{Add, Sub};

use super::{Unigram, UnigramScratch};
use crate::base::trie::NONE;
use crate::encode::vocabulary::Token;

/// Where a sum is larger than this, sentencepiece counts anew from 0.
const RESET_AT: f32 = 100_000.0;

/// If all scores are multiples of this, 32-bit sums up to `RESET_AT` and beyond are exact.
const EXACT_STEP: f64 = 1.0 / 64.0;

/// A number that scores are added up in.
pub(super) trait ScoreSum:
    Copy + Default + PartialOrd + Add<Output = Self> + Sub<Output = Self>
{
    /// Whether a sum so large is counted anew.
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
    /// Whether the segmentation of a word depends on what is before it: sums are rounded to 32 bits, and the
    /// scores are not such that all sums are exact.
    pub fn rounds(&self) -> bool {
        self.rounded.is_some()
    }

    /// The same behind a sum, rounded as sentencepiece rounds.
    ///
    /// # Arguments
    ///
    /// * `word`, `scratch`, `tokens` - As for [`Unigram::tokens`].
    /// * `sum` - The sum of what is before the word. That of the word is added.
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
    /// Returns the limit of sums before the word: behind all whose absolute value is smaller, the segmentation is
    /// the same.
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
        // Up to a choice, so many sums are rounded, each by 2^-24 of it at most, and it compares two.
        // There are more steps than that, and the margin is a bit smaller than it was: these are bounds.
        let steps = word.chars().count() as f64 + 4.0;
        let most = (margin - margin.min(1.0) * 1e-6 - 1e-6) / (steps * f64::from(f32::EPSILON));
        (most.min(0.99 * f64::from(RESET_AT)) - 1.001 * reach - 1.0) as f32
    }
}

/// Whether 32-bit sums of such scores are exact.
pub(super) fn is_exact(score: f64) -> bool {
    score.abs() < 1000.0 && (score / EXACT_STEP).fract() == 0.0
}
