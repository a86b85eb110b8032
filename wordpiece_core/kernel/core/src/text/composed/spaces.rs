//! Texts that are split before their spaces, so that each segment is normalized by itself: nearly all of them have
//! been met before.
//!
//! It applies to the rules of SentencePiece, and to the equivalent parts of `tokenizers`, by which a word begins at
//! each space. A text is split before characters that become a space in any context. Other texts, which might give
//! different words, are normalized as a whole.

use foldhash::HashSet;
use memchr::memmem;
use unicode_segmentation::UnicodeSegmentation;

use super::Composed;
use super::aligned::AlignedText;
use super::matches::{Behavior, Matcher, Splitting};
use super::normalizer::Normalizer;
use super::pre_tokenizer::{Pieces, PreTokenizer, Prepend};
use crate::text::blocks::{Lanes, each_in_class};
use crate::text::charsmap::CharsMap;
use crate::text::marks::{SPACE_MARK, is_space_mark};
use crate::text::segments::SegmentSink;
use crate::text::unicode::{is_whitespace, only_char};

/// Splits texts before they are normalized.
#[derive(Debug)]
pub(crate) struct SpaceSplitter {
    /// The characters that text is split before, in order: each becomes a space.
    separators: Vec<char>,
    /// The characters that become nothing, in order.
    dropped: Vec<char>,
    /// The first bytes of separators except spaces.
    leads: Vec<u8>,
    way: Way,
    prepend: Prepend,
    /// True if the space of a word may come from earlier text.
    moves_spaces: bool,
}

/// The application of the map of characters, and the treatment of spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// As `sentencepiece` does: the longest string first. `collapse`: several spaces are one.
    SentencePiece { collapse: bool },
    /// As `tokenizers` does it by `Precompiled` and `Metaspace`. Every space is a mark.
    Spaces,
    /// Like `Spaces`, with `Strip` (of the right end) and `Replace` (of two spaces or more) after `Precompiled`.
    Replaced,
    /// Like `Spaces`, with `WhitespaceSplit` before `Metaspace`.
    Words,
}

impl Way {
    /// Return true if several spaces become one.
    fn merges(self) -> bool {
        !matches!(self, Way::Spaces | Way::SentencePiece { collapse: false })
    }

    /// Return true if spaces and marks are removed at the ends of a text.
    fn collapses(self) -> bool {
        self == Way::SentencePiece { collapse: true }
    }

    /// Return true if characters are looked up without regard to graphemes.
    fn is_plain(self) -> bool {
        matches!(self, Way::SentencePiece { .. })
    }

    /// Return the way of rules, with the map; None if their texts cannot be split before they are normalized.
    fn of_rules(rules: &Composed) -> Option<(Way, Prepend, Option<&CharsMap>)> {
        let mut parts = Vec::new();
        rules.normalizer.iter().for_each(|normalizer| normalizer.add_parts(&mut parts));
        let (splits, others) = rules.steps.split_last()?;
        if !begins_at_marks(splits) {
            return None;
        }
        let (prepend, is_split) = match others {
            [] => {
                let [Normalizer::SentencePiece(rules)] = parts[..] else { return None };
                let (map, adds_first, collapse) = rules.map_of_words()?;
                let prepend = if adds_first { Prepend::Always } else { Prepend::Never };
                return Some((Way::SentencePiece { collapse }, prepend, Some(map)));
            }
            [PreTokenizer::Spaces { mark: SPACE_MARK, prepend }] => (*prepend, false),
            [
                PreTokenizer::Split(Splitting {
                    matcher: Matcher::WhiteSpace,
                    behavior: Behavior::Removed,
                    invert: false,
                }),
                PreTokenizer::Spaces { mark: SPACE_MARK, prepend: Prepend::Always },
            ] => (Prepend::Always, true),
            _ => return None,
        };
        let (map, rest) = match &parts[..] {
            [Normalizer::Precompiled(map), rest @ ..] => (Some(map), rest),
            rest => (None, rest),
        };
        let way = match rest {
            [] if is_split => Way::Words,
            [] => Way::Spaces,
            [Normalizer::Strip { left: false, right: true }, other]
                if !is_split && merges_spaces(other) =>
            {
                Way::Replaced
            }
            _ => return None,
        };
        Some((way, prepend, map))
    }
}

