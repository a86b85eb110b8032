//! Finds the pieces of a block of 64 bytes that has ASCII characters, letters of two bytes, and
//! frequent characters of three: with one bit for each byte, a few operations find the beginnings of
//! all pieces.

use super::classes::{Class, Classes};
use super::masks::{ThreeByteMasks, is_three_byte_lead};
use super::piece::contraction;
use super::{Contractions, Lead, Pattern, Tail, Words};
use crate::text::blocks::{BLOCK, Lanes, below, masks_at, three_bytes};
use crate::text::segments::BlockSegments;

/// Return true for the first byte of two-byte letters. 0xC3 also begins `×` and `÷`.
#[inline(always)]
pub(super) fn is_letter_lead(byte: u8) -> bool {
    matches!(byte, 0xC3..=0xCA | 0xD0 | 0xD1 | 0xD3)
}

/// The bytes of a block, by what they are part of.
struct Masks {
    letter: u64,
    /// ASCII letters.
    ascii: u64,
    /// Uppercase letters, if case matters.
    upper: u64,
    /// Letters of three bytes. They have no case.
    caseless: u64,
    /// Letters that are split off first, and do not count as letters here.
    apart: u64,
    number: u64,
    white: u64,
    space: u64,
    apostrophe: u64,
    other: u64,
    /// The first bytes of those others that have three.
    wide_sign: u64,
    /// Unknown bytes, and bytes outside of the text.
    unknown: u64,
    /// The bytes before that.
    known: u64,
}

impl Pattern {
    /// The pieces in the block at byte `at`, where a piece begins. `end`: of the text.
    #[inline(always)]
    pub(super) fn block(
        &self,
        classes: Classes,
        bytes: &[u8],
        at: usize,
        end: usize,
    ) -> BlockSegments {
        let mut masks = self.masks(classes, bytes, at, end);
        let stop = masks.known.trailing_ones();
        let is_last = at + stop as usize == end && stop < BLOCK as u32;
        let spaces = match self.lead {
            Lead::Space => first_of(masks.white) | masks.last_white(),
            Lead::Any => self.white_starts(&mut masks, bytes, at, is_last),
        };
        let mut starts = spaces
            | self.word_starts(&masks)
            | self.number_starts(&masks)
            | first_of(masks.other) & !(masks.space << 1)
            | first_of(masks.apart);
        self.split_contractions(&mut starts, &masks, &bytes[..end], at);
        // The end of the last piece is not known, unless the text ends there.
        let done = if is_last { stop } else { starts.checked_ilog2().unwrap_or(0) };
        let ends = (starts & !1 | 1u64.checked_shl(done).unwrap_or(0)) & below(done + 1) & !1;
        let starts = starts & below(done);
        let alone = starts & ends >> 1;
        BlockSegments {
            words: starts & !alone,
            ends: ends & !(alone << 1),
            alone,
            cjk_alone: 0,
            done,
            stop,
        }
    }

    #[inline(always)]
    fn masks(&self, classes: Classes, bytes: &[u8], at: usize, end: usize) -> Masks {
        let [ascii, number, white, space, apostrophe, high] = masks_at(bytes, at, ascii);
        let inside = below((end - at).min(BLOCK) as u32);
        let mut masks = Masks {
            letter: ascii,
            ascii,
            upper: if self.has_case() { masks_at(bytes, at, ascii_upper)[0] } else { 0 },
            caseless: 0,
            apart: 0,
            number,
            white,
            space,
            apostrophe,
            other: 0,
            wide_sign: 0,
            unknown: high | !inside,
            known: 0,
        };
        if self.words == Words::DeepSeek {
            masks.unknown |= masks_at(bytes, at, control)[0] & !white;
        }
        if masks.unknown & inside != 0 {
            self.add_characters(&mut masks, classes, bytes, at, inside);
        }
        masks.know(below(masks.unknown.trailing_zeros()));
        masks
    }

