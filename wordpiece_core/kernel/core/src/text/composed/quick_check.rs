//! Quick check for Unicode normalization forms. Nearly all text is in form C already.

use std::iter::{Once, once};
use std::sync::LazyLock;

use unicode_normalization_alignments::char::canonical_combining_class;
use unicode_normalization_alignments::{
    IsNormalized, is_nfc_quick, is_nfd_quick, is_nfkc_quick, is_nfkd_quick,
};

use crate::text::blocks::{Lanes, each_in_class};

/// A Unicode normalization form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Canonical composition.
    Nfc,
    /// Canonical decomposition.
    Nfd,
    /// Compatibility composition.
    Nfkc,
    /// Compatibility decomposition.
    Nfkd,
}

/// A bit for each character, set if it never changes and changes no other characters.
type Inert = Box<[u64]>;

static INERT: [LazyLock<Inert>; 4] = [
    LazyLock::new(|| inert(is_nfc_quick)),
    LazyLock::new(|| inert(is_nfd_quick)),
    LazyLock::new(|| inert(is_nfkc_quick)),
    LazyLock::new(|| inert(is_nfkd_quick)),
];

/// The end of the planes with characters that a form changes.
const END: char = '\u{40000}';

fn inert(quick: impl Fn(Once<char>) -> IsNormalized) -> Inert {
    let mut bits = vec![u64::MAX; 0x11_0000 / 64].into_boxed_slice();
    for c in ('\0'..END).filter(|&c| !is_inert(c, &quick)) {
        bits[c as usize / 64] &= !(1 << (c as usize % 64));
    }
    bits
}

fn is_inert(c: char, quick: impl Fn(Once<char>) -> IsNormalized) -> bool {
    canonical_combining_class(c) == 0 && quick(once(c)) == IsNormalized::Yes
}

/// Return true if a text only has characters that its form never changes: then the text is in that form
/// (Unicode Standard Annex #15, section 9). Other texts may also be in that form.
pub(crate) fn is_normalized(text: &str, form: Form) -> bool {
    if text.is_ascii() {
        return true;
    }
    let bits = &INERT[form as usize];
    let mut is_normalized = true;
    let check = |at: usize| {
        let c = text[at..].chars().next().unwrap_or_default();
        is_normalized &= bits[c as usize / 64] >> (c as usize % 64) & 1 == 1;
    };
    let (bytes, end) = (text.as_bytes(), text.len());
    match form {
        Form::Nfc => each_in_class(bytes, 0, end, may_change, check),
        _ => each_in_class(bytes, 0, end, |lanes| lanes.in_range(0xC2, 0xFF), check),
    }
    is_normalized
}

/// The first bytes of characters that form C may change. Most letters of Latin and Cyrillic, and ideographs,
/// begin with other bytes.
#[inline(always)]
fn may_change(lanes: Lanes) -> Lanes {
    lanes.in_range(0xCC, 0xCF) | lanes.in_range(0xD2, 0xE3) | lanes.in_range(0xEA, 0xFE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_no_form_changes_are_known_and_others_are_not() {
        for form in [Form::Nfc, Form::Nfd, Form::Nfkc, Form::Nfkd] {
            let bits = &INERT[form as usize];
            for c in '\0'..=char::MAX {
                let is_inert = bits[c as usize / 64] >> (c as usize % 64) & 1 == 1;
                assert_eq!(is_normalized(&format!("a{c}"), form), is_inert, "{c:?}, {form:?}");
            }
        }
        for c in END..=char::MAX {
            for quick in [is_nfc_quick, is_nfd_quick, is_nfkc_quick, is_nfkd_quick] {
                assert!(super::is_inert(c, quick), "{c:?}");
            }
        }
    }
}
