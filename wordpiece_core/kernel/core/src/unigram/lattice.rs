//! The lattice of a run: all its segmentations into pieces.

use super::model::{Finder, LANES, Lane};
use crate::base::wide::Wide;

/// Posterior probabilities are rounded to multiples of 2^-52.
pub const UNIT_BITS: u32 = 52;
/// Logarithms of likelihoods are rounded to multiples of 2^-40.
pub const LOG_UNIT_BITS: u32 = 40;
const UNITS: f64 = (1u64 << UNIT_BITS) as f64;
const LOG_UNITS: f64 = (1u64 << LOG_UNIT_BITS) as f64;
/// The likelihood of a run may be less than 2^-700: then it takes numbers with a wider exponent.
const LEAST_LIKELIHOOD: f64 = f64::from_bits((1023 - 700) << 52);

/// The pieces of lattices side by side, by the places where they begin. Places are counted in
/// characters.
#[derive(Default)]
pub struct Lattices {
    /// The ids of the pieces, ordered by their beginning and then by length.
    ids: Vec<u32>,
    /// Their lengths.
    lengths: Vec<u32>,
    /// For each place where `ids` of it end.
    ends: Vec<u32>,
    lanes: [Lane; LANES],
}

impl Lattices {
    /// Empties them.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.lengths.clear();
        self.ends.clear();
    }

    /// Adds the lattice of a run.
    pub fn push(&mut self, run: &str, finder: &Finder) {
        let Lattices { ids, lengths, ends, lanes } = self;
        finder.each_place(run, lanes, |found| {
            ids.extend(found.iter().map(|&(id, _)| id));
            lengths.extend(found.iter().map(|&(_, length)| length));
            ends.push(ids.len() as u32);
        });
    }

    /// The lattice of a run, by its places.
    pub fn lattice(&self, places: std::ops::Range<usize>) -> Lattice<'_> {
        let first = places.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        Lattice { all: self, first, places }
    }

    /// Gives every piece its new number. `numbers`: the new one by the old one, or `u32::MAX` if the
    /// piece is no more.
    pub(crate) fn renumber(&mut self, numbers: &[u32]) {
        let (mut kept, mut first) = (0, 0);
        for end in &mut self.ends {
            for at in first..*end as usize {
                let number = numbers[self.ids[at] as usize];
                if number != u32::MAX {
                    self.ids[kept] = number;
                    self.lengths[kept] = self.lengths[at];
                    kept += 1;
                }
            }
            first = *end as usize;
            *end = kept as u32;
        }
        self.ids.truncate(kept);
        self.lengths.truncate(kept);
    }

    /// Gives back memory that is not in use.
    pub(crate) fn shrink(&mut self) {
        self.lanes = Default::default();
        self.ids.shrink_to_fit();
        self.lengths.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// The bytes they take.
    pub fn memory(&self) -> usize {
        (self.ids.capacity() + self.lengths.capacity() + self.ends.capacity()) * 4
    }
}

/// The lattice of one run.
pub struct Lattice<'a> {
    all: &'a Lattices,
    first: u32,
    places: std::ops::Range<usize>,
}

impl Lattice<'_> {
    fn len(&self) -> usize {
        self.places.len()
    }

    /// The indices of the pieces that begin at a place.
    #[inline]
    fn at(&self, place: usize) -> std::ops::Range<usize> {
        let end = self.all.ends[self.places.start + place] as usize;
        let start = match place {
            0 => self.first as usize,
            _ => self.all.ends[self.places.start + place - 1] as usize,
        };
        start..end
    }
}

/// Calculates over lattices. It keeps its memory from one to the next.
#[derive(Default)]
pub struct Calculator {
    forward: Vec<f64>,
    backward: Vec<f64>,
    weights: Vec<f64>,
    wide_forward: Vec<Wide>,
    wide_backward: Vec<Wide>,
    best: Vec<(f64, u32, u32)>,
}

