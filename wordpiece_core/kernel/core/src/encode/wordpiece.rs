//! WordPiece: greedy longest match, in time linear in the word, whatever the vocabulary.
//!
//! A double-array trie is walked, one transition for each byte. Where a state has no transition by
//! the next byte, its *failure link* says how to go on: it has an *output*, the tokens that longest
//! match splits off the bytes walked so far, and a target, the state that the rest of these bytes
//! leads to. So no byte is read twice. This is the algorithm LinMaxMatch of Song et al., "Fast
//! WordPiece Tokenization" (2021), with two roots in place of one root and a path for the prefix.
//!
//! Outputs are linked lists that share their parts: the output of a state is that of its parent,
//! followed by those of the failure links that were followed to find its target. So they take
//! memory linear in the vocabulary, too.

use crate::base::error::{Error, Result};
use crate::base::memory;
use crate::base::trie::{CONTINUING_ROOT, INITIAL_ROOT, NONE, StateInfo, Trie};

/// What becomes of a word that the vocabulary cannot cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnkScope {
    /// The whole word is one unknown token, as in BERT.
    Word,
    /// One character is an unknown token, and matching goes on after it.
    Character,
}

/// A token of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The id of the token.
    pub id: u32,
    /// How many bytes of the word it covers; `u32::MAX` if there are more.
    pub length: u32,
}

/// The model WordPiece: an automaton that splits words into the tokens of a vocabulary.
///
/// # Examples
///
/// ```
/// use wordpiece_core::encode::{Token, UnkScope, WordPiece};
///
/// let vocabulary = [("[UNK]", 0), ("un", 1), ("##aff", 2), ("##able", 3)];
/// let wordpiece = WordPiece::new(vocabulary.into_iter(), "##", 0, UnkScope::Word, 100).unwrap();
/// let mut tokens = Vec::new();
/// wordpiece.tokens("unaffable", &mut tokens);
/// assert_eq!(tokens.iter().map(|token| token.id).collect::<Vec<_>>(), [1, 2, 3]);
/// wordpiece.tokens("affable", &mut tokens); // no token begins a word with an a
/// assert_eq!(tokens, [Token { id: 0, length: 7 }]);
/// ```
pub struct WordPiece {
    trie: Trie,
    /// By the index of the state.
    failure_links: Vec<FailureLink>,
    /// The lists of all outputs.
    outputs: Vec<OutputNode>,
    unk_id: u32,
    unk_scope: UnkScope,
    max_word_length: usize,
}

/// How matching goes on at a state that has no transition by the next byte.
#[derive(Clone, Copy)]
struct FailureLink {
    /// The tokens found: the index of the last node of a list, or `NONE` for no tokens.
    output: u32,
    /// The state to go on from; `NONE` if no token fits what is left.
    target: u32,
}

const NO_LINK: FailureLink = FailureLink { output: NONE, target: NONE };

/// The last node of an output list, and the index of the node before it, or `NONE`.
#[derive(Clone, Copy)]
struct OutputNode {
    previous: u32,
    item: OutputItem,
}

#[derive(Clone, Copy)]
enum OutputItem {
    Token(Token),
    /// All of another list, of which this is the last node.
    List(u32),
}

impl WordPiece {
    /// Builds the automaton of a vocabulary, in time linear in the bytes of all tokens, apart from
    /// sorting them.
    ///
    /// # Arguments
    ///
    /// * `vocabulary` - The tokens and their ids. Those that begin with the prefix may continue a
    ///   word. All of them may begin one, as they are written.
    /// * `continuing_prefix` - The prefix of the tokens that continue a word, mostly `##`.
    /// * `unk_id` - The id of the unknown token.
    /// * `unk_scope` - What becomes of a word that the vocabulary cannot cover.
    /// * `max_word_length` - The length, in characters, above which a word is unknown.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if the automaton would have 2^32 - 2 states or more, or as many nodes
    /// of output lists.
    pub fn new<'a>(
        vocabulary: impl Iterator<Item = (&'a str, u32)> + Clone,
        continuing_prefix: &str,
        unk_id: u32,
        unk_scope: UnkScope,
        max_word_length: usize,
    ) -> Result<Self> {
        let continuing = vocabulary
            .clone()
            .filter_map(|(token, id)| Some((token.strip_prefix(continuing_prefix)?, id)));
        let (trie, states) = Trie::new([vocabulary.clone().collect(), continuing.collect()])?;
        let failure_links = vec![NO_LINK; trie.array_len()];
        let outputs = Vec::new();
        let mut model =
            WordPiece { trie, failure_links, outputs, unk_id, unk_scope, max_word_length };
        // A failure link leads to a shallower state, and the shallowest states come first.
        for info in states {
            model.failure_links[info.state as usize] = model.failure_link(info)?;
        }
        Ok(model)
    }

