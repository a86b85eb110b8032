//! Words to splits: what a word begins as, and the merges so far.
//!
//! A word is split by looking up which of the merges comes first among its pairs, again and again; so
//! the time depends on the merges that change the word, not on how many there are.

use foldhash::HashMap;

use crate::base::error::Result;
use crate::encode::bpe::{Bpe, BpeOptions, BpeScratch};
use crate::encode::vocabulary::{Token, Vocabulary};
use crate::text::marks::WordMarks;
use crate::text::unicode::only_char;
use crate::train::longest::LongestMatch;
use crate::train::splits::{OUTSIDE, adjacent};

/// The most symbols of a split whose pairs are all looked at for each step.
const SHORT: usize = 100;

/// Splits words into the symbols of an alphabet, or into the tokens of a vocabulary, and applies merges in
/// their order.
///
/// # Examples
///
/// ```
/// use wordpiece_core::text::WordMarks;
/// use wordpiece_core::train::{SplitScratch, Splitter};
///
/// let marks = WordMarks::Prefix("##".into());
/// let alphabet = [("h", 0), ("##u", 1), ("##g", 2)];
/// let splitter = Splitter::new(alphabet.into_iter(), marks, &[(1, 2, 3)]); // ##u ##g: ##ug
/// let mut symbols = Vec::new();
/// splitter.split("hug", &mut SplitScratch::default(), &mut symbols);
/// assert_eq!(symbols, [0, 3]);
/// ```
pub struct Splitter {
    first: FirstSplits,
    /// For each pair, the steps at which it is merged, ascending; mostly one.
    steps: HashMap<(u32, u32), Vec<u32>>,
    /// For each step, the token that it makes.
    merged_tokens: Vec<u32>,
}

/// Scratch memory for splitting words, kept to avoid allocations.
#[derive(Default)]
pub struct SplitScratch {
    bpe: BpeScratch,
    tokens: Vec<Token>,
}

/// The symbols that splits begin with.
enum FirstSplits {
    /// Characters. For each character, its token without the mark and its token with the mark.
    Alphabet(WordMarks, HashMap<char, (u32, u32)>),
    /// The tokens that a vocabulary has already.
    LongestMatch(LongestMatch),
    /// The tokens of byte-pair encoding.
    Bpe(Box<Bpe>),
}

impl Splitter {
    /// Makes a splitter that begins with the symbols of an alphabet.
    ///
    /// # Arguments
    ///
    /// * `symbols` - The symbols of the alphabet and their ids.
    /// * `marks` - How words are marked.
    /// * `merges` - Fewer than 2^32 merges: the left and the right token, and the one they make.
    pub fn new<'a>(
        symbols: impl Iterator<Item = (&'a str, u32)>,
        marks: WordMarks,
        merges: &[(u32, u32, u32)],
    ) -> Self {
        let mut alphabet: HashMap<char, (u32, u32)> = HashMap::default();
        for (symbol, id) in symbols {
            if let Some(c) = only_char(symbol) {
                alphabet.entry(c).or_insert((OUTSIDE, OUTSIDE)).0 = id;
            }
            if let Some(c) = marks.strip(symbol).and_then(only_char) {
                alphabet.entry(c).or_insert((OUTSIDE, OUTSIDE)).1 = id;
            }
        }
        Self::beginning_with(FirstSplits::Alphabet(marks, alphabet), merges)
    }

    /// Makes a splitter that begins with the tokens of greedy longest match. `merges`: as in
    /// [`Splitter::new`].
    pub fn of_longest_match(longest: LongestMatch, merges: &[(u32, u32, u32)]) -> Self {
        Self::beginning_with(FirstSplits::LongestMatch(longest), merges)
    }

    /// Makes a splitter that begins with what byte-pair encoding makes of words by a vocabulary, some of whose
    /// tokens are hidden. `merges`: as in [`Splitter::new`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tokenizer::new`](crate::encode::Tokenizer::new).
    pub fn of_bpe(
        tokens: &[&str],
        hidden: &[u32],
        bpe: BpeOptions<'_>,
        merges: &[(u32, u32, u32)],
    ) -> Result<Self> {
        let hidden = &hidden.iter().copied().collect();
        let bpe = Bpe::new(Vocabulary { tokens, unk_id: None, hidden }, bpe)?;
        Ok(Self::beginning_with(FirstSplits::Bpe(Box::new(bpe)), merges))
    }

    fn beginning_with(first: FirstSplits, merges: &[(u32, u32, u32)]) -> Self {
        let mut steps: HashMap<(u32, u32), Vec<u32>> = HashMap::default();
        for (step, &(left, right, _)) in (0..).zip(merges) {
            steps.entry((left, right)).or_default().push(step);
        }
        Splitter { first, steps, merged_tokens: merges.iter().map(|merge| merge.2).collect() }
    }

    /// Writes the split of a word, made in `scratch`, into `symbols`, which is cleared first.
    pub fn split(&self, word: &str, scratch: &mut SplitScratch, symbols: &mut Vec<u32>) {
        symbols.clear();
        match &self.first {
            FirstSplits::LongestMatch(longest) => longest.tokenize(word, |_| true, symbols),
            FirstSplits::Bpe(bpe) => {
                bpe.tokens(word, &mut scratch.bpe, &mut scratch.tokens);
                symbols.extend(scratch.tokens.iter().map(|token| token.id));
            }
            FirstSplits::Alphabet(marks, alphabet) => marks.each_symbol(word, |c, marked| {
                let (plain, with_mark) = alphabet.get(&c).copied().unwrap_or((OUTSIDE, OUTSIDE));
                symbols.push(if marked { with_mark } else { plain });
            }),
        }
        self.merge(symbols);
    }

