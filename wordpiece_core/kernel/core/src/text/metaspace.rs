//! SentencePiece's rules of text: characters are normalized by a compiled map, spaces become `▁`, and
//! a word begins at each of them.
//!
//! Raw text is split before characters that are spaces to the map, whatever is around them. So every
//! segment is normalized by itself; nearly always it is one word, with the space before it.

use foldhash::HashSet;
use serde::Deserialize;
use unicode_segmentation::UnicodeSegmentation;

use crate::base::error::{Error, Result};
use crate::base::memory;
use crate::text::blocks::{Lanes, each_in_class};
use crate::text::charsmap::CharsMap;
use crate::text::marks::SPACE_MARK;
use crate::text::segments::{Begin, Each, Segment, SegmentSink};
use crate::text::unicode::is_whitespace;

/// Where a mark is put that stands for no space of the text. The names are those of `prepend_scheme` of
/// Hugging Face tokenizers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prepend {
    /// Before each section, or each piece, of a text.
    Always,
    /// Before the first one.
    First,
    /// Nowhere.
    Never,
}

impl Prepend {
    /// Whether one is put before the first of them, or before another.
    pub fn is_wanted(self, is_first: bool) -> bool {
        self == Prepend::Always || self == Prepend::First && is_first
    }
}

/// How the map is applied, and what becomes of spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As `sentencepiece` does: the longest string first.
    SentencePiece {
        /// Whether several spaces are one, and there are none at the ends of a text
        /// (`remove_extra_whitespaces`).
        collapse: bool,
    },
    /// As `tokenizers` does it by `Precompiled` and `Metaspace`. Every space is a mark.
    Spaces,
    /// The same, with `Strip` (of the right end) and `Replace` (of two spaces or more) after
    /// `Precompiled`. Several spaces are one mark.
    Replaced,
    /// The same, with `WhitespaceSplit` before `Metaspace`: a mark is put before every word that has
    /// none. That is [`Prepend::Always`].
    Words,
}

/// SentencePiece's rules of text. They can be shared by threads.
///
/// # Examples
///
/// ```
/// use wordpiece_core::text::metaspace::{Metaspace, Prepend, Way};
/// use wordpiece_core::text::segments::Begin;
///
/// let way = Way::SentencePiece { collapse: true };
/// let rules = Metaspace::new(&[], way, Prepend::Always).unwrap();
/// let (mut word, mut words) = (String::new(), Vec::new());
/// rules.segments("a  b ", Begin::Text, |segment| {
///     word.clear();
///     rules.each_normalized(segment.raw, |c, _| word.push(c));
///     words.push(word.clone());
/// });
/// assert_eq!(words, ["▁a", "▁b", ""]);
/// ```
#[derive(Debug)]
pub struct Metaspace {
    map: CharsMap,
    way: Way,
    prepend: Prepend,
    /// The characters that text is split before.
    separators: Vec<char>,
    /// The bytes that those begin with that are no spaces.
    leads: Vec<u8>,
    /// The one that is put before a text: no grapheme goes on behind it, if there is one of that kind.
    added: char,
    /// Whether normalized text may hold marks that were no spaces.
    may_mark: bool,
    /// Whether the map itself makes marks.
    makes_marks: bool,
}

/// What a map of characters does.
#[derive(Default)]
struct MapTraits {
    /// The characters that it maps by themselves, in order, and whether each becomes a space.
    singles: Vec<(char, bool)>,
    /// The characters of the longer strings that it maps.
    joined: HashSet<char>,
    /// Whether it makes several spaces in a row.
    several: bool,
    makes_marks: bool,
    /// Whether it makes a mark at the end of several characters.
    ends_marked: bool,
}

impl MapTraits {
    fn of(map: &CharsMap, is_space: impl Fn(char) -> bool) -> Self {
        let mut traits = MapTraits::default();
        map.for_each(|string, result| {
            let mut characters = string.chars();
            match (characters.next(), characters.next()) {
                (Some(c), None) => traits.singles.push((c, only(result).is_some_and(&is_space))),
                _ => traits.joined.extend(string.chars()),
            }
            traits.several |= result.contains("  ");
            traits.makes_marks |= result.contains(SPACE_MARK);
            traits.ends_marked |= result.ends_with(SPACE_MARK) && only(result).is_none();
        });
        traits
    }
}

