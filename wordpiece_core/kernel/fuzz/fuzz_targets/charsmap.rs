//! Compiled maps of characters of any bytes, applied to a text: a map is refused, or the words of a text that is
//! split at spaces first are those of one that is normalized as a whole.
#![no_main]

mod metaspace;

use libfuzzer_sys::fuzz_target;
use wordpiece_core::text::{BlockSegments, Pieces, SegmentSink};

fn words(pieces: &Pieces) -> impl Iterator<Item = String> {
    pieces.ranges.iter().map(|range| pieces.text.text()[range.clone()].to_string())
}

/// The segments of a text.
#[derive(Default)]
struct Segments(Vec<String>);

impl SegmentSink for Segments {
    fn block(&mut self, _: &[u8], _: usize, _: &BlockSegments) {
        unreachable!("these rules have no blocks");
    }

    fn segment(&mut self, bytes: &[u8], start: usize, end: usize) {
        let segment = str::from_utf8(&bytes[start..end]).expect("segments are of characters");
        self.0.push(segment.to_string());
    }

    fn added(&mut self, _: &str) {
        unreachable!("nothing is put before such texts");
    }
}

// Two bytes of options, the length of the text, the text, and the map.
fuzz_target!(|data: &[u8]| {
    let [way, scheme, length, rest @ ..] = data else { return };
    let (text, map) = rest.split_at((*length as usize).min(rest.len()));
    let text = String::from_utf8_lossy(text);
    let map = data_encoding::BASE64.encode(map);
    let Some(rules) = metaspace::rules(*way, *scheme, &map) else { return };
    for (start, aligned) in [(0, false), (0, true), (1, false), (1, true)] {
        let (bytes, mut segments) = (text.as_bytes(), Segments::default());
        if rules.split_at_spaces(&text, bytes, start == 0, aligned, &mut segments) {
            let pieces = segments.0.iter().map(|s| rules.segment_pieces(s, aligned));
            let found: Vec<String> = pieces.flat_map(|p| words(&p).collect::<Vec<_>>()).collect();
            let whole = rules.pieces(rules.normalized(&text, start, aligned), start == 0);
            assert_eq!(found, words(&whole).collect::<Vec<_>>(), "{text:?}");
        }
    }
});
