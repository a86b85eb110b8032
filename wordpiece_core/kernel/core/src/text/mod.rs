//! Text to words: the rules that counting and encoding share. Knows strings and bytes only.

pub(crate) mod bert;
pub(crate) mod blocks;
pub(crate) mod byte_level;
pub(crate) mod charsmap;
pub(crate) mod composed;
pub(crate) mod csv_rows;
pub(crate) mod marks;
pub(crate) mod patterns;
pub(crate) mod rules;
pub(crate) mod segment_table;
pub(crate) mod segments;
#[doc(hidden)] // see `internals`
pub mod unicode;
#[doc(hidden)] // see `internals`
pub mod utf8;

pub use bert::{BertRules, TextOptions};
pub use composed::Composed;
pub use marks::{WordBoundary, WordMarks};
pub use rules::TextRules;
pub use segments::Segment;
