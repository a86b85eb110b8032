//! The way that a tokenizer splits texts, chosen once when it is built.

use aho_corasick::AhoCorasick;

use crate::base::error::Result;
use crate::encode::added_tokens::AddedTokenSearch;
use crate::encode::model::Model;
use crate::text::composed::{Metaspace, PatternSplitter, SpaceSplitter};
use crate::text::marks::SPACE_MARK;
use crate::text::rules::TextRules;

/// The way that texts are split into segments, which are looked up in a cache.
pub(super) enum Plan {
    /// BERT's rules split raw text. Each segment is normalized on its own.
    Bert,
    /// Segments are the matches of a pattern in the normalized text.
    Pattern(PatternSplitter),
    /// Raw text is split before spaces. Each segment is normalized on its own, and may have several words.
    Spaces(SpaceSplitter),
    /// Spaces of raw text are treated as the marks that replace them. The text is one word, split where no merge
    /// crosses.
    Marks(Marks),
    /// Text is normalized as a whole, and pre-tokenizers split it step by step. Segments are the pieces.
    Pieces,
}

/// Rules that only mark spaces, for a model whose words can be split into parts.
pub(super) struct Marks {
    metaspace: Metaspace,
    /// Finds texts that may have a `normalized` added token; None if there are no such tokens.
    added_tokens: Option<AhoCorasick>,
}

impl Plan {
    /// Choose the plan for the parts of a tokenizer.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Option`](crate::Error::Option) if the added tokens are too large for a search.
    pub(super) fn new(
        text: &TextRules,
        model: &Model,
        added_tokens: &AddedTokenSearch,
    ) -> Result<Self> {
        let TextRules::Composed(rules) = text else { return Ok(Plan::Bert) };
        if let Some(pattern) = rules.pattern() {
            return Ok(Plan::Pattern(pattern));
        }
        if !added_tokens.has_late()
            && !model.is_of_bytes()
            && let Some(splitter) = SpaceSplitter::of_rules(rules)
        {
            return Ok(Plan::Spaces(splitter));
        }
        if let Some(metaspace) = Metaspace::of_rules(rules)
            && model.parts().is_some()
        {
            let added_tokens = added_tokens.late_without(&[' ', SPACE_MARK])?;
            return Ok(Plan::Marks(Marks { metaspace, added_tokens }));
        }
        Ok(Plan::Pieces)
    }
}

impl Marks {
    /// Return whether a mark is put before a section of a text. None if the section may have a `normalized` added
    /// token, and must be normalized as a whole.
    pub(super) fn puts_mark_before(&self, section: &str, is_first: bool) -> Option<bool> {
        let may_have_token = self.added_tokens.as_ref().is_some_and(|all| all.is_match(section));
        (!may_have_token).then(|| self.metaspace.puts_mark_before(section, is_first))
    }
}
