//! Counting the words of texts.
//!
//! While texts are read, their raw segments are counted as they stand, in a table whose lookups
//! touch one cache line each (see [`segment_map`](crate::text::segment_table)). Only when the table is
//! emptied are its segments normalized, each distinct one once, and equal words added up. So the
//! cost of a text is little more than the cost of splitting it at its spaces.

use std::ops::Range;

use foldhash::HashMap;

use crate::base::error::Result;
use crate::count::segment_counts::SegmentCounts;
use crate::count::word_lists::{WordList, partition};
use crate::encode::added_tokens::{AddedToken, AddedTokenSearch, Section};
use crate::text::rules::TextRules;

/// Counts the words of texts, separately for each group of texts. Counts from other tables can be
/// added.
///
/// # Examples
///
/// ```
/// use wordpiece_core::count::WordCounter;
/// use wordpiece_core::text::TextOptions;
///
/// let options = TextOptions::default();
/// let mut counter = WordCounter::new(options, usize::MAX);
/// counter.count(None, "Hug the pug.");
/// counter.count(None, "a hug");
/// let taken = counter.take(1).unwrap();
/// let words: Vec<_> = taken[0].words.iter().collect();
/// assert_eq!(words, [(".", 1), ("a", 1), ("hug", 2), ("pug", 1), ("the", 1)]);
/// ```
pub struct WordCounter {
    text: TextRules,
    /// The tokens that texts are split at.
    split: Option<AddedTokenSearch>,
    most_bytes: usize,
    groups: Vec<Group>,
    /// The index of each group in `groups`, by name.
    numbers: HashMap<Option<Box<str>>, usize>,
    /// The index of the group of the last text. The next text mostly has the same group.
    current: usize,
    memory: usize,
}

struct Group {
    name: Option<Box<str>>,
    segments: SegmentCounts,
    /// The words that were added from tables.
    words: WordList,
}

/// A part of what was counted: the words of one group that belong to one partition.
pub struct WordPartition {
    /// The number of the partition, from 0 (see [`partition`]).
    pub partition: usize,
    /// The name of the group.
    pub group: Option<Box<str>>,
    /// The words with their counts, each word once, ordered by word.
    pub words: WordList,
}

impl WordCounter {
    /// Makes a counter that has counted nothing.
    ///
    /// # Arguments
    ///
    /// * `text` - How texts are split into words.
    /// * `most_bytes` - The memory, in bytes, above which the counter is full (see
    ///   [`WordCounter::memory`]). A full counter still counts.
    pub fn new(text: impl Into<TextRules>, most_bytes: usize) -> Self {
        let text = text.into();
        let numbers = HashMap::default();
        let split = None;
        WordCounter { text, split, most_bytes, groups: Vec::new(), numbers, current: 0, memory: 0 }
    }

    /// Splits texts at these tokens, as a tokenizer does before it splits words. The tokens themselves
    /// are not counted.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Option`](crate::Error::Option) if the tokens are too large for a search.
    ///
    /// # Examples
    ///
    /// ```
    /// use wordpiece_core::count::WordCounter;
    /// use wordpiece_core::encode::AddedToken;
    /// use wordpiece_core::text::TextOptions;
    ///
    /// let end = AddedToken { content: "<|end|>".into(), ..AddedToken::default() };
    /// let counter = WordCounter::new(TextOptions::default(), usize::MAX);
    /// let mut counter = counter.split_at(vec![end]).unwrap();
    /// counter.count(None, "hug<|end|>pug");
    /// let taken = counter.take(1).unwrap();
    /// assert_eq!(taken[0].words.iter().collect::<Vec<_>>(), [("hug", 1), ("pug", 1)]);
    /// ```
    pub fn split_at(mut self, tokens: Vec<AddedToken>) -> Result<Self> {
        self.split = (!tokens.is_empty()).then(|| AddedTokenSearch::new(tokens)).transpose()?;
        Ok(self)
    }

