//! The tokens of a text.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::tokenize::Scratch;
use super::trimming::{OffsetTrimming, trim};

/// The tokens of a text, which [`Session::encode`](super::Session::encode) writes.
#[derive(Default)]
pub struct Encoding {
    /// What was there before, and the ids from `first` on.
    ids: Vec<u32>,
    first: usize,
    /// What each token stands for; empty if spans are not wanted.
    pub spans: Vec<Span>,
    /// How many words have tokens. A special token in the text is no word.
    pub words: usize,
    /// How many of the tokens are those of words.
    pub word_tokens: usize,
    /// The number of special tokens in the text.
    pub special_tokens: usize,
    /// How many words and special tokens there are, with words that have no tokens; counted only with
    /// spans.
    pub(super) next_word: u32,
    /// How many spaces tokens begin with, and end with, where their ids do not say it: the index of
    /// each such token, and the numbers. Only if offsets are trimmed.
    own_spaces: Vec<(usize, [u32; 2])>,
    /// The same for all tokens, and the `add_prefix_space` of each trimming by it.
    spaces: Vec<[u32; 2]>,
    trimmings: Vec<bool>,
}

/// What a token stands for, before offsets are trimmed.
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
        &self.ids[self.first..]
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.ids.len() - self.first
    }

    /// Has the ids of the next text be appended to these.
    pub(crate) fn append_to(&mut self, ids: Vec<u32>) {
        (self.first, self.ids) = (ids.len(), ids);
    }

    /// Takes the ids out, with those that they were appended to.
    pub(crate) fn take_ids(&mut self) -> Vec<u32> {
        self.first = 0;
        std::mem::take(&mut self.ids)
    }

    pub(super) fn clear(&mut self) {
        self.ids.truncate(self.first);
        self.spans.clear();
        self.own_spaces.clear();
        self.spaces.clear();
        (self.words, self.word_tokens, self.special_tokens, self.next_word) = (0, 0, 0, 0);
    }

    /// The characters that the tokens of a row stand for: of those in `row`. If spans are not wanted,
    /// there are none.
    pub fn offsets(&self, row: Range<usize>) -> impl Iterator<Item = [u32; 2]> {
        let first = row.start;
        let spans = self.spans.get(row.clone()).unwrap_or_default();
        row.zip(spans).map(move |(index, span)| {
            let mut offsets = [span.start, span.end];
            if let Some(&spaces) = self.spaces.get(index) {
                trim(&mut offsets, spaces, index == first, &self.trimmings);
            }
            offsets
        })
    }

    /// Notes how many spaces the token that is appended next begins with, and ends with.
    pub(super) fn push_spaces(&mut self, spaces: [u32; 2]) {
        let index = self.len();
        self.own_spaces.push((index, spaces));
    }

    /// Finds how many spaces all tokens begin with, and end with.
    pub(super) fn prepare_trimming(&mut self, trimming: &OffsetTrimming) {
        self.trimmings.clone_from(&trimming.add_prefix_space);
        let ids = self.ids[self.first..].iter();
        self.spaces.extend(ids.map(|&id| trimming.spaces(id)));
        for &(index, spaces) in &self.own_spaces {
            self.spaces[index] = spaces;
        }
    }

    #[inline]
    pub(super) fn push(&mut self, id: u32) {
        self.ids.push(id);
    }

    /// Appends ids.
    #[inline(always)]
    pub(super) fn push_all(&mut self, ids: impl ExactSizeIterator<Item = u32>) {
        self.ids.extend(ids);
    }

    /// All ids, including ids of earlier texts. They may be changed only without spans.
    #[inline(always)]
    pub(super) fn all_ids(&mut self) -> &mut Vec<u32> {
        &mut self.ids
    }

    /// Returns the number of ids, including ids of earlier texts.
    #[inline(always)]
    pub(super) fn end(&self) -> usize {
        self.ids.len()
    }

    /// Appends the ids of so many segments, of up to `N` ids each. `next`: N ids of a segment, and how
    /// many of them are its own; None ends it. It is given how many ids were appended before.
    #[allow(unsafe_code)]
    #[inline(always)]
    pub(super) fn push_each<const N: usize>(
        &mut self,
        segments: usize,
        mut next: impl FnMut(usize) -> Option<([u32; N], usize)>,
    ) {
        self.ids.reserve(N * segments);
        let (free, mut pushed) = (self.ids.spare_capacity_mut(), 0);
        while let Some(room) = free.get_mut(pushed..pushed + N)
            && let Some((ids, count)) = next(pushed)
        {
            // All are copied, even if fewer are wanted: a copy of variable length would cost more.
            room.iter_mut().zip(ids).for_each(|(free, id)| *free = MaybeUninit::new(id));
            pushed += count.min(N);
        }
        // SAFETY: all ids up to there have been written: at each step those from `pushed` on, before
        // `pushed` became larger by no more than these.
        unsafe { self.ids.set_len(self.ids.len() + pushed) };
    }

    /// Appends the ids of a segment that was tokenized.
    pub(super) fn push_new(&mut self, scratch: &Scratch) {
        self.push_all(scratch.tokens.iter().map(|token| token.id));
        self.words += scratch.words_with_tokens();
    }

    /// Append a token with its span. `word`: the index of its word among the words that are not counted yet.
    #[inline]
    pub(super) fn push_token(&mut self, id: u32, [start, end]: [u32; 2], word: u32) {
        self.push(id);
        self.spans.push(Span { start, end, word: self.next_word + word });
    }
}
