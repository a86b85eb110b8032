//! Byte-pair encoding: a word begins as symbols, and the pair with the lowest rank becomes one symbol,
//! the leftmost first, again and again. That is how Hugging Face tokenizers apply merges. Nearly always
//! the tokens can be found faster than by doing that: see [`longest`].
//!
//! The ranks of all adjacent pairs are stored with the symbols. In a short word, as nearly all
//! are, the lowest is found by looking at them all. In a long one a heap finds it, and symbols are
//! linked, so that a word of any length takes time of n log n: no pair is looked up that a merge has
//! not made.

mod longest;
mod merge_table;
mod parts;
mod ranks;
mod superwords;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use foldhash::{HashMap, HashSet};

use crate::base::error::{Error, Result};
use crate::base::trie::NONE;
use crate::encode::byte_fallback::ByteTokens;
use crate::encode::vocabulary::{Token, Vocabulary};
use crate::text::byte_level::{byte_character, character_byte};
use crate::text::marks::{SPACE_MARK, WORD_END, WordBoundary};

use longest::{Longest, LongestScratch};
use merge_table::MergeTable;
pub(crate) use parts::Parts;
pub use ranks::merges_of_ranks;
pub(crate) use superwords::Superwords;

/// The options of byte-pair encoding. Without an unknown token, a character that is not a symbol
/// vanishes. Prefixes of symbols inside a word, `continuing_subword_prefix` of a `tokenizer.json`, are not known.
///
/// # Examples
///
/// ```
/// use wordpiece_core::encode::{BpeOptions, RowOptions, Tokenizer, TokenizerOptions};
/// use wordpiece_core::text::{TextOptions, WordBoundary};
///
/// let vocabulary = ["[UNK]", "h", "u", "g", "g</w>", "ug", "hug</w>", "ug</w>"];
/// let merges = [(2, 4), (1, 7)];
/// let word_boundary = WordBoundary::End;
/// let model = BpeOptions { merges: &merges, word_boundary, ..BpeOptions::default() };
/// let options = TokenizerOptions::new(&vocabulary, TextOptions::default(), model);
/// let tokenizer = Tokenizer::new(TokenizerOptions { unk_id: Some(0), ..options })?;
/// assert_eq!(tokenizer.encode(&["Hug pug"], &RowOptions::default())?.ids, [6, 0, 7]);
/// # Ok::<(), wordpiece_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct BpeOptions<'a> {
    /// The pairs that are merged, by ids, the first one first.
    pub merges: &'a [(u32, u32)],
    /// The mark of the beginnings or ends of words.
    pub word_boundary: WordBoundary,
    /// True to encode a character that is not a symbol as the tokens `<0xNN>` of its bytes, if all of them
    /// exist.
    pub byte_fallback: bool,
    /// True to make one unknown token of adjacent unknown characters.
    pub fuse_unk: bool,
    /// True to keep a word that is a token whole.
    pub ignore_merges: bool,
    /// Indices of merges that share the rank of the previous merge; among these the leftmost in a word is
    /// made first. sentencepiece ranks by scores, which may be equal.
    pub tied: &'a [u32],
}

/// The merges of a vocabulary, and its symbols.
pub(crate) struct Bpe {
    word_boundary: WordBoundary,
    unk_id: Option<u32>,
    byte_fallback: bool,
    fuse_unk: bool,
    /// The ids of symbols inside a word, and at its end.
    inner: Symbols,
    last: Symbols,
    bytes: ByteTokens,
    merges: MergeTable,
    /// The token that the pair of each rank makes; `NONE` if several pairs have the rank.
    made: Vec<u32>,
    /// The tokens that pairs make whose rank is not theirs alone.
    made_of_tied: HashMap<(u32, u32), u32>,
    longest: Option<Longest>,
    /// The number of bytes of each token.
    written: Vec<u32>,
    /// Tokens by the bytes of a word, if a word that is a token stays whole: only tokens that merges would not make of
    /// that word.
    whole: HashMap<Box<[u8]>, u32>,
    /// The rule for splitting words into parts; None if they must not be split.
    parts: Option<Parts>,
}

