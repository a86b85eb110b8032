//! Words with single spaces between them as one piece, by which superwords are trained and encoded.
//!
//! Expressions of superwords repeat the alternative of words: `(?: \p{L}+)*`. Their matches consist of complete
//! pieces of the expression without the repetition, so text is split by this expression, and words are joined.

use super::Pattern;
use super::classes::{Class, Classes};
use crate::text::segments::{BlockSegments, SegmentSink};

/// Joins words before it passes pieces on, or says which words begin a piece.
pub(super) struct Joined<'a, S> {
    words: Words,
    sink: &'a mut S,
    start: usize,
    end: usize,
}

/// Finds the words that are joined to the word before them.
struct Words {
    pattern: Pattern,
    classes: Classes,
    /// True if the last piece was a word, so that the next word is joined to it.
    is_word: bool,
}

impl Words {
    /// Returns true if the next piece of the pattern without joining begins a joined piece.
    #[inline(always)]
    fn begins(&mut self, bytes: &[u8], start: usize, end: usize) -> bool {
        let first = bytes[start];
        let second = if start + 1 < end { bytes[start + 1] } else { b' ' };
        if first == b' ' && second.is_ascii_alphabetic() {
            return !std::mem::replace(&mut self.is_word, true);
        }
        if first.is_ascii_alphabetic() || first.is_ascii() && !is_letter_or_not_ascii(second) {
            self.is_word = first.is_ascii_alphabetic();
            return true;
        }
        self.begins_slowly(&bytes[start..end])
    }

    #[inline(never)]
    fn begins_slowly(&mut self, piece: &[u8]) -> bool {
        let is_word = self.pattern.is_word_piece(self.classes, piece);
        !std::mem::replace(&mut self.is_word, is_word) || !is_word || piece[0] != b' '
    }
}

#[inline(always)]
fn is_letter_or_not_ascii(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || !byte.is_ascii()
}

impl<'a, S: SegmentSink> Joined<'a, S> {
    /// `from`: the place where the first piece begins.
    pub(super) fn new(pattern: Pattern, from: usize, sink: &'a mut S) -> Self {
        let words = Words { pattern, classes: Classes::get(), is_word: false };
        Joined { words, sink, start: from, end: from }
    }

    /// Passes on the last piece.
    pub(super) fn finish(&mut self, bytes: &[u8]) {
        if self.start < self.end {
            self.sink.segment(bytes, self.start, self.end);
        }
    }

    #[inline(always)]
    fn push(&mut self, bytes: &[u8], start: usize, end: usize) {
        if self.words.begins(bytes, start, end) {
            self.finish(bytes);
            self.start = start;
        }
        self.end = end;
    }
}

impl<S: SegmentSink> SegmentSink for Joined<'_, S> {
    #[inline(always)]
    fn block(&mut self, bytes: &[u8], at: usize, block: &BlockSegments) {
        if self.sink.takes_words() {
            let words = &mut self.words;
            return self.sink.words(bytes, at, block, |start, end| words.begins(bytes, start, end));
        }
        block.all().each(at, |start, end| self.push(bytes, start, end));
    }

    #[inline(always)]
    fn segment(&mut self, bytes: &[u8], start: usize, end: usize) {
        if self.sink.takes_words() {
            let begins = self.words.begins(bytes, start, end);
            return self.sink.word(bytes, start, end, begins);
        }
        self.push(bytes, start, end);
    }

    fn added(&mut self, raw: &str) {
        self.sink.added(raw);
    }
}

impl Pattern {
    /// Returns true if the alternative of words matches a piece.
    #[inline(always)]
    fn is_word_piece(&self, classes: Classes, piece: &[u8]) -> bool {
        let (class, next) = classes.at(piece, 0);
        if self.is_word(class) {
            return !self.is_split_off(class);
        }
        let is_lead = next < piece.len() && self.is_lead(piece[0], class);
        is_lead
            && self.is_word(classes.at(piece, next).0)
            && !(piece[0] == b'\'' && self.contraction_before_word(piece) > 0)
    }

    /// Returns true if an earlier expression splits off words of such characters.
    fn is_split_off(&self, class: Class) -> bool {
        self.words == super::Words::DeepSeek && class.is(Class::CJK)
    }
}
