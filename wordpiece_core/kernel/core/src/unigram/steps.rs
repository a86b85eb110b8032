//! Steps that use the sums over all runs: the first model, the M step, and pruning.

use std::sync::Arc;

use super::lattice::{Calculator, Lattices, UNIT_BITS};
use super::model::UnigramModel;
use crate::base::error::{Error, Result};
use crate::base::threads::in_threads;

/// A piece with a smaller expected count is dropped, as in SentencePiece.
const LEAST_EXPECTED: u128 = 1 << (UNIT_BITS - 1);
/// The number of pieces whose losses are found together.
const CHUNK: usize = 1 << 12;

/// The model that training begins with: characters by how often they occur, seeds by how many
/// characters they cover.
///
/// # Errors
///
/// Returns [`Error::Data`] if a piece is there twice.
pub fn first_model(mut weighted: Vec<(Arc<str>, u128)>) -> Result<UnigramModel> {
    weighted.sort_unstable();
    let sum: u128 = weighted.iter().map(|(_, weight)| (*weight).max(1)).sum();
    let log_sum = libm::log(sum as f64);
    let score = |weight: u128| libm::log(weight.max(1) as f64) - log_sum;
    let (pieces, scores) = weighted.into_iter().map(|(piece, w)| (piece, score(w))).unzip();
    UnigramModel::new(pieces, scores)
}

impl UnigramModel {
    /// The M step, with a prior that makes few pieces enough ("Bayesian EM", Liang and Klein 2007,
    /// as in SentencePiece): a score is digamma(c) - digamma(sum of all c), c being the expected
    /// count. Pieces with an expected count below 0.5 are dropped, except single characters.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if there is not one sum for each piece.
    pub fn maximized(&self, expected: &[u128]) -> Result<UnigramModel> {
        self.check(expected)?;
        let is_kept = |id: &usize| self.lengths[*id] == 1 || expected[*id] >= LEAST_EXPECTED;
        let kept: Vec<usize> = (0..self.len()).filter(is_kept).collect();
        let count = |id: usize| expected[id].max(LEAST_EXPECTED);
        let sum: u128 = kept.iter().map(|&id| count(id)).sum();
        let log_sum = digamma(from_units(sum));
        let scores = kept.iter().map(|&id| digamma(from_units(count(id))) - log_sum).collect();
        self.subset(&kept, scores)
    }

    /// Drops the pieces without which the likelihood loses least, so that `size` are left, or as many
    /// as have to be kept. `counts`: how often pieces occur in the best segmentations of all runs.
    ///
    /// Single characters are kept. A piece that does not occur, or that is segmented itself better than it
    /// is kept whole, is dropped. For the others, the likelihood is computed from these
    /// counts, and a piece that is left out is replaced by the best other segmentation of it.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if there is not one count for each piece, or a character is missing.
    pub fn pruned(&self, counts: &[u128], size: usize, threads: usize) -> Result<UnigramModel> {
        self.check(counts)?;
        let finder = self.finder()?;
        let starts: Vec<usize> = (0..self.len()).step_by(CHUNK).collect();
        let total: u128 = counts.iter().sum();
        let (total, log_total) = (total as f64, libm::log(total as f64));
        type Work = (Vec<(f64, usize)>, Lattices, Calculator, Vec<u32>);
        let work = |(losses, lattices, calculator, others): &mut Work, start: &usize| {
            for id in *start..(start + CHUNK).min(self.len()) {
                if self.lengths[id] == 1 || counts[id] == 0 {
                    continue;
                }
                lattices.clear();
                lattices.push(&self.pieces[id], finder);
                let lattice = lattices.lattice(0..self.lengths[id] as usize);
                others.clear();
                let other = calculator.best(&lattice, &self.scores, false, |id| others.push(id));
                let missing = || Error::data("a character of the pieces is not among them");
                if other.ok_or_else(missing)? > self.scores[id] {
                    continue;
                }
                let count = counts[id] as f64;
                let log_after = libm::log(total + count * (others.len() - 1) as f64);
                let others = others
                    .iter()
                    .map(|&other| libm::log(counts[other as usize] as f64 + count) - log_after);
                let loss = count * (libm::log(count) - log_total - others.sum::<f64>());
                losses.push((loss, id));
            }
            Ok(())
        };
        let found = in_threads(&starts, threads, Work::default, work)?;
        let mut losses: Vec<_> = found.into_iter().flat_map(|state| state.0).collect();
        losses.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut kept: Vec<usize> = (0..self.len()).filter(|&id| self.lengths[id] == 1).collect();
        let room = size.saturating_sub(kept.len());
        kept.extend(losses.iter().take(room).map(|&(_, id)| id));
        kept.sort_unstable();
        let scores = kept.iter().map(|&id| self.scores[id]).collect();
        self.subset(&kept, scores)
    }

    fn check(&self, sums: &[u128]) -> Result<()> {
        match sums.len() == self.len() {
            true => Ok(()),
            false => Err(Error::data(format!("{} sums for {} pieces", sums.len(), self.len()))),
        }
    }
}

/// An expected count, of units of 2^-52.
pub(crate) fn from_units(units: u128) -> f64 {
    units as f64 / (1u64 << UNIT_BITS) as f64
}

/// The derivative of the logarithm of the gamma function: by its recurrence up to 7, then by its
/// asymptotic series, which has an error below 10^-11 there.
pub fn digamma(mut x: f64) -> f64 {
    let mut result = 0.0;
    while x < 7.0 {
        result -= 1.0 / x;
        x += 1.0;
    }
    x -= 0.5;
    let inverse = 1.0 / (x * x);
    let series = [127.0 / 30720.0, 31.0 / 8064.0, 7.0 / 960.0, 1.0 / 24.0];
    let sum = series.iter().fold(0.0, |sum, term| (term - sum) * inverse);
    result + libm::log(x) + sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digamma_is_accurate() {
        let euler = 0.577_215_664_901_532_9;
        assert!((digamma(1.0) + euler).abs() < 1e-9);
        assert!((digamma(0.5) + euler + 2.0 * std::f64::consts::LN_2).abs() < 1e-9);
        assert!((digamma(1e9) - 1e9f64.ln()).abs() < 1e-9);
    }
}
