//! Texts to pages of ids, without an Arrow array between.
//!
//! All texts are encoded before the first page is made: a page would evict recently seen words, which
//! are looked up again, from the processor's caches.

use crate::id_pages::{IdPages, Pages};
use wordpiece_core::Result;
use wordpiece_core::encode::{RowOptions, Rows, TextPair, Tokenizer, encode_rows};

impl IdPages {
    /// The pages of encoded texts; none if they have fewer ids than `least_ids`. Comes with the rows.
    ///
    /// # Arguments
    ///
    /// * `tokenizer` - Tokenizes texts, as many as this makes pages of.
    /// * `options` - How tokens become rows.
    /// * `texts` - The texts, or the pairs of texts.
    /// * `least_ids` - The ids from which on pages are made.
    ///
    /// # Errors
    ///
    /// As [`encode_rows`], and [`pages`](IdPages::pages).
    pub fn encoded(
        &self,
        tokenizer: &Tokenizer,
        options: &RowOptions,
        texts: &[TextPair<'_>],
        least_ids: usize,
    ) -> Result<(Option<Pages>, Rows)> {
        let rows = encode_rows(&mut tokenizer.session(0, 1), options, texts, 0)?;
        if rows.ids.len() < least_ids {
            return Ok((None, rows));
        }
        let mut pages = self.writer()?;
        rows.lists().try_for_each(|list| pages.add(list))?;
        Ok((Some(pages.finish()?), rows))
    }
}