    /// Adds the characters of several bytes, if there are some of their kind before others.
    #[inline(always)]
    fn add_characters(
        &self,
        masks: &mut Masks,
        classes: Classes,
        bytes: &[u8],
        at: usize,
        inside: u64,
    ) {
        let is_next = |masks: &Masks, is_lead: fn(u8) -> bool| {
            let unknown = masks.unknown & inside;
            unknown != 0 && is_lead(bytes[at + unknown.trailing_zeros() as usize])
        };
        if is_next(masks, is_letter_lead) {
            self.add_letters(masks, classes, bytes, at, inside);
        }
        if is_next(masks, is_three_byte_lead) {
            self.add_wide(masks, bytes, at, inside);
            if is_next(masks, is_letter_lead) {
                self.add_letters(masks, classes, bytes, at, inside);
            }
        }
    }

    #[inline(always)]
    fn add_letters(
        &self,
        masks: &mut Masks,
        classes: Classes,
        bytes: &[u8],
        at: usize,
        inside: u64,
    ) {
        let mut letters = letters_at(bytes, at) & inside;
        if self.has_case() {
            let (upper, unclear) = cases_at(classes, bytes, at, letters);
            masks.upper |= upper;
            letters &= !unclear;
        }
        masks.letter |= letters;
        masks.unknown &= !letters;
        self.stop_at_upper(masks);
    }

    #[inline(always)]
    fn add_wide(&self, masks: &mut Masks, bytes: &[u8], at: usize, inside: u64) {
        let ThreeByteMasks { ideograph, kana, sign } = ThreeByteMasks::at(bytes, at);
        let [ideograph, kana] = [ideograph, kana].map(|leads| three_bytes(leads) & inside);
        masks.wide_sign = sign;
        masks.apart = match self.words {
            Words::DeepSeek => ideograph | kana,
            Words::NotHan => ideograph,
            _ => 0,
        };
        masks.caseless = (ideograph | kana) & !masks.apart;
        masks.letter |= masks.caseless;
        masks.unknown &= !(ideograph | kana | three_bytes(sign) & inside);
        self.stop_at_upper(masks);
    }

    /// Mark uppercase letters after letters without case as unknown: their neighbours decide if a word ends
    /// between them.
    #[inline(always)]
    fn stop_at_upper(&self, masks: &mut Masks) {
        masks.unknown |= masks.upper & masks.caseless << 1;
    }

    #[inline(always)]
    fn has_case(&self) -> bool {
        matches!(self.words, Words::Cased | Words::NotHan)
    }

    /// Return the beginnings of words, without contractions.
    #[inline(always)]
    fn word_starts(&self, masks: &Masks) -> u64 {
        let Masks { letter, ascii, upper, white, space, other, wide_sign, .. } = *masks;
        let first = first_of(letter);
        if self.lead == Lead::Space {
            return first & !(space << 1);
        }
        // The last bytes of other characters that are the only ones in a row.
        let first_other = first_of(other) & !(space << 1);
        let last_other = other & !(other >> 1);
        let single_ascii = first_other & last_other;
        let single = single_ascii | (first_other & wide_sign) << 2 & last_other;
        if self.words == Words::DeepSeek {
            // An ASCII character and ASCII letters are a piece. Other letters begin a new one.
            let signed = ascii & single_ascii << 1;
            let behind = ascii.wrapping_add(signed) & !ascii & letter;
            return first & !(white << 1) & !signed | if signed != 0 { behind } else { 0 };
        }
        let cased = if self.has_case() { upper & (letter & !upper) << 1 } else { 0 };
        first & !((white | single) << 1) | cased
    }

    /// Return the beginnings of numbers: a run of digits is split into groups.
    #[inline(always)]
    fn number_starts(&self, masks: &Masks) -> u64 {
        let number = masks.number;
        match self.digits {
            Pattern::ANY_DIGITS if self.lead == Lead::Space => {
                first_of(number) & !(masks.space << 1)
            }
            Pattern::ANY_DIGITS => first_of(number),
            1 => number,
            _ if number == 0 => 0,
            digits => {
                let within = (1..=digits as u32).fold(number, |all, by| all & number << by);
                let (mut starts, mut next) = (0, first_of(number));
                while next != 0 {
                    starts |= next;
                    next = next << digits & within;
                }
                starts
            }
        }
    }

