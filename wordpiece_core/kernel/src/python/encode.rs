//! Encoding and packing, for Python.

use arrow_array::types::{Float64Type, Int32Type, UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef};
use foldhash::{HashMap, HashSet};
use pyo3::prelude::*;

use super::rules::Rules;
use super::shards::{PyIdPages, PyPages};
use super::text::text_rules;
use super::{PyArrowArray, import, import_batch, run, unknown};
use crate::arrow;
use crate::arrow::count::WordTableBatch;
use crate::arrow::encode::IdType;
use crate::base::error::{Error, Result};
use crate::base::memory;
use crate::encode::added_tokens::AddedToken;
use crate::encode::blocks::encode_blocks;
use crate::encode::bpe::{Bpe, BpeOptions};
use crate::encode::encoder::{Encoder, EncoderOptions, OffsetTrimming};
use crate::encode::matcher::UnkScope;
use crate::encode::measure::{Measurer, measure};
use crate::encode::model::{Model, WordPiece};
use crate::encode::pack::{PackOptions, Packer};
use crate::encode::rows::{AddedTokens, RowColumns, RowOptions, Rows, TextPair, Truncation};
use crate::encode::sampling::{Sampling, SamplingKind};
use crate::encode::unigram::{Unigram, UnigramOptions};
use crate::text::marks::WordBoundary;
use crate::text::rules::TextRules;

/// Byte-pair encoding, for an encoder.
#[pyclass(name = "Bpe", frozen)]
pub(super) struct PyBpe {
    merges: Vec<(u32, u32)>,
    word_boundary: WordBoundary,
    byte_fallback: bool,
    fuse_unk: bool,
    ignore_merges: bool,
}

#[pymethods]
impl PyBpe {
    /// `left` and `right`: the ids of the pairs, by rank.
    #[new]
    #[pyo3(signature = (left, right, *, word_boundary, byte_fallback, fuse_unk, ignore_merges))]
    fn new(
        left: &Bound<'_, PyAny>,
        right: &Bound<'_, PyAny>,
        word_boundary: Option<&str>,
        byte_fallback: bool,
        fuse_unk: bool,
        ignore_merges: bool,
    ) -> PyResult<Self> {
        let word_boundary =
            super::word_boundary("word_boundary", word_boundary, "</w>, ▁ or bytes")?;
        let sides = [import(left)?, import(right)?];
        let left = arrow::encode::values::<UInt32Type>(&sides[0])?;
        let right = arrow::encode::values::<UInt32Type>(&sides[1])?;
        if left.len() != right.len() {
            let message = format!("merges: {} on the left, {} right", left.len(), right.len());
            return Err(Error::data(message).into());
        }
        let merges = left.iter().copied().zip(right.iter().copied()).collect();
        Ok(PyBpe { merges, word_boundary, byte_fallback, fuse_unk, ignore_merges })
    }
}

impl PyBpe {
    fn model(&self, vocabulary: &[&str], unk_id: Option<u32>, hidden: &[u32]) -> Result<Model> {
        let &PyBpe { word_boundary, byte_fallback, fuse_unk, ignore_merges, .. } = self;
        let options = BpeOptions { word_boundary, unk_id, byte_fallback, fuse_unk, ignore_merges };
        Ok(Model::Bpe(Box::new(Bpe::new(vocabulary, &self.merges, hidden, options)?)))
    }
}

/// A unigram language model, for an encoder.
#[pyclass(name = "Unigram", frozen)]
pub(super) struct PyUnigram {
    scores: Vec<f64>,
    byte_fallback: bool,
    of_sentencepiece: bool,
}

#[pymethods]
impl PyUnigram {
    /// `scores`: by id.
    #[new]
    #[pyo3(signature = (scores, *, byte_fallback, of_sentencepiece))]
    fn new(
        scores: &Bound<'_, PyAny>,
        byte_fallback: bool,
        of_sentencepiece: bool,
    ) -> PyResult<Self> {
        let scores = import(scores)?;
        let scores = arrow::encode::values::<Float64Type>(&scores)?.to_vec();
        Ok(PyUnigram { scores, byte_fallback, of_sentencepiece })
    }
}

