use std::collections::BTreeMap;

use super::*;
use crate::count::segment_counts::SegmentCounts;
use wordpiece_testing::Random;

fn options(bits: u32) -> TextOptions {
    TextOptions {
        clean_text: bits & 1 == 0,
        handle_chinese_chars: bits & 2 == 0,
        strip_accents: bits & 4 == 0,
        lowercase: bits & 8 == 0,
        split_punctuation: bits & 16 == 0,
    }
}

fn words(text: &BertRules, raw: &str) -> Vec<String> {
    let mut words = Vec::new();
    text.segments(raw, |segment| {
        let mut word = String::new();
        text.normalize(segment.raw, &mut word);
        words.extend((!word.is_empty()).then_some(word));
    });
    words
}

#[test]
fn chunks_are_what_is_between_white_space_that_bert_cuts_at() {
    let text = BertRules::chunks();
    let raw = "Héllo,\u{b}a\u{c}b\u{85}c\t\u{0}d\u{a0}日本!\n\u{3000} e\u{301}\u{2028}f";
    let expected = ["Héllo,\u{b}a\u{c}b\u{85}c", "\u{0}d", "日本!", "e\u{301}", "f"];
    assert_eq!(words(&text, raw), expected);
    for bits in 0..32 {
        let rules = BertRules::new(options(bits));
        let chunks = words(&text, raw);
        let of_chunks: Vec<_> = chunks.iter().flat_map(|chunk| words(&rules, chunk)).collect();
        assert_eq!(words(&rules, raw), of_chunks);
    }
}

#[test]
fn bert_words() {
    let text = BertRules::new(options(0));
    let raw = "Héllo, wörld!  don't\u{200b}stop 日本語x\u{0301}y the_longest_word_of_all1234567890";
    let expected =
        "hello , world ! don ' tstop 日 本 語 xy the _ longest _ word _ of _ all1234567890";
    assert_eq!(words(&text, raw), expected.split(' ').collect::<Vec<_>>());
}

/// Text is split before normalization, so no character may become both a separator and a letter.
#[test]
fn no_character_is_both_a_cut_and_part_of_a_word() {
    for bits in 0..32 {
        for c in '\0'..=char::MAX {
            let fates = fates(c, &options(bits));
            let separators = fates.iter().filter(|f| matches!(f, Fate::Space | Fate::Alone(_)));
            assert!(separators.count() == 0 || fates.len() == 1, "{c:?} {fates:?}");
        }
    }
}

#[test]
fn letters_of_blocks_never_cut() {
    let letters = ('\u{80}'..='\u{7FF}').filter(|c| {
        let mut bytes = [0; 2];
        c.encode_utf8(&mut bytes);
        is_letter_lead(bytes[0])
    });
    let letters: String = letters.collect();
    assert_eq!(letters.chars().count(), 15 * 64);
    for bits in 0..32 {
        let text = BertRules::new(options(bits));
        assert_eq!(text.segment_end(&letters, 0), letters.len());
    }
    let bytes = letters.as_bytes();
    assert_eq!(letters_at(bytes, 0, bytes.len()), u64::MAX);
    // A block ends after its own bytes, and at an unknown character.
    assert_eq!(letters_at("aé\u{3000}".as_bytes(), 0, 6), 0b000110);
    assert_eq!(letters_at("éé".as_bytes(), 0, 2), 0b11);
}

#[test]
fn classes_are_those_of_the_bytes() {
    for b in 0..=255u8 {
        let classes = AsciiMasks::at(&[b; BLOCK], 0, BLOCK);
        let all = |is_in: bool| if is_in { u64::MAX } else { 0 };
        assert_eq!(classes.alphanumeric, all(b.is_ascii_alphanumeric()), "{b}");
        assert_eq!(classes.other, all(b.is_ascii_punctuation()), "{b}");
        assert_eq!(classes.space, all(matches!(b, b' ' | b'\t' | b'\n' | b'\r')), "{b}");
    }
    let bytes: Vec<u8> = b"a.\n\0".iter().copied().cycle().take(200).collect();
    for length in 1..bytes.len() {
        for at in (0..length).rev().take(80) {
            let classes = AsciiMasks::at(&bytes[..length], at, length);
            for i in 0..BLOCK {
                let b = bytes[..length].get(at + i).copied().unwrap_or(b' ');
                let bits = [classes.alphanumeric, classes.other, classes.space];
                let found = bits.map(|bits| bits >> i & 1 == 1);
                assert_eq!(found, [b == b'a', b == b'.', b == b' ' || b == b'\n']);
            }
        }
    }
}

