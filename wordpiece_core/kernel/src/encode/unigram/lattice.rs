//! All cuts of a word, of which one is drawn.

use crate::encode::sampling::Random;
use crate::encode::trie::NONE;
use crate::memory;

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

/// A positive number of any size, or 0: a factor from 1 up to 2, and a power of two. Probabilities of
/// long words, and large powers of them, are smaller than a 64-bit number can be.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wide {
    factor: f64,
    power: i64,
}

impl Wide {
    /// e to the power of `x`, the same on every machine.
    fn exp(x: f64) -> Self {
        // So the powers of the tokens of a word, fewer than 2^31, add up to one that 64 bits hold.
        let most = (1u64 << 31) as f64;
        let x = (x * std::f64::consts::LOG2_E).clamp(-most, most);
        let power = x.floor();
        Wide { factor: libm::exp2(x - power), power: power as i64 }
    }

    fn of(factor: f64, power: i64) -> Self {
        const EXPONENT: u64 = 0x7FF << 52;
        let bits = factor.to_bits();
        let more = (bits >> 52) as i64 - 1023;
        Wide { factor: f64::from_bits(bits & !EXPONENT | 1023 << 52), power: power + more }
    }

    /// The number divided by a power of two.
    fn over(self, power: i64) -> f64 {
        let by = self.power - power;
        if by < -1000 { 0.0 } else { self.factor * f64::from_bits(((1023 + by) as u64) << 52) }
    }

    fn times(self, other: Self) -> Self {
        Wide::of(self.factor * other.factor, self.power + other.power)
    }

    fn plus(self, other: Self) -> Self {
        if self.factor == 0.0 {
            return other;
        }
        let power = self.power.max(other.power);
        Wide::of(self.over(power) + other.over(power), power)
    }
}

/// All cuts of a word.
#[derive(Default)]
pub(super) struct Lattice {
    /// For each place of the word, the sum of the weights of all cuts of what is before it.
    sums: Vec<Wide>,
    /// For each place, the last of the edges that end there, or `NONE`.
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

impl Lattice {
    pub(super) fn clear(&mut self, length: usize) {
        self.sums.clear();
        memory::resize(&mut self.sums, length + 1, Wide::default());
        self.sums[0] = Wide { factor: 1.0, power: 0 };
        self.last.clear();
        memory::resize(&mut self.last, length + 1, NONE);
        self.edges.clear();
    }

    /// Adds an edge. All that end where it begins must have been added.
    #[inline]
    pub(super) fn add(&mut self, start: usize, end: usize, id: u32, weight: Wide) {
        let weight = self.sums[start].times(weight);
        self.sums[end] = self.sums[end].plus(weight);
        let edge = Edge { start: start as u32, id, before: self.last[end], weight };
        self.last[end] = self.edges.len() as u32;
        memory::push(&mut self.edges, edge);
    }

    /// Draws a cut from the end of the word: at each place one of the edges that end there, those that
    /// begin last first.
    pub(super) fn draw(&self, random: &mut Random, pieces: &mut Vec<(u32, u32, u32)>) {
        pieces.clear();
        let mut end = self.sums.len() - 1;
        while end > 0 {
            let Wide { factor, power } = self.sums[end];
            let mut left = random.unit() * factor;
            let mut edge = &self.edges[self.last[end] as usize];
            loop {
                left -= edge.weight.over(power);
                if left < 0.0 || edge.before == NONE {
                    break;
                }
                edge = &self.edges[edge.before as usize];
            }
            memory::push(pieces, (edge.start, end as u32, edge.id));
            end = edge.start as usize;
        }
        pieces.reverse();
    }
}