impl PyUnigram {
    fn model(&self, vocabulary: &[&str], unk_id: Option<u32>, hidden: &[u32]) -> Result<Model> {
        let unk_id = unk_id.ok_or_else(|| Error::option("unk_token: unigram needs one"))?;
        let &PyUnigram { byte_fallback, of_sentencepiece, .. } = self;
        let scores = &self.scores;
        let options = UnigramOptions { scores, unk_id, byte_fallback, of_sentencepiece, hidden };
        Ok(Model::Unigram(Unigram::new(vocabulary, options)?))
    }
}

/// A model of tokens from Python.
#[derive(FromPyObject)]
enum AnyModel {
    Bpe(Py<PyBpe>),
    Unigram(Py<PyUnigram>),
}

/// The ids of the tokens before, between and after texts; the token type of a second text; and whether
/// it is the same in all rows of a stride, if these tokens are added.
type Template = (Vec<u32>, Vec<u32>, Vec<u32>, i8, bool);

/// Encodes texts by a vocabulary.
#[pyclass(name = "Encoder", frozen)]
pub(super) struct PyEncoder {
    encoder: Encoder,
    template: Option<Template>,
    pad_id: Option<u32>,
}

#[pymethods]
impl PyEncoder {
    #[new]
    #[pyo3(signature = (vocab, *, clean_text, handle_chinese_chars, strip_accents, lowercase,
        pre_tokenizer, unk_token, continuing_prefix, max_word_length, unk_scope, added_tokens,
        hidden, model=None, rules=None, template=None, pad_id=None,
        trim_offsets=vec![]))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        vocab: Vec<String>,
        clean_text: bool,
        handle_chinese_chars: bool,
        strip_accents: bool,
        lowercase: bool,
        pre_tokenizer: &str,
        unk_token: Option<&str>,
        continuing_prefix: String,
        max_word_length: usize,
        unk_scope: &str,
        added_tokens: Vec<(String, bool, bool)>,
        hidden: Vec<String>,
        model: Option<AnyModel>,
        rules: Option<Rules<'_>>,
        template: Option<Template>,
        pad_id: Option<u32>,
        trim_offsets: Vec<bool>,
    ) -> PyResult<Self> {
        let own =
            text_rules(clean_text, handle_chinese_chars, strip_accents, lowercase, pre_tokenizer)?;
        let text = rules.map_or(own, TextRules::from);
        let unk_scope = match unk_scope {
            "word" => UnkScope::Word,
            "character" => UnkScope::Character,
            other => return Err(unknown("unk_scope", other, "word or character")),
        };
        run(py, || {
            let vocabulary: Vec<&str> = vocab.iter().map(String::as_str).collect();
            let tokens = vocabulary.iter().copied().zip(0..);
            let ids: HashMap<&str, u32> = tokens.clone().collect();
            let known = |token: &str| {
                let id = ids.get(token).copied();
                id.ok_or_else(|| Error::option(format!("the vocabulary has no {token}")))
            };
            let added_tokens = added_tokens.into_iter().map(|(content, lstrip, normalized)| {
                Ok(AddedToken { id: known(&content)?, content, lstrip, normalized })
            });
            let added_tokens: Vec<_> = added_tokens.collect::<Result<_>>()?;
            let unk_id = unk_token.map(known).transpose()?;
            let hidden: Vec<u32> =
                hidden.iter().map(|token| known(token)).collect::<Result<_>>()?;
            let model = match model {
                Some(AnyModel::Bpe(bpe)) => bpe.get().model(&vocabulary, unk_id, &hidden)?,
                Some(AnyModel::Unigram(unigram)) => {
                    unigram.get().model(&vocabulary, unk_id, &hidden)?
                }
                None => {
                    let needed = || Error::option("unk_token: wordpiece needs one");
                    let (unk, most) = (unk_id.ok_or_else(needed)?, max_word_length);
                    let prefix = &continuing_prefix;
                    let hidden: HashSet<u32> = hidden.iter().copied().collect();
                    let shown = tokens.filter(|(_, id)| !hidden.contains(id));
                    Model::WordPiece(WordPiece::new(shown, prefix, unk, unk_scope, most)?)
                }
            };
            let trims = !trim_offsets.is_empty();
            let trimming = trims.then(|| OffsetTrimming::new(&vocabulary, trim_offsets));
            let vocab_size = vocabulary.len();
            let options =
                EncoderOptions { text, model, vocab_size, unk_id, added_tokens, trimming };
            Ok(PyEncoder { encoder: Encoder::new(options)?, template, pad_id })
        })
    }

    /// Encodes texts, or pairs of texts, on several threads. Returns record batches of `input_ids`, of the
    /// columns and, with a stride, of `source_rows: int64`; then the number of tokens in them, how many
    /// of these are unknown, the number of words, and the number of their tokens. With `id_type` "uint16"
    /// the vocabulary must have 65,536 tokens at most. With `pages`, `least_ids` ids and more become
    /// pages, and there is no batch; then columns, a stride, and threads beside this one are left out.
    #[pyo3(signature = (texts, pairs=None, *, add_special_tokens, max_length, truncation, stride,
        padding, columns, id_type, threads, sample_alpha=None, bpe_dropout=None, sample_seed=None,
        pages=None, least_ids=0))]
    #[allow(clippy::too_many_arguments)]
    fn encode(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        pairs: Option<&Bound<'_, PyAny>>,
        add_special_tokens: bool,
        max_length: Option<usize>,
        truncation: &str,
        stride: Option<usize>,
        padding: bool,
        columns: Vec<String>,
        id_type: &str,
        threads: usize,
        sample_alpha: Option<f64>,
        bpe_dropout: Option<f64>,
        sample_seed: Option<u64>,
        pages: Option<Py<PyIdPages>>,
        least_ids: usize,
    ) -> PyResult<(Vec<PyArrowArray>, Option<PyPages>, [usize; 6])> {
        if threads == 0 {
            return Err(Error::option("threads: 0 is not a whole number from 1").into());
        }
        if pages.is_some() && (threads > 1 || stride.is_some() || !columns.is_empty()) {
            return Err(Error::option("pages: of ids alone, on one thread").into());
        }
        let texts = import(texts)?;
        let pairs = pairs.map(import).transpose()?;
        let options = RowOptions {
            added: self.added_tokens().filter(|_| add_special_tokens),
            second_type: self.second_types(add_special_tokens)[0],
            overflow_type: self.second_types(add_special_tokens)[1],
            max_length,
            truncation: wanted_truncation(truncation)?,
            stride,
            pad_id: self.pad_id.filter(|_| padding),
            sampling: wanted_sampling(sample_alpha, bpe_dropout, sample_seed.unwrap_or(0))?,
            columns: wanted_columns(&columns)?,
        };
        let id_type = match id_type {
            "int32" => IdType::Int32,
            "uint16" => IdType::UInt16,
            other => return Err(unknown("id_type", other, "int32 or uint16")),
        };
        run(py, || {
            let texts = text_rows(&texts, pairs.as_ref())?;
            let counts = |rows: &Rows| row_counts(rows, self.encoder.unk_id());
            if let Some(maker) = pages.as_ref().map(|maker| &maker.get().0) {
                let (pages, batches) = maker.encoded(&self.encoder, &options, &texts, least_ids)?;
                let counts = sum(batches.iter().map(counts));
                let batches = batches.into_iter().filter(|_| pages.is_none());
                let batches = batches.map(|rows| Ok(arrow::encode::encoded(rows, id_type)?.into()));
                return Ok((batches.collect::<Result<_>>()?, pages.map(PyPages), counts));
            }
            let batches = encode_blocks(&self.encoder, &options, &texts, threads, |rows| {
                let counts = counts(&rows);
                Ok((arrow::encode::encoded(rows, id_type)?, counts))
            })?;
            let counts = sum(batches.iter().map(|(_, counts)| *counts));
            Ok((batches.into_iter().map(|(batch, _)| batch.into()).collect(), None, counts))
        })
    }
}

