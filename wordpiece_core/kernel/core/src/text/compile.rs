//! Making SentencePiece's compiled maps of characters (see [`charsmap`](crate::text::charsmap)).
//!
//! The strings make a tree of bytes. Parts of it that are alike are one: so the map of a whole block
//! of characters that are dropped takes little. The children of a node are put at the places
//! `base ^ byte` of the array, with a base that no other node has.

use foldhash::HashMap;

use crate::base::error::{Error, Result};
use crate::text::bert::BertRules;

/// A unit that nothing leads to: as those of results, it has a bit that no byte has.
const FREE: u32 = 1 << 31;

/// How many units are a block: the children of a node are in one.
const BLOCK: usize = 256;

/// From here on the distance of a node to its children does not fit into a unit.
const MOST_UNITS: usize = 1 << 21;

/// The compiled map that does what BERT's normalizer and pre-tokenizer do: a character that is a word
/// by itself has spaces around it. Two things cannot be said by a map: that U+0000 is dropped, and in
/// which order combining marks are put that are kept although accents are stripped. The same options
/// give the same bytes.
///
/// # Errors
///
/// Returns [`Error::Data`] if the map is too large, which that of no options is.
pub fn compile(rules: &BertRules) -> Result<Vec<u8>> {
    let mut results = Results::default();
    let mut tree = Tree::default();
    let mut becomes = String::new();
    let mut strings = Vec::new();
    for c in '\u{1}'..=char::MAX {
        rules.becomes(c, &mut becomes);
        if becomes.chars().ne([c]) {
            let mut bytes = [0; 4];
            strings.push((c.encode_utf8(&mut bytes).as_bytes().to_vec(), results.place(&becomes)));
        }
    }
    let root = tree.node(&strings, 0);
    let units = tree.units(root)?;
    let size = (units.len() * 4) as u32;
    let array = units.into_iter().flat_map(u32::to_le_bytes);
    Ok(size.to_le_bytes().into_iter().chain(array).chain(results.text.into_bytes()).collect())
}

/// What strings become, each once, with a zero byte behind it.
#[derive(Default)]
struct Results {
    text: String,
    places: HashMap<String, u32>,
}

impl Results {
    fn place(&mut self, result: &str) -> u32 {
        let Results { text, places } = self;
        *places.entry(result.to_string()).or_insert_with(|| {
            let place = text.len() as u32;
            text.push_str(result);
            text.push('\0');
            place
        })
    }
}

/// What follows a beginning of strings: where the result is, if it is a string itself; and the bytes
/// by which it goes on, with the numbers of the nodes there.
#[derive(Clone, PartialEq, Eq, Hash)]
struct MapNode {
    result: Option<u32>,
    children: Vec<(u8, usize)>,
}

impl MapNode {
    /// The labels of its places: a result is at label 0.
    fn labels(&self) -> Vec<u8> {
        let result = self.result.map(|_| 0);
        result.into_iter().chain(self.children.iter().map(|&(byte, _)| byte)).collect()
    }
}

/// A tree of bytes, in which nodes that are alike are one.
#[derive(Default)]
struct Tree {
    nodes: Vec<MapNode>,
    numbers: HashMap<MapNode, usize>,
}

impl Tree {
    /// The number of the node of strings that are alike in their first `depth` bytes, which are in
    /// order.
    fn node(&mut self, strings: &[(Vec<u8>, u32)], depth: usize) -> usize {
        let (result, longer) = match strings.split_first() {
            Some(((string, result), longer)) if string.len() == depth => (Some(*result), longer),
            _ => (None, strings),
        };
        let parts = longer.chunk_by(|(a, _), (b, _)| a[depth] == b[depth]);
        let children = parts.map(|part| (part[0].0[depth], self.node(part, depth + 1))).collect();
        let Tree { nodes, numbers } = self;
        let node = MapNode { result, children };
        *numbers.entry(node.clone()).or_insert_with(|| {
            nodes.push(node);
            nodes.len() - 1
        })
    }

    /// The units of the double array.
    fn units(&self, root: usize) -> Result<Vec<u32>> {
        let mut places = Places::default();
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|&number| std::cmp::Reverse(self.nodes[number].labels().len()));
        let mut bases = vec![0; self.nodes.len()];
        for number in order {
            bases[number] = places.base(&self.nodes[number].labels());
        }
        let length = places.blocks.len() * BLOCK;
        if length > MOST_UNITS {
            return Err(Error::data("the map of characters is too large"));
        }
        let mut units = vec![FREE; length];
        let distance = |from: usize, to: usize| ((from ^ to) as u32) << 10;
        units[0] = distance(0, bases[root]);
        for (node, &base) in self.nodes.iter().zip(&bases) {
            if let Some(result) = node.result {
                units[base] = result | FREE;
            }
            for &(byte, child) in &node.children {
                let at = base ^ byte as usize;
                let has_result = u32::from(self.nodes[child].result.is_some()) << 8;
                units[at] = distance(at, bases[child]) | has_result | byte as u32;
            }
        }
        Ok(units)
    }
}

/// The places of the array that are taken, and the bases.
#[derive(Default)]
struct Places {
    blocks: Vec<Taken>,
    /// For labels that were put before, the first block that may have room for such.
    first: HashMap<Vec<u8>, usize>,
}

#[derive(Clone, Copy)]
struct Taken {
    places: [bool; BLOCK],
    bases: [bool; BLOCK],
}

impl Places {
    /// Takes a base, and the places of these labels.
    fn base(&mut self, labels: &[u8]) -> usize {
        let mut block = self.first.get(labels).copied().unwrap_or(0);
        loop {
            if block == self.blocks.len() {
                let mut taken = Taken { places: [false; BLOCK], bases: [false; BLOCK] };
                // The place of the root; and sentencepiece wants its base elsewhere.
                (taken.places[0], taken.bases[0]) = (block == 0, block == 0);
                self.blocks.push(taken);
            }
            let Taken { places, bases } = &mut self.blocks[block];
            let is_free = |base: &usize| {
                !bases[*base] && labels.iter().all(|&label| !places[base ^ label as usize])
            };
            if let Some(base) = (0..BLOCK).find(is_free) {
                bases[base] = true;
                labels.iter().for_each(|&label| places[base ^ label as usize] = true);
                self.first.insert(labels.to_vec(), block);
                return block * BLOCK + base;
            }
            block += 1;
        }
    }
}
