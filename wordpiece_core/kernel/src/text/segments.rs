//! The segments that text is cut into, and what takes them.

/// A piece of raw text. After normalization it is one word, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The piece itself.
    pub raw: &'a str,
    /// Byte offset of `raw` in the text.
    pub start: usize,
    /// Whether the first character of `raw` is a space that is not in the text: the rest of `raw`
    /// begins at `start`. BERT's rules add none.
    pub added: bool,
    /// The word, if it is one character that stands alone and is not ASCII.
    pub alone: Option<char>,
    /// The text from the beginning of the segment on, so that a key of fixed size can be read at
    /// once.
    pub rest: &'a [u8],
}

/// Takes the segments of texts, in no particular order.
pub trait SegmentBag {
    /// Takes an ASCII character that is a word by itself. `at`: its place, of which the lowest two bits
    /// matter: they tell characters in a row apart.
    fn alone_ascii(&mut self, word: u8, at: usize);

    /// Takes any other character that is a word by itself.
    fn alone(&mut self, word: char);

    /// Takes the segments of a block of 64 bytes, which begins at byte `at`.
    ///
    /// # Arguments
    ///
    /// * `bytes` - A text, and what may be behind it.
    /// * `at` - Where the block begins.
    /// * `starts` - A bit for each byte of the block where a segment begins.
    /// * `ends` - A bit for each byte that is the first behind a segment, as many as in `starts`.
    fn segments(&mut self, bytes: &[u8], at: usize, starts: u64, ends: u64);

    /// Takes the segment `bytes[start..end]`.
    fn segment(&mut self, bytes: &[u8], start: usize, end: usize);
}

/// Takes what a text is cut into.
pub(super) trait Sink {
    /// Whether it takes CJK characters that stand alone as part of a block.
    const CJK: bool;

    /// Takes the segments of the block at byte `at`.
    fn block(&mut self, at: usize, block: &BlockSegments);

    /// Takes a character that stands alone, in the bytes from `start` to `end`, and its word.
    fn alone(&mut self, start: usize, end: usize, word: char);

    /// Takes another segment.
    fn segment(&mut self, start: usize, end: usize);
}

/// The segments of a block, with one bit for each byte.
pub(super) struct BlockSegments {
    /// Where a word of several characters, or a letter, begins, if its end is known.
    pub(super) words: u64,
    /// The byte behind each of these words.
    pub(super) ends: u64,
    /// ASCII characters that stand alone.
    pub(super) alone: u64,
    /// The first bytes of CJK characters that stand alone.
    pub(super) cjk_alone: u64,
    /// How many bytes these segments, and the spaces around them, take.
    pub(super) done: u32,
    /// The first byte of another class, of a character that the block does not know or a control
    /// character; or [`BLOCK`](crate::text::blocks::BLOCK).
    pub(super) stop: u32,
}

pub(super) struct InOrder<'a, F> {
    pub(super) text: &'a str,
    pub(super) each: F,
}

impl<'a, F: FnMut(Segment<'a>)> InOrder<'a, F> {
    #[inline(always)]
    fn give(&mut self, start: usize, end: usize, alone: Option<char>) {
        let (raw, rest) = (&self.text[start..end], &self.text.as_bytes()[start..]);
        (self.each)(Segment { raw, start, added: false, alone, rest });
    }
}

impl<'a, F: FnMut(Segment<'a>)> Sink for InOrder<'a, F> {
    // A look at each segment for what it is would cost more than it spares.
    const CJK: bool = false;

    #[inline(always)]
    fn block(&mut self, at: usize, block: &BlockSegments) {
        let mut starts = block.words | block.alone;
        // A character in the last byte ends behind the block: there is no bit for that, but zero
        // has as many trailing zeros as a block has bytes.
        let mut ends = block.ends | block.alone << 1;
        while starts != 0 {
            let start = at + starts.trailing_zeros() as usize;
            let end = at + ends.trailing_zeros() as usize;
            (starts, ends) = (starts & (starts - 1), ends & ends.wrapping_sub(1));
            self.give(start, end, None);
        }
    }

    #[inline(always)]
    fn alone(&mut self, start: usize, end: usize, word: char) {
        self.give(start, end, Some(word));
    }

    #[inline(always)]
    fn segment(&mut self, start: usize, end: usize) {
        self.give(start, end, None);
    }
}

pub(super) struct Unordered<'a, 'b, B> {
    pub(super) bytes: &'a [u8],
    pub(super) bag: &'b mut B,
}

impl<B: SegmentBag> Sink for Unordered<'_, '_, B> {
    const CJK: bool = true;

    #[inline(always)]
    fn block(&mut self, at: usize, block: &BlockSegments) {
        let mut alone = block.alone;
        while alone != 0 {
            let place = at + alone.trailing_zeros() as usize;
            self.bag.alone_ascii(self.bytes[place], place);
            alone &= alone - 1;
        }
        let mut cjk_alone = block.cjk_alone;
        while cjk_alone != 0 {
            let place = at + cjk_alone.trailing_zeros() as usize;
            self.bag.alone(three_byte_char(&self.bytes[place..]));
            cjk_alone &= cjk_alone - 1;
        }
        self.bag.segments(self.bytes, at, block.words, block.ends);
    }

    #[inline(always)]
    fn alone(&mut self, _start: usize, _end: usize, word: char) {
        self.bag.alone(word);
    }

    #[inline(always)]
    fn segment(&mut self, start: usize, end: usize) {
        self.bag.segment(self.bytes, start, end);
    }
}

#[inline(always)]
fn three_byte_char(bytes: &[u8]) -> char {
    let [a, b, c] = [bytes[0] & 0x0F, bytes[1] & 0x3F, bytes[2] & 0x3F].map(u32::from);
    char::from_u32(a << 12 | b << 6 | c).unwrap_or(char::REPLACEMENT_CHARACTER)
}