impl PyEncoder {
    /// The tokens around texts, if there is a template.
    fn added_tokens(&self) -> Option<AddedTokens> {
        let (before, between, after, ..) = self.template.as_ref()?.clone();
        Some(AddedTokens { before, between, after })
    }

    /// The token type of a second text, and in rows that do not show its beginning.
    fn second_types(&self, is_added: bool) -> [i8; 2] {
        match self.template {
            Some((.., second_type, true)) if is_added => [second_type; 2],
            Some((.., second_type, _)) => [second_type, 1],
            None => [1, 1],
        }
    }
}

fn sum(counts: impl Iterator<Item = [usize; 6]>) -> [usize; 6] {
    counts.fold([0; 6], |sum, counts| std::array::from_fn(|i| sum[i] + counts[i]))
}

/// Tokens, unknown ones, words, the tokens of words, rows that were cut, and the tokens cut off.
fn row_counts(rows: &Rows, unk_id: Option<u32>) -> [usize; 6] {
    let unknown = unk_id.map_or(0, |unk| rows.ids.iter().filter(|&&id| id == unk).count());
    let truncated = [rows.truncated_rows, rows.truncated_tokens];
    [rows.tokens, unknown, rows.words, rows.word_tokens, truncated[0], truncated[1]]
}

/// The truncation of this name.
fn wanted_truncation(name: &str) -> PyResult<Truncation> {
    match name {
        "longest_first" => Ok(Truncation::LongestFirst),
        "only_first" => Ok(Truncation::OnlyFirst),
        "only_second" => Ok(Truncation::OnlySecond),
        other => Err(unknown("truncation", other, "longest_first, only_...")),
    }
}

