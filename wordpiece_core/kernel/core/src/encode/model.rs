//! What splits words into the tokens of a vocabulary: one of three models.

use crate::base::error::{Error, Result};
use crate::encode::bpe::{Bpe, BpeScratch, Parts};

use crate::encode::sampling::{Sampling, SamplingKind, SplitMix64};
use crate::encode::unigram::{Unigram, UnigramScratch, Weights};
use crate::encode::wordpiece::{Token, WordPiece};
use crate::text::marks::{SPACE_MARK, WordBoundary};

/// A model of tokens.
pub enum Model {
    /// Greedy longest match.
    WordPiece(WordPiece),
    /// Merges of pairs.
    Bpe(Box<Bpe>),
    /// The segmentation of the largest probability.
    Unigram(Unigram),
}

/// What words are tokenized in. It is kept, so that memory is asked for only once.
#[derive(Default)]
pub struct ModelScratch {
    bpe: BpeScratch,
    pub(super) unigram: UnigramScratch,
}

/// What is drawn from where words are tokenized at random.
pub struct Sampler {
    kind: SamplingKind,
    weights: Option<Weights>,
}

impl Model {
    /// What is put before each word, unless it begins with that.
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

    /// Where words can be split into parts whose tokens are together those of the word; None if they
    /// must not be split, or need not.
    pub(crate) fn parts(&self) -> Option<&Parts> {
        match self {
            Model::Bpe(bpe) => bpe.parts(),
            Model::WordPiece(_) | Model::Unigram(_) => None,
        }
    }

    /// Whether the symbols of words are bytes, which are written as other characters.
    pub(crate) fn is_of_bytes(&self) -> bool {
        matches!(self, Model::Bpe(bpe) if bpe.word_boundary() == WordBoundary::Bytes)
    }

    /// The unigram model whose segmentation of a word depends on what is before it, if it is one.
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
    /// * `tokens` - Where the tokens are written. It is cleared first. A length of 0 says that a token
    ///   stands for the same bytes as the one before it.
    #[inline]
    pub(crate) fn tokens(&self, word: &str, scratch: &mut ModelScratch, tokens: &mut Vec<Token>) {
        match self {
            Model::WordPiece(model) => model.tokens(word, tokens),
            Model::Bpe(bpe) => bpe.tokens(word, &mut scratch.bpe, tokens),
            Model::Unigram(unigram) => unigram.tokens(word, &mut scratch.unigram, tokens),
        }
    }

    /// The same at random.
    ///
    /// # Panics
    ///
    /// Panics if the sampler is not one of this model.
    pub(crate) fn sampled_tokens(
        &self,
        word: &str,
        sampler: &Sampler,
        random: &mut SplitMix64,
        scratch: &mut ModelScratch,
        tokens: &mut Vec<Token>,
    ) {
        match (self, &sampler.weights, sampler.kind) {
            (Model::Unigram(unigram), Some(weights), _) => {
                unigram.sampled_tokens(word, weights, random, &mut scratch.unigram, tokens);
            }
            (Model::Bpe(bpe), _, SamplingKind::Dropout(dropout)) => {
                bpe.sampled_tokens(word, dropout, random, &mut scratch.bpe, tokens);
            }
            _ => unreachable!("a sampler is made for one model"),
        }
    }

    /// Makes what is drawn from.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Option`] if words of this model are not drawn so.
    pub(crate) fn sampler(&self, sampling: &Sampling) -> Result<Sampler> {
        let weights = match (self, sampling.kind) {
            (Model::Unigram(unigram), SamplingKind::Alpha(alpha)) => Some(unigram.weights(alpha)),
            (Model::Bpe(_), SamplingKind::Dropout(_)) => None,
            (_, SamplingKind::Alpha(_)) => {
                return Err(Error::option("sample_alpha: only for the model unigram"));
            }
            (_, SamplingKind::Dropout(_)) => {
                return Err(Error::option("bpe_dropout: only for the model bpe"));
            }
        };
        Ok(Sampler { kind: sampling.kind, weights })
    }
}
