//! Texts to pages of ids, without an Arrow array between.
//!
//! All texts are encoded before the first page is made: a page takes as much of the processor's cache
//! as the words that were seen last, and these are wanted again.

use crate::encode::encoder::Encoder;
use crate::encode::rows::{self, RowOptions, Rows, TextPair};
use crate::error::Result;
use crate::shards::id_pages::{IdPages, Pages};

impl IdPages {
    /// The pages of encoded texts; none if they have fewer ids than `least_ids`. Comes with the rows.
    ///
    /// # Arguments
    ///
    /// * `encoder` - Cuts texts into tokens, as many as this makes pages of.
    /// * `options` - How tokens become rows.
    /// * `texts` - The texts, or the pairs of texts.
    /// * `least_ids` - The ids from which on pages are made.
    ///
    /// # Errors
    ///
    /// As [`encode`](rows::encode), and [`pages`](IdPages::pages).
    pub fn encoded(
        &self,
        encoder: &Encoder,
        options: &RowOptions,
        texts: &[TextPair<'_>],
        least_ids: usize,
    ) -> Result<(Option<Pages>, Rows)> {
        let rows = rows::encode(&mut encoder.session(0), options, texts, 0)?;
        if rows.ids.len() < least_ids {
            return Ok((None, rows));
        }
        let mut pages = self.writer()?;
        rows.lists().try_for_each(|list| pages.add(list))?;
        Ok((Some(pages.finish()?), rows))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::ArrayRef;
    use arrow_array::cast::AsArray;

    use super::*;
    use crate::arrow::encode::{IdType, encoded};
    use crate::encode::encoder::EncoderOptions;
    use crate::encode::matcher::UnkScope;
    use crate::encode::rows::{self, RowColumns, Truncation};
    use crate::shards::id_pages::Codec;
    use crate::text::pre_tokenize::TextOptions;

    const VOCABULARY: [&str; 6] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##b"];

    fn encoder() -> Encoder {
        let options = EncoderOptions {
            text: TextOptions {
                clean_text: true,
                handle_chinese_chars: true,
                strip_accents: true,
                lowercase: true,
                split_punctuation: true,
            },
            unk_id: 1,
            continuing_prefix: "##".to_owned(),
            max_word_length: 100,
            unk_scope: UnkScope::Word,
            special_tokens: Vec::new(),
        };
        Encoder::new(VOCABULARY.into_iter().zip(0..), options).unwrap()
    }

    #[test]
    fn pages_are_those_of_the_arrays_and_so_are_the_counts() {
        let encoder = encoder();
        let long = "ab a c ".repeat(20_000);
        let given = ["", "a", &long, "abb c", &"a ".repeat(200_000), "", "b"].repeat(2);
        for padded in [false, true] {
            let options = RowOptions {
                added: Some([2, 3]),
                max_length: padded.then_some(1000),
                truncation: Truncation::LongestFirst,
                stride: None,
                pad_id: padded.then_some(0),
                split_special_tokens: false,
                columns: RowColumns::default(),
            };
            let texts: Vec<TextPair<'_>> = given
                .iter()
                .enumerate()
                .map(|(i, text)| ((i % 5 != 3).then(|| text.as_bytes()), None))
                .collect();
            let rows = rows::encode(&mut encoder.session(0), &options, &texts, 0).unwrap();
            let counts = |rows: &Rows| [rows.tokens, rows.words, rows.word_tokens];
            let (expected, all) = (counts(&rows), rows.ids.len());
            let batch = encoded(rows, IdType::Int32).unwrap();
            let lists: ArrayRef = Arc::new(batch.column(0).as_list::<i32>().clone());
            let maker = IdPages::new(VOCABULARY.len() as u32, Codec::Zstd);
            let wanted = maker.pages(&[lists]).unwrap();
            for least in [0, all] {
                // The second time with memory that was used before.
                let (pages, rows) = maker.encoded(&encoder, &options, &texts, least).unwrap();
                assert_eq!((pages, counts(&rows)), (Some(wanted.clone()), expected));
            }
            assert_eq!((wanted.rows, wanted.nulls, wanted.ids), (texts.len(), 3, all));
            let (pages, rows) = maker.encoded(&encoder, &options, &texts, all + 1).unwrap();
            assert_eq!((pages, counts(&rows), rows.ids.len()), (None, expected, all));
        }
        let maker = IdPages::new(2, Codec::None);
        let none = RowOptions {
            added: None,
            max_length: None,
            truncation: Truncation::LongestFirst,
            stride: None,
            pad_id: None,
            split_special_tokens: false,
            columns: RowColumns::default(),
        };
        let (pages, _) = maker.encoded(&encoder, &none, &[], 0).unwrap();
        assert_eq!(pages, None);
    }
}
