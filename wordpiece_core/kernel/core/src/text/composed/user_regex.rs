//! Regular expressions of a `tokenizer.json`, in Oniguruma's syntax.

use std::ops::Range;

#[cfg(feature = "onig")]
use onig::{MatchParam, Regex, Region, SearchOptions};

use crate::base::error::{Error, Result};

/// A regular expression, and how it is written.
#[derive(Debug)]
pub struct UserRegex {
    #[cfg(feature = "onig")]
    regex: Regex,
    pattern: String,
}

#[cfg(feature = "onig")]
impl UserRegex {
    /// # Errors
    ///
    /// Returns [`Error::Data`] for an invalid regular expression.
    pub fn new(pattern: String) -> Result<Self> {
        let regex = Regex::new(&pattern).map_err(|error| wrong_regex(&pattern, &error))?;
        Ok(UserRegex { regex, pattern })
    }

    /// The first match from a place on. Gives up with [`Error::Data`] where the search takes too long.
    pub fn find_from(&self, text: &str, from: usize) -> Option<(usize, usize)> {
        let (none, mut region) = (SearchOptions::SEARCH_OPTION_NONE, Region::new());
        let (to, limits) = (text.len(), MatchParam::default());
        self.regex
            .search_with_param(text, from, to, none, Some(&mut region), limits)
            .unwrap_or_else(|error| {
                crate::base::error::give_up(wrong_regex(&self.pattern, &error))
            })?;
        region.pos(0)
    }
}

#[cfg(feature = "onig")]
fn wrong_regex(pattern: &str, error: &onig::Error) -> Error {
    Error::data(format!("the regular expression {pattern:?}: {}", error.description()))
}

#[cfg(not(feature = "onig"))]
impl UserRegex {
    pub fn new(pattern: String) -> Result<Self> {
        Err(Error::data(format!("the regular expression {pattern:?} needs the feature `onig`")))
    }

    pub fn find_from(&self, _: &str, _: usize) -> Option<(usize, usize)> {
        unreachable!("{}: there is none without the feature", self.pattern)
    }
}

impl UserRegex {
    /// Return all matches. An empty match does not begin at the end of the previous match.
    pub fn find_all<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        let (mut from, mut last) = (0, None);
        std::iter::from_fn(move || {
            while from <= text.len() {
                let (start, end) = self.find_from(text, from)?;
                if start < end || last != Some(end) {
                    (from, last) = (end, Some(end));
                    return Some(start..end);
                }
                from += text[from..].chars().next().map_or(1, char::len_utf8);
            }
            None
        })
    }
}
