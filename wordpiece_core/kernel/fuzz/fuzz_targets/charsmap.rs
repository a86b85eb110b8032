//! Compiled maps of characters of any bytes, as files of SentencePiece have them, applied to a text: a map is
//! refused, or the segments of the text are the pieces of it normalized as a whole.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use wordpiece_core::text::{Composed, TextRules};

/// The rules of one of five ways, with a mark before texts by one of three schemes. `map`: the compiled map of
/// characters, in base64. None if they are refused.
fn rules(way: u8, scheme: u8, map: &str) -> Option<Composed> {
    let scheme = ["always", "first", "never"][scheme as usize % 3];
    let precompiled = json!({"type": "Precompiled", "precompiled_charsmap": map});
    let strip = json!({"type": "Strip", "strip_left": false, "strip_right": true});
    let content = if way < 128 { "▁" } else { " " };
    let replace = json!({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": content});
    let spaces =
        json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": true});
    let at_marks = json!({"type": "Split", "pattern": {"String": "▁"}, "behavior": "MergedWithNext", "invert": false});
    let model = |collapse: bool| {
        json!({"type": "SentencePiece", "precompiled_charsmap": map, "add_dummy_prefix": scheme != "never",
            "remove_extra_whitespaces": collapse, "escape_whitespaces": true,
            "treat_whitespace_as_suffix": false, "user_defined_symbols": []})
    };
    let all =
        |parts: &[Value]| json!({"type": "Sequence", "pretokenizers": parts, "normalizers": parts});
    let (normalizer, pre_tokenizer) = match way % 5 {
        0 => (model(true), at_marks),
        1 => (model(false), at_marks),
        2 => (precompiled, spaces),
        3 => (all(&[precompiled, strip, replace]), spaces),
        _ => (precompiled, all(&[json!({"type": "WhitespaceSplit"}), spaces])),
    };
    Composed::new(Some(&normalizer.to_string()), Some(&pre_tokenizer.to_string()), false).ok()
}

// Two bytes of options, the length of the text, the text, and the map.
fuzz_target!(|data: &[u8]| {
    let [way, scheme, length, rest @ ..] = data else { return };
    let (text, map) = rest.split_at((*length as usize).min(rest.len()));
    let text = String::from_utf8_lossy(text);
    let Some(rules) = rules(*way, *scheme, &data_encoding::BASE64.encode(map)) else { return };
    let rules = Arc::new(rules);
    let mut segments = Vec::new();
    TextRules::Composed(Arc::clone(&rules))
        .segments(&text, |piece| segments.push(piece.raw.to_string()));
    for aligned in [false, true] {
        let whole = rules.pieces(rules.normalized(&text, 0, aligned), true);
        let pieces = whole.ranges.iter().map(|range| &whole.text.text()[range.clone()]);
        assert!(segments.iter().map(String::as_str).eq(pieces), "{text:?}");
    }
});
