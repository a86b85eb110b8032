//! Text to ids: greedy longest match, behind a cache of segments already encoded.
//!
//! Most segments of a text have been seen before: their ids are copied from the slot that the
//! lookup has just touched. The rest are normalized and matched against the trie.

use std::sync::Mutex;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::segment_map::SegmentMap;
use crate::text::{Segment, Text, TextOptions};
use crate::trie::Trie;
use crate::utf8;

/// What becomes of a word that the vocabulary cannot cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnkScope {
    /// The whole word is one unknown token, as in BERT.
    Word,
    /// One character is an unknown token, and matching goes on after it.
    Character,
}

pub struct EncoderOptions {
    pub text: TextOptions,
    pub unk_id: u32,
    pub continuing_prefix: String,
    /// In characters; a longer word is unknown.
    pub max_word_length: usize,
    pub unk_scope: UnkScope,
    /// Strings found in the raw text before anything else, with their ids.
    pub special_tokens: Vec<(String, u32)>,
    /// Around every row, if asked for: `[CLS]` and `[SEP]`.
    pub prefix_ids: Vec<u32>,
    pub suffix_ids: Vec<u32>,
}

pub struct Encoder {
    options: EncoderOptions,
    text: Text,
    initial: Trie,
    continuing: Trie,
    specials: Option<AhoCorasick>,
    caches: Mutex<Vec<Cache>>,
}

/// Bytes a cache may hold before it is emptied; a thread has one cache.
const CACHE_LIMIT: usize = 64 << 20;

/// The longest segment that is cached, in bytes.
const CACHED: usize = 1024;

/// The ids of a segment: up to three in place, more in the cache's list.
#[derive(Clone, Copy, Default)]
struct Ids {
    /// The ids; or, of more than three, where they begin in the list.
    ids: [u32; 3],
    count: u32,
}

#[derive(Default)]
struct Cache {
    segments: SegmentMap<Ids>,
    list: Vec<u32>,
    word: String,
    ids: Vec<u32>,
}

/// Rows of ids, as Arrow's list arrays hold them.
#[derive(Default)]
pub struct IdRows {
    pub values: Vec<u32>,
    /// The end of each row in `values`.
    pub ends: Vec<usize>,
}

/// One token of a row: its id and the characters of the row that it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub id: u32,
    pub start: usize,
    pub end: usize,
}

impl Encoder {
    /// Tokens and their ids; fails if two special tokens cannot be searched for.
    pub fn new<'a>(
        vocabulary: impl Iterator<Item = (&'a str, u32)> + Clone,
        options: EncoderOptions,
    ) -> Result<Self, String> {
        let prefix = options.continuing_prefix.as_str();
        let continuing =
            vocabulary.clone().filter_map(|(t, id)| t.strip_prefix(prefix).map(|t| (t, id)));
        let patterns: Vec<_> = options.special_tokens.iter().map(|(t, _)| t.as_str()).collect();
        let specials = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns)
            .map_err(|error| format!("special tokens: {error}"))?;
        Ok(Encoder {
            text: Text::new(options.text),
            initial: Trie::new(vocabulary),
            continuing: Trie::new(continuing),
            specials: (!patterns.is_empty()).then_some(specials),
            caches: Mutex::default(),
            options,
        })
    }

    pub fn unk_id(&self) -> u32 {
        self.options.unk_id
    }

    /// Encodes rows, in order; None is an empty row, and invalid UTF-8 is repaired.
    pub fn encode<'a>(
        &self,
        rows: impl Iterator<Item = Option<&'a [u8]>>,
        add_special_tokens: bool,
    ) -> IdRows {
        let mut cache = self.caches.lock().map_or_else(|_| None, |mut c| c.pop());
        let mut writer = Writer { cache: cache.take().unwrap_or_default(), out: Vec::new(), at: 0 };
        let mut ends = Vec::with_capacity(rows.size_hint().0);
        for row in rows {
            if let Some(row) = row {
                self.encode_row(&utf8::repair(row).0, add_special_tokens, &mut writer);
            }
            ends.push(writer.at);
        }
        let Writer { cache, mut out, at } = writer;
        if let Ok(mut caches) = self.caches.lock() {
            caches.push(cache);
        }
        out.truncate(at);
        IdRows { values: out, ends }
    }

    fn encode_row(&self, row: &str, add_special_tokens: bool, writer: &mut Writer) {
        if add_special_tokens {
            writer.write(&self.options.prefix_ids);
        }
        self.each_stretch(row, |stretch, special| match special {
            Some(id) => writer.write(&[id]),
            None => self.text.segments(stretch.raw, |segment| writer.segment(self, segment.raw)),
        });
        if add_special_tokens {
            writer.write(&self.options.suffix_ids);
        }
        writer.bound_cache();
    }

    /// Cuts a row at the special tokens in it: calls `each` with every stretch between two of
    /// them, and with every one of them and its id.
    #[inline]
    fn each_stretch<'a>(&self, row: &'a str, mut each: impl FnMut(Segment<'a>, Option<u32>)) {
        let mut start = 0;
        if let Some(specials) = &self.specials {
            for found in specials.find_iter(row) {
                each(Segment { raw: &row[start..found.start()], start }, None);
                let id = self.options.special_tokens[found.pattern().as_usize()].1;
                each(Segment { raw: &row[found.range()], start: found.start() }, Some(id));
                start = found.end();
            }
        }
        each(Segment { raw: &row[start..], start }, None);
    }

    /// Calls `each` with every token of a word: its id and its bytes in the word.
    fn each_token(&self, word: &str, mut each: impl FnMut(u32, usize, usize)) {
        let unknown = self.options.unk_id;
        let covered = word.chars().nth(self.options.max_word_length).is_none()
            && (self.options.unk_scope == UnkScope::Character || self.covers(word));
        if !covered {
            return each(unknown, 0, word.len());
        }
        let mut at = 0;
        while at < word.len() {
            let (id, length) = self
                .longest(word, at)
                .unwrap_or_else(|| (unknown, word[at..].chars().next().map_or(1, char::len_utf8)));
            each(id, at, at + length);
            at += length;
        }
    }

    /// Whether longest match reaches the end of the word.
    fn covers(&self, word: &str) -> bool {
        let mut at = 0;
        while at < word.len() {
            let Some((_, length)) = self.longest(word, at) else { return false };
            at += length;
        }
        true
    }

    fn longest(&self, word: &str, at: usize) -> Option<(u32, usize)> {
        let trie = if at == 0 { &self.initial } else { &self.continuing };
        trie.longest(&word.as_bytes()[at..])
    }

    /// The tokens of one row with the characters of the row that they stand for. Tokens added
    /// around the row stand for none: (0, 0).
    pub fn encode_with_offsets(&self, row: &str, add_special_tokens: bool) -> Vec<Piece> {
        let added = |id: &u32| Piece { id: *id, start: 0, end: 0 };
        let mut pieces = Vec::new();
        if add_special_tokens {
            pieces.extend(self.options.prefix_ids.iter().map(added));
        }
        let mut position = Position { text: row, byte: 0, character: 0 };
        self.each_stretch(row, |stretch, special| match special {
            Some(id) => {
                let start = position.move_to(stretch.start);
                let end = position.move_to(stretch.start + stretch.raw.len());
                pieces.push(Piece { id, start, end });
            }
            None => self.text.segments(stretch.raw, |segment| {
                let first = position.move_to(stretch.start + segment.start);
                self.push_pieces(segment.raw, first, &mut pieces);
            }),
        });
        if add_special_tokens {
            pieces.extend(self.options.suffix_ids.iter().map(added));
        }
        pieces
    }

    /// The pieces of a segment whose first character is the row's character `first`.
    fn push_pieces(&self, raw: &str, first: usize, pieces: &mut Vec<Piece>) {
        let mut word = String::new();
        let mut origin = Vec::new(); // of each byte of the word: its character's index in the row
        self.text.each_normalized(raw, |c, index| {
            word.push(c);
            origin.resize(word.len(), first + index);
        });
        if word.is_empty() {
            return;
        }
        self.each_token(&word, |id, start, end| {
            pieces.push(Piece { id, start: origin[start], end: origin[end - 1] + 1 });
        });
    }
}

