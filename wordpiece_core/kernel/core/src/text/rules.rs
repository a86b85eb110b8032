//! How text becomes words, whatever the tokenizer: BERT's way or another one. A text is matched with
//! its rules once; the loops over its characters are those of each kind of rules.

use std::sync::Arc;

use crate::base::memory;
use crate::text::composed::Composed;
use crate::text::metaspace::{Metaspace, marked_words};
use crate::text::pre_tokenize::{PreTokenizer, TextOptions};
use crate::text::segments::{Begin, Each, Segment, SegmentSink};

/// The rules by which text becomes words. They can be shared by threads.
///
/// Text is split in two steps, as [`PreTokenizer`] does it: raw text into segments, and a segment into
/// what it becomes. That depends on the segment alone, so segments are the keys of tables and caches.
#[expect(clippy::large_enum_variant, reason = "few are made, and BERT's are read all the time")]
pub enum TextRules {
    /// BERT's normalizer and pre-tokenizer. A segment becomes one word, or nothing.
    Bert(PreTokenizer),
    /// SentencePiece's. A segment becomes words that begin with `▁`; nearly always one.
    Metaspace(Arc<Metaspace>),
    /// The parts of a `tokenizer.json`. A segment is a word already; it need not be in the text.
    Composed(Arc<Composed>),
}

impl From<TextOptions> for TextRules {
    fn from(options: TextOptions) -> Self {
        TextRules::Bert(PreTokenizer::new(options))
    }
}

impl TextRules {
    /// The words of a normalized segment.
    pub fn words<'a>(&self, normalized: &'a str) -> impl Iterator<Item = &'a str> {
        let is_marked = matches!(self, TextRules::Metaspace(_));
        let marked = is_marked.then(|| marked_words(normalized)).into_iter().flatten();
        marked.chain((!is_marked && !normalized.is_empty()).then_some(normalized))
    }

    /// Calls `each` with every segment of a part of a text, in order.
    ///
    /// # Arguments
    ///
    /// * `text` - The part.
    /// * `begin` - Where it begins. Some rules put a space before a text.
    /// * `each` - What takes the segments. A segment need not be in the text (see
    ///   [`Segment::added`]).
    #[inline(always)]
    pub fn segments(&self, text: &str, begin: Begin, each: impl FnMut(Segment<'_>)) {
        self.segments_into(text, text.as_bytes(), begin, &mut Each(each));
    }

    /// Gives every segment of a part of a text to `sink`.
    ///
    /// # Arguments
    ///
    /// * `text` - The part.
    /// * `bytes` - The bytes of the part; more may be behind them.
    /// * `begin` - Where it begins.
    /// * `sink` - What takes the segments.
    #[inline(always)]
    pub fn segments_into(
        &self,
        text: &str,
        bytes: &[u8],
        begin: Begin,
        sink: &mut impl SegmentSink,
    ) {
        match self {
            TextRules::Bert(rules) => rules.segments_into(text, bytes, sink),
            TextRules::Metaspace(rules) => rules.segments_into(text, bytes, begin, sink),
            TextRules::Composed(rules) => {
                rules.segments_into(text, bytes, (begin != Begin::Text).into(), sink);
            }
        }
    }

    /// How many bytes of a section of a text, from its beginning on, make its words. What is behind
    /// them becomes nothing at the end of a section, though it might be a word elsewhere.
    pub fn section_end(&self, section: &str) -> usize {
        match self {
            TextRules::Bert(_) | TextRules::Composed(_) => section.len(),
            TextRules::Metaspace(rules) => rules.section_end(section),
        }
    }

    /// How many characters the offsets of a section are too small in Hugging Face tokenizers.
    pub fn lost_characters(&self, section: &str) -> u32 {
        match self {
            TextRules::Bert(_) | TextRules::Composed(_) => 0,
            TextRules::Metaspace(rules) => rules.lost_characters(section),
        }
    }

    /// Normalizes a segment.
    ///
    /// # Arguments
    ///
    /// * `raw` - The segment, as [`TextRules::segments`] gives it.
    /// * `word` - Where the result is written. It is cleared first, and left empty if nothing of the
    ///   segment is left.
    #[inline]
    pub fn normalize(&self, raw: &str, word: &mut String) {
        match self {
            TextRules::Bert(rules) => rules.normalize(raw, word),
            TextRules::Composed(rules) if rules.only_marks_spaces() => {
                word.clear();
                raw.chars().for_each(|c| memory::push_char(word, rules.in_piece(c)));
            }
            TextRules::Composed(_) => {
                word.clear();
                memory::push_str(word, raw);
            }
            TextRules::Metaspace(rules) => {
                word.clear();
                rules.each_normalized(raw, |c, _| memory::push_char(word, c));
            }
        }
    }

    /// Calls `each` with every character that [`TextRules::normalize`] writes, and the index of the
    /// character of `raw` that it comes from, counted from 0.
    #[inline]
    pub fn each_normalized(&self, raw: &str, mut each: impl FnMut(char, usize)) {
        match self {
            TextRules::Bert(rules) => rules.each_normalized(raw, each),
            TextRules::Composed(rules) => {
                raw.chars().zip(0..).for_each(|(c, index)| each(rules.in_piece(c), index));
            }
            TextRules::Metaspace(rules) => rules.each_normalized(raw, each),
        }
    }
}
