//! Vocabularies, merges and scores as a tokenizer file may hold them: a model is refused, or encodes any
//! text into ids of its vocabulary with spans in the text.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;
use wordpiece_core::encode::{
    AddedToken, BpeOptions, Layout, ModelOptions, RowColumns, RowOptions, Rows, TextPair, Tokenizer, TokenizerOptions, Truncation, UnigramOptions, UnkScope,
    WordPieceOptions, encode_rows,
};
use wordpiece_core::text::{Composed, TextOptions, TextRules, WordBoundary};

#[derive(Arbitrary, Debug)]
enum Kind {
    WordPiece { prefix: String, by_word: bool, most: u8 },
    Bpe { boundary: u8, byte_fallback: bool, fuse_unk: bool, ignore_merges: bool, tied: Vec<u8> },
    Unigram { scores: Vec<f32>, byte_fallback: bool, of_sentencepiece: bool },
}

#[derive(Arbitrary, Debug)]
enum Text {
    Bert(bool, bool, bool, bool, bool),
    ByteLevel(bool),
    Composed(u8, u8),
}

/// The options for rows.
#[derive(Arbitrary, Debug)]
struct Shape {
    /// The number of tokens added at each place of a row, for one text and for a pair.
    added: [[u8; 3]; 2],
    max_length: Option<u8>,
    truncation: u8,
    stride: Option<u8>,
    pads: bool,
    pairs: bool,
}

#[derive(Arbitrary, Debug)]
struct Input {
    vocabulary: Vec<String>,
    /// The indices of two tokens that make a token, so that merges make tokens.
    joined: Vec<(u8, u8)>,
    kind: Kind,
    text: Text,
    /// The places of added tokens, with their `lstrip`, `rstrip`, `single_word` and `normalized`.
    added: Vec<(u8, [bool; 4])>,
    hidden: Vec<u8>,
    trimming: Option<Vec<bool>>,
    unk: Option<u8>,
    texts: Vec<String>,
    shape: Shape,
}

const NORMALIZERS: [&str; 6] = [
    r#"{"type": "SentencePiece", "precompiled_charsmap": "", "add_dummy_prefix": true, "remove_extra_whitespaces": true, "escape_whitespaces": true, "treat_whitespace_as_suffix": false, "user_defined_symbols": []}"#,
    r#"{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}"#,
    r#"{"type": "NFKC"}"#,
    r#"{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}"#,
    r#"{"type": "Strip", "strip_left": true, "strip_right": true}"#,
    r#"{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true}"#,
];
const PRE_TOKENIZERS: [&str; 6] = [
    r#"{"type": "Split", "pattern": {"String": "▁"}, "behavior": "MergedWithNext", "invert": false}"#,
    r#"{"type": "Whitespace"}"#,
    r#"{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true}"#,
    r#"{"type": "Sequence", "pretokenizers": []}"#,
    // The expression of GPT-2: the words are parts of the text, or of a text of characters for bytes.
    r#"{"type": "Split", "pattern": {"Regex": "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"}, "behavior": "Isolated", "invert": false}"#,
    r#"{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}"#,
];

/// `of_bytes`: whether the tokens are of bytes.
fn rules(text: &Text, of_bytes: bool) -> Option<TextRules> {
    Some(match *text {
        Text::Bert(a, b, c, d, e) => TextOptions {
            clean_text: a,
            handle_chinese_chars: b,
            strip_accents: c,
            lowercase: d,
            split_punctuation: e,
        }
        .into(),
        Text::ByteLevel(add_prefix_space) => Composed::gpt2(add_prefix_space).into(),
        Text::Composed(normalizer, pre_tokenizer) => {
            let normalizer = NORMALIZERS[normalizer as usize % NORMALIZERS.len()];
            let pre_tokenizer = PRE_TOKENIZERS[pre_tokenizer as usize % PRE_TOKENIZERS.len()];
            Composed::new(Some(normalizer), Some(pre_tokenizer), of_bytes).ok()?.into()
        }
    })
}

