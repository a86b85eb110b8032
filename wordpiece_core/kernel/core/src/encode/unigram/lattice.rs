//! All segmentations of a word, of which one is drawn.

use crate::base::memory;
use crate::base::trie::NONE;
use crate::base::wide::Wide;
use crate::encode::sampling::SplitMix64;

/// The probabilities of tokens to some power.
pub struct Weights {
    pub(super) of: Vec<Wide>,
    pub(super) unk: Wide,
}

impl Weights {
    /// Those of tokens of these scores, and of the score of an unknown character, to the power of
    /// `alpha`.
    pub(super) fn new(scores: &[f64], unk_score: f64, alpha: f64) -> Self {
        let of = scores.iter().map(|score| Wide::exp(alpha * score)).collect();
        Weights { of, unk: Wide::exp(alpha * unk_score) }
    }
}

/// All segmentations of a word. Of its edges only those are held that end behind some place.
#[derive(Default)]
pub(super) struct WordLattice {
    /// For each place of the word, the sum of the weights of all segmentations of what is before it.
    sums: Vec<Wide>,
    from: usize,
    /// For each place behind `from`, the last of the edges that end there, or `NONE`.
    last: Vec<u32>,
    edges: Vec<Edge>,
}

/// A token at a place of the word.
struct Edge {
    start: u32,
    id: u32,
    /// The edge before it that ends at the same place, or `NONE`.
    before: u32,
    weight: Wide,
}

impl WordLattice {
    /// Forgets all. `from`: the place behind which edges are held.
    pub(super) fn clear(&mut self, length: usize, from: usize) {
        self.sums.clear();
        memory::resize(&mut self.sums, length + 1, Wide::ZERO);
        self.sums[0] = Wide::ONE;
        self.move_to(from);
    }

    /// Forgets the edges; holds those behind another place.
    pub(super) fn move_to(&mut self, from: usize) {
        self.from = from;
        self.last.clear();
        self.edges.clear();
    }

    /// Adds an edge. All that end where it begins must have been added.
    #[inline]
    pub(super) fn add(&mut self, start: usize, end: usize, id: u32, weight: Wide) {
        self.sums[end] = self.sums[end] + self.sums[start] * weight;
        self.hold(start, end, id, weight);
    }

    /// Holds an edge that was added before, if it ends behind the place.
    #[inline]
    pub(super) fn hold(&mut self, start: usize, end: usize, id: u32, weight: Wide) {
        let Some(place) = end.checked_sub(self.from + 1) else { return };
        if self.last.len() <= place {
            memory::resize(&mut self.last, place + 1, NONE);
        }
        let weight = self.sums[start] * weight;
        let edge = Edge { start: start as u32, id, before: self.last[place], weight };
        self.last[place] = self.edges.len() as u32;
        memory::push(&mut self.edges, edge);
    }

    /// Draws a segmentation backwards from a place, as far as edges are held: at each place one of those that end
    /// there, those that begin last first. Returns where it has come to.
    pub(super) fn draw(
        &self,
        mut end: usize,
        random: &mut SplitMix64,
        pieces: &mut Vec<(u32, u32, u32)>,
    ) -> usize {
        while end > self.from {
            let sum = self.sums[end];
            let mut left = random.unit() * sum.relative_to(sum);
            let mut edge = &self.edges[self.last[end - self.from - 1] as usize];
            loop {
                left -= edge.weight.relative_to(sum);
                if left < 0.0 || edge.before == NONE {
                    break;
                }
                edge = &self.edges[edge.before as usize];
            }
            memory::push(pieces, (edge.start, end as u32, edge.id));
            end = edge.start as usize;
        }
        end
    }
}
