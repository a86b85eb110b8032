//! Texts to pages of ids, without an array of all ids between: a block of texts is encoded, and while
//! its ids are in the cache of the processor, they go into pages.

use crate::encode::encoder::Encoder;
use crate::encode::rows::{RowEncoder, RowOptions, Rows, TextPair};
use crate::error::Result;
use crate::shards::id_pages::{IdPageWriter, IdPages, Pages};

/// About how many bytes of text are encoded before their ids go into pages.
const BLOCK_BYTES: usize = 64 << 10;

impl IdPages {
    /// The pages of encoded texts, and what is counted of them; or, if they have fewer ids than
    /// `least_ids`, no pages, but the rows.
    ///
    /// # Arguments
    ///
    /// * `encoder` - Cuts texts into tokens, as many as this makes pages of.
    /// * `options` - How tokens become rows. There must be no columns beside the ids, and no stride.
    /// * `texts` - The texts, or the pairs of texts.
    /// * `least_ids` - The ids from which on pages are made.
    ///
    /// # Errors
    ///
    /// As [`encode`](crate::encode::rows::encode), and [`pages`](IdPages::pages).
    pub fn encoded(
        &self,
        encoder: &Encoder,
        options: &RowOptions,
        texts: &[TextPair<'_>],
        least_ids: usize,
    ) -> Result<(Option<Pages>, Rows)> {
        let mut rows = Rows::new(options, 0);
        let mut texts_to_rows = RowEncoder::new(encoder, options);
        let mut pages: Option<IdPageWriter<'_>> = None;
        let mut start = 0;
        while start < texts.len() {
            let end = start + block(&texts[start..]);
            texts_to_rows.encode(&texts[start..end], start, &mut rows)?;
            start = end;
            if pages.is_none() && rows.ids.len() >= least_ids {
                pages = Some(self.writer()?);
            }
            if let Some(pages) = &mut pages {
                rows.lists().try_for_each(|list| pages.add(list))?;
                rows.clear_ids();
            }
        }
        Ok((pages.map(IdPageWriter::finish).transpose()?, rows))
    }
}

/// How many of the texts, one at least, are a block.
fn block(texts: &[TextPair<'_>]) -> usize {
    let mut bytes = 0;
    let mut fits = |&(text, pair): &TextPair<'_>| {
        bytes += text.map_or(0, <[u8]>::len) + pair.flatten().map_or(0, <[u8]>::len);
        bytes < BLOCK_BYTES
    };
    (1 + texts.iter().take_while(|text| fits(text)).count()).min(texts.len())
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
        let long = "ab a c ".repeat(BLOCK_BYTES / 3);
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
            let rows = rows::encode(&encoder, &options, &texts, 0).unwrap();
            let counts = |rows: &Rows| [rows.tokens, rows.unknown, rows.words, rows.word_tokens];
            let (expected, all) = (counts(&rows), rows.ids.len());
            let batch = encoded(rows, IdType::Int32).unwrap();
            let lists: ArrayRef = Arc::new(batch.column(0).as_list::<i32>().clone());
            let maker = IdPages::new(VOCABULARY.len() as u32, Codec::Zstd);
            let wanted = maker.pages(&[lists]).unwrap();
            for least in [0, all] {
                // The second time with memory that was used before.
                let (pages, rows) = maker.encoded(&encoder, &options, &texts, least).unwrap();
                assert_eq!((pages, counts(&rows)), (Some(wanted.clone()), expected));
                assert!(rows.ids.is_empty());
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
