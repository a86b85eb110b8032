//! Where memory is wanting, work is given up with an error.

use crate::arrow::encode::{IdType, encoded, pack, packed_batch};
use crate::arrow::{each_text, train};
use wordpiece_core::count::WordCounter;
use wordpiece_core::encode::{
    BpeOptions, ModelOptions, PackOptions, Packer, RowColumns, RowOptions, TextPair, Tokenizer,
    TokenizerOptions, UnigramOptions, WordPieceOptions, encode_rows,
};
use wordpiece_core::internals::PairCounter;
use wordpiece_core::text::TextOptions;
use wordpiece_core::train::{RoundRuns, Splits};
use wordpiece_core::{Error, Result, caught};
use wordpiece_shards::id_pages::{Codec, IdPages};
use wordpiece_testing::{peak_of, within};

/// Work that needs some memory for any input, and more for a large one.
const SMALL: usize = 1 << 17;

/// However little memory there is beyond that, the work is done, or fails with an error.
fn check(name: &str, work: impl Fn() -> Result<()>) {
    let (needed, done) = peak_of(|| caught(&work));
    assert_eq!(done, Ok(()), "{name}");
    assert!(needed > 2 * SMALL, "{name}: {needed} bytes are few");
    let mut failed = 0;
    let mut largest = needed;
    while largest > SMALL {
        match within(largest, || caught(&work)) {
            Ok(()) => {}
            Err(Error::Memory(bytes)) => {
                assert!(bytes > largest / 2, "{name}: {bytes} of {largest}");
                failed += 1;
            }
            Err(error) => panic!("{name}: {error}"),
        }
        largest -= largest / 8;
    }
    assert!(failed > 0, "{name}: {needed} bytes were never asked for at once");
}

const PLAIN: TextOptions = TextOptions {
    clean_text: true,
    handle_chinese_chars: true,
    strip_accents: false,
    lowercase: false,
    split_punctuation: true,
};

fn models() -> [(&'static str, Tokenizer); 3] {
    let made = |vocabulary: &[&str], model: ModelOptions<'_>| {
        let options = TokenizerOptions::new(vocabulary, PLAIN, model);
        Tokenizer::new(TokenizerOptions { unk_id: Some(0), ..options }).unwrap()
    };
    let max_word_length = usize::MAX;
    let wordpiece = WordPieceOptions { max_word_length, ..WordPieceOptions::default() };
    let bpe = BpeOptions { merges: &[(1, 2)], ..BpeOptions::default() };
    let unigram = UnigramOptions { scores: &[0.0, -1.0, -1.5, -1.0], ..UnigramOptions::default() };
    [
        ("wordpiece", made(&["[UNK]", "a", "##a", "b", "##b", "▁"], wordpiece.into())),
        ("bpe", made(&["[UNK]", "a", "b", "ab"], bpe.into())),
        ("unigram", made(&["[UNK]", "a", "b", "▁"], unigram.into())),
    ]
}

fn rows(max_length: Option<usize>, columns: bool) -> RowOptions {
    RowOptions {
        max_length,
        pad_id: max_length.map(|_| 0),
        columns: RowColumns {
            attention_mask: columns,
            token_type_ids: columns,
            special_tokens_mask: columns,
            offset_mapping: columns,
            word_ids: columns,
            num_tokens: columns,
        },
        ..RowOptions::default()
    }
}

#[test]
fn encoding_that_needs_too_much_memory_is_an_error() {
    let long = "ab".repeat(120_000);
    let many = "a b ab ".repeat(1 << 15);
    let invalid = [long.as_bytes(), b"\xff"].concat();
    for (name, tokenizer) in models() {
        for columns in [false, true] {
            for text in [long.as_bytes(), many.as_bytes(), &invalid] {
                check(name, || {
                    let texts: [TextPair<'_>; 1] = [(Some(text), None)];
                    let options = rows(None, columns);
                    let rows = encode_rows(&mut tokenizer.session(0), &options, &texts, 0)?;
                    encoded(rows, IdType::UInt16).map(drop)
                });
            }
        }
    }
}

#[test]
fn padding_and_packing_that_need_too_much_memory_are_errors() {
    let [(_, tokenizer), ..] = models();
    let texts: Vec<TextPair<'_>> = vec![(Some(b"a"), None); 100];
    for columns in [false, true] {
        for id_type in [IdType::Int32, IdType::UInt16] {
            check("padding", || {
                let options = rows(Some(1 << 14), columns);
                let rows = encode_rows(&mut tokenizer.session(0), &options, &texts, 0)?;
                encoded(rows, id_type).map(drop)
            });
        }
    }
    check("pages", || {
        let maker = IdPages::new(9, Codec::None);
        maker.encoded(&tokenizer, &rows(Some(1 << 14), false), &texts, 0).map(drop)
    });
    let (cls_id, sep_id, pad_id) = (Some(1), Some(2), Some(0));
    let options = PackOptions { length: 1 << 20, cls_id, sep_id, own: [0; 2], pad_id };
    let one: arrow_array::ArrayRef =
        std::sync::Arc::new(arrow_array::ListArray::from_iter_primitive::<
            arrow_array::types::Int32Type,
            _,
            _,
        >([Some(vec![Some(1)])]));
    check("packing", || {
        let mut packer = Packer::new(options)?;
        pack::<arrow_array::types::Int32Type>(&mut packer, &one, 0, 9)?;
        let names = ["attention_mask", "special_tokens_mask", "token_type_ids"];
        packed_batch(packer.finish(), IdType::Int32, &names.map(String::from)).map(drop)
    });
}

#[test]
fn counting_that_needs_too_much_memory_is_an_error() {
    let many: Vec<String> = (0..20_000).map(|n| format!("{n} {n:015} {n:025} {n:040}")).collect();
    check("counting", || {
        let mut counter = WordCounter::new(PLAIN, usize::MAX);
        many.iter().for_each(|text| counter.count(None, text));
        for list in counter.take(3)? {
            crate::arrow::count::word_table(list.words.iter())?;
        }
        Ok(())
    });
    let long = "ab".repeat(1 << 20);
    let texts: arrow_array::ArrayRef =
        std::sync::Arc::new(arrow_array::BinaryArray::from_vec(vec![long.as_bytes()]));
    check("a long word", || {
        let mut counter = WordCounter::new(PLAIN, usize::MAX);
        each_text(&texts, |row| {
            counter.count(None, &row.map(|row| row.text).unwrap_or_default());
            true
        })?;
        counter.take(1).map(drop)?;
        Ok(())
    });
}

#[test]
fn training_that_needs_too_much_memory_is_an_error() {
    let symbols: Vec<u32> =
        (0..1 << 17).map(|n: u32| n.wrapping_mul(2_654_435_761) >> 15).collect();
    check("splits", || {
        let mut splits = Splits::default();
        (0..4).for_each(|rank| splits.push((rank, 0), 1, &symbols));
        let mut counter = PairCounter::default();
        for (first, count, symbols) in splits.iter() {
            counter.add_split(first, count, symbols)?;
        }
        RoundRuns::default().extend(&splits)?;
        train::read_splits(&train::splits_batch(splits)?).map(drop)
    });
}
