//! Text to words by the parts of a `tokenizer.json`: a normalizer, and pre-tokenizers, under the names that
//! Hugging Face tokenizers gives them. They work as its `NormalizedString` and `PreTokenizedString` do, but on
//! the text of all words at once.

mod aligned;
mod matches;
mod normalizer;
mod pre_tokenizer;
mod quick_check;
mod sentencepiece;
mod spaces;
mod user_regex;

use std::ops::Range;

use serde::de::DeserializeOwned;

pub use aligned::{AlignedText, Origin};
use normalizer::{Normalizer, NormalizerJson};
pub use pre_tokenizer::Pieces;
use pre_tokenizer::{PreTokenizer, PreTokenizerJson, Prepend};
use spaces::SpaceSplitter;

use crate::base::error::{Error, Result};
use crate::text::marks::SPACE_MARK;
use crate::text::patterns::Pattern;
use crate::text::segments::SegmentSink;

/// A normalizer, and the steps of pre-tokenizers.
///
/// # Examples
///
/// ```
/// use wordpiece_core::text::{Composed, TextRules};
///
/// let digits = r#"{"type": "Digits", "individual_digits": false}"#;
/// let rules = Composed::new(Some(r#"{"type": "Lowercase"}"#), Some(digits), false).unwrap();
/// let mut words = Vec::new();
/// TextRules::from(rules).segments("In 1999", |word| words.push(word.raw.to_string()));
/// assert_eq!(words, ["in ", "1999"]);
/// ```
#[derive(Debug)]
pub struct Composed {
    normalizer: Option<Normalizer>,
    steps: Vec<PreTokenizer>,
    /// Whether what becomes of a piece depends on where in the raw text it begins.
    needs_origins: bool,
    /// Whether that is so of pieces that were changed before.
    needs_origins_of_changed: bool,
    marks: Option<SpaceMarks>,
    /// Splits texts before they are normalized, if that can be.
    spaces: Option<SpaceSplitter>,
    /// Whether words are the bytes of the text, and not GPT-2's characters for them.
    pub(crate) of_bytes: bool,
}

/// How rules that only write [`SPACE_MARK`]s for spaces put one before a text.
#[derive(Clone, Copy, Debug)]
struct SpaceMarks {
    /// Which texts one is put before.
    prepend: Prepend,
    /// Whether it is put before a text, too, that begins with one.
    repeats: bool,
}

impl Composed {
    /// Reads the parts.
    ///
    /// # Arguments
    ///
    /// * `normalizer`, `pre_tokenizer` - The parts as JSON; None: there is none.
    /// * `of_bytes` - Whether the model takes words as bytes ([`WordBoundary::Bytes`](super::WordBoundary)), so
    ///   that those are not written as GPT-2's characters at the end.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] for a part that is not known.
    pub fn new(
        normalizer: Option<&str>,
        pre_tokenizer: Option<&str>,
        of_bytes: bool,
    ) -> Result<Self> {
        let normalizer = normalizer.map(|json| read::<NormalizerJson>("normalizer", json));
        let normalizer = normalizer.transpose()?.map(NormalizerJson::build).transpose()?;
        let mut steps = Vec::new();
        if let Some(json) = pre_tokenizer {
            read::<PreTokenizerJson>("pre_tokenizer", json)?.build(&mut steps)?;
        }
        if of_bytes && !matches!(steps.pop(), Some(PreTokenizer::ByteCharacters)) {
            return Err(Error::data("the last pre-tokenizer does not write bytes"));
        }
        Ok(Composed { of_bytes, ..Composed::of(normalizer, steps) })
    }

    /// Those of GPT-2, as far as they are of text. `add_prefix_space`: whether a space is put before a text,
    /// and behind each added token, if there is none.
    pub fn gpt2(add_prefix_space: bool) -> Self {
        let prefix = add_prefix_space.then_some(PreTokenizer::PrefixSpace);
        let steps = prefix.into_iter().chain([PreTokenizer::Pattern(Pattern::GPT2)]);
        Composed { of_bytes: true, ..Composed::of(None, steps.collect()) }
    }

