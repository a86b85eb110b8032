//! Rules of text that are not BERT's, for Python.

use std::sync::Arc;

use pyo3::prelude::*;

use super::text::text_rules;
use super::{run, unknown};
use crate::base::error::Error;
use crate::text::byte_level::ByteLevel;
use crate::text::compile::compile;
use crate::text::metaspace::{Metaspace, Prepend, Way};
use crate::text::rules::TextRules;
use crate::text::segments::Begin;

/// GPT-2's rules.
#[pyclass(name = "ByteLevel", frozen)]
pub(super) struct PyByteLevel(ByteLevel);

#[pymethods]
impl PyByteLevel {
    #[new]
    #[pyo3(signature = (*, add_prefix_space))]
    fn new(add_prefix_space: bool) -> Self {
        PyByteLevel(ByteLevel { add_prefix_space })
    }
}

/// SentencePiece's rules.
#[pyclass(name = "Metaspace", frozen)]
pub(super) struct PyMetaspace(Arc<Metaspace>);

#[pymethods]
impl PyMetaspace {
    #[new]
    #[pyo3(signature = (charsmap, *, by_grapheme, collapse_spaces, prepend, by_replacement=false))]
    fn new(
        py: Python<'_>,
        charsmap: &[u8],
        by_grapheme: bool,
        collapse_spaces: bool,
        prepend: &str,
        by_replacement: bool,
    ) -> PyResult<Self> {
        let way = match (by_grapheme, collapse_spaces) {
            (false, collapse) => Way::SentencePiece { collapse },
            (true, false) => Way::Spaces,
            (true, true) if by_replacement => Way::Replaced,
            (true, true) => Way::Words,
        };
        let prepend = match prepend {
            "always" => Prepend::Always,
            "first" => Prepend::First,
            "never" => Prepend::Never,
            other => return Err(unknown("prepend", other, "always, first or never")),
        };
        run(py, || Ok(PyMetaspace(Arc::new(Metaspace::new(charsmap, way, prepend)?))))
    }

    /// A normalized text, and for each of its characters the index of the character of the text that it
    /// comes from.
    fn normalize(&self, text: &str) -> (String, Vec<usize>) {
        let (mut normalized, mut places) = (String::new(), Vec::new());
        let (mut byte, mut character) = (0, 0);
        let text = &text[..self.0.section_end(text)];
        self.0.segments(text, Begin::Text, |segment| {
            character += text[byte..segment.start].chars().count();
            byte = segment.start;
            self.0.each_normalized(segment.raw, |c, index| {
                normalized.push(c);
                places.push(character + index.saturating_sub(usize::from(segment.added)));
            });
        });
        (normalized, places)
    }
}

/// The compiled map of characters that does what BERT's normalizer and pre-tokenizer do.
#[pyfunction]
#[pyo3(signature = (*, clean_text, handle_chinese_chars, strip_accents, lowercase, pre_tokenizer))]
pub(super) fn compile_charsmap(
    py: Python<'_>,
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: bool,
    lowercase: bool,
    pre_tokenizer: &str,
) -> PyResult<Vec<u8>> {
    let rules =
        text_rules(clean_text, handle_chinese_chars, strip_accents, lowercase, pre_tokenizer)?;
    run(py, || match &rules {
        TextRules::Bert(rules) => compile(rules),
        _ => Err(Error::option("pre_tokenizer: no map of characters does what gpt2 does")),
    })
}

/// The argument `rules` of functions.
#[derive(FromPyObject)]
pub(super) enum Rules<'py> {
    ByteLevel(PyRef<'py, PyByteLevel>),
    Metaspace(PyRef<'py, PyMetaspace>),
}

impl From<Rules<'_>> for TextRules {
    fn from(rules: Rules<'_>) -> Self {
        match rules {
            Rules::ByteLevel(rules) => TextRules::ByteLevel(rules.0),
            Rules::Metaspace(rules) => TextRules::Metaspace(Arc::clone(&rules.0)),
        }
    }
}
