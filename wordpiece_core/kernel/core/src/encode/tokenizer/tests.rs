use std::sync::Arc;

use super::cache::{CACHE_LIMIT, Caches, KEPT_LIMIT};
use super::*;
use crate::encode::added_tokens::AddedToken;
use crate::encode::bpe::BpeOptions;
use crate::encode::unigram::UnigramOptions;
use crate::encode::wordpiece::WordPieceOptions;
use crate::text::bert::TextOptions;
use crate::text::composed::Composed;
use crate::text::marks::WordBoundary;
use crate::text::segment_table::LONGEST;
use wordpiece_testing::{Random, peak_of};

const VOCABULARY: [&str; 8] = ["[UNK]", "[SEP]", "a", "##a", "ab", "##b", "日", "!"];

fn tokenizer() -> Tokenizer {
    let (text, model) = (TextOptions::default(), WordPieceOptions::default());
    let sep = AddedToken { content: "[SEP]".into(), id: 1, ..AddedToken::default() };
    made(vec![sep], TokenizerOptions::new(&VOCABULARY, text, model))
}

/// A tokenizer with the unknown token 0.
fn made(added_tokens: Vec<AddedToken>, options: TokenizerOptions<'_>) -> Tokenizer {
    Tokenizer::new(TokenizerOptions { unk_id: Some(0), added_tokens, ..options }).unwrap()
}

fn read(session: &mut Session<'_>, text: &str, spans: bool) -> Encoding {
    let mut encoding = Encoding::default();
    session.encode(text, spans, &mut encoding);
    encoding
}

#[test]
fn spans_are_characters_and_words() {
    let tokenizer = tokenizer();
    let mut session = tokenizer.session(0, 1);
    for _ in 0..2 {
        let encoding = read(&mut session, "\u{1F600} Ábaa日[SEP]b!", true);
        assert_eq!(encoding.ids(), [0, 4, 3, 3, 6, 1, 0, 7]);
        let spans: Vec<_> = encoding.spans.iter().map(|s| (s.start, s.end, s.word)).collect();
        let words = [(0, 1, 0), (2, 4, 1), (4, 5, 1), (5, 6, 1)];
        assert_eq!(spans[..4], words);
        assert_eq!(spans[4..], [(6, 7, 2), (7, 12, 3), (12, 13, 4), (13, 14, 5)]);
    }
}

#[test]
fn sessions_of_any_number_take_little_memory() {
    let tokenizer = tokenizer();
    drop(tokenizer.session(usize::MAX, 1));
    assert!(tokenizer.caches.lock().expect("no thread has failed").len() <= 1 << 10);
}

#[test]
fn words_are_counted_with_their_tokens_and_special_tokens_are_not() {
    let tokenizer = tokenizer();
    let long = "ab".repeat(LONGEST);
    for spans in [false, true] {
        let mut session = tokenizer.session(0, 1);
        let mut count = |text: &str| {
            let encoding = read(&mut session, text, spans);
            (encoding.words, encoding.word_tokens, encoding.len())
        };
        assert_eq!(count("aba aba[SEP]日! zzz \u{301} [SEP]"), (5, 7, 9));
        assert_eq!(count(&format!("[SEP]{long}")), (1, 1, 2));
        assert_eq!(count(""), (0, 0, 0));
    }
}

#[test]
fn a_cached_word_is_encoded_as_a_new_one() {
    let tokenizer = tokenizer();
    let lengths = [1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 33, 99, 100, 101, 1024, 1025];
    let words: Vec<String> =
        lengths.iter().map(|&length| "ab".repeat(length)[..length].into()).collect();
    let text = words.join(" ").repeat(2) + " " + &words.join("!");
    let mut together = Vec::new();
    for word in text.split(' ').flat_map(|words| words.split_inclusive('!')) {
        tokenizer.caches.lock().expect("no thread has failed").clear();
        together.extend_from_slice(read(&mut tokenizer.session(0, 1), word, false).ids());
    }
    let mut session = tokenizer.session(0, 1);
    assert_eq!(read(&mut session, &text, false).ids(), together);
    assert_eq!(read(&mut session, &text, true).ids(), together);
}

#[test]
fn caches_are_bounded_in_a_text_and_over_texts() {
    let tokenizer = tokenizer();
    let words = |n| format!("{n} a{n}ab{n}abab{n} {}{n} ", "ab".repeat(20));
    let texts: Vec<String> = (0..2_000).map(words).collect();
    for texts in [vec![texts.concat()], texts] {
        let mut session = tokenizer.session(0, 1);
        for text in texts {
            let ids = read(&mut session, &text, false);
            let spans = read(&mut session, &text, true);
            assert_eq!(ids.ids(), spans.ids());
            let Caches { ids, spans, .. } = &session.caches;
            assert!(ids.memory() <= CACHE_LIMIT && spans.memory() <= CACHE_LIMIT);
        }
    }
}

