//! Compiled maps of characters of any bytes, applied to a text: a map is refused, or gives segments that
//! cover the text and can be normalized.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use wordpiece_core::text::metaspace::{Metaspace, Prepend, Way};
use wordpiece_core::text::rules::TextRules;
use wordpiece_core::text::segments::Begin;

const WAYS: [Way; 5] = [
    Way::SentencePiece { collapse: true },
    Way::SentencePiece { collapse: false },
    Way::Spaces,
    Way::Replaced,
    Way::Words,
];
const PREPEND: [Prepend; 3] = [Prepend::Always, Prepend::First, Prepend::Never];

// Two bytes of options, the length of the text, the text, and the map.
fuzz_target!(|data: &[u8]| {
    let [way, prepend, length, rest @ ..] = data else { return };
    let (text, map) = rest.split_at((*length as usize).min(rest.len()));
    let text = String::from_utf8_lossy(text);
    let way = WAYS[*way as usize % WAYS.len()];
    let prepend = PREPEND[*prepend as usize % PREPEND.len()];
    let Ok(rules) = Metaspace::new(map, way, prepend) else { return };
    let rules = TextRules::Metaspace(Arc::new(rules));
    let text = &text[..rules.section_end(&text)];
    for begin in [Begin::Text, Begin::Section] {
        let (mut word, mut end) = (String::new(), 0);
        rules.segments(text, begin, |segment| {
            assert!(segment.start >= end);
            let added =
                segment.raw.chars().next().filter(|_| segment.added).map_or(0, char::len_utf8);
            end = segment.start + segment.raw.len() - added;
            let characters = segment.raw.chars().count();
            let mut last = 0;
            let mut written = String::new();
            rules.each_normalized(segment.raw, |c, index| {
                assert!(index < characters && index >= last, "{index} of {characters}");
                last = index;
                written.push(c);
            });
            rules.normalize(segment.raw, &mut word);
            assert_eq!(word, written);
            assert_eq!(rules.words(&word).map(str::len).sum::<usize>(), word.len());
        });
    }
});
