//! Text to tokens: a model, behind a cache of segments that were encoded before.
//!
//! Nearly every segment of a text has been seen before. Its ids are copied from the slot of the
//! cache that the lookup has just touched, so that most words cost one cache line and no
//! normalization. A character that stands alone (punctuation, CJK) has its id in a table. Only the
//! rest is normalized and cut by the model. The caches are bounded: one that has grown too
//! large is emptied, which costs less than deciding what to keep.

mod cache;
mod cut;
mod encoding;
mod session;
mod spans;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, OnceLock};

use aho_corasick::{AhoCorasick, MatchKind};

use crate::encode::model::{Model, ModelScratch};
use crate::encode::trie::NONE;
use crate::error::{Error, Result};
use crate::text::rules::TextRules;

use cache::Caches;
pub use encoding::{Encoding, Span};
pub use session::{Session, SessionOptions};

/// What an encoder does with texts.
pub struct EncoderOptions {
    /// How texts are cut into words.
    pub text: TextRules,
    /// What cuts words into tokens.
    pub model: Model,
    /// The id of the unknown token, if there is one.
    pub unk_id: Option<u32>,
    /// Strings that are looked for in the raw text before anything else, with their ids.
    pub special_tokens: Vec<(String, u32)>,
}

/// Cuts texts into the tokens of a vocabulary. It can be shared by threads; each of them encodes with
/// a [`Session`] of its own.
///
/// # Examples
///
/// ```
/// use _kernel::encode::encoder::{Encoder, EncoderOptions, Encoding, SessionOptions};
/// use _kernel::encode::matcher::UnkScope;
/// use _kernel::encode::model::{Model, WordPiece};
/// use _kernel::text::pre_tokenize::TextOptions;
///
/// let vocabulary = ["[UNK]", "[SEP]", "hug", "##s", "!"].into_iter().zip(0..);
/// let options = EncoderOptions {
///     text: TextOptions {
///         clean_text: true,
///         handle_chinese_chars: true,
///         strip_accents: true,
///         lowercase: true,
///         split_punctuation: true,
///     }
///     .into(),
///     model: Model::WordPiece(
///         WordPiece::new(vocabulary, "##", 0, UnkScope::Word, 100).unwrap(),
///     ),
///     unk_id: Some(0),
///     special_tokens: vec![("[SEP]".into(), 1)],
/// };
/// let encoder = Encoder::new(options).unwrap();
/// let mut encoding = Encoding::default();
/// let options =
///     SessionOptions { split_special_tokens: false, spans: true };
/// encoder.session(0).encode("Hugs![SEP]pug", &options, &mut encoding);
/// assert_eq!(encoding.ids(), [2, 3, 4, 1, 0]);
/// assert_eq!((encoding.spans[1].start, encoding.spans[1].end), (3, 4)); // the s
/// ```
pub struct Encoder {
    options: EncoderOptions,
    /// What is put before each word, where the rules of text do not do it.
    word_mark: Option<char>,
    /// Whether spans are without the spaces at their ends; and, if so, whether one space is kept at
    /// the beginning of a text.
    trim: Option<bool>,
    special_matcher: AhoCorasick,
    /// The ids of special tokens that take the white space before them.
    left_stripped: Vec<u32>,
    /// The ids of characters that stand alone: pages by the upper bits of the character, filled on
    /// first use.
    alone: Box<[OnceLock<Box<[u32; PAGE]>>]>,
    /// The caches of sessions that have ended, for those to come; None: of one that has not ended.
    caches: Mutex<Vec<Option<Caches>>>,
}

/// Characters in a page of ids.
const PAGE: usize = 256;
const PAGES: usize = 0x11_0000 / PAGE;

impl Encoder {
    /// Makes the encoder of a model.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Option`] if no search for the special tokens can be built.
    pub fn new(options: EncoderOptions) -> Result<Self> {
        let patterns: Vec<_> = options.special_tokens.iter().map(|(t, _)| t.as_str()).collect();
        let special_matcher = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns)
            .map_err(|error| Error::option(format!("special tokens: {error}")))?;
        Ok(Encoder {
            word_mark: match options.text {
                TextRules::Bert(_) => options.model.word_mark(),
                TextRules::ByteLevel(_) | TextRules::Metaspace(_) => None,
            },
            trim: match &options.text {
                TextRules::ByteLevel(rules) if rules.trim_offsets => Some(rules.add_prefix_space),
                _ => None,
            },
            special_matcher,
            left_stripped: Vec::new(),
            alone: (0..PAGES).map(|_| OnceLock::new()).collect(),
            caches: Mutex::default(),
            options,
        })
    }

    /// The same with special tokens, of these ids, that take the white space before them.
    pub fn with_left_stripped(self, ids: Vec<u32>) -> Self {
        Encoder { left_stripped: ids, ..self }
    }

    /// Whether words are cut as in a text only behind a space.
    pub fn wants_space(&self) -> bool {
        matches!(&self.options.text, TextRules::ByteLevel(rules) if !rules.add_prefix_space)
    }

    /// The id of the unknown token, if there is one.
    pub fn unk_id(&self) -> Option<u32> {
        self.options.unk_id
    }

    /// Whether this is WordPiece, which takes texts of any length.
    pub fn is_wordpiece(&self) -> bool {
        matches!(self.options.model, Model::WordPiece(_))
    }

    /// The id of a normalized character that is a word by itself; `NONE` if it has not one token.
    #[inline]
    fn alone_id(&self, c: char) -> u32 {
        let page = c as usize / PAGE;
        let ids = self.alone[page].get_or_init(|| self.alone_ids(page));
        ids[c as usize % PAGE]
    }

    #[cold]
    fn alone_ids(&self, page: usize) -> Box<[u32; PAGE]> {
        let (mut scratch, mut tokens) = (ModelScratch::default(), Vec::new());
        Box::new(std::array::from_fn(|k| {
            let c = char::from_u32((page * PAGE + k) as u32).unwrap_or_default();
            let mut word = String::from(c);
            self.put_mark(&mut word);
            self.options.model.tokens(&word, &mut scratch, &mut tokens);
            if let [token] = tokens[..] { token.id } else { NONE }
        }))
    }
}
