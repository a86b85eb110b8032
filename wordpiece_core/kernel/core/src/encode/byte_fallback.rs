//! Byte fallback: the tokens `<0xNN>` for the bytes of unknown characters.

use foldhash::HashMap;

use crate::base::trie::NONE;

/// The tokens `<0xNN>` of a vocabulary.
pub struct ByteTokens([u32; 256]);

impl ByteTokens {
    /// Find the tokens of bytes. `ids`: the ids of all tokens.
    pub fn new(ids: &HashMap<&str, u32>) -> Self {
        let id = |byte: usize| ids.get(format!("<0x{byte:02X}>").as_str()).copied();
        ByteTokens(std::array::from_fn(|byte| id(byte).unwrap_or(NONE)))
    }

    /// Return the ids of the tokens that exist.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied().filter(|&id| id != NONE)
    }

    /// The ids of the byte tokens; None if one of them is missing.
    pub fn of(&self, bytes: &[u8]) -> Option<impl Iterator<Item = u32>> {
        let ids = bytes.iter().map(|&byte| self.0[byte as usize]);
        (!ids.clone().any(|id| id == NONE)).then_some(ids)
    }
}
