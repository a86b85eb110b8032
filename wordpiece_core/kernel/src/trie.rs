//! The vocabulary as a double-array trie over bytes, for longest match.
//!
//! A node's child by byte `b` is node `base + b`, and belongs to it if its `parent` says so: a
//! step is one addition, one load and one comparison.

#[derive(Clone, Copy)]
struct Node {
    base: u32,
    parent: u32,
    /// The id of the token that ends here, or NONE.
    id: u32,
}

const NONE: u32 = u32::MAX;
const FREE: Node = Node { base: 0, parent: NONE, id: NONE };

pub struct Trie {
    nodes: Vec<Node>,
}

impl Trie {
    /// A trie of tokens and their ids. Empty tokens are left out; of equal ones the last counts.
    pub fn new<'a>(tokens: impl Iterator<Item = (&'a str, u32)>) -> Self {
        let mut tokens: Vec<_> =
            tokens.filter(|(t, _)| !t.is_empty()).map(|(t, id)| (t.as_bytes(), id)).collect();
        tokens.sort_by_key(|&(token, _)| token);
        let mut trie = Trie { nodes: vec![FREE; 257] };
        trie.nodes[0].parent = 0;
        // Nodes to be given children: the tokens below each, and the bytes they share.
        let mut open = vec![(0usize, 0..tokens.len(), 0usize)];
        let mut free_from = 1;
        while let Some((node, range, depth)) = open.pop() {
            let (ending, longer) = split_ending(&tokens[range.clone()], depth);
            if let Some(&(_, id)) = ending.last() {
                trie.nodes[node].id = id;
            }
            let groups = group_by_byte(longer, depth, range.start + ending.len());
            if groups.is_empty() {
                continue;
            }
            let base = trie.free_base(&groups, &mut free_from);
            trie.nodes[node].base = base as u32;
            for (byte, below) in groups {
                let child = base + byte as usize;
                trie.nodes[child].parent = node as u32;
                open.push((child, below, depth + 1));
            }
        }
        trie
    }

    /// The first base at which all children fall on free nodes.
    fn free_base(&mut self, groups: &[(u8, std::ops::Range<usize>)], from: &mut usize) -> usize {
        while self.nodes.get(*from).is_some_and(|node| node.parent != NONE) {
            *from += 1;
        }
        let first = groups[0].0 as usize;
        let mut base = (*from).saturating_sub(first).max(1);
        let mut tries = 0;
        loop {
            if self.nodes.len() < base + 256 {
                self.nodes.resize((base + 256) * 3 / 2, FREE);
            }
            if groups.iter().all(|&(b, _)| self.nodes[base + b as usize].parent == NONE) {
                return base;
            }
            base += 1;
            tries += 1;
            // A crowded stretch is given up, so that building stays linear in the vocabulary.
            if tries == 512 {
                *from = base + first;
            }
        }
    }

    /// The longest token that `text` begins with: its id and its length in bytes.
    #[inline]
    pub fn longest(&self, text: &[u8]) -> Option<(u32, usize)> {
        let mut at = 0;
        let mut best = None;
        for (length, &byte) in text.iter().enumerate() {
            let child = self.nodes[at].base as usize + byte as usize;
            let node = self.nodes[child];
            if node.parent != at as u32 || child == 0 {
                break;
            }
            at = child;
            if node.id != NONE {
                best = Some((node.id, length + 1));
            }
        }
        best
    }
}

type Token<'a> = (&'a [u8], u32);

/// The tokens that end at this depth, and the longer ones; both share their first bytes.
fn split_ending<'a, 'b>(
    tokens: &'b [Token<'a>],
    depth: usize,
) -> (&'b [Token<'a>], &'b [Token<'a>]) {
    tokens.split_at(tokens.iter().take_while(|(token, _)| token.len() == depth).count())
}

/// The ranges of tokens with the same byte at `depth`, `start` being the first one's index.
fn group_by_byte(
    tokens: &[Token<'_>],
    depth: usize,
    mut start: usize,
) -> Vec<(u8, std::ops::Range<usize>)> {
    tokens
        .chunk_by(|a, b| a.0[depth] == b.0[depth])
        .map(|group| {
            let range = start..start + group.len();
            start = range.end;
            (group[0].0[depth], range)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_longest_token() {
        let words = ["a", "ab", "abcd", "b", "é", "éa", "zzzz", "\u{10FFFF}"];
        let trie = Trie::new(words.iter().zip(0..).map(|(w, id)| (*w, id)));
        for text in ["abcx", "abcd", "abcde", "éab", "zzz", "", "c", "\u{10FFFF}\u{10FFFF}", "b"] {
            let longest = words
                .iter()
                .zip(0..)
                .filter(|(w, _)| text.starts_with(**w))
                .max_by_key(|(w, _)| w.len())
                .map(|(w, id)| (id, w.len()));
            assert_eq!(trie.longest(text.as_bytes()), longest, "{text}");
        }
    }

    #[test]
    fn holds_many_tokens() {
        let tokens: Vec<String> = (0..50_000u32).map(|i| format!("{:x}", i * 7919)).collect();
        let trie = Trie::new(tokens.iter().zip(0..).map(|(t, id)| (t.as_str(), id)));
        for (token, id) in tokens.iter().zip(0..) {
            assert_eq!(trie.longest(token.as_bytes()), Some((id, token.len())));
        }
        assert_eq!(Trie::new(std::iter::empty()).longest(b"a"), None);
    }
}
