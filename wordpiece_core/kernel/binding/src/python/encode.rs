//! Encoding and packing, for Python.

use arrow_array::types::{Float64Type, Int32Type, UInt16Type, UInt32Type};
use foldhash::HashMap;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use super::exchange::{GivenArray, GivenBatch, PyArrowArray};
use super::shards::{PyIdPages, PyPages};
use super::text::GivenText;
use super::{PyResult, choice, run, table};
use crate::arrow::count::WordTableBatch;
use crate::arrow::encode::{self as tables, AnyPacker, IdType};
use crate::arrow::train::TokenCounts;
use crate::arrow::values;
use wordpiece_core::encode::{
    AddedToken, BestFit, BpeOptions, Layout, ModelOptions, PackOptions, Packer, RowOptions, Rows,
    Tokenizer, TokenizerOptions, Truncation, UnigramOptions, UnkScope, WordPieceOptions,
    encode_blocks,
};
use wordpiece_core::internals::{Measurer, measure};
use wordpiece_core::text::WordBoundary;
use wordpiece_core::{Error, Result};

/// Byte-pair encoding, for an encoder.
#[pyclass(name = "Bpe", frozen)]
pub(super) struct PyBpe {
    merges: Vec<(u32, u32)>,
    word_boundary: WordBoundary,
    byte_fallback: bool,
    fuse_unk: bool,
    ignore_merges: bool,
    tied: Vec<u32>,
}

#[pymethods]
impl PyBpe {
    #[new]
    #[pyo3(signature = (left, right, *, word_boundary, byte_fallback, fuse_unk, ignore_merges, tied))]
    fn new(
        left: GivenArray,
        right: GivenArray,
        word_boundary: Option<&str>,
        byte_fallback: bool,
        fuse_unk: bool,
        ignore_merges: bool,
        tied: Vec<u32>,
    ) -> PyResult<Self> {
        let boundaries = [
            ("</w>", WordBoundary::End),
            ("▁", WordBoundary::SpaceMark),
            ("bytes", WordBoundary::Bytes),
        ];
        let word_boundary = word_boundary
            .map_or(Ok(WordBoundary::None), |name| choice("word_boundary", name, &boundaries))?;
        let left = values::<UInt32Type>(&left.0)?;
        let right = values::<UInt32Type>(&right.0)?;
        if left.len() != right.len() {
            let message = format!("merges: {} on the left, {} right", left.len(), right.len());
            return Err(Error::data(message).into());
        }
        let merges = left.iter().copied().zip(right.iter().copied()).collect();
        Ok(PyBpe { merges, word_boundary, byte_fallback, fuse_unk, ignore_merges, tied })
    }
}

impl PyBpe {
    pub(super) fn options(&self) -> BpeOptions<'_> {
        let &PyBpe { ref merges, word_boundary, byte_fallback, fuse_unk, ignore_merges, ref tied } =
            self;
        BpeOptions { merges, word_boundary, byte_fallback, fuse_unk, ignore_merges, tied }
    }
}

#[pyfunction]
#[pyo3(signature = (tokens, ranks, *, by_character=false))]
pub(super) fn merges_of_ranks(
    py: Python<'_>,
    tokens: Vec<PyBackedBytes>,
    ranks: Vec<u32>,
    by_character: bool,
) -> PyResult<Vec<(u32, u32)>> {
    let tokens: Vec<&[u8]> = tokens.iter().map(|token| &**token).collect();
    run(py, || wordpiece_core::encode::merges_of_ranks(&tokens, &ranks, by_character))
}

/// A unigram language model, for an encoder.
#[pyclass(name = "Unigram", frozen)]
pub(super) struct PyUnigram {
    scores: Vec<f64>,
    byte_fallback: bool,
    of_sentencepiece: bool,
    user_defined: Vec<u32>,
}

#[pymethods]
impl PyUnigram {
    #[new]
    #[pyo3(signature = (scores, *, byte_fallback, of_sentencepiece, user_defined))]
    fn new(
        scores: GivenArray,
        byte_fallback: bool,
        of_sentencepiece: bool,
        user_defined: Vec<u32>,
    ) -> PyResult<Self> {
        let scores = values::<Float64Type>(&scores.0)?.to_vec();
        Ok(PyUnigram { scores, byte_fallback, of_sentencepiece, user_defined })
    }
}