    /// Return the beginnings of white space. Characters at the end of other pieces are removed from white space
    /// and other characters, and line ends from white space.
    #[inline(always)]
    fn white_starts(&self, masks: &mut Masks, bytes: &[u8], at: usize, is_last: bool) -> u64 {
        let [line_end, slash] = masks_at(bytes, at, line_ends);
        let mut line_end = line_end & masks.known;
        if line_end == 0 {
            let last = masks.last_white();
            return first_of(masks.white) | self.kept_last(masks, last);
        }
        let tails = masks.other << 1 & line_end;
        if tails != 0 && self.tail != Tail::None {
            let slashes = self.tail == Tail::LineEndsAndSlashes;
            let part = line_end | if slashes { slash & masks.known } else { 0 };
            let taken = run_up(part, tails);
            masks.other &= !taken;
            masks.white &= !taken;
            line_end &= !taken;
        }
        let blank = masks.white & !line_end;
        // A piece ends with the last line end in the white space.
        let mut behind = line_end << 1 & blank;
        let before = line_end >> 1 & blank;
        let open = if !is_last || self.joins_last_spaces { blank & !(masks.known >> 1) } else { 0 };
        if behind != 0 && before | open != 0 {
            behind &= !run_down(blank, before | open);
        }
        let last = masks.last_white() & !line_end;
        let starts = first_of(masks.white) | behind | self.kept_last(masks, last);
        masks.white = blank;
        starts
    }

    /// Return the last characters of white space that do not belong to the text before them.
    #[inline(always)]
    fn kept_last(&self, masks: &Masks, last: u64) -> u64 {
        // Numbers and CJK characters are split off first: all white space before them is one piece.
        match self.words {
            Words::DeepSeek => last & !((masks.number | masks.apart) >> 1),
            _ => last,
        }
    }

    /// Moves the beginnings of pieces to where contractions begin and end.
    #[inline(always)]
    fn split_contractions(&self, starts: &mut u64, masks: &Masks, text: &[u8], at: usize) {
        let is_behind = self.contractions == Contractions::BehindWords;
        let mut candidates = *starts
            & masks.apostrophe
            & match self.contractions {
                Contractions::None => 0,
                Contractions::BehindWords => masks.letter << 1,
                _ => masks.letter >> 1,
            };
        let mut done = 0;
        while candidates != 0 {
            let place = candidates.trailing_zeros();
            candidates &= candidates - 1;
            if is_behind && place == done {
                continue; // a word has one contraction
            }
            let any_case = self.contractions != Contractions::Lowercase;
            let length = contraction(&text[at + place as usize..], any_case) as u32;
            if length > 0 {
                done = place + length;
                let within = below(length - !is_behind as u32) << (place + !is_behind as u32);
                let next = 1u64.checked_shl(done).unwrap_or(0);
                *starts = *starts & !within | masks.letter & next;
            }
        }
    }
}

impl Masks {
    /// Keep the known bytes. Bytes without another class are others.
    #[inline(always)]
    fn know(&mut self, known: u64) {
        let Masks { letter, upper, apart, number, white, .. } = self;
        [letter, upper, apart, number, white].into_iter().for_each(|mask| *mask &= known);
        self.ascii &= known;
        self.other = known & !(self.letter | self.apart | self.number | self.white);
        self.known = known;
    }

    /// Return the last characters of white space before known bytes.
    #[inline(always)]
    fn last_white(&self) -> u64 {
        self.white & !(self.white >> 1) & self.known >> 1
    }
}

/// The first bit of every run.
#[inline(always)]
fn first_of(mask: u64) -> u64 {
    mask & !(mask << 1)
}

/// Return the bits of runs of `mask` upwards from the bits of `from`, which are part of it.
#[inline(always)]
fn run_up(mask: u64, from: u64) -> u64 {
    mask & !mask.wrapping_add(from) | from
}

