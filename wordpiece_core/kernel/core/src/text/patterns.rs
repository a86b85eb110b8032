//! The regular expressions by which tokenizers split text before byte-level BPE: text to pieces, which
//! keep their spaces; nothing is changed.
//!
//! The expressions are variants of a few, and so are the pieces. A piece is a word, with the character
//! before it (a space, in newer ones anything but a letter, a number or a line end); or up to three
//! numbers; or a run of other characters, with the space before them and the line ends after them; or
//! white space: up to its last line end, or all but the last character, which belongs to what follows.
//! A [`Pattern`] has the options of this family: there is one splitter for all expressions.
//!
//! ASCII, and most Latin and Cyrillic letters, are split in blocks of 64 bytes ([`block`]). Other characters
//! are looked up one by one ([`piece`]), many of them by their first byte only.

mod block;
mod classes;
mod joined;
mod masks;
mod piece;
mod regex;
#[cfg(all(test, feature = "onig"))] // the oracle
mod tests;

use self::block::is_letter_lead;
use self::classes::Classes;
use self::joined::Joined;
use self::masks::is_three_byte_lead;
use crate::text::blocks::BLOCK;
use crate::text::segments::{Each, Segment, SegmentSink};

/// A regular expression that text is split by. The pieces are its consecutive matches.
///
/// Every character is part of a match, except for [`Pattern::DEEPSEEK_V3`], where text between matches
/// makes pieces, as for `Split` with the behavior `isolated`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    words: Words,
    contractions: Contractions,
    lead: Lead,
    /// The most numbers in a piece.
    digits: u8,
    tail: Tail,
    /// True if white space at the end of a text is one piece, with its line ends (`\s++$`).
    joins_last_spaces: bool,
    /// True if words with single spaces between them are one piece.
    joins_words: bool,
}

/// The definition of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Words {
    /// Runs of letters.
    Letters,
    /// Runs of letters and marks.
    LettersAndMarks,
    /// Uppercase letters and then lowercase ones. Letters without case, and marks, are both.
    Cased,
    /// Like `Cased`, without characters of the script Han, whose runs are split off first.
    NotHan,
    /// Runs of letters and marks; or ASCII letters after one other ASCII character. Numbers and CJK
    /// characters are split off first.
    DeepSeek,
}

/// The places where `'s`, `'ll` and the like are split off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contractions {
    None,
    /// At the beginning of a piece, in lowercase.
    Lowercase,
    /// At the beginning of a piece.
    BeforeWords,
    /// They are the last part of a word.
    BehindWords,
}

/// The character that may be before a word, as a part of its piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lead {
    /// A space, which may also be before numbers. Line ends are white space like any other.
    Space,
    /// Any character except letters, numbers and line ends. White space is split after its last line end.
    Any,
}

/// The characters that may follow a run of other characters, as a part of its piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    None,
    LineEnds,
    LineEndsAndSlashes,
}

impl Pattern {
    /// No limit of the numbers in a piece.
    const ANY_DIGITS: u8 = u8::MAX;

    /// The expression of GPT-2, and of `ByteLevel` in Hugging Face tokenizers.
    pub const GPT2: Pattern = Pattern {
        words: Words::Letters,
        contractions: Contractions::Lowercase,
        lead: Lead::Space,
        digits: Pattern::ANY_DIGITS,
        tail: Tail::None,
        joins_last_spaces: false,
        joins_words: false,
    };

    /// The first published expression of GPT-4, and the expression of Llama 3.
    pub const CL100K: Pattern = Pattern {
        words: Words::Letters,
        contractions: Contractions::BeforeWords,
        lead: Lead::Any,
        digits: 3,
        tail: Tail::LineEnds,
        joins_last_spaces: false,
        joins_words: false,
    };

    /// The three expressions of DeepSeek V3 and R1. Each splits the pieces of the one before it.
    pub const DEEPSEEK_V3: Pattern =
        Pattern { words: Words::DeepSeek, contractions: Contractions::None, ..Pattern::CL100K };

    /// Returns true if words with single spaces between them are one piece.
    pub(crate) fn joins_words(&self) -> bool {
        self.joins_words
    }

    /// Calls `each` with every piece of a text, in order.
    #[inline(always)]
    pub fn segments(&self, text: &str, each: impl FnMut(Segment<'_>)) {
        self.segments_into(text, text.as_bytes(), &mut Each(each));
    }

    /// Gives every piece of a text to `sink` (see
    /// [`BertRules::segments_into`](crate::text::bert::BertRules::segments_into)).
    #[inline(always)]
    pub(crate) fn segments_into(&self, text: &str, bytes: &[u8], sink: &mut impl SegmentSink) {
        self.split(text, bytes, 0, sink);
    }

    /// Gives the pieces from byte `from` on, where one begins.
    #[inline(always)]
    pub(super) fn split(&self, text: &str, bytes: &[u8], from: usize, sink: &mut impl SegmentSink) {
        if self.joins_words {
            let mut joined = Joined::new(*self, from, sink);
            self.split_words(text, bytes, from, &mut joined);
            return joined.finish(bytes);
        }
        self.split_words(text, bytes, from, sink);
    }

    /// Gives the pieces to `sink` without joining words.
    #[inline(always)]
    fn split_words(&self, text: &str, bytes: &[u8], from: usize, sink: &mut impl SegmentSink) {
        let classes = Classes::get();
        let mut at = from;
        while at < text.len() {
            let after_space = at + (bytes[at] == b' ') as usize;
            let first = if after_space < text.len() { bytes[after_space] } else { b' ' };
            if first.is_ascii() || is_letter_lead(first) || is_three_byte_lead(first) {
                let block = self.block(classes, bytes, at, text.len());
                sink.block(bytes, at, &block);
                at += block.done as usize;
                if at >= text.len() {
                    return;
                }
                if block.done > 0 && block.stop >= BLOCK as u32 - 2 {
                    continue;
                }
            }
            let end = self.piece_end(classes, text.as_bytes(), at);
            sink.segment(bytes, at, end);
            at = end;
        }
    }
}
