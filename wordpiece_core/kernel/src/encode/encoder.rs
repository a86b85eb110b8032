//! Text to tokens: greedy longest match, behind a cache of segments that were encoded before.
//!
//! Nearly every segment of a text has been seen before. Its ids are copied from the slot of the
//! cache that the lookup has just touched, so that most words cost one cache line and no
//! normalization. A character that stands alone (punctuation, CJK) has its id in a table. Only the
//! rest is normalized and matched against the trie. The caches are bounded: one that has grown too
//! large is emptied, which costs less than deciding what to keep.

use std::ops::Range;
use std::sync::{Mutex, OnceLock};

use aho_corasick::{AhoCorasick, MatchKind};

use crate::encode::matcher::{Matcher, Token, UnkScope};
use crate::error::{Error, Result};
use crate::text::pre_tokenize::Segment;
use crate::text::rules::{Begin, TextRules};
use crate::text::segment_map::SegmentMap;

/// What an encoder does with texts.
pub struct EncoderOptions {
    /// How texts are cut into words.
    pub text: TextRules,
    /// The id of the unknown token.
    pub unk_id: u32,
    /// The prefix of the tokens that continue a word, mostly `##`.
    pub continuing_prefix: String,
    /// The length, in characters, above which a word is unknown.
    pub max_word_length: usize,
    /// What becomes of a word that the vocabulary cannot cover.
    pub unk_scope: UnkScope,
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
/// use _kernel::text::pre_tokenize::TextOptions;
///
/// let options = EncoderOptions {
///     text: TextOptions {
///         clean_text: true,
///         handle_chinese_chars: true,
///         strip_accents: true,
///         lowercase: true,
///         split_punctuation: true,
///     }
///     .into(),
///     unk_id: 0,
///     continuing_prefix: "##".into(),
///     max_word_length: 100,
///     unk_scope: UnkScope::Word,
///     special_tokens: vec![("[SEP]".into(), 1)],
/// };
/// let vocabulary = ["[UNK]", "[SEP]", "hug", "##s", "!"];
/// let encoder = Encoder::new(vocabulary.into_iter().zip(0..), options).unwrap();
/// let mut encoding = Encoding::default();
/// let options =
///     SessionOptions { split_special_tokens: false, spans: true };
/// encoder.session(0).encode("Hugs![SEP]pug", &options, &mut encoding);
/// assert_eq!(encoding.ids(), [2, 3, 4, 1, 0]);
/// assert_eq!((encoding.spans[1].start, encoding.spans[1].end), (3, 4)); // the s
/// ```
pub struct Encoder {
    options: EncoderOptions,
    matcher: Matcher,
    special_matcher: AhoCorasick,
    /// The ids of characters that stand alone: pages by the upper bits of the character, filled on
    /// first use.
    alone: Box<[OnceLock<Box<[u32; PAGE]>>]>,
    /// The caches of sessions that have ended, for those to come; None: of one that has not ended.
    caches: Mutex<Vec<Option<Caches>>>,
}

/// Characters in a page of ids.
const PAGE: usize = 256;
const PAGES: usize = 0x11_0000 / PAGE;

/// The memory above which a cache is emptied, in bytes. A session has one cache of ids and one of
/// spans.
const CACHE_LIMIT: usize = if cfg!(test) { 1 << 18 } else { 64 << 20 };

/// About how many bytes of text are encoded before the caches are looked at. So the list of a cache
/// has far fewer than 2^32 entries, and their indices fit into 32 bits.
const AT_ONCE: usize = if cfg!(test) { 1 << 12 } else { 1 << 20 };

/// The longest segment that is cached, in bytes.
const CACHED: usize = 1024;

/// What a text is encoded to.
#[derive(Clone, Copy)]
pub struct SessionOptions {
    /// Whether special tokens in the text are encoded as plain text.
    pub split_special_tokens: bool,
    /// Whether spans are wanted, not ids alone. Then the text may have 2^31 - 1 bytes at most.
    pub spans: bool,
}

/// The tokens of a text, which [`Session::encode`] writes.
#[derive(Default)]
pub struct Encoding {
    /// The first `count` are the ids. The vector is longer, since three ids are always copied at once.
    ids: Vec<u32>,
    count: usize,
    /// What each token stands for; empty if spans are not wanted.
    pub spans: Vec<Span>,
    /// How many words have tokens. A special token in the text is no word.
    pub words: usize,
    /// How many of the tokens are those of words.
    pub word_tokens: usize,
}

/// What a token stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// How many characters of the raw text are before those that it stands for.
    pub start: u32,
    /// The same, with those that it stands for.
    pub end: u32,
    /// The index of its word among all words and special tokens of the text.
    pub word: u32,
}