/// The ids of characters as symbols, or `NONE`.
struct Symbols {
    /// Of ASCII, and of all that GPT-2 writes for bytes.
    first: [u32; 1 << 9],
    others: HashMap<char, u32>,
}

/// Scratch memory for tokenizing words, kept to avoid allocations.
#[derive(Default)]
pub struct BpeScratch {
    ids: Vec<u32>,
    /// The number of bytes of the word that each symbol represents.
    lengths: Vec<u32>,
    /// The rank of each symbol with the next one, or `NONE`.
    ranks: Vec<u32>,
    /// For long words: the symbols before and after each, or `NONE`.
    links: Vec<[u32; 2]>,
    /// Ranks in the upper bits, and in the lower ones the index of the left symbol.
    heap: BinaryHeap<Reverse<u64>>,
    longest: LongestScratch,
    /// Pairs that may be merged to superwords.
    found: Vec<usize>,
    /// Pairs that were looked up and entries that the heap has given, for tests of how much work a
    /// word is.
    #[cfg(test)]
    work: usize,
}

/// The most symbols of a word whose pairs are all looked at for each merge.
const SHORT: usize = 40;

impl Bpe {
    /// Makes the model of a vocabulary. Merges that make a hidden token are left out.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if an id is beyond the vocabulary, if a pair occurs twice, or if the
    /// token of a pair is missing.
    pub fn new(vocabulary: Vocabulary<'_>, options: BpeOptions<'_>) -> Result<Self> {
        let Vocabulary { tokens: vocabulary, unk_id, hidden } = vocabulary;
        let BpeOptions { merges, word_boundary, byte_fallback, fuse_unk, .. } = options;
        let mut ids: HashMap<&str, u32> = vocabulary.iter().copied().zip(0..).collect();
        let mut table = MergeTable::new(merges.len());
        let mut made: Vec<u32> = Vec::with_capacity(merges.len());
        let tied: HashSet<u32> = options.tied.iter().copied().collect();
        if let Some(at) = tied.iter().find(|&&at| at as usize >= merges.len()) {
            return Err(Error::data(format!("tied: {at} of {} merges", merges.len())));
        }
        let mut rank_before = 0;
        let mut string = String::new();
        for (rank, &(left, right)) in merges.iter().enumerate() {
            let token = |id: u32| {
                vocabulary
                    .get(id as usize)
                    .ok_or_else(|| Error::data(format!("merge {rank}: no token has the id {id}")))
            };
            string.clear();
            string.extend([*token(left)?, *token(right)?]);
            let id = ids.get(string.as_str()).ok_or_else(|| {
                Error::data(format!("merge {rank}: its result {string:?} is not a token"))
            })?;
            let few = u32::try_from(rank).ok().filter(|&rank| rank != NONE);
            let at = few.ok_or_else(|| Error::data("merges: 2^32 or more"))?;
            let mut rank = at;
            if tied.contains(&at) {
                rank = rank_before;
            }
            rank_before = rank;
            if !hidden.contains(id) && !table.insert(left, right, rank) {
                return Err(Error::data(format!("merge {at}: the pair occurs twice")));
            }
            made.push(*id);
        }
        ids.retain(|_, id| !hidden.contains(id));
        let suffix = if word_boundary == WordBoundary::End { WORD_END } else { "" };
        let inner = Symbols::new(&ids, "");
        let longest = match word_boundary {
            WordBoundary::End => None, // symbols are others at the end of a word
            _ if !tied.is_empty() => None,
            boundary => {
                let string = |&token: &&str| match boundary {
                    WordBoundary::Bytes => bytes_of(token),
                    _ => Some(token.as_bytes().to_vec()),
                };
                let strings: Vec<_> = vocabulary.iter().map(string).collect();
                let first = |id: u32| vocabulary[id as usize].chars().next();
                let is_symbol = |id: u32| first(id).is_some_and(|c| inner.id(c) == id);
                let merges =
                    merges.iter().zip(&made).map(|(&(left, right), &id)| (left, right, id));
                Longest::new(&strings, is_symbol, merges, &table)?
            }
        };
        // The first merge of a class precedes a tied one, the others are tied.
        let classes = tied.iter().flat_map(|&at| [at.saturating_sub(1) as usize, at as usize]);
        let classes: Vec<usize> = classes.filter(|&at| at < merges.len()).collect();
        let made_of_tied = classes.iter().map(|&at| (merges[at], made[at])).collect();
        classes.iter().for_each(|&at| made[at] = NONE);
        let mut whole = HashMap::default();
        if options.ignore_merges {
            let is_made = |id: u32| longest.as_ref().is_some_and(|longest| longest.makes(id));
            let others = ids.iter().filter(|&(_, &id)| !is_made(id));
            let key = |token: &str| match word_boundary {
                WordBoundary::Bytes => bytes_of(token),
                _ => Some(token.into()),
            };
            whole.extend(others.filter_map(|(token, &id)| Some((key(token)?.into(), id))));
        }
        let bytes = ByteTokens::new(&ids);
        let unknown: HashSet<u32> = bytes.ids().chain(unk_id).collect();
        let unknown_ends = (unk_id.is_some() || byte_fallback)
            && !merges
                .iter()
                .any(|(left, right)| unknown.contains(left) || unknown.contains(right));
        let has_marks = word_boundary != WordBoundary::Bytes && inner.id(SPACE_MARK) != NONE;
        let splits = has_marks && !options.ignore_merges && suffix.is_empty();
        Ok(Bpe {
            parts: splits.then(|| Parts::new(ids.keys().copied(), unknown_ends)),
            inner,
            last: Symbols::new(&ids, suffix),
            bytes,
            longest,
            written: vocabulary.iter().map(|token| token.len() as u32).collect(),
            merges: table,
            made,
            made_of_tied,
            whole,
            word_boundary,
            unk_id,
            byte_fallback,
            fuse_unk,
        })
    }

