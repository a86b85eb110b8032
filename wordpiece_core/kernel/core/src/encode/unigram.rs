//! The unigram language model: of all the segmentations of a word into tokens, the one whose scores (the
//! logarithms of probabilities) have the largest sum.
//!
//! The best segmentation of a word is found by Viterbi's algorithm, in one pass: for each place in the word,
//! the best segmentation of the text before it is known, and every token that begins there extends it. The tokens
//! that begin at a place are found by walking a trie of all of them, byte by byte. So a word takes time in
//! proportion to its bytes and to the longest token.
//!
//! Ties are broken like in the peers: the first of equal sums stays. Hugging
//! Face tokenizers adds up 64-bit numbers within each word. sentencepiece adds up 32-bit numbers from
//! the beginning of the text, so that near-ties in a word may depend on earlier text: see
//! [`Unigram::rounds`].

mod rounding;

use foldhash::{HashMap, HashSet};

use crate::base::error::{Error, Result};
use crate::base::trie::{INITIAL_ROOT, NONE, Trie};
use crate::encode::byte_fallback::ByteTokens;
use crate::encode::vocabulary::{Token, Vocabulary};

use rounding::{ScoreSum, is_exact};

/// The options of a unigram language model.
///
/// # Examples
///
/// ```
/// use wordpiece_core::encode::{RowOptions, Tokenizer, TokenizerOptions, UnigramOptions};
/// use wordpiece_core::text::TextOptions;
///
/// let vocabulary = ["<unk>", "▁h", "ug", "▁hu", "g"];
/// let scores = [0.0, -3.0, -3.0, -4.0, -8.0];
/// let model = UnigramOptions { scores: &scores, ..UnigramOptions::default() };
/// let options = TokenizerOptions::new(&vocabulary, TextOptions::default(), model);
/// let tokenizer = Tokenizer::new(TokenizerOptions { unk_id: Some(0), ..options })?;
/// assert_eq!(tokenizer.encode(&["Hug"], &RowOptions::default())?.ids, [1, 2]);
/// # Ok::<(), wordpiece_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct UnigramOptions<'a> {
    /// The natural logarithm of the probability of each token, by id.
    pub scores: &'a [f64],
    /// True to encode an unknown character as the tokens `<0xNN>` of its bytes.
    pub byte_fallback: bool,
    /// True to round sums like sentencepiece, and to find only ordinary tokens in words; false for the behavior of
    /// Hugging Face tokenizers.
    pub of_sentencepiece: bool,
    /// The ids of the user-defined symbols of sentencepiece, which win over all others: the score of one
    /// is 0.1 for each of its bytes but the first, as in its version 0.2.3.
    pub user_defined: &'a [u32],
}

/// The scores of a vocabulary.
pub(crate) struct Unigram {
    trie: Trie,
    scores: Vec<f64>,
    unk_id: u32,
    unk_score: f64,
    /// None without byte fallback.
    bytes: Option<Box<ByteTokens>>,
    of_sentencepiece: bool,
    /// The scores in 32 bits, if sums are rounded.
    rounded: Option<Vec<f32>>,
}

/// The difference between the least score and the score of an unknown character.
const UNK_PENALTY: f64 = 10.0;

/// Scratch memory for tokenizing words, kept to avoid allocations.
#[derive(Default)]
pub struct UnigramScratch {
    nodes: Vec<Node<f64>>,
    rounded: Vec<Node<f32>>,
    /// The pieces of a word: where each begins and ends, and its id.
    pieces: Vec<Piece>,
    /// True for each place of a word where a piece ends.
    chosen: Vec<bool>,
    /// The scores of the pieces, in 32 bits.
    pub(crate) added: Vec<f32>,
}

/// The start, the end and the id of a piece of a word.
type Piece = (u32, u32, u32);

/// The best segmentation of a word up to a place: its sum, and its last token.
#[derive(Clone, Copy, Default)]
struct Node<S> {
    score: S,
    /// `NONE` if there is none.
    start: u32,
    id: u32,
}

