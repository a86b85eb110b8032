//! BERT's normalizer and pre-tokenizer: text to words, the same for counting and for encoding.
//!
//! What a character becomes does not depend on its neighbours, except for the few combining marks
//! that are kept although accents are stripped: those are put in order. So every character has one
//! *fate* (part of a word, a word alone, a space, dropped, ...), which is looked up in a table whose
//! pages are filled on first use. Text is cut in two steps:
//!
//! 1. [`PreTokenizer::segments`] cuts raw text at spaces and around characters that stand alone. It
//!    changes nothing, so a segment can be the key of a table of words already seen. ASCII and most
//!    Latin and Cyrillic letters are cut 64 bytes at once: SIMD instructions classify the bytes, and
//!    the ends of all segments are computed together, as bits of one number.
//! 2. [`PreTokenizer::normalize`] turns a segment into its word. It runs once for each distinct
//!    segment, so that most of a text is never normalized.
//!
//! The Unicode tables are those of Hugging Face tokenizers (`unicode_categories`,
//! `unicode-normalization-alignments`, Rust's `char`), whose words are matched exactly.

use std::sync::OnceLock;

use unicode_categories::UnicodeCategories;
use unicode_normalization_alignments::char::{canonical_combining_class, decompose_canonical};

/// The switches of the normalizer and the pre-tokenizer. The first four have the names that they
/// have in `BertNormalizer` of Hugging Face tokenizers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Whether control characters are removed, and all kinds of spaces are plain spaces.
    pub clean_text: bool,
    /// Whether every CJK character is a word by itself.
    pub handle_chinese_chars: bool,
    /// Whether accents are removed: characters are decomposed, and nonspacing marks dropped.
    pub strip_accents: bool,
    /// Whether words are in lower case.
    pub lowercase: bool,
    /// Whether every punctuation character is a word by itself, as in BERT. Otherwise text is cut at
    /// spaces only.
    pub split_punctuation: bool,
}

/// What becomes of one character after normalization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Part of a word.
    Word(char),
    /// A combining mark that is kept: part of a word whose marks must be put in order.
    Mark,
    /// A word by itself: punctuation, or a CJK character.
    Alone(char),
    /// A space, which cuts.
    Space,
    /// Nothing is left of it.
    Dropped,
}

/// What becomes of one character of the raw text, packed into one number: the kind in the upper bits,
/// and a value in the lower ones.
#[derive(Clone, Copy)]
struct CharEntry(u32);

const KIND_SHIFT: u32 = 24;
const VALUE_MASK: u32 = (1 << KIND_SHIFT) - 1;
const WORD: u32 = 0;
/// A combining mark is kept, so that the whole segment has to be put in order.
const MARK: u32 = 1;
const DROPPED: u32 = 2;
/// Several characters, all part of a word; the value is an index into the page's `expansions`.
const EXPANDED: u32 = 3;
/// Kinds from here on end a segment.
const SPACE: u32 = 4;
const ALONE: u32 = 5;

impl CharEntry {
    fn new(kind: u32, value: u32) -> Self {
        CharEntry(kind << KIND_SHIFT | value)
    }

    fn of(fate: Fate) -> Self {
        match fate {
            Fate::Word(c) => CharEntry::new(WORD, c as u32),
            Fate::Mark => CharEntry::new(MARK, 0),
            Fate::Alone(c) => CharEntry::new(ALONE, c as u32),
            Fate::Space => CharEntry::new(SPACE, 0),
            Fate::Dropped => CharEntry::new(DROPPED, 0),
        }
    }

    fn kind(self) -> u32 {
        self.0 >> KIND_SHIFT
    }

    fn value(self) -> u32 {
        self.0 & VALUE_MASK
    }

    fn cuts(self) -> bool {
        self.kind() >= SPACE
    }

