//! Normalizers, under the names that Hugging Face tokenizers gives them.

use serde::Deserialize;
use unicode_categories::UnicodeCategories;
use unicode_normalization_alignments::UnicodeNormalization;
use unicode_normalization_alignments::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use super::aligned::{AlignedText, Writer};
use super::matches::{Matcher, PatternText};
use super::quick_check::{self, Form};
use super::sentencepiece::{SentencePiece, SentencePieceJson};
use crate::base::error::Result;
use crate::text::bert::{is_chinese, is_removed};
use crate::text::byte_level::byte_character;
use crate::text::charsmap::CharsMap;
use crate::text::unicode::{is_whitespace, lowercase};

/// A change of a text before it is split.
#[derive(Debug)]
pub enum Normalizer {
    /// BERT's.
    Bert(BertNormalizer),
    /// A Unicode normalization form.
    Form(Form),
    /// Every character in lower case.
    Lowercase,
    /// Without combining marks.
    StripAccents,
    /// Without white space at its ends.
    Strip {
        /// At the beginning.
        left: bool,
        /// At the end.
        right: bool,
    },
    /// Without control characters, and with simple spaces, as in NMT.
    Nmt,
    /// With the content in place of each match.
    Replace(Matcher, String),
    /// With a string before it, if it is not empty.
    Prepend(String),
    /// SentencePiece's compiled map.
    Precompiled(CharsMap),
    /// All that SentencePiece does before its models.
    SentencePiece(SentencePiece),
    /// GPT-2's characters for bytes.
    ByteLevel,
    /// One after the other.
    Sequence(Vec<Normalizer>),
}

/// The options of BERT's normalizer.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct BertNormalizer {
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: Option<bool>,
    lowercase: bool,
}

/// A normalizer as a `tokenizer.json` has it.
#[derive(Deserialize)]
#[serde(tag = "type")]
pub enum NormalizerJson {
    BertNormalizer(BertNormalizer),
    #[serde(rename = "NFC")]
    Nfc,
    #[serde(rename = "NFD")]
    Nfd,
    #[serde(rename = "NFKC")]
    Nfkc,
    #[serde(rename = "NFKD")]
    Nfkd,
    Lowercase,
    StripAccents,
    Strip {
        strip_left: bool,
        strip_right: bool,
    },
    Nmt,
    Replace {
        pattern: PatternText,
        content: String,
    },
    Prepend {
        prepend: String,
    },
    Precompiled {
        precompiled_charsmap: String,
    },
    SentencePiece(SentencePieceJson),
    ByteLevel,
    Sequence {
        normalizers: Vec<NormalizerJson>,
    },
}

impl NormalizerJson {
    /// The normalizer.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] for a pattern or a map that cannot be read.
    pub fn build(self) -> Result<Normalizer> {
        Ok(match self {
            NormalizerJson::BertNormalizer(options) => Normalizer::Bert(options),
            NormalizerJson::Nfc => Normalizer::Form(Form::Nfc),
            NormalizerJson::Nfd => Normalizer::Form(Form::Nfd),
            NormalizerJson::Nfkc => Normalizer::Form(Form::Nfkc),
            NormalizerJson::Nfkd => Normalizer::Form(Form::Nfkd),
            NormalizerJson::Lowercase => Normalizer::Lowercase,
            NormalizerJson::StripAccents => Normalizer::StripAccents,
            NormalizerJson::Strip { strip_left, strip_right } => {
                Normalizer::Strip { left: strip_left, right: strip_right }
            }
            NormalizerJson::Nmt => Normalizer::Nmt,
            NormalizerJson::Replace { pattern, content } => {
                Normalizer::Replace(pattern.build()?, content)
            }
            NormalizerJson::Prepend { prepend } => Normalizer::Prepend(prepend),
            NormalizerJson::Precompiled { precompiled_charsmap } => {
                Normalizer::Precompiled(CharsMap::of_base64(&precompiled_charsmap)?)
            }
            NormalizerJson::SentencePiece(options) => {
                Normalizer::SentencePiece(SentencePiece::new(options)?)
            }
            NormalizerJson::ByteLevel => Normalizer::ByteLevel,
            NormalizerJson::Sequence { normalizers } => Normalizer::Sequence(
                normalizers.into_iter().map(NormalizerJson::build).collect::<Result<_>>()?,
            ),
        })
    }
}

