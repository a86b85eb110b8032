//! The pieces of every pattern are the matches of its expression, as Oniguruma (which Hugging Face
//! tokenizers use) and fancy-regex (which tiktoken uses) find them.

use foldhash::HashMap;

use super::classes::Class;
use super::masks::ThreeByteMasks;
use super::*;
use crate::count::segment_counts::SegmentCounts;
use wordpiece_testing::Random;

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const R50K_TIKTOKEN: &str =
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s";
const CL100K: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const CL100K_POSSESSIVE: &str = concat!(
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}|",
    r" ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
);
const CL100K_TIKTOKEN: &str = concat!(
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+|",
    r" ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
);
const TWO_DIGITS: &str = concat!(
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}|",
    r" ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
);
const QWEN2: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const QWEN3_5: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|",
    r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const TEKKEN: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|",
    r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const KIMI_K2: &str = concat!(
    r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*",
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+",
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);
const DEEPSEEK_V3: [&str; 3] = [
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    concat!(
        r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"##,
        "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|",
        "\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    ),
];

const LEAD: &str = r"[^\r\n\p{L}\p{N}]?";
const CONTRACTION: &str = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";

/// Words that begin in upper case or end in lower case.
fn cased(lead: &str, contraction: &str) -> String {
    let (upper, lower) = (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]");
    format!("{lead}{upper}*{lower}+{contraction}|{lead}{upper}+{lower}*{contraction}")
}

/// Returns the bounds of the matches of an expression.
type Find = Box<dyn Fn(&str) -> Vec<(usize, usize)>>;

/// A pattern, and the expressions that split text in the same way, one after the other.
struct Case {
    name: &'static str,
    pattern: Pattern,
    splits: Vec<Find>,
}

impl Case {
    fn oniguruma(name: &'static str, regexes: &[&str]) -> Case {
        let pattern = Pattern::of_sequence(regexes).expect("the expression is known");
        let splits = regexes.iter().map(|regex| oniguruma_find(regex)).collect();
        Case { name, pattern, splits }
    }

    /// An expression whose words are joined over single spaces. `further`: a word without its lead.
    fn joined(name: &'static str, regexes: &[&str], word: &str, further: &str) -> Case {
        let whole = match word.contains(&format!("|{LEAD}")) {
            true => format!("(?:{word})(?: (?:{further}))*"),
            false => format!("{word}(?: {further})*"),
        };
        let joined: Vec<String> = regexes.iter().map(|regex| regex.replace(word, &whole)).collect();
        let joined: Vec<&str> = joined.iter().map(String::as_str).collect();
        assert_ne!(joined, regexes);
        let case = Case::oniguruma(name, &joined);
        assert!(case.pattern.joins_words());
        case
    }

    fn tiktoken(name: &'static str, pattern: Pattern, regex: &str) -> Case {
        Case { name, pattern, splits: vec![tiktoken_find(regex)] }
    }

    /// The pieces by the expressions: their matches, and what is between them.
    fn expected<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let mut pieces = if text.is_empty() { vec![] } else { vec![text] };
        for find in &self.splits {
            pieces = pieces.into_iter().flat_map(|piece| isolated(piece, &find(piece))).collect();
        }
        pieces
    }

    fn check(&self, text: &str) {
        let expected = self.expected(text);
        assert_eq!(pieces(&self.pattern, text), expected, "{}: {text:?}", self.name);
        if !self.pattern.joins_words {
            assert_eq!(plain_pieces(&self.pattern, text), expected, "{}: {text:?}", self.name);
        }
    }
}

fn oniguruma_find(regex: &str) -> Find {
    let regex = onig::Regex::new(regex).expect("the expression is valid");
    Box::new(move |text: &str| regex.find_iter(text).collect())
}

fn tiktoken_find(regex: &str) -> Find {
    let regex = fancy_regex::Regex::new(regex).expect("the expression is valid");
    Box::new(move |text: &str| {
        let matches = regex.find_iter(text).map(|found| found.expect("the search ends").range());
        matches.map(|range| (range.start, range.end)).collect()
    })
}

