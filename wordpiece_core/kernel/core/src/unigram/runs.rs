//! Words to runs: the stretches that a piece can be taken of.
//!
//! SentencePiece takes no piece that has characters of two scripts, where Han, Hiragana and Katakana
//! are one (`TrainerInterface::IsValidSentencePiece`). So the segmentations of a word are the combined
//! segmentations of its runs. Characters outside the alphabet belong to no run.

use foldhash::{HashMap, HashSet};
use unicode_script::{Script, UnicodeScript};

use crate::base::error::Result;
use crate::base::sums::add;
use crate::text::marks::SPACE_MARK;

/// Runs, each with how often it occurs.
pub type RunCounts = HashMap<Box<str>, u64>;

/// Adds a run that occurs `count` times.
///
/// # Errors
///
/// Returns [`crate::base::error::Error::Overflow`] if the sum exceeds 2^63 - 1.
pub fn add_run(runs: &mut RunCounts, run: &str, count: u64) -> Result<()> {
    match runs.get_mut(run) {
        Some(sum) => *sum = add(*sum, count)?,
        None => {
            runs.insert(run.into(), count);
        }
    }
    Ok(())
}

const OUTSIDE: u8 = 0;
const ANY: u8 = 1;
const COMMON: u8 = 2;
const UNKNOWN: u8 = 3;
const SCRIPTS: u8 = 4;
const TABLE: usize = 1 << 16;

/// Splits words into runs.
///
/// # Examples
///
/// ```
/// use wordpiece_core::unigram::RunSplitter;
///
/// let splitter = RunSplitter::new(None, 100);
/// let mut runs = Vec::new();
/// splitter.each_run("x-raysビーム線", &mut String::new(), |run, _| runs.push(run.to_string()));
/// assert_eq!(runs, ["▁x", "-", "rays", "ビーム線"]);
/// ```
pub struct RunSplitter {
    alphabet: Option<HashSet<char>>,
    most: usize,
    /// The kinds of the first characters of Unicode.
    table: Vec<u8>,
}

impl RunSplitter {
    /// A splitter. `alphabet`: the characters of runs, in addition to `▁`; None: all. `most`: the
    /// most characters of a run; longer ones are left out.
    pub fn new(alphabet: Option<&str>, most: usize) -> Self {
        let alphabet = alphabet.map(|characters| characters.chars().collect());
        let mut splitter = RunSplitter { alphabet, most, table: Vec::new() };
        let code_points = 0..TABLE as u32;
        let kind = |c| char::from_u32(c).map_or(OUTSIDE, |c| splitter.find_kind(c));
        splitter.table = code_points.map(kind).collect();
        splitter
    }

    /// Calls `each` with every run of a word and its number of characters. `▁` is put
    /// before the word unless it is there. `buffer` holds the word meanwhile.
    pub fn each_run(&self, word: &str, buffer: &mut String, mut each: impl FnMut(&str, usize)) {
        buffer.clear();
        if !word.starts_with(SPACE_MARK) {
            buffer.push(SPACE_MARK);
        }
        buffer.push_str(word);
        let (mut start, mut characters, mut script) = (0, 0, ANY);
        let mut end_run = |start: usize, end: usize, characters: usize| {
            if characters > 0 && characters <= self.most {
                each(&buffer[start..end], characters);
            }
        };
        for (at, c) in buffer.char_indices() {
            let kind = if c == SPACE_MARK { ANY } else { self.kind(c) };
            let other_script = kind > ANY && script > ANY && kind != script;
            if kind == OUTSIDE || other_script || c == SPACE_MARK {
                end_run(start, at, characters);
                (start, characters, script) = (at, 0, ANY);
            }
            if kind == OUTSIDE {
                start = at + c.len_utf8();
                continue;
            }
            characters += 1;
            if kind > ANY {
                script = kind;
            }
        }
        end_run(start, buffer.len(), characters);
    }

    fn kind(&self, c: char) -> u8 {
        match self.table.get(c as usize) {
            Some(&kind) => kind,
            None => self.find_kind(c),
        }
    }

    /// [`OUTSIDE`] the alphabet, of [`ANY`] script, or the number of the script.
    fn find_kind(&self, c: char) -> u8 {
        if self.alphabet.as_ref().is_some_and(|alphabet| !alphabet.contains(&c)) {
            return OUTSIDE;
        }
        match c.script() {
            Script::Inherited => ANY,
            Script::Common if c != 'ー' => COMMON,
            Script::Unknown => UNKNOWN,
            Script::Common | Script::Hiragana | Script::Katakana => SCRIPTS + Script::Han as u8,
            script => SCRIPTS + script as u8, // their numbers are below 200
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(alphabet: Option<&str>, most: usize, word: &str) -> Vec<String> {
        let mut found = Vec::new();
        let splitter = RunSplitter::new(alphabet, most);
        splitter.each_run(word, &mut String::new(), |run, characters| {
            assert_eq!(characters, run.chars().count());
            found.push(run.to_string());
        });
        found
    }

    #[test]
    fn runs_are_of_one_script() {
        assert_eq!(runs(None, 9, "abc"), ["▁abc"]);
        assert_eq!(runs(None, 9, "▁abc▁d"), ["▁abc", "▁d"]);
        assert_eq!(runs(None, 9, "а1.5a"), ["▁а", "1.5", "a"]);
        assert_eq!(runs(None, 9, "漢字カナーひら"), ["▁漢字カナーひら"]);
        assert_eq!(runs(None, 9, "a\u{301}b"), ["▁a\u{301}b"]);
        assert_eq!(runs(None, 9, "\u{301}b"), ["▁\u{301}b"]);
        assert_eq!(runs(None, 9, "𐍈x"), ["▁𐍈", "x"]);
        assert_eq!(runs(None, 9, ""), ["▁"]);
        assert_eq!(runs(None, 9, "(1)\u{FFFFF}"), ["▁(1)", "\u{FFFFF}"]);
    }

    #[test]
    fn characters_outside_the_alphabet_and_long_runs_are_left_out() {
        assert_eq!(runs(Some("abc"), 9, "abxca"), ["▁ab", "ca"]);
        assert_eq!(runs(Some("abc"), 9, "xy"), ["▁"]);
        assert_eq!(runs(Some("abc"), 9, "𐍈a"), ["▁", "a"]);
        assert_eq!(runs(None, 3, "abc-d"), ["-", "d"]);
    }
}