impl Normalizer {
    /// Return true if a text is known to stay unchanged. The check is quick.
    pub fn leaves(&self, text: &str) -> bool {
        match self {
            Normalizer::Form(form) => quick_check::is_normalized(text, *form),
            Normalizer::Sequence(parts) => parts.iter().all(|part| part.leaves(text)),
            Normalizer::Strip { left, right } => {
                let at_ends = *left && text.starts_with(is_whitespace)
                    || *right && text.ends_with(is_whitespace);
                !at_ends
            }
            Normalizer::Replace(matcher, _) => !matcher.is_found_in(text),
            Normalizer::Precompiled(map) => map.leaves(text),
            _ => text.is_empty(),
        }
    }

    /// Append its parts, with sequences replaced by their parts.
    pub(crate) fn add_parts<'a>(&'a self, parts: &mut Vec<&'a Normalizer>) {
        match self {
            Normalizer::Sequence(all) => all.iter().for_each(|part| part.add_parts(parts)),
            part => parts.push(part),
        }
    }

    /// Normalize a segment of a text as a part of that text (see
    /// [`SpaceSplitter`](super::spaces::SpaceSplitter)). `continues`: true for segments after the first.
    pub(crate) fn normalize_segment(&self, text: &mut AlignedText, continues: bool) {
        match self {
            Normalizer::Sequence(parts) => {
                parts.iter().for_each(|part| part.normalize_segment(text, continues));
            }
            Normalizer::SentencePiece(rules) => rules.normalize(text, continues),
            // Spaces at its end are at the end of the text, or before a space that is kept.
            Normalizer::Strip { .. } => text.trim_end(' '),
            other => other.normalize(text),
        }
    }

    /// Normalizes a text.
    pub fn normalize(&self, text: &mut AlignedText) {
        match self {
            Normalizer::Bert(options) => options.normalize(text),
            Normalizer::Form(form) => {
                if !quick_check::is_normalized(text.text(), *form) {
                    text.rewrite(|old, new| to_form(old, *form, new));
                }
            }
            Normalizer::Lowercase => text.rewrite(to_lowercase),
            Normalizer::StripAccents => filter(text, |c| !is_combining_mark(c)),
            Normalizer::Strip { left, right } => strip(text, *left, *right),
            Normalizer::Nmt => {
                filter(text, |c| !is_removed_by_nmt(c));
                map(text, |c| if is_space_of_nmt(c) { ' ' } else { c });
            }
            Normalizer::Replace(matcher, content) => replace(text, matcher, content),
            Normalizer::Prepend(prefix) => prepend(text, prefix),
            Normalizer::Precompiled(charsmap) => precompiled(text, charsmap),
            Normalizer::SentencePiece(rules) => rules.normalize(text, false),
            Normalizer::ByteLevel => to_byte_characters(text),
            Normalizer::Sequence(parts) => parts.iter().for_each(|part| part.normalize(text)),
        }
    }
}

impl BertNormalizer {
    fn normalize(&self, text: &mut AlignedText) {
        if self.clean_text {
            filter(text, |c| !is_removed(c));
            map(text, |c| if is_whitespace(c) { ' ' } else { c });
        }
        if self.handle_chinese_chars {
            text.rewrite(|old, new| {
                for c in old.chars() {
                    if is_chinese(c) {
                        new.push(' ', 0);
                        new.push(c, 1);
                        new.push(' ', 1);
                    } else {
                        new.push(c, 0);
                    }
                }
            });
        }
        if self.strip_accents.unwrap_or(self.lowercase) {
            text.rewrite(|old, new| to_form(old, Form::Nfd, new));
            filter(text, |c| !c.is_mark_nonspacing());
        }
        if self.lowercase {
            text.rewrite(to_lowercase);
        }
    }
}

