//! Measuring how a tokenizer splits text: sums over words and their tokens, each as often as the text
//! has it.
//!
//! A chunk of text is split in two ways: into the *words* that all tokenizers are measured by, and into
//! the tokens of one of them. A word is classified by the tokens that overlap it, so the
//! words of the tokenizer itself do not matter.

use crate::base::error::{Error, Result};
use crate::base::sums::add;
use crate::encode::tokenizer::{Encoding, Tokenizer};
use crate::text::bert::{BertRules, TextOptions};
use crate::text::unicode::is_whitespace;

/// BERT's rules without changes of characters: white space, punctuation and CJK characters are split
/// off, and control characters do not count.
const WORDS: TextOptions = TextOptions {
    clean_text: true,
    handle_chinese_chars: true,
    strip_accents: false,
    lowercase: false,
    split_punctuation: true,
};

/// Sums over text and its tokens. Characters are counted without white space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Words.
    pub words: u64,
    /// Tokens.
    pub tokens: u64,
    /// Characters.
    pub characters: u64,
    /// Words covered by one known token that covers no other word.
    pub whole_words: u64,
    /// Words covered by two or more tokens.
    pub continued_words: u64,
    /// Words covered by an unknown token, at least in part.
    pub unknown_words: u64,
    /// Characters that no known token covers.
    pub dropped_characters: u64,
}

/// A token, and the characters of the text that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedToken {
    /// Its id.
    pub id: u32,
    /// The character offset of its start.
    pub start: u32,
    /// The character offset of its end.
    pub end: u32,
}

/// Sums over the tokens that begin, or end, before a position.
#[derive(Clone, Copy, Default)]
struct Passed {
    tokens: u64,
    unknown: u64,
    /// Sum of the indices of the tokens.
    indices: u64,
}

impl Passed {
    fn add(&mut self, index: usize, is_unknown: bool) {
        self.tokens += 1;
        self.unknown += u64::from(is_unknown);
        self.indices += index as u64;
    }
}

/// Adds up what the tokens of a vocabulary make of text.
///
/// # Examples
///
/// ```
/// use wordpiece_core::internals::{Measurer, PlacedToken};
///
/// let mut measurer = Measurer::new(3, 0);
/// // "hugs!" as hug ##s !, twice
/// let tokens = [(1, 0, 3), (2, 3, 4), (0, 4, 5)].map(|(id, start, end)| PlacedToken { id, start, end });
/// measurer.add("hugs!", 2, &mut tokens.to_vec()).unwrap();
/// let (sums, uses) = measurer.take();
/// assert_eq!((sums.words, sums.tokens, sums.continued_words, sums.unknown_words), (4, 6, 2, 2));
/// assert_eq!(uses, [(0, 2), (1, 2), (2, 2)]);
/// ```
pub struct Measurer {
    rules: BertRules,
    unk_id: u32,
    sums: Statistics,
    /// The number of uses of each token, by id.
    uses: Vec<u64>,
    /// Character offsets of the words in the chunk.
    words: Vec<(u32, u32)>,
    /// Tokens of the chunk with at least one character, ordered by their first character.
    placed: Vec<PlacedToken>,
    /// Indices in `placed`, ordered by the ends of the tokens.
    by_end: Vec<usize>,
}

impl Measurer {
    /// Return a measurer for a vocabulary of a number of tokens.
    ///
    /// # Arguments
    ///
    /// * `vocab_size` - The number of tokens.
    /// * `unk_id` - The id of the unknown token; `u32::MAX` if there is none.
    pub fn new(vocab_size: usize, unk_id: u32) -> Self {
        Measurer {
            rules: BertRules::new(WORDS),
            unk_id,
            sums: Statistics::default(),
            uses: vec![0; vocab_size],
            words: Vec::new(),
            placed: Vec::new(),
            by_end: Vec::new(),
        }
    }

    /// Adds a chunk of text that occurs `count` times.
    ///
    /// # Arguments
    ///
    /// * `chunk` - The chunk, of fewer than 2^31 bytes.
    /// * `count` - How often it occurs.
    /// * `tokens` - Its tokens. They are sorted by their places here, if they are not.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Overflow`] if a sum exceeds 2^63 - 1, and [`Error::Option`] if an id is not below
    /// the number of tokens.
    pub fn add(&mut self, chunk: &str, count: u64, tokens: &mut [PlacedToken]) -> Result<()> {
        let vocab_size = self.uses.len();
        for &PlacedToken { id, .. } in tokens.iter() {
            let uses = self.uses.get_mut(id as usize).ok_or_else(|| {
                Error::option(format!("a token has the id {id}, but vocab_size is {vocab_size}"))
            })?;
            *uses = add(*uses, count)?;
        }
        if !tokens.is_sorted_by_key(|token| (token.start, token.end)) {
            tokens.sort_by_key(|token| (token.start, token.end));
        }
        let mut found = self.found_in_characters(chunk, tokens);
        self.find_words(chunk);
        self.classify_words(tokens, &mut found);
        found.words = self.words.len() as u64;
        found.tokens = tokens.len() as u64;
        self.sums.add(&found, count)
    }