impl PyUnigram {
    fn options(&self) -> UnigramOptions<'_> {
        let &PyUnigram { ref scores, byte_fallback, of_sentencepiece, ref user_defined } = self;
        UnigramOptions { scores, byte_fallback, of_sentencepiece, user_defined }
    }
}

/// A model of tokens from Python.
#[derive(FromPyObject)]
enum AnyModel {
    Bpe(Py<PyBpe>),
    Unigram(Py<PyUnigram>),
}

/// The layout of a row, by its names in Python: see [`Layout`].
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct LayoutMapping {
    before: Vec<(u32, i8)>,
    between: Vec<(u32, i8)>,
    after: Vec<(u32, i8)>,
    types: [i8; 2],
    overflow_types: [i8; 2],
}

/// Encodes texts by a vocabulary.
#[pyclass(name = "Encoder", frozen)]
pub(super) struct PyEncoder {
    tokenizer: Tokenizer,
    pad_id: Option<u32>,
}

/// The options of an encoder, by their names in Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct EncoderMapping {
    unk_token: Option<String>,
    continuing_prefix: String,
    max_word_length: usize,
    unk_scope: String,
    added_tokens: Vec<AddedTokenMapping>,
    hidden: Vec<String>,
    #[pyo3(default)]
    model: Option<AnyModel>,
    #[pyo3(default)]
    pad_id: Option<u32>,
    #[pyo3(default)]
    trim_offsets: Vec<bool>,
}

/// A token that is found in texts, by names in Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct AddedTokenMapping {
    content: String,
    lstrip: bool,
    rstrip: bool,
    single_word: bool,
    normalized: bool,
    special: bool,
}

impl AddedTokenMapping {
    pub(super) fn with_id(self, id: u32) -> AddedToken {
        let AddedTokenMapping { content, lstrip, rstrip, single_word, normalized, special } = self;
        AddedToken { content, id, lstrip, rstrip, single_word, normalized, special }
    }
}

/// The options for rows, by their names in Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct RowMapping {
    layouts: [LayoutMapping; 2],
    max_length: Option<usize>,
    truncation: String,
    stride: Option<usize>,
    padding: bool,
    columns: Vec<String>,
    id_type: String,
    threads: usize,
}

const ID_TYPES: [(&str, IdType); 2] = [("int32", IdType::Int32), ("uint16", IdType::UInt16)];

#[pymethods]
impl PyEncoder {
    #[new]
    fn new(
        py: Python<'_>,
        vocab: Vec<String>,
        text: GivenText,
        options: EncoderMapping,
    ) -> PyResult<Self> {
        let EncoderMapping { max_word_length, pad_id, trim_offsets, .. } = options;
        let scopes = [("word", UnkScope::Word), ("character", UnkScope::Character)];
        let unk_scope = choice("unk_scope", &options.unk_scope, &scopes)?;
        run(py, || {
            let vocabulary: Vec<&str> = vocab.iter().map(String::as_str).collect();
            let ids: HashMap<&str, u32> = vocabulary.iter().copied().zip(0..).collect();
            let known = |token: &str| {
                let id = ids.get(token).copied();
                id.ok_or_else(|| Error::option(format!("the vocabulary has no {token}")))
            };
            let added_tokens = options.added_tokens.into_iter().map(|token| {
                let id = known(&token.content)?;
                Ok(token.with_id(id))
            });
            let added_tokens: Vec<_> = added_tokens.collect::<Result<_>>()?;
            let unk_id = options.unk_token.as_deref().map(known).transpose()?;
            let hidden = options.hidden.iter().map(|token| known(token));
            let hidden: Vec<u32> = hidden.collect::<Result<_>>()?;
            let continuing_prefix = &options.continuing_prefix;
            let model = match &options.model {
                Some(AnyModel::Bpe(bpe)) => ModelOptions::Bpe(bpe.get().options()),
                Some(AnyModel::Unigram(unigram)) => ModelOptions::Unigram(unigram.get().options()),
                None => WordPieceOptions { continuing_prefix, unk_scope, max_word_length }.into(),
            };
            let options = TokenizerOptions {
                vocabulary: &vocabulary,
                text: text.0,
                model,
                unk_id,
                added_tokens,
                hidden: &hidden,
                trim_offsets,
            };
            Ok(PyEncoder { tokenizer: Tokenizer::new(options)?, pad_id })
        })
    }

