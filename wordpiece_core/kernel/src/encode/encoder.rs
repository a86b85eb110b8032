//! Text to tokens: a model, behind a cache of segments that were encoded before.
//!
//! Nearly every segment of a text has been seen before. Its ids are copied from the slot of the
//! cache that the lookup has just touched, so that most words cost one cache line and no
//! normalization. A character that stands alone (punctuation, CJK) has its id in a table. Only the
//! rest is normalized and cut by the model. The caches are bounded: one that has grown too
//! large is emptied, which costs less than deciding what to keep.

use std::ops::Range;
use std::sync::{Mutex, OnceLock};

use aho_corasick::{AhoCorasick, MatchKind};

use crate::encode::matcher::Token;
use crate::encode::model::{Model, ModelScratch, Sampler};
use crate::encode::sampling::{Random, Sampling};
use crate::encode::trie::NONE;
use crate::encode::unigram::{Rounding, Unigram};
use crate::error::{Error, Result};
use crate::text::byte_level::byte_character;
use crate::text::metaspace::marked_words;
use crate::text::pre_tokenize::Segment;
use crate::text::rules::{Begin, TextRules};
use crate::text::segment_map::SegmentMap;

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
    /// How many words and special tokens there are, with words that have no tokens; counted only with
    /// spans.
    next_word: u32,
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
        Session { encoder: self, place, caches, scratch: Scratch::default(), drawing: None }
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

    /// Puts the mark of words before a word.
    #[inline]
    fn put_mark(&self, word: &mut String) {
        if let Some(mark) = self.word_mark
            && !word.is_empty()
            && !word.starts_with(mark)
        {
            word.insert(0, mark);
        }
    }

    /// Writes the tokens of a segment into `scratch.tokens`, and its words into `scratch.word`.
    fn cut(&self, raw: &str, scratch: &mut Scratch) {
        let model = &self.options.model;
        self.cut_by(raw, scratch, |word, scratch, tokens| model.tokens(word, scratch, tokens));
    }

    /// The same, if words are not cut by [`Model::tokens`] but by `cut`.
    #[inline]
    fn cut_by(
        &self,
        raw: &str,
        scratch: &mut Scratch,
        mut cut: impl FnMut(&str, &mut ModelScratch, &mut Vec<Token>),
    ) {
        let Scratch { model, word, tokens, part, ends, .. } = scratch;
        self.options.text.normalize(raw, word);
        self.put_mark(word);
        ends.clear();
        let first = self.first_word(word);
        cut(&word[..first], model, tokens);
        ends.extend((first > 0).then_some((tokens.len(), first)));
        let mut at = first;
        while at < word.len() {
            let end = at + self.first_word(&word[at..]);
            cut(&word[at..end], model, part);
            tokens.append(part);
            ends.push((tokens.len(), end));
            at = end;
        }
    }

    /// The length of the first of the words that a segment has become.
    #[inline]
    fn first_word(&self, words: &str) -> usize {
        match self.options.text {
            TextRules::Bert(_) | TextRules::ByteLevel(_) => words.len(),
            TextRules::Metaspace(_) => marked_words(words).next().map_or(0, str::len),
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
    drawing: Option<Drawing>,
}

/// What words are drawn with, if they are cut at random.
struct Drawing {
    sampling: Sampling,
    sampler: Sampler,
    /// The numbers of the text.
    random: Random,
}

#[derive(Default)]
struct Caches {
    ids: IdCache,
    spans: SpanCache,
    rounded: RoundedCache,
}

#[derive(Default)]
struct Scratch {
    model: ModelScratch,
    /// The words of a segment, one behind the other.
    word: String,
    tokens: Vec<Token>,
    /// The tokens of one of several words.
    part: Vec<Token>,
    /// Where each word ends in `tokens`, and in `word`.
    ends: Vec<(usize, usize)>,
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
    /// Whether texts may have 2^31 bytes and more.
    pub fn takes_any_length(&self) -> bool {
        self.encoder.is_wordpiece()
    }

    /// Sets how words are cut at random from now on; None: they are not.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Option`] if words of the model are not drawn so.
    pub fn set_sampling(&mut self, sampling: Option<&Sampling>) -> Result<()> {
        let as_before = self.drawing.as_ref().map(|drawing| &drawing.sampling) == sampling;
        if !as_before {
            let model = &self.encoder.options.model;
            let sampler = sampling.map(|sampling| model.sampler(sampling)).transpose()?;
            self.drawing = sampling.zip(sampler).map(|(&sampling, sampler)| Drawing {
                sampling,
                sampler,
                random: Random::of(sampling.seed, b""),
            });
        }
        Ok(())
    }

    /// Encodes a text.
    ///
    /// # Arguments
    ///
    /// * `text` - The text. If spans are wanted, it may have 2^31 - 1 bytes at most.
    /// * `options` - What it is encoded to.
    /// * `encoding` - Where the tokens are written. It is cleared first.
    pub fn encode(&mut self, text: &str, options: &SessionOptions, encoding: &mut Encoding) {
        encoding.clear();
        if let Some(drawing) = &mut self.drawing {
            drawing.random = Random::of(drawing.sampling.seed, text.as_bytes());
        }
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
                let id = encoder.options.special_tokens[found.pattern().as_usize()].1;
                let mut end = found.start();
                if encoder.left_stripped.contains(&id) {
                    end = start + text[start..end].trim_end().len();
                }
                self.encode_plain(start..end, options, &mut position, encoding);
                special += 1;
                if options.spans {
                    let mut from = end;
                    if let Some(keeps_first) = encoder.trim.filter(|_| end < found.start()) {
                        // All but one space at the beginning of a text are left out.
                        let kept = usize::from(keeps_first && end == 0);
                        let spaces = text[end..found.start()].char_indices().rev().take(kept);
                        from = spaces.last().map_or(found.start(), |(at, _)| end + at);
                    }
                    let [start, end] = [from, found.end()].map(|at| position.move_to(at));
                    encoding.push_token(&(id, [start, end]), 0, 0);
                    encoding.next_word += 1;
                } else {
                    encoding.push(id);
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
        let Session { encoder, caches, scratch, drawing, .. } = self;
        let EncoderOptions { text: rules, model, .. } = &encoder.options;
        let mut sum = 0.0; // of scores, if they are rounded
        let mut start = range.start;
        let end = start + rules.section_end(&position.text[range]);
        let mut begin = if start == 0 { Begin::Text } else { Begin::Section };
        while start < end {
            let text = &position.text[..end];
            let most = (start + AT_ONCE).min(text.len());
            let most = (most..text.len()).find(|&at| text.is_char_boundary(at));
            let end = rules.segment_end(text, most.unwrap_or(text.len()));
            let raw = &text[start..end];
            let rounding = model.rounding();
            if drawing.is_some() || rounding.is_some() && options.spans {
                rules.segments(raw, begin, |segment| {
                    encoder.cut_by(segment.raw, scratch, |word, scratch, tokens| {
                        match (&mut *drawing, rounding) {
                            (Some(Drawing { sampler, random, .. }), _) => {
                                model.sampled_tokens(word, sampler, random, scratch, tokens);
                            }
                            (None, Some(unigram)) => {
                                let scratch = &mut scratch.unigram;
                                unigram.rounded_tokens(word, &mut sum, scratch, tokens);
                            }
                            (None, None) => model.tokens(word, scratch, tokens),
                        }
                    });
                    if options.spans {
                        let first = position.move_to(start + segment.start);
                        push_with_spans(encoder, &segment, first, scratch, encoding);
                    } else {
                        encoding.push_new(scratch);
                    }
                });
            } else if options.spans {
                rules.segments(raw, begin, |segment| {
                    let first = position.move_to(start + segment.start);
                    caches.spans.push(encoder, segment, first, scratch, encoding);
                });
            } else if let Some(unigram) = rounding {
                rules.segments(raw, begin, |segment| {
                    caches.rounded.push(encoder, unigram, segment, &mut sum, scratch, encoding);
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
        if self.rounded.list.len() * 4 + self.rounded.segments.memory() > CACHE_LIMIT {
            self.rounded = RoundedCache::default();
        }
    }
}

/// Stands for the number of tokens of a segment that is cut anew each time.
const ANEW: u16 = u16::MAX;

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
    count: u16,
    /// How many words have tokens.
    words: u16,
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
            let id = encoder.alone_id(c);
            if id != NONE {
                encoding.words += 1;
                return encoding.push(id);
            }
        }
        if segment.raw.len() > CACHED {
            encoder.cut(segment.raw, scratch);
            return encoding.push_new(scratch);
        }
        let IdCache { segments, list } = self;
        let new = || first_seen(encoder, segment.raw, list, scratch);
        let CachedIds { ids, count, words } = *segments.entry(&segment, new);
        let (at, count) = (encoding.count, count as usize);
        encoding.reserve(count);
        if count <= 3 {
            // All three are copied, even if fewer are wanted: a copy of variable length would cost more.
            encoding.ids[at..at + 3].copy_from_slice(&ids);
        } else if count < ANEW as usize {
            let start = ids[0] as usize;
            encoding.ids[at..at + count].copy_from_slice(&list[start..start + count]);
        } else {
            encoder.cut(segment.raw, scratch);
            return encoding.push_new(scratch);
        }
        encoding.count += count;
        encoding.words += words as usize;
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
    let count = u16::try_from(tokens.len()).unwrap_or(ANEW);
    let words = scratch.words_with_tokens() as u16; // no more than tokens
    let mut found = CachedIds { count, words, ..CachedIds::default() };
    if tokens.len() <= 3 {
        found.ids.iter_mut().zip(tokens).for_each(|(id, token)| *id = token.id);
    } else if count < ANEW {
        found.ids[0] = list.len() as u32;
        list.extend(tokens.iter().map(|token| token.id));
    }
    found
}

impl Scratch {
    /// How many words of the segment that was cut have tokens.
    fn words_with_tokens(&self) -> usize {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|&(end, _)| end));
        self.ends.iter().zip(starts).filter(|((end, _), start)| end > start).count()
    }
}

/// A cache of the ids of segments for a unigram model whose sums are rounded.
#[derive(Default)]
struct RoundedCache {
    segments: SegmentMap<CachedRounded>,
    list: Vec<u32>,
}

/// The ids of a segment, which are right behind some sums.
#[derive(Clone, Copy, Default)]
struct CachedRounded {
    rounding: Rounding,
    /// Where, in the list of the cache, the scores of its pieces are, as bits, and then the ids.
    start: u32,
    pieces: u16,
    count: u16,
}

impl RoundedCache {
    /// `sum`: of the scores of what is before the segment.
    fn push(
        &mut self,
        encoder: &Encoder,
        unigram: &Unigram,
        segment: Segment<'_>,
        sum: &mut f32,
        scratch: &mut Scratch,
        encoding: &mut Encoding,
    ) {
        if segment.raw.len() <= CACHED {
            let RoundedCache { segments, list } = self;
            let new = || first_rounded(encoder, unigram, segment.raw, list, scratch);
            let CachedRounded { rounding, start, pieces, count } = *segments.entry(&segment, new);
            if rounding.allows(*sum) {
                let start = start as usize;
                let (scores, ids) = list[start..].split_at(pieces as usize);
                *sum = scores.iter().fold(*sum, |sum, &score| sum + f32::from_bits(score));
                let (at, count) = (encoding.count, count as usize);
                encoding.reserve(count);
                encoding.ids[at..at + count].copy_from_slice(&ids[..count]);
                encoding.count += count;
                encoding.words += usize::from(count > 0);
                return;
            }
        }
        encoder.cut_by(segment.raw, scratch, |word, scratch, tokens| {
            unigram.rounded_tokens(word, sum, &mut scratch.unigram, tokens);
        });
        encoding.push_new(scratch);
    }
}

/// What is right behind no sum, unless it is one word with few tokens.
#[cold]
fn first_rounded(
    encoder: &Encoder,
    unigram: &Unigram,
    raw: &str,
    list: &mut Vec<u32>,
    scratch: &mut Scratch,
) -> CachedRounded {
    let (mut rounding, mut added) = (Rounding::default(), Vec::new());
    encoder.cut_by(raw, scratch, |word, scratch, tokens| {
        let scratch = &mut scratch.unigram;
        rounding = unigram.tokens_with_rounding(word, scratch, tokens, &mut added);
    });
    let counts = [added.len(), scratch.tokens.len()].map(u16::try_from);
    let ([Ok(pieces), Ok(count)], [] | [_]) = (counts, &scratch.ends[..]) else {
        return CachedRounded::default();
    };
    let start = list.len() as u32;
    list.extend(added.iter().map(|score| score.to_bits()));
    list.extend(scratch.tokens.iter().map(|token| token.id));
    CachedRounded { rounding, start, pieces, count }
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
    count: u16,
    /// How many words the segment has: one, or none.
    words: u16,
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
        // At the beginning of a text spans may be other ones.
        let begins = segment.added || first == 0 && encoder.trim == Some(true);
        if segment.raw.len() <= CACHED && !begins {
            let SpanCache { segments, list } = self;
            let CachedRange { start, count, words } = *segments.entry(&segment, || {
                encoder.cut(segment.raw, scratch);
                let (start, count) = (list.len() as u32, u16::try_from(scratch.tokens.len()));
                let (Ok(count), [] | [_]) = (count, &scratch.ends[..]) else {
                    return CachedRange { start, count: ANEW, words: 0 };
                };
                spans(encoder, &segment, false, scratch, |_, token| list.push(token));
                CachedRange { start, count, words: scratch.ends.len() as u16 }
            });
            if count != ANEW {
                let tokens = &list[start as usize..][..count as usize];
                encoding.push_cached(tokens, first);
                encoding.words += usize::from(count > 0);
                encoding.next_word += words as u32;
                return;
            }
        }
        encoder.cut(segment.raw, scratch);
        push_with_spans(encoder, &segment, first, scratch, encoding);
    }
}

/// Appends the tokens of a segment that was cut, with their spans.
fn push_with_spans(
    encoder: &Encoder,
    segment: &Segment<'_>,
    first: u32,
    scratch: &mut Scratch,
    encoding: &mut Encoding,
) {
    let begins = first == 0;
    spans(encoder, segment, begins, scratch, |word, token| {
        encoding.push_token(&token, first, word)
    });
    encoding.words += scratch.words_with_tokens();
    encoding.next_word += scratch.ends.len() as u32;
}

/// Calls `each` with every token of a segment that was cut: the number of its word, its id, and the
/// characters that it stands for. `begins`: whether the segment is at the beginning of the text.
#[cold]
fn spans(
    encoder: &Encoder,
    segment: &Segment<'_>,
    begins: bool,
    scratch: &mut Scratch,
    mut each: impl FnMut(u32, (u32, [u32; 2])),
) {
    let Scratch { word, tokens, ends, origin, .. } = scratch;
    encoder.find_origin(segment, word, origin);
    let (mut next, mut from, mut last) = (0, 0usize, [0, 0]);
    for (number, &(end, to)) in (0..).zip(ends.iter()) {
        let to = if encoder.options.model.is_of_bytes() { origin.len() } else { to };
        let mut at = from;
        for &Token { id, length } in &tokens[next..end] {
            if length > 0 {
                // A length may be cut to 32 bits, but then the token covers the word.
                at = at.min(to - 1);
                let until = at.saturating_add(length as usize).min(to);
                last = [origin[at], origin[until - 1] + 1];
                if let Some(keeps_first) = encoder.trim {
                    let [leading, trailing] = encoder.options.model.spaces(id);
                    let keep = u32::from(keeps_first && begins && last[0] == 0);
                    trim(&mut last, leading.saturating_sub(keep), trailing);
                }
                at = until;
            }
            each(number, (id, last));
        }
        (next, from) = (end, to);
    }
}

/// Takes spaces off both ends of a span, as Hugging Face tokenizers does.
fn trim([start, end]: &mut [u32; 2], leading: u32, trailing: u32) {
    *start = (*start + leading).min(*end);
    if *end >= trailing {
        *end = (*end - trailing).max(*start);
    }
}

impl Encoder {
    /// Writes for each byte of the words of a segment, or for each byte of the characters that stand
    /// for these, the index of the character of the segment that it comes from. A mark comes from the
    /// character behind it.
    fn find_origin(&self, segment: &Segment<'_>, word: &str, origin: &mut Vec<u32>) {
        let of_bytes = self.options.model.is_of_bytes();
        let width = |c: char| match of_bytes {
            true => c.encode_utf8(&mut [0; 4]).bytes().map(|b| byte_character(b).len_utf8()).sum(),
            false => c.len_utf8(),
        };
        origin.clear();
        // A space that is not in the text has the place of what is behind it.
        let place = |index: usize| (index as u32).saturating_sub(segment.added as u32);
        self.options.text.each_normalized(segment.raw, |c, index| {
            if origin.is_empty() && self.word_mark.is_some_and(|mark| mark != c) {
                origin.resize(self.word_mark.map_or(0, width), place(index));
            }
            origin.resize(origin.len() + width(c), place(index));
        });
        debug_assert!(of_bytes || origin.len() == word.len());
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
        (self.words, self.word_tokens, self.next_word) = (0, 0, 0);
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

    /// Appends the ids of a segment that was cut.
    fn push_new(&mut self, scratch: &Scratch) {
        scratch.tokens.iter().for_each(|token| self.push(token.id));
        self.words += scratch.words_with_tokens();
    }

    /// Appends the tokens of a word with their spans. `first`: how many characters of the text are
    /// before those that they are counted from.
    #[inline]
    fn push_cached(&mut self, tokens: &[(u32, [u32; 2])], first: u32) {
        tokens.iter().for_each(|&(id, _)| self.push(id));
        let word = self.next_word;
        self.spans.extend(tokens.iter().map(|&(_, [start, end])| Span {
            start: first + start,
            end: first + end,
            word,
        }));
    }

    /// Appends a token with its span. `first`: how many characters of the text are before those that
    /// it is counted from; `word`: how many words are before its own, of those that are not counted
    /// yet.
    fn push_token(&mut self, (id, [start, end]): &(u32, [u32; 2]), first: u32, word: u32) {
        self.push(*id);
        let word = self.next_word + word;
        self.spans.push(Span { start: first + start, end: first + end, word });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::matcher::UnkScope;
    use crate::encode::model::WordPiece;
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
            model: Model::WordPiece(
                WordPiece::new(VOCABULARY.into_iter().zip(0..), "##", 0, UnkScope::Word, 100)
                    .expect("no two tokens are alike"),
            ),
            unk_id: Some(0),
            special_tokens: vec![("[SEP]".into(), 1)],
        };
        Encoder::new(options).expect("no two special tokens are alike")
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
                let Caches { ids, spans, .. } = &session.caches;
                assert!(ids.segments.memory() + ids.list.len() * 4 < 2 * CACHE_LIMIT);
                assert!(spans.segments.memory() + spans.list.len() * 12 < 2 * CACHE_LIMIT);
            }
        }
    }
}