    /// The failure link of a state; those of all shallower states are there.
    fn failure_link(&mut self, info: StateInfo) -> Result<FailureLink> {
        let StateInfo { state, parent, last_byte, depth, .. } = info;
        // If matching goes on after unknown characters, a character that is no token ends here, too.
        let single = self.unk_scope == UnkScope::Character && is_one_character(&info);
        if let Some(id) = self.trie.token_id(state).or(single.then_some(self.unk_id)) {
            let token = Token { id, length: depth };
            return Ok(FailureLink {
                output: self.push_output(NONE, OutputItem::Token(token))?,
                target: CONTINUING_ROOT,
            });
        }
        let FailureLink { mut output, target: mut from } = self.failure_links[parent as usize];
        while from != NONE {
            if let Some(target) = self.trie.transition(from, last_byte) {
                return Ok(FailureLink { output, target });
            }
            let next = self.failure_links[from as usize];
            if next.output != NONE {
                output = self.push_output(output, OutputItem::List(next.output))?;
            }
            from = next.target;
        }
        Ok(FailureLink { output, target: NONE })
    }

    /// Makes the list of `previous` and one item more; returns its index.
    fn push_output(&mut self, previous: u32, item: OutputItem) -> Result<u32> {
        let index = u32::try_from(self.outputs.len()).ok().filter(|&index| index != NONE);
        let too_many = || Error::data("the vocabulary is too large for 2^32 outputs");
        self.outputs.push(OutputNode { previous, item });
        index.ok_or_else(too_many)
    }

    /// Splits a word into its tokens.
    ///
    /// # Arguments
    ///
    /// * `word` - The word, normalized.
    /// * `tokens` - Where the tokens are written. It is cleared first. They cover the word without
    ///   gaps; an empty word has none.
    pub fn tokens(&self, word: &str, tokens: &mut Vec<Token>) {
        tokens.clear();
        let most = self.max_word_length;
        if word.len() > most && word.chars().nth(most).is_some() {
            return tokens.push(Token::new(self.unk_id, word.len()));
        }
        let bytes = word.as_bytes();
        let (mut state, mut at) = (INITIAL_ROOT, 0);
        let mut covered = (0, 0); // so many bytes by so many tokens, where a token was unknown
        while at < bytes.len() || state != CONTINUING_ROOT {
            if let Some(next) = bytes.get(at).and_then(|&byte| self.trie.transition(state, byte)) {
                (state, at) = (next, at + 1);
                continue;
            }
            let link = self.failure_links[state as usize];
            self.push_tokens(link.output, tokens);
            state = link.target;
            if state == NONE {
                let Some(next) = self.skip(word, tokens, &mut covered) else { return };
                (state, at) = (CONTINUING_ROOT, next);
            }
        }
    }

    /// Where no token fits: makes the word unknown, or the character there, of which the trie
    /// knows no more than the first bytes. `covered`: how many bytes the tokens cover, and how many tokens
    /// that are; those behind them are counted here. Returns where in the word matching goes on, if it
    /// does.
    #[cold]
    fn skip(
        &self,
        word: &str,
        tokens: &mut Vec<Token>,
        (covered, counted): &mut (usize, usize),
    ) -> Option<usize> {
        if self.unk_scope == UnkScope::Word {
            tokens.clear();
            tokens.extend((!word.is_empty()).then(|| Token::new(self.unk_id, word.len())));
            return None;
        }
        // In this scope every token is shorter than 2^32 bytes, so their lengths are exact.
        *covered += tokens[*counted..].iter().map(|token| token.length as usize).sum::<usize>();
        let c = word[*covered..].chars().next()?;
        memory::push(tokens, Token::new(self.unk_id, c.len_utf8()));
        *covered += c.len_utf8();
        *counted = tokens.len();
        Some(*covered)
    }