fn isolated<'a>(text: &'a str, matches: &[(usize, usize)]) -> Vec<&'a str> {
    let (mut pieces, mut end) = (Vec::new(), 0);
    for &(from, to) in matches.iter().chain([&(text.len(), text.len())]) {
        pieces.extend([&text[end..from], &text[from..to]].into_iter().filter(|s| !s.is_empty()));
        end = to;
    }
    pieces
}

/// Return all patterns for Oniguruma, and the patterns of tiktoken for fancy-regex.
fn cases() -> Vec<Case> {
    let of = |regex| Pattern::of_regex(regex).expect("it is known");
    vec![
        Case::oniguruma("GPT-2", &[GPT2]),
        Case::oniguruma("r50k of tiktoken", &[R50K_TIKTOKEN]),
        Case::oniguruma("cl100k", &[CL100K]),
        Case::oniguruma("cl100k, possessive", &[CL100K_POSSESSIVE]),
        Case::oniguruma("cl100k of tiktoken", &[CL100K_TIKTOKEN]),
        Case::oniguruma("two digits", &[TWO_DIGITS]),
        Case::oniguruma("Qwen 2", &[QWEN2]),
        Case::oniguruma("Qwen 3.5", &[QWEN3_5]),
        Case::oniguruma("o200k", &[O200K]),
        Case::oniguruma("Tekken", &[TEKKEN]),
        Case::oniguruma("Kimi K2", &[KIMI_K2]),
        Case::oniguruma("DeepSeek V3", &DEEPSEEK_V3),
        Case::joined("GPT-2", &[GPT2], r" ?\p{L}+", r"\p{L}+"),
        Case::joined("cl100k", &[CL100K], r"[^\r\n\p{L}\p{N}]?\p{L}+", r"\p{L}+"),
        Case::joined("two digits", &[TWO_DIGITS], r"[^\r\n\p{L}\p{N}]?+\p{L}+", r"\p{L}+"),
        Case::joined("Qwen 3.5", &[QWEN3_5], r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+", r"[\p{L}\p{M}]+"),
        Case::joined("o200k", &[O200K], &cased(LEAD, CONTRACTION), &cased("", CONTRACTION)),
        Case::joined("Tekken", &[TEKKEN], &cased(LEAD, ""), &cased("", "")),
        Case::joined(
            "DeepSeek V3",
            &DEEPSEEK_V3,
            "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+",
            r"[\p{L}\p{M}]+",
        ),
        Case::tiktoken("r50k in tiktoken", Pattern::GPT2, R50K_TIKTOKEN),
        Case::tiktoken(
            "cl100k in tiktoken",
            Pattern { digits: 3, ..of(CL100K_TIKTOKEN) },
            CL100K_TIKTOKEN,
        ),
        Case::tiktoken("first cl100k in tiktoken", of(CL100K), CL100K),
        Case::tiktoken("o200k in tiktoken", of(O200K), O200K),
        Case::tiktoken("Kimi K2 in tiktoken", of(KIMI_K2), KIMI_K2),
    ]
}

fn pieces(pattern: &Pattern, text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    pattern.segments(text, |piece| {
        assert!(!piece.added && text[piece.start..].starts_with(piece.raw));
        pieces.push(piece.raw.to_string());
    });
    pieces
}

/// The pieces one by one, without blocks.
fn plain_pieces<'a>(pattern: &Pattern, text: &'a str) -> Vec<&'a str> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let end = pattern.piece_end(Classes::get(), text.as_bytes(), at);
        pieces.push(&text[at..end]);
        at = end;
    }
    pieces
}

/// Count pieces, with other text after each text.
fn counted_pieces(pattern: &Pattern, text: &str) -> Vec<String> {
    let mut counts = SegmentCounts::default();
    let behind = text.to_string() + "s x'\n/é1";
    pattern.segments_into(text, behind.as_bytes(), &mut counts);
    let mut pieces = Vec::new();
    counts.for_each(|piece, count| (0..count).for_each(|_| pieces.push(piece.to_string())));
    pieces.sort();
    pieces
}

