//! The vocabulary as a double-array trie over bytes, with two roots: of tokens that begin a word,
//! and of those that go on in one.
//!
//! A node's child by byte `b` is node `base + b`, and belongs to it if its `parent` says so: a
//! step is one addition, one load and one comparison.

use std::collections::VecDeque;
use std::ops::Range;

#[derive(Clone, Copy)]
struct Node {
    base: u32,
    parent: u32,
    /// The id of the token that ends here, or NONE.
    id: u32,
}

pub const NONE: u32 = u32::MAX;
/// The roots, of the first tokens of words and of the others.
pub const INITIAL: u32 = 0;
pub const CONTINUING: u32 = 1;
const NO_PARENT: u32 = u32::MAX - 1;
const FREE: Node = Node { base: 0, parent: NONE, id: NONE };

pub struct Trie {
    nodes: Vec<Node>,
}

/// A node as it was made: its parent, and the bytes that lead to it from its root: the first, the
/// last and how many.
#[derive(Clone, Copy)]
pub struct Made {
    pub node: u32,
    pub parent: u32,
    pub first: u8,
    pub byte: u8,
    pub depth: u32,
}

type Token<'a> = (&'a [u8], u32);

/// Nodes to be given children: the tokens below each, and the number of bytes they share.
struct Open {
    node: u32,
    root: usize,
    below: Range<usize>,
    depth: usize,
}

impl Trie {
    /// The trie of tokens and their ids, by root, and its nodes from the shallowest to the
    /// deepest. Empty tokens are left out; of equal ones the last counts.
    pub fn new(roots: [Vec<(&str, u32)>; 2]) -> (Self, Vec<Made>) {
        let tokens = roots.map(sorted);
        let mut trie = Trie { nodes: vec![FREE; 258] };
        let mut made = Vec::new();
        let mut open = VecDeque::new();
        for (root, tokens) in [INITIAL, CONTINUING].into_iter().zip(&tokens) {
            trie.nodes[root as usize].parent = NO_PARENT;
            open.push_back(Open {
                node: root,
                root: root as usize,
                below: 0..tokens.len(),
                depth: 0,
            });
        }
        let mut free_from = 2;
        while let Some(Open { node, root, below, depth }) = open.pop_front() {
            let (ending, longer) = split_ending(&tokens[root][below.clone()], depth);
            if let Some(&(_, id)) = ending.last() {
                trie.nodes[node as usize].id = id;
            }
            let groups = group_by_byte(longer, depth, below.start + ending.len());
            if groups.is_empty() {
                continue;
            }
            let base = trie.free_base(&groups, &mut free_from);
            trie.nodes[node as usize].base = base as u32;
            for (byte, below) in groups {
                let child = (base + byte as usize) as u32;
                trie.nodes[child as usize].parent = node;
                let first = tokens[root][below.start].0[0];
                made.push(Made { node: child, parent: node, first, byte, depth: depth as u32 + 1 });
                open.push_back(Open { node: child, root, below, depth: depth + 1 });
            }
        }
        (trie, made)
    }

    /// Nodes and free places: all nodes' numbers are below.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    #[inline]
    pub fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let child = self.nodes[node as usize].base + byte as u32;
        (self.nodes[child as usize].parent == node).then_some(child)
    }

    /// The token that ends at a node.
    #[inline]
    pub fn id(&self, node: u32) -> Option<u32> {
        let id = self.nodes[node as usize].id;
        (id != NONE).then_some(id)
    }

    /// The first base at which all children fall on free nodes.
    fn free_base(&mut self, groups: &[(u8, Range<usize>)], from: &mut usize) -> usize {
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
}

fn sorted(tokens: Vec<(&str, u32)>) -> Vec<Token<'_>> {
    let some = tokens.into_iter().filter(|(token, _)| !token.is_empty());
    let mut tokens: Vec<_> = some.map(|(token, id)| (token.as_bytes(), id)).collect();
    tokens.sort_by_key(|&(token, _)| token);
    tokens
}

/// The tokens that end at this depth, and the longer ones; both share their first bytes.
fn split_ending<'a, 'b>(
    tokens: &'b [Token<'a>],
    depth: usize,
) -> (&'b [Token<'a>], &'b [Token<'a>]) {
    tokens.split_at(tokens.iter().take_while(|(token, _)| token.len() == depth).count())
}

/// The ranges of tokens with the same byte at `depth`, `start` being the first one's index.
fn group_by_byte(tokens: &[Token<'_>], depth: usize, mut start: usize) -> Vec<(u8, Range<usize>)> {
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

    /// The longest token below a root that a text begins with.
    fn longest(trie: &Trie, root: u32, text: &str) -> Option<u32> {
        let (mut node, mut best) = (root, None);
        for byte in text.bytes() {
            let Some(child) = trie.child(node, byte) else { break };
            node = child;
            best = trie.id(node).or(best);
        }
        best
    }

    #[test]
    fn holds_many_tokens_below_two_roots() {
        let tokens: Vec<String> = (0..50_000u32).map(|i| format!("{:x}", i * 7919)).collect();
        let listed: Vec<_> = tokens.iter().map(String::as_str).zip(0..).collect();
        let others = vec![("", 7), ("é", 1), ("éa", 2), ("\u{10FFFF}", 3)];
        let (trie, made) = Trie::new([listed.clone(), others.clone()]);
        for (token, id) in listed {
            assert_eq!(longest(&trie, INITIAL, token), Some(id));
        }
        for &(token, id) in &others[1..] {
            assert_eq!(longest(&trie, CONTINUING, token), Some(id));
            assert_eq!(longest(&trie, INITIAL, token), None);
        }
        assert!(made.is_sorted_by_key(|made| made.depth));
        assert_eq!(longest(&Trie::new([vec![], vec![]]).0, INITIAL, "a"), None);
    }
}