    /// The mark of the beginnings or ends of words.
    pub fn word_boundary(&self) -> WordBoundary {
        self.word_boundary
    }

    /// See [`Model::parts`](crate::encode::model::Model::parts).
    pub(crate) fn parts(&self) -> Option<&Parts> {
        self.parts.as_ref()
    }

    /// Splits a word into its tokens.
    ///
    /// # Arguments
    ///
    /// * `word` - The word, normalized, with a mark before it if words have one; of fewer than 2^31
    ///   bytes.
    /// * `scratch` - What it is tokenized in.
    /// * `tokens` - Where the tokens are written. It is cleared first. Their lengths are in bytes of
    ///   the word; for a word of bytes, in bytes of GPT-2's characters for them.
    pub fn tokens(&self, word: &str, scratch: &mut BpeScratch, tokens: &mut Vec<Token>) {
        tokens.clear();
        if word.is_empty() {
            return; // even if the empty string is a token
        }
        if let Some(&id) = self.whole.get(word.as_bytes()) {
            return tokens.push(Token { id, length: self.written[id as usize] });
        }
        if let Some(longest) = &self.longest
            && longest.tokenize(word.as_bytes(), &self.merges, &mut scratch.longest)
        {
            let ids = scratch.longest.ids.iter();
            let token = |&id: &u32| Token { id, length: self.written[id as usize] };
            return tokens.extend(ids.map(token));
        }
        self.merged_tokens(word, scratch, tokens);
    }

    /// Tokenize a word by applying merges one by one.
    fn merged_tokens(&self, word: &str, scratch: &mut BpeScratch, tokens: &mut Vec<Token>) {
        self.begin(word, scratch);
        if scratch.ids.len() <= SHORT {
            self.merge_short(scratch);
        } else {
            self.merge_long(scratch);
        }
        scratch.push_tokens(tokens);
    }

    /// Writes the symbols of a word, with the ranks of their pairs.
    fn begin(&self, word: &str, scratch: &mut BpeScratch) {
        let BpeScratch { ids, lengths, ranks, .. } = scratch;
        ids.clear();
        lengths.clear();
        ranks.clear();
        if self.word_boundary == WordBoundary::Bytes {
            self.push_symbols(word.bytes().map(byte_character), scratch);
        } else {
            self.push_symbols(word.chars(), scratch);
        }
        let BpeScratch { ids, ranks, .. } = scratch;
        ranks.extend(ids.windows(2).map(|pair| self.merges.rank(pair[0], pair[1])));
        ranks.extend(ids.last().map(|_| NONE));
    }

