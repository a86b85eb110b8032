//! What every character is to the patterns: its general category, and whether it is Han or kana.
//!
//! The categories are those of Unicode 16, as in Hugging Face tokenizers (Oniguruma) and in tiktoken.

use std::ops::BitOr;
use std::sync::LazyLock;

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_script::{Script, UnicodeScript};

use crate::text::unicode::is_whitespace;

/// The classes that a character is in, with one bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// What DeepSeek's tokenizers split off: `一` to `龥`, and the blocks of Hiragana and Katakana.
    pub(super) const CJK: Class = Class(64);
    /// Characters of the script Han.
    pub(super) const HAN: Class = Class(128);

    /// Whether it is in one of these classes.
    #[inline(always)]
    pub(super) fn is(self, classes: Class) -> bool {
        self.0 & classes.0 != 0
    }

    /// Whether both are in the same ones of these classes.
    #[inline(always)]
    pub(super) fn agrees(self, other: Class, classes: Class) -> bool {
        (self.0 ^ other.0) & classes.0 == 0
    }

    /// The class of a character.
    pub(super) fn of(c: char) -> Class {
        use GeneralCategory::*;
        let category = get_general_category(c);
        let class = match category {
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
        // The scripts are those of a later Unicode, which has more characters.
        let han = c.script() == Script::Han && category != Unassigned;
        let only = |class, is| if is { class } else { Class::NONE };
        class | only(Class::CJK, cjk) | only(Class::HAN, han)
    }
}

impl BitOr for Class {
    type Output = Class;

    #[inline(always)]
    fn bitor(self, other: Class) -> Class {
        Class(self.0 | other.0)
    }
}

/// The classes of all characters.
pub(super) struct Classes {
    /// Of every code point.
    all: Box<[Class]>,
    /// Of the characters that begin with a byte, if they are the same for all of them.
    leads: [Option<Class>; 256],
}

static CLASSES: LazyLock<Classes> = LazyLock::new(|| {
    let class = |code| char::from_u32(code).map_or(Class::NONE, Class::of);
    let all: Box<[Class]> = (0..0x11_0000).map(class).collect();
    let leads = std::array::from_fn(|lead| {
        let codes = match lead {
            0..=0x7F => &all[lead..][..1],
            0xC2..=0xDF => &all[(lead & 0x1F) << 6..][..1 << 6],
            0xE1..=0xEF => &all[(lead & 0xF) << 12..][..1 << 12],
            _ => return None,
        };
        codes.iter().all(|class| *class == codes[0]).then_some(codes[0])
    });
    Classes { all, leads }
});

impl Classes {
    /// The classes, which are computed when they are needed first.
    #[inline]
    pub(super) fn get() -> &'static Classes {
        &CLASSES
    }

    /// The class of the character at byte `at` of a text, and where it ends.
    #[inline(always)]
    pub(super) fn at(&self, text: &[u8], at: usize) -> (Class, usize) {
        let lead = text[at];
        let end = at + length(lead);
        if let Some(class) = self.leads[lead as usize] {
            return (class, end);
        }
        (self.all[code(&text[at..end])], end)
    }

    /// The class of the character at byte `at`, or none at the end of the text.
    #[inline(always)]
    pub(super) fn get_at(&self, text: &[u8], at: usize) -> Option<Class> {
        (at < text.len()).then(|| self.at(text, at).0)
    }

    /// Where the characters end that begin at byte `at` and whose class is one that `is_part` takes.
    #[inline(always)]
    pub(super) fn run_end(
        &self,
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

/// How many bytes a character has that begins with this byte.
#[inline(always)]
fn length(lead: u8) -> usize {
    match lead {
        0..0x80 => 1,
        0x80..0xE0 => 2,
        0xE0..0xF0 => 3,
        _ => 4,
    }
}

/// The code point of a character of several bytes.
#[inline(always)]
fn code(character: &[u8]) -> usize {
    let low = |index: usize| (character[index] & 0x3F) as usize;
    let lead = character[0] as usize;
    match character.len() {
        2 => (lead & 0x1F) << 6 | low(1),
        3 => (lead & 0xF) << 12 | low(1) << 6 | low(2),
        4 => (lead & 0x7) << 18 | low(1) << 12 | low(2) << 6 | low(3),
        _ => lead,
    }
}