impl Calculator {
    /// Calls `each` with every piece and its posterior probability at a place of the run, in units
    /// of 2^-52, by the forward-backward algorithm. Returns the logarithm of the likelihood of the
    /// run in units of 2^-40; None if it has no segmentation into pieces.
    pub(crate) fn posteriors(
        &mut self,
        lattice: &Lattice<'_>,
        probabilities: &[f64],
        each: impl FnMut(u32, u64),
    ) -> Option<i64> {
        let (n, all) = (lattice.len(), lattice.all);
        self.forward.clear();
        self.forward.resize(n + 1, 0.0);
        self.forward[0] = 1.0;
        self.weights.clear();
        for place in 0..n {
            let before = self.forward[place];
            for at in lattice.at(place) {
                let probability = probabilities[all.ids[at] as usize];
                self.weights.push(probability);
                self.forward[place + all.lengths[at] as usize] += before * probability;
            }
        }
        let likelihood = self.forward[n];
        if likelihood < LEAST_LIKELIHOOD || !likelihood.is_finite() {
            return self.wide_posteriors(lattice, each);
        }
        self.each_posterior(lattice, 1.0 / likelihood, each);
        Some(log_units(libm::log(likelihood)))
    }

    fn each_posterior(
        &mut self,
        lattice: &Lattice<'_>,
        scale: f64,
        mut each: impl FnMut(u32, u64),
    ) {
        let (n, all) = (lattice.len(), lattice.all);
        self.backward.clear();
        self.backward.resize(n + 1, 0.0);
        self.backward[n] = 1.0;
        let first = lattice.first as usize;
        for place in (0..n).rev() {
            let before = self.forward[place] * scale;
            let mut sum = 0.0;
            for at in lattice.at(place) {
                let after =
                    self.weights[at - first] * self.backward[place + all.lengths[at] as usize];
                sum += after;
                let units = (before * after * UNITS + 0.5) as u64;
                if units > 0 {
                    each(all.ids[at], units);
                }
            }
            self.backward[place] = sum;
        }
    }

    /// [`Calculator::posteriors`] of a run whose likelihood is too small for a double.
    fn wide_posteriors(
        &mut self,
        lattice: &Lattice<'_>,
        mut each: impl FnMut(u32, u64),
    ) -> Option<i64> {
        let (n, all, first) = (lattice.len(), lattice.all, lattice.first as usize);
        let forward = &mut self.wide_forward;
        forward.clear();
        forward.resize(n + 1, Wide::ZERO);
        forward[0] = Wide::ONE;
        for place in 0..n {
            for at in lattice.at(place) {
                let end = place + all.lengths[at] as usize;
                forward[end] = forward[end] + forward[place] * Wide::of(self.weights[at - first]);
            }
        }
        let logarithm = forward[n].ln()?;
        let scale = forward[n].inverse();
        let backward = &mut self.wide_backward;
        backward.clear();
        backward.resize(n + 1, Wide::ZERO);
        backward[n] = Wide::ONE;
        for place in (0..n).rev() {
            for at in lattice.at(place) {
                let end = place + all.lengths[at] as usize;
                let after = Wide::of(self.weights[at - first]) * backward[end];
                backward[place] = backward[place] + after;
                let posterior = (forward[place] * scale * after).to_f64();
                let units = (posterior * UNITS + 0.5) as u64;
                if units > 0 {
                    each(all.ids[at], units);
                }
            }
        }
        Some(log_units(logarithm))
    }