fn to_form(old: &str, form: Form, new: &mut Writer<'_>) {
    let mut push = |(c, change)| new.push(c, change);
    match form {
        Form::Nfc => old.nfc().for_each(&mut push),
        Form::Nfd => old.nfd().for_each(&mut push),
        Form::Nfkc => old.nfkc().for_each(&mut push),
        Form::Nfkd => old.nfkd().for_each(&mut push),
    }
}

fn to_lowercase(old: &str, new: &mut Writer<'_>) {
    for c in old.chars() {
        lowercase(c).zip(0..).for_each(|(lower, index)| new.push(lower, (index > 0).into()));
    }
}

fn map(text: &mut AlignedText, to: impl Fn(char) -> char) {
    text.rewrite(|old, new| old.chars().for_each(|c| new.push(to(c), 0)));
}

fn filter(text: &mut AlignedText, keeps: impl Fn(char) -> bool) {
    if text.text().chars().all(&keeps) {
        return;
    }
    text.rewrite(|old, new| {
        let (mut last, mut removed) = (None, 0);
        for c in old.chars() {
            if !keeps(c) {
                removed += 1;
                continue;
            }
            match last.replace(c) {
                Some(before) => new.push(before, -removed),
                None => new.skip(removed.unsigned_abs()),
            }
            removed = 0;
        }
        if let Some(last) = last {
            new.push(last, -removed);
        }
    });
}

/// Removes white space at the ends. The change that takes over what is removed at the end is at the
/// place where Hugging Face tokenizers has it: a number of characters that it takes from bytes.
fn strip(text: &mut AlignedText, left: bool, right: bool) {
    if left && right {
        return strip_ends(text, true, true);
    }
    if left {
        strip_ends(text, true, false);
    }
    if right {
        strip_ends(text, false, true);
    }
}

fn strip_ends(text: &mut AlignedText, left: bool, right: bool) {
    let spaces =
        |chars: &mut dyn Iterator<Item = char>| chars.take_while(|&c| is_whitespace(c)).count();
    let leading = if left { spaces(&mut text.text().chars()) } else { 0 };
    let trailing = if right { spaces(&mut text.text().chars().rev()) } else { 0 };
    if leading + trailing == 0 {
        return;
    }
    text.rewrite(|old, new| {
        let count = old.chars().count();
        let last = (old.len() - trailing).wrapping_sub(1);
        new.skip(leading);
        for (index, c) in old.chars().enumerate() {
            if index >= leading && index < count - trailing.min(count) {
                new.push(c, if index == last { -(trailing as isize) } else { 0 });
            }
        }
    });
}

/// Puts the content in place of each match. It has the origin of the last byte that it replaces.
pub fn replace(text: &mut AlignedText, matcher: &Matcher, content: &str) {
    if !matcher.is_found_in(text.text()) {
        return;
    }
    text.rewrite(|old, new| {
        matcher.each(old, |range, is_match| match is_match {
            true => new.put(content, range.end.checked_sub(1)),
            false => new.copy(range),
        });
    });
}

/// Puts a string before a text that is not empty. It has the origin of the first character, whose
/// bytes all get the origin of its last byte.
pub fn prepend(text: &mut AlignedText, prefix: &str) {
    let Some(first) = text.text().chars().next() else { return };
    text.rewrite(|old, new| {
        let (mut characters, end) = (prefix.chars(), first.len_utf8());
        if let Some(c) = characters.next() {
            new.put(c.encode_utf8(&mut [0; 4]), Some(0));
        }
        new.put(characters.as_str(), Some(end - 1));
        let place = if prefix.is_empty() { None } else { Some(end - 1) };
        new.put(&old[..end], place);
        new.copy(end..old.len());
    });
}

