//! Keyed hashes of 64 bits: BLAKE2b with a digest of 8 bytes, read as a little-endian number. In
//! Python: `int.from_bytes(hashlib.blake2b(data, digest_size=8, key=key).digest(), "little")`.
//! And the seeds of the hash tables of this crate.

use std::hash::BuildHasher;

use blake2b_simd::{KEYBYTES, Params};
use foldhash::quality::RandomState;

use crate::base::error::{Error, Result};

/// A hash function, by its key.
///
/// # Examples
///
/// ```
/// use wordpiece_core::internals::KeyedHash;
///
/// assert_eq!(KeyedHash::new(b"key").unwrap().of(b"text"), 0x171c_c1dd_54ef_5c16);
/// ```
pub struct KeyedHash(Params);

impl KeyedHash {
    /// The function of a key.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Option`] if the key is longer than 64 bytes.
    pub fn new(key: &[u8]) -> Result<Self> {
        if key.len() > KEYBYTES {
            return Err(Error::option(format!("a key of {} bytes is too long", key.len())));
        }
        let mut params = Params::new();
        params.hash_length(8).key(key);
        Ok(KeyedHash(params))
    }

    /// The hash of some bytes.
    pub fn of(&self, bytes: &[u8]) -> u64 {
        let hash = self.0.hash(bytes);
        let digest = hash.as_bytes().first_chunk().expect("a digest has the length asked for");
        u64::from_le_bytes(*digest)
    }
}

/// Two numbers that a hash table mixes with its keys. They are random in each process, so that nobody
/// can write texts or tokenizer files whose keys collide.
#[derive(Clone, Copy)]
pub(crate) struct Seed([u64; 2]);

impl Seed {
    /// A new seed.
    pub(crate) fn random() -> Self {
        let state = RandomState::default();
        Seed([0u64, 1].map(|number| state.hash_one(number)))
    }

    /// The hash of a key of two numbers: one multiplication, whose product is folded onto itself.
    #[inline(always)]
    pub(crate) fn hash(self, low: u64, high: u64) -> u64 {
        let product = (low ^ self.0[0]) as u128 * (high ^ self.0[1]) as u128;
        (product as u64) ^ (product >> 64) as u64
    }
}

/// Return a hash of a number, which is the same on all workers of a job: the number times 2^64 divided by the golden
/// ratio. Its upper bits depend on all bits of the number.
#[inline(always)]
pub fn number_hash(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Return the partition of a key with this hash, from 0 to `partitions - 1`, by the upper bits of the hash. The
/// hash must be the same on all workers of a job.
pub fn partition(hash: u64, partitions: usize) -> usize {
    (hash >> 32) as usize % partitions.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_more_than_64_bytes_is_refused() {
        assert!(KeyedHash::new(&[1; 64]).is_ok());
        assert!(KeyedHash::new(&[1; 65]).is_err());
    }
}
