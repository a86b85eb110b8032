//! Rules that only replace spaces by [`SPACE_MARK`], and put one before a text, like the rules of Llama 2.

use super::Composed;
use super::matches::Matcher;
use super::normalizer::Normalizer;
use super::pre_tokenizer::{PreTokenizer, Prepend};
use crate::text::marks::{SPACE_MARK, is_space_mark};

/// The options of rules that only replace spaces by marks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metaspace {
    /// The texts that a mark is put before.
    prepend: Prepend,
    /// True if a mark is also put before a text that begins with one.
    repeats: bool,
}

impl Metaspace {
    /// Return the options of rules; None if the rules do more than mark spaces.
    pub(crate) fn of_rules(rules: &Composed) -> Option<Self> {
        match (&rules.normalizer, &rules.steps[..]) {
            (Some(normalizer), []) => {
                let prepend = if adds_mark(normalizer)? { Prepend::Always } else { Prepend::Never };
                Some(Metaspace { prepend, repeats: true })
            }
            (None, &[PreTokenizer::Spaces { mark: SPACE_MARK, prepend }]) => {
                Some(Metaspace { prepend, repeats: false })
            }
            _ => None,
        }
    }

    /// Return true if a mark is put before a section of a text. `is_first`: true for the beginning of the text.
    pub(crate) fn puts_mark_before(self, section: &str, is_first: bool) -> bool {
        let repeats = self.repeats || !section.starts_with([' ', SPACE_MARK]);
        self.prepend.is_wanted(is_first) && repeats
    }
}

/// Return true if a normalizer puts a mark before a text and otherwise only replaces spaces by marks; false if it
/// only replaces spaces; None if it does more.
fn adds_mark(normalizer: &Normalizer) -> Option<bool> {
    match normalizer {
        Normalizer::Replace(Matcher::Text(space), mark) => {
            (space == " " && is_space_mark(mark)).then_some(false)
        }
        Normalizer::SentencePiece(rules) => rules.adds_mark(),
        Normalizer::Sequence(parts) => match &parts[..] {
            [only] => adds_mark(only),
            [Normalizer::Prepend(prefix), other] | [other, Normalizer::Prepend(prefix)] => {
                (is_space_mark(prefix) && adds_mark(other) == Some(false)).then_some(true)
            }
            _ => None,
        },
        _ => None,
    }
}
