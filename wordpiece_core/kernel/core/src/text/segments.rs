//! The segments that text is split into, and what takes them.

/// A piece of raw text. After normalization it is one word, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The piece itself.
    pub raw: &'a str,
    /// Byte offset of `raw` in the text.
    pub start: usize,
    /// True if the first character of `raw` is a space that is not in the text: the rest of `raw`
    /// begins at `start`. BERT's rules add none.
    pub added: bool,
}

/// Takes the segments of texts, in order. `bytes` are the bytes of a text, and may continue after it.
pub trait SegmentSink {
    /// Takes the segments of a block of 64 bytes, which begins at byte `at`.
    fn block(&mut self, bytes: &[u8], at: usize, block: &BlockSegments);

    /// Takes the segment `bytes[start..end]`, which is one character. `word`: what it becomes.
    #[inline(always)]
    fn alone(&mut self, bytes: &[u8], start: usize, end: usize, word: char) {
        let _ = word;
        self.segment(bytes, start, end);
    }

    /// Takes the segment `bytes[start..end]`.
    fn segment(&mut self, bytes: &[u8], start: usize, end: usize);

    /// Returns true if pieces of several words are taken word by word, with [`SegmentSink::words`].
    #[inline(always)]
    fn takes_words(&mut self) -> bool {
        false
    }

    /// Takes the word `bytes[start..end]`. `begins`: true if a piece begins with it.
    #[inline(always)]
    fn word(&mut self, bytes: &[u8], start: usize, end: usize, begins: bool) {
        let _ = begins;
        self.segment(bytes, start, end);
    }

    /// Takes the words of a block. `begins`: returns true if a piece begins with a word; called in order.
    #[inline(always)]
    fn words(
        &mut self,
        bytes: &[u8],
        at: usize,
        block: &BlockSegments,
        mut begins: impl FnMut(usize, usize) -> bool,
    ) {
        block.all().each(at, |start, end| self.word(bytes, start, end, begins(start, end)));
    }

    /// Takes the first segment of a text, which begins with a space that is not in the text.
    fn added(&mut self, raw: &str);
}

/// The segments of a block, with one bit for each byte.
#[derive(Clone, Copy, Debug)]
pub struct BlockSegments {
    /// The beginnings of letters and of words of several characters with known ends.
    pub words: u64,
    /// The byte after each of these words.
    pub ends: u64,
    /// ASCII characters that stand alone.
    pub alone: u64,
    /// The first bytes of CJK characters that stand alone.
    pub cjk_alone: u64,
    /// The number of bytes of these segments and the spaces around them.
    pub(super) done: u32,
    /// The first byte of another class, of a character that the block does not know or a control
    /// character; or [`BLOCK`](crate::text::blocks::BLOCK).
    pub(super) stop: u32,
}

/// The first bytes of the segments in a block, and the bytes after each: one bit for each byte.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    starts: u64,
    ends: u64,
}

impl BlockSegments {
    /// The bounds of all segments.
    #[inline(always)]
    pub fn all(&self) -> Bounds {
        Bounds {
            starts: self.words | self.alone | self.cjk_alone,
            ends: self.ends | self.alone << 1 | self.cjk_alone << 3,
        }
    }

    /// The bounds of segments that do not stand alone.
    #[inline(always)]
    pub(crate) fn words(&self) -> Bounds {
        Bounds { starts: self.words, ends: self.ends }
    }
}

impl Bounds {
    /// Calls `each` with the bounds of every segment, in order. `at`: where the block begins.
    #[inline(always)]
    pub fn each(mut self, at: usize, mut each: impl FnMut(usize, usize)) {
        while let Some((start, end)) = self.pop(at) {
            each(start, end);
        }
    }

    /// Remove the first segment, and return its bounds. `at`: the offset of the block.
    #[inline(always)]
    pub(crate) fn pop(&mut self, at: usize) -> Option<(usize, usize)> {
        let Bounds { starts, ends } = *self;
        if starts == 0 {
            return None;
        }
        // The last segment may end after the block: there is no bit for that, but zero has as many trailing
        // zeros as a block has bytes.
        let bounds = (at + starts.trailing_zeros() as usize, at + ends.trailing_zeros() as usize);
        *self = Bounds { starts: starts & (starts - 1), ends: ends & ends.wrapping_sub(1) };
        Some(bounds)
    }
}

/// Calls a function with each segment of a text.
pub(crate) struct Each<F>(pub(crate) F);

impl<F: FnMut(Segment<'_>)> SegmentSink for Each<F> {
    #[inline(always)]
    fn block(&mut self, bytes: &[u8], at: usize, block: &BlockSegments) {
        block.all().each(at, |start, end| self.segment(bytes, start, end));
    }

    #[inline(always)]
    fn segment(&mut self, bytes: &[u8], start: usize, end: usize) {
        let raw = std::str::from_utf8(&bytes[start..end]).expect("segments are of characters");
        (self.0)(Segment { raw, start, added: false });
    }

    fn added(&mut self, raw: &str) {
        (self.0)(Segment { raw, start: 0, added: true });
    }
}