impl Unigram {
    /// Makes the model of a vocabulary.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if there are not as many scores as tokens, if one is infinite, or no
    /// number; for `of_sentencepiece` with byte fallback if there is no token for a byte; and
    /// [`Error::Option`] if there is no unknown token.
    pub fn new(vocabulary: Vocabulary<'_>, options: UnigramOptions<'_>) -> Result<Self> {
        let UnigramOptions { scores, byte_fallback, of_sentencepiece, user_defined } = options;
        let needed = || Error::option("unk_token: unigram needs one");
        let unk_id = vocabulary.unk_id.ok_or_else(needed)?;
        let ids: HashMap<&str, u32> = vocabulary.shown().collect();
        let vocabulary = vocabulary.tokens;
        check_scores(scores, vocabulary.len())?;
        let bytes = byte_fallback.then(|| Box::new(ByteTokens::new(&ids)));
        let mut found: Vec<(&str, u32)> = ids.iter().map(|(&token, &id)| (token, id)).collect();
        if of_sentencepiece {
            let byte_ids: HashSet<u32> = bytes.iter().flat_map(|bytes| bytes.ids()).collect();
            found.retain(|(_, id)| *id != unk_id && !byte_ids.contains(id));
            if bytes.as_ref().is_some_and(|bytes| bytes.ids().count() < 256) {
                return Err(Error::data("byte_fallback: a token <0xNN> is missing"));
            }
        }
        let user_defined: HashSet<u32> = user_defined.iter().copied().collect();
        let ordinary = found.iter().filter(|(_, id)| !user_defined.contains(id));
        let found_scores = ordinary.map(|&(_, id)| scores[id as usize]);
        let unk_score = match of_sentencepiece {
            true => {
                f64::from(found_scores.fold(f64::INFINITY, f64::min) as f32 - UNK_PENALTY as f32)
            }
            false => scores.iter().copied().fold(f64::INFINITY, f64::min) - UNK_PENALTY,
        };
        let mut scores = scores.to_vec();
        for &id in &user_defined {
            let unknown =
                || Error::data(format!("user_defined: {id} of {} tokens", vocabulary.len()));
            let token = vocabulary.get(id as usize).ok_or_else(unknown)?;
            scores[id as usize] = f64::from((0.1 * (token.len() as f64 - 1.0)) as f32);
        }
        check_scores(&scores, vocabulary.len())?;
        let exact = found.iter().all(|&(_, id)| is_exact(scores[id as usize]));
        let rounded = (of_sentencepiece && !exact)
            .then(|| scores.iter().map(|&score| score as f32).collect());
        let trie = Trie::new([found, Vec::new()])?;
        Ok(Unigram { trie, scores, unk_id, unk_score, bytes, of_sentencepiece, rounded })
    }

    /// Splits a word into its tokens.
    ///
    /// # Arguments
    ///
    /// * `word` - The word, normalized, with its mark; of fewer than 2^31 bytes.
    /// * `scratch` - What it is tokenized in.
    /// * `tokens` - Where the tokens are written. It is cleared first. A token of length 0
    ///   covers the same bytes as the one before it.
    pub fn tokens(&self, word: &str, scratch: &mut UnigramScratch, tokens: &mut Vec<Token>) {
        let UnigramScratch { nodes, pieces, .. } = scratch;
        self.find_best(word, &self.scores, self.unk_score, 0.0, nodes, pieces);
        self.push_tokens(word, &scratch.pieces, tokens);
    }

    fn score(&self, id: u32) -> f64 {
        if id == self.unk_id { self.unk_score } else { self.scores[id as usize] }
    }

    /// Finds the best segmentation of a word: `nodes` has a node for each byte offset.
    #[inline]
    fn find_best<S: ScoreSum>(
        &self,
        word: &str,
        scores: &[S],
        unk_score: S,
        sum: S,
        nodes: &mut Vec<Node<S>>,
        pieces: &mut Vec<Piece>,
    ) {
        let bytes = word.as_bytes();
        nodes.clear();
        nodes.resize(bytes.len() + 1, Node { score: S::default(), start: NONE, id: NONE });
        nodes[0].score = sum;
        let (mut at, mut frontier) = (0, 0);
        while at < bytes.len() {
            let here = nodes[at].score;
            if here.resets() {
                // Every score is counted from this one.
                let reached = nodes[at..=frontier.max(at)].iter_mut().enumerate();
                for (_, node) in reached.filter(|(i, node)| *i == 0 || node.start != NONE) {
                    node.score = node.score - here;
                }
            }
            let here = nodes[at].score;
            for (length, id) in self.prefixes(&bytes[at..]) {
                let score = id.map_or(unk_score, |id| scores[id as usize]) + here;
                let node = &mut nodes[at + length];
                if node.start == NONE || score > node.score {
                    *node = Node { score, start: at as u32, id: id.unwrap_or(self.unk_id) };
                }
                frontier = frontier.max(at + length);
            }
            at += character_width(bytes[at]);
        }
        pieces.clear();
        let mut end = bytes.len();
        while end > 0 {
            let Node { start, id, .. } = nodes[end];
            pieces.push((start, end as u32, id));
            end = start as usize;
        }
        pieces.reverse();
    }