impl Encoder {
    /// Makes the encoder of a vocabulary.
    ///
    /// # Arguments
    ///
    /// * `vocabulary` - The tokens and their ids.
    /// * `options` - What it does with texts.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Option`] if no search for the special tokens can be built, and
    /// [`Error::Data`] if the vocabulary is too large (see [`Matcher::new`]).
    pub fn new<'a>(
        vocabulary: impl Iterator<Item = (&'a str, u32)> + Clone,
        options: EncoderOptions,
    ) -> Result<Self> {
        let EncoderOptions { continuing_prefix: prefix, unk_id, unk_scope, .. } = &options;
        let patterns: Vec<_> = options.special_tokens.iter().map(|(t, _)| t.as_str()).collect();
        let special_matcher = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns)
            .map_err(|error| Error::option(format!("special tokens: {error}")))?;
        Ok(Encoder {
            matcher: Matcher::new(vocabulary, prefix, *unk_id, *unk_scope)?,
            special_matcher,
            alone: (0..PAGES).map(|_| OnceLock::new()).collect(),
            caches: Mutex::default(),
            options,
        })
    }

    /// The id of the unknown token.
    pub fn unk_id(&self) -> u32 {
        self.options.unk_id
    }

    /// A session of this encoder, for one thread. It takes over the caches of one that has ended: if
    /// that can be, of one with the same number.
    pub fn session(&self, number: usize) -> Session<'_> {
        let (mut place, mut caches) = (number, None);
        if let Ok(mut kept) = self.caches.lock() {
            if kept.len() <= number {
                kept.resize_with(number + 1, || Some(Caches::default()));
            }
            if kept[number].is_none() {
                place = kept.iter().rposition(Option::is_some).unwrap_or(kept.len());
            }
            match kept.get_mut(place) {
                Some(found) => caches = found.take(),
                None => kept.push(None),
            }
        }
        let caches = caches.unwrap_or_default();
        Session { encoder: self, place, caches, scratch: Scratch::default() }
    }

    /// The id of a normalized character that is a word by itself.
    #[inline]
    fn alone_id(&self, c: char) -> u32 {
        let page = c as usize / PAGE;
        let ids = self.alone[page].get_or_init(|| self.alone_ids(page));
        ids[c as usize % PAGE]
    }

    #[cold]
    fn alone_ids(&self, page: usize) -> Box<[u32; PAGE]> {
        let mut tokens = Vec::new();
        Box::new(std::array::from_fn(|k| {
            let c = char::from_u32((page * PAGE + k) as u32).unwrap_or_default();
            self.matcher.tokens(c.encode_utf8(&mut [0; 4]), &mut tokens);
            tokens[0].id
        }))
    }

    /// Writes the tokens of a segment into `scratch.tokens`, and its word into `scratch.word`.
    fn cut(&self, raw: &str, scratch: &mut Scratch) {
        self.options.text.normalize(raw, &mut scratch.word);
        let word = &scratch.word;
        let most = self.options.max_word_length;
        if word.len() <= most || word.chars().nth(most).is_none() {
            self.matcher.tokens(word, &mut scratch.tokens);
        } else {
            scratch.tokens.clear();
            scratch.tokens.push(Token::new(self.options.unk_id, word.len()));
        }
    }
}

/// What one thread encodes with: an encoder, and caches. They go back to the encoder when the session
/// is dropped.
pub struct Session<'e> {
    encoder: &'e Encoder,
    /// The place of the caches among those of the encoder.
    place: usize,
    caches: Caches,
    scratch: Scratch,
}

#[derive(Default)]
struct Caches {
    ids: IdCache,
    spans: SpanCache,
}

#[derive(Default)]
struct Scratch {
    word: String,
    tokens: Vec<Token>,
    /// For each byte of the word, the index of the character of the segment that it comes from.
    origin: Vec<u32>,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if let Ok(mut kept) = self.encoder.caches.lock()
            && let Some(place) = kept.get_mut(self.place)
        {
            *place = Some(std::mem::take(&mut self.caches));
        }
    }
}

