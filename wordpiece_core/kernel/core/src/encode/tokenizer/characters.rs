//! Byte offsets of a text to character offsets.

use crate::text::blocks::{BLOCK, below, masks_at};

/// The number of characters before each byte of a text.
pub(super) struct CharacterIndex {
    /// The blocks of 64 bytes, and one more; none if all characters are ASCII.
    blocks: Vec<Block>,
}

struct Block {
    /// The number of characters that begin before the block.
    before: u32,
    /// One bit for each byte that a character begins with.
    starts: u64,
}

impl CharacterIndex {
    /// Index a text of fewer than 2^31 bytes.
    pub(super) fn new(text: &str) -> Self {
        let mut index = CharacterIndex { blocks: Vec::new() };
        if text.is_ascii() {
            return index;
        }
        let (bytes, mut before) = (text.as_bytes(), 0);
        index.blocks.reserve_exact(bytes.len() / BLOCK + 1);
        for at in (0..bytes.len()).step_by(BLOCK) {
            let [continuing] = masks_at(bytes, at, |lanes| [lanes.in_range(0x80, 0xBF)]);
            let starts = !continuing;
            index.blocks.push(Block { before, starts });
            before += starts.count_ones();
        }
        if bytes.len().is_multiple_of(BLOCK) {
            index.blocks.push(Block { before, starts: 0 });
        }
        index
    }

    /// Return the number of characters that begin before byte `at`, from 0 to the length of the text.
    #[inline]
    pub(super) fn before(&self, at: usize) -> u32 {
        match self.blocks.get(at / BLOCK) {
            None => at as u32,
            Some(block) => block.before + (block.starts & below((at % BLOCK) as u32)).count_ones(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wordpiece_testing::Random;

    #[test]
    fn characters_before_each_byte_are_counted() {
        let mut random = Random::new(71);
        for length in 0..if cfg!(debug_assertions) { 300 } else { 3_000 } {
            let kinds = 1 + random.below(4);
            let text: String = (0..length % 301)
                .map(|_| ["a", "é", "日", "\u{1F600}"][random.below(kinds)])
                .collect();
            let index = CharacterIndex::new(&text);
            for at in 0..=text.len() {
                let expected = text.char_indices().filter(|&(start, _)| start < at).count();
                assert_eq!(index.before(at), expected as u32, "{at} of {text:?}");
            }
        }
    }
}
