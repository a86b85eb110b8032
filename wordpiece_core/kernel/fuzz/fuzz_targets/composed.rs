//! Normalizers, pre-tokenizers and regular expressions as a `tokenizer.json` may have them: they are
//! refused, or give pieces of any text, the same ones in every way that there is.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use std::sync::Arc;
use wordpiece_core::text::{Composed, TextRules};
use wordpiece_core::{Error, caught};

#[derive(Arbitrary, Debug)]
enum Normal {
    Bert(bool, bool, Option<bool>, bool),
    Named(u8),
    Strip(bool, bool),
    Replace(bool, String, String),
    Prepend(String),
}

#[derive(Arbitrary, Debug)]
enum Split {
    Named(u8),
    ByteLevel(bool, bool),
    Delimiter(char),
    Metaspace(char, u8, bool),
    Punctuation(u8),
    Digits(bool),
    Split(bool, String, u8, bool),
    Regex(Vec<u8>, u8, bool),
    FixedLength(u8),
    Known(u8),
}

#[derive(Arbitrary, Debug)]
struct Input {
    normalizers: Vec<Normal>,
    splits: Vec<Split>,
    texts: Vec<String>,
}

const NORMALIZERS: [&str; 8] =
    ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel"];
const NAMED_SPLITS: [&str; 3] = ["BertPreTokenizer", "Whitespace", "WhitespaceSplit"];
const BEHAVIORS: [&str; 5] =
    ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"];
const SCHEMES: [&str; 3] = ["always", "first", "never"];
/// Expressions with a dedicated splitter: GPT-2, Llama 3 and GPT-4o.
const KNOWN: [&str; 3] = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    concat!(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
];

/// Elements of expressions.
const SYNTAX: &str = r"\p{L} \p{N} \s \S \w \b \K \G \1 \X \R . ^ $ | + * ? ?+ ++ *? {2} {1,3} {,2} ( (?: (?i: (?= (?! (?<= (?<! (?> (?~ ) [ [^ ] && - a b é ſ";

fn pattern(is_regex: bool, text: &str) -> Value {
    if is_regex { json!({ "Regex": text }) } else { json!({ "String": text }) }
}

fn normalizer(part: &Normal) -> Value {
    match part {
        Normal::Bert(clean, chinese, strip, lower) => json!({"type": "BertNormalizer",
            "clean_text": clean, "handle_chinese_chars": chinese, "strip_accents": strip,
            "lowercase": lower}),
        Normal::Named(name) => json!({"type": NORMALIZERS[*name as usize % 8]}),
        Normal::Strip(l, r) => json!({"type": "Strip", "strip_left": l, "strip_right": r}),
        Normal::Replace(is_regex, text, content) => json!({"type": "Replace",
            "pattern": pattern(*is_regex, text), "content": content}),
        Normal::Prepend(text) => json!({"type": "Prepend", "prepend": text}),
    }
}

fn split(pattern: Value, behavior: &str, invert: bool) -> Value {
    json!({"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert})
}

/// `plain`: whether known expressions are written so that they are not recognized.
fn pre_tokenizer(part: &Split, plain: bool) -> Value {
    match part {
        Split::Named(name) => json!({"type": NAMED_SPLITS[*name as usize % 3]}),
        Split::ByteLevel(space, regex) => {
            json!({"type": "ByteLevel", "add_prefix_space": space, "use_regex": regex})
        }
        Split::Delimiter(c) => json!({"type": "CharDelimiterSplit", "delimiter": c}),
        Split::Metaspace(c, scheme, split) => json!({"type": "Metaspace", "replacement": c,
            "prepend_scheme": SCHEMES[*scheme as usize % 3], "split": split}),
        Split::Punctuation(b) => {
            json!({"type": "Punctuation", "behavior": BEHAVIORS[*b as usize % 5]})
        }
        Split::Digits(each) => json!({"type": "Digits", "individual_digits": each}),
        Split::Split(is_regex, text, b, invert) => {
            split(pattern(*is_regex, text), BEHAVIORS[*b as usize % 5], *invert)
        }
        Split::Regex(parts, b, invert) => {
            let syntax: Vec<&str> = SYNTAX.split(' ').chain([" "]).collect();
            let regex = parts.iter().map(|&at| syntax[at as usize % syntax.len()]);
            split(pattern(true, &regex.collect::<String>()), BEHAVIORS[*b as usize % 5], *invert)
        }
        Split::FixedLength(length) => json!({"type": "FixedLength", "length": length}),
        Split::Known(known) => {
            let regex = KNOWN[*known as usize % 3];
            let wrapped = format!("(?:{regex})");
            split(pattern(true, if plain { &wrapped } else { regex }), "Isolated", false)
        }
    }
}

fn rules(input: &Input, plain: bool) -> Option<Arc<Composed>> {
    // Few of them: each `ByteLevel` may make a text twice as long.
    let parts: Vec<_> = input.normalizers.iter().take(5).map(normalizer).collect();
    let splits: Vec<_> =
        input.splits.iter().take(5).map(|part| pre_tokenizer(part, plain)).collect();
    let normalizer = json!({"type": "Sequence", "normalizers": parts}).to_string();
    let splitter = json!({"type": "Sequence", "pretokenizers": splits}).to_string();
    Composed::new(Some(&normalizer), Some(&splitter), false).ok().map(Arc::new)
}

/// The pieces of a text, which are in order, on boundaries and from inside of it.
fn pieces(rules: &Composed, text: &str, aligned: bool) -> Vec<String> {
    let normalized = rules.normalized(text, 0, aligned);
    if rules.leaves(text) {
        assert_eq!(normalized.text(), text);
    }
    let pieces = rules.pieces(normalized, true);
    let mut end = 0;
    let found = pieces.ranges.iter().map(|range| {
        assert!(end <= range.start && range.start < range.end);
        end = range.end;
        if aligned && let Some((from, to)) = pieces.text.origin(range.clone()) {
            assert!(from <= to && text.get(from as usize..to as usize).is_some());
        }
        pieces.text.text()[range.clone()].to_string()
    });
    found.collect()
}

fuzz_target!(|input: Input| {
    let (Some(rules), Some(plain)) = (rules(&input, false), rules(&input, true)) else { return };
    for text in &input.texts {
        let checked = caught(|| {
            let found = pieces(&rules, text, false);
            assert_eq!(pieces(&rules, text, true), found);
            assert_eq!(pieces(&plain, text, false), found);
            let mut segments = Vec::new();
            let text_rules = TextRules::Composed(Arc::clone(&rules));
            text_rules.segments(text, |piece| segments.push(piece.raw.to_string()));
            assert_eq!(segments, found);
            Ok(())
        });
        // A regular expression that takes too long is an error; a failed assertion is a fault.
        assert!(!matches!(checked, Err(Error::Panic(_))), "{checked:?}");
    }
});