/// A place in a text, in bytes and in characters. It moves forward only.
struct Position<'a> {
    text: &'a str,
    byte: usize,
    character: usize,
}

impl Position<'_> {
    /// Moves to a byte offset; returns the number of characters before it.
    fn move_to(&mut self, byte: usize) -> usize {
        self.character += self.text[self.byte..byte].chars().count();
        self.byte = byte;
        self.character
    }
}

/// Ids written one after the other; `out` is longer than what is written of it.
struct Writer {
    cache: Cache,
    out: Vec<u32>,
    at: usize,
}

impl Writer {
    /// Makes room for `more` ids, and three.
    #[inline]
    fn reserve(&mut self, more: usize) {
        let needed = self.at + more + 3;
        if self.out.len() < needed {
            self.out.resize(needed.max(self.out.len() * 3 / 2), 0);
        }
    }

    #[inline]
    fn write(&mut self, ids: &[u32]) {
        self.reserve(ids.len());
        self.out[self.at..self.at + ids.len()].copy_from_slice(ids);
        self.at += ids.len();
    }

    #[inline]
    fn segment(&mut self, encoder: &Encoder, raw: &str) {
        let Cache { segments, list, word, ids } = &mut self.cache;
        if raw.len() > CACHED {
            first_seen(encoder, raw, list, word, ids);
            let ids = std::mem::take(ids);
            return self.write(&ids);
        }
        let found = *segments.entry(raw, || first_seen(encoder, raw, list, word, ids));
        let count = found.count as usize;
        self.reserve(count);
        if count <= 3 {
            // All three are copied, wanted or not: cheaper than a copy of variable length.
            self.out[self.at..self.at + 3].copy_from_slice(&found.ids);
        } else {
            let start = found.ids[0] as usize;
            let ids = &self.cache.list[start..start + count];
            self.out[self.at..self.at + count].copy_from_slice(ids);
        }
        self.at += count;
    }

    /// Empties a cache that has outgrown its bound.
    fn bound_cache(&mut self) {
        if self.cache.list.len() * 4 + self.cache.segments.memory() > CACHE_LIMIT {
            self.cache = Cache::default();
        }
    }
}

#[cold]
fn first_seen(
    encoder: &Encoder,
    raw: &str,
    list: &mut Vec<u32>,
    word: &mut String,
    ids: &mut Vec<u32>,
) -> Ids {
    encoder.text.normalize(raw, word);
    ids.clear();
    if !word.is_empty() {
        encoder.each_token(word, |id, _, _| ids.push(id));
    }
    let mut found = Ids { count: ids.len() as u32, ..Ids::default() };
    if ids.len() <= 3 {
        found.ids[..ids.len()].copy_from_slice(ids);
    } else {
        found.ids[0] = list.len() as u32;
        list.extend_from_slice(ids);
    }
    found
}