#[test]
fn caches_are_bounded_while_they_grow() {
    let tokenizer = tokenizer();
    let texts: Vec<String> =
        (0..3_000).map(|n| format!("{n} {} {n:020} a{n:050}", "ab".repeat(n % 60))).collect();
    let mut ids = Vec::new();
    for spans in [false, true] {
        let mut session = tokenizer.session(usize::from(spans), 1);
        read(&mut session, &texts[2_999], spans); // what is filled once
        let (peak, largest) = peak_of(|| {
            let mut largest = 0;
            for text in &texts {
                largest = largest.max(read(&mut session, text, spans).len());
                let Caches { ids, spans, .. } = &session.caches;
                largest = largest.max(ids.memory().max(spans.memory()));
            }
            largest
        });
        assert!(peak < CACHE_LIMIT + (1 << 15), "{peak}");
        assert!(largest > CACHE_LIMIT / 3, "{largest}"); // of the memory that it may take, it makes use
        ids.push(texts.iter().map(|t| read(&mut session, t, spans).ids().to_vec()).collect());
    }
    let [plain, spanned]: [Vec<Vec<u32>>; 2] = ids.try_into().expect("two");
    assert_eq!(plain, spanned);
}

#[test]
fn threads_share_the_memory_of_caches() {
    let tokenizer = tokenizer();
    let texts: Vec<String> = (0..3_000).map(|n| format!("{n} {n:020} a{n:050}")).collect();
    for threads in [1, 8, 3] {
        let mut sessions: Vec<_> = (0..threads).map(|n| tokenizer.session(n, threads)).collect();
        for session in &mut sessions {
            let memory = texts.iter().map(|text| {
                read(session, text, false);
                session.caches.memory()
            });
            let largest = memory.fold(0, usize::max);
            let limit = CACHE_LIMIT.min(KEPT_LIMIT / threads);
            assert!((limit / 4..=limit + (1 << 13)).contains(&largest), "{largest} of {limit}");
        }
        drop(sessions);
        let kept = tokenizer.caches.lock().expect("no thread has failed");
        let memory: usize = kept.iter().flatten().map(Caches::memory).sum();
        assert!((KEPT_LIMIT / 8..=KEPT_LIMIT).contains(&memory), "{threads}: {memory}");
    }
}

#[test]
fn what_was_found_is_not_used_once_the_cache_is_emptied() {
    let tokenizer = tokenizer();
    let known: Vec<String> = (3..43).map(|n| "ab".repeat(n)).collect();
    let new = |n: usize| (0..14).fold("a".to_string(), |word, bit| word + ["a", "b"][n >> bit & 1]);
    let ids = |word: &str| {
        tokenizer.caches.lock().expect("no thread has failed").clear();
        read(&mut tokenizer.session(0, 1), word, false).ids().to_vec()
    };
    let known_ids: Vec<Vec<u32>> = known.iter().map(|word| ids(word)).collect();
    let new_ids: Vec<Vec<u32>> = (0..1 << 14).map(|n| ids(&new(n))).collect();
    for spans in [false, true] {
        let mut session = tokenizer.session(1 + usize::from(spans), 1);
        for text in 0..(1 << 14) / known.len() {
            let words = known.iter().zip(text * known.len()..);
            let together: String =
                words.clone().map(|(word, n)| format!("{} {word} ", new(n))).collect();
            let expected = known_ids.iter().zip(&new_ids[text * known.len()..]);
            let expected: Vec<u32> =
                expected.flat_map(|(known, new)| [&new[..], known].concat()).collect();
            assert_eq!(read(&mut session, &together, spans).ids(), expected, "{text}");
        }
    }
}

/// Rules as Llama 2's, with or without a normalizer, and their tokenizer.
fn llama_2(
    normalizer: Option<&str>,
    pre_tokenizer: Option<&str>,
    merges: &[(u32, u32)],
) -> Tokenizer {
    let vocabulary = ["<unk>", "<s>", "▁", "a", "b", "▁▁", "▁a", "ab", "b▁", "é", "b▁a", "aé"];
    let bpe = BpeOptions { merges, fuse_unk: true, ..BpeOptions::default() };
    let late = AddedToken { content: "<s>".into(), id: 1, normalized: true, ..Default::default() };
    let rules = Composed::new(normalizer, pre_tokenizer, false).expect("they are known");
    made(vec![late], TokenizerOptions::new(&vocabulary, rules, bpe))
}

