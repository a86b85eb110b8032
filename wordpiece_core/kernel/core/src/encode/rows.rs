//! The tokens of texts to rows: added tokens, truncation with overflowing rows, padding, and
//! columns next to the ids, by the rules of Hugging Face tokenizers.
//!
//! Rows are written column by column into vectors that become Arrow arrays without a copy. Only
//! requested columns are computed.

use std::ops::Range;

use crate::base::error::{Error, Result, caught};
use crate::encode::tokenizer::{Encoding, MOST_BYTES, Session, Tokenizer};
use crate::text::utf8::repair;

/// The most tokens that a padded row, one of several rows of a text, or a packed sequence may have:
/// there is no memory for rows of any length.
pub const MOST_PADDED: usize = 1 << 24;

/// The most ids of a batch. Its offsets are of 32 bits.
pub(super) const MOST_IDS: usize = if cfg!(test) { 1 << 18 } else { i32::MAX as usize };

/// The text of a pair that is truncated if the pair is too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Truncation {
    /// The longer one, down to the length of the other; then both.
    #[default]
    LongestFirst,
    /// The first one.
    OnlyFirst,
    /// The second one.
    OnlySecond,
}

/// The options for rows. By default a row has the ids of its text, and any length.
#[derive(Clone, Debug, Default)]
pub struct RowOptions {
    /// The layout of a row of one text, and of a row of a pair.
    pub layouts: [Layout; 2],
    /// The most tokens of a row, added ones included; but these are never left out. None: any number.
    pub max_length: Option<usize>,
    /// The text of a pair that is truncated.
    pub truncation: Truncation,
    /// The number of tokens that two successive rows of one text share. None: a text has one row, and tokens over
    /// `max_length` are dropped.
    pub stride: Option<usize>,
    /// The id of the token that rows are filled up with, to `max_length`. None: they are not. Any id is
    /// taken.
    pub pad_id: Option<u32>,
    /// The columns next to the ids.
    pub columns: RowColumns,
}

/// The layout of a row: the added tokens, each with its token type, and the types of the texts.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// The tokens at the beginning of a row, between two texts, and at the end. Any id is taken.
    pub added: [Vec<(u32, i8)>; 3],
    /// The token type of each text.
    pub types: [i8; 2],
    /// The token type of each text in rows of a stride that do not show its beginning. For pairs Hugging Face
    /// tokenizers always has 0 and 1 there.
    pub overflow_types: [i8; 2],
}

/// The requested columns of [`Rows`], in addition to the ids.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowColumns {
    /// True for [`Rows::attention_mask`].
    pub attention_mask: bool,
    /// True for [`Rows::token_type_ids`].
    pub token_type_ids: bool,
    /// True for [`Rows::special_tokens_mask`].
    pub special_tokens_mask: bool,
    /// True for [`Rows::offset_mapping`].
    pub offset_mapping: bool,
    /// True for [`Rows::word_ids`].
    pub word_ids: bool,
    /// True for [`Rows::num_tokens`].
    pub num_tokens: bool,
}

/// A text, and the second text of a pair. The inner None is a null.
pub type TextPair<'a> = (Option<&'a [u8]>, Option<Option<&'a [u8]>>);

/// Encoded rows, column by column. Columns that were not requested are None.
#[derive(Default)]
pub struct Rows {
    /// The ids of all rows.
    pub ids: Vec<u32>,
    /// The end of each row in `ids`.
    pub ends: Vec<usize>,
    /// For each row, whether it is not null.
    pub valid: Vec<bool>,
    /// For each token, 1, or 0 for padding.
    pub attention_mask: Option<Vec<i8>>,
    /// For each token, 1 if it belongs to the second text of a pair, else 0.
    pub token_type_ids: Option<Vec<i8>>,
    /// For each token, 1 if it was added or is padding, else 0.
    pub special_tokens_mask: Option<Vec<i8>>,
    /// For each token two numbers: between which characters of the raw text it is. Both are 0 for an
    /// added token, and for padding.
    pub offset_mapping: Option<Vec<i32>>,
    /// For each token, the index of its word in the text; -1 for an added token, and for padding.
    pub word_ids: Option<Vec<i32>>,
    /// For each row, the number of tokens without padding.
    pub num_tokens: Option<Vec<i32>>,
    /// For each row, the index of the text that it comes from. It is there if a text may have several
    /// rows.
    pub sources: Option<Vec<i64>>,
    /// The number of tokens in all rows, without padding.
    pub tokens: usize,
    /// The number of words of the texts.
    pub words: usize,
    /// The number of tokens of these words, before rows were truncated, and each once.
    pub word_tokens: usize,
    /// The number of special tokens that the texts have, before rows were truncated.
    pub special_tokens: usize,
    /// The number of rows with truncated tokens, which are in no other row.
    pub truncated_rows: usize,
    /// The number of these tokens.
    pub truncated_tokens: usize,
    /// The most tokens that a text has, before rows were truncated, and without those around it.
    pub longest_text: usize,
}