impl Session<'_> {
    /// Encodes a text.
    ///
    /// # Arguments
    ///
    /// * `text` - The text. If spans are wanted, it may have 2^31 - 1 bytes at most.
    /// * `options` - What it is encoded to.
    /// * `encoding` - Where the tokens are written. It is cleared first.
    pub fn encode(&mut self, text: &str, options: &SessionOptions, encoding: &mut Encoding) {
        encoding.clear();
        self.encode_around_special_tokens(text, options, encoding);
    }

    /// Cuts a text at the special tokens in it and encodes what is between them.
    fn encode_around_special_tokens(
        &mut self,
        text: &str,
        options: &SessionOptions,
        encoding: &mut Encoding,
    ) {
        let encoder = self.encoder;
        let mut position = CharPosition::new(text);
        let (mut start, mut special) = (0, 0);
        if !(options.split_special_tokens || encoder.options.special_tokens.is_empty()) {
            for found in encoder.special_matcher.find_iter(text) {
                self.encode_plain(start..found.start(), options, &mut position, encoding);
                encoding.push(encoder.options.special_tokens[found.pattern().as_usize()].1);
                special += 1;
                if options.spans {
                    let characters =
                        [position.move_to(found.start()), position.move_to(found.end())];
                    encoding.push_word(&[characters], 0);
                }
                start = found.end();
            }
        }
        self.encode_plain(start..text.len(), options, &mut position, encoding);
        encoding.word_tokens = encoding.count - special;
    }

    /// Encodes a range of the text that has no special tokens.
    fn encode_plain(
        &mut self,
        range: Range<usize>,
        options: &SessionOptions,
        position: &mut CharPosition<'_>,
        encoding: &mut Encoding,
    ) {
        let Session { encoder, caches, scratch, .. } = self;
        let rules = &encoder.options.text;
        let mut start = range.start;
        let end = start + rules.section_end(&position.text[range]);
        let mut begin = if start == 0 { Begin::Text } else { Begin::Section };
        while start < end {
            let text = &position.text[..end];
            let most = (start + AT_ONCE).min(text.len());
            let most = (most..text.len()).find(|&at| text.is_char_boundary(at));
            let end = rules.segment_end(text, most.unwrap_or(text.len()));
            let raw = &text[start..end];
            if options.spans {
                rules.segments(raw, begin, |segment| {
                    let first = position.move_to(start + segment.start);
                    caches.spans.push(encoder, segment, first, scratch, encoding);
                });
            } else {
                rules.segments(raw, begin, |segment| {
                    caches.ids.push(encoder, segment, scratch, encoding);
                });
            }
            caches.bound();
            (start, begin) = (end, Begin::Within);
        }
    }
}

impl Caches {
    /// Empties a cache that takes more memory than its limit.
    fn bound(&mut self) {
        if self.ids.list.len() * 4 + self.ids.segments.memory() > CACHE_LIMIT {
            self.ids = IdCache::default();
        }
        if self.spans.list.len() * 12 + self.spans.segments.memory() > CACHE_LIMIT {
            self.spans = SpanCache::default();
        }
    }
}

/// A cache of the ids of segments.
#[derive(Default)]
struct IdCache {
    segments: SegmentMap<CachedIds>,
    list: Vec<u32>,
}

/// The ids of a segment: up to three are held here, more in the list of the cache.
#[derive(Clone, Copy, Default)]
struct CachedIds {
    /// The ids; or, if they are more than three, first the index in the list where they begin.
    ids: [u32; 3],
    count: u32,
}

impl IdCache {
    #[inline]
    fn push(
        &mut self,
        encoder: &Encoder,
        segment: Segment<'_>,
        scratch: &mut Scratch,
        encoding: &mut Encoding,
    ) {
        if let Some(c) = segment.alone {
            encoding.words += 1;
            return encoding.push(encoder.alone_id(c));
        }
        if segment.raw.len() > CACHED {
            encoder.cut(segment.raw, scratch);
            encoding.words += usize::from(!scratch.tokens.is_empty());
            return scratch.tokens.iter().for_each(|token| encoding.push(token.id));
        }
        let IdCache { segments, list } = self;
        let new = || first_seen(encoder, segment.raw, list, scratch);
        let CachedIds { ids, count } = *segments.entry(&segment, new);
        let (at, count) = (encoding.count, count as usize);
        encoding.reserve(count);
        if count <= 3 {
            // All three are copied, even if fewer are wanted: a copy of variable length would cost more.
            encoding.ids[at..at + 3].copy_from_slice(&ids);
        } else {
            let start = ids[0] as usize;
            encoding.ids[at..at + count].copy_from_slice(&list[start..start + count]);
        }
        encoding.count += count;
        encoding.words += usize::from(count > 0);
    }
}

