//! The tokens of a text.

use super::cut::Scratch;

/// The tokens of a text, which [`Session::encode`](super::Session::encode) writes.
#[derive(Default)]
pub struct Encoding {
    /// The first `count` are the ids. The vector is longer, since three ids are always copied at once.
    pub(super) ids: Vec<u32>,
    pub(super) count: usize,
    /// What each token stands for; empty if spans are not wanted.
    pub spans: Vec<Span>,
    /// How many words have tokens. A special token in the text is no word.
    pub words: usize,
    /// How many of the tokens are those of words.
    pub word_tokens: usize,
    /// How many words and special tokens there are, with words that have no tokens; counted only with
    /// spans.
    pub(super) next_word: u32,
}

/// What a token stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// How many characters of the raw text are before those that it stands for.
    pub start: u32,
    /// The same, with those that it stands for.
    pub end: u32,
    /// The index of its word among all words and special tokens of the text.
    pub word: u32,
}

impl Encoding {
    /// The ids of the tokens.
    pub fn ids(&self) -> &[u32] {
        &self.ids[..self.count]
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.spans.clear();
        (self.words, self.word_tokens, self.next_word) = (0, 0, 0);
    }

    /// Makes room for `more` ids, and three beyond.
    #[inline]
    pub(super) fn reserve(&mut self, more: usize) {
        let needed = self.count + more + 3;
        if self.ids.len() < needed {
            self.ids.resize(needed.max(self.ids.len() * 2), 0);
        }
    }

    #[inline]
    pub(super) fn push(&mut self, id: u32) {
        self.reserve(1);
        self.ids[self.count] = id;
        self.count += 1;
    }

    /// Appends the ids of a segment that was cut.
    pub(super) fn push_new(&mut self, scratch: &Scratch) {
        scratch.tokens.iter().for_each(|token| self.push(token.id));
        self.words += scratch.words_with_tokens();
    }

    /// Appends the tokens of a word with their spans. `first`: how many characters of the text are
    /// before those that they are counted from.
    #[inline]
    pub(super) fn push_cached(&mut self, tokens: &[(u32, [u32; 2])], first: u32) {
        tokens.iter().for_each(|&(id, _)| self.push(id));
        let word = self.next_word;
        self.spans.extend(tokens.iter().map(|&(_, [start, end])| Span {
            start: first + start,
            end: first + end,
            word,
        }));
    }

    /// Appends a token with its span. `first`: how many characters of the text are before those that
    /// it is counted from; `word`: how many words are before its own, of those that are not counted
    /// yet.
    #[inline]
    pub(super) fn push_token(
        &mut self,
        (id, [start, end]): &(u32, [u32; 2]),
        first: u32,
        word: u32,
    ) {
        self.push(*id);
        let word = self.next_word + word;
        self.spans.push(Span { start: first + start, end: first + end, word });
    }
}
