//! The characters that GPT-2 writes for bytes, by which `ByteLevel` of Hugging Face tokenizers has tokens
//! of bytes.

use std::sync::LazyLock;

use foldhash::HashMap;

/// The character that GPT-2 writes for a byte: the same one if it is visible, else one from U+0100 on.
#[inline]
pub(crate) fn byte_character(byte: u8) -> char {
    BYTE_CHARACTERS[byte as usize]
}

/// The byte that GPT-2 writes a character for, if there is one.
pub(crate) fn character_byte(c: char) -> Option<u8> {
    static BYTES: LazyLock<HashMap<char, u8>> =
        LazyLock::new(|| (0..=255).map(|byte| (byte_character(byte), byte)).collect());
    BYTES.get(&c).copied()
}

const BYTE_CHARACTERS: [char; 256] = {
    let mut characters = ['\0'; 256];
    let (mut byte, mut others) = (0, 0);
    while byte < 256 {
        let visible = matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
        let code = if visible { byte } else { 256 + others };
        others += !visible as u32;
        characters[byte as usize] = match char::from_u32(code) {
            Some(c) => c,
            None => panic!("every number below 0xD800 is a character"),
        };
        byte += 1;
    }
    characters
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_visible_characters_of_their_own() {
        let mut characters: Vec<char> = (0..=255).map(byte_character).collect();
        assert_eq!([b'a', b' ', b'\n', 0xAD].map(byte_character), ['a', 'Ġ', 'Ċ', 'Ń']);
        characters.sort();
        characters.dedup();
        assert_eq!(characters.len(), 256);
    }
}