/// A part of a row, all of whose tokens are of one kind.
enum Part<'a> {
    Text(&'a Encoding, Range<usize>),
    Added,
    Padding,
}

impl RowOptions {
    /// Return the layout of a row with `texts` texts.
    fn layout(&self, texts: usize) -> &Layout {
        &self.layouts[texts - 1]
    }

    /// Return the number of tokens added to a row with `texts` texts.
    fn added_tokens(&self, texts: usize) -> usize {
        self.layout(texts).added.iter().map(Vec::len).sum()
    }

    /// Return the number of tokens of texts that fit into a row with `texts` texts.
    fn room(&self, texts: usize) -> Option<usize> {
        self.max_length.map(|most| most.saturating_sub(self.added_tokens(texts)))
    }

    /// The least ids of a row.
    pub(super) fn padded_length(&self) -> usize {
        self.max_length.filter(|_| self.pad_id.is_some()).unwrap_or(0)
    }

    /// The lengths that the texts of a pair are truncated to, so that both fit into `room` tokens.
    fn truncated(&self, [first, second]: [usize; 2], room: usize) -> Result<[usize; 2]> {
        if room == 0 {
            return Ok([0, 0]); // whatever the truncation, as Hugging Face tokenizers do
        }
        let over = (first + second).saturating_sub(room);
        if over == 0 {
            return Ok([first, second]);
        }
        let alone = |length: usize| match length.checked_sub(over) {
            Some(left) if left > 0 => Ok(left),
            _ => Err(Error::data(format!(
                "one text of {length} tokens cannot be truncated by {over} to fit `max_length`"
            ))),
        };
        let lengths_left = match self.truncation {
            Truncation::LongestFirst => {
                let shorter = first.min(second).min(room / 2);
                let longer = room - shorter;
                if first > second { [longer, shorter] } else { [shorter, longer] }
            }
            Truncation::OnlyFirst => [alone(first)?, second],
            Truncation::OnlySecond => [first, alone(second)?],
        };
        for (left, length) in lengths_left.into_iter().zip([first, second]) {
            if let Some(stride) = self.stride.filter(|&stride| left < length && stride >= left) {
                return Err(Error::data(format!(
                    "stride {stride} is not less than the {left} tokens left of a text in a row"
                )));
            }
        }
        Ok(lengths_left)
    }

    /// The windows that a text of `length` tokens is divided into, each of `most` tokens at most.
    fn windows(&self, length: usize, most: usize) -> Result<Vec<Range<usize>>> {
        if let Some(stride) = self.stride.filter(|&stride| length > most && stride >= most) {
            let message =
                format!("stride {stride} is not less than the {most} tokens of a text in a row");
            return Err(Error::option(message));
        }
        let mut windows = Vec::new();
        let mut window = 0..length.min(most);
        loop {
            let end = window.end;
            windows.push(window);
            match self.stride {
                Some(stride) if end < length => {
                    let start = end - stride;
                    window = start..(start + most).min(length);
                }
                _ => return Ok(windows),
            }
        }
    }

