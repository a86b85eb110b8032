//! Text to words by the parts of a `tokenizer.json`: a normalizer, and pre-tokenizers, under the names that
//! Hugging Face tokenizers gives them. They work like its `NormalizedString` and `PreTokenizedString`, but on
//! the concatenated text of all words.

mod aligned;
mod matches;
mod metaspace;
mod normalizer;
mod pre_tokenizer;
mod quick_check;
mod sentencepiece;
mod spaces;
mod user_regex;

use std::ops::Range;

use serde::de::DeserializeOwned;

pub use aligned::AlignedText;
pub(crate) use metaspace::Metaspace;
use normalizer::{Normalizer, NormalizerJson};
pub use pre_tokenizer::Pieces;
use pre_tokenizer::{PreTokenizer, PreTokenizerJson, Prepend};
pub(crate) use spaces::SpaceSplitter;

use crate::base::error::{Error, Result};
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
    /// The steps, if pieces are the matches of a pattern.
    pattern: Option<PatternSplitter>,
    /// True if a step depends on the offset of a piece in the raw text.
    needs_origins: bool,
    /// True if such a step follows a step that changes the text.
    needs_origins_of_changed: bool,
    /// True if words are bytes of the text instead of GPT-2's characters for bytes.
    pub(crate) of_bytes: bool,
}

/// Splits normalized text into the matches of a pattern.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatternSplitter {
    pattern: Pattern,
    /// True if a space is put before a text that begins with none.
    prefix_space: bool,
}

impl PatternSplitter {
    fn of_steps(steps: &[PreTokenizer]) -> Option<Self> {
        match *steps {
            [PreTokenizer::Pattern(pattern)] => {
                Some(PatternSplitter { pattern, prefix_space: false })
            }
            [PreTokenizer::PrefixSpace, PreTokenizer::Pattern(Pattern::GPT2)] => {
                Some(PatternSplitter { pattern: Pattern::GPT2, prefix_space: true })
            }
            _ => None,
        }
    }

    /// Passes the pieces of a text to `sink`. `bytes` are the bytes of the text, and may continue after it.
    #[inline(always)]
    pub(crate) fn split(&self, text: &str, bytes: &[u8], sink: &mut impl SegmentSink) {
        let mut from = 0;
        if self.prefix_space && !text.is_empty() && !text.starts_with(' ') {
            from = self.pattern.end_behind_space(text);
            let mut first = String::from(' ');
            first.push_str(&text[..from]);
            sink.added(&first);
        }
        self.pattern.split(text, bytes, from, sink);
    }
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

    /// Return the rules of GPT-2, without its characters for bytes. `add_prefix_space`: true to put a space
    /// before a text and after each added token, unless there is one.
    pub fn gpt2(add_prefix_space: bool) -> Self {
        let prefix = add_prefix_space.then_some(PreTokenizer::PrefixSpace);
        let steps = prefix.into_iter().chain([PreTokenizer::Pattern(Pattern::GPT2)]);
        Composed { of_bytes: true, ..Composed::of(None, steps.collect()) }
    }

    fn of(normalizer: Option<Normalizer>, steps: Vec<PreTokenizer>) -> Self {
        let is_first_only = |step: &PreTokenizer| {
            matches!(step, PreTokenizer::Spaces { prepend: Prepend::First, .. })
        };
        let mut before = steps.iter().take_while(|step| !is_first_only(step));
        let is_changed = before.any(PreTokenizer::changes_text);
        let needs_origins = steps.iter().any(is_first_only);
        Composed {
            pattern: PatternSplitter::of_steps(&steps),
            needs_origins,
            needs_origins_of_changed: needs_origins && is_changed,
            normalizer,
            steps,
            of_bytes: false,
        }
    }

    /// Return true if a text is known to be normalized already and needs no origins. The check is quick and may
    /// return false for a normalized text.
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
    /// * `aligned` - True to keep the origins of its bytes.
    #[doc(hidden)] // for fuzzing
    pub fn normalized(&self, part: &str, start: usize, aligned: bool) -> AlignedText {
        let aligned = aligned || (self.needs_origins && start == 0);
        let mut text = AlignedText::new(part, start, aligned);
        if let Some(normalizer) = &self.normalizer {
            normalizer.normalize(&mut text);
        }
        text
    }

    /// Return the content of an added token in normalized texts.
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

    /// Return the splitter of the normalized text, if pieces are the matches of a pattern.
    pub(crate) fn pattern(&self) -> Option<PatternSplitter> {
        self.pattern
    }

    /// Return true if a piece may consist of several words.
    pub(crate) fn may_join_words(&self) -> bool {
        self.pattern.is_none_or(|splitter| splitter.pattern.joins_words())
    }

    /// Pass every piece of a text to `sink`, with the bytes of the changed text.
    pub(crate) fn segments_into(&self, text: &str, bytes: &[u8], sink: &mut impl SegmentSink) {
        if let Some(pattern) = self.pattern
            && self.leaves(text)
        {
            return pattern.split(text, bytes, sink);
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
