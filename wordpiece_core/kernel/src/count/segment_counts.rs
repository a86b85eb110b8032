//! The counts of raw segments: one array for characters that stand alone, tables for the rest.
//!
//! Half of the segments of English, and nearly all of Chinese, are single characters, whose counts are
//! at their place in an array: nothing is looked up. Segments of up to 7 bytes, as most others are,
//! are their own key of 8 bytes; a slot of 16 bytes holds the key and its count, so that the frequent
//! ones fit into the processor's caches, also where two threads share one. These segments are
//! gathered, and their slots asked for, before they are counted, up to 128 at a time: so no look-up
//! waits for memory. Longer ones are in a [`SegmentMap`].

use crate::text::segment_map::{
    KeyTable, MIDDLE, MiddleKey, SHORT, SegmentKey, SegmentMap, first_block, middle_key, short_key,
};
use crate::text::segments::SegmentBag;

/// The length of the longest segments whose key has 8 bytes, in bytes.
const TINY: usize = 7;

/// The most segments of a kind that are gathered. A power of two.
const BATCH: usize = 128;

/// The most segments in 64 bytes: between any two of them is another byte, or each has two.
const BLOCK_SEGMENTS: usize = 32;

/// How many counts an ASCII character has. One that follows itself is counted in turn here and there:
/// an addition need not wait for the one before.
const ASCII_COUNTS: usize = 4;

/// Characters in a page of counts.
const PAGE: usize = 256;

/// How often each segment was met.
///
/// # Examples
///
/// ```
/// use _kernel::count::segment_counts::SegmentCounts;
/// use _kernel::text::pre_tokenize::{PreTokenizer, TextOptions};
///
/// let options = TextOptions {
///     clean_text: true,
///     handle_chinese_chars: true,
///     strip_accents: true,
///     lowercase: true,
///     split_punctuation: true,
/// };
/// let mut counts = SegmentCounts::default();
/// PreTokenizer::new(options).segments_into("A 日 b A", "A 日 b A".as_bytes(), &mut counts);
/// let mut found = Vec::new();
/// counts.for_each(|segment, count| found.push((segment.to_string(), count)));
/// found.sort();
/// assert_eq!(found, [("A".into(), 2), ("b".into(), 1), ("日".into(), 1)]);
/// ```
pub struct SegmentCounts {
    ascii: [[u64; 128]; ASCII_COUNTS],
    alone: AloneCounts,
    tiny: KeyTable<u64, u64>,
    longer: SegmentMap<u64>,
    tiny_batch: Batch<u64>,
    short_batch: Batch<u128>,
    middle_batch: Batch<MiddleKey>,
}

impl Default for SegmentCounts {
    fn default() -> Self {
        SegmentCounts {
            ascii: [[0; 128]; ASCII_COUNTS],
            alone: AloneCounts::default(),
            tiny: KeyTable::new(1 << 10),
            longer: SegmentMap::default(),
            tiny_batch: Batch::default(),
            short_batch: Batch::default(),
            middle_batch: Batch::default(),
        }
    }
}

impl SegmentBag for SegmentCounts {
    #[inline(always)]
    fn alone_ascii(&mut self, word: u8, at: usize) {
        self.ascii[at % ASCII_COUNTS][word as usize % 128] += 1;
    }

    #[inline(always)]
    fn alone(&mut self, word: char) {
        self.alone.add(word);
    }

    #[inline(always)]
    fn segments(&mut self, bytes: &[u8], at: usize, mut starts: u64, mut ends: u64) {
        self.make_room();
        // They are not in memory as long as the loop runs.
        let (mut tiny, mut short) = (self.tiny_batch.held, self.short_batch.held);
        while starts != 0 {
            let start = at + starts.trailing_zeros() as usize;
            let end = at + ends.trailing_zeros() as usize;
            (starts, ends) = (starts & (starts - 1), ends & (ends - 1));
            let length = end - start;
            if length > SHORT {
                self.add_longer(&bytes[start..end]);
                continue;
            }
            // Both batches are written to, and one of them keeps the key: which one cannot be
            // foretold, and a branch that goes wrong would cost more.
            let key = short_key(first_block(bytes, start), length);
            self.tiny_batch.keys[tiny % BATCH] = key as u64 | (length as u64) << (8 * TINY);
            self.short_batch.keys[short % BATCH] = key;
            tiny += (length <= TINY) as usize;
            short += (length > TINY) as usize;
        }
        (self.tiny_batch.held, self.short_batch.held) = (tiny, short);
    }

