//! Random numbers for drawing how words are tokenized. They follow from a seed and a text alone, so that a
//! row is tokenized in the same way on every machine, whatever other rows there are.

use crate::base::error::Result;
use crate::base::hash::KeyedHash;

/// How words are tokenized at random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// What is drawn.
    pub kind: SamplingKind,
    /// Another seed gives another sample.
    pub seed: u64,
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SamplingKind {
    /// One of all the segmentations of a word by a unigram model, each with a probability in proportion to its
    /// own to this power, 0 at least.
    Alpha(f64),
    /// Which merges of BPE are left out, each with this probability.
    Dropout(f64),
}

/// A row of random numbers (SplitMix64): of state *s*, the next state is *s* + 0x9E3779B97F4A7C15, and
/// the number is that state, mixed.
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The numbers of a text. The first state is its BLAKE2b hash, of 8 bytes, little-endian; the key
    /// is the seed, as 8 bytes, the lowest first.
    pub fn of(seed: u64, text: &[u8]) -> Self {
        let hash: Result<_> = KeyedHash::new(&seed.to_le_bytes());
        SplitMix64(hash.expect("a key may have 8 bytes").of(text))
    }

    /// A number from 0 to 2^64 - 1.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// A number from 0 up to, but not, 1: a multiple of 2^-53.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_from_seed_and_text() {
        assert_eq!([0; 3].map(|_| SplitMix64(0).next())[0], 0xE220_A839_7B1D_CDAF);
        let draw = |seed, text: &str| SplitMix64::of(seed, text.as_bytes()).unit();
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        assert!((0.0..1.0).contains(&draw(1, "a")));
    }
}
