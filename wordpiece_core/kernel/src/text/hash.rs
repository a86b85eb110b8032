//! Keyed hashes of 64 bits: BLAKE2b with a digest of 8 bytes, read as a little-endian number. In
//! Python: `int.from_bytes(hashlib.blake2b(data, digest_size=8, key=key).digest(), "little")`.

use blake2b_simd::{KEYBYTES, Params};

use crate::error::{Error, Result};

/// A hash function, by its key.
///
/// # Examples
///
/// ```
/// use _kernel::text::hash::KeyedHash;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_more_than_64_bytes_is_refused() {
        assert!(KeyedHash::new(&[1; 64]).is_ok());
        assert!(KeyedHash::new(&[1; 65]).is_err());
    }
}