const PARTS: &[&str] = &[
    "a",
    "b",
    "Z",
    "Q",
    "word",
    "The",
    "ABC",
    "aB",
    "é",
    "É",
    "ß",
    "ſ",
    "ж",
    "Ж",
    "я",
    "Ѡ",
    "ѡ",
    "Ӂ",
    "ӂ",
    "ą",
    "Ą",
    "ƻ",
    "ǅ",
    "ʰ",
    "ª",
    "K",
    "ά",
    "Ω",
    "×",
    "÷",
    " ",
    "  ",
    "   ",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    " \n",
    "\n ",
    "\u{b}",
    "\u{85}",
    "\u{a0}",
    "\u{1680}",
    "\u{2028}",
    "\u{3000}",
    "'",
    "'s",
    "'S",
    "'t",
    "'re",
    "'RE",
    "'rE",
    "'ll",
    "'lL",
    "'l",
    "'v",
    "'ve",
    "'m",
    "'D",
    "'ſ",
    "'K",
    "’s",
    "0",
    "1",
    "42",
    "123",
    "4567",
    "½",
    "²",
    "٣",
    "Ⅻ",
    "०",
    "〇",
    "〡",
    ".",
    "!",
    "?!",
    ",",
    "/",
    "//",
    "-",
    "\"",
    "(",
    ")",
    "_",
    "$",
    "\0",
    "\u{1b}",
    "\u{7f}",
    "\u{200b}",
    "\u{200d}",
    "\u{ad}",
    "’",
    "“",
    "—",
    "…",
    "€",
    "、",
    "。",
    "「",
    "日",
    "本",
    "龥",
    "龦",
    "鿿",
    "㐀",
    "𠀀",
    "々",
    "⺀",
    "あ",
    "ん",
    "\u{3040}",
    "\u{3099}",
    "ア",
    "ー",
    "・",
    "゠",
    "한",
    "국",
    "م",
    "ع",
    "ن",
    "म",
    "\u{93f}",
    "ท",
    "\u{e31}",
    "\u{301}",
    "\u{308}",
    "\u{20dd}",
    "\u{16ff0}",
    "\u{302a}",
    "🙂",
    "👍🏽",
    "\u{fe0f}",
    "\u{e000}",
    "\u{378}",
    "\u{10ffff}",
];

fn text(random: &mut Random, parts: &[&str]) -> String {
    // Few kinds of parts in a text, so that each follows each, and runs are long.
    let kinds: Vec<&str> = (0..1 + random.below(12)).map(|_| *random.choose(parts)).collect();
    let most = *random.choose(&[40, 40, 40, 200]);
    (0..random.below(most)).map(|_| *random.choose(&kinds)).collect()
}

#[test]
fn pieces_are_the_matches_of_the_expressions() {
    let cases = cases();
    let ascii: Vec<&str> = PARTS.iter().copied().filter(|part| part.is_ascii()).collect();
    let mut random = Random::new(23);
    for number in 0..if cfg!(debug_assertions) { 1_500 } else { 20_000 } {
        let text = text(&mut random, if number % 3 == 0 { &ascii } else { PARTS });
        cases.iter().for_each(|case| case.check(&text));
    }
}

/// All characters, except for surrogates.
fn characters() -> impl Iterator<Item = char> {
    '\0'..=char::MAX
}

/// Return the bounds of runs of characters whose class is one of these.
fn runs(text: &[u8], is_part: impl Fn(Class) -> bool) -> Vec<(usize, usize)> {
    let (mut runs, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let end = Classes::get().run_end(text, at, &is_part);
        if end > at {
            runs.push((at, end));
        }
        at = Classes::get().run_end(text, end, |class| !is_part(class));
    }
    runs
}

#[test]
fn every_character_is_in_its_class() {
    let text: String = characters().collect();
    for (expression, class) in [
        (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}]+", Class::UPPER),
        (r"[\p{Ll}\p{Lm}\p{Lo}]+", Class::LOWER),
        (r"\p{M}+", Class::MARK),
        (r"\p{N}+", Class::NUMBER),
        (r"\s+", Class::SPACE),
        (r"[\p{P}\p{S}]+", Class::SIGN),
        (DEEPSEEK_V3[1], Class::CJK),
        (r"\p{Han}+", Class::HAN),
    ] {
        let runs = runs(text.as_bytes(), |other| other.is(class));
        for find in [oniguruma_find(expression), tiktoken_find(expression)] {
            assert_eq!(find(&text), runs, "{expression}");
        }
    }
}