impl Metaspace {
    /// Makes the rules of a compiled map of characters; an empty one changes nothing.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if the map is damaged, if it changes the space or joins it with other
    /// characters, or if one of its results has several spaces in a row where those are one; and
    /// [`Error::Option`] for [`Way::Words`] with marks before some words only.
    pub fn new(charsmap: &[u8], way: Way, prepend: Prepend) -> Result<Self> {
        if way == Way::Words && prepend != Prepend::Always {
            return Err(Error::option("prepend: words of WhitespaceSplit have a ▁ always"));
        }
        let map = CharsMap::new(charsmap)?;
        let is_space = |c: char| c == ' ' || way == Way::Words && is_whitespace(c);
        let mut separators: Vec<char> = ('\0'..='\u{3000}').filter(|&c| is_space(c)).collect();
        let MapTraits { singles, joined, several, makes_marks, ends_marked } =
            MapTraits::of(&map, is_space);
        let mapped = |c: char| singles.binary_search_by_key(&c, |&(c, _)| c).is_ok(); // in order
        separators.retain(|&c| !mapped(c));
        separators.extend(singles.iter().filter(|(_, is_space)| *is_space).map(|&(c, _)| c));
        separators.retain(|c| !joined.contains(c) && (way.is_plain() || breaks('a', *c)));
        separators.sort_unstable();
        separators.dedup();
        if !separators.contains(&' ') {
            return Err(Error::data("the map of characters changes spaces: that is not known"));
        }
        if several && way.merges() {
            return Err(Error::data("the map of characters makes several spaces at once"));
        }
        if ends_marked && way == (Way::SentencePiece { collapse: true }) {
            return Err(Error::data("the map of characters makes a character with a ▁ behind it"));
        }
        let first_byte = |c: &char| c.encode_utf8(&mut [0; 4]).as_bytes()[0];
        let mut leads: Vec<u8> = separators.iter().filter(|c| **c != ' ').map(first_byte).collect();
        leads.dedup(); // they are in order
        let ends = |c: &&char| breaks(**c, '\u{301}');
        let added =
            separators.iter().find(ends).filter(|_| !way.is_plain()).copied().unwrap_or(' ');
        let may_mark = makes_marks || !mapped(SPACE_MARK) || joined.contains(&SPACE_MARK);
        Ok(Metaspace { map, way, prepend, separators, leads, added, may_mark, makes_marks })
    }

