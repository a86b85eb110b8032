//! Greedy longest match in time linear in the word, whatever the vocabulary.
//!
//! The trie is walked one step a byte. Where it goes no further, the node's *link* says which
//! tokens longest match cuts from the bytes walked so far (its *pops*) and which node the rest of
//! them leads to, so that no byte is read twice. This is LinMaxMatch of Song et al., "Fast
//! WordPiece Tokenization" (2021), with two roots in place of one with a path for the prefix.
//! Pops are lists that share their parts: a node adds to its parent's pops those of the links
//! followed for it. So they take memory linear in the vocabulary too.

use crate::encode::trie::{CONTINUING, INITIAL, Made, NONE, Trie};

/// What becomes of a word that the vocabulary cannot cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnkScope {
    /// The whole word is one unknown token, as in BERT.
    Word,
    /// One character is an unknown token, and matching goes on after it.
    Character,
}

/// A token of a word and how many of its bytes it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub id: u32,
    pub length: u32,
}

pub struct Matcher {
    trie: Trie,
    links: Vec<Link>,
    pops: Vec<Pop>,
    unk_id: u32,
    unk_scope: UnkScope,
}

/// Of a node: what is cut off where the walk goes no further, and where it goes on then: NONE if
/// no token fits what is left.
#[derive(Clone, Copy)]
struct Link {
    pops: u32,
    to: u32,
}

const NO_LINK: Link = Link { pops: NONE, to: NONE };

/// The last part of a list of pops and the index of what comes before it, or NONE. A part is a
/// token; or, with a length of zero, another list, whose index `id` is.
#[derive(Clone, Copy)]
struct Pop {
    before: u32,
    part: Token,
}

impl Matcher {
    /// A matcher of tokens and their ids. Those that begin with `continuing_prefix` go on in a
    /// word; all may begin one, as they are.
    pub fn new<'a>(
        vocabulary: impl Iterator<Item = (&'a str, u32)> + Clone,
        continuing_prefix: &str,
        unk_id: u32,
        unk_scope: UnkScope,
    ) -> Self {
        let continuing = vocabulary
            .clone()
            .filter_map(|(token, id)| Some((token.strip_prefix(continuing_prefix)?, id)));
        let (trie, made) = Trie::new([vocabulary.clone().collect(), continuing.collect()]);
        let links = vec![NO_LINK; trie.size()];
        let mut matcher = Matcher { trie, links, pops: Vec::new(), unk_id, unk_scope };
        // Links lead to shallower nodes, so these come first.
        for node in made {
            matcher.links[node.node as usize] = matcher.link(node);
        }
        matcher
    }

    fn link(&mut self, made: Made) -> Link {
        let Made { node, parent, byte, depth, .. } = made;
        // A character that is no token is an unknown one, if matching goes on after such.
        let single = self.unk_scope == UnkScope::Character && is_one_character(&made);
        if let Some(id) = self.trie.id(node).or(single.then_some(self.unk_id)) {
            let part = Token { id, length: depth };
            return Link { pops: self.pop(NONE, part), to: CONTINUING };
        }
        let Link { mut pops, to: mut from } = self.links[parent as usize];
        while from != NONE {
            if let Some(to) = self.trie.child(from, byte) {
                return Link { pops, to };
            }
            let next = self.links[from as usize];
            if next.pops != NONE {
                pops = self.pop(pops, Token { id: next.pops, length: 0 });
            }
            from = next.to;
        }
        Link { pops, to: NONE }
    }

    fn pop(&mut self, before: u32, part: Token) -> u32 {
        self.pops.push(Pop { before, part });
        self.pops.len() as u32 - 1
    }

