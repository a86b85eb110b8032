//! Counting words: raw segments are counted as they stand, and normalized once each at the end.

use rustc_hash::FxHashMap;

use crate::count::word_lists::{CountResult, WordList, partition};
use crate::text::pre_tokenize::{PreTokenizer, TextOptions};
use crate::text::segment_map::SegmentMap;

/// Counts the words of texts, and of tables that are there already, apart for every group.
pub struct WordCounter {
    text: PreTokenizer,
    most_bytes: usize,
    groups: Vec<Group>,
    numbers: FxHashMap<Option<Box<str>>, usize>,
    /// The group of the last row: mostly that of the next.
    current: usize,
    memory: usize,
}

struct Group {
    name: Option<Box<str>>,
    segments: SegmentMap<u64>,
    /// Of tables.
    words: WordList,
}

/// Part of what was counted: the words of a group that belong to a partition, ordered.
pub struct WordPartition {
    pub partition: usize,
    pub group: Option<Box<str>>,
    pub words: WordList,
}

impl WordCounter {
    /// `most_bytes`: when the table is full.
    pub fn new(options: TextOptions, most_bytes: usize) -> Self {
        let text = PreTokenizer::new(options);
        let numbers = FxHashMap::default();
        WordCounter { text, most_bytes, groups: Vec::new(), numbers, current: 0, memory: 0 }
    }

    /// Bytes that counting on and `take` may need: what is held, a table twice the size where one
    /// is about to grow, and the list of all words.
    pub fn memory(&self) -> usize {
        self.memory
    }

    pub fn is_full(&self) -> bool {
        self.memory > self.most_bytes
    }

    /// Counts the words of a text.
    pub fn count(&mut self, group: Option<&str>, text: &str) {
        let number = self.number(group);
        let group = &mut self.groups[number];
        self.memory -= group.memory();
        self.text.segments(text, |segment| *group.segments.entry(&segment, || 0) += 1);
        self.memory += group.memory(); // less than before, if a table has grown that was about to
    }

    /// Adds a word of a table, as it is.
    pub fn add(&mut self, word: &str, count: u64) {
        let number = self.number(None);
        let group = &mut self.groups[number];
        self.memory -= group.memory();
        group.words.push(word, count);
        self.memory += group.memory();
    }

    /// The number of a group, which is made if it is new.
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

    /// Empties the table into lists by partition and group, those without words left out.
    pub fn take(&mut self, partitions: usize) -> CountResult<Vec<WordPartition>> {
        self.numbers.clear();
        self.memory = 0;
        let mut taken = Vec::new();
        for group in self.groups.drain(..) {
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
        Group { name, segments: SegmentMap::default(), words: WordList::default() }
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
    use crate::oracle::Random;

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
        for round in 0..if cfg!(miri) { 2 } else { 30 } {
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
                    counter.add("Table", 1 << 40); // words of tables are as they are
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
        for number in 0..if cfg!(miri) { 600 } else { 5_000 } {
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