/// Return the bits of runs of `mask` downwards from the bits of `from`, which are part of it.
#[inline(always)]
fn run_down(mask: u64, from: u64) -> u64 {
    run_up(mask.reverse_bits(), from.reverse_bits()).reverse_bits()
}

/// Return the bytes of two-byte letters (see [`is_letter_lead`]) that lie completely in the block at `at`.
#[inline(always)]
fn letters_at(bytes: &[u8], at: usize) -> u64 {
    let [leads, c3, signs] = masks_at(bytes, at, letters_of_two);
    let leads = leads & !(c3 & signs >> 1) & below(BLOCK as u32 - 1);
    leads | leads << 1
}

/// Return the bytes of uppercase two-byte letters, and of two-byte letters without case.
#[inline(always)]
pub(super) fn cases_at(classes: Classes, bytes: &[u8], at: usize, letters: u64) -> (u64, u64) {
    let [c3, d0, mixed, below_9f, below_b0, from_a0] = masks_at(bytes, at, cases_of_two);
    let [d1, _, _] = masks_at(bytes, at, |v| [v.is(0xD1), v, v]);
    let first = c3 & below_9f >> 1 | d0 & below_b0 >> 1;
    let (mut upper, mut unclear) = ((first | first << 1) & letters, 0);
    let mut mixed = (mixed | d1 & from_a0 >> 1) & letters & letters >> 1;
    while mixed != 0 {
        let place = mixed.trailing_zeros();
        mixed &= mixed - 1;
        let (class, _) = classes.at(bytes, at + place as usize);
        match class.is(Class::LOWER) {
            true if class.is(Class::UPPER) => unclear |= 3 << place,
            true => {}
            false => upper |= 3 << place,
        }
    }
    (upper, unclear)
}

/// Return the masks of ASCII letters, digits, ASCII white space, spaces, apostrophes, and other than ASCII.
#[inline(always)]
fn ascii(v: Lanes) -> [Lanes; 6] {
    let letter = v.with_bits(0x20).in_range(b'a', b'z');
    let space = v.is(b' ');
    let white = space | v.in_range(b'\t', b'\r');
    [letter, v.in_range(b'0', b'9'), white, space, v.is(b'\''), v.in_range(0x80, 0xFF)]
}

/// Return the mask of ASCII uppercase letters.
#[inline(always)]
fn ascii_upper(v: Lanes) -> [Lanes; 1] {
    [v.in_range(b'A', b'Z')]
}

/// Return the masks of line ends and slashes.
#[inline(always)]
fn line_ends(v: Lanes) -> [Lanes; 2] {
    [v.is(b'\r') | v.is(b'\n'), v.is(b'/')]
}

/// Return the mask of ASCII control characters.
#[inline(always)]
fn control(v: Lanes) -> [Lanes; 1] {
    [v.in_range(0, 0x1F) | v.is(0x7F)]
}

/// Return the masks of bytes with `is_letter_lead`, of 0xC3, and of 0x97 and 0xB7.
#[inline(always)]
fn letters_of_two(v: Lanes) -> [Lanes; 3] {
    let cyrillic = v.in_range(0xD0, 0xD1) | v.is(0xD3);
    [v.in_range(0xC3, 0xCA) | cyrillic, v.is(0xC3), v.is(0x97) | v.is(0xB7)]
}

/// Return the masks of 0xC3, of 0xD0, of first bytes of letters of either case; and of second bytes of `À` to `Þ`,
/// of `Ѐ` to `Я`, and of Cyrillic letters from `Ѡ` on.
#[inline(always)]
fn cases_of_two(v: Lanes) -> [Lanes; 6] {
    let mixed = v.in_range(0xC4, 0xCA) | v.is(0xD3);
    let (c3, d0) = (v.is(0xC3), v.is(0xD0));
    [c3, d0, mixed, v.in_range(0x80, 0x9E), v.in_range(0x80, 0xAF), v.in_range(0xA0, 0xBF)]
}