#[test]
fn pieces_of_all_classes_are_the_matches_of_the_expressions() {
    // The first ones of every class that begin with the same byte.
    let mut known = HashMap::<_, u32>::default();
    let is_first = |c: &char| {
        let count = known.entry((Class::of(*c), lead(*c))).or_default();
        *count += 1;
        *count <= 2
    };
    let characters: Vec<char> = characters().filter(is_first).collect();
    for case in &cases() {
        for part in characters.chunks(64) {
            let text: String = part
                .iter()
                .map(|c| format!("a{c}b {c} !{c}A{c}{c}. {c}1{c}23 {c}\n{c}'{c}X'{c} 日{c}日\t"))
                .collect();
            case.check(&text);
        }
    }
}

#[test]
fn what_is_behind_a_text_does_not_matter() {
    let cases = cases();
    let mut random = Random::new(24);
    for _ in 0..if cfg!(debug_assertions) { 200 } else { 3_000 } {
        let text = text(&mut random, PARTS);
        for case in &cases {
            let mut expected = case.expected(&text);
            expected.sort();
            assert_eq!(counted_pieces(&case.pattern, &text), expected, "{}: {text:?}", case.name);
        }
    }
}

#[test]
fn other_expressions_are_not_recognized() {
    let of = Pattern::of_regex;
    for regex in [GPT2, R50K_TIKTOKEN, CL100K, QWEN2, QWEN3_5, O200K, TEKKEN, KIMI_K2] {
        assert!(of(regex).is_some());
        for other in [&format!("{regex}*"), &regex[1..], &format!("{regex}|x")] {
            assert_eq!(of(other), None, "{other}");
        }
    }
    assert_eq!((of(""), of(r"\w+|\W+")), (None, None));
    assert_eq!(Pattern::of_sequence(&DEEPSEEK_V3[1..]), None);
    assert_eq!(Pattern::of_sequence(&[]), None);
}

fn lead(c: char) -> u8 {
    c.encode_utf8(&mut [0; 4]).as_bytes()[0]
}

/// A block that begins with a character.
fn block_of(c: char) -> [u8; BLOCK] {
    let mut block = [b' '; BLOCK];
    c.encode_utf8(&mut block);
    block
}

#[test]
fn letters_of_two_bytes_have_their_case() {
    let is_letter = |&c: &char| is_letter_lead(lead(c)) && !matches!(c, '×' | '÷');
    let letters: Vec<char> = ('\u{80}'..='\u{7FF}').filter(is_letter).collect();
    assert_eq!(letters.len(), 11 * 64 - 2);
    for c in letters {
        let class = match block::cases_at(Classes::get(), &block_of(c), 0, 3) {
            (3, 0) => Class::UPPER,
            (0, 0) => Class::LOWER,
            (0, 3) => Class::LETTER,
            _ => Class::NONE,
        };
        assert_eq!(class, Class::of(c), "{c:?}");
    }
}

#[test]
fn characters_of_three_bytes_are_in_their_class() {
    let mut counts = [0; 3];
    for c in '\u{800}'..='\u{FFFF}' {
        let ThreeByteMasks { ideograph, kana, sign } = ThreeByteMasks::at(&block_of(c), 0);
        let classes =
            [Class::LETTER | Class::CJK | Class::HAN, Class::LETTER | Class::CJK, Class::SIGN];
        for ((mask, class), count) in
            [ideograph, kana, sign].into_iter().zip(classes).zip(&mut counts)
        {
            if mask != 0 {
                assert!(mask == 1 && is_three_byte_lead(lead(c)) && Class::of(c) == class, "{c:?}");
                *count += 1;
            }
        }
    }
    assert_eq!(counts, [0x9F80 - 0x4E00, 86 + 3 + 90 + 4, 24 + 3 + 12 + 15 + 7]);
}
