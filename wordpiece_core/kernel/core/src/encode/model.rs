//! The three models that split words into the tokens of a vocabulary.

use crate::base::error::Result;
use crate::encode::bpe::{Bpe, BpeOptions, BpeScratch, Parts, Superwords};
use crate::encode::unigram::{Unigram, UnigramOptions, UnigramScratch};
use crate::encode::vocabulary::{Token, Vocabulary};
use crate::encode::wordpiece::{WordPiece, WordPieceOptions};
use crate::text::marks::{SPACE_MARK, WordBoundary};

/// The options of a model, in addition to the vocabulary.
#[derive(Clone, Debug)]
pub enum ModelOptions<'a> {
    /// Greedy longest match.
    WordPiece(WordPieceOptions<'a>),
    /// Merges of pairs.
    Bpe(BpeOptions<'a>),
    /// The segmentation of the largest probability.
    Unigram(UnigramOptions<'a>),
}

impl<'a> From<WordPieceOptions<'a>> for ModelOptions<'a> {
    fn from(options: WordPieceOptions<'a>) -> Self {
        ModelOptions::WordPiece(options)
    }
}

impl<'a> From<BpeOptions<'a>> for ModelOptions<'a> {
    fn from(options: BpeOptions<'a>) -> Self {
        ModelOptions::Bpe(options)
    }
}

impl<'a> From<UnigramOptions<'a>> for ModelOptions<'a> {
    fn from(options: UnigramOptions<'a>) -> Self {
        ModelOptions::Unigram(options)
    }
}

/// A model of tokens.
pub(crate) enum Model {
    WordPiece(WordPiece),
    Bpe(Box<Bpe>),
    Unigram(Unigram),
}

/// Scratch memory for tokenizing words, kept to avoid allocations.
#[derive(Default)]
pub struct ModelScratch {
    pub(super) bpe: BpeScratch,
    pub(super) unigram: UnigramScratch,
}

impl Model {
    /// Makes the model of a vocabulary.
    ///
    /// # Errors
    ///
    /// Returns the errors of the models; [`Error::Option`] if WordPiece or Unigram has no unknown token.
    pub(crate) fn new(vocabulary: Vocabulary<'_>, options: ModelOptions<'_>) -> Result<Self> {
        Ok(match options {
            ModelOptions::WordPiece(options) => {
                Model::WordPiece(WordPiece::new(vocabulary, options)?)
            }
            ModelOptions::Bpe(options) => Model::Bpe(Box::new(Bpe::new(vocabulary, options)?)),
            ModelOptions::Unigram(options) => Model::Unigram(Unigram::new(vocabulary, options)?),
        })
    }

    /// Returns the merges of words and of superwords, if pieces of several words can be encoded word by word.
    ///
    /// # Errors
    ///
    /// Returns the errors of the models.
    pub(crate) fn superwords(
        &self,
        vocabulary: Vocabulary<'_>,
        options: &ModelOptions<'_>,
    ) -> Result<Option<Superwords>> {
        match (self, options) {
            (Model::Bpe(bpe), ModelOptions::Bpe(options)) => {
                Superwords::new(vocabulary, options, bpe)
            }
            _ => Ok(None),
        }
    }

    /// Return the character that is put before each word that does not begin with it.
    pub(crate) fn word_mark(&self) -> Option<char> {
        match self {
            Model::WordPiece(_) => None,
            Model::Unigram(_) => Some(SPACE_MARK),
            Model::Bpe(bpe) => match bpe.word_boundary() {
                WordBoundary::SpaceMark => Some(SPACE_MARK),
                WordBoundary::Bytes => Some(' '),
                WordBoundary::None | WordBoundary::End => None,
            },
        }
    }

    /// Return the rule for splitting words into parts, whose tokens together are the tokens of the word; None if
    /// words must not be split, or need not be.
    pub(crate) fn parts(&self) -> Option<&Parts> {
        match self {
            Model::Bpe(bpe) => bpe.parts(),
            Model::WordPiece(_) | Model::Unigram(_) => None,
        }
    }

    /// Return true if the symbols of words are bytes, written as GPT-2's characters.
    pub(crate) fn is_of_bytes(&self) -> bool {
        matches!(self, Model::Bpe(bpe) if bpe.word_boundary() == WordBoundary::Bytes)
    }

    /// Return the unigram model, if its segmentation of a word depends on the text before it.
    pub(crate) fn rounding(&self) -> Option<&Unigram> {
        match self {
            Model::Unigram(unigram) if unigram.rounds() => Some(unigram),
            _ => None,
        }
    }

    /// Splits a word, with its mark, into its tokens.
    ///
    /// # Arguments
    ///
    /// * `word` - The word, normalized, with its mark.
    /// * `scratch` - What it is tokenized in.
    /// * `tokens` - Where the tokens are written. It is cleared first. A token of length 0
    ///   covers the same bytes as the one before it.
    #[inline]
    pub(crate) fn tokens(&self, word: &str, scratch: &mut ModelScratch, tokens: &mut Vec<Token>) {
        match self {
            Model::WordPiece(model) => model.tokens(word, tokens),
            Model::Bpe(bpe) => bpe.tokens(word, &mut scratch.bpe, tokens),
            Model::Unigram(unigram) => unigram.tokens(word, &mut scratch.unigram, tokens),
        }
    }
}
