//! Text to tokens: a model, behind a cache of segments that were encoded before.
//!
//! Nearly every segment of a text has been seen before. Its ids are copied from the slot of the
//! cache that the lookup has just touched, so that most words cost one cache line and no
//! normalization. A character that stands alone (punctuation, CJK) has its id in a table. Only the
//! rest is normalized and tokenized by the model. The caches are bounded: one that has grown too
//! large is emptied, which costs less than deciding what to keep.

mod cache;
mod composed;
mod encoding;
mod session;
mod spans;
#[cfg(test)]
mod tests;
mod tokenize;
mod trimming;

use std::sync::Mutex;

use aho_corasick::AhoCorasick;

use crate::base::error::Result;
use crate::encode::added_tokens::{AddedToken, AddedTokenSearch};
use crate::encode::model::Model;
use crate::text::marks::SPACE_MARK;
use crate::text::rules::TextRules;

use cache::{Caches, HeldIds};
pub use encoding::{Encoding, Span};
pub use session::Session;
pub(crate) use tokenize::MOST_BYTES;
pub use trimming::OffsetTrimming;

/// What an encoder does with texts.
pub struct EncoderOptions {
    /// How texts are split into words.
    pub text: TextRules,
    /// What splits words into tokens.
    pub model: Model,
    /// How many ids the model has: each is smaller.
    pub vocab_size: usize,
    /// The id of the unknown token, if there is one.
    pub unk_id: Option<u32>,
    /// The strings that are found in texts before anything else.
    pub added_tokens: Vec<AddedToken>,
    /// How offsets are trimmed, if they are.
    pub trimming: Option<OffsetTrimming>,
}

impl EncoderOptions {
    /// The options of a tokenizer without an unknown token, without added tokens, and whose offsets are not trimmed.
    /// `vocab_size`: how many ids the model has.
    pub fn new(text: impl Into<TextRules>, model: Model, vocab_size: usize) -> Self {
        EncoderOptions {
            text: text.into(),
            model,
            vocab_size,
            unk_id: None,
            added_tokens: Vec::new(),
            trimming: None,
        }
    }
}

/// Splits texts into the tokens of a vocabulary. It can be shared by threads; each of them encodes with
/// a [`Session`] of its own.
///
/// # Examples
///
/// ```
/// use wordpiece_core::encode::{AddedToken, Encoder, EncoderOptions, Encoding, Model, UnkScope, WordPiece};
/// use wordpiece_core::text::TextOptions;
///
/// let vocabulary = ["[UNK]", "[SEP]", "hug", "##s", "!"].into_iter().zip(0..);
/// let sep = AddedToken { content: "[SEP]".into(), id: 1, ..AddedToken::default() };
/// let model = WordPiece::new(vocabulary, "##", 0, UnkScope::Word, 100).unwrap();
/// let options = EncoderOptions::new(TextOptions::default(), Model::WordPiece(model), 5);
/// let encoder = Encoder::new(EncoderOptions { added_tokens: vec![sep], ..options }).unwrap();
/// let mut encoding = Encoding::default();
/// encoder.session(0).encode("Hugs![SEP]pug", true, &mut encoding);
/// assert_eq!(encoding.ids(), [2, 3, 4, 1, 0]);
/// assert_eq!((encoding.spans[1].start, encoding.spans[1].end), (3, 4)); // the s
/// ```
pub struct Encoder {
    options: EncoderOptions,
    /// What is put before each word, where the rules of text do not do it.
    word_mark: Option<char>,
    added_tokens: AddedTokenSearch,
    /// What is searched for in texts that only marks for spaces are written in: where it is found, they
    /// may have added tokens that are `normalized`.
    late_tokens: Option<AhoCorasick>,
    /// Whether texts are split at spaces before they are normalized.
    splits_at_spaces: bool,
    held_ids: HeldIds,
    /// The caches of sessions that have ended, for those to come; None: of one that has not ended.
    caches: Mutex<Vec<Option<Caches>>>,
}

impl Encoder {
    /// Makes the encoder of a model.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Option`](crate::base::error::Error::Option) if no search for the added tokens can
    /// be built.
    pub fn new(mut options: EncoderOptions) -> Result<Self> {
        let mut added_tokens = std::mem::take(&mut options.added_tokens);
        if let TextRules::Composed(rules) = &options.text {
            for token in added_tokens.iter_mut().filter(|token| token.normalized) {
                token.content = rules.normalized_token(&token.content);
            }
        }
        let added_tokens = AddedTokenSearch::new(added_tokens)?;
        let late_tokens = match &options.text {
            TextRules::Composed(rules) if rules.only_marks_spaces() => {
                added_tokens.late_without(&[' ', SPACE_MARK])?
            }
            _ => None,
        };
        let splits_at_spaces = match &options.text {
            TextRules::Composed(rules) => {
                rules.splits_at_spaces() && !added_tokens.has_late() && !options.model.is_of_bytes()
            }
            TextRules::Bert(_) => false,
        };
        Ok(Encoder {
            late_tokens,
            splits_at_spaces,
            word_mark: match options.text {
                TextRules::Bert(_) => options.model.word_mark(),
                TextRules::Composed(_) => None,
            },
            added_tokens,
            held_ids: HeldIds::below(options.vocab_size),
            caches: Mutex::default(),
            options,
        })
    }

    /// The id of the unknown token, if there is one.
    pub fn unk_id(&self) -> Option<u32> {
        self.options.unk_id
    }

    /// Whether this is WordPiece, which takes texts of any length.
    pub(crate) fn is_wordpiece(&self) -> bool {
        matches!(self.options.model, Model::WordPiece(_))
    }
}
