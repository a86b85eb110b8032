//! The tokens of a text.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::tokenize::Scratch;
use super::trimming::{OffsetTrimming, trim};

/// The tokens of a text, which [`Session::encode`](super::Session::encode) writes.
#[derive(Default)]
pub struct Encoding {
    /// Earlier ids, and the ids of the text from `first` on.
    ids: Vec<u32>,
    first: usize,
    /// The span of each token; empty without spans.
    pub spans: Vec<Span>,
    /// The number of words that have tokens. Special tokens in the text do not count.
    pub words: usize,
    /// The number of tokens of words.
    pub word_tokens: usize,
    /// The number of special tokens in the text.
    pub special_tokens: usize,
    /// The number of words and special tokens, with words that have no tokens; counted only with spans.
    pub(super) next_word: u32,
    /// The index of each token whose id does not determine its spaces, and the number of spaces that it begins and
    /// ends with. Only if offsets are trimmed.
    own_spaces: Vec<(usize, [u32; 2])>,
    /// The number of spaces that each token begins and ends with, and the `add_prefix_space` of each trimming.
    spaces: Vec<[u32; 2]>,
    trimmings: Vec<bool>,
}

/// The characters of a token in the raw text, before offsets are trimmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The character offset of its start.
    pub start: u32,
    /// The character offset of its end.
    pub end: u32,
    /// The index of its word among all words and special tokens of the text.
    pub word: u32,
}

impl Encoding {
    /// The ids of the tokens.
    pub fn ids(&self) -> &[u32] {
        &self.ids[self.first..]
    }

    /// Return the number of tokens.
    pub fn len(&self) -> usize {
        self.ids.len() - self.first
    }

    /// Has the ids of the next text be appended to these.
    pub(crate) fn append_to(&mut self, ids: Vec<u32>) {
        (self.first, self.ids) = (ids.len(), ids);
    }

    /// Take the ids out, with earlier ids.
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

    /// Return the offsets of the tokens in `row`, a row; nothing without spans.
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

    /// Append the ids of `segments` segments, up to `N` ids each. `next` gets the number of ids appended so far, and
    /// returns N ids and the number of valid ones, or None to stop.
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
            // All are copied, even if fewer are valid: a copy of variable length would cost more.
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
