//! BERT's normalizer and pre-tokenizer: text to words, the same for counting and for encoding.
//!
//! The result for a character does not depend on its neighbours, except for the few combining marks
//! that are kept although accents are stripped: they are put in order. So every character has one
//! *fate* (part of a word, a word alone, a space, dropped, ...; see `characters`), which is looked up
//! in a table whose pages are filled on first use. Text is split in two steps:
//!
//! 1. [`BertRules::segments`] splits raw text at spaces and around characters that stand alone. It
//!    changes nothing, so a segment can be the key of a table of words already seen. ASCII and most
//!    Latin and Cyrillic letters are split in blocks of 64 bytes: SIMD instructions classify the bytes (see
//!    `masks`), and the ends of all segments are computed together, as bits of one number.
//! 2. [`BertRules::normalize`] turns a segment into its word. It runs once for each distinct
//!    segment, so that most of a text is never normalized.
//!
//! The Unicode tables are from the crates of Hugging Face tokenizers (`unicode_categories`,
//! `unicode-normalization-alignments`, Rust's `char`), whose words are matched exactly.

mod characters;
mod masks;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use crate::text::blocks::{BLOCK, below, three_bytes};
use crate::text::segments::{BlockSegments, Each, Segment, SegmentSink};

use characters::{ALONE, CharEntry, DROPPED, EXPANDED, Fate, MARK, SPACE, each_with_marks, fates};
pub(crate) use characters::{is_chinese, is_removed};
use masks::{AsciiMasks, CjkMasks, is_cjk_lead, is_letter_lead, letters_at};

/// The switches of the normalizer and the pre-tokenizer. The first four have the names that they
/// have in `BertNormalizer` of Hugging Face tokenizers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// True to remove control characters, and to replace all kinds of spaces by plain spaces.
    pub clean_text: bool,
    /// True to make every CJK character a word.
    pub handle_chinese_chars: bool,
    /// True to remove accents: characters are decomposed, and nonspacing marks dropped.
    pub strip_accents: bool,
    /// True to convert words to lower case.
    pub lowercase: bool,
    /// True to make every punctuation character a word, as in BERT. Otherwise text is only split at spaces.
    pub split_punctuation: bool,
}

impl Default for TextOptions {
    /// The options of BERT's uncased models.
    fn default() -> Self {
        TextOptions {
            clean_text: true,
            handle_chinese_chars: true,
            strip_accents: true,
            lowercase: true,
            split_punctuation: true,
        }
    }
}

/// The characters of one or two bytes of UTF-8.
const SHORT_CHARS: usize = 0x800;

/// Characters in a page of the table.
const PAGE: usize = 256;
const PAGES: usize = 0x11_0000 / PAGE;

struct Page {
    entries: [CharEntry; PAGE],
    expansions: Vec<Vec<char>>,
}

/// The normalizer and the pre-tokenizer of one set of options, with their tables. It can be shared by
/// threads.
///
/// # Examples
///
/// ```
/// use wordpiece_core::text::{BertRules, TextOptions};
///
/// let rules = BertRules::new(TextOptions::default());
/// let mut segments = Vec::new();
/// let mut words = Vec::new();
/// rules.segments("Héllo, world", |segment| {
///     let mut word = String::new();
///     rules.normalize(segment.raw, &mut word);
///     segments.push(segment.raw.to_string());
///     words.push(word);
/// });
/// assert_eq!(segments, ["Héllo", ",", "world"]);
/// assert_eq!(words, ["hello", ",", "world"]);
/// ```
pub struct BertRules {
    /// The options that the tables are built from.
    options: TextOptions,
    ascii: [CharEntry; 128],
    /// A bit for each character of one or two bytes of UTF-8 that text is split at.
    separators: [u64; SHORT_CHARS / 64],
    pages: Box<[OnceLock<Box<Page>>]>,
}

impl BertRules {
    /// Build the pre-tokenizer. Its tables, except for ASCII, are filled on first use.
    pub fn new(options: TextOptions) -> Self {
        let ascii = std::array::from_fn(|c| match fates(c as u8 as char, &options)[..] {
            [fate] => CharEntry::of(fate),
            // No ASCII character becomes several characters.
            _ => unreachable!("an ASCII character has one fate"),
        });
        let pages = (0..PAGES).map(|_| OnceLock::new()).collect();
        BertRules { options, ascii, separators: [0; SHORT_CHARS / 64], pages }.with_separators()
    }