    /// Calls `each` with the beginning, the end and the id of everything that a segmentation of a word may
    /// have from a place on: its tokens, and unknown characters.
    #[inline]
    fn each_candidate(&self, word: &str, from: usize, mut each: impl FnMut(usize, usize, u32)) {
        let bytes = word.as_bytes();
        let mut at = from;
        while at < bytes.len() {
            for (length, id) in self.prefixes(&bytes[at..]) {
                each(at, at + length, id.unwrap_or(self.unk_id));
            }
            at += character_width(bytes[at]);
        }
    }

    /// Return the length and the id of every token that a part of a word begins with, shortest first; then, if its
    /// first character is unknown, the length of that character and None.
    #[inline(always)]
    fn prefixes<'a>(&'a self, part: &'a [u8]) -> impl Iterator<Item = (usize, Option<u32>)> {
        let width = character_width(part[0]);
        let mut is_known = false;
        let mut tokens = self.trie.prefixes(INITIAL_ROOT, part);
        std::iter::from_fn(move || match tokens.next() {
            Some((length, id)) => {
                is_known |= length == width;
                Some((length, Some(id)))
            }
            None if is_known => None,
            None => {
                is_known = true;
                Some((width, None))
            }
        })
    }

    /// Writes the tokens of the pieces of a word. Unknown ones side by side are one.
    fn push_tokens(&self, word: &str, pieces: &[Piece], tokens: &mut Vec<Token>) {
        tokens.clear();
        tokens.reserve(pieces.len());
        let mut pieces = pieces.iter().peekable();
        while let Some(&(start, mut end, id)) = pieces.next() {
            if id != self.unk_id {
                tokens.push(Token { id, length: end - start });
                continue;
            }
            while let Some(&&(_, next, _)) = pieces.peek().filter(|piece| piece.2 == id) {
                end = next;
                pieces.next();
            }
            self.push_unknown(&word[start as usize..end as usize], tokens);
        }
    }

    #[cold]
    fn push_unknown(&self, run: &str, tokens: &mut Vec<Token>) {
        let length = run.len() as u32;
        // Hugging Face tokenizers looks for the string of all of them together.
        let id = if self.of_sentencepiece { None } else { self.token(run) };
        let bytes = self.bytes.as_ref().filter(|_| id.is_none());
        match bytes.and_then(|bytes| bytes.of(run.as_bytes())) {
            Some(ids) => {
                let lengths = std::iter::once(length).chain(std::iter::repeat(0));
                tokens.reserve(run.len());
                tokens.extend(ids.zip(lengths).map(|(id, length)| Token { id, length }));
            }
            None => tokens.push(Token { id: id.unwrap_or(self.unk_id), length }),
        }
    }

    /// The id of a token.
    fn token(&self, token: &str) -> Option<u32> {
        let step = |state, byte| self.trie.transition(state, byte);
        self.trie.token_id(token.bytes().try_fold(self.trie.root(INITIAL_ROOT), step)?)
    }
}

/// Return an error for scores that are not numbers, or whose number differs from the number of tokens.
fn check_scores(scores: &[f64], tokens: usize) -> Result<()> {
    if scores.len() != tokens {
        let scores = scores.len();
        return Err(Error::data(format!("scores: {scores}, but there are {tokens} tokens")));
    }
    match scores.iter().position(|score| !score.is_finite()) {
        Some(id) => Err(Error::data(format!("scores: the score of token {id} is {}", scores[id]))),
        None => Ok(()),
    }
}

/// Return the number of bytes of the character with this first byte.
#[inline]
fn character_width(first: u8) -> usize {
    match first {
        0..0x80 => 1,
        0x80..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0.. => 4,
    }
}
