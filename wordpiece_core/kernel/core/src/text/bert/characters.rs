//! The result for each character by all rules of BERT's normalizer and pre-tokenizer.

use unicode_categories::UnicodeCategories;
use unicode_normalization_alignments::char::{canonical_combining_class, decompose_canonical};

use super::TextOptions;
use crate::text::unicode::{is_punctuation, is_whitespace, lowercase};

/// The role of one character after normalization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Part of a word.
    Word(char),
    /// A combining mark that is kept: part of a word whose marks must be put in order.
    Mark,
    /// A word by itself: punctuation, or a CJK character.
    Alone(char),
    /// A space, which separates.
    Space,
    /// Nothing is left of it.
    Dropped,
}

/// The result for one character of the raw text, packed into one number: the kind in the upper bits,
/// and a value in the lower ones.
#[derive(Clone, Copy)]
pub(super) struct CharEntry(u32);

const KIND_SHIFT: u32 = 24;
const VALUE_MASK: u32 = (1 << KIND_SHIFT) - 1;
const WORD: u32 = 0;
/// A combining mark is kept, so that the whole segment has to be put in order.
pub(super) const MARK: u32 = 1;
pub(super) const DROPPED: u32 = 2;
/// Several characters, all part of a word; the value is an index into the page's `expansions`.
pub(super) const EXPANDED: u32 = 3;
/// Kinds from here on end a segment.
pub(super) const SPACE: u32 = 4;
pub(super) const ALONE: u32 = 5;

impl CharEntry {
    pub(super) fn new(kind: u32, value: u32) -> Self {
        CharEntry(kind << KIND_SHIFT | value)
    }

    pub(super) fn of(fate: Fate) -> Self {
        match fate {
            Fate::Word(c) => CharEntry::new(WORD, c as u32),
            Fate::Mark => CharEntry::new(MARK, 0),
            Fate::Alone(c) => CharEntry::new(ALONE, c as u32),
            Fate::Space => CharEntry::new(SPACE, 0),
            Fate::Dropped => CharEntry::new(DROPPED, 0),
        }
    }

    #[inline]
    pub(super) fn kind(self) -> u32 {
        self.0 >> KIND_SHIFT
    }

    #[inline]
    pub(super) fn value(self) -> u32 {
        self.0 & VALUE_MASK
    }

    #[inline]
    pub(super) fn separates(self) -> bool {
        self.kind() >= SPACE
    }

    #[inline]
    pub(super) fn char(self) -> char {
        char::from_u32(self.value()).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// The fates of the characters that one character of the text becomes. These are all rules of the
/// normalizer and the pre-tokenizer.
pub(super) fn fates(c: char, options: &TextOptions) -> Vec<Fate> {
    let mut cleaned = c;
    if options.clean_text {
        if is_removed(c) {
            return vec![Fate::Dropped];
        }
        if is_whitespace(c) {
            cleaned = ' ';
        }
    }
    let mut result = Vec::new();
    if options.strip_accents {
        decompose_canonical(cleaned, |part| {
            if !part.is_mark_nonspacing() {
                let mark = canonical_combining_class(part) != 0;
                result.extend(lowered(part, options).map(|l| fate(l, mark, options)));
            }
        });
    } else {
        result.extend(lowered(cleaned, options).map(|l| fate(l, false, options)));
    }
    if options.handle_chinese_chars && is_chinese(c) {
        for fate in &mut result {
            if let Fate::Word(c) = *fate {
                *fate = Fate::Alone(c);
            }
        }
    }
    if result.is_empty() {
        result.push(Fate::Dropped);
    }
    result
}

fn fate(c: char, mark: bool, options: &TextOptions) -> Fate {
    if is_whitespace(c) {
        Fate::Space
    } else if options.split_punctuation && is_punctuation(c) {
        Fate::Alone(c)
    } else if mark {
        Fate::Mark
    } else {
        Fate::Word(c)
    }
}

fn lowered(c: char, options: &TextOptions) -> impl Iterator<Item = char> {
    let lower = options.lowercase.then(|| lowercase(c));
    let kept = (!options.lowercase).then_some(c);
    lower.into_iter().flatten().chain(kept)
}

/// Implement `each_normalized` for a segment with marks that are kept although accents are stripped. All marks in
/// a row are sorted by their classes first (Unicode's canonical order). As in Hugging Face tokenizers, the
/// indices are not sorted with the marks, so the second mark has the index of the second character.
pub(super) fn each_with_marks(raw: &str, options: &TextOptions, mut each: impl FnMut(char, usize)) {
    let removed = |c| options.clean_text && is_removed(c);
    let mut indices = raw.chars().enumerate().filter(|&(_, c)| !removed(c)).map(|(i, _)| i);
    // For each part of a decomposed character: its class, the part, and whether it is the first.
    let mut parts = Vec::new();
    for c in raw.chars().filter(|&c| !removed(c)) {
        let start = parts.len();
        decompose_canonical(c, |part| {
            let first = parts.len() == start;
            parts.push((canonical_combining_class(part), part, first));
        });
    }
    for run in parts.chunk_by_mut(|a, b| a.0 != 0 && b.0 != 0) {
        run.sort_by_key(|&(class, ..)| class);
    }
    let mut index = 0;
    for (_, part, first) in parts {
        if first {
            index = indices.next().unwrap_or(index);
        }
        if !part.is_mark_nonspacing() {
            lowered(part, options).for_each(|c| each(c, index));
        }
    }
}

/// Return true if `clean_text` removes this character.
pub(crate) fn is_removed(c: char) -> bool {
    c == '\0' || c == char::REPLACEMENT_CHARACTER || is_control(c)
}

/// Return true if the character has category Cc, Cf or Co, and is not one of the three that count as
/// spaces.
fn is_control(c: char) -> bool {
    !matches!(c, '\t' | '\n' | '\r') && c.is_other()
}

/// Return true if the character is in the ranges that Hugging Face tokenizers put spaces around. (They do
/// not include 2B820 to 2B91F.)
pub(crate) fn is_chinese(c: char) -> bool {
    matches!(c as u32,
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B73F
        | 0x2B740..=0x2B81F | 0x2B920..=0x2CEAF | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}