    /// With `pages`, `least_ids` ids and more become pages, and there is no batch; then columns, a stride,
    /// and threads other than this one are left out.
    #[pyo3(signature = (texts, pairs, options, *, pages=None, least_ids=0))]
    fn encode(
        &self,
        py: Python<'_>,
        texts: GivenArray,
        pairs: Option<GivenArray>,
        options: RowMapping,
        pages: Option<Py<PyIdPages>>,
        least_ids: usize,
    ) -> PyResult<(Vec<PyArrowArray>, Option<PyPages>, RowCounts)> {
        let RowMapping { threads, stride, .. } = options;
        if threads == 0 {
            return Err(Error::option("threads: 0 is not a whole number from 1").into());
        }
        if pages.is_some() && (threads > 1 || stride.is_some() || !options.columns.is_empty()) {
            return Err(Error::option("pages: of ids alone, on one thread").into());
        }
        let id_type = choice("id_type", &options.id_type, &ID_TYPES)?;
        let truncations = [
            ("longest_first", Truncation::LongestFirst),
            ("only_first", Truncation::OnlyFirst),
            ("only_second", Truncation::OnlySecond),
        ];
        let options = RowOptions {
            layouts: options.layouts.map(Layout::from),
            max_length: options.max_length,
            truncation: choice("truncation", &options.truncation, &truncations)?,
            stride,
            pad_id: self.pad_id.filter(|_| options.padding),
            columns: tables::row_columns(&options.columns)?,
        };
        run(py, || {
            let texts = tables::text_rows(&texts.0, pairs.as_ref().map(|pairs| &pairs.0))?;
            let counts = |rows: &Rows| RowCounts::new(rows, self.tokenizer.unk_id());
            if let Some(maker) = pages.as_ref().map(|maker| &maker.get().0) {
                let (pages, rows) = maker.encoded(&self.tokenizer, &options, &texts, least_ids)?;
                let counts = counts(&rows);
                let batch = pages.is_none().then(|| tables::encoded(rows, id_type)).transpose()?;
                return Ok((
                    batch.into_iter().map(Into::into).collect(),
                    pages.map(PyPages),
                    counts,
                ));
            }
            let batches = encode_blocks(&self.tokenizer, &options, &texts, threads, |rows| {
                let counts = counts(&rows);
                Ok((tables::encoded(rows, id_type)?, counts))
            })?;
            let counts = batches.iter().map(|(_, counts)| *counts);
            let counts = counts.fold(RowCounts::default(), RowCounts::add);
            Ok((batches.into_iter().map(|(batch, _)| batch.into()).collect(), None, counts))
        })
    }
}

impl From<LayoutMapping> for Layout {
    fn from(layout: LayoutMapping) -> Self {
        let LayoutMapping { before, between, after, types, overflow_types } = layout;
        Layout { added: [before, between, after], types, overflow_types }
    }
}

/// Counts of encoded rows, a dict in Python with the names of `EncodedTable`.
#[derive(Clone, Copy, Default, IntoPyObject)]
struct RowCounts {
    tokens: usize,
    unknown: usize,
    words: usize,
    word_tokens: usize,
    truncated_rows: usize,
    truncated_tokens: usize,
    special_tokens: usize,
    longest_text: usize,
}

impl RowCounts {
    fn new(rows: &Rows, unk_id: Option<u32>) -> Self {
        let unknown = unk_id.map_or(0, |unk| rows.ids.iter().filter(|&&id| id == unk).count());
        RowCounts {
            tokens: rows.tokens,
            unknown,
            words: rows.words,
            word_tokens: rows.word_tokens,
            truncated_rows: rows.truncated_rows,
            truncated_tokens: rows.truncated_tokens,
            special_tokens: rows.special_tokens,
            longest_text: rows.longest_text,
        }
    }

