//! Sums of scores that are rounded to 32 bits, from the beginning of the text on, as sentencepiece
//! rounds them: for which sums before a word its segmentation stays the same.

use std::ops::{Add, Sub};

use super::{Unigram, UnigramScratch, WINDOW};
use crate::base::trie::NONE;
use crate::encode::matcher::Token;

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

/// What is known of a word whose sums are rounded: for which sums before it the segmentation stays the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounding {
    /// By how much each choice was made, at least.
    margin: f32,
    /// The largest distance of a sum within the word from the sum before it.
    reach: f32,
    /// How many sums are rounded, at most, up to a choice.
    steps: f32,
}

impl Rounding {
    /// It as numbers.
    pub fn bits(&self) -> [u32; 3] {
        [self.margin, self.reach, self.steps].map(f32::to_bits)
    }

    /// What these are the numbers of.
    pub(crate) fn of_bits(bits: [u32; 3]) -> Self {
        let [margin, reach, steps] = bits.map(f32::from_bits);
        Rounding { margin, reach, steps }
    }

    /// Whether the segmentation is the same behind this sum.
    #[inline]
    pub(crate) fn allows(&self, sum: f32) -> bool {
        let most = sum.abs() + self.reach;
        // Rounding changes a sum by 2^-24 of it at most, and a choice compares two of them.
        most < RESET_AT * 0.99 && self.margin > self.steps * most * f32::EPSILON
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
        self.find_best(word, scores, unk_score, *sum, WINDOW, rounded, pieces);
        *sum = rounded.last().map_or(*sum, |node| node.score);
        self.push_tokens(word, pieces, tokens);
    }

    /// Segments a word as [`Unigram::tokens`] does, and tells for which sums that is right.
    ///
    /// # Arguments
    ///
    /// * `word`, `scratch`, `tokens` - As for [`Unigram::tokens`].
    /// * `added` - Where the scores of the pieces are written, in 32 bits. It is cleared first.
    ///
    /// # Panics
    ///
    /// Panics unless [`Unigram::rounds`].
    pub(crate) fn tokens_with_rounding(
        &self,
        word: &str,
        scratch: &mut UnigramScratch,
        tokens: &mut Vec<Token>,
        added: &mut Vec<f32>,
    ) -> Rounding {
        self.tokens(word, scratch, tokens);
        let scores = self.rounded.as_deref().expect("sums are rounded");
        let pieces = scratch.pieces.iter();
        added.clear();
        added.extend(pieces.map(|&(.., id)| {
            if id == self.unk_id { self.unk_score as f32 } else { scores[id as usize] }
        }));
        let nodes = &scratch.nodes;
        if nodes.len() != word.len() + 1 {
            return Rounding::default(); // longer than a window: then it is right behind no sum
        }
        let mut chosen = vec![false; nodes.len()];
        scratch.pieces.iter().for_each(|&(_, end, _)| chosen[end as usize] = true);
        let mut margin = f64::INFINITY;
        self.each_candidate(word, 0, |start, end, id| {
            let node = nodes[end];
            if chosen[end] && (node.start, node.id) != (start as u32, id) {
                let other = nodes[start].score + self.score(id);
                margin = margin.min(node.score - other);
            }
        });
        let reached = nodes.iter().filter(|node| node.start != NONE);
        let reach = reached.map(|node| node.score.abs()).fold(0.0, f64::max);
        Rounding {
            // Rounded down and up, and with more steps than there are: these are bounds.
            margin: (margin - margin.min(1.0) * 1e-6) as f32 - 1e-6,
            reach: reach as f32 * 1.001 + 1.0,
            steps: word.chars().count() as f32 + 4.0,
        }
    }
}

/// Whether 32-bit sums of such scores are exact.
pub(super) fn is_exact(score: f64) -> bool {
    score.abs() < 1000.0 && (score / EXACT_STEP).fract() == 0.0
}