    /// The best segmentation of a run, which has the largest sum of scores: the ids of its pieces, from
    /// the last to the first. Of equal ones the one whose last piece begins first, and so on.
    /// `whole`: whether a piece may be the whole run. None if there is no way.
    pub fn best(
        &mut self,
        lattice: &Lattice<'_>,
        scores: &[f64],
        whole: bool,
        mut each: impl FnMut(u32),
    ) -> Option<f64> {
        let (n, all) = (lattice.len(), lattice.all);
        self.best.clear();
        self.best.resize(n + 1, (f64::NEG_INFINITY, u32::MAX, 0));
        self.best[0].0 = 0.0;
        for place in 0..n {
            let before = self.best[place].0;
            if before == f64::NEG_INFINITY {
                continue;
            }
            for at in lattice.at(place) {
                let (id, length) = (all.ids[at], all.lengths[at]);
                let score = before + scores[id as usize];
                let end = &mut self.best[place + length as usize];
                if score > end.0 && (whole || length as usize != n) {
                    *end = (score, id, length);
                }
            }
        }
        let score = self.best[n].0;
        let mut end = n;
        while end > 0 && score > f64::NEG_INFINITY {
            let (_, id, length) = self.best[end];
            each(id);
            end -= length as usize;
        }
        (score > f64::NEG_INFINITY).then_some(score)
    }
}

fn log_units(logarithm: f64) -> i64 {
    (logarithm * LOG_UNITS).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unigram::model::UnigramModel;

    fn model(pieces: &[(&str, f64)]) -> UnigramModel {
        let mut pieces = pieces.to_vec();
        pieces.sort_by_key(|piece| piece.0);
        let scores = pieces.iter().map(|piece| piece.1.ln()).collect();
        UnigramModel::new(pieces.iter().map(|piece| piece.0.into()).collect(), scores).unwrap()
    }

    fn posteriors(model: &UnigramModel, run: &str) -> (Vec<f64>, f64) {
        let mut lattices = Lattices::default();
        lattices.push(run, model.finder().unwrap());
        let mut found = vec![0.0; model.len()];
        let lattice = lattices.lattice(0..run.chars().count());
        let log = Calculator::default()
            .posteriors(&lattice, &model.probabilities, |id, units| {
                found[id as usize] += units as f64 / UNITS;
            })
            .unwrap();
        (found, log as f64 / LOG_UNITS)
    }

    #[test]
    fn posteriors_are_those_of_all_ways_to_cut() {
        let model = model(&[("a", 0.2), ("ab", 0.3), ("b", 0.1), ("ba", 0.05)]);
        // aba: a b a .004, ab a .06, a ba .01
        let (found, log) = posteriors(&model, "aba");
        let sum = 0.004 + 0.06 + 0.01;
        assert!((log - f64::ln(sum)).abs() < 1e-11);
        let wanted = [(2.0 * 0.004 + 0.06 + 0.01) / sum, 0.06 / sum, 0.004 / sum, 0.01 / sum];
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
    }

    #[test]
    fn unlikely_runs_are_calculated_in_wider_numbers() {
        let model = model(&[("a", 1e-12), ("ab", 3e-20), ("b", 1e-9), ("aba", 2e-30)]);
        let (found, log) = posteriors(&model, "aba");
        let run = "aba".repeat(60); // 10^-1700
        let (many, many_log) = posteriors(&model, &run);
        assert!((many_log - 60.0 * log).abs() < 1e-8 * many_log.abs(), "{log} {many_log}");
        for (one, many) in found.iter().zip(many) {
            assert!((one * 60.0 - many).abs() < 1e-6, "{one} {many}");
        }
    }

    #[test]
    fn the_best_way_to_cut_and_the_best_other_one() {
        let model = model(&[("a", 0.2), ("ab", 0.3), ("b", 0.1), ("abb", 0.1)]);
        let mut lattices = Lattices::default();
        lattices.push("b", model.finder().unwrap());
        lattices.push("abb", model.finder().unwrap());
        let mut calculator = Calculator::default();
        let mut best = |whole| {
            let mut ids = Vec::new();
            let lattice = lattices.lattice(1..4);
            calculator.best(&lattice, &model.scores, whole, |id| ids.push(id)).unwrap();
            ids
        };
        assert_eq!(best(true), [2]); // a, ab, abb, b
        assert_eq!(best(false), [3, 1]);
        let numbers = [0, u32::MAX, u32::MAX, 1];
        lattices.renumber(&numbers);
        assert_eq!((&lattices.ids[..], &lattices.ends[..]), (&[1, 0, 1, 1][..], &[1, 2, 3, 4][..]));
    }
}