    /// Return the memory that further counting and `take` may need, in bytes: the tables, a table of twice the size
    /// where one is about to grow, and the list of all words.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Return true if the memory exceeds the limit, so that the counter should be emptied.
    pub fn is_full(&self) -> bool {
        self.memory > self.most_bytes
    }

    /// Counts the words of a text. `group`: the name of its group.
    pub fn count(&mut self, group: Option<&str>, text: &str) {
        self.count_in_place(group, text, text.as_bytes());
    }

    /// Count a text that other bytes may follow: `bytes` are the bytes of the text and after it. That is
    /// faster, because the end of the text needs no special case.
    #[doc(hidden)] // see `internals`
    pub fn count_in_place(&mut self, group: Option<&str>, text: &str, bytes: &[u8]) {
        let number = self.number(group);
        let group = &mut self.groups[number];
        self.memory -= group.memory();
        let mut count = |range: Range<usize>| {
            self.text.segments_into(
                &text[range.clone()],
                &bytes[range.start..],
                &mut group.segments,
            );
        };
        match &self.split {
            None => count(0..text.len()),
            Some(split) => split.split(text, |section| {
                if let Section::Text(range) = section {
                    count(range);
                }
            }),
        }
        // This may be less than before: the old table and the new one were counted when it was about to
        // grow.
        self.memory += group.memory();
    }

    /// Adds a word with its count to the group without a name. The word is not normalized.
    pub fn add(&mut self, word: &str, count: u64) {
        let number = self.number(None);
        let group = &mut self.groups[number];
        self.memory -= group.memory();
        group.words.push(word, count);
        self.memory += group.memory();
    }

    /// The index of a group, which is made if it is new.
    fn number(&mut self, name: Option<&str>) -> usize {
        if self.groups.get(self.current).is_none_or(|group| group.name.as_deref() != name) {
            let name: Option<Box<str>> = name.map(Box::from);
            self.current = *self.numbers.entry(name).or_insert_with_key(|name| {
                let group = Group::new(name.clone());
                self.memory += group.memory();
                self.groups.push(group);
                self.groups.len() - 1
            });
        }
        self.current
    }

    /// Empties the counter into lists of words, one for each group and partition with words in it.
    ///
    /// # Arguments
    ///
    /// * `partitions` - How many partitions there are, 1 at least.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Overflow`](crate::Error::Overflow) if the count of a word exceeds
    /// 2^63 - 1.
    pub fn take(&mut self, partitions: usize) -> Result<Vec<WordPartition>> {
        self.numbers.clear();
        self.memory = 0;
        let mut taken = Vec::new();
        for mut group in self.groups.drain(..) {
            let mut lists: Vec<WordList> = Vec::new();
            lists.resize_with(partitions, WordList::default);
            let mut put = |word: &str, count| lists[partition(word, partitions)].push(word, count);
            let mut word = String::new();
            group.segments.for_each(|segment, count| {
                self.text.normalize(segment, &mut word);
                if !word.is_empty() {
                    put(&word, count);
                }
            });
            group.words.iter().for_each(|(word, count)| put(word, count));
            for (partition, mut words) in lists.into_iter().enumerate() {
                if !words.is_empty() {
                    words.sort_and_sum()?;
                    taken.push(WordPartition { partition, group: group.name.clone(), words });
                }
            }
        }
        Ok(taken)
    }
}

impl Group {
    fn new(name: Option<Box<str>>) -> Self {
        Group { name, segments: SegmentCounts::default(), words: WordList::default() }
    }

