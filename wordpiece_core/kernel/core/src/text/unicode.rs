//! Properties of characters in Unicode 17, as in Hugging Face tokenizers 0.23, independent of the version of
//! the toolchain.

use icu_casemap::CaseMapper;
use unicode_categories::UnicodeCategories;

/// Return true if a character has the property White_Space.
#[inline]
pub(crate) fn is_whitespace(c: char) -> bool {
    matches!(
        c,
        '\t'..='\r' | ' ' | '\u{85}' | '\u{A0}' | '\u{1680}' | '\u{2000}'..='\u{200A}'
            | '\u{2028}' | '\u{2029}' | '\u{202F}' | '\u{205F}' | '\u{3000}'
    )
}

/// Return true if a character is ASCII punctuation, or in a category of punctuation.
#[inline]
pub(crate) fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() || UnicodeCategories::is_punctuation(c)
}

/// Return the character of a string of one character; None for other strings.
pub(crate) fn only_char(string: &str) -> Option<char> {
    string.chars().next().filter(|c| c.len_utf8() == string.len())
}

/// The lowercase mapping of a character by itself, whatever is around it.
pub fn lowercase(c: char) -> impl Iterator<Item = char> {
    // The only character whose full mapping differs from its simple one.
    let dot_above = (c == '\u{130}').then_some('\u{307}');
    std::iter::once(CaseMapper::new().simple_lowercase(c)).chain(dot_above)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_those_of_unicode_17() {
        // The first four got their lowercase letters in Unicode 16 and 17.
        let pairs = [('\u{A7CB}', '\u{264}'), ('\u{A7DA}', '\u{A7DB}'), ('\u{A7CE}', '\u{A7CF}')];
        for (c, lower) in [('\u{10D50}', '\u{10D70}'), ('\u{16EA0}', '\u{16EBB}'), ('A', 'a')]
            .into_iter()
            .chain(pairs)
        {
            assert!(lowercase(c).eq([lower]), "{c:?}");
        }
        assert!(lowercase('İ').eq("i\u{307}".chars()));
        assert_eq!(('\0'..=char::MAX).filter(|&c| is_whitespace(c)).count(), 25);
        if char::UNICODE_VERSION.0 == 17 {
            for c in '\0'..=char::MAX {
                assert!(lowercase(c).eq(c.to_lowercase()), "{c:?}");
                assert_eq!(is_whitespace(c), c.is_whitespace(), "{c:?}");
            }
        }
    }
}