    /// The sums of characters of a chunk.
    fn found_in_characters(&self, chunk: &str, tokens: &[PlacedToken]) -> Statistics {
        let mut found = Statistics::default();
        let (mut known_end, mut next) = (0, tokens.iter().peekable());
        for (at, c) in (0u32..).zip(chunk.chars()) {
            while let Some(token) = next.next_if(|token| token.start <= at) {
                if token.id != self.unk_id {
                    known_end = known_end.max(token.end);
                }
            }
            if !is_whitespace(c) {
                found.characters += 1;
                found.dropped_characters += u64::from(at >= known_end);
            }
        }
        found
    }

    /// Words reach from the first to the last character that is left of them.
    fn find_words(&mut self, chunk: &str) {
        let Measurer { rules, words, .. } = self;
        words.clear();
        let (mut byte, mut character) = (0, 0);
        rules.segments(chunk, |segment| {
            character += chunk[byte..segment.start].chars().count() as u32;
            byte = segment.start;
            let mut place = None;
            rules.each_normalized(segment.raw, |_, index| {
                let at = character + index as u32;
                place = Some((place.map_or(at, |(start, _)| start), at + 1));
            });
            words.extend(place);
        });
    }

    /// Classify each word by the tokens that overlap it, in time linear in words and tokens: one token may
    /// overlap all words, and one word all tokens.
    fn classify_words(&mut self, tokens: &[PlacedToken], found: &mut Statistics) {
        let Measurer { unk_id, words, placed, by_end, .. } = self;
        placed.clear();
        placed.extend(tokens.iter().filter(|token| token.end > token.start));
        by_end.clear();
        by_end.extend(0..placed.len());
        by_end.sort_by_key(|&index| placed[index].end);
        let is_unknown = |token: &PlacedToken| token.id == *unk_id;
        let (mut begun, mut ended) = (Passed::default(), Passed::default());
        let (mut starts, mut ends) =
            (placed.iter().enumerate().peekable(), by_end.iter().peekable());
        for (number, &(start, end)) in words.iter().enumerate() {
            while let Some((index, token)) = starts.next_if(|(_, token)| token.start < end) {
                begun.add(index, is_unknown(token));
            }
            while let Some(&index) = ends.next_if(|&&index| placed[index].end <= start) {
                ended.add(index, is_unknown(&placed[index]));
            }
            let overlapping = begun.tokens - ended.tokens;
            let has_unknown = begun.unknown > ended.unknown;
            found.unknown_words += u64::from(has_unknown);
            found.continued_words += u64::from(overlapping > 1);
            if overlapping == 1 && !has_unknown {
                let token = placed[(begun.indices - ended.indices) as usize];
                let before = number.checked_sub(1).map_or(0, |before| words[before].1);
                let after = words.get(number + 1).map_or(u32::MAX, |after| after.0);
                found.whole_words += u64::from(token.start >= before && token.end <= after);
            }
        }
    }

    /// The sums, and the tokens that were used, with their numbers of uses, in the order of their ids.
    /// Later sums start from zero.
    pub fn take(&mut self) -> (Statistics, Vec<(u32, u64)>) {
        let uses = (0u32..).zip(&mut self.uses).filter(|(_, uses)| **uses > 0);
        let uses = uses.map(|(id, uses)| (id, std::mem::take(uses))).collect();
        (std::mem::take(&mut self.sums), uses)
    }
}

impl Statistics {
    /// Adds what is found in a text that occurs `count` times.
    fn add(&mut self, found: &Self, count: u64) -> Result<()> {
        let more = found.all();
        for (sum, more) in self.all_mut().into_iter().zip(more) {
            *sum = add(*sum, more.checked_mul(count).ok_or(Error::Overflow)?)?;
        }
        Ok(())
    }

    /// All sums, in the order of the fields.
    pub fn all(&self) -> [u64; 7] {
        let Statistics { words, tokens, characters, .. } = *self;
        let Statistics { whole_words, continued_words, unknown_words, dropped_characters, .. } =
            *self;
        [words, tokens, characters, whole_words, continued_words, unknown_words, dropped_characters]
    }

    fn all_mut(&mut self) -> [&mut u64; 7] {
        [
            &mut self.words,
            &mut self.tokens,
            &mut self.characters,
            &mut self.whole_words,
            &mut self.continued_words,
            &mut self.unknown_words,
            &mut self.dropped_characters,
        ]
    }
}