    /// Writes the tokens of a word into `tokens` (cleared first).
    pub fn tokens(&self, word: &str, tokens: &mut Vec<Token>) {
        tokens.clear();
        let bytes = word.as_bytes();
        let (mut node, mut at) = (INITIAL, 0);
        while at < bytes.len() || node != CONTINUING {
            if let Some(child) = bytes.get(at).and_then(|&byte| self.trie.child(node, byte)) {
                (node, at) = (child, at + 1);
                continue;
            }
            let link = self.links[node as usize];
            self.push_pops(link.pops, tokens);
            node = link.to;
            if node == NONE {
                let Some(next) = self.skip(word, tokens) else { return };
                (node, at) = (CONTINUING, next);
            }
        }
    }

    /// Where no token fits: makes the word unknown, or the character there, of which the trie
    /// knows no more than the first bytes; then returns where matching goes on.
    #[cold]
    fn skip(&self, word: &str, tokens: &mut Vec<Token>) -> Option<usize> {
        let unknown = |length| Token { id: self.unk_id, length: length as u32 };
        if self.unk_scope == UnkScope::Word {
            tokens.clear();
            tokens.extend((!word.is_empty()).then(|| unknown(word.len())));
            return None;
        }
        let covered: usize = tokens.iter().map(|token| token.length as usize).sum();
        let c = word[covered..].chars().next()?;
        tokens.push(unknown(c.len_utf8()));
        Some(covered + c.len_utf8())
    }

    /// Appends the tokens of a list of pops. It is read from its end, and then turned round.
    #[inline]
    fn push_pops(&self, mut at: u32, tokens: &mut Vec<Token>) {
        if let Some(&Pop { before: NONE, part }) = self.pops.get(at as usize)
            && part.length != 0
        {
            return tokens.push(part); // most lists are one token
        }
        let start = tokens.len();
        let mut left = Vec::new(); // lists to go on with
        loop {
            while at == NONE {
                match left.pop() {
                    Some(before) => at = before,
                    None => return tokens[start..].reverse(),
                }
            }
            let Pop { before, part } = self.pops[at as usize];
            if part.length == 0 {
                left.push(before);
                at = part.id;
            } else {
                tokens.push(part);
                at = before;
            }
        }
    }
}

/// Whether the bytes that lead to a node are one character of UTF-8.
fn is_one_character(made: &Made) -> bool {
    let length = match made.first {
        0..0x80 => 1,
        0x80..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0.. => 4,
    };
    made.depth == length
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: u32 = 1000;

    /// The same, token by token.
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
        for _ in 0..if cfg!(miri) { 20 } else { 3000 } {
            let mut vocabulary: Vec<String> = (0..random(&mut state, 30))
                .map(|i| ["##", ""][i % 2].to_owned() + &random_word(&mut state, 6))
                .collect();
            vocabulary.sort();
            vocabulary.dedup();
            let listed: Vec<&str> = vocabulary.iter().map(String::as_str).collect();
            for scope in [UnkScope::Word, UnkScope::Character] {
                let tokens = listed.iter().copied().zip(0..);
                let matcher = Matcher::new(tokens, "##", UNKNOWN, scope);
                for _ in 0..10 {
                    let word = random_word(&mut state, 12);
                    let mut found = Vec::new();
                    matcher.tokens(&word, &mut found);
                    assert_eq!(found, plainly(&listed, &word, scope), "{word} {listed:?}");
                }
            }
        }
    }

    #[test]
    fn long_tokens_take_linear_memory_and_time() {
        let long = "a".repeat(if cfg!(miri) { 500 } else { 100_000 }) + "b";
        let vocabulary = ["a", "##a", "##aa", "##b", &format!("##{long}"), &long];
        let tokens = vocabulary.iter().copied().zip(0..);
        let matcher = Matcher::new(tokens, "##", UNKNOWN, UnkScope::Word);
        assert!(matcher.pops.len() < 4 * long.len());
        let mut found = Vec::new();
        matcher.tokens(&long.repeat(3)[1..], &mut found);
        assert_eq!(found.len(), long.len() / 2 + 3);
        matcher.tokens("", &mut found);
        assert!(found.is_empty());
    }
}