/// Adds up how a vocabulary cuts text.
#[pyclass(name = "Measurer")]
pub(super) struct PyMeasurer {
    measurer: Measurer,
    vocab_size: usize,
}

#[pymethods]
impl PyMeasurer {
    /// `unk_id`: the id of the unknown token, if there is one.
    #[new]
    #[pyo3(signature = (*, vocab_size, unk_id))]
    fn new(vocab_size: usize, unk_id: Option<u32>) -> Self {
        let measurer = Measurer::new(vocab_size, unk_id.unwrap_or(u32::MAX));
        PyMeasurer { measurer, vocab_size }
    }

    /// Adds the rows of a word table, cut by an encoder of the vocabulary.
    fn add(
        &mut self,
        py: Python<'_>,
        words: &Bound<'_, PyAny>,
        encoder: &Bound<'_, PyEncoder>,
    ) -> PyResult<()> {
        let words = import_batch(words)?;
        let encoder = encoder.get();
        run(py, || {
            let words = WordTableBatch::new(&words)?;
            Ok(measure(&encoder.encoder, words.rows()?, &mut self.measurer)?)
        })
    }

    /// Adds the rows of a word table with their tokens, as `tokenizers` cuts each word behind `before`
    /// characters and a space: for each the number of tokens, and for all tokens the ids, and two
    /// offsets each. All are arrays of uint32.
    fn add_tokens(
        &mut self,
        py: Python<'_>,
        words: &Bound<'_, PyAny>,
        counts: &Bound<'_, PyAny>,
        ids: &Bound<'_, PyAny>,
        offsets: &Bound<'_, PyAny>,
        before: u32,
    ) -> PyResult<()> {
        let words = import_batch(words)?;
        let arrays = [import(counts)?, import(ids)?, import(offsets)?];
        run(py, || {
            let words = WordTableBatch::new(&words)?;
            let rows = arrow::encode::placed_tokens(&arrays, before, self.vocab_size)?;
            let words = words.rows()?;
            if rows.len() != words.len() {
                let message = format!("{} words, but tokens of {}", words.len(), rows.len());
                return Err(Error::data(message));
            }
            for ((word, count), mut tokens) in words.into_iter().zip(rows) {
                self.measurer.add(word, count, &mut tokens)?;
            }
            Ok(())
        })
    }

    /// The sums, and the batch of `token: uint32`, `count: int64` of the tokens that are used; what is
    /// added from now on is summed up anew.
    fn take(&mut self, py: Python<'_>) -> PyResult<([u64; 8], PyArrowArray)> {
        run(py, || {
            let (sums, uses) = self.measurer.take();
            Ok((sums.all(), arrow::train::TokenCounts::batch(uses.into_iter())?.into()))
        })
    }
}

/// How words are cut at random, if they are.
fn wanted_sampling(
    alpha: Option<f64>,
    dropout: Option<f64>,
    seed: u64,
) -> PyResult<Option<Sampling>> {
    let kind = match (alpha, dropout) {
        (Some(_), Some(_)) => {
            return Err(Error::option("give either sample_alpha or bpe_dropout").into());
        }
        (Some(alpha), None) if alpha.is_finite() && alpha >= 0.0 => SamplingKind::Alpha(alpha),
        (None, Some(dropout)) if (0.0..=1.0).contains(&dropout) => SamplingKind::Dropout(dropout),
        (None, None) => return Ok(None),
        (alpha, dropout) => {
            let value = alpha.or(dropout).unwrap_or_default();
            let name = if alpha.is_some() { "sample_alpha" } else { "bpe_dropout" };
            return Err(unknown(name, &value.to_string(), "a probability, or a power from 0"));
        }
    };
    Ok(Some(Sampling { kind, seed }))
}

