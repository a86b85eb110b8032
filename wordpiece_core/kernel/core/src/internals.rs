//! Items for the Python package in addition to the public interface: the steps of training on workers, and readers of
//! arrays. Any release may change them.

pub use crate::base::error::note_panic;
pub use crate::base::hash::KeyedHash;
pub use crate::base::sums;
pub use crate::count::word_lists;
pub use crate::encode::measure::{Measurer, PlacedToken, measure};
pub use crate::encode::pack::Id;
pub use crate::encode::rows::too_many_ids;
pub use crate::text::csv_rows::CsvRows;
pub use crate::text::{unicode, utf8};

#[cfg(feature = "train")]
pub use crate::{
    train::{
        longest::{LongestMatch, Losses, Uses},
        run_sizes::{RunSizes, SampledRun},
        runs::{PairLevels, Runs},
        splits::{
            PairCount, PairCounter, PairCounts, Place, SymbolCounts, add_pair, count_symbols,
            pair_partition,
        },
        tokens::no_token,
        trainer::Candidate,
    },
    unigram::{
        lattice::{Calculator, Lattices},
        runs::{RunCounts, add_run},
        seeds,
    },
};
