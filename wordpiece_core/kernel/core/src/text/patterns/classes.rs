//! The classes of characters in the patterns: general categories, Han, and kana.
//!
//! The categories are from Unicode 16, as in Hugging Face tokenizers (Oniguruma) and in tiktoken.

use std::ops::{BitOr, RangeInclusive};
use std::sync::LazyLock;

use unicode_general_category::{GeneralCategory, get_general_category};

use crate::text::unicode::is_whitespace;

/// The classes that a character is in, with one bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Class(u8);

impl Class {
    pub(super) const NONE: Class = Class(0);
    /// Uppercase and titlecase letters, and those without case.
    pub(super) const UPPER: Class = Class(1);
    /// Lowercase letters, and those without case.
    pub(super) const LOWER: Class = Class(2);
    pub(super) const LETTER: Class = Class(1 | 2);
    pub(super) const MARK: Class = Class(4);
    pub(super) const NUMBER: Class = Class(8);
    pub(super) const SPACE: Class = Class(16);
    /// Punctuation and symbols.
    pub(super) const SIGN: Class = Class(32);
    /// Characters that DeepSeek's tokenizers split off: `一` to `龥`, and the blocks of Hiragana and Katakana.
    pub(super) const CJK: Class = Class(64);
    /// Characters of the script Han.
    pub(super) const HAN: Class = Class(128);

    /// Return true if it is in one of these classes.
    #[inline(always)]
    pub(super) fn is(self, classes: Class) -> bool {
        self.0 & classes.0 != 0
    }

    /// Return true if both are members of the same ones of these classes.
    #[inline(always)]
    pub(super) fn agrees(self, other: Class, classes: Class) -> bool {
        (self.0 ^ other.0) & classes.0 == 0
    }

    /// The class of a character.
    pub(super) fn of(c: char) -> Class {
        use GeneralCategory::*;
        let class = match get_general_category(c) {
            _ if is_whitespace(c) => Class::SPACE,
            UppercaseLetter | TitlecaseLetter => Class::UPPER,
            LowercaseLetter => Class::LOWER,
            ModifierLetter | OtherLetter => Class::LETTER,
            NonspacingMark | SpacingMark | EnclosingMark => Class::MARK,
            DecimalNumber | LetterNumber | OtherNumber => Class::NUMBER,
            ConnectorPunctuation | DashPunctuation | OpenPunctuation | ClosePunctuation
            | InitialPunctuation | FinalPunctuation | OtherPunctuation | MathSymbol
            | CurrencySymbol | ModifierSymbol | OtherSymbol => Class::SIGN,
            _ => Class::NONE,
        };
        let cjk = matches!(c, '一'..='龥' | '\u{3040}'..='\u{30FF}');
        let only = |class, is| if is { class } else { Class::NONE };
        class | only(Class::CJK, cjk) | only(Class::HAN, is_han(c))
    }
}

/// Return true for characters of the script Han in Unicode 16.
fn is_han(c: char) -> bool {
    matches!(c,
        '\u{2E80}'..='\u{2E99}' | '\u{2E9B}'..='\u{2EF3}' | '\u{2F00}'..='\u{2FD5}'
        | '\u{3005}' | '\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3038}'..='\u{303B}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FA6D}'
        | '\u{FA70}'..='\u{FAD9}' | '\u{16FE2}'..='\u{16FE3}' | '\u{16FF0}'..='\u{16FF1}'
        | '\u{20000}'..='\u{2A6DF}' | '\u{2A700}'..='\u{2B739}' | '\u{2B740}'..='\u{2B81D}'
        | '\u{2B820}'..='\u{2CEA1}' | '\u{2CEB0}'..='\u{2EBE0}' | '\u{2EBF0}'..='\u{2EE5D}'
        | '\u{2F800}'..='\u{2FA1D}' | '\u{30000}'..='\u{3134A}' | '\u{31350}'..='\u{323AF}')
}

impl BitOr for Class {
    type Output = Class;

    #[inline(always)]
    fn bitor(self, other: Class) -> Class {
        Class(self.0 | other.0)
    }
}

const CODES: usize = 0x11_0000;

/// The classes of all code points.
#[derive(Clone, Copy)]
pub(super) struct Classes(&'static [Class; CODES]);

/// The end of the planes that are classified. Later planes only have tags, variation selectors and private use.
const LAST_CODE: u32 = 0x3_FFFF;
const TAGS: RangeInclusive<u32> = 0xE_0000..=0xE_0FFF;

static CLASSES: LazyLock<Box<[Class; CODES]>> = LazyLock::new(|| {
    let mut all = vec![Class::NONE; CODES];
    for c in (0..=LAST_CODE).chain(TAGS).filter_map(char::from_u32) {
        all[c as usize] = Class::of(c);
    }
    all.try_into().expect("these are all code points")
});

impl Classes {
    /// The classes, which are computed when they are needed first.
    #[inline]
    pub(super) fn get() -> Classes {
        Classes(&CLASSES)
    }

    /// The class of the character at byte `at` of a text, and where it ends.
    #[inline(always)]
    pub(super) fn at(self, text: &[u8], at: usize) -> (Class, usize) {
        let (code, length) = decoded(&text[at..]);
        (self.0[code], at + length)
    }

    /// The class of the character at byte `at`, or none at the end of the text.
    #[inline(always)]
    pub(super) fn get_at(self, text: &[u8], at: usize) -> Option<Class> {
        (at < text.len()).then(|| self.at(text, at).0)
    }

    /// Return the end of the characters from byte `at` on whose class `is_part` accepts.
    #[inline(always)]
    pub(super) fn run_end(
        self,
        text: &[u8],
        mut at: usize,
        mut is_part: impl FnMut(Class) -> bool,
    ) -> usize {
        while at < text.len() {
            let (class, end) = self.at(text, at);
            if !is_part(class) {
                break;
            }
            at = end;
        }
        at
    }
}

/// The code point of the first character, and its length.
#[inline(always)]
fn decoded(text: &[u8]) -> (usize, usize) {
    let low = |byte: u8| (byte & 0x3F) as usize;
    match *text {
        [a @ ..0x80, ..] => (a as usize, 1),
        [a @ ..0xE0, b, ..] => ((a as usize & 0x1F) << 6 | low(b), 2),
        [a @ ..0xF0, b, c, ..] => ((a as usize & 0xF) << 12 | low(b) << 6 | low(c), 3),
        [a, b, c, d, ..] => ((a as usize & 7) << 18 | low(b) << 12 | low(c) << 6 | low(d), 4),
        _ => (0, text.len()), // never in a string
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_script::{Script, UnicodeScript};

    #[test]
    fn the_table_has_the_class_of_every_character() {
        let classes = Classes::get();
        for c in '\0'..=char::MAX {
            assert_eq!(classes.0[c as usize], Class::of(c), "{c:?}");
            // The scripts are from a later Unicode, which has more characters.
            let is_assigned = get_general_category(c) != GeneralCategory::Unassigned;
            assert_eq!(is_han(c), is_assigned && c.script() == Script::Han, "{c:?}");
        }
    }
}