    fn char(self) -> char {
        char::from_u32(self.value()).unwrap_or(char::REPLACEMENT_CHARACTER)
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
/// use _kernel::text::pre_tokenize::{PreTokenizer, TextOptions};
///
/// let pre_tokenizer = PreTokenizer::new(TextOptions {
///     clean_text: true,
///     handle_chinese_chars: true,
///     strip_accents: true,
///     lowercase: true,
///     split_punctuation: true,
/// });
/// let mut segments = Vec::new();
/// let mut words = Vec::new();
/// pre_tokenizer.segments("Héllo, world", |segment| {
///     let mut word = String::new();
///     pre_tokenizer.normalize(segment.raw, &mut word);
///     segments.push(segment.raw);
///     words.push(word);
/// });
/// assert_eq!(segments, ["Héllo", ",", "world"]);
/// assert_eq!(words, ["hello", ",", "world"]);
/// ```
pub struct PreTokenizer {
    /// The options that it was made with.
    pub options: TextOptions,
    ascii: [CharEntry; 128],
    /// A bit for each character of one or two bytes of UTF-8 that cuts.
    cuts: [u64; SHORT_CHARS / 64],
    pages: Box<[OnceLock<Box<Page>>]>,
}

/// A piece of raw text. After normalization it is one word, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The piece itself.
    pub raw: &'a str,
    /// Byte offset of `raw` in the text.
    pub start: usize,
    /// Whether the first character of `raw` is a space that is not in the text: the rest of `raw`
    /// begins at `start`. BERT's rules add none.
    pub added: bool,
    /// The word, if it is one character that stands alone and is not ASCII.
    pub alone: Option<char>,
    /// The text from the beginning of the segment on, so that a key of fixed size can be read at
    /// once.
    pub rest: &'a [u8],
}

impl PreTokenizer {
    /// Makes the pre-tokenizer of these options. Its tables, but for ASCII, are filled on first use.
    pub fn new(options: TextOptions) -> Self {
        let ascii = std::array::from_fn(|c| match fates(c as u8 as char, &options)[..] {
            [fate] => CharEntry::of(fate),
            // No ASCII character becomes several characters.
            _ => unreachable!("an ASCII character has one fate"),
        });
        let pages = (0..PAGES).map(|_| OnceLock::new()).collect();
        PreTokenizer { options, ascii, cuts: [0; SHORT_CHARS / 64], pages }.with_cuts()
    }