/// Return true if a word begins at each mark.
fn begins_at_marks(step: &PreTokenizer) -> bool {
    let PreTokenizer::Split(Splitting { matcher, behavior, invert }) = step else { return false };
    let is_mark = match matcher {
        Matcher::Character(c) => *c == SPACE_MARK,
        Matcher::Text(string) => is_space_mark(string),
        _ => false,
    };
    is_mark && *behavior == Behavior::MergedWithNext && !invert
}

/// Return true if a normalizer replaces several spaces by one space or mark.
fn merges_spaces(normalizer: &Normalizer) -> bool {
    match normalizer {
        Normalizer::Replace(Matcher::Spaces, content) => content == " " || is_space_mark(content),
        _ => false,
    }
}

impl SpaceSplitter {
    /// Return the splitter of rules; None if their texts cannot be split before they are normalized.
    pub(crate) fn of_rules(rules: &Composed) -> Option<Self> {
        let (way, prepend, map) = Way::of_rules(rules)?;
        let is_space = |c: char| c == ' ' || way == Way::Words && is_whitespace(c);
        let (mut spaces, mut dropped) = (Vec::new(), Vec::new());
        let (mut mapped, mut joined): (HashSet<char>, HashSet<char>) = Default::default();
        let (mut is_known, mut moves_spaces) = (true, false);
        map.into_iter().for_each(|map| {
            map.for_each(|string, result| {
                let becomes = only_char(result);
                match only_char(string) {
                    Some(c) => {
                        mapped.insert(c);
                        spaces.extend(becomes.is_some_and(is_space).then_some(c));
                        dropped.extend(result.is_empty().then_some(c));
                    }
                    None => {
                        joined.extend(string.chars());
                        is_known &= !result.is_empty();
                    }
                }
                is_known &= !(way.collapses() && result.contains(SPACE_MARK));
                moves_spaces |= way.collapses() && result.ends_with(' ') && becomes != Some(' ');
            });
        });
        spaces.extend(('\0'..='\u{3000}').filter(|&c| is_space(c) && !mapped.contains(&c)));
        spaces.retain(|c| !joined.contains(c) && (way.is_plain() || breaks('a', *c)));
        spaces.sort_unstable();
        let first_byte = |c: &char| c.encode_utf8(&mut [0; 4]).as_bytes()[0];
        let mut leads: Vec<u8> = spaces.iter().filter(|c| **c != ' ').map(first_byte).collect();
        leads.dedup(); // they are in order
        let splitter =
            SpaceSplitter { separators: spaces, dropped, leads, way, prepend, moves_spaces };
        (is_known && splitter.is_separator(' ')).then_some(splitter)
    }

    /// Return the offset of the first segment of a part of a text; None if the part must be normalized as a whole.
    ///
    /// # Arguments
    ///
    /// * `rules` - The rules of the splitter.
    /// * `text` - The part.
    /// * `is_first` - Whether it is at the beginning of the text.
    /// * `aligned` - Whether it matters where the bytes of pieces come from.
    pub(crate) fn start(
        &self,
        rules: &Composed,
        text: &str,
        is_first: bool,
        aligned: bool,
    ) -> Option<usize> {
        let collapses = self.way.collapses();
        // At the ends of a text, and of a segment, marks are dropped as spaces are.
        if collapses && has_mark(text) || aligned && self.moves_spaces {
            return None;
        }
        let is_separator = |c| self.is_separator(c);
        let start =
            if collapses { text.len() - text.trim_start_matches(is_separator).len() } else { 0 };
        let Some(first) = text[start..].chars().next() else { return Some(start) };
        let is_told = match (self.way, self.prepend) {
            _ if self.is_dropped(first) => false,
            (Way::SentencePiece { collapse: false }, Prepend::Always) => !is_separator(first),
            (_, Prepend::First) => is_first || is_separator(first),
            _ => true,
        };
        let is_told = is_told && (self.way != Way::Replaced || self.ends_with_word(rules, text));
        is_told.then_some(start)
    }

