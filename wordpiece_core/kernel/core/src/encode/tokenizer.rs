//! Text to tokens: a model, with a cache of encoded segments.
//!
//! Nearly every segment of a text has been seen before. Its ids are copied from the slot of the
//! cache that the lookup has just touched, so that most words cost one cache line and no
//! normalization. Only other segments are normalized and tokenized by the model. Caches are bounded: a cache that
//! has grown too large is emptied, which costs less than deciding what to keep.

mod cache;
mod characters;
mod encoding;
mod plan;
mod session;
mod sinks;
mod source;
#[cfg(test)]
mod tests;
mod tokenize;
mod trimming;

use std::collections::HashSet;
use std::sync::Mutex;

use crate::base::error::{Error, Result, caught};
use crate::encode::added_tokens::{AddedToken, AddedTokenSearch};
use crate::encode::bpe::Superwords;
use crate::encode::model::{Model, ModelOptions};
use crate::encode::vocabulary::Vocabulary;
use crate::text::rules::TextRules;

use cache::Caches;
pub(crate) use encoding::Encoding;
use plan::Plan;
pub use session::Session;
pub(crate) use tokenize::MOST_BYTES;
use trimming::OffsetTrimming;

/// The parts of a tokenizer, as in a `tokenizer.json`.
pub struct TokenizerOptions<'a> {
    /// The tokens, by id. Of equal ones the last one is found.
    pub vocabulary: &'a [&'a str],
    /// The rules for splitting texts into words: the normalizer and the pre-tokenizer.
    pub text: TextRules,
    /// The model that splits words into tokens.
    pub model: ModelOptions<'a>,
    /// The id of the unknown token, if there is one.
    pub unk_id: Option<u32>,
    /// The tokens that are found in texts before anything else.
    pub added_tokens: Vec<AddedToken>,
    /// The ids of tokens that no word becomes, except for the unknown token.
    pub hidden: &'a [u32],
    /// For each post-processor that trims offsets its `add_prefix_space`: see `ByteLevel` and
    /// `RobertaProcessing` of Hugging Face tokenizers.
    pub trim_offsets: Vec<bool>,
}

impl<'a> TokenizerOptions<'a> {
    /// A tokenizer without an unknown token, without added tokens, and whose offsets are not trimmed.
    pub fn new(
        vocabulary: &'a [&'a str],
        text: impl Into<TextRules>,
        model: impl Into<ModelOptions<'a>>,
    ) -> Self {
        TokenizerOptions {
            vocabulary,
            text: text.into(),
            model: model.into(),
            unk_id: None,
            added_tokens: Vec::new(),
            hidden: &[],
            trim_offsets: Vec::new(),
        }
    }
}

/// Splits texts into the tokens of a vocabulary. It can be shared by threads.
///
/// # Examples
///
/// ```
/// use wordpiece_core::encode::{
///     AddedToken, RowColumns, RowOptions, Tokenizer, TokenizerOptions, WordPieceOptions,
/// };
/// use wordpiece_core::text::TextOptions;
///
/// let vocabulary = ["[UNK]", "[SEP]", "hug", "##s", "!"];
/// let sep = AddedToken { content: "[SEP]".into(), id: 1, ..AddedToken::default() };
/// let model = WordPieceOptions::default();
/// let options = TokenizerOptions::new(&vocabulary, TextOptions::default(), model);
/// let tokenizer =
///     Tokenizer::new(TokenizerOptions { unk_id: Some(0), added_tokens: vec![sep], ..options })?;
/// let columns = RowColumns { offset_mapping: true, ..RowColumns::default() };
/// let options = RowOptions { columns, ..RowOptions::default() };
/// let rows = tokenizer.encode(&["Hugs![SEP]pug"], &options)?;
/// assert_eq!(rows.ids, [2, 3, 4, 1, 0]);
/// assert_eq!(rows.offset_mapping.unwrap()[2..4], [3, 4]); // the s
/// # Ok::<(), wordpiece_core::Error>(())
/// ```
pub struct Tokenizer {
    /// The rules for splitting texts into words.
    text: TextRules,
    /// The model that splits words into tokens.
    model: Model,
    unk_id: Option<u32>,
    trimming: Option<OffsetTrimming>,
    /// The character that is put before each word, if the rules for text do not add it.
    word_mark: Option<char>,
    added_tokens: AddedTokenSearch,
    /// The ids of the added tokens that are special.
    special: HashSet<u32>,
    /// The way that texts are split into segments.
    plan: Plan,
    /// Merges of words and of superwords, if pieces may have several words. Only ids are found with them, not
    /// offsets.
    superwords: Option<Superwords>,
    /// The caches of sessions that have ended, for later sessions; None while a session uses them.
    caches: Mutex<Vec<Option<Caches>>>,
}

impl Tokenizer {
    /// Makes a tokenizer.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Option`] if an id is out of range, if WordPiece or Unigram has no unknown token, if only
    /// one of the [`Composed`](crate::text::Composed) rules and the model uses bytes, or if the added tokens are
    /// too large for a search; [`Error::Data`] if the token of a merge is missing, if a merge occurs twice, if the
    /// number of scores differs from the number of tokens, or if a score is not a number.
    pub fn new(options: TokenizerOptions<'_>) -> Result<Self> {
        caught(|| Tokenizer::of(options))
    }

    fn of(options: TokenizerOptions<'_>) -> Result<Self> {
        let TokenizerOptions { vocabulary: tokens, text, unk_id, hidden, .. } = options;
        let mut added_tokens = options.added_tokens;
        let special = added_tokens.iter().filter(|token| token.special);
        let special = special.map(|token| token.id).collect();
        let added = added_tokens.iter().map(|token| token.id);
        let mut given = added.chain(unk_id).chain(hidden.iter().copied());
        if let Some(id) = given.find(|&id| id as usize >= tokens.len()) {
            return Err(Error::option(format!("id {id} of {} tokens", tokens.len())));
        }
        let hidden = &hidden.iter().copied().collect();
        let vocabulary = Vocabulary { tokens, unk_id, hidden };
        let model = Model::new(vocabulary, options.model.clone())?;
        let superwords = match &text {
            TextRules::Composed(rules) if rules.may_join_words() => {
                model.superwords(vocabulary, &options.model)?
            }
            _ => None,
        };
        if let TextRules::Composed(rules) = &text {
            if rules.of_bytes != model.is_of_bytes() {
                return Err(Error::option("either the words or the tokens are of bytes, not both"));
            }
            for token in added_tokens.iter_mut().filter(|token| token.normalized) {
                token.content = rules.normalized_token(&token.content);
            }
        }
        let added_tokens = AddedTokenSearch::new(added_tokens)?;
        let plan = Plan::new(&text, &model, &added_tokens)?;
        let trims = !options.trim_offsets.is_empty();
        Ok(Tokenizer {
            plan,
            superwords,
            word_mark: match text {
                TextRules::Bert(_) => model.word_mark(),
                TextRules::Composed(_) => None,
            },
            trimming: trims.then(|| OffsetTrimming::new(tokens, options.trim_offsets)),
            added_tokens,
            special,
            caches: Mutex::default(),
            text,
            model,
            unk_id,
        })
    }

    /// The id of the unknown token, if there is one.
    pub fn unk_id(&self) -> Option<u32> {
        self.unk_id
    }

    /// Return true for WordPiece, which takes texts of any length.
    pub(crate) fn is_wordpiece(&self) -> bool {
        matches!(self.model, Model::WordPiece(_))
    }
}
