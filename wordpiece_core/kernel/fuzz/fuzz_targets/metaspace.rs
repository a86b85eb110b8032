//! The rules of SentencePiece, and of the parts that Hugging Face tokenizers has for it.

use serde_json::{Value, json};
use wordpiece_core::text::Composed;

/// The rules of one of five ways, with a mark before texts by one of three schemes. `map`: the compiled map of
/// characters, in base64. None if they are refused.
pub fn rules(way: u8, scheme: u8, map: &str) -> Option<Composed> {
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
