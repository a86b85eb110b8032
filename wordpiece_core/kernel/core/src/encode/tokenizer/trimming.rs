//! Trimming of spaces from the offsets of tokens.

use std::ops::Range;

use crate::text::byte_level::byte_character;
use crate::text::unicode::is_whitespace;

/// The trimming of spaces at the ends of tokens by the post-processors `ByteLevel` and `RobertaProcessing` of
/// Hugging Face tokenizers with `trim_offsets`.
#[derive(Clone, Debug, Default)]
pub struct OffsetTrimming {
    /// For each post-processor that trims, in order, its `add_prefix_space`: whether the only space
    /// of a token at the beginning of a row or of a text is kept.
    pub(super) add_prefix_space: Vec<bool>,
    /// The number of spaces that each token begins with and ends with, by id.
    spaces: Vec<[u32; 2]>,
}

impl OffsetTrimming {
    /// The trimming of the tokens of a vocabulary by post-processors with these `add_prefix_space`.
    pub fn new(vocabulary: &[&str], add_prefix_space: Vec<bool>) -> Self {
        let spaces = vocabulary.iter().map(|token| spaces(token)).collect();
        OffsetTrimming { add_prefix_space, spaces }
    }

    /// Return the number of spaces that a token begins with and ends with.
    pub(super) fn spaces(&self, id: u32) -> [u32; 2] {
        self.spaces.get(id as usize).copied().unwrap_or_default()
    }
}

/// Leaves the spaces of a token out of its offsets.
///
/// # Arguments
///
/// * `offsets` - The offsets.
/// * `spaces` - How many spaces the token begins with, and ends with.
/// * `is_first` - Whether it is the first of a row.
/// * `add_prefix_space` - As [`OffsetTrimming`] has it.
pub(super) fn trim(
    [start, end]: &mut [u32; 2],
    [leading, trailing]: [u32; 2],
    is_first: bool,
    add_prefix_space: &[bool],
) {
    for &add_prefix_space in add_prefix_space {
        let kept = add_prefix_space && leading == 1 && (is_first || *start == 0);
        *start = (*start + if kept { 0 } else { leading }).min(*end);
        if *end >= trailing {
            *end = (*end - trailing).max(*start);
        }
    }
}

/// Return the number of spaces that a string begins with and ends with. GPT-2's character for a space counts.
pub(super) fn spaces(string: &str) -> [u32; 2] {
    let leading = string.chars().take_while(is_space).count();
    [leading, string.chars().rev().take_while(is_space).count()].map(|count| count as u32)
}

fn is_space(c: &char) -> bool {
    *c == byte_character(b' ') || is_whitespace(*c)
}

/// Counts the spaces of added tokens, which may share the white space after them, in order.
#[derive(Default)]
pub(super) struct SharedSpaces {
    /// The spaces at the end of the token that ends last, and how many they are.
    range: Range<usize>,
    count: u32,
}

impl SharedSpaces {
    /// Return the number of spaces that the token at a range of the text begins with and ends with.
    pub(super) fn of(&mut self, text: &str, range: Range<usize>) -> [u32; 2] {
        if range.end == self.range.end && range.start >= self.range.start {
            self.count -= text[self.range.start..range.start].chars().count() as u32;
            self.range = range;
            return [self.count; 2];
        }
        let string = &text[range.clone()];
        let found = spaces(string);
        if range.end > self.range.end {
            let before = string.trim_end_matches(|c| is_space(&c));
            self.range = range.start + before.len()..range.end;
            self.count = found[1];
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::added_tokens::{AddedToken, AddedTokenSearch, Section};
    use wordpiece_testing::Random;

    /// Return a search for tokens with the white space after them, and for one token without it.
    fn search(contents: &[&str], other: &str) -> AddedTokenSearch {
        let token = |(content, rstrip): (&str, bool)| AddedToken {
            content: content.to_string(),
            rstrip,
            ..AddedToken::default()
        };
        let tokens = contents.iter().map(|&content| (content, true)).chain([(other, false)]);
        AddedTokenSearch::new(tokens.map(token).collect()).expect("they are small")
    }

    #[test]
    fn shared_spaces_are_those_of_each_token() {
        let search = search(&["\n", "\u{3000}\n", "a", " b\n", "\u{120}"], "\t");
        let mut random = Random::new(31);
        for _ in 0..2_000 {
            let parts = ["\n", "\n", "\t", " ", "\u{3000}", "\u{120}", "a", "b"];
            let text: String = (0..random.below(30)).map(|_| *random.choose(&parts)).collect();
            let mut shared = SharedSpaces::default();
            search.split(&text, |section| {
                if let Section::Token(_, range) = section {
                    let expected = spaces(&text[range.clone()]);
                    assert_eq!(shared.of(&text, range.clone()), expected, "{text:?} {range:?}");
                }
            });
        }
    }

    #[test]
    fn shared_spaces_are_counted_once() {
        let text = "\n\t".repeat(1 << 19); // counting the spaces of each token would take hours
        let mut shared = SharedSpaces::default();
        let mut left = 1 << 20;
        search(&["\n"], "\t").split(&text, |section| {
            let Section::Token(_, range) = section else { panic!("{section:?}") };
            let own = if left % 2 == 0 { left } else { 1 }; // a tab is itself alone
            assert_eq!(shared.of(&text, range), [own; 2]);
            left -= 1;
        });
        assert_eq!(left, 0);
    }
}
