//! Counting words: raw segments are counted as they stand, and normalized once each at the end.

use rustc_hash::FxHashMap;

use crate::segment_map::SegmentMap;
use crate::text::{Text, TextOptions};
use crate::words::{Result, Words, partition};

/// Counts the words of texts, and of tables that are there already, apart for every group.
pub struct WordCounter {
    text: Text,
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
    words: Words,
}

/// Part of what was counted: the words of a group that belong to a partition, ordered.
pub struct Taken {
    pub partition: usize,
    pub group: Option<Box<str>>,
    pub words: Words,
}

impl WordCounter {
    /// `most_bytes`: when the table is full.
    pub fn new(options: TextOptions, most_bytes: usize) -> Self {
        let text = Text::new(options);
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
    pub fn take(&mut self, partitions: usize) -> Result<Vec<Taken>> {
        self.numbers.clear();
        self.memory = 0;
        let mut taken = Vec::new();
        for group in self.groups.drain(..) {
            let mut lists: Vec<Words> = Vec::new();
            lists.resize_with(partitions, Words::default);
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
                    taken.push(Taken { partition, group: group.name.clone(), words });
                }
            }
        }
        Ok(taken)
    }
}

impl Group {
    fn new(name: Option<Box<str>>) -> Self {
        Group { name, segments: SegmentMap::default(), words: Words::default() }
    }

    fn memory(&self) -> usize {
        let listed = self.segments.len() * Words::BYTES_PER_ROW + self.segments.text_bytes();
        self.segments.memory_to_grow() + listed + 2 * self.words.memory()
    }
}
