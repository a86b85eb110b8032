//! Regular expressions that split a text: one of a user is refused, takes too long, or gives pieces of
//! the text; and those that there is a splitter of give the pieces that the regex engine finds.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use serde_json::json;
use std::ops::Range;
use wordpiece_core::Error;
use wordpiece_core::base::caught;
use wordpiece_core::text::{BlockSegments, Composed, Pattern, SegmentSink};

/// A part of an expression or of a text: one that is listed, so many times, or any character.
#[derive(Arbitrary, Debug)]
enum Part {
    Listed(u8),
    Repeated(u8, u8),
    Char(char),
}

#[derive(Arbitrary, Debug)]
enum Regexes {
    /// That of a user, with the behavior, and whether it is inverted.
    Any(Vec<Part>, u8, bool),
    Gpt2(bool),
    DeepSeek,
    /// By the ways to write its parts.
    Newer([u8; 7]),
}

const SYNTAX: &str = r"\p{L} \p{N} \s \S \w \b \K \G \1 \X \R . ^ $ | + * ? ?+ ++ *? {2} {1,3} {,2} ( (?: (?i: (?= (?! (?<= (?<! (?> (?~ ) [ [^ ] && - a b é ſ";
const TEXTS: &str = "a b Z é ſ ß ж Ж ǅ ʰ ª Ω × ' 's 'S 'll 'lL 're 'v 'ſ 0 1 42 ½ ٣ Ⅻ 〇 . ! ?! / // - ( _ $ \0 \u{ad} ’ … € 。 「 日 龥 龦 㐀 𠀀 々 あ \u{3040} \u{3099} ー 한 م \u{93f} \u{e31} \u{301} 👍🏽 \u{fe0f} \u{378} word The \t \n \r \r\n \u{b} \u{85} \u{a0} \u{3000}";
const BEHAVIORS: [&str; 4] = ["Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"];
const GPT2: [&str; 2] = [
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
];
const DEEPSEEK: [&str; 3] = [
    r"\p{N}{1,3}",
    "[一-龥\u{3040}-ゟ゠-ヿ]+",
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##,
];
/// What an expression like that of GPT-4 is made of: one of each line, with names for parts of them.
#[rustfmt::skip]
const NEWER: [&[&str]; 7] = [
    &["", "<'s>|", r"'(?i:[sdmt]|ll|ve|re)|"],
    &[r"<any>?\p{L}+|", r"<any>?+\p{L}++|", r"<any>?[\p{L}\p{M}]+|", "<any>?[<U>]*[<l>]+|<any>?[<U>]+[<l>]*|",
        "<any>?[<U>]*[<l>]+<'s>?|<any>?[<U>]+[<l>]*<'s>?|",
        r"[\p{Han}]+|<any>?[<U>&&[^\p{Han}]]*[<l>&&[^\p{Han}]]+<'s>?|<any>?[<U>&&[^\p{Han}]]+[<l>&&[^\p{Han}]]*<'s>?|"],
    &[r"\p{N}|", r"\p{N}{1,2}|", r"\p{N}{1,3}|", r"\p{N}+|", r"\p{N}{1,3}+|"],
    &[r" ?[^\s\p{L}\p{N}]+[\r\n]*|", r" ?[^\s\p{L}\p{N}]++[\r\n]*+|", r" ?[^\s\p{L}\p{N}]+[\r\n/]*|",
        r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"],
    &["", r"\s++$|"],
    &[r"\s*[\r\n]+|", r"\s*[\r\n]|"],
    &[r"\s+(?!\S)|\s+", r"\s+(?!\S)|\s"],
];

fn newer(ways: &[u8; 7]) -> String {
    let parts = NEWER.iter().zip(ways).map(|(parts, &way)| parts[way as usize % parts.len()]);
    (parts.collect::<String>().replace("<any>", r"[^\r\n\p{L}\p{N}]"))
        .replace("<U>", r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}")
        .replace("<l>", r"\p{Ll}\p{Lm}\p{Lo}\p{M}")
        .replace("<'s>", "(?i:'s|'t|'re|'ve|'m|'ll|'d)")
}

fn written(parts: &[Part], listed: &str) -> String {
    let listed: Vec<&str> = listed.split(' ').chain([" "]).collect();
    let written = parts.iter().map(|part| match *part {
        Part::Listed(at) => listed[at as usize % listed.len()].to_string(),
        Part::Repeated(at, times) => listed[at as usize % listed.len()].repeat(times as usize % 80),
        Part::Char(c) => c.to_string(),
    });
    written.collect()
}

fn split(regexes: &[String], behavior: &str, invert: bool) -> Result<Composed, Error> {
    let parts: Vec<_> = (regexes.iter())
        .map(|regex| {
            json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior,
            "invert": invert})
        })
        .collect();
    let all = json!({"type": "Sequence", "pretokenizers": parts}).to_string();
    Composed::new(None, Some(&all), false)
}

/// The pieces that the regex engine finds. Every character of the text is in one.
fn pieces(rules: &Composed, text: &str) -> Vec<Range<usize>> {
    let found = rules.pieces(rules.normalized(text, 0, false), true).ranges;
    let end = found.iter().fold(0, |end, range| {
        assert!(range.start == end && range.end > end && text.is_char_boundary(range.end));
        range.end
    });
    assert_eq!(end, text.len());
    found
}

struct Ranges(Vec<Range<usize>>);

impl SegmentSink for Ranges {
    fn block(&mut self, _: &[u8], at: usize, block: &BlockSegments) {
        block.all().each(at, |start, end| self.0.push(start..end));
    }

    fn segment(&mut self, _: &[u8], start: usize, end: usize) {
        self.0.push(start..end);
    }

    fn added(&mut self, raw: &str) {
        panic!("{raw:?} is not in the text");
    }
}

// The expression, the text, and what is behind that, which does not matter.
fuzz_target!(|input: (Regexes, Vec<Part>, String)| {
    let (regexes, text, behind) = input;
    let text = written(&text, TEXTS);
    let known = match &regexes {
        Regexes::Any(parts, behavior, invert) => {
            let regex = [written(parts, SYNTAX)];
            let behavior = BEHAVIORS[*behavior as usize % BEHAVIORS.len()];
            let Ok(rules) = split(&regex, behavior, *invert) else { return };
            // An expression that takes too long is an error, and no panic.
            let checked = caught(|| Ok(pieces(&rules, &text)));
            assert!(!matches!(checked, Err(Error::Panic(_))), "{checked:?}");
            return;
        }
        Regexes::Gpt2(of_tiktoken) => vec![GPT2[usize::from(*of_tiktoken)].to_string()],
        Regexes::DeepSeek => DEEPSEEK.map(String::from).to_vec(),
        Regexes::Newer(ways) => vec![newer(ways)],
    };
    let strings: Vec<&str> = known.iter().map(String::as_str).collect();
    let Some(pattern) = Pattern::of_sequence(&strings) else { return };
    let plain: Vec<String> = known.iter().map(|regex| format!("(?:{regex})")).collect();
    let plain = split(&plain, "Isolated", false).expect("it is a regular expression");
    assert!(!plain.splits_in_place());
    let mut ranges = Ranges(Vec::new());
    pattern.segments_into(&text, (text.clone() + &behind).as_bytes(), &mut ranges);
    assert_eq!(ranges.0, pieces(&plain, &text), "{known:?} {text:?}");
});