    /// The pre-tokenizer that splits text at white space into *chunks*, and changes nothing. Every chunk
    /// can be split further by any options, with the same words as the text. So it does not split
    /// at the control characters that are white space to Unicode (U+000B, U+000C, U+0085): BERT's
    /// normalizer removes them and joins the words on both sides.
    pub fn chunks() -> Self {
        let mut text = BertRules::new(TextOptions {
            clean_text: false,
            handle_chinese_chars: false,
            strip_accents: false,
            lowercase: false,
            split_punctuation: false,
        });
        let mut page = text.fill_page(0);
        for c in ['\u{B}', '\u{C}', '\u{85}'] {
            page.entries[c as usize] = CharEntry::of(Fate::Word(c));
        }
        text.ascii.copy_from_slice(&page.entries[..128]);
        text.pages[0] = OnceLock::from(Box::new(page));
        text.with_separators()
    }

    fn with_separators(mut self) -> Self {
        self.separators = [0; SHORT_CHARS / 64];
        for c in '\0'..='\u{7FF}' {
            self.separators[c as usize / 64] |=
                u64::from(self.entry(c).separates()) << (c as usize % 64);
        }
        self
    }

    #[inline]
    fn page(&self, c: char) -> &Page {
        let index = c as usize / PAGE;
        self.pages[index].get_or_init(|| Box::new(self.fill_page(index)))
    }

    fn fill_page(&self, index: usize) -> Page {
        let mut expansions = Vec::new();
        let entries = std::array::from_fn(|k| {
            let Some(c) = char::from_u32((index * PAGE + k) as u32) else {
                return CharEntry::of(Fate::Dropped); // a surrogate: never in a string
            };
            let fates = fates(c, &self.options);
            match fates[..] {
                [fate] => CharEntry::of(fate),
                _ if fates.contains(&Fate::Mark) => CharEntry::of(Fate::Mark),
                _ => {
                    expansions
                        .push(fates.into_iter().map(|fate| CharEntry::of(fate).char()).collect());
                    CharEntry::new(EXPANDED, expansions.len() as u32 - 1)
                }
            }
        });
        Page { entries, expansions }
    }

    #[inline]
    fn entry(&self, c: char) -> CharEntry {
        if c.is_ascii() { self.ascii[c as usize] } else { self.page(c).entries[c as usize % PAGE] }
    }