/// Writes GPT-2's character for each byte.
pub(crate) fn to_byte_characters(text: &mut AlignedText) {
    text.rewrite(|old, new| {
        for c in old.chars() {
            for (index, &byte) in c.encode_utf8(&mut [0; 4]).as_bytes().iter().enumerate() {
                new.push(byte_character(byte), (index > 0).into());
            }
        }
    });
}

/// The longest string of a grapheme cluster that is replaced as a whole, in bytes.
const SHORT_GRAPHEME: usize = 5;

fn precompiled(text: &mut AlignedText, charsmap: &CharsMap) {
    if charsmap.leaves(text.text()) {
        return;
    }
    if !text.is_aligned() {
        return text.rewrite(|old, new| {
            each_mapped(old, charsmap, |part, result| new.put(result.unwrap_or(part), None));
        });
    }
    text.rewrite(|old, new| {
        let mut changes: Vec<(char, isize)> = Vec::new();
        each_mapped(old, charsmap, |part, result| match result {
            Some(result) => change_to(&mut changes, part, result),
            None => changes.extend(part.chars().map(|c| (c, 0))),
        });
        changes.into_iter().for_each(|(c, change)| new.push(c, change));
    });
}

/// Calls `each` with every part of a text that is looked up in the map, and with what it becomes, if it is there.
#[inline(always)]
fn each_mapped(text: &str, charsmap: &CharsMap, mut each: impl FnMut(&str, Option<&str>)) {
    let is_alone = |at| is_ascii_alone(text.as_bytes(), at);
    let mut at = 0;
    while at < text.len() {
        if is_alone(at) {
            let itself = &text[at..at + 1];
            each(itself, charsmap.shortest(itself));
            at += 1;
            continue;
        }
        let start = at;
        for (inner, grapheme) in text[start..].grapheme_indices(true) {
            at = start + inner;
            if inner > 0 && is_alone(at) {
                break;
            }
            at += grapheme.len();
            let short = Some(grapheme).filter(|_| grapheme.len() <= SHORT_GRAPHEME);
            if let Some(result) = short.and_then(|grapheme| charsmap.shortest(grapheme)) {
                each(grapheme, Some(result));
                continue;
            }
            for (inner, c) in grapheme.char_indices() {
                let part = &grapheme[inner..inner + c.len_utf8()];
                each(part, charsmap.shortest(part));
            }
        }
    }
}

/// Return true if the byte at `at`, where a grapheme begins, is all of it: no ASCII character continues another
/// one, except in `\r\n`.
#[inline(always)]
fn is_ascii_alone(bytes: &[u8], at: usize) -> bool {
    let is_ascii = |at: usize| bytes.get(at).is_none_or(u8::is_ascii);
    at < bytes.len() && is_ascii(at) && is_ascii(at + 1) && bytes[at] != b'\r'
}

/// Appends the change of a part to its result. If characters are missing, the last change before that
/// takes them over, whatever it is, as in Hugging Face tokenizers.
fn change_to(changes: &mut Vec<(char, isize)>, part: &str, result: &str) {
    let more = result.chars().count() as isize - part.chars().count() as isize;
    changes.extend(result.chars().map(|c| (c, 0)));
    if more > 0 {
        changes.iter_mut().rev().take(more as usize).for_each(|(_, change)| *change = 1);
    } else if let Some((_, change)) = changes.last_mut() {
        *change += more;
    }
}

fn is_removed_by_nmt(c: char) -> bool {
    matches!(c as u32, 0x1..=0x8 | 0xB | 0xE..=0x1F | 0x7F | 0x8F | 0x9F)
}

fn is_space_of_nmt(c: char) -> bool {
    matches!(
        c as u32,
        0x9 | 0xA | 0xC | 0xD | 0x1680 | 0x200B
            ..=0x200F | 0x2028 | 0x2029 | 0x2581 | 0xFEFF | 0xFFFD
    )
}
