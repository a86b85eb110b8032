//! WordPiece: greedy longest match.

use crate::base::error::{Error, Result};
use crate::base::trie::Trie;
use crate::encode::vocabulary::{Token, Vocabulary};

/// The options of WordPiece.
///
/// # Examples
///
/// ```
/// use wordpiece_core::encode::{RowOptions, Tokenizer, TokenizerOptions, WordPieceOptions};
/// use wordpiece_core::text::TextOptions;
///
/// let vocabulary = ["[UNK]", "un", "##aff", "##able"];
/// let bert = TextOptions::default();
/// let options = TokenizerOptions::new(&vocabulary, bert, WordPieceOptions::default());
/// let tokenizer = Tokenizer::new(TokenizerOptions { unk_id: Some(0), ..options })?;
/// let rows = tokenizer.encode(&["Unaffable", "affable"], &RowOptions::default())?;
/// assert_eq!(rows.ids, [1, 2, 3, 0]); // no token begins a word with an a
/// # Ok::<(), wordpiece_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct WordPieceOptions<'a> {
    /// The prefix of the tokens that continue a word. Every token may begin a word with its whole string.
    pub continuing_prefix: &'a str,
    /// The extent of unknown tokens in a word that the vocabulary cannot cover.
    pub unk_scope: UnkScope,
    /// The length, in characters, above which a word is unknown.
    pub max_word_length: usize,
}

impl Default for WordPieceOptions<'_> {
    /// The options of BERT.
    fn default() -> Self {
        WordPieceOptions {
            continuing_prefix: "##",
            unk_scope: UnkScope::Word,
            max_word_length: 100,
        }
    }
}

/// The extent of unknown tokens in a word that the vocabulary cannot cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnkScope {
    /// The whole word is one unknown token, as in BERT.
    Word,
    /// One character is an unknown token, and matching continues after it.
    Character,
}

/// The model WordPiece: splits off the longest token that fits, again and again.
pub(crate) struct WordPiece {
    trie: Trie,
    unk_id: u32,
    unk_scope: UnkScope,
    max_word_length: usize,
}

impl WordPiece {
    /// Makes the model of a vocabulary, in time linear in the bytes of all tokens, apart from sorting
    /// them.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Data`] if the vocabulary is too large for a trie; [`Error::Option`] if none is unknown.
    pub fn new(vocabulary: Vocabulary<'_>, options: WordPieceOptions<'_>) -> Result<Self> {
        let WordPieceOptions { continuing_prefix, unk_scope, max_word_length } = options;
        let needed = || Error::option("unk_token: wordpiece needs one");
        let unk_id = vocabulary.unk_id.ok_or_else(needed)?;
        let shown = vocabulary.shown();
        let continuing = shown
            .clone()
            .filter_map(|(token, id)| Some((token.strip_prefix(continuing_prefix)?, id)));
        let trie = Trie::new([shown.clone().collect(), continuing.collect()])?;
        Ok(WordPiece { trie, unk_id, unk_scope, max_word_length })
    }

    /// Split a word into its tokens. The time grows with its length times the length of the longest token.
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
        for (id, length) in self.trie.longest_tokens(word, |_| true) {
            if id.is_none() && self.unk_scope == UnkScope::Word {
                tokens.clear();
                return tokens.push(Token::new(self.unk_id, word.len()));
            }
            tokens.push(Token::new(id.unwrap_or(self.unk_id), length));
        }
    }
}

impl Token {
    /// A token that covers `length` bytes.
    pub(crate) fn new(id: u32, length: usize) -> Self {
        Token { id, length: u32::try_from(length).unwrap_or(u32::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wordpiece_testing::Random;

    const UNKNOWN: u32 = 1000;

    fn model(vocabulary: &[&str], unk_scope: UnkScope) -> WordPiece {
        let (tokens, hidden) = (vocabulary, &Default::default());
        let vocabulary = Vocabulary { tokens, unk_id: Some(UNKNOWN), hidden };
        let options = WordPieceOptions { unk_scope, ..WordPieceOptions::default() };
        WordPiece::new(vocabulary, options).unwrap()
    }

    /// Tokenize a word by the definition: take the longest token that fits, repeatedly.
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

    fn random_word(random: &mut Random, longest: usize) -> String {
        let letters = ['a', 'b', 'é', 'è', 'Ω', '日', '旦', '𝒳', '#'];
        let kinds = 1 + random.below(letters.len());
        random.word(&letters[..kinds], longest)
    }

    #[test]
    fn matches_as_the_plain_loop_does() {
        let mut random = Random::new(1);
        for _ in 0..3000 {
            let mut vocabulary: Vec<String> = (0..random.below(30))
                .map(|i| ["##", ""][i % 2].to_owned() + &random_word(&mut random, 6))
                .collect();
            vocabulary.sort();
            vocabulary.dedup();
            let listed: Vec<&str> = vocabulary.iter().map(String::as_str).collect();
            for scope in [UnkScope::Word, UnkScope::Character] {
                let model = model(&listed, scope);
                for _ in 0..10 {
                    let word = random_word(&mut random, 12);
                    let mut found = Vec::new();
                    model.tokens(&word, &mut found);
                    assert_eq!(found, plainly(&listed, &word, scope), "{word} {listed:?}");
                }
            }
        }
    }
}