fn made(input: &Input) -> Option<(Tokenizer, usize)> {
    let mut vocabulary = input.vocabulary.clone();
    let mut merges = Vec::new();
    for &(left, right) in &input.joined {
        if vocabulary.is_empty() {
            break;
        }
        let [left, right] = [left, right].map(|at| at as usize % vocabulary.len());
        merges.push((left as u32, right as u32));
        vocabulary.push(format!("{}{}", vocabulary[left], vocabulary[right]));
    }
    let mut seen = HashSet::new();
    // Ids are the indices of tokens, without duplicates.
    if !vocabulary.iter().all(|token| seen.insert(token.as_str())) || vocabulary.is_empty() {
        return None;
    }
    let listed: Vec<&str> = vocabulary.iter().map(String::as_str).collect();
    let id = |at: u8| u32::from(at) % listed.len() as u32;
    let unk_id = input.unk.map(id);
    let added_tokens = (input.added.iter())
        .map(|&(at, [lstrip, rstrip, single_word, normalized])| {
            let content = vocabulary[id(at) as usize].clone();
            AddedToken { content, id: id(at), lstrip, rstrip, single_word, normalized, special: true }
        })
        .collect();
    let hidden: Vec<u32> = input.hidden.iter().map(|&at| id(at)).collect();
    let of_bytes = matches!(input.kind, Kind::Bpe { boundary, .. } if boundary % 4 == 3);
    let (tied, scores): (Vec<u32>, Vec<f64>);
    let model = match &input.kind {
        Kind::WordPiece { prefix, by_word, most } => ModelOptions::WordPiece(WordPieceOptions {
            continuing_prefix: prefix,
            unk_scope: if *by_word { UnkScope::Word } else { UnkScope::Character },
            max_word_length: (*most).into(),
        }),
        &Kind::Bpe { boundary, byte_fallback, fuse_unk, ignore_merges, tied: ref at } => {
            let boundaries = [
                WordBoundary::None,
                WordBoundary::End,
                WordBoundary::SpaceMark,
                WordBoundary::Bytes,
            ];
            let word_boundary = boundaries[usize::from(boundary) % 4];
            tied = at.iter().map(|&at| at.into()).collect();
            let (merges, tied) = (&merges, &tied);
            ModelOptions::Bpe(BpeOptions {
                merges,
                word_boundary,
                byte_fallback,
                fuse_unk,
                ignore_merges,
                tied,
            })
        }
        &Kind::Unigram { scores: ref given, byte_fallback, of_sentencepiece } => {
            let given = given.iter().map(|&score| score.into());
            scores = given.chain(std::iter::repeat(-1.0)).take(listed.len()).collect();
            let (scores, user_defined) = (&scores, &[]);
            let options = UnigramOptions { scores, byte_fallback, of_sentencepiece, user_defined };
            ModelOptions::Unigram(options)
        }
    };
    let options = TokenizerOptions {
        vocabulary: &listed,
        text: rules(&input.text, of_bytes)?,
        model,
        unk_id,
        added_tokens,
        hidden: &hidden,
        trim_offsets: input.trimming.clone().unwrap_or_default(),
    };
    Some((Tokenizer::new(options).ok()?, listed.len()))
}

/// The options of rows with all columns, or with none.
fn row_options(shape: &Shape, all: bool) -> RowOptions {
    let truncations = [Truncation::LongestFirst, Truncation::OnlyFirst, Truncation::OnlySecond];
    RowOptions {
        layouts: shape.added.map(|added| Layout {
            added: added.map(|count| vec![(0, 0); count as usize % 3]),
            ..Layout::default()
        }),
        max_length: shape.max_length.map(usize::from),
        truncation: truncations[shape.truncation as usize % 3],
        stride: shape.max_length.and(shape.stride).map(usize::from),
        pad_id: (shape.max_length.is_some() && shape.pads).then_some(0),
        columns: RowColumns {
            attention_mask: all,
            token_type_ids: all,
            special_tokens_mask: all,
            offset_mapping: all,
            word_ids: all,
            num_tokens: all,
        },
    }
}

/// Rows are the same without columns, from the caches, and in a new session, and are of the texts.
fn check_rows(
    tokenizer: &Tokenizer,
    tokens: usize,
    texts: &[TextPair<'_>],
    options: impl Fn(bool) -> RowOptions,
) {
    let mut session = tokenizer.session(0, 1);
    let mut rows = |all| encode_rows(&mut session, &options(all), texts, 0);
    let (bare, full, again) = (rows(false), rows(true), rows(true));
    let new = encode_rows(&mut tokenizer.session(1, 1), &options(true), texts, 0);
    let (Ok(bare), Ok(full), Ok(again), Ok(new)) = (&bare, &full, &again, &new) else {
        let errors = [bare.err(), again.err(), new.err()];
        assert!(errors.into_iter().all(|error| error == full.as_ref().err().cloned()));
        return;
    };
    assert!(full.ids.iter().all(|&id| (id as usize) < tokens));
    let columns = |rows: &Rows| (rows.offset_mapping.clone(), rows.word_ids.clone());
    assert!(full.lists().eq(bare.lists()));
    assert_eq!((full.words, full.word_tokens), (bare.words, bare.word_tokens));
    for other in [again, new] {
        assert!(full.lists().eq(other.lists()));
        assert_eq!(columns(full), columns(other));
    }
    let (offsets, words) = columns(full);
    let (offsets, words) = (offsets.expect("wanted"), words.expect("wanted"));
    assert_eq!((offsets.len(), words.len()), (2 * full.ids.len(), full.ids.len()));
    let characters = |text: &[u8]| String::from_utf8_lossy(text).chars().count();
    let all = texts.iter().flat_map(|(text, pair)| [*text, pair.flatten()]).flatten();
    let longest = all.map(characters).max().unwrap_or(0) as i32;
    assert!(offsets.chunks(2).all(|at| 0 <= at[0] && at[0] <= at[1] && at[1] <= longest));
}

fuzz_target!(|input: Input| {
    let Some((tokenizer, tokens)) = made(&input) else { return };
    // Each text as one row of its ids alone.
    let whole: Vec<TextPair<'_>> =
        input.texts.iter().map(|text| (Some(text.as_bytes()), None)).collect();
    let plain = Shape { max_length: None, added: Default::default(), ..input.shape };
    check_rows(&tokenizer, tokens, &whole, |all| row_options(&plain, all));
    // Few and short ones as rows of any shape: longer ones may have millions of rows.
    let short = |text: &String| text.chars().take(32).collect::<String>();
    let texts: Vec<String> = input.texts.iter().take(8).map(short).collect();
    let second =
        |at: usize| input.shape.pairs.then(|| Some(texts[texts.len() - 1 - at].as_bytes()));
    let pairs: Vec<TextPair<'_>> =
        texts.iter().enumerate().map(|(at, text)| (Some(text.as_bytes()), second(at))).collect();
    check_rows(&tokenizer, tokens, &pairs, |all| row_options(&input.shape, all));
});