#[cold]
fn first_seen(
    encoder: &Encoder,
    raw: &str,
    list: &mut Vec<u32>,
    scratch: &mut Scratch,
) -> CachedIds {
    encoder.cut(raw, scratch);
    let tokens = &scratch.tokens;
    let mut found = CachedIds { count: tokens.len() as u32, ..CachedIds::default() };
    if tokens.len() <= 3 {
        found.ids.iter_mut().zip(tokens).for_each(|(id, token)| *id = token.id);
    } else {
        found.ids[0] = list.len() as u32;
        list.extend(tokens.iter().map(|token| token.id));
    }
    found
}

/// A cache of the ids of segments and of the characters that each id stands for, as their indices in
/// the segment.
#[derive(Default)]
struct SpanCache {
    segments: SegmentMap<CachedRange>,
    list: Vec<(u32, [u32; 2])>,
}

/// Where the tokens of a segment are in the list of a cache.
#[derive(Clone, Copy, Default)]
struct CachedRange {
    start: u32,
    count: u32,
}

impl SpanCache {
    /// `first`: how many characters of the text are before the segment.
    fn push(
        &mut self,
        encoder: &Encoder,
        segment: Segment<'_>,
        first: u32,
        scratch: &mut Scratch,
        encoding: &mut Encoding,
    ) {
        if segment.raw.len() > CACHED {
            let mut tokens = Vec::new();
            cut_with_spans(encoder, segment.raw, scratch, &mut tokens);
            return encoding.push_tokens(&tokens, first);
        }
        let SpanCache { segments, list } = self;
        let CachedRange { start, count } = *segments.entry(&segment, || {
            let start = list.len();
            cut_with_spans(encoder, segment.raw, scratch, list);
            CachedRange { start: start as u32, count: (list.len() - start) as u32 }
        });
        encoding.push_tokens(&list[start as usize..(start + count) as usize], first);
    }
}

#[cold]
fn cut_with_spans(
    encoder: &Encoder,
    raw: &str,
    scratch: &mut Scratch,
    tokens: &mut Vec<(u32, [u32; 2])>,
) {
    encoder.cut(raw, scratch);
    let origin = &mut scratch.origin;
    origin.clear();
    encoder.options.text.each_normalized(raw, |c, index| {
        origin.resize(origin.len() + c.len_utf8(), index as u32);
    });
    let mut at = 0;
    for &Token { id, length } in &scratch.tokens {
        // A length may be cut to 32 bits, but tokens cover the word, so the last one ends with it.
        let end = if length == u32::MAX { origin.len() } else { at + length as usize };
        tokens.push((id, [origin[at], origin[end - 1] + 1]));
        at = end;
    }
}

/// A position in a text, in bytes and in characters. It moves forward only. The text has fewer than
/// 2^31 bytes (see `SessionOptions::spans`).
struct CharPosition<'a> {
    text: &'a str,
    byte: usize,
    character: u32,
}

impl<'a> CharPosition<'a> {
    fn new(text: &'a str) -> Self {
        CharPosition { text, byte: 0, character: 0 }
    }

    /// Moves to a byte offset; returns the number of characters before it.
    fn move_to(&mut self, byte: usize) -> u32 {
        self.character += self.text[self.byte..byte].chars().count() as u32;
        self.byte = byte;
        self.character
    }
}