/// The segments by their definition, character by character.
fn plain_segments(text: &BertRules, raw: &str) -> Vec<(usize, usize)> {
    let (mut segments, mut start) = (Vec::new(), None);
    for (at, c) in raw.char_indices() {
        let entry = text.entry(c);
        if entry.separates() {
            segments.extend(start.take().map(|start| (start, at)));
        } else {
            start = start.or(Some(at));
        }
        if entry.kind() == ALONE {
            segments.push((at, at + c.len_utf8()));
        }
    }
    segments.extend(start.map(|start| (start, raw.len())));
    segments
}

#[test]
fn segments_are_cut_at_every_place_in_a_block() {
    let pieces = [
        "a", "bcdefgh", " ", ".", "\t", "\r\n", "\0", "\u{b}", "é", "日", "\u{3000}", "\u{301}",
        "ん", "ー", "゠", "・", "だ", "ボ", "、", "，", "＋", "龥", "㐀", "\u{4DC0}", "가", "я",
        "’",
    ];
    let long = "x".repeat(70);
    let mut random = Random::new(1);
    for round in 0..if cfg!(debug_assertions) { 1_000 } else { 20_000 } {
        let text = BertRules::new(options(random.below(32) as u32));
        for _ in 0..if round < 40 { 40 } else { 1 } {
            let kinds = 1 + random.below(pieces.len());
            let mut raw: String =
                (0..random.below(120)).map(|_| pieces[random.below(kinds)]).collect();
            if random.below(8) == 0 {
                raw.push_str(&long);
            }
            let mut found = Vec::new();
            text.segments(&raw, |s| {
                found.push((s.start, s.start + s.raw.len()));
            });
            assert_eq!(found, plain_segments(&text, &raw), "{raw:?}");
            let behind = ["", "x", "é. ", "日本", &long][random.below(5)];
            check_bytes_behind(&text, &raw, behind);
        }
    }
}

#[test]
fn every_character_is_cut_as_it_is_by_itself() {
    for bits in (0..32).step_by(if cfg!(debug_assertions) { 5 } else { 1 }) {
        let text = BertRules::new(options(bits));
        let all: String = ('\0'..='\u{1F000}').collect();
        check_bytes_behind(&text, &all, "");
        let between: String = ('\0'..='\u{1F000}').flat_map(|c| ['a', c]).collect();
        check_bytes_behind(&text, &between, "b");
    }
}

fn check_bytes_behind(text: &BertRules, raw: &str, behind: &str) {
    let mut found = Vec::new();
    let each = |s: Segment<'_>| found.push((s.start, s.start + s.raw.len()));
    text.segments_into(raw, (raw.to_string() + behind).as_bytes(), &mut Each(each));
    assert_eq!(found, plain_segments(text, raw), "{raw:?}");
    let mut counts = SegmentCounts::default();
    text.segments_into(raw, (raw.to_string() + behind).as_bytes(), &mut counts);
    // Characters that stand alone are counted as their words.
    let mut words = BTreeMap::<String, u64>::new();
    for (start, end) in plain_segments(text, raw) {
        let entry = text.entry(first_char(&raw[start..]));
        let segment = raw[start..end].to_string();
        let word = if entry.kind() == ALONE { entry.char().to_string() } else { segment };
        *words.entry(word).or_default() += 1;
    }
    let mut counted = BTreeMap::<String, u64>::new();
    counts.for_each(|word, count| *counted.entry(word.to_string()).or_default() += count);
    assert!(counted == words, "{raw:?}");
}