    /// Calls `each` with every segment of a part of a text, in order (see
    /// [`TextRules::segments`](crate::text::rules::TextRules::segments)).
    #[inline(always)]
    pub fn segments(&self, text: &str, begin: Begin, each: impl FnMut(Segment<'_>)) {
        self.segments_into(text, text.as_bytes(), begin, &mut Each(each));
    }

    /// Gives every segment of a part of a text to `sink`. `bytes`: those of the part; more may be
    /// behind them.
    #[inline(always)]
    pub fn segments_into(
        &self,
        text: &str,
        bytes: &[u8],
        begin: Begin,
        sink: &mut impl SegmentSink,
    ) {
        let first = self.first(text, begin);
        if let Some(raw) = &first.raw {
            sink.added(raw);
        }
        let mut start = first.end;
        let merges = self.way.merges();
        let is_lead = |lanes: Lanes| {
            self.leads.iter().fold(lanes.is(b' '), |found, &lead| found | lanes.is(lead))
        };
        each_in_class(bytes, start + 1, text.len(), is_lead, |end| {
            if !self.splits_at(text, end) {
                return;
            }
            let is_space = || only(&text[start..end]).is_some_and(|c| self.is_separator(c));
            if !(merges && is_space()) {
                sink.segment(bytes, start, end);
            }
            start = end;
        });
        if start < text.len() {
            sink.segment(bytes, start, text.len());
        }
    }

    /// What is special at the beginning of a section.
    fn first(&self, text: &str, begin: Begin) -> First {
        let is_wanted = self.prepend.is_wanted(begin == Begin::Text);
        let end = if text.is_empty() { 0 } else { self.first_split(text) };
        let added = |end: usize| {
            let mut raw = String::from(self.added);
            memory::push_str(&mut raw, &text[..end]);
            First { raw: Some(raw), end }
        };
        match self.way {
            // A space puts a mark before the words behind it, so there must be none at the beginning.
            Way::SentencePiece { collapse: true } if !is_wanted => First::at(self.content(text)),
            Way::SentencePiece { collapse: true } if end == 0 => First::at(0),
            Way::SentencePiece { .. } if is_wanted && !text.is_empty() => added(end),
            Way::Spaces | Way::Replaced if is_wanted => match self.first_normalized(text) {
                None | Some(' ' | SPACE_MARK) => First::at(0),
                Some(_) => added(end),
            },
            _ => First::at(0),
        }
    }

    /// The first character of a normalized text.
    fn first_normalized(&self, text: &str) -> Option<char> {
        let mut first = None;
        self.steps(text, |_, _, result| {
            first = result.chars().next();
            first.is_none()
        });
        first
    }

    /// Where the first word of a text begins, without spaces before it.
    fn content(&self, text: &str) -> usize {
        let mut found = text.len();
        self.steps(text, |at, _, result| {
            let is_word = result.chars().any(|c| c != ' ');
            if is_word {
                found = at;
            }
            !is_word
        });
        found
    }

    /// Whether the last character of a text is a grapheme, as nearly always, and becomes part of a word.
    fn ends_with_word(&self, text: &str) -> bool {
        let mut characters = text.char_indices().rev();
        let Some((at, c)) = characters.next() else { return true };
        let is_alone = characters.next().is_none_or(|(_, before)| breaks(before, c));
        let result = self.map.shortest(&text[at..]).unwrap_or(&text[at..]);
        is_alone && result.chars().next_back().is_some_and(|c| !is_whitespace(c))
    }

    /// How many bytes of a section make its words: at the end of a text, `sentencepiece` removes marks
    /// as it does spaces, and `Strip` of `tokenizers` all white space.
    pub fn section_end(&self, section: &str) -> usize {
        let is_dropped: fn(char) -> bool = match self.way {
            Way::SentencePiece { collapse: true }
                if self.makes_marks || self.may_mark && section.contains(SPACE_MARK) =>
            {
                |c| c == SPACE_MARK
            }
            Way::Replaced if !self.ends_with_word(section) => |c| c != ' ' && is_whitespace(c),
            _ => return section.len(),
        };
        let (mut end, mut dropped) = (section.len(), None);
        while end > 0 {
            let start = self.last_split(&section[..end]);
            let mut is_word = false;
            let mut first_dropped = None;
            self.steps(&section[start..end], |at, _, result| {
                if result.chars().any(|c| c != ' ' && !is_dropped(c)) {
                    (is_word, first_dropped) = (true, None);
                } else if result.contains(is_dropped) {
                    first_dropped = first_dropped.or(Some(start + at));
                }
                true
            });
            dropped = first_dropped.or(dropped);
            if is_word {
                break;
            }
            end = start;
        }
        dropped.unwrap_or(section.len())
    }

    /// How many characters the offsets of a section are too small: `Precompiled` of `tokenizers` does
    /// not count those that it drops at the beginning.
    pub fn lost_characters(&self, section: &str) -> u32 {
        let mut lost = 0;
        if !self.way.is_plain() {
            self.steps(section, |at, length, result| {
                if result.is_empty() {
                    lost += section[at..at + length].chars().count() as u32;
                }
                result.is_empty()
            });
        }
        lost
    }

    /// Calls `each` with every character that a segment becomes, and the index of the character of
    /// `raw` that it comes from, counted from 0. Words begin at the marks.
    pub fn each_normalized(&self, raw: &str, mut each: impl FnMut(char, usize)) {
        match self.way {
            Way::Spaces | Way::SentencePiece { collapse: false } => {
                self.placed(raw, |c, index| each(if c == ' ' { SPACE_MARK } else { c }, index));
            }
            Way::Words => self.each_of_words(raw, each),
            Way::Replaced | Way::SentencePiece { collapse: true } => {
                // Spaces at the beginning are dropped if the text begins there.
                let has_space = raw.chars().next().is_some_and(|c| self.is_separator(c));
                let mut drops = !has_space && self.way != Way::Replaced;
                let mut space = None;
                self.placed(raw, |c, index| {
                    if c == ' ' {
                        space = Some(index).filter(|_| !drops);
                        return;
                    }
                    drops = false;
                    if let Some(index) = space.take() {
                        each(SPACE_MARK, index);
                    }
                    each(c, index);
                });
            }
        }
    }

    /// The same where a mark is put before every word.
    fn each_of_words(&self, raw: &str, mut each: impl FnMut(char, usize)) {
        let mut inside = false;
        self.placed(raw, |c, index| {
            if !inside && c != SPACE_MARK && !is_whitespace(c) {
                each(SPACE_MARK, index);
            }
            inside = !is_whitespace(c);
            if inside {
                each(c, index);
            }
        });
    }

    /// Calls `each` with every character that the map makes of a text, and the index of the character
    /// that it comes from. So does `tokenizers`: what a character becomes beside its first comes from
    /// it too; but the last such, if dropped characters follow, from the first of those.
    #[inline(always)]
    fn placed(&self, text: &str, mut each: impl FnMut(char, usize)) {
        let mut index = 0;
        let mut last: Option<(char, usize, bool)> = None;
        self.steps(text, |at, length, result| {
            let characters = text[at..at + length].chars().count();
            if let (Some((_, place, is_more @ true)), "") = (&mut last, result) {
                (*place, *is_more) = (index, false);
            }
            for (number, c) in result.chars().enumerate() {
                let place = index + number.min(characters - 1);
                if let Some((c, place, _)) = last.replace((c, place, number >= characters)) {
                    each(c, place);
                }
            }
            index += characters;
            true
        });
        if let Some((c, place, _)) = last {
            each(c, place);
        }
    }

    /// Calls `each` with every string that is looked up as a whole: where it begins, its length in
    /// bytes, and what it becomes; until it says no.
    #[inline(always)]
    fn steps(&self, text: &str, mut each: impl FnMut(usize, usize, &str) -> bool) {
        if let Way::SentencePiece { .. } = self.way {
            let mut at = 0;
            while let Some(c) = text[at..].chars().next() {
                let itself = &text[at..at + c.len_utf8()];
                let found = self.map.longest(&text[at..]);
                let (length, result) = found.unwrap_or((itself.len(), itself));
                if !each(at, length, result) {
                    return;
                }
                at += length;
            }
            return;
        }
        let is_alone = |at| is_ascii_alone(text.as_bytes(), at);
        let mut at = 0;
        while at < text.len() {
            if is_alone(at) {
                let itself = &text[at..at + 1];
                if !each(at, 1, self.map.shortest(itself).unwrap_or(itself)) {
                    return;
                }
                at += 1;
                continue;
            }
            let start = at;
            for (inner, grapheme) in text[start..].grapheme_indices(true) {
                at = start + inner;
                if inner > 0 && is_alone(at) {
                    break;
                }
                if !self.grapheme_steps(grapheme, at, &mut each) {
                    return;
                }
                at += grapheme.len();
            }
        }
    }

    /// The same for a grapheme, as `tokenizers` does it; returns what `each` says. `at`: where it begins.
    fn grapheme_steps(
        &self,
        grapheme: &str,
        at: usize,
        each: &mut impl FnMut(usize, usize, &str) -> bool,
    ) -> bool {
        // Of a short grapheme only the beginning decides what it becomes.
        let short = Some(grapheme).filter(|_| grapheme.len() < SHORT_GRAPHEME);
        if let Some(result) = short.and_then(|grapheme| self.map.shortest(grapheme)) {
            return each(at, grapheme.len(), result);
        }
        grapheme.char_indices().all(|(inner, c)| {
            let itself = &grapheme[inner..inner + c.len_utf8()];
            each(at + inner, itself.len(), self.map.shortest(itself).unwrap_or(itself))
        })
    }

    fn is_separator(&self, c: char) -> bool {
        self.separators.binary_search(&c).is_ok()
    }

    /// The first byte offset where text is split; its end if there is none.
    fn first_split(&self, text: &str) -> usize {
        let mut places = text.char_indices();
        places.find(|&(at, _)| self.splits_at(text, at)).map_or(text.len(), |(at, _)| at)
    }

    /// The last byte offset where text is split; 0 if there is none.
    fn last_split(&self, text: &str) -> usize {
        let mut places = text.char_indices().rev();
        places.find(|&(at, _)| self.splits_at(text, at)).map_or(0, |(at, _)| at)
    }

    /// Whether text is split before the character at `at`.
    #[inline]
    fn splits_at(&self, text: &str, at: usize) -> bool {
        let bytes = text.as_bytes();
        if bytes[at] == b' ' && at > 0 && bytes[at - 1].is_ascii() {
            return true; // a space is always one of them
        }
        let Some(c) = text[at..].chars().next() else { return false };
        if !self.is_separator(c) {
            return false;
        }
        self.way.is_plain() || text[..at].chars().next_back().is_none_or(|before| breaks(before, c))
    }
}

/// Below this length, in bytes, `tokenizers` looks a grapheme up as a whole.
const SHORT_GRAPHEME: usize = 6;

/// The beginning of a section: a segment with a space that is not in the text, and where the others
/// begin.
struct First {
    raw: Option<String>,
    end: usize,
}

impl First {
    fn at(end: usize) -> Self {
        First { raw: None, end }
    }
}

impl Way {
    /// Whether several spaces are as one.
    fn merges(self) -> bool {
        !matches!(self, Way::Spaces | Way::SentencePiece { collapse: false })
    }

