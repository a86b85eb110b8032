//! Text to sentences.

use unicode_segmentation::UnicodeSegmentation;

/// The sentences of a text by the rules of Unicode (UAX #29), without the white space between them.
///
/// # Examples
///
/// ```
/// use wordpiece_core::internals::sentences;
///
/// let found: Vec<_> = sentences("It is 3.5 m. Is it? 是。\nYes").collect();
/// assert_eq!(found, ["It is 3.5 m.", "Is it?", "是。", "Yes"]);
/// ```
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_sentence_bounds().map(str::trim).filter(|sentence| !sentence.is_empty())
}