    fn of(normalizer: Option<Normalizer>, steps: Vec<PreTokenizer>) -> Self {
        let of_first = |step: &PreTokenizer| {
            matches!(step, PreTokenizer::Spaces { prepend: Prepend::First, .. })
        };
        let mut before = steps.iter().take_while(|step| !of_first(step));
        let needs_origins_of_changed = before.any(PreTokenizer::changes_text);
        let needs_origins = steps.iter().any(of_first);
        let needs_origins_of_changed = needs_origins && needs_origins_of_changed;
        let marks = match (&normalizer, &steps[..]) {
            (Some(normalizer), []) => {
                let prepends = normalizer.marks_spaces();
                let scheme = |p| if p { Prepend::Always } else { Prepend::Never };
                prepends.map(|p| SpaceMarks { prepend: scheme(p), repeats: true })
            }
            (None, &[PreTokenizer::Spaces { mark: SPACE_MARK, prepend }]) => {
                Some(SpaceMarks { prepend, repeats: false })
            }
            _ => None,
        };
        let spaces = SpaceSplitter::of(normalizer.as_ref(), &steps);
        Composed {
            normalizer,
            steps,
            needs_origins,
            needs_origins_of_changed,
            marks,
            spaces,
            of_bytes: false,
        }
    }

    /// Whether a text is normalized already, as far as can be told quickly, and its pieces can do without
    /// origins.
    #[doc(hidden)] // for fuzzing
    pub fn leaves(&self, text: &str) -> bool {
        !self.needs_origins_of_changed
            && self.normalizer.as_ref().is_none_or(|normalizer| normalizer.leaves(text))
    }

    /// A part of a text, normalized.
    ///
    /// # Arguments
    ///
    /// * `part` - The part.
    /// * `start` - Where it begins in the text, in bytes.
    /// * `aligned` - Whether the origins of its bytes are wanted.
    #[doc(hidden)] // for fuzzing
    pub fn normalized(&self, part: &str, start: usize, aligned: bool) -> AlignedText {
        let aligned = aligned || (self.needs_origins && start == 0);
        let mut text = AlignedText::new(part, start, aligned);
        if let Some(normalizer) = &self.normalizer {
            normalizer.normalize(&mut text);
        }
        text
    }

    /// Whether all that is done with a text is that spaces become [`SPACE_MARK`]s, and that one is put
    /// before it.
    pub(crate) fn only_marks_spaces(&self) -> bool {
        self.marks.is_some()
    }

    /// Whether one is put before a part of a text, of such rules. `is_first`: whether it is at the
    /// beginning of the text.
    pub(crate) fn puts_mark_before(&self, part: &str, is_first: bool) -> bool {
        self.marks.is_some_and(|SpaceMarks { prepend, repeats }| {
            prepend.is_wanted(is_first) && (repeats || !part.starts_with([' ', SPACE_MARK]))
        })
    }

    /// The character of a piece for one of its segment: of rules that only mark spaces, the mark.
    #[inline]
    pub(crate) fn in_piece(&self, c: char) -> char {
        if c == ' ' && self.marks.is_some() { SPACE_MARK } else { c }
    }

    /// The content of an added token as it is in normalized texts.
    pub fn normalized_token(&self, content: &str) -> String {
        match &self.normalizer {
            Some(Normalizer::SentencePiece(_)) => content.to_string(), // it leaves such symbols
            _ => self.normalized(content, 0, false).text().to_string(),
        }
    }

    /// The pieces of a normalized text. `is_first`: whether it is at the beginning of the raw text.
    #[doc(hidden)] // for fuzzing
    pub fn pieces(&self, text: AlignedText, is_first: bool) -> Pieces {
        let mut pieces = Pieces::new(text);
        self.steps.iter().for_each(|step| step.apply(&mut pieces, is_first));
        pieces
    }

    /// The pattern whose matches are the pieces, and whether a space is put before a text.
    fn in_place(&self) -> Option<(&Pattern, bool)> {
        match self.steps.as_slice() {
            [PreTokenizer::Pattern(pattern)] => Some((pattern, false)),
            [PreTokenizer::PrefixSpace, PreTokenizer::Pattern(pattern)]
                if *pattern == Pattern::GPT2 =>
            {
                Some((pattern, true))
            }
            _ => None,
        }
    }

    /// Whether the pieces of a text are parts of it, but for a space before it, which
    /// `split_in_place` finds.
    pub(crate) fn splits_in_place(&self) -> bool {
        self.in_place().is_some()
    }

    /// Whether that is so of every text: none is normalized.
    pub(crate) fn takes_text_as_it_is(&self) -> bool {
        self.normalizer.is_none() && self.splits_in_place()
    }

    /// Returns true if a piece may have several words.
    pub(crate) fn may_join_words(&self) -> bool {
        self.in_place().is_none_or(|(pattern, _)| pattern.joins_words())
    }