/// The columns of these names.
fn wanted_columns(names: &[String]) -> PyResult<RowColumns> {
    let mut columns = RowColumns::default();
    for name in names {
        *match name.as_str() {
            "attention_mask" => &mut columns.attention_mask,
            "token_type_ids" => &mut columns.token_type_ids,
            "special_tokens_mask" => &mut columns.special_tokens_mask,
            "offset_mapping" => &mut columns.offset_mapping,
            "word_ids" => &mut columns.word_ids,
            "num_tokens" => &mut columns.num_tokens,
            other => return Err(unknown("columns", other, "columns of encoded texts")),
        } = true;
    }
    Ok(columns)
}

/// The texts, each with the second text of its pair if there are pairs.
fn text_rows<'a>(texts: &'a ArrayRef, pairs: Option<&'a ArrayRef>) -> Result<Vec<TextPair<'a>>> {
    let mut rows = memory::with_capacity(texts.len());
    arrow::each_row(texts, |text| rows.push((text, None)))?;
    if let Some(pairs) = pairs {
        if pairs.len() != rows.len() {
            let message = format!("{} texts, but {} second ones", rows.len(), pairs.len());
            return Err(Error::data(message));
        }
        let mut left = rows.iter_mut();
        arrow::each_row(pairs, |pair| {
            if let Some(row) = left.next() {
                row.1 = Some(pair);
            }
        })?;
    }
    Ok(rows)
}

/// A packer of one of the types of ids.
enum AnyPacker {
    Int32(Packer<i32>),
    UInt16(Packer<u16>),
}

/// Packs documents of ids into sequences of one length.
#[pyclass(name = "Packer")]
pub(super) struct PyPacker {
    packer: AnyPacker,
    vocab_size: u32,
    columns: Vec<String>,
}

#[pymethods]
impl PyPacker {
    #[new]
    #[pyo3(signature = (*, length, cls_id, sep_id, pad_id, vocab_size, id_type, columns))]
    fn new(
        length: usize,
        cls_id: Option<u32>,
        sep_id: u32,
        pad_id: Option<u32>,
        vocab_size: u32,
        id_type: &str,
        columns: Vec<String>,
    ) -> PyResult<Self> {
        let options = PackOptions { length, cls_id, sep_id, pad_id };
        let packer = match id_type {
            "int32" => Packer::new(options).map(AnyPacker::Int32),
            "uint16" => Packer::new(options).map(AnyPacker::UInt16),
            other => return Err(unknown("id_type", other, "int32 or uint16")),
        };
        Ok(PyPacker { packer: packer?, vocab_size, columns })
    }

    /// The number of ids of documents that were dropped, since their sequence was not full at the end.
    #[getter]
    fn dropped(&self) -> u64 {
        match &self.packer {
            AnyPacker::Int32(packer) => packer.dropped(),
            AnyPacker::UInt16(packer) => packer.dropped(),
        }
    }

    /// Adds documents, the first of which is in row `first_row`; returns the sequences that are full.
    fn add(
        &mut self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        first_row: i64,
    ) -> PyResult<PyArrowArray> {
        let ids = import(ids)?;
        let (columns, size) = (&self.columns, self.vocab_size);
        run(py, || {
            let batch = match &mut self.packer {
                AnyPacker::Int32(packer) => {
                    let full = arrow::encode::pack::<Int32Type>(packer, &ids, first_row, size)?;
                    arrow::encode::packed_batch::<Int32Type>(full, columns)
                }
                AnyPacker::UInt16(packer) => {
                    let full = arrow::encode::pack::<UInt16Type>(packer, &ids, first_row, size)?;
                    arrow::encode::packed_batch::<UInt16Type>(full, columns)
                }
            };
            Ok(batch?.into())
        })
    }

    /// Returns the last sequence, padded; none without a `pad_id`.
    fn finish(&mut self, py: Python<'_>) -> PyResult<PyArrowArray> {
        run(py, || {
            let batch = match &mut self.packer {
                AnyPacker::Int32(p) => {
                    arrow::encode::packed_batch::<Int32Type>(p.finish(), &self.columns)
                }
                AnyPacker::UInt16(p) => {
                    arrow::encode::packed_batch::<UInt16Type>(p.finish(), &self.columns)
                }
            };
            Ok(batch?.into())
        })
    }
}
