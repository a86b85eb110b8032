//! Sums over runs: expected counts of pieces, and counts in the best segmentations.

use super::lattice::{Calculator, Lattice};
use super::model::UnigramModel;
use crate::base::error::{Error, Result};

/// The values that are summed over runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summand {
    /// The posterior probabilities of pieces, in units of 2^-52; and the logarithm of the
    /// likelihood, in units of 2^-40.
    Expected,
    /// The counts of pieces in the best segmentations of runs.
    Best,
}

/// Sums by piece, and the logarithm of the likelihood.
pub struct Sums {
    /// By the id of the piece.
    pub by_piece: Vec<u128>,
    /// In units of 2^-40.
    pub log_likelihood: i128,
}

impl Sums {
    /// Sums of nothing.
    pub fn new(pieces: usize) -> Self {
        Sums { by_piece: vec![0; pieces], log_likelihood: 0 }
    }

    /// Adds what a run that occurs `count` times gives.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if it has no segmentation into pieces.
    pub fn add_run(
        &mut self,
        what: Summand,
        lattice: &Lattice<'_>,
        count: u64,
        model: &UnigramModel,
        calculator: &mut Calculator,
    ) -> Result<()> {
        let sums = &mut self.by_piece;
        let done = match what {
            // No sum can be too large: together they are at most the characters of all runs, which
            // are fewer than 2^63, times 2^52.
            Summand::Expected => calculator
                .posteriors(lattice, &model.probabilities, |id, units| {
                    sums[id as usize] += units as u128 * count as u128;
                })
                .map(|log| self.log_likelihood += log as i128 * count as i128),
            Summand::Best => calculator
                .best(lattice, &model.scores, true, |id| sums[id as usize] += count as u128)
                .map(|_| ()),
        };
        done.ok_or_else(|| Error::data("a character of the words is not among the pieces"))
    }

    /// Adds other sums.
    pub fn add(&mut self, other: &Sums) {
        for (sum, more) in self.by_piece.iter_mut().zip(&other.by_piece) {
            *sum += more;
        }
        self.log_likelihood += other.log_likelihood;
    }
}