/// Tokenizes chunks by a tokenizer, and adds them to a measurer.
///
/// # Errors
///
/// Returns the errors of [`Measurer::add`].
pub fn measure<'a>(
    tokenizer: &Tokenizer,
    chunks: impl IntoIterator<Item = (&'a str, u64)>,
    measurer: &mut Measurer,
) -> Result<()> {
    let (mut session, mut encoding) = (tokenizer.session(0, 1), Encoding::default());
    let mut tokens = Vec::new();
    for (chunk, count) in chunks {
        session.encode(chunk, true, &mut encoding);
        tokens.clear();
        let placed = encoding.ids().iter().zip(encoding.offsets(0..encoding.len()));
        tokens.extend(placed.map(|(&id, [start, end])| PlacedToken { id, start, end }));
        measurer.add(chunk, count, &mut tokens)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(chunk: &str, unk_id: u32, tokens: &[(u32, u32, u32)]) -> [u64; 7] {
        let mut measurer = Measurer::new(9, unk_id);
        let tokens = tokens.iter().map(|&(id, start, end)| PlacedToken { id, start, end });
        measurer.add(chunk, 1, &mut tokens.collect::<Vec<_>>()).unwrap();
        measurer.take().0.all()
    }

    #[test]
    fn a_word_is_judged_by_the_tokens_that_overlap_it() {
        // words, tokens, characters, whole, continued, unknown, dropped
        assert_eq!(sums("", 0, &[]), [0; 7]);
        assert_eq!(sums("añb", 0, &[(1, 0, 3)]), [1, 1, 3, 1, 0, 0, 0]);
        assert_eq!(sums("añb", 0, &[(0, 0, 3)]), [1, 1, 3, 0, 0, 1, 3]);
        assert_eq!(sums("añb", 0, &[(1, 0, 1), (0, 1, 2), (2, 2, 3)]), [1, 3, 3, 0, 1, 1, 1]);
        // One token for two words, as byte-level BPE has "!?".
        assert_eq!(sums("a!?", 9, &[(1, 0, 1), (2, 1, 3)]), [3, 2, 3, 1, 0, 0, 0]);
        // Three bytes of one character, in any order of ids.
        assert_eq!(sums("日", 9, &[(1, 0, 1), (2, 0, 1), (1, 0, 1)]), [1, 3, 1, 0, 1, 0, 0]);
        // Bytes of characters that fell back together.
        assert_eq!(sums("日本", 9, &[(1, 0, 2), (2, 0, 2)]), [2, 2, 2, 0, 2, 0, 0]);
        assert_eq!(sums("日本", 2, &[(1, 0, 2), (2, 0, 2)]), [2, 2, 2, 0, 2, 2, 0]);
        // A token for a space that is not here, and one for nothing.
        assert_eq!(sums("ab", 9, &[(1, 0, 0), (2, 0, 2)]), [1, 2, 2, 1, 0, 0, 0]);
        // Control characters do not count as words, and white space not as characters.
        assert_eq!(sums("a\u{0}\u{C}b\u{200B}", 9, &[(1, 0, 4)]), [1, 1, 4, 1, 0, 0, 1]);
        assert_eq!(sums("\u{200B}", 9, &[]), [0, 0, 1, 0, 0, 0, 1]);
        // One token overlaps all words, other tokens one word each.
        assert_eq!(sums("a b c", 9, &[(1, 0, 5), (2, 2, 3)]), [3, 2, 3, 0, 1, 0, 0]);
        assert_eq!(sums("a b c", 2, &[(1, 0, 3), (2, 2, 3)]), [3, 2, 3, 0, 1, 1, 1]);
        // Tokens in another order.
        assert_eq!(sums("ab c", 9, &[(2, 3, 4), (1, 0, 2)]), [2, 2, 3, 2, 0, 0, 0]);
    }

    #[test]
    fn sums_that_int64_cannot_hold_are_an_error() {
        let mut measurer = Measurer::new(1, 9);
        let mut tokens = [PlacedToken { id: 0, start: 0, end: 2 }];
        assert_eq!(measurer.add("ab", 1 << 62, &mut tokens), Err(Error::Overflow));
        let mut measurer = Measurer::new(1, 9);
        assert_eq!(measurer.add("a", i64::MAX as u64, &mut []), Ok(()));
        assert_eq!(measurer.add("a", 1, &mut []), Err(Error::Overflow));
    }

    #[test]
    fn a_token_beyond_the_vocabulary_is_an_error() {
        let mut tokens = [PlacedToken { id: 1, start: 0, end: 1 }];
        let error = Measurer::new(1, 9).add("a", 1, &mut tokens);
        assert_eq!(error, Err(Error::option("a token has the id 1, but vocab_size is 1")));
    }

    #[test]
    fn what_was_taken_is_not_added_again() {
        let mut measurer = Measurer::new(2, 9);
        let mut tokens = [PlacedToken { id: 1, start: 0, end: 1 }];
        measurer.add("a", 3, &mut tokens).unwrap();
        assert_eq!(measurer.take().1, [(1, 3)]);
        assert_eq!(measurer.take(), (Statistics::default(), vec![]));
    }
}