    /// Appends the tokens of an output list. It is read from its end, and then turned round.
    #[inline]
    fn push_tokens(&self, mut at: u32, tokens: &mut Vec<Token>) {
        if let Some(&OutputNode { previous: NONE, item: OutputItem::Token(token) }) =
            self.outputs.get(at as usize)
        {
            return memory::push(tokens, token); // most lists have one token
        }
        let start = tokens.len();
        let mut left = Vec::new(); // lists that are not read to their beginnings
        loop {
            while at == NONE {
                match left.pop() {
                    Some(previous) => at = previous,
                    None => return tokens[start..].reverse(),
                }
            }
            let OutputNode { previous, item } = self.outputs[at as usize];
            match item {
                OutputItem::Token(token) => {
                    memory::push(tokens, token);
                    at = previous;
                }
                OutputItem::List(last) => {
                    left.push(previous);
                    at = last;
                }
            }
        }
    }
}

impl Token {
    /// A token that covers `length` bytes.
    pub(crate) fn new(id: u32, length: usize) -> Self {
        Token { id, length: u32::try_from(length).unwrap_or(u32::MAX) }
    }
}

/// Whether the bytes that lead to a state are one character of UTF-8.
fn is_one_character(info: &StateInfo) -> bool {
    let length = match info.first_byte {
        0..0x80 => 1,
        0x80..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0.. => 4,
    };
    info.depth == length
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: u32 = 1000;

    /// The same by its definition: the longest token that fits, again and again.
    fn plainly(vocabulary: &[&str], word: &str, scope: UnkScope) -> Vec<Token> {
        let (mut tokens, mut at) = (Vec::new(), 0);
        while at < word.len() {
            let ids = vocabulary.iter().zip(0..).filter_map(|(token, id)| {
                let token = if at == 0 { token } else { token.strip_prefix("##")? };
                (!token.is_empty() && word[at..].starts_with(token)).then_some((token.len(), id))
            });
            let first = word[at..].chars().next().map_or(0, char::len_utf8);
            let (length, id) = match ids.max() {
                Some(longest) => longest,
                None if scope == UnkScope::Character => (first, UNKNOWN),
                None => return vec![Token { id: UNKNOWN, length: word.len() as u32 }],
            };
            tokens.push(Token { id, length: length as u32 });
            at += length;
        }
        tokens
    }

    fn random(state: &mut u64, below: usize) -> usize {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((*state >> 33) as usize) % below
    }

    fn random_word(state: &mut u64, longest: usize) -> String {
        let letters = ['a', 'b', 'é', 'è', 'Ω', '日', '旦', '𝒳', '#'];
        let length = random(state, longest) + 1;
        let kinds = random(state, letters.len()) + 1;
        (0..length).map(|_| letters[random(state, kinds)]).collect()
    }

    #[test]
    fn matches_as_the_plain_loop_does() {
        let mut state = 1;
        for _ in 0..3000 {
            let mut vocabulary: Vec<String> = (0..random(&mut state, 30))
                .map(|i| ["##", ""][i % 2].to_owned() + &random_word(&mut state, 6))
                .collect();
            vocabulary.sort();
            vocabulary.dedup();
            let listed: Vec<&str> = vocabulary.iter().map(String::as_str).collect();
            for scope in [UnkScope::Word, UnkScope::Character] {
                let tokens = listed.iter().copied().zip(0..);
                let model = WordPiece::new(tokens, "##", UNKNOWN, scope, 100).unwrap();
                for _ in 0..10 {
                    let word = random_word(&mut state, 12);
                    let mut found = Vec::new();
                    model.tokens(&word, &mut found);
                    assert_eq!(found, plainly(&listed, &word, scope), "{word} {listed:?}");
                }
            }
        }
    }

    #[test]
    fn long_tokens_take_linear_memory_and_time() {
        let long = "a".repeat(100_000) + "b";
        let vocabulary = ["a", "##a", "##aa", "##b", &format!("##{long}"), &long];
        let tokens = vocabulary.iter().copied().zip(0..);
        let model = WordPiece::new(tokens, "##", UNKNOWN, UnkScope::Word, usize::MAX).unwrap();
        assert!(model.outputs.len() < 4 * long.len());
        let mut found = Vec::new();
        model.tokens(&long.repeat(3)[1..], &mut found);
        assert_eq!(found.len(), long.len() / 2 + 3);
        model.tokens("", &mut found);
        assert!(found.is_empty());
    }
}