    /// Return the counts of both.
    fn add(self, other: Self) -> Self {
        RowCounts {
            tokens: self.tokens + other.tokens,
            unknown: self.unknown + other.unknown,
            words: self.words + other.words,
            word_tokens: self.word_tokens + other.word_tokens,
            truncated_rows: self.truncated_rows + other.truncated_rows,
            truncated_tokens: self.truncated_tokens + other.truncated_tokens,
            special_tokens: self.special_tokens + other.special_tokens,
            longest_text: self.longest_text.max(other.longest_text),
        }
    }
}

/// Measures the tokenization of text by a vocabulary.
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

    fn add(
        &mut self,
        py: Python<'_>,
        words: GivenBatch,
        encoder: &Bound<'_, PyEncoder>,
    ) -> PyResult<()> {
        let encoder = &encoder.get().tokenizer;
        run(py, || {
            let words = WordTableBatch::new(&words.0)?;
            measure(encoder, words.rows()?, &mut self.measurer)
        })
    }

    fn add_tokens(
        &mut self,
        py: Python<'_>,
        words: GivenBatch,
        counts: GivenArray,
        ids: GivenArray,
        offsets: GivenArray,
        before: u32,
    ) -> PyResult<()> {
        run(py, || {
            let arrays = [counts.0, ids.0, offsets.0];
            let rows = tables::placed_tokens(&arrays, before, self.vocab_size)?;
            let words = WordTableBatch::new(&words.0)?;
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

    fn take(&mut self, py: Python<'_>) -> PyResult<([u64; 7], PyArrowArray)> {
        run(py, || {
            let (sums, uses) = self.measurer.take();
            Ok((sums.all(), TokenCounts::batch(uses.iter())?.into()))
        })
    }
}

/// Packs documents of ids into sequences of one length.
#[pyclass(name = "Packer")]
pub(super) struct PyPacker {
    packer: AnyPacker,
    padding: u64,
    id_type: IdType,
    vocab_size: u32,
    columns: Vec<String>,
}

#[pymethods]
impl PyPacker {
    #[new]
    #[expect(clippy::too_many_arguments)] // they have names in Python
    #[pyo3(signature = (*, window, length, cls_id, sep_id, own, pad_id, vocab_size, id_type, columns))]
    fn new(
        window: Option<usize>,
        length: usize,
        cls_id: Option<u32>,
        sep_id: Option<u32>,
        own: [usize; 2],
        pad_id: Option<u32>,
        vocab_size: u32,
        id_type: &str,
        columns: Vec<String>,
    ) -> PyResult<Self> {
        let options = PackOptions { length, cls_id, sep_id, own, pad_id };
        let packer = match window {
            None => AnyPacker::Concat(Packer::new(options)?),
            Some(window) => AnyPacker::BestFit(BestFit::new(options, window)?),
        };
        let id_type = choice("id_type", id_type, &ID_TYPES)?;
        Ok(PyPacker { packer, padding: 0, id_type, vocab_size, columns })
    }

    #[getter]
    fn dropped(&self) -> u64 {
        match &self.packer {
            AnyPacker::Concat(packer) => packer.dropped(),
            AnyPacker::BestFit(_) => 0,
        }
    }

    #[getter]
    fn padding(&self) -> u64 {
        self.padding
    }

    fn add(&mut self, py: Python<'_>, ids: GivenArray, first_row: i64) -> PyResult<PyArrowArray> {
        let PyPacker { packer, padding, id_type, vocab_size, columns } = self;
        table(py, || {
            let full = match id_type {
                IdType::Int32 => tables::pack::<Int32Type>(packer, &ids.0, first_row, *vocab_size)?,
                IdType::UInt16 => {
                    tables::pack::<UInt16Type>(packer, &ids.0, first_row, *vocab_size)?
                }
            };
            *padding += full.padding();
            tables::packed_batch(full, *id_type, columns)
        })
    }

    fn finish(&mut self, py: Python<'_>) -> PyResult<PyArrowArray> {
        table(py, || {
            let last = match &mut self.packer {
                AnyPacker::Concat(packer) => packer.finish(),
                AnyPacker::BestFit(packer) => packer.finish(),
            };
            self.padding += last.padding();
            tables::packed_batch(last, self.id_type, &self.columns)
        })
    }
}