impl Encoding {
    /// The ids of the tokens.
    pub fn ids(&self) -> &[u32] {
        &self.ids[..self.count]
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn clear(&mut self) {
        self.count = 0;
        self.spans.clear();
        (self.words, self.word_tokens) = (0, 0);
    }

    /// Makes room for `more` ids, and three beyond.
    #[inline]
    fn reserve(&mut self, more: usize) {
        let needed = self.count + more + 3;
        if self.ids.len() < needed {
            self.ids.resize(needed.max(self.ids.len() * 2), 0);
        }
    }

    #[inline]
    fn push(&mut self, id: u32) {
        self.reserve(1);
        self.ids[self.count] = id;
        self.count += 1;
    }

    fn push_tokens(&mut self, tokens: &[(u32, [u32; 2])], first: u32) {
        tokens.iter().for_each(|&(id, _)| self.push(id));
        self.words += usize::from(!tokens.is_empty());
        self.push_word(tokens.iter().map(|(_, characters)| characters), first);
    }

    /// Appends the spans of the tokens of a word. `first`: how many characters of the text are before
    /// those that the spans are counted from.
    fn push_word<'a>(&mut self, tokens: impl IntoIterator<Item = &'a [u32; 2]>, first: u32) {
        let word = self.spans.last().map_or(0, |last| last.word + 1);
        let span = |[start, end]: &[u32; 2]| Span { start: first + start, end: first + end, word };
        self.spans.extend(tokens.into_iter().map(span));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::pre_tokenize::TextOptions;

    const VOCABULARY: [&str; 8] = ["[UNK]", "[SEP]", "a", "##a", "ab", "##b", "日", "!"];
    const PLAIN: SessionOptions = SessionOptions { split_special_tokens: false, spans: false };

    fn encoder() -> Encoder {
        let text = TextOptions {
            clean_text: true,
            handle_chinese_chars: true,
            strip_accents: true,
            lowercase: true,
            split_punctuation: true,
        };
        let options = EncoderOptions {
            text: text.into(),
            unk_id: 0,
            continuing_prefix: "##".into(),
            max_word_length: 100,
            unk_scope: UnkScope::Word,
            special_tokens: vec![("[SEP]".into(), 1)],
        };
        Encoder::new(VOCABULARY.into_iter().zip(0..), options).expect("no two tokens are alike")
    }

    fn read(session: &mut Session<'_>, text: &str, options: &SessionOptions) -> Encoding {
        let mut encoding = Encoding::default();
        session.encode(text, options, &mut encoding);
        encoding
    }

    #[test]
    fn spans_are_characters_and_words() {
        let encoder = encoder();
        let options = SessionOptions { spans: true, ..PLAIN };
        let mut session = encoder.session(0);
        for _ in 0..2 {
            let encoding = read(&mut session, "\u{1F600} Ábaa日[SEP]b!", &options);
            assert_eq!(encoding.ids(), [0, 4, 3, 3, 6, 1, 0, 7]);
            let spans: Vec<_> = encoding.spans.iter().map(|s| (s.start, s.end, s.word)).collect();
            let words = [(0, 1, 0), (2, 4, 1), (4, 5, 1), (5, 6, 1)];
            assert_eq!(spans[..4], words);
            assert_eq!(spans[4..], [(6, 7, 2), (7, 12, 3), (12, 13, 4), (13, 14, 5)]);
        }
    }

    #[test]
    fn words_are_counted_with_their_tokens_and_special_tokens_are_not() {
        let encoder = encoder();
        let long = "ab".repeat(CACHED);
        for spans in [false, true] {
            let mut session = encoder.session(0);
            let options = SessionOptions { spans, ..PLAIN };
            let mut count = |text: &str| {
                let encoding = read(&mut session, text, &options);
                (encoding.words, encoding.word_tokens, encoding.len())
            };
            assert_eq!(count("aba aba[SEP]日! zzz \u{301} [SEP]"), (5, 7, 9));
            assert_eq!(count(&format!("[SEP]{long}")), (1, 1, 2));
            assert_eq!(count(""), (0, 0, 0));
        }
    }

    #[test]
    fn a_cached_word_is_encoded_as_a_new_one() {
        let encoder = encoder();
        let lengths = [1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 33, 99, 100, 101, 1024, 1025];
        let words: Vec<String> =
            lengths.iter().map(|&length| "ab".repeat(length)[..length].into()).collect();
        let text = words.join(" ").repeat(2) + " " + &words.join("!");
        let mut together = Vec::new();
        for word in text.split(' ').flat_map(|words| words.split_inclusive('!')) {
            encoder.caches.lock().expect("no thread has failed").clear();
            together.extend_from_slice(read(&mut encoder.session(0), word, &PLAIN).ids());
        }
        let mut session = encoder.session(0);
        assert_eq!(read(&mut session, &text, &PLAIN).ids(), together);
        let spans = SessionOptions { spans: true, ..PLAIN };
        assert_eq!(read(&mut session, &text, &spans).ids(), together);
    }

    #[test]
    fn caches_are_bounded_in_a_text_and_over_texts() {
        let encoder = encoder();
        let words = |n| format!("{n} a{n}ab{n}abab{n} {}{n} ", "ab".repeat(20));
        let texts: Vec<String> = (0..2_000).map(words).collect();
        for texts in [vec![texts.concat()], texts] {
            let mut session = encoder.session(0);
            for text in texts {
                let ids = read(&mut session, &text, &PLAIN);
                let spans = read(&mut session, &text, &SessionOptions { spans: true, ..PLAIN });
                assert_eq!(ids.ids(), spans.ids());
                let Caches { ids, spans } = &session.caches;
                assert!(ids.segments.memory() + ids.list.len() * 4 < 2 * CACHE_LIMIT);
                assert!(spans.segments.memory() + spans.list.len() * 12 < 2 * CACHE_LIMIT);
            }
        }
    }
}