    /// The windows of a pair, row by row, in the order that Hugging Face tokenizers have them.
    fn pair_windows(&self, lengths: [usize; 2]) -> Result<Vec<[Range<usize>; 2]>> {
        let lengths_left =
            self.room(2).map_or(Ok(lengths), |room| self.truncated(lengths, room))?;
        let first = self.windows(lengths[0], lengths_left[0])?;
        let second = self.windows(lengths[1], lengths_left[1])?;
        // On average a window is at least half full.
        let rows = first.len().saturating_mul(second.len());
        if rows.saturating_mul(lengths_left[0] + lengths_left[1]) / 2 > MOST_IDS {
            return Err(too_many_ids());
        }
        let both = |a: &Range<usize>, b: &Range<usize>| [a.clone(), b.clone()];
        let mut rows = Vec::with_capacity(first.len() * second.len());
        rows.push(both(&first[0], &second[0]));
        for a in &first[1..] {
            rows.extend(second.iter().map(|b| both(a, b)));
        }
        rows.extend(second[1..].iter().map(|b| both(&first[0], b)));
        Ok(rows)
    }
}

impl Tokenizer {
    /// Encode texts to rows on this thread. [`encode_rows`] also takes pairs, nulls and invalid UTF-8;
    /// [`encode_blocks`](crate::encode::encode_blocks) uses several threads.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`encode_rows`].
    pub fn encode(&self, texts: &[&str], options: &RowOptions) -> Result<Rows> {
        let texts: Vec<TextPair<'_>> =
            texts.iter().map(|text| (Some(text.as_bytes()), None)).collect();
        encode_rows(&mut self.session(0, 1), options, &texts, 0)
    }
}