    /// Return true if only spaces are removed at the end of a text.
    fn ends_with_word(&self, rules: &Composed, text: &str) -> bool {
        let normalizer = rules.normalizer.as_ref();
        let content = text.trim_end_matches(|c| self.is_of_run(c));
        let mut characters = content.char_indices().rev();
        if let (Some((at, c)), before) = (characters.next(), characters.next())
            && !is_whitespace(c)
            && normalizer.is_none_or(|normalizer| normalizer.leaves(&content[at..]))
            && before.is_none_or(|(_, before)| breaks(before, c))
        {
            return true; // as nearly always
        }
        let mut places = content.char_indices().rev();
        let start = places.find(|&(at, _)| self.splits_at(content, at)).map_or(0, |(at, _)| at);
        let mut last = AlignedText::new(&content[start..], 0, false);
        normalizer.into_iter().for_each(|normalizer| normalizer.normalize_segment(&mut last, true));
        content.is_empty() || last.text().chars().next_back().is_some_and(|c| !is_whitespace(c))
    }

    /// Pass the segments of a part of a text to `sink`. `bytes`: the bytes of the part, which may continue after it;
    /// `start`: from [`SpaceSplitter::start`].
    #[inline(always)]
    pub(crate) fn split(
        &self,
        text: &str,
        bytes: &[u8],
        mut start: usize,
        sink: &mut impl SegmentSink,
    ) {
        let is_lead = |lanes: Lanes| {
            self.leads.iter().fold(lanes.is(b' '), |found, &lead| found | lanes.is(lead))
        };
        // Spaces in a row, and what is dropped between them, stay together if they are as one.
        let (mut is_run, mut looked_at) = (self.way.merges(), start);
        each_in_class(bytes, start + 1, text.len(), is_lead, |at| {
            if !self.splits_at(text, at) {
                return;
            }
            is_run = is_run && text[looked_at..at].chars().all(|c| self.is_of_run(c));
            looked_at = at;
            if !is_run {
                sink.segment(bytes, start, at);
                (start, is_run) = (at, self.way.merges());
            }
        });
        if start < text.len() {
            sink.segment(bytes, start, text.len());
        }
    }

    /// Return the pieces of a segment. `aligned`: true to keep the origins of their bytes in the segment.
    pub(crate) fn pieces(&self, rules: &Composed, segment: &str, aligned: bool) -> Pieces {
        let mut text = AlignedText::new(segment, 0, aligned);
        if let Some(normalizer) = &rules.normalizer {
            let continues = segment.starts_with(|c| self.is_separator(c));
            normalizer.normalize_segment(&mut text, continues);
        }
        rules.pieces(text, true)
    }

    #[inline]
    fn is_of_run(&self, c: char) -> bool {
        c == ' ' || !c.is_ascii_graphic() && (self.is_separator(c) || self.is_dropped(c))
    }

    /// Return true if text is split before a character.
    #[inline]
    fn is_separator(&self, c: char) -> bool {
        c == ' ' || self.separators.binary_search(&c).is_ok()
    }

    fn is_dropped(&self, c: char) -> bool {
        self.dropped.binary_search(&c).is_ok()
    }

    /// Return true if text is split before the character at `at`.
    #[inline]
    fn splits_at(&self, text: &str, at: usize) -> bool {
        let bytes = text.as_bytes();
        if bytes[at] == b' ' && at > 0 && bytes[at - 1].is_ascii() {
            return true;
        }
        let Some(c) = text[at..].chars().next() else { return false };
        if !self.is_separator(c) {
            return false;
        }
        self.way.is_plain() || text[..at].chars().next_back().is_none_or(|before| breaks(before, c))
    }
}

/// Return true if a text has a mark. All bytes of the mark are searched together, because its first byte is
/// frequent in some languages.
fn has_mark(text: &str) -> bool {
    memmem::find(text.as_bytes(), SPACE_MARK.encode_utf8(&mut [0; 4]).as_bytes()).is_some()
}

/// Return true if a grapheme ends between two characters. Valid for any text around them if the second character
/// is a kind of space.
fn breaks(before: char, c: char) -> bool {
    if c.is_ascii() && is_no_prefix(before) {
        return (before, c) != ('\r', '\n');
    }
    let mut bytes = [0; 8];
    let middle = before.encode_utf8(&mut bytes).len();
    let end = middle + c.encode_utf8(&mut bytes[middle..]).len();
    std::str::from_utf8(&bytes[..end]).is_ok_and(|pair| pair.graphemes(true).count() == 2)
}

/// Return true if a character is known, without a table, to form no grapheme with an ASCII character after it:
/// characters with `Prepend` of Unicode's graphemes have other codes.
#[inline(always)]
fn is_no_prefix(c: char) -> bool {
    c < '\u{600}' || ('\u{1000}'..'\u{11000}').contains(&c)
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