    fn push_symbols(&self, characters: impl Iterator<Item = char>, scratch: &mut BpeScratch) {
        let BpeScratch { ids, lengths, .. } = scratch;
        let mut push = |id: u32, length: u32| {
            ids.push(id);
            lengths.push(length);
        };
        let mut unknown: Option<u32> = None; // the bytes of an unknown token that is not written yet
        let unk_id = self.unk_id.unwrap_or(NONE);
        let mut characters = characters.peekable();
        while let Some(c) = characters.next() {
            let is_last = characters.peek().is_none();
            let length = c.len_utf8() as u32;
            let id = if is_last { &self.last } else { &self.inner }.id(c);
            if id != NONE {
                if let Some(length) = unknown.take() {
                    push(unk_id, length);
                }
                push(id, length);
            } else if self.byte_fallback
                && let Some(tokens) = self.byte_tokens(c, is_last)
            {
                tokens.into_iter().for_each(|token| push(token, 1));
            } else if unk_id != NONE {
                unknown = match unknown {
                    Some(before) if self.fuse_unk => Some(before + length),
                    Some(before) => {
                        push(unk_id, before);
                        Some(length)
                    }
                    None => Some(length),
                };
            }
        }
        if let Some(length) = unknown {
            push(unk_id, length);
        }
    }

    /// The tokens of the bytes of a character, and of what marks the end of the word, if it is there.
    /// None if one of them is missing.
    fn byte_tokens(&self, c: char, is_last: bool) -> Option<Vec<u32>> {
        let suffix = is_last && self.word_boundary == WordBoundary::End;
        let mut string = String::from(c);
        string.push_str(if suffix { WORD_END } else { "" });
        Some(self.bytes.of(string.as_bytes())?.collect())
    }

    fn merge_short(&self, scratch: &mut BpeScratch) {
        let BpeScratch { ids, lengths, ranks, .. } = scratch;
        loop {
            let (mut at, mut best) = (0, NONE);
            for (index, &rank) in ranks.iter().enumerate() {
                if rank < best {
                    (at, best) = (index, rank);
                }
            }
            if best == NONE {
                return;
            }
            ids[at] = self.made(best, ids[at], ids[at + 1]);
            lengths[at] += lengths[at + 1];
            ids.remove(at + 1);
            lengths.remove(at + 1);
            ranks.remove(at + 1);
            ranks[at] = ids.get(at + 1).map_or(NONE, |&next| self.merges.rank(ids[at], next));
            if at > 0 {
                ranks[at - 1] = self.merges.rank(ids[at - 1], ids[at]);
            }
        }
    }

    fn merge_long(&self, scratch: &mut BpeScratch) {
        let rank = |left, right, _| self.merges.rank(left, right);
        scratch.merge(rank, |rank, left, right| self.made(rank, left, right));
    }

    /// The token that a pair of this rank makes.
    #[inline]
    fn made(&self, rank: u32, left: u32, right: u32) -> u32 {
        match self.made[rank as usize] {
            NONE => self.made_of_tied[&(left, right)],
            id => id,
        }
    }
}

impl BpeScratch {
    /// Merges symbols as [`BpeScratch::merge`] does. None of them is `NONE`, unless it stays alone.
    pub(crate) fn merge_all(
        &mut self,
        symbols: &mut Vec<u32>,
        rank: impl Fn(u32, u32, u32) -> u32,
        made: impl Fn(u32, u32, u32) -> u32,
    ) {
        self.ids.clone_from(symbols);
        self.lengths.clear();
        self.lengths.resize(symbols.len(), 0);
        self.ranks.clear();
        self.ranks.extend(symbols.windows(2).map(|pair| rank(pair[0], pair[1], 0)));
        self.ranks.extend(symbols.last().map(|_| NONE));
        self.merge(rank, made);
        symbols.clear();
        let mut at = if self.ids.is_empty() { NONE } else { 0 };
        while at != NONE {
            symbols.push(self.ids[at as usize]);
            at = self.links[at as usize][1];
        }
    }