    /// Whether characters are looked up wherever they are, not by graphemes.
    fn is_plain(self) -> bool {
        matches!(self, Way::SentencePiece { .. })
    }
}

/// Whether the byte at `at`, where a grapheme begins, is all of it: nothing in ASCII goes on behind another
/// character in ASCII, unless they are `\r\n`.
#[inline(always)]
fn is_ascii_alone(bytes: &[u8], at: usize) -> bool {
    let is_ascii = |at: usize| bytes.get(at).is_none_or(u8::is_ascii);
    at < bytes.len() && is_ascii(at) && is_ascii(at + 1) && bytes[at] != b'\r'
}

/// Whether a grapheme ends between two characters, as far as they alone decide it: they do if the second is a
/// kind of space, or if the grapheme is a short one.
fn breaks(before: char, c: char) -> bool {
    if c.is_ascii() && is_no_prefix(before) {
        return (before, c) != ('\r', '\n');
    }
    let mut bytes = [0; 8];
    let middle = before.encode_utf8(&mut bytes).len();
    let end = middle + c.encode_utf8(&mut bytes[middle..]).len();
    std::str::from_utf8(&bytes[..end]).is_ok_and(|pair| pair.graphemes(true).count() == 2)
}

/// Whether nothing in ASCII goes on behind a character, which is known for nearly all without a table:
/// those that prefix what follows (`Prepend` of Unicode's graphemes) are elsewhere.
#[inline(always)]
fn is_no_prefix(c: char) -> bool {
    c < '\u{600}' || ('\u{1000}'..'\u{11000}').contains(&c)
}

/// The character of a string of one.
fn only(string: &str) -> Option<char> {
    let mut characters = string.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// The words of normalized text: each mark begins one.
pub fn marked_words(normalized: &str) -> impl Iterator<Item = &str> {
    let starts = normalized.char_indices().filter(|&(at, c)| at == 0 || c == SPACE_MARK);
    let mut starts = starts.map(|(at, _)| at).peekable();
    std::iter::from_fn(move || {
        let start = starts.next()?;
        Some(&normalized[start..starts.peek().copied().unwrap_or(normalized.len())])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphemes_end_before_spaces_where_the_library_says() {
        for before in '\0'..=char::MAX {
            for c in [' ', '\n', '\u{3000}'] {
                let pair = String::from_iter([before, c]);
                assert_eq!(breaks(before, c), pair.graphemes(true).count() == 2, "{pair:?}");
            }
        }
    }
}