    fn memory(&self) -> usize {
        let listed = self.segments.len() * WordList::BYTES_PER_ROW + self.segments.text_bytes();
        self.segments.memory_to_grow() + listed + 2 * self.words.memory()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::text::bert::TextOptions;
    use wordpiece_testing::Random;

    const PLAIN: TextOptions = TextOptions {
        clean_text: true,
        handle_chinese_chars: true,
        strip_accents: false,
        lowercase: true,
        split_punctuation: false,
    };

    type GroupCounts = BTreeMap<(Option<String>, String), u64>;

    fn taken(counter: &mut WordCounter, partitions: usize) -> GroupCounts {
        let mut counts = GroupCounts::new();
        for list in counter.take(partitions).unwrap() {
            let rows: Vec<_> = list.words.iter().collect();
            assert!(rows.is_sorted_by(|a, b| a.0 < b.0));
            assert_eq!(list.words.total(), Ok(rows.iter().map(|row| row.1).sum()));
            for (word, count) in rows {
                assert_eq!(partition(word, partitions), list.partition);
                let group = list.group.as_deref().map(String::from);
                assert_eq!(counts.insert((group, word.into()), count), None);
            }
        }
        counts
    }

    #[test]
    fn words_are_counted_as_by_a_plain_map() {
        let mut random = Random::new(1);
        let long: Vec<char> = ('a'..='h').chain(['é', '中', 'Ä']).collect();
        for round in 0..30 {
            let mut counter = WordCounter::new(PLAIN, usize::MAX);
            let mut counts = GroupCounts::new();
            for _ in 0..random.below(60) {
                let group = *random.choose(&[None, Some("x"), Some("y"), Some("")]);
                let most = *random.choose(&[2, 20, 50]);
                let words: Vec<_> =
                    (0..random.below(9)).map(|_| random.word(&long, most)).collect();
                counter.count(group, &words.join(" "));
                for word in words {
                    for word in word.to_lowercase().replace('中', " 中 ").split_whitespace() {
                        let key = (group.map(String::from), word.to_string());
                        *counts.entry(key).or_default() += 1;
                    }
                }
                if random.below(4) == 0 {
                    counter.add("Table", 1 << 40); // words of tables are not normalized
                    *counts.entry((None, "Table".into())).or_default() += 1 << 40;
                }
            }
            assert_eq!(taken(&mut counter, 1 + round % 5), counts);
            assert!(counter.take(3).unwrap().is_empty());
        }
    }

    #[test]
    fn memory_is_that_of_the_groups_also_where_a_table_grows() {
        // A table that is about to grow counts for three; when it has grown, for two.
        let mut counter = WordCounter::new(PLAIN, usize::MAX);
        let mut fell = false;
        for number in 0..5_000 {
            let before = counter.memory();
            counter.count(None, &format!("w{number}"));
            fell |= counter.memory() < before;
            assert_eq!(counter.memory(), counter.groups[0].memory());
        }
        assert!(fell);
        let before = counter.memory();
        counter.add("x", 1);
        counter.count(Some("other"), "x");
        assert!(counter.memory() > before);
        assert_eq!(counter.memory(), counter.groups.iter().map(Group::memory).sum::<usize>());
        counter.take(1).unwrap();
        assert_eq!(counter.memory(), 0);
    }

    #[test]
    fn a_counter_is_full_when_it_has_the_bytes_it_may_have() {
        let mut counter = WordCounter::new(PLAIN, 1 << 18);
        let mut number = 0;
        while !counter.is_full() {
            counter.count(None, &format!("word{number}"));
            assert_eq!(counter.is_full(), counter.memory() > 1 << 18);
            number += 1;
        }
        assert_eq!(taken(&mut counter, 2).len(), number);
        assert!(!counter.is_full());
    }

    #[test]
    fn sums_beyond_the_most_are_errors() {
        let most = i64::MAX as u64;
        let mut counter = WordCounter::new(PLAIN, usize::MAX);
        counter.add("a", most);
        counter.add("b", 1); // of another word, but the total is too large
        assert!(counter.take(1).unwrap()[0].words.total().is_err());
        counter.add("a", most);
        counter.add("a", 1);
        assert!(counter.take(1).is_err());
    }
}