    /// The pre-tokenizer that cuts text at white space into *chunks*, and changes nothing. Every chunk
    /// can be cut further by any options, and all its words are those of the text. So it does not cut
    /// at the control characters that are white space to Unicode (U+000B, U+000C, U+0085): BERT's
    /// normalizer removes them, and what is on both sides of one becomes one word.
    pub fn chunks() -> Self {
        let mut text = PreTokenizer::new(TextOptions {
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
        text.with_cuts()
    }

    fn with_cuts(mut self) -> Self {
        self.cuts = [0; SHORT_CHARS / 64];
        for c in '\0'..='\u{7FF}' {
            self.cuts[c as usize / 64] |= u64::from(self.entry(c).cuts()) << (c as usize % 64);
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
    pub fn segments<'a>(&self, text: &'a str, each: impl FnMut(Segment<'a>)) {
        self.cut(text, text.as_bytes(), &mut InOrder { text, each });
    }

    /// Gives every segment of `text` to `bag`, in no particular order. That is faster than in order.
    ///
    /// # Arguments
    ///
    /// * `text` - The text.
    /// * `bytes` - The bytes of the text; more may be behind them. They are read where that spares
    ///   copying the end of the text, but do not change the segments.
    /// * `bag` - What takes the segments.
    #[inline(always)]
    pub fn segments_into(&self, text: &str, bytes: &[u8], bag: &mut impl SegmentBag) {
        self.cut(text, bytes, &mut Unordered { bytes, bag });
    }

    #[inline(always)]
    fn cut<S: Sink>(&self, text: &str, bytes: &[u8], sink: &mut S) {
        let mut at = 0;
        while at < text.len() {
            let first = bytes[at];
            if first.is_ascii() || is_letter_lead(first) || S::CJK && is_cjk_lead(first) {
                let block = self.block::<S>(bytes, at, text.len());
                sink.block(at, &block);
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
                ALONE => sink.alone(start, at, entry.char()),
                _ => {
                    at = self.segment_end(text, at);
                    sink.segment(start, at);
                }
            }
            at += (at < text.len() && bytes[at] == b' ') as usize;
        }
    }

    /// The segments in the block that begins at byte `at`, where no segment goes on from before.
    /// `end`: of the text.
    #[inline(always)]
    fn block<S: Sink>(&self, bytes: &[u8], at: usize, end: usize) -> BlockSegments {
        let Classes { alphanumeric, other, space } = Classes::at(bytes, at, end);
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
        if S::CJK && stop < BLOCK as u32 && is_cjk_lead(bytes[at + stop as usize]) {
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
        let CjkLeads { kana, ideograph, punctuation } = CjkLeads::at(bytes, at, end);
        let (mut word, mut alone) = (kana, 0);
        *(if self.options.handle_chinese_chars { &mut alone } else { &mut word }) |= ideograph;
        *(if self.options.split_punctuation { &mut alone } else { &mut word }) |= punctuation;
        (word, alone)
    }

    /// The first byte offset from `at` on where the text is cut: the end of the segment that the
    /// bytes before `at` are part of.
    ///
    /// # Panics
    ///
    /// Panics if `at` is not at the boundary of a character of `text`.
    pub fn segment_end(&self, text: &str, at: usize) -> usize {
        let mut rest = text[at..].chars();
        loop {
            let end = text.len() - rest.as_str().len();
            let Some(c) = rest.next() else { return end };
            let cuts = match self.cuts.get(c as usize / 64) {
                Some(bits) => bits >> (c as usize % 64) & 1 == 1,
                None => self.entry(c).cuts(),
            };
            if cuts {
                return end;
            }
        }
    }

    /// Normalizes a segment.
    ///
    /// # Arguments
    ///
    /// * `raw` - The segment, as [`PreTokenizer::segments`] gives it.
    /// * `word` - Where the word is written. It is cleared first, and left empty if nothing of the
    ///   segment is left.
    pub fn normalize(&self, raw: &str, word: &mut String) {
        word.clear();
        // The loop is that of `each_normalized`, written again on purpose: it need not count the
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
    pub fn each_normalized(&self, raw: &str, mut each: impl FnMut(char, usize)) {
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

impl PreTokenizer {
    /// What a character becomes by itself: words, with spaces where it cuts them off from others.
    ///
    /// # Arguments
    ///
    /// * `c` - The character.
    /// * `result` - Where that is written. It is cleared first.
    pub fn becomes(&self, c: char, result: &mut String) {
        let entry = self.entry(c);
        match entry.kind() {
            SPACE => {
                result.clear();
                result.push(' ');
            }
            ALONE => {
                result.clear();
                result.extend([' ', entry.char(), ' ']);
            }
            _ => self.normalize(c.encode_utf8(&mut [0; 4]), result),
        }
    }
}

/// The same as `each_normalized`, for a segment with marks that are kept although accents are
/// stripped. All marks in a row are sorted by their classes first (Unicode's canonical order). The
/// indices are those of Hugging Face tokenizers: they are not sorted with the marks, so the second
/// mark has the index of the second character.
fn each_with_marks(raw: &str, options: &TextOptions, mut each: impl FnMut(char, usize)) {
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

/// The fates of the characters that one character of the text becomes. These are all rules of the
/// normalizer and the pre-tokenizer.
fn fates(c: char, options: &TextOptions) -> Vec<Fate> {
    let mut cleaned = c;
    if options.clean_text {
        if is_removed(c) {
            return vec![Fate::Dropped];
        }
        if c.is_whitespace() {
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

fn lowered(c: char, options: &TextOptions) -> impl Iterator<Item = char> {
    let lower = options.lowercase.then(|| c.to_lowercase());
    let kept = (!options.lowercase).then_some(c);
    lower.into_iter().flatten().chain(kept)
}

fn fate(c: char, mark: bool, options: &TextOptions) -> Fate {
    if c.is_whitespace() {
        Fate::Space
    } else if options.split_punctuation && (c.is_ascii_punctuation() || c.is_punctuation()) {
        Fate::Alone(c)
    } else if mark {
        Fate::Mark
    } else {
        Fate::Word(c)
    }
}

/// Whether `clean_text` removes this character.
fn is_removed(c: char) -> bool {
    c == '\0' || c == char::REPLACEMENT_CHARACTER || is_control(c)
}

/// Whether the character is of the categories Cc, Cf or Co, and none of the three that count as
/// spaces.
fn is_control(c: char) -> bool {
    !matches!(c, '\t' | '\n' | '\r') && c.is_other()
}

/// Whether the character is in the ranges that Hugging Face tokenizers put spaces around. (2B820 to
/// 2B91F are not among them there.)
fn is_chinese(c: char) -> bool {
    matches!(c as u32,
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B73F
        | 0x2B740..=0x2B81F | 0x2B920..=0x2CEAF | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}

#[inline]
fn first_char(text: &str) -> char {
    text.chars().next().unwrap_or('\0')
}

/// Takes the segments of texts, in no particular order.
pub trait SegmentBag {
    /// Takes an ASCII character that is a word by itself. `at`: its place, of which the lowest two bits
    /// matter: they tell characters in a row apart.
    fn alone_ascii(&mut self, word: u8, at: usize);

    /// Takes any other character that is a word by itself.
    fn alone(&mut self, word: char);

    /// Takes the segments of a block of 64 bytes, which begins at byte `at`.
    ///
    /// # Arguments
    ///
    /// * `bytes` - A text, and what may be behind it.
    /// * `at` - Where the block begins.
    /// * `starts` - A bit for each byte of the block where a segment begins.
    /// * `ends` - A bit for each byte that is the first behind a segment, as many as in `starts`.
    fn segments(&mut self, bytes: &[u8], at: usize, starts: u64, ends: u64);

    /// Takes the segment `bytes[start..end]`.
    fn segment(&mut self, bytes: &[u8], start: usize, end: usize);
}

/// Takes what a text is cut into.
pub(super) trait Sink {
    /// Whether it takes CJK characters that stand alone as part of a block.
    const CJK: bool;

    /// Takes the segments of the block at byte `at`.
    fn block(&mut self, at: usize, block: &BlockSegments);

    /// Takes a character that stands alone, in the bytes from `start` to `end`, and its word.
    fn alone(&mut self, start: usize, end: usize, word: char);

    /// Takes another segment.
    fn segment(&mut self, start: usize, end: usize);
}

pub(super) struct InOrder<'a, F> {
    pub(super) text: &'a str,
    pub(super) each: F,
}

impl<'a, F: FnMut(Segment<'a>)> InOrder<'a, F> {
    #[inline(always)]
    fn give(&mut self, start: usize, end: usize, alone: Option<char>) {
        let (raw, rest) = (&self.text[start..end], &self.text.as_bytes()[start..]);
        (self.each)(Segment { raw, start, added: false, alone, rest });
    }
}

impl<'a, F: FnMut(Segment<'a>)> Sink for InOrder<'a, F> {
    // A look at each segment for what it is would cost more than it spares.
    const CJK: bool = false;

    #[inline(always)]
    fn block(&mut self, at: usize, block: &BlockSegments) {
        let mut starts = block.words | block.alone;
        // A character in the last byte ends behind the block: there is no bit for that, but zero
        // has as many trailing zeros as a block has bytes.
        let mut ends = block.ends | block.alone << 1;
        while starts != 0 {
            let start = at + starts.trailing_zeros() as usize;
            let end = at + ends.trailing_zeros() as usize;
            (starts, ends) = (starts & (starts - 1), ends & ends.wrapping_sub(1));
            self.give(start, end, None);
        }
    }

    #[inline(always)]
    fn alone(&mut self, start: usize, end: usize, word: char) {
        self.give(start, end, Some(word));
    }

    #[inline(always)]
    fn segment(&mut self, start: usize, end: usize) {
        self.give(start, end, None);
    }
}

pub(super) struct Unordered<'a, 'b, B> {
    pub(super) bytes: &'a [u8],
    pub(super) bag: &'b mut B,
}

impl<B: SegmentBag> Sink for Unordered<'_, '_, B> {
    const CJK: bool = true;

    #[inline(always)]
    fn block(&mut self, at: usize, block: &BlockSegments) {
        let mut alone = block.alone;
        while alone != 0 {
            let place = at + alone.trailing_zeros() as usize;
            self.bag.alone_ascii(self.bytes[place], place);
            alone &= alone - 1;
        }
        let mut cjk_alone = block.cjk_alone;
        while cjk_alone != 0 {
            let place = at + cjk_alone.trailing_zeros() as usize;
            self.bag.alone(three_byte_char(&self.bytes[place..]));
            cjk_alone &= cjk_alone - 1;
        }
        self.bag.segments(self.bytes, at, block.words, block.ends);
    }

    #[inline(always)]
    fn alone(&mut self, _start: usize, _end: usize, word: char) {
        self.bag.alone(word);
    }

    #[inline(always)]
    fn segment(&mut self, start: usize, end: usize) {
        self.bag.segment(self.bytes, start, end);
    }
}

/// The segments of a block, with one bit for each byte.
pub(super) struct BlockSegments {
    /// Where a word of several characters, or a letter, begins, if its end is known.
    pub(super) words: u64,
    /// The byte behind each of these words.
    pub(super) ends: u64,
    /// ASCII characters that stand alone.
    pub(super) alone: u64,
    /// The first bytes of CJK characters that stand alone.
    pub(super) cjk_alone: u64,
    /// How many bytes these segments, and the spaces around them, take.
    pub(super) done: u32,
    /// The first byte of another class, of a character that the block does not know or a control
    /// character; or `BLOCK`.
    pub(super) stop: u32,
}

/// The lowest `count` bits, up to 64.
#[inline(always)]
pub(super) fn below(count: u32) -> u64 {
    1u64.checked_shl(count).unwrap_or(0).wrapping_sub(1)
}

/// Bytes in a block.
pub(super) const BLOCK: usize = 64;

/// What the bytes of a block are, with one bit for each byte. Bytes behind the end of the text count
/// as spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Classes {
    /// ASCII letters and digits.
    alphanumeric: u64,
    /// Other visible ASCII characters.
    other: u64,
    /// Space, tab, line feed and carriage return.
    space: u64,
}

impl Classes {
    #[inline(always)]
    fn at(bytes: &[u8], at: usize, end: usize) -> Self {
        let [alphanumeric, visible, space] = masks_at(bytes, at, wide::classes);
        let inside = below((end - at).min(BLOCK) as u32);
        let (alphanumeric, visible) = (alphanumeric & inside, visible & inside);
        Classes { alphanumeric, other: visible & !alphanumeric, space: space | !inside }
    }
}

/// The bytes of the block at `at` that are part of letters of two bytes (see [`is_letter_lead`]), up
/// to the first other character that is not ASCII.
#[inline(always)]
fn letters_at(bytes: &[u8], at: usize, end: usize) -> u64 {
    let [leads, continuations] = masks_at(bytes, at, wide::letters);
    (leads | continuations & (leads << 1)) & below((end - at).min(BLOCK) as u32)
}

/// Whether this is the first byte of a character of two bytes that is part of words, whatever the
/// options are: U+00C0 to U+02FF, U+03C0 to U+053F; Latin and Cyrillic letters among others.
#[inline(always)]
fn is_letter_lead(byte: u8) -> bool {
    matches!(byte, 0xC3..=0xCB | 0xCF..=0xD4)
}

/// Whether a character of [`CjkLeads`] may begin with this byte.
#[inline(always)]
fn is_cjk_lead(byte: u8) -> bool {
    matches!(byte, 0xE3..=0xE9 | 0xEF)
}

/// The first bytes of frequent CJK characters in a block, whatever the options are. They have three
/// bytes, all of them in the block; their words are themselves.
struct CjkLeads {
    /// Hiragana and katakana, U+3040 to U+30FF, but for U+30A0 and U+30FB, which are punctuation.
    kana: u64,
    /// U+4E00 to U+9F7F.
    ideograph: u64,
    /// U+3001 to U+3003; U+FF08 to U+FF0A and U+FF0C.
    punctuation: u64,
}

impl CjkLeads {
    #[inline(always)]
    fn at(bytes: &[u8], at: usize, end: usize) -> Self {
        let first = masks_at(bytes, at, wide::cjk_firsts);
        let second = masks_at(bytes, at, wide::cjk_seconds).map(|mask| mask >> 1);
        let third = masks_at(bytes, at, wide::cjk_thirds).map(|mask| mask >> 2);
        let [e3, e4, e5_to_e8, e9, ef] = first;
        let [x80, x81_to_83, x82, x83, to_bd, from_b8, bc] = second;
        let [y81_to_83, ya0, ybb, comma_or_bracket] = third;
        let inside = below(((end - at).min(BLOCK) as u32).saturating_sub(2));
        CjkLeads {
            kana: e3 & x81_to_83 & !(x82 & ya0 | x83 & ybb) & inside,
            ideograph: (e5_to_e8 | e4 & from_b8 | e9 & to_bd) & inside,
            punctuation: (e3 & x80 & y81_to_83 | ef & bc & comma_or_bracket) & inside,
        }
    }
}

/// All bytes of characters of three bytes, from their first ones.
#[inline(always)]
fn three_bytes(first: u64) -> u64 {
    first | first << 1 | first << 2
}

#[inline(always)]
fn three_byte_char(bytes: &[u8]) -> char {
    let [a, b, c] = [bytes[0] & 0x0F, bytes[1] & 0x3F, bytes[2] & 0x3F].map(u32::from);
    char::from_u32(a << 12 | b << 6 | c).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Masks of the block at `at`, with one bit for each byte. Those of bytes that are not there are zero.
/// `masks` gives those of 16 bytes.
#[inline(always)]
pub(super) fn masks_at<const N: usize>(
    bytes: &[u8],
    at: usize,
    masks: impl Fn(&[u8; 16]) -> [u16; N],
) -> [u64; N] {
    let of = |block: &[u8; BLOCK]| {
        let mut all = [0; N];
        for (number, part) in block.as_chunks().0.iter().enumerate() {
            for (all, mask) in all.iter_mut().zip(masks(part)) {
                *all |= (mask as u64) << (16 * number);
            }
        }
        all
    };
    if let Some(block) = bytes[at..].first_chunk() {
        return of(block);
    }
    let beyond = at + BLOCK - bytes.len();
    let all = match bytes.last_chunk() {
        Some(block) => of(block),
        None => {
            let mut block = [0; BLOCK];
            block[BLOCK - bytes.len()..].copy_from_slice(bytes);
            of(&block)
        }
    };
    all.map(|mask| mask >> beyond)
}

#[cfg(target_arch = "x86_64")]
pub(super) mod wide {
    use std::arch::x86_64::*;

    /// A bit for each byte that is a letter or digit, a visible character, a space.
    #[inline(always)]
    pub fn classes(block: &[u8; 16]) -> [u16; 3] {
        // SAFETY: every x86_64 processor has SSE2.
        unsafe {
            let v = load(block);
            let letter = in_range(_mm_or_si128(v, _mm_set1_epi8(0x20)), b'a', 26);
            let alphanumeric = _mm_or_si128(letter, in_range(v, b'0', 10));
            let blank = _mm_or_si128(in_range(v, b'\t', 2), is(v, b'\r'));
            let space = _mm_or_si128(blank, is(v, b' '));
            [alphanumeric, in_range(v, b'!', 94), space].map(|v| _mm_movemask_epi8(v) as u16)
        }
    }

    /// A bit for each byte that `is_letter_lead`, and for each that continues a character.
    #[inline(always)]
    pub fn letters(block: &[u8; 16]) -> [u16; 2] {
        // SAFETY: every x86_64 processor has SSE2.
        unsafe {
            let v = load(block);
            let lead = _mm_or_si128(in_range(v, 0xC3, 9), in_range(v, 0xCF, 6));
            [lead, in_range(v, 0x80, 64)].map(|v| _mm_movemask_epi8(v) as u16)
        }
    }

    /// A bit for each byte that is 0xE3, 0xE4, 0xE5 to 0xE8, 0xE9, 0xEF.
    #[inline(always)]
    pub fn cjk_firsts(block: &[u8; 16]) -> [u16; 5] {
        // SAFETY: every x86_64 processor has SSE2.
        unsafe {
            let v = load(block);
            [is(v, 0xE3), is(v, 0xE4), in_range(v, 0xE5, 4), is(v, 0xE9), is(v, 0xEF)]
                .map(|v| _mm_movemask_epi8(v) as u16)
        }
    }

    /// A bit for each byte that is 0x80, 0x81 to 0x83, 0x82, 0x83, 0x80 to 0xBD, 0xB8 to 0xBF, 0xBC.
    #[inline(always)]
    pub fn cjk_seconds(block: &[u8; 16]) -> [u16; 7] {
        // SAFETY: every x86_64 processor has SSE2.
        unsafe {
            let v = load(block);
            let [x80, x82, x83, xbc] = [0x80, 0x82, 0x83, 0xBC].map(|byte| is(v, byte));
            let to_bd = in_range(v, 0x80, 0x3E);
            [x80, in_range(v, 0x81, 3), x82, x83, to_bd, in_range(v, 0xB8, 8), xbc]
                .map(|v| _mm_movemask_epi8(v) as u16)
        }
    }

    /// A bit for each byte that is 0x81 to 0x83, 0xA0, 0xBB, 0x88 to 0x8A or 0x8C.
    #[inline(always)]
    pub fn cjk_thirds(block: &[u8; 16]) -> [u16; 4] {
        // SAFETY: every x86_64 processor has SSE2.
        unsafe {
            let v = load(block);
            let last = _mm_or_si128(in_range(v, 0x88, 3), is(v, 0x8C));
            [in_range(v, 0x81, 3), is(v, 0xA0), is(v, 0xBB), last]
                .map(|v| _mm_movemask_epi8(v) as u16)
        }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(in crate::text) fn load(block: &[u8; 16]) -> __m128i {
        // SAFETY: `block` is 16 readable bytes, and the load asks for no alignment.
        unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
    }

    /// All ones in the bytes of `v` that are `byte`.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub(in crate::text) fn is(v: __m128i, byte: u8) -> __m128i {
        _mm_cmpeq_epi8(v, _mm_set1_epi8(byte as i8))
    }

    /// All ones in the bytes of `v` that lie in `low..low + count`.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub(in crate::text) fn in_range(v: __m128i, low: u8, count: u8) -> __m128i {
        // The range is shifted to begin at the least signed byte, so that one signed comparison is
        // enough.
        let shifted = _mm_sub_epi8(v, _mm_set1_epi8((low ^ 0x80) as i8));
        _mm_cmplt_epi8(shifted, _mm_set1_epi8((count ^ 0x80) as i8))
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) mod wide {
    pub fn classes(block: &[u8; 16]) -> [u16; 3] {
        let space = |b: &u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r');
        [
            mask(block, u8::is_ascii_alphanumeric),
            mask(block, u8::is_ascii_graphic),
            mask(block, space),
        ]
    }

    pub fn letters(block: &[u8; 16]) -> [u16; 2] {
        [mask(block, |&b| super::is_letter_lead(b)), mask(block, |b| matches!(b, 0x80..=0xBF))]
    }

    pub fn cjk_firsts(block: &[u8; 16]) -> [u16; 5] {
        let any = |low, high| mask(block, |b| (low..=high).contains(b));
        [any(0xE3, 0xE3), any(0xE4, 0xE4), any(0xE5, 0xE8), any(0xE9, 0xE9), any(0xEF, 0xEF)]
    }

    pub fn cjk_seconds(block: &[u8; 16]) -> [u16; 7] {
        let any = |low, high| mask(block, |b| (low..=high).contains(b));
        let [x80, x82, x83, xbc] = [0x80, 0x82, 0x83, 0xBC].map(|byte| any(byte, byte));
        [x80, any(0x81, 0x83), x82, x83, any(0x80, 0xBD), any(0xB8, 0xBF), xbc]
    }

    pub fn cjk_thirds(block: &[u8; 16]) -> [u16; 4] {
        let any = |low, high| mask(block, |b| (low..=high).contains(b));
        [any(0x81, 0x83), any(0xA0, 0xA0), any(0xBB, 0xBB), any(0x88, 0x8A) | any(0x8C, 0x8C)]
    }

    pub(in crate::text) fn mask(block: &[u8; 16], is_in: impl Fn(&u8) -> bool) -> u16 {
        block.iter().rev().fold(0, |mask, b| mask << 1 | is_in(b) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(bits: u32) -> TextOptions {
        TextOptions {
            clean_text: bits & 1 == 0,
            handle_chinese_chars: bits & 2 == 0,
            strip_accents: bits & 4 == 0,
            lowercase: bits & 8 == 0,
            split_punctuation: bits & 16 == 0,
        }
    }

    fn words(text: &PreTokenizer, raw: &str) -> Vec<String> {
        let mut words = Vec::new();
        text.segments(raw, |segment| {
            let mut word = String::new();
            text.normalize(segment.raw, &mut word);
            words.extend((!word.is_empty()).then_some(word));
        });
        words
    }

    #[test]
    fn chunks_are_what_is_between_white_space_that_bert_cuts_at() {
        let text = PreTokenizer::chunks();
        let raw = "Héllo,\u{b}a\u{c}b\u{85}c\t\u{0}d\u{a0}日本!\n\u{3000} e\u{301}\u{2028}f";
        let expected = ["Héllo,\u{b}a\u{c}b\u{85}c", "\u{0}d", "日本!", "e\u{301}", "f"];
        assert_eq!(words(&text, raw), expected);
        for bits in 0..32 {
            let rules = PreTokenizer::new(options(bits));
            let chunks = words(&text, raw);
            let of_chunks: Vec<_> = chunks.iter().flat_map(|chunk| words(&rules, chunk)).collect();
            assert_eq!(words(&rules, raw), of_chunks);
        }
    }

    #[test]
    fn bert_words() {
        let text = PreTokenizer::new(options(0));
        let raw =
            "Héllo, wörld!  don't\u{200b}stop 日本語x\u{0301}y the_longest_word_of_all1234567890";
        let expected =
            "hello , world ! don ' tstop 日 本 語 xy the _ longest _ word _ of _ all1234567890";
        assert_eq!(words(&text, raw), expected.split(' ').collect::<Vec<_>>());
    }

    /// Segments are cut before normalization, so no character may become both a cut and a letter.
    #[test]
    fn no_character_is_both_a_cut_and_part_of_a_word() {
        for bits in 0..32 {
            for c in '\0'..=char::MAX {
                let fates = fates(c, &options(bits));
                let cuts = fates.iter().filter(|f| matches!(f, Fate::Space | Fate::Alone(_)));
                assert!(cuts.count() == 0 || fates.len() == 1, "{c:?} {fates:?}");
            }
        }
    }

    #[test]
    fn letters_of_blocks_never_cut() {
        let letters = ('\u{80}'..='\u{7FF}').filter(|c| {
            let mut bytes = [0; 2];
            c.encode_utf8(&mut bytes);
            is_letter_lead(bytes[0])
        });
        let letters: String = letters.collect();
        assert_eq!(letters.chars().count(), 15 * 64);
        for bits in 0..32 {
            let text = PreTokenizer::new(options(bits));
            assert_eq!(text.segment_end(&letters, 0), letters.len());
        }
        let bytes = letters.as_bytes();
        assert_eq!(letters_at(bytes, 0, bytes.len()), u64::MAX);
        // A block ends behind its own bytes, and at a character that is not known.
        assert_eq!(letters_at("aé\u{3000}".as_bytes(), 0, 6), 0b000110);
        assert_eq!(letters_at("éé".as_bytes(), 0, 2), 0b11);
    }

    #[test]
    fn classes_are_those_of_the_bytes() {
        for b in 0..=255u8 {
            let classes = Classes::at(&[b; BLOCK], 0, BLOCK);
            let all = |is_in: bool| if is_in { u64::MAX } else { 0 };
            assert_eq!(classes.alphanumeric, all(b.is_ascii_alphanumeric()), "{b}");
            assert_eq!(classes.other, all(b.is_ascii_punctuation()), "{b}");
            assert_eq!(classes.space, all(matches!(b, b' ' | b'\t' | b'\n' | b'\r')), "{b}");
        }
        let bytes: Vec<u8> = b"a.\n\0".iter().copied().cycle().take(200).collect();
        for length in 1..bytes.len() {
            for at in (0..length).rev().take(80) {
                let classes = Classes::at(&bytes[..length], at, length);
                for i in 0..BLOCK {
                    let b = bytes[..length].get(at + i).copied().unwrap_or(b' ');
                    let bits = [classes.alphanumeric, classes.other, classes.space];
                    let found = bits.map(|bits| bits >> i & 1 == 1);
                    assert_eq!(found, [b == b'a', b == b'.', b == b' ' || b == b'\n']);
                }
            }
        }
    }

    /// The segments by their definition, character by character.
    fn plain_segments(text: &PreTokenizer, raw: &str) -> Vec<(usize, usize)> {
        let (mut segments, mut start) = (Vec::new(), None);
        for (at, c) in raw.char_indices() {
            let entry = text.entry(c);
            if entry.cuts() {
                segments.extend(start.take().map(|start| (start, at)));
            } else {
                start = start.or(Some(at));
            }
            if entry.kind() == ALONE {
                segments.push((at, at + c.len_utf8()));
            }
        }
        segments.extend(start.map(|start| (start, raw.len())));
        segments
    }

    #[test]
    fn segments_are_cut_at_every_place_in_a_block() {
        let pieces = [
            "a", "bcdefgh", " ", ".", "\t", "\r\n", "\0", "\u{b}", "é", "日", "\u{3000}",
            "\u{301}", "ん", "ー", "゠", "・", "だ", "ボ", "、", "，", "＋", "龥", "㐀",
            "\u{4DC0}", "가", "я", "’",
        ];
        let long = "x".repeat(70);
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        for round in 0..if cfg!(debug_assertions) { 1_000 } else { 20_000 } {
            let text = PreTokenizer::new(options(random(32) as u32));
            for _ in 0..if round < 40 { 40 } else { 1 } {
                let kinds = 1 + random(pieces.len());
                let mut raw: String = (0..random(120)).map(|_| pieces[random(kinds)]).collect();
                if random(8) == 0 {
                    raw.push_str(&long);
                }
                let mut found = Vec::new();
                text.segments(&raw, |s| {
                    assert_eq!(s.rest, &raw.as_bytes()[s.start..]);
                    assert!(s.alone.is_none() || !s.raw.is_ascii());
                    found.push((s.start, s.start + s.raw.len()));
                });
                assert_eq!(found, plain_segments(&text, &raw), "{raw:?}");
                let behind = ["", "x", "é. ", "日本", &long][random(5)];
                check_unordered(&text, &raw, behind);
            }
        }
    }

    #[test]
    fn every_character_is_cut_alike_in_any_order() {
        for bits in (0..32).step_by(if cfg!(debug_assertions) { 5 } else { 1 }) {
            let text = PreTokenizer::new(options(bits));
            let all: String = ('\0'..='\u{1F000}').collect();
            check_unordered(&text, &all, "");
            let between: String = ('\0'..='\u{1F000}').flat_map(|c| ['a', c]).collect();
            check_unordered(&text, &between, "b");
        }
    }

    fn check_unordered(text: &PreTokenizer, raw: &str, behind: &str) {
        let mut bag = Found::default();
        text.segments_into(raw, (raw.to_string() + behind).as_bytes(), &mut bag);
        // Characters that stand alone come as their words.
        let words = plain_segments(text, raw).into_iter().map(|(start, end)| {
            let entry = text.entry(first_char(&raw[start..]));
            let segment = raw[start..end].to_string();
            if entry.kind() == ALONE { entry.char().to_string() } else { segment }
        });
        let mut words: Vec<_> = words.collect();
        words.sort();
        bag.0.sort();
        assert!(bag.0 == words, "{raw:?}");
    }

    #[derive(Default)]
    struct Found(Vec<String>);

    impl SegmentBag for Found {
        fn alone_ascii(&mut self, word: u8, _at: usize) {
            assert!(word.is_ascii());
            self.alone(word as char);
        }

        fn alone(&mut self, word: char) {
            self.0.push(word.to_string());
        }

        fn segments(&mut self, bytes: &[u8], at: usize, mut starts: u64, mut ends: u64) {
            while starts != 0 {
                let [start, end] = [starts, ends].map(|bits| at + bits.trailing_zeros() as usize);
                self.segment(bytes, start, end);
                (starts, ends) = (starts & (starts - 1), ends & ends.wrapping_sub(1));
            }
            assert_eq!(ends, 0);
        }

        fn segment(&mut self, bytes: &[u8], start: usize, end: usize) {
            self.0.push(String::from_utf8(bytes[start..end].to_vec()).unwrap());
        }
    }
}