    /// Gives the pieces of a normalized text to `sink`. `bytes`: those of the text; more may be behind
    /// them.
    #[inline(always)]
    pub(crate) fn split_in_place(&self, text: &str, bytes: &[u8], sink: &mut impl SegmentSink) {
        let Some((pattern, adds_space)) = self.in_place() else { return };
        let mut from = 0;
        if adds_space && !text.is_empty() && !text.starts_with(' ') {
            from = pattern.end_behind_space(text);
            let mut first = String::from(' ');
            first.push_str(&text[..from]);
            sink.added(&first);
        }
        pattern.split(text, bytes, from, sink);
    }

    /// Whether texts are split into segments at spaces, by [`Composed::split_at_spaces`], before they are
    /// normalized.
    pub(crate) fn splits_at_spaces(&self) -> bool {
        self.spaces.is_some()
    }

    /// Gives the segments of a part of a text to `sink`: [`Composed::segment_pieces`] are their pieces. Returns
    /// whether that can be done; if not, the part must be normalized as a whole.
    ///
    /// # Arguments
    ///
    /// * `part` - The part.
    /// * `bytes` - Its bytes; more may be behind them.
    /// * `is_first` - Whether it is at the beginning of the text.
    /// * `aligned` - Whether the origins of the bytes of pieces are wanted.
    /// * `sink` - What takes the segments.
    #[inline(always)]
    pub(crate) fn split_at_spaces(
        &self,
        part: &str,
        bytes: &[u8],
        is_first: bool,
        aligned: bool,
        sink: &mut impl SegmentSink,
    ) -> bool {
        let Some(spaces) = &self.spaces else { return false };
        let start = spaces.start(self.normalizer.as_ref(), part, is_first, aligned);
        start.is_some_and(|start| {
            spaces.split(part, bytes, start, sink);
            true
        })
    }

    /// The pieces of such a segment. `aligned`: whether the origins of their bytes in it are wanted.
    pub(crate) fn segment_pieces(&self, segment: &str, aligned: bool) -> Pieces {
        let mut text = AlignedText::new(segment, 0, aligned);
        if let Some(normalizer) = &self.normalizer {
            let continues =
                |spaces: &SpaceSplitter| segment.starts_with(|c| spaces.is_separator(c));
            normalizer.normalize_segment(&mut text, self.spaces.as_ref().is_some_and(continues));
        }
        self.pieces(text, true)
    }

    /// Gives every piece of a text to `sink`, with the bytes of the changed text.
    pub(crate) fn segments_into(&self, text: &str, bytes: &[u8], sink: &mut impl SegmentSink) {
        if self.splits_in_place() && self.leaves(text) {
            return self.split_in_place(text, bytes, sink);
        }
        let pieces = self.pieces(self.normalized(text, 0, false), true);
        pieces.each(|Range { start, end }| sink.segment(pieces.text.text().as_bytes(), start, end));
    }
}

/// Reads a part of a `tokenizer.json`.
fn read<T: DeserializeOwned>(name: &str, json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| {
        let said = error.to_string().replace("unknown variant", "unknown type");
        let said = said.split(", expected one of").next().unwrap_or_default();
        Error::data(format!("{name}: {said}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::segments::{Each, Segment};
    use wordpiece_testing::Random;

    fn pieces(rules: &Composed, text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        let each = |piece: Segment<'_>| {
            let added = usize::from(piece.added);
            assert!(text[piece.start..].starts_with(&piece.raw[added..]));
            pieces.push(piece.raw.to_string());
        };
        rules.segments_into(text, text.as_bytes(), &mut Each(each));
        pieces
    }

    #[test]
    fn a_space_is_put_before_a_text() {
        let parts: &[&str] = &[
            "a", "Zq", " ", "  ", "\n", "\t \r\n", "'", "'s", "1", "42", ".", "!?", "\0", "é", "×",
            "日本", "\u{3000}", "\u{a0}", "½", "\u{301}", "word",
        ];
        let mut random = Random::new(16);
        for _ in 0..if cfg!(debug_assertions) { 3_000 } else { 60_000 } {
            let kinds: Vec<&str> =
                (0..1 + random.below(6)).map(|_| *random.choose(parts)).collect();
            let text: String = (0..random.below(90)).map(|_| *random.choose(&kinds)).collect();
            let plain = pieces(&Composed::gpt2(false), &text);
            let space = if text.is_empty() || text.starts_with(' ') { "" } else { " " };
            let with_space = format!("{space}{text}");
            let expected = pieces(&Composed::gpt2(false), &with_space);
            assert_eq!(plain.concat(), text);
            assert_eq!(pieces(&Composed::gpt2(true), &text), expected, "{text:?}");
        }
    }
}