    #[inline(always)]
    fn segment(&mut self, bytes: &[u8], start: usize, end: usize) {
        if end - start > SHORT {
            self.add_longer(&bytes[start..end]);
        } else {
            self.make_room();
            let key = short_key(first_block(bytes, start), end - start);
            if end - start <= TINY {
                self.tiny_batch.push(key as u64 | ((end - start) as u64) << (8 * TINY));
            } else {
                self.short_batch.push(key);
            }
        }
    }
}

impl SegmentCounts {
    /// An upper limit of the number of distinct segments.
    pub fn len(&self) -> usize {
        let gathered = self.tiny_batch.held + self.short_batch.held + self.middle_batch.held;
        128 + self.alone.held + self.tiny.held() + self.longer.len() + gathered
    }

    /// Whether there are no segments.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory that the tables may take soon, in bytes: with that of a larger table beside the old
    /// one where one will soon grow.
    pub fn memory_to_grow(&self) -> usize {
        let larger = self.tiny.growth(self.tiny_batch.held)
            + self.longer.short.growth(self.short_batch.held)
            + self.longer.middle.growth(self.middle_batch.held);
        let tables = self.alone.memory() + self.tiny.memory() + self.longer.memory();
        size_of::<Self>() + tables + larger
    }

    /// An upper limit of the bytes of all distinct segments together.
    pub fn text_bytes(&self) -> usize {
        let gathered = self.tiny_batch.held * TINY
            + self.short_batch.held * SHORT
            + self.middle_batch.held * MIDDLE;
        let short = 128 + self.alone.held * 4 + self.tiny.held() * TINY;
        short + self.longer.text_bytes() + gathered
    }

    /// Calls `each` with every segment and its count, in no particular order.
    pub fn for_each(&mut self, mut each: impl FnMut(&str, u64)) {
        self.count_gathered();
        for word in '\0'..='\x7F' {
            let count = self.ascii.iter().map(|counts| counts[word as usize]).sum();
            if count > 0 {
                each(word.encode_utf8(&mut [0; 4]), count);
            }
        }
        self.alone.for_each(|word, count| each(word.encode_utf8(&mut [0; 4]), count));
        self.tiny.for_each(|key, count| {
            let bytes = key.to_le_bytes();
            let segment = std::str::from_utf8(&bytes[..bytes[TINY] as usize]);
            each(segment.expect("a segment is a string"), count);
        });
        self.longer.for_each(each);
    }

    #[inline(always)]
    fn make_room(&mut self) {
        if self.tiny_batch.held.max(self.short_batch.held) > BATCH - BLOCK_SEGMENTS {
            self.count_gathered();
        }
    }

    #[inline(never)]
    fn count_gathered(&mut self) {
        self.tiny_batch.count_into(&mut self.tiny);
        self.short_batch.count_into(&mut self.longer.short);
        self.middle_batch.count_into(&mut self.longer.middle);
    }

    #[inline(never)]
    fn add_longer(&mut self, segment: &[u8]) {
        if segment.len() > MIDDLE {
            *self.longer.long_entry(segment, || 0) += 1;
            return;
        }
        if self.middle_batch.held == BATCH {
            self.middle_batch.count_into(&mut self.longer.middle);
        }
        self.middle_batch.push(middle_key(segment));
    }
}

/// Keys that are gathered.
struct Batch<K> {
    keys: [K; BATCH],
    held: usize,
}

impl<K: Copy + Default> Default for Batch<K> {
    fn default() -> Self {
        Batch { keys: [K::default(); BATCH], held: 0 }
    }
}

impl<K: SegmentKey> Batch<K> {
    /// Keeps a key. The batch must not be full.
    #[inline(always)]
    fn push(&mut self, key: K) {
        self.keys[self.held % BATCH] = key;
        self.held += 1;
    }

    /// Counts the keys. The batch is empty then.
    fn count_into(&mut self, counts: &mut KeyTable<K, u64>) {
        let keys = &self.keys[..std::mem::take(&mut self.held)];
        keys.iter().for_each(|&key| counts.prefetch(key));
        for &key in keys {
            *counts.entry(key, || 0) += 1;
        }
    }
}

/// The counts of characters, in pages that are made when they are needed.
#[derive(Default)]
struct AloneCounts {
    pages: Vec<Option<Box<[u64; PAGE]>>>,
    /// How many pages there are, and how many characters in them have a count.
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
    use crate::oracle::Random;
    use crate::text::pre_tokenize::{PreTokenizer, TextOptions};

    #[test]
    fn counts_like_a_plain_map() {
        let text = PreTokenizer::new(TextOptions {
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
        for round in 0..if cfg!(miri) { 60 } else { 6_000 } {
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