    /// Calls `each` with every segment of `text`, in order.
    #[inline(always)]
    pub fn segments(&self, text: &str, each: impl FnMut(Segment<'_>)) {
        self.segments_into(text, text.as_bytes(), &mut Each(each));
    }

    /// Gives every segment of `text` to `sink`.
    ///
    /// # Arguments
    ///
    /// * `text` - The text.
    /// * `bytes` - The bytes of the text, which may continue after it. Bytes after the text are read to avoid
    ///   a copy of its end, and do not change the segments.
    /// * `sink` - The sink for the segments.
    #[inline(always)]
    pub(crate) fn segments_into(&self, text: &str, bytes: &[u8], sink: &mut impl SegmentSink) {
        let mut at = 0;
        while at < text.len() {
            let first = bytes[at];
            if first.is_ascii() || is_letter_lead(first) || is_cjk_lead(first) {
                let block = self.block(bytes, at, text.len());
                sink.block(bytes, at, &block);
                at += block.done as usize;
                if at >= text.len() {
                    return;
                }
                if block.done > 0 && block.stop >= BLOCK as u32 - 2 {
                    continue;
                }
            }
            // A single character, or a segment that the block does not end.
            let start = at;
            let c = first_char(&text[start..]);
            let entry = self.entry(c);
            at += c.len_utf8();
            match entry.kind() {
                SPACE => continue,
                ALONE => sink.alone(bytes, start, at, entry.char()),
                _ => {
                    at = self.segment_end(text, at);
                    sink.segment(bytes, start, at);
                }
            }
            at += (at < text.len() && bytes[at] == b' ') as usize;
        }
    }

    /// Return the segments in the block that begins at byte `at`, where no earlier segment continues.
    /// `end`: of the text.
    #[inline(always)]
    fn block(&self, bytes: &[u8], at: usize, end: usize) -> BlockSegments {
        let AsciiMasks { alphanumeric, other, space } = AsciiMasks::at(bytes, at, end);
        let (mut word, alone) = if self.options.split_punctuation {
            (alphanumeric, other)
        } else {
            (alphanumeric | other, 0)
        };
        let mut stop = (word | alone | space).trailing_ones();
        if stop < BLOCK as u32 && !bytes[at + stop as usize].is_ascii() {
            word |= letters_at(bytes, at, end);
            stop = (word | alone | space).trailing_ones();
        }
        let mut cjk_alone = 0;
        if stop < BLOCK as u32 && is_cjk_lead(bytes[at + stop as usize]) {
            let leads = self.cjk_at(bytes, at, end);
            (word, cjk_alone) = (word | three_bytes(leads.0), leads.1);
            stop = (word | alone | space | three_bytes(cjk_alone)).trailing_ones();
        }
        let (word, alone) = (word & below(stop), alone & below(stop));
        let starts = word & !(word << 1);
        // A word that reaches to `stop` may go on there: its end is not known.
        let open = stop > 0 && word >> (stop - 1) == 1;
        let done = if open { starts.ilog2() } else { stop };
        BlockSegments {
            words: starts & below(done),
            ends: (word << 1) & !word & below(stop),
            alone,
            cjk_alone: cjk_alone & below(stop),
            done,
            stop,
        }
    }

    /// The first bytes of the CJK characters in the block at `at` that are part of words, and of those
    /// that stand alone.
    #[inline(always)]
    fn cjk_at(&self, bytes: &[u8], at: usize, end: usize) -> (u64, u64) {
        let CjkMasks { kana, ideograph, punctuation } = CjkMasks::at(bytes, at, end);
        let (mut word, mut alone) = (kana, 0);
        *(if self.options.handle_chinese_chars { &mut alone } else { &mut word }) |= ideograph;
        *(if self.options.split_punctuation { &mut alone } else { &mut word }) |= punctuation;
        (word, alone)
    }

    /// The first byte offset from `at` on where the text is split: the end of the segment that the
    /// bytes before `at` are part of.
    ///
    /// # Panics
    ///
    /// Panics if `at` is not at the boundary of a character of `text`.
    fn segment_end(&self, text: &str, at: usize) -> usize {
        let mut rest = text[at..].chars();
        loop {
            let end = text.len() - rest.as_str().len();
            let Some(c) = rest.next() else { return end };
            let separates = match self.separators.get(c as usize / 64) {
                Some(bits) => bits >> (c as usize % 64) & 1 == 1,
                None => self.entry(c).separates(),
            };
            if separates {
                return end;
            }
        }
    }

    /// Normalizes a segment.
    ///
    /// # Arguments
    ///
    /// * `raw` - The segment, as [`BertRules::segments`] gives it.
    /// * `word` - Where the word is written. It is cleared first, and left empty if nothing of the
    ///   segment is left.
    pub fn normalize(&self, raw: &str, word: &mut String) {
        word.clear();
        // The loop repeats `each_normalized` on purpose: it need not count the
        // characters, nor look for marks beforehand. Encoding is 4 % faster for that.
        for c in raw.chars() {
            let entry = self.entry(c);
            match entry.kind() {
                DROPPED => {}
                EXPANDED => word.extend(&self.page(c).expansions[entry.value() as usize]),
                MARK => {
                    word.clear();
                    return each_with_marks(raw, &self.options, |c, _| word.push(c));
                }
                _ => word.push(entry.char()),
            }
        }
    }

    /// Calls `each` with every character of the word that a segment becomes, and the index of the
    /// character of `raw` that it comes from, counted from 0.
    pub(crate) fn each_normalized(&self, raw: &str, mut each: impl FnMut(char, usize)) {
        if raw.chars().any(|c| self.entry(c).kind() == MARK) {
            return each_with_marks(raw, &self.options, each);
        }
        for (index, c) in raw.chars().enumerate() {
            let entry = self.entry(c);
            match entry.kind() {
                DROPPED => {}
                EXPANDED => {
                    let expansion = &self.page(c).expansions[entry.value() as usize];
                    expansion.iter().for_each(|&c| each(c, index));
                }
                _ => each(entry.char(), index),
            }
        }
    }
}

#[inline]
fn first_char(text: &str) -> char {
    text.chars().next().unwrap_or('\0')
}