#[test]
fn text_whose_spaces_are_only_marked_is_encoded_as_it_is_once_they_are() {
    let replace = r#"{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}"#;
    let prepend = r#"{"type": "Prepend", "prepend": "▁"}"#;
    let both = format!(r#"{{"type": "Sequence", "normalizers": [{prepend}, {replace}]}}"#);
    let model = r#"{"type": "SentencePiece", "precompiled_charsmap": "", "add_dummy_prefix": true,
        "remove_extra_whitespaces": false, "escape_whitespaces": true,
        "treat_whitespace_as_suffix": false, "user_defined_symbols": []}"#;
    let metaspace = |scheme: &str| {
        format!(
            r#"{{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "{scheme}", "split": false}}"#
        )
    };
    let schemes = ["always", "first", "never"].map(metaspace);
    let normalizers = [replace, &both, model].map(|normalizer| (Some(normalizer), None));
    let pre_tokenizers = schemes.iter().map(|scheme| (None, Some(scheme.as_str())));
    let merge_lists: [&[(u32, u32)]; 2] =
        [&[(2, 2), (2, 3), (3, 4)], &[(4, 2), (2, 2), (8, 3), (3, 9), (2, 3)]];
    let parts = ["a", "b", " ", " ", "▁", "é", "z", "<s>", "<s", ">", "日", "\n"];
    let mut random = Random::new(47);
    for (normalizer, pre_tokenizer) in normalizers.into_iter().chain(pre_tokenizers) {
        for merges in merge_lists {
            let tokenizer = llama_2(normalizer, pre_tokenizer, merges);
            let mut session = tokenizer.session(0, 1);
            for _ in 0..if cfg!(debug_assertions) { 1_000 } else { 20_000 } {
                let kinds = 2 + random.below(parts.len() - 2);
                let text: String =
                    (0..random.below(24)).map(|_| parts[random.below(kinds)]).collect();
                let [quick, aligned] = [false, true].map(|spans| read(&mut session, &text, spans));
                assert_eq!(
                    quick.ids(),
                    aligned.ids(),
                    "{text:?}, {normalizer:?}, {pre_tokenizer:?}"
                );
                assert_eq!(quick.words, aligned.words, "{text:?}");
                assert_eq!(quick.word_tokens, aligned.word_tokens, "{text:?}");
            }
        }
    }
}

/// Return a tokenizer with rules like SentencePiece's. `late`: true for an added token that is searched in normalized
/// text, so that no text is split before it is normalized.
fn of_spaces(rules: &Arc<Composed>, late: bool) -> Tokenizer {
    let vocabulary = ["<unk>", "<s>", "▁", "a", "b", "▁a", "ab", "é", "▁b", "<late>"];
    let scores = [0.0, 0.0, -2.0, -3.0, -3.5, -4.0, -5.0, -3.25, -4.5, 0.0];
    let unigram = UnigramOptions { scores: &scores, ..UnigramOptions::default() };
    let token = |content: &str, id, normalized| AddedToken {
        content: content.into(),
        id,
        normalized,
        ..AddedToken::default()
    };
    let added_tokens = [token("<s>", 1, false), token("<late>", 9, true)];
    let text = TextRules::Composed(Arc::clone(rules));
    let options = TokenizerOptions::new(&vocabulary, text, unigram);
    let added_tokens = added_tokens[..1 + usize::from(late)].to_vec();
    made(added_tokens, TokenizerOptions { hidden: &[0, 1, 9], ..options })
}

/// Maps that `sentencepiece` compiled: U+0001 and U+200B are dropped, other spaces become spaces, `A` becomes
/// `a`; with CJK there are also spaces around `日`.
const CHARSMAP: &str = include_str!("charsmap.b64");
const CHARSMAP_CJK: &str = include_str!("charsmap_cjk.b64");

