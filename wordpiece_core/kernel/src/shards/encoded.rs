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
    ) -> Result<(Option<Pages>, Vec<Rows>)> {
        let batches = rows::encode(&mut encoder.session(0), options, texts, 0)?;
        if batches.iter().map(|rows| rows.ids.len()).sum::<usize>() < least_ids {
            return Ok((None, batches));
        }
        let mut pages = self.writer()?;
        batches.iter().flat_map(Rows::lists).try_for_each(|list| pages.add(list))?;
        Ok((Some(pages.finish()?), batches))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;

    use super::*;
    use crate::arrow::encode::{IdType, encoded};
    use crate::encode::encoder::EncoderOptions;
    use crate::encode::matcher::UnkScope;
    use crate::encode::model::{Model, WordPiece};
    use crate::encode::rows::{self, AddedTokens, RowColumns, Truncation};
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
            }
            .into(),
            model: Model::WordPiece(
                WordPiece::new(VOCABULARY.into_iter().zip(0..), "##", 1, UnkScope::Word, 100)
                    .unwrap(),
            ),
            vocab_size: VOCABULARY.len(),
            unk_id: Some(1),
            added_tokens: Vec::new(),
            trimming: None,
        };
        Encoder::new(options).unwrap()
    }

    fn ids_of(batches: &[Rows]) -> Vec<u32> {
        batches.iter().flat_map(|rows| rows.ids.iter().copied()).collect()
    }

    #[test]
    fn pages_are_those_of_the_arrays() {
        let encoder = encoder();
        let [short, long] = ["ab a c ".repeat(20_000), "a ".repeat(200_000)];
        let given = ["", "a", &short, "abb c", &long, "", "b"].repeat(2);
        let valid = |i: usize| i % 5 != 3;
        let texts: Vec<TextPair<'_>> = given
            .iter()
            .enumerate()
            .map(|(i, text)| (valid(i).then_some(text.as_bytes()), None))
            .collect();
        for padded in [false, true] {
            let options = RowOptions {
                added: Some(AddedTokens { before: vec![2], between: vec![3], after: vec![3] }),
                second_type: 1,
                overflow_type: 1,
                max_length: padded.then_some(1000),
                truncation: Truncation::LongestFirst,
                stride: None,
                pad_id: padded.then_some(0),
                sampling: None,
                columns: RowColumns::default(),
            };
            let batches = rows::encode(&mut encoder.session(0), &options, &texts, 0).unwrap();
            let ids = ids_of(&batches);
            let lists: Vec<_> = batches
                .into_iter()
                .map(|rows| Arc::clone(encoded(rows, IdType::Int32).unwrap().column(0)))
                .collect();
            let maker = IdPages::new(VOCABULARY.len() as u32, Codec::Zstd);
            let mut writer = maker.writer().unwrap();
            for lists in &lists {
                let lists = lists.as_list::<i32>();
                let values = lists.values().as_primitive::<Int32Type>().values();
                writer.add_lists(lists, values).unwrap();
            }
            let wanted = writer.finish().unwrap();
            assert_eq!((wanted.rows, wanted.nulls, wanted.ids), (texts.len(), 3, ids.len()));
            // Then with memory that was used before.
            for least in [0, ids.len()] {
                let (pages, batches) = maker.encoded(&encoder, &options, &texts, least).unwrap();
                assert_eq!((pages.as_ref(), &ids_of(&batches)), (Some(&wanted), &ids));
            }
            let few = maker.encoded(&encoder, &options, &texts, ids.len() + 1).unwrap();
            assert_eq!((few.0, ids_of(&few.1)), (None, ids));
        }
    }
}