/// Encodes texts to rows. Invalid UTF-8 is replaced by U+FFFD.
///
/// # Arguments
///
/// * `session` - Tokenizes texts.
/// * `options` - How tokens become rows.
/// * `texts` - The texts, or the pairs of texts. A null gives a row that is null.
/// * `first` - The index of the first of them among all texts; [`Rows::sources`] counts from it.
///
/// # Errors
///
/// Returns [`Error::Data`] if a text cannot be truncated as the options demand, if a text has 2^31 bytes or
/// more with offsets or a model other than WordPiece, or if there are 2^31 ids or more;
/// [`Error::Option`] if a text is longer than a row and the stride is not less than its tokens in a row.
pub fn encode_rows(
    session: &mut Session<'_>,
    options: &RowOptions,
    texts: &[TextPair<'_>],
    first: usize,
) -> Result<Rows> {
    caught(|| rows_of(session, options, texts, first))
}

fn rows_of(
    session: &mut Session<'_>,
    options: &RowOptions,
    texts: &[TextPair<'_>],
    first: usize,
) -> Result<Rows> {
    let columns = &options.columns;
    let bytes = texts.iter().map(|text| text.0.map_or(0, <[u8]>::len)).sum();
    let mut rows = Rows::new(options, bytes);
    let spans = columns.offset_mapping || columns.word_ids;
    let any_length = session.takes_any_length() && !spans;
    let longest = if any_length { usize::MAX } else { MOST_BYTES };
    let (mut one, mut other) = (Encoding::default(), Encoding::default());
    let mut longest_text = 0;
    for (index, pair) in texts.iter().enumerate() {
        let number = first + index;
        let &(Some(text), second @ (None | Some(Some(_)))) = pair else {
            rows.push_null(number);
            continue;
        };
        let mut read = |text: &[u8], encoding: &mut Encoding| {
            let text = repair(text).0; // it may be longer: of an invalid byte there are three
            if text.len() > longest {
                let message = format!("text {number} has {} bytes, over {longest}", text.len());
                return Err(Error::data(message));
            }
            session.encode(&text, spans, encoding);
            longest_text = longest_text.max(encoding.len());
            Ok(())
        };
        if let Some(second) = second.flatten() {
            read(text, &mut one)?;
            read(second, &mut other)?;
            let pushed = rows.push_pair(options, &one, &other, number);
            pushed.map_err(|error| error.at(format!("pair {number}")))?;
            rows.count_words(&other);
        } else if options.stride.is_some() {
            read(text, &mut one)?;
            rows.push_text(options, &one, number)?;
        } else {
            rows.lend_ids(options, &mut one);
            read(text, &mut one)?;
            rows.end_lent_row(options, &mut one, number)?;
        }
        rows.count_words(&one);
    }
    rows.longest_text = longest_text;
    Ok(rows)
}

impl Rows {
    /// Return no rows, with memory for the rows of `bytes` of text.
    fn new(options: &RowOptions, bytes: usize) -> Self {
        let RowColumns {
            attention_mask,
            token_type_ids,
            special_tokens_mask,
            offset_mapping,
            word_ids,
            num_tokens,
        } = options.columns;
        // More than most texts have: when a vector grows, all ids are copied to pages that the system
        // has to find first. Pages that nothing is written to cost no memory. The reservation may fail.
        let mut ids = Vec::new();
        let _ = ids.try_reserve_exact(bytes / 2);
        Rows {
            ids,
            attention_mask: attention_mask.then(Vec::new),
            token_type_ids: token_type_ids.then(Vec::new),
            special_tokens_mask: special_tokens_mask.then(Vec::new),
            offset_mapping: offset_mapping.then(Vec::new),
            word_ids: word_ids.then(Vec::new),
            num_tokens: num_tokens.then(Vec::new),
            sources: options.stride.is_some().then(Vec::new),
            ..Rows::default()
        }
    }

    /// The ids of each row, in order; None for a null.
    pub fn lists(&self) -> impl Iterator<Item = Option<&[u32]>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let rows = starts.zip(&self.ends).zip(&self.valid);
        rows.map(|((start, &end), &valid)| valid.then(|| &self.ids[start..end]))
    }

    fn count_words(&mut self, text: &Encoding) {
        self.words += text.words;
        self.word_tokens += text.word_tokens;
        self.special_tokens += text.special_tokens;
    }

    /// Count a text, or a pair, with `tokens` tokens that are not in its first row. With a stride they are in
    /// other rows.
    fn count_truncated(&mut self, options: &RowOptions, tokens: usize) {
        if options.stride.is_none() && tokens > 0 {
            self.truncated_rows += 1;
            self.truncated_tokens += tokens;
        }
    }

    fn push_null(&mut self, source: usize) {
        self.end_row(false, self.ids.len(), source);
    }

    /// Begin a row, and lend the vector of ids to its text, which appends to it.
    fn lend_ids(&mut self, options: &RowOptions, text: &mut Encoding) {
        let before = options.layout(1).added[0].iter().map(|&(id, _)| id);
        self.ids.extend(before);
        text.append_to(std::mem::take(&mut self.ids));
    }

    /// End the row of `lend_ids`.
    fn end_lent_row(
        &mut self,
        options: &RowOptions,
        text: &mut Encoding,
        source: usize,
    ) -> Result<()> {
        let layout = options.layout(1);
        let (begin, length) = (self.end() + layout.added[0].len(), text.len());
        let kept = length.min(options.room(1).unwrap_or(usize::MAX));
        self.check_room(options, std::iter::once(kept), 1)?;
        self.ids = text.take_ids();
        self.ids.truncate(begin + kept);
        self.count_truncated(options, length - kept);
        self.describe_added(&layout.added[0], begin);
        self.describe(Part::Text(text, 0..kept), layout.types[0], begin + kept);
        self.finish_row(options, 1, source);
        Ok(())
    }

    /// Appends the rows of a text.
    fn push_text(&mut self, options: &RowOptions, text: &Encoding, source: usize) -> Result<()> {
        let windows = options.windows(text.len(), options.room(1).unwrap_or(usize::MAX))?;
        self.check_room(options, windows.iter().map(Range::len), 1)?;
        for window in windows {
            self.push_row(options, [(text, window)], source);
        }
        Ok(())
    }

    /// Append the rows of a pair.
    fn push_pair(
        &mut self,
        options: &RowOptions,
        first: &Encoding,
        second: &Encoding,
        source: usize,
    ) -> Result<()> {
        let windows = options.pair_windows([first.len(), second.len()])?;
        self.check_room(options, windows.iter().map(|[a, b]| a.len() + b.len()), 2)?;
        let [a, b] = &windows[0];
        self.count_truncated(options, first.len() + second.len() - a.len() - b.len());
        for [a, b] in windows {
            self.push_row(options, [(first, a), (second, b)], source);
        }
        Ok(())
    }

    /// Fails if there would be too many ids with the rows of a text, or of a pair. These may be many times as
    /// large as the text.
    fn check_room(
        &self,
        options: &RowOptions,
        lengths: impl Iterator<Item = usize>,
        texts: usize,
    ) -> Result<()> {
        let least = options.padded_length();
        let added = options.added_tokens(texts);
        let ids: usize = lengths.map(|length| (length + added).max(least)).sum();
        if self.end() + ids > MOST_IDS {
            return Err(too_many_ids());
        }
        Ok(())
    }

    /// Appends a row of one text or two, with the tokens around them.
    fn push_row<const N: usize>(
        &mut self,
        options: &RowOptions,
        texts: [(&Encoding, Range<usize>); N],
        source: usize,
    ) {
        let layout = options.layout(N);
        for (number, (encoding, window)) in texts.into_iter().enumerate() {
            self.push_added(&layout.added[number]);
            let types = if window.start > 0 { layout.overflow_types } else { layout.types };
            self.ids.extend_from_slice(&encoding.ids()[window.clone()]);
            self.describe(Part::Text(encoding, window), types[number], self.ids.len());
        }
        self.finish_row(options, N, source);
    }

    /// Append the tokens after the texts of a row, and padding. `texts`: the number of its texts.
    fn finish_row(&mut self, options: &RowOptions, texts: usize, source: usize) {
        self.push_added(&options.layout(texts).added[2]);
        let (start, end) = (self.end(), self.ids.len());
        if let (Some(pad_id), Some(most)) = (options.pad_id, options.max_length) {
            self.ids.resize(end.max(start + most), pad_id);
            self.describe(Part::Padding, 0, self.ids.len());
        }
        self.tokens += end - start;
        self.end_row(true, end, source);
    }

    /// Return the end of the last row in `ids`.
    fn end(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Ends a row. `end`: where its tokens end in `ids`, without padding.
    fn end_row(&mut self, valid: bool, end: usize, source: usize) {
        let start = self.end();
        if let Some(lengths) = &mut self.num_tokens {
            lengths.push((end - start) as i32);
        }
        if let Some(sources) = &mut self.sources {
            sources.push(source as i64);
        }
        self.ends.push(self.ids.len());
        self.valid.push(valid);
    }

    #[inline]
    fn push_added(&mut self, added: &[(u32, i8)]) {
        self.ids.extend(added.iter().map(|&(id, _)| id));
        self.describe_added(added, self.ids.len());
    }

    /// Fill the columns like [`Rows::describe`] for added tokens.
    #[inline]
    fn describe_added(&mut self, added: &[(u32, i8)], end: usize) {
        for (&(_, type_id), end) in added.iter().zip(end - added.len() + 1..) {
            self.describe(Part::Added, type_id, end);
        }
    }

    /// Fill the columns next to the ids, up to the token `end`, for a part.
    #[inline]
    fn describe(&mut self, part: Part<'_>, type_id: i8, end: usize) {
        fill(&mut self.attention_mask, end, !matches!(part, Part::Padding) as i8);
        fill(&mut self.token_type_ids, end, type_id);
        fill(&mut self.special_tokens_mask, end, !matches!(part, Part::Text(..)) as i8);
        if let Some(offsets) = &mut self.offset_mapping {
            offsets.reserve(2 * end - offsets.len());
            if let Part::Text(encoding, window) = &part {
                offsets.extend(encoding.offsets(window.clone()).flatten().map(|at| at as i32));
            }
            offsets.resize(2 * end, 0);
        }
        if let Some(words) = &mut self.word_ids {
            words.reserve(end - words.len());
            if let Part::Text(encoding, window) = part {
                words.extend(encoding.spans[window].iter().map(|span| span.word as i32));
            }
            words.resize(end, -1);
        }
    }
}

/// The error of more ids than the offsets of a batch can count.
pub fn too_many_ids() -> Error {
    Error::data("more than 2^31 ids in one batch; encode fewer or shorter texts together")
}

fn fill(column: &mut Option<Vec<i8>>, end: usize, value: i8) {
    if let Some(column) = column {
        column.resize(end, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::added_tokens::AddedToken;
    use crate::encode::blocks::encode_blocks;
    use crate::encode::tokenizer::TokenizerOptions;
    use crate::encode::wordpiece::{UnkScope, WordPieceOptions};
    use crate::text::bert::TextOptions;
    use wordpiece_testing::Random;

    fn bert_layouts(cls: u32, sep: u32) -> [Layout; 2] {
        let (types, overflow_types) = ([0, 1], [0, 1]);
        let one = [vec![(cls, 0)], vec![], vec![(sep, 0)]];
        let pair = [vec![(cls, 0)], vec![(sep, 0)], vec![(sep, 1)]];
        [one, pair].map(|added| Layout { added, types, overflow_types })
    }

    const ALL: RowColumns = RowColumns {
        attention_mask: true,
        token_type_ids: true,
        special_tokens_mask: true,
        offset_mapping: true,
        word_ids: true,
        num_tokens: true,
    };

    fn tokenizer(bits: u32) -> Tokenizer {
        let text = TextOptions {
            clean_text: bits & 1 == 0,
            handle_chinese_chars: bits & 2 == 0,
            strip_accents: bits & 4 == 0,
            lowercase: bits & 8 == 0,
            split_punctuation: bits & 16 == 0,
        };
        let unk_scope = if bits & 32 == 0 { UnkScope::Word } else { UnkScope::Character };
        let model = WordPieceOptions { unk_scope, max_word_length: 20, ..Default::default() };
        // Caches hold ids of 16 bits, and larger ones.
        let others = if bits & 3 == 0 { 1 << 16 } else { 0 };
        let others: Vec<String> = (0..others).map(|n| format!("{n}")).collect();
        let tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##a"].into_iter();
        let tokens = tokens.chain(others.iter().map(String::as_str));
        let vocabulary: Vec<&str> = tokens.chain(["b", "ab", "##e", "中"]).collect();
        let added_tokens = vec![added("[SEP]", 3), added("[UNK]", 1)];
        let options = TokenizerOptions::new(&vocabulary, text, model);
        Tokenizer::new(TokenizerOptions { unk_id: Some(1), added_tokens, ..options }).unwrap()
    }

    fn added(content: &str, id: u32) -> AddedToken {
        AddedToken { content: content.into(), id, ..AddedToken::default() }
    }

    /// Return up to `most` letters, marks, special tokens and invalid UTF-8.
    fn random_text(random: &mut Random, most: usize) -> Vec<u8> {
        let encoding: [&[u8]; 16] = [
            b"a",
            b"ab",
            b"E",
            b" ",
            b".",
            b"[SEP]",
            b"[SE",
            b"\0",
            b"\xff",
            b"\xe4\xb8",
            "É".as_bytes(),
            "e\u{301}".as_bytes(),
            "中".as_bytes(),
            "\u{1d165}\u{323}".as_bytes(),
            "\u{200d}".as_bytes(),
            b"abcdefghijklmnopqrstuvw",
        ];
        let length = random.below(most);
        (0..length).flat_map(|_| encoding[random.below(encoding.len())]).copied().collect()
    }

    fn options(random: &mut Random, columns: RowColumns) -> RowOptions {
        let max_length = (random.below(3) > 0).then(|| 8 + random.below(30));
        RowOptions {
            layouts: if random.below(3) > 0 { bert_layouts(2, 3) } else { Default::default() },
            max_length,
            truncation: Truncation::LongestFirst,
            stride: max_length.filter(|_| random.below(2) > 0).map(|_| random.below(2)),
            pad_id: max_length.filter(|_| random.below(2) > 0).map(|_| 0),
            columns,
        }
    }

    #[test]
    fn rows_of_any_bytes_are_the_same_however_they_are_read() {
        let mut random = Random::new(1);
        for round in 0..64 {
            let tokenizer = tokenizer(round);
            let most = [3, 40, 300][random.below(3)];
            let given: Vec<_> = (0..30).map(|_| random_text(&mut random, most)).collect();
            let paired = random.below(2) > 0;
            let texts: Vec<TextPair<'_>> = (0..given.len())
                .map(|i| (Some(&given[i][..]), paired.then(|| Some(&given[29 - i][..]))))
                .collect();
            let full = options(&mut random, ALL);
            let bare = RowOptions { columns: RowColumns::default(), ..full.clone() };
            let rows = encode_rows(&mut tokenizer.session(0, 1), &full, &texts, 0).unwrap();
            let bare = encode_rows(&mut tokenizer.session(0, 1), &bare, &texts, 0).unwrap();
            let blocks = encode_blocks(&tokenizer, &full, &texts, 3, Ok).unwrap();
            let lists: Vec<_> = rows.lists().collect();
            assert_eq!(lists, bare.lists().collect::<Vec<_>>());
            assert_eq!(lists, blocks.iter().flat_map(Rows::lists).collect::<Vec<_>>());
            let offsets = rows.offset_mapping.as_ref().unwrap();
            assert_eq!(offsets.len(), 2 * rows.ids.len());
            assert!(offsets.chunks(2).all(|span| 0 <= span[0] && span[0] <= span[1]));
            assert_eq!(rows.word_ids.as_ref().unwrap().len(), rows.ids.len());
        }
    }

    #[test]
    fn many_ids_are_several_batches_however_many_threads_there_are() {
        let tokenizer = tokenizer(0);
        let padded = |max_length| RowOptions {
            max_length: Some(max_length),
            stride: None,
            pad_id: Some(0),
            ..options(&mut Random::new(1), ALL)
        };
        let texts: Vec<TextPair<'_>> = vec![(Some(b"a b ab"), None); 100];
        for threads in [1, 2] {
            let blocks = encode_blocks(&tokenizer, &padded(MOST_IDS / 8), &texts, threads, Ok);
            let blocks = blocks.unwrap();
            assert!(blocks.len() > 12 && blocks.iter().all(|rows| rows.ids.len() <= MOST_IDS));
            assert_eq!(blocks.iter().map(|rows| rows.words).sum::<usize>(), 300);
            assert_eq!(blocks.iter().map(|rows| rows.ends.len()).sum::<usize>(), 100);
        }
        let encode = |texts| encode_rows(&mut tokenizer.session(0, 1), &padded(MOST_IDS), texts, 0);
        assert_eq!(encode(&texts[..1]).unwrap().ids.len(), MOST_IDS);
        let error = encode(&texts[..2]).err();
        assert_eq!(error, Some(too_many_ids()));
    }

    #[test]
    fn a_stride_that_is_not_less_than_a_row_is_an_error() {
        let tokenizer = tokenizer(0);
        let options = |stride, max_length| RowOptions {
            layouts: bert_layouts(2, 3),
            max_length: Some(max_length),
            stride: Some(stride),
            pad_id: None,
            ..options(&mut Random::new(1), ALL)
        };
        let texts: [TextPair<'_>; 1] = [(Some(b"a b ab a"), None)];
        for (stride, max_length) in [(2, 4), (3, 4), (0, 2), (5, 1)] {
            let error =
                encode_rows(&mut tokenizer.session(0, 1), &options(stride, max_length), &texts, 0);
            assert!(matches!(error.err(), Some(Error::Option(_))), "{stride} {max_length}");
        }
        assert!(encode_rows(&mut tokenizer.session(0, 1), &options(1, 4), &texts, 0).is_ok());
    }

    #[test]
    fn texts_are_measured_once_they_are_decoded() {
        let tokenizer = tokenizer(0);
        let options = RowOptions { stride: None, ..options(&mut Random::new(1), ALL) };
        let text = vec![0xFF; MOST_BYTES / 3 + 1];
        let error =
            encode_rows(&mut tokenizer.session(0, 1), &options, &[(Some(&text), None)], 0).err();
        let bytes = 3 * text.len();
        let message = format!("text 0 has {bytes} bytes, over {MOST_BYTES}");
        assert_eq!(error, Some(Error::Data(message)));
    }
}