#[test]
fn text_that_is_split_at_spaces_first_is_encoded_as_it_is_as_a_whole() {
    let mut all: Vec<(Option<String>, String)> = Vec::new();
    for (map, schemes) in
        [("", &["always", "first", "never"][..]), (CHARSMAP, &["always"]), (CHARSMAP_CJK, &[])]
    {
        let precompiled = format!(r#"{{"type": "Precompiled", "precompiled_charsmap": "{map}"}}"#);
        let replaced = format!(
            r#"{{"type": "Sequence", "normalizers": [{precompiled},
                {{"type": "Strip", "strip_left": false, "strip_right": true}},
                {{"type": "Replace", "pattern": {{"Regex": " {{2,}}"}}, "content": "▁"}}]}}"#
        );
        for &scheme in schemes {
            let spaces = format!(
                r#"{{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "{scheme}", "split": true}}"#
            );
            let words = r#"{"type": "WhitespaceSplit"}"#;
            let words = format!(r#"{{"type": "Sequence", "pretokenizers": [{words}, {spaces}]}}"#);
            all.extend([(None, spaces.clone()), (Some(precompiled.clone()), spaces.clone())]);
            all.push((Some(replaced.clone()), spaces));
            all.extend((scheme == "always").then(|| (Some(precompiled.clone()), words)));
        }
        for [dummy, extra] in [[true, true], [false, true], [true, false], [false, false]] {
            let model = format!(
                r#"{{"type": "SentencePiece", "precompiled_charsmap": "{map}", "add_dummy_prefix": {dummy},
                    "remove_extra_whitespaces": {extra}, "escape_whitespaces": true,
                    "treat_whitespace_as_suffix": false, "user_defined_symbols": []}}"#
            );
            let marks = r#"{"type": "Split", "pattern": {"String": "▁"}, "behavior": "MergedWithNext", "invert": false}"#;
            all.push((Some(model), marks.into()));
        }
    }
    let parts = [
        "a", "b", " ", " ", "▁", "é", "z", "<s>", "日", "\n", "\u{1}", "\u{301}", "\u{3000}",
        "\u{85}", "\u{200b}", "A", "\r\n", "\u{600}",
    ];
    let mut random = Random::new(48);
    for (normalizer, pre_tokenizer) in &all {
        let rules = Composed::new(normalizer.as_deref(), Some(pre_tokenizer), false);
        let rules = Arc::new(rules.expect("they are known"));
        let (split, whole) = (of_spaces(&rules, false), of_spaces(&rules, true));
        assert!(matches!((&split.plan, &whole.plan), (Plan::Spaces(_), Plan::Pieces)));
        let (mut split, mut whole) = (split.session(0, 1), whole.session(0, 1));
        for _ in 0..if cfg!(debug_assertions) { 200 } else { 10_000 } {
            let kinds = 2 + random.below(parts.len() - 1);
            let text: String = (0..random.below(24)).map(|_| parts[random.below(kinds)]).collect();
            for spans in [false, true] {
                let [found, expected] =
                    [&mut split, &mut whole].map(|session| read(session, &text, spans));
                let said = format!("{text:?}, {normalizer:?}, {pre_tokenizer}, {spans}");
                assert_eq!(found.ids(), expected.ids(), "{said}");
                assert_eq!(found.spans, expected.spans, "{said}");
                assert_eq!(found.words, expected.words, "{said}");
            }
        }
    }
}

#[test]
fn options_that_cannot_be_are_errors() {
    let vocabulary = ["[UNK]", "a", "b", "ab"];
    let wordpiece = TokenizerOptions {
        unk_id: Some(0),
        ..TokenizerOptions::new(&vocabulary, TextOptions::default(), WordPieceOptions::default())
    };
    let fails = |options| matches!(Tokenizer::new(options), Err(Error::Option(_)));
    let bpe = BpeOptions { merges: &[(1, 2)], ..BpeOptions::default() };
    let bytes = BpeOptions { word_boundary: WordBoundary::Bytes, ..bpe.clone() };
    let text = || Composed::gpt2(false);
    assert!(fails(TokenizerOptions { hidden: &[4], ..wordpiece }));
    assert!(fails(TokenizerOptions::new(&vocabulary, text(), bpe.clone())));
    assert!(!fails(TokenizerOptions::new(&vocabulary, text(), bytes)));
    let tied = BpeOptions { tied: &[1], ..bpe.clone() };
    assert!(
        Tokenizer::new(TokenizerOptions::new(&vocabulary, TextOptions::default(), tied)).is_err()
    );
    let pairs = [(1, 2), (1, 3), (1, 2)]; // the last one has the rank of the second
    let vocabulary = ["[UNK]", "a", "b", "ab", "aab"];
    let twice = BpeOptions { merges: &pairs, tied: &[2], ..BpeOptions::default() };
    let made = Tokenizer::new(TokenizerOptions::new(&vocabulary, TextOptions::default(), twice));
    let error = made.err().expect("a pair occurs twice").to_string();
    assert!(error.contains("merge 2: the pair occurs twice"), "{error}");
}
