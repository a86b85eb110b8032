//! The rules by which text becomes words: BERT's rules, or the parts of a `tokenizer.json`. The kind of rules is
//! matched once for a text; the loops over its characters belong to each kind.

use std::sync::Arc;

use crate::text::bert::{BertRules, TextOptions};
use crate::text::composed::Composed;
use crate::text::segments::{Each, Segment, SegmentSink};

/// The rules by which text becomes words. They can be shared by threads.
///
/// Text is split in two steps, as [`BertRules`] does it: raw text into segments, and a segment into
/// what it becomes. That depends on the segment alone, so segments are the keys of tables and caches.
#[expect(clippy::large_enum_variant, reason = "few are made, and BERT's are read all the time")]
pub enum TextRules {
    /// BERT's normalizer and pre-tokenizer. A segment becomes one word, or nothing.
    Bert(BertRules),
    /// The parts of a `tokenizer.json`. A segment is a word already; it need not be in the text.
    Composed(Arc<Composed>),
}

impl From<TextOptions> for TextRules {
    fn from(options: TextOptions) -> Self {
        TextRules::Bert(BertRules::new(options))
    }
}

impl From<Composed> for TextRules {
    fn from(rules: Composed) -> Self {
        TextRules::Composed(Arc::new(rules))
    }
}

impl TextRules {
    /// Calls `each` with every segment of a text, in order. A segment need not be in the text (see
    /// [`Segment::added`]).
    #[inline(always)]
    pub fn segments(&self, text: &str, each: impl FnMut(Segment<'_>)) {
        self.segments_into(text, text.as_bytes(), &mut Each(each));
    }

    /// Pass every segment of a text to `sink`. `bytes`: the bytes of the text, which may continue after it.
    #[inline(always)]
    pub(crate) fn segments_into(&self, text: &str, bytes: &[u8], sink: &mut impl SegmentSink) {
        match self {
            TextRules::Bert(rules) => rules.segments_into(text, bytes, sink),
            TextRules::Composed(rules) => rules.segments_into(text, bytes, sink),
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
            TextRules::Composed(_) => {
                word.clear();
                word.push_str(raw);
            }
        }
    }

    /// Calls `each` with every character that [`TextRules::normalize`] writes, and the index of the
    /// character of `raw` that it comes from, counted from 0.
    #[inline]
    pub(crate) fn each_normalized(&self, raw: &str, mut each: impl FnMut(char, usize)) {
        match self {
            TextRules::Bert(rules) => rules.each_normalized(raw, each),
            TextRules::Composed(_) => {
                raw.chars().zip(0..).for_each(|(c, index)| each(c, index));
            }
        }
    }
}