    /// Return true if a split takes part in training. A word that an extended vocabulary cannot tokenize
    /// stays unknown after any merge.
    pub fn admits(&self, symbols: &[u32]) -> bool {
        matches!(self.first, FirstSplits::Alphabet(..)) || !symbols.contains(&OUTSIDE)
    }

    /// Applies the merges to a split, in place.
    pub fn merge(&self, symbols: &mut Vec<u32>) {
        if symbols.len() > SHORT {
            return self.merge_long(symbols);
        }
        let mut from = 0;
        while let Some((step, left, right)) = self.next_step(symbols, from) {
            merge_in_place(symbols, left, right, self.merged_tokens[step as usize]);
            from = step + 1;
        }
    }

    /// Apply the merges with a heap, in time n log n.
    #[cold]
    fn merge_long(&self, symbols: &mut Vec<u32>) {
        let step = |left, right, from| self.step_of((left, right), from).unwrap_or(u32::MAX);
        let made = |step| self.merged_tokens[step as usize];
        BpeScratch::default().merge_all(symbols, step, |rank, _, _| made(rank));
    }

    /// The first step from `from` on that merges a pair.
    fn step_of(&self, pair: (u32, u32), from: u32) -> Option<u32> {
        let steps = self.steps.get(&pair)?;
        steps.get(steps.partition_point(|&step| step < from)).copied()
    }

    /// The first step from `from` on that changes the split, and its pair.
    fn next_step(&self, symbols: &[u32], from: u32) -> Option<(u32, u32, u32)> {
        if self.merged_tokens.is_empty() {
            return None;
        }
        adjacent(symbols)
            .filter_map(|(left, right)| Some((self.step_of((left, right), from)?, left, right)))
            .min()
    }
}

/// Replaces a pair by its token, from left to right.
fn merge_in_place(symbols: &mut Vec<u32>, left: u32, right: u32, token: u32) {
    let mut kept = 0;
    let mut at = 0;
    while at < symbols.len() {
        let here = symbols[at] == left && symbols.get(at + 1) == Some(&right);
        symbols[kept] = if here { token } else { symbols[at] };
        at += 1 + here as usize;
        kept += 1;
    }
    symbols.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::merged;
    use wordpiece_testing::Random;

    #[test]
    fn merges_are_applied_one_after_the_other() {
        let mut random = Random::new(2);
        let tokens = [1, 2, 3, 4, 5, OUTSIDE];
        for round in 0..3_000 {
            let length = if round % 10 == 0 { 3 * SHORT } else { 12 };
            // There are few tokens, so that some are built twice, and some pairs merged twice.
            let mut token = |end| 1 + random.below(end) as u32;
            let merges: Vec<_> = (0..token(8)).map(|_| (token(5), token(5), token(6))).collect();
            let marks = WordMarks::Prefix("##".into());
            let splitter = Splitter::new(std::iter::empty(), marks, &merges);
            let split: Vec<_> =
                (0..random.below(length)).map(|_| *random.choose(&tokens)).collect();
            let plain = merges.iter().fold(split.clone(), |split, &(left, right, token)| {
                merged(&split, left, right, token)
            });
            let mut symbols = split;
            splitter.merge(&mut symbols);
            assert_eq!(symbols, plain, "{merges:?}");
        }
    }

    #[test]
    fn words_are_cut_into_the_alphabet() {
        let symbols = [("a", 1), ("##a", 2), ("##é", 3), ("#", 4), ("ab", 5)];
        let marks = WordMarks::Prefix("##".into());
        let splitter = Splitter::new(symbols.into_iter(), marks, &[(2, 2, 6)]);
        let (mut scratch, mut split) = (SplitScratch::default(), vec![9]);
        for (word, expected) in [
            ("aaa", &[1, 6][..]),
            ("éa", &[OUTSIDE, 2]),
            ("aéb#", &[1, 3, OUTSIDE, OUTSIDE]),
            ("#", &[4]),
            ("", &[]),
        ] {
            splitter.split(word, &mut scratch, &mut split);
            assert_eq!(split, expected, "{word}");
        }
    }

    #[test]
    fn words_begin_as_they_are_marked() {
        let split = |marks, word| {
            let alphabet = [("a", 1), ("a</w>", 2), ("▁", 3), ("Ġ", 4), ("Ã", 5), ("©", 6)];
            let mut split = Vec::new();
            let splitter = Splitter::new(alphabet.into_iter(), marks, &[]);
            splitter.split(word, &mut SplitScratch::default(), &mut split);
            split
        };
        assert_eq!(split(WordMarks::End, "aéa"), [1, OUTSIDE, 2]);
        assert_eq!(split(WordMarks::End, "aé"), [1, OUTSIDE]);
        assert_eq!(split(WordMarks::Begin, "a▁a"), [3, 1, 3, 1]);
        assert_eq!(split(WordMarks::Begin, "▁a"), [3, 1]);
        assert_eq!(split(WordMarks::Bytes { add_space: true }, "aé"), [4, 1, 5, 6]);
        assert_eq!(split(WordMarks::Bytes { add_space: false }, "a a"), [1, 4, 1]);
    }
}
