//! Recognizes the patterns of expressions by their spelling.

use super::{Contractions, Lead, Pattern, Tail, Words};

/// Ways to write a part of an expression, and what it is. If one is the beginning of another, the
/// longer one is before it.
type Ways<'a, T> = &'a [(&'a str, T)];

const LOWERCASE: Ways<()> = &[("'s|'t|'re|'ve|'m|'ll|'d|", ()), ("'(?:[sdmt]|ll|ve|re)|", ())];

const ANY_CASE: Ways<Contractions> = &[
    ("(?i:'s|'t|'re|'ve|'m|'ll|'d)|", Contractions::BeforeWords),
    ("'(?i:[sdmt]|ll|ve|re)|", Contractions::BeforeWords),
    ("", Contractions::None),
];

const WORDS: Ways<(Words, Contractions)> = &[
    (r"[^\r\n\p{L}\p{N}]?\p{L}+|", (Words::Letters, Contractions::None)),
    (r"[^\r\n\p{L}\p{N}]?+\p{L}+|", (Words::Letters, Contractions::None)),
    (r"[^\r\n\p{L}\p{N}]?+\p{L}++|", (Words::Letters, Contractions::None)),
    (r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|", (Words::LettersAndMarks, Contractions::None)),
    (
        concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|",
        ),
        (Words::Cased, Contractions::None),
    ),
    (
        concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
        ),
        (Words::Cased, Contractions::BehindWords),
    ),
    (
        concat!(
            r"[\p{Han}]+|",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*",
            r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+",
            r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
        ),
        (Words::NotHan, Contractions::BehindWords),
    ),
];

/// The character before the letters of a word.
const LEADS: [&str; 4] =
    [r"[^\r\n\p{L}\p{N}]?+", r"[^\r\n\p{L}\p{N}]?", r"[^\r\n\p{L}\p{P}\p{S}]?", " ?"];

const DIGITS: Ways<u8> = &[
    (r"\p{N}|", 1),
    (r"\p{N}{1,2}|", 2),
    (r"\p{N}{1,3}|", 3),
    (r"\p{N}+|", Pattern::ANY_DIGITS),
    // To Oniguruma, `+` after braces is a second quantifier, not a possessive one.
    (r"\p{N}{1,2}+|", Pattern::ANY_DIGITS),
    (r"\p{N}{1,3}+|", Pattern::ANY_DIGITS),
];

const OTHERS: Ways<Tail> = &[
    (r" ?[^\s\p{L}\p{N}]+[\r\n]*|", Tail::LineEnds),
    (r" ?[^\s\p{L}\p{N}]++[\r\n]*|", Tail::LineEnds),
    (r" ?[^\s\p{L}\p{N}]++[\r\n]*+|", Tail::LineEnds),
    (r" ?[^\s\p{L}\p{N}]+[\r\n/]*|", Tail::LineEndsAndSlashes),
];

const LAST_SPACES: Ways<bool> = &[(r"\s++$|", true), ("", false)];

const LINE_ENDS: Ways<()> = &[(r"\s*[\r\n]+|", ()), (r"\s*[\r\n]|", ())];

const SPACES: Ways<()> = &[(r"\s+(?!\S)|\s+", ()), (r"\s+(?!\S)|\s", ())];

/// The expressions of DeepSeek V3, in order.
const DEEPSEEK_V3: [&str; 3] = [
    r"\p{N}{1,3}",
    "[一-龥\u{3040}-ゟ゠-ヿ]+",
    concat!(
        r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"##,
        r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
];

impl Pattern {
    /// The pattern of an expression in a `tokenizer.json`, if it is known.
    pub fn of_regex(regex: &str) -> Option<Pattern> {
        let regex = escaped(regex);
        let read = |regex: &str| read_gpt2(regex).or_else(|| read_newer(regex));
        let joined = || Some(Pattern { joins_words: true, ..read(&without_joining(&regex)?)? });
        read(&regex).or_else(joined)
    }

    /// Return the pattern of a `Sequence` of `Split` with the behavior `Isolated`: each expression splits the
    /// pieces of the one before it.
    pub fn of_sequence(regexes: &[&str]) -> Option<Pattern> {
        match regexes {
            [regex] => Pattern::of_regex(regex),
            [first @ .., last] if regexes.len() == DEEPSEEK_V3.len() => {
                let last = escaped(last);
                let words = without_joining(&last);
                let joins_words = words.is_some();
                let last = words.unwrap_or(last);
                let read = first.iter().map(|regex| escaped(regex)).chain([last]);
                read.eq(DEEPSEEK_V3).then_some(Pattern { joins_words, ..Pattern::DEEPSEEK_V3 })
            }
            _ => None,
        }
    }
}

/// The expression with `\r` and `\n` for the line ends that are in it.
fn escaped(regex: &str) -> String {
    regex.replace('\r', r"\r").replace('\n', r"\n")
}

/// Returns the expression without joining of words; None if an expression does not join words.
fn without_joining(regex: &str) -> Option<String> {
    let gpt2 = [r" ?\p{L}+", r" ?\p{L}++"].into_iter();
    let newer = WORDS.iter().map(|(way, _)| way.trim_end_matches('|'));
    let deepseek = r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+";
    gpt2.chain(newer).chain([deepseek]).find_map(|words| {
        let joined = joined(words)?;
        regex.contains(&joined).then(|| regex.replacen(&joined, words, 1))
    })
}

/// Returns the alternative of joined words: a word, then further words, each after a single space.
fn joined(words: &str) -> Option<String> {
    let lead = LEADS.iter().find(|lead| words.starts_with(**lead))?;
    let further = words.replace(lead, "");
    Some(match words.contains(&format!("|{lead}")) {
        true => format!("(?:{words})(?: (?:{further}))*"),
        false => format!("{words}(?: {further})*"),
    })
}

fn read_gpt2(regex: &str) -> Option<Pattern> {
    let rest = &mut &*regex;
    one_of(rest, LOWERCASE)?;
    one_of(rest, &[(r" ?\p{L}+|", ()), (r" ?\p{L}++|", ())])?;
    one_of(rest, &[(r" ?\p{N}+|", ()), (r" ?\p{N}++|", ())])?;
    one_of(rest, &[(r" ?[^\s\p{L}\p{N}]+|", ()), (r" ?[^\s\p{L}\p{N}]++|", ())])?;
    one_of(rest, LAST_SPACES)?; // it makes no difference
    one_of(rest, SPACES)?;
    rest.is_empty().then_some(Pattern::GPT2)
}

fn read_newer(regex: &str) -> Option<Pattern> {
    let rest = &mut &*regex;
    let before = one_of(rest, ANY_CASE)?;
    let (words, behind) = one_of(rest, WORDS)?;
    let contractions = match (before, behind) {
        (Contractions::None, _) => behind,
        (_, Contractions::None) => before,
        _ => return None,
    };
    let digits = one_of(rest, DIGITS)?;
    let tail = match words {
        Words::LettersAndMarks => {
            one_of(rest, &[(r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|", Tail::LineEnds)])?
        }
        _ => one_of(rest, OTHERS)?,
    };
    let joins_last_spaces = one_of(rest, LAST_SPACES)?;
    one_of(rest, LINE_ENDS)?;
    one_of(rest, SPACES)?;
    let lead = Lead::Any;
    rest.is_empty().then_some(Pattern {
        words,
        contractions,
        lead,
        digits,
        tail,
        joins_last_spaces,
        joins_words: false,
    })
}

/// Takes one of the ways from the beginning of an expression.
fn one_of<T: Copy>(rest: &mut &str, ways: Ways<T>) -> Option<T> {
    let (way, is) = ways.iter().find(|(way, _)| is_way(rest, way))?;
    *rest = &rest[way.len()..];
    Some(*is)
}

/// Return true if an expression begins with this alternative. The last alternative must be all of the rest.
fn is_way(rest: &str, way: &str) -> bool {
    rest.starts_with(way) && (way.is_empty() || way.ends_with('|') || rest == way)
}
