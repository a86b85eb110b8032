//! The counts of raw segments: one array for characters that stand alone, tables for the rest.
//!
//! Half of the segments of English, and nearly all of Chinese, are single characters, whose counts are
//! at their place in an array: nothing is looked up. The others are in a [`SegmentTable`].

use crate::text::segment_table::{Batch, SegmentTable};
use crate::text::segments::{BlockSegments, SegmentSink};

/// The number of counts of an ASCII character. Equal characters in a row use them in turn:
/// an addition need not wait for the one before.
const ASCII_COUNTS: usize = 4;

/// Characters in a page of counts.
const PAGE: usize = 256;

/// The count of each segment.
pub struct SegmentCounts {
    ascii: [[u64; 128]; ASCII_COUNTS],
    alone: AloneCounts,
    table: SegmentTable,
    batch: Batch,
}

impl Default for SegmentCounts {
    fn default() -> Self {
        SegmentCounts {
            ascii: [[0; 128]; ASCII_COUNTS],
            alone: AloneCounts::default(),
            table: SegmentTable::default(),
            batch: Batch::default(),
        }
    }
}

impl SegmentSink for SegmentCounts {
    #[inline(always)]
    fn block(&mut self, bytes: &[u8], at: usize, block: &BlockSegments) {
        let mut alone = block.alone;
        while alone != 0 {
            let place = at + alone.trailing_zeros() as usize;
            self.ascii[place % ASCII_COUNTS][bytes[place] as usize % 128] += 1;
            alone &= alone - 1;
        }
        let mut cjk_alone = block.cjk_alone;
        while cjk_alone != 0 {
            let place = at + cjk_alone.trailing_zeros() as usize;
            self.alone.add(three_byte_char(&bytes[place..]));
            cjk_alone &= cjk_alone - 1;
        }
        self.make_room();
        let table = &mut self.table;
        self.batch.push_block(bytes, at, block.words(), |longer| table.add(longer));
    }

    #[inline(always)]
    fn alone(&mut self, _bytes: &[u8], _start: usize, _end: usize, word: char) {
        self.alone.add(word);
    }

    #[inline(always)]
    fn segment(&mut self, bytes: &[u8], start: usize, end: usize) {
        self.make_room();
        self.batch.push(bytes, start, end, |longer| self.table.add(longer));
    }

    fn added(&mut self, raw: &str) {
        self.table.add(raw.as_bytes());
    }
}

#[inline(always)]
fn three_byte_char(bytes: &[u8]) -> char {
    let [a, b, c] = [bytes[0] & 0x0F, bytes[1] & 0x3F, bytes[2] & 0x3F].map(u32::from);
    char::from_u32(a << 12 | b << 6 | c).unwrap_or(char::REPLACEMENT_CHARACTER)
}

impl SegmentCounts {
    /// An upper limit of the number of distinct segments.
    pub fn len(&self) -> usize {
        128 + self.alone.held + self.table.len() + self.batch.len()
    }

    /// The memory that the tables may take soon, in bytes: a larger table is filled before the old one
    /// goes.
    pub(crate) fn memory_to_grow(&self) -> usize {
        let tables = self.alone.memory() + self.table.memory() + self.table.growth(&self.batch);
        size_of::<Self>() + tables
    }

    /// An upper limit of the bytes of all distinct segments together.
    pub(crate) fn text_bytes(&self) -> usize {
        128 + self.alone.held * 4 + self.table.text_bytes() + self.batch.text_bytes()
    }

    /// Calls `each` with every segment and its count, in no particular order.
    pub fn for_each(&mut self, mut each: impl FnMut(&str, u64)) {
        self.table.count(&mut self.batch);
        for word in '\0'..='\x7F' {
            let count = self.ascii.iter().map(|counts| counts[word as usize]).sum();
            if count > 0 {
                each(word.encode_utf8(&mut [0; 4]), count);
            }
        }
        self.alone.for_each(|word, count| each(word.encode_utf8(&mut [0; 4]), count));
        self.table.for_each(each);
    }

    #[inline(always)]
    fn make_room(&mut self) {
        if self.batch.is_full() {
            self.table.count(&mut self.batch);
        }
    }
}

/// The counts of characters, in pages that are made when they are needed.
#[derive(Default)]
struct AloneCounts {
    pages: Vec<Option<Box<[u64; PAGE]>>>,
    /// The number of pages, and the number of characters in them with a count.
    made: usize,
    held: usize,
}

impl AloneCounts {
    #[inline(always)]
    fn add(&mut self, word: char) {
        if let Some(Some(page)) = self.pages.get_mut(word as usize / PAGE) {
            let count = &mut page[word as usize % PAGE];
            self.held += (*count == 0) as usize;
            *count += 1;
        } else {
            self.add_page(word);
        }
    }

    #[cold]
    fn add_page(&mut self, word: char) {
        let number = word as usize / PAGE;
        if self.pages.len() <= number {
            self.pages.resize_with(number + 1, || None);
        }
        self.pages[number] = Some(Box::new([0; PAGE]));
        self.made += 1;
        self.add(word);
    }

    fn memory(&self) -> usize {
        self.pages.capacity() * size_of::<Option<Box<[u64; PAGE]>>>()
            + self.made * size_of::<[u64; PAGE]>()
    }

    fn for_each(&self, mut each: impl FnMut(char, u64)) {
        let pages = self.pages.iter().enumerate().filter_map(|(n, page)| Some((n, page.as_ref()?)));
        let counts = pages.flat_map(|(n, page)| (n * PAGE..).zip(page.iter()));
        for (code, &count) in counts.filter(|(_, count)| **count > 0) {
            each(char::from_u32(code as u32).expect("a page holds characters"), count);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::text::bert::{BertRules, TextOptions};
    use wordpiece_testing::Random;

    #[test]
    fn counts_like_a_plain_map() {
        let text = BertRules::new(TextOptions {
            clean_text: false,
            handle_chinese_chars: true,
            strip_accents: false,
            lowercase: false,
            split_punctuation: true,
        });
        let pieces: Vec<char> = "aaaabcé日語あー.,- \u{1F600}".chars().collect();
        let mut random = Random::new(7);
        let mut counts = SegmentCounts::default();
        let mut plain: HashMap<String, u64> = HashMap::new();
        for round in 0..6_000 {
            let most = *random.choose(&[3, 40, 200]);
            let raw = random.word(&pieces[..2 + round % (pieces.len() - 1)], most);
            text.segments_into(&raw, raw.as_bytes(), &mut counts);
            text.segments(&raw, |segment| *plain.entry(segment.raw.into()).or_default() += 1);
            assert!(counts.len() >= plain.len());
            let bytes: usize = plain.keys().map(String::len).sum();
            assert!(counts.text_bytes() >= bytes);
        }
        let mut found = HashMap::new();
        counts.for_each(|segment, count| assert!(found.insert(segment.into(), count).is_none()));
        assert_eq!(found, plain);
        assert!(counts.memory_to_grow() > found.len() * 16);
    }
}