    /// Merges with a heap. Symbols that are gone have the id `NONE`, and no rank.
    ///
    /// # Arguments
    ///
    /// * `rank` - The rank of a pair, or `NONE`; given is the pair, and a rank that it must not be below.
    /// * `made` - The symbol that a rank and its pair make.
    #[inline]
    fn merge(&mut self, rank: impl Fn(u32, u32, u32) -> u32, made: impl Fn(u32, u32, u32) -> u32) {
        self.link();
        while let Some(Reverse(top)) = self.heap.pop() {
            let (best, at) = ((top >> 32) as u32, top as u32 as usize);
            self.count_work(1);
            if self.ranks[at] != best {
                continue; // another merge was faster
            }
            let [before, right] = self.links[at];
            let behind = self.links[right as usize][1];
            self.ids[at] = made(best, self.ids[at], self.ids[right as usize]);
            self.lengths[at] += self.lengths[right as usize];
            self.ids[right as usize] = NONE;
            self.ranks[right as usize] = NONE;
            self.links[at][1] = behind;
            self.ranks[at] = NONE;
            let rank = |left, right| rank(left, right, best + 1);
            if behind != NONE {
                self.links[behind as usize][0] = at as u32;
                self.rank_again(at, rank);
            }
            if before != NONE {
                self.rank_again(before as usize, rank);
            }
        }
    }

    /// Look up the new pair of a symbol and the next one.
    #[inline]
    fn rank_again(&mut self, at: usize, rank: impl Fn(u32, u32) -> u32) {
        let right = self.links[at][1] as usize;
        let rank = rank(self.ids[at], self.ids[right]);
        self.ranks[at] = rank;
        if rank != NONE {
            self.heap.push(heap_entry(rank, at));
        }
        self.count_work(1);
    }

    /// Links the symbols, and fills the heap with their pairs.
    fn link(&mut self) {
        let count = self.ids.len() as u32;
        self.links.clear();
        self.links.extend((0..count).map(|at| {
            [at.checked_sub(1).unwrap_or(NONE), if at + 1 < count { at + 1 } else { NONE }]
        }));
        let mut entries = std::mem::take(&mut self.heap).into_vec();
        entries.clear();
        entries.reserve(self.ids.len());
        let pairs = self.ranks.iter().enumerate().filter(|(_, rank)| **rank != NONE);
        entries.extend(pairs.map(|(at, &rank)| heap_entry(rank, at)));
        self.heap = entries.into();
        self.count_work(count as usize);
    }

    fn push_tokens(&self, tokens: &mut Vec<Token>) {
        let left = self.ids.iter().zip(&self.lengths).filter(|(id, _)| **id != NONE);
        tokens.reserve(self.ids.len());
        tokens.extend(left.map(|(&id, &length)| Token { id, length }));
    }

    #[inline]
    fn count_work(&mut self, _work: usize) {
        #[cfg(test)]
        {
            self.work += _work;
        }
    }
}

fn heap_entry(rank: u32, at: usize) -> Reverse<u64> {
    Reverse((rank as u64) << 32 | at as u64)
}

/// Return the bytes for GPT-2's characters of a token; None if it has another character.
fn bytes_of(token: &str) -> Option<Vec<u8>> {
    token.chars().map(character_byte).collect()
}

impl Symbols {
    fn new(ids: &HashMap<&str, u32>, suffix: &str) -> Self {
        let mut symbols = Symbols { first: [NONE; 1 << 9], others: HashMap::default() };
        for (token, &id) in ids {
            let mut characters = token.strip_suffix(suffix).unwrap_or_default().chars();
            if let (Some(c), None) = (characters.next(), characters.next()) {
                match symbols.first.get_mut(c as usize) {
                    Some(known) => *known = id,
                    None => drop(symbols.others.insert(c, id)),
                }
            }
        }
        symbols
    }

    #[inline]
    fn id(&self, c: char) -> u32 {
        match self.first.get(c as usize) {
            Some(&id) => id,
            None => self.others.get(&c).copied().unwrap_or(NONE),
        }
    }
}
