//! Best-fit packing: documents to sequences of one length that keep documents complete.
//!
//! A document that is longer than a body is split into full bodies and a rest. The rests and all
//! other documents, the longest first, go into the sequence with the least space that is enough
//! (best-fit decreasing), the last one filled if several have it, or begin a new sequence. Johnson
//! (1974) shows that there are at most 11/9 of the optimum, and 4 more.
//!
//! This holds for a window of documents, which are in memory. Sequences are in the order of their
//! longest documents, and the documents of a sequence in their own order, so a random order stays
//! random.

use super::pack::{Id, PackOptions, Sequences};
use crate::base::error::Result;

/// The memory of a document in a window, in ids: of its row, its part and its sequence.
const DOCUMENT: usize = 24;

/// Packs documents by best fit.
///
/// # Examples
///
/// ```
/// use wordpiece_core::encode::{BestFit, PackOptions};
///
/// let (cls_id, sep_id, pad_id) = (None, None, Some(0));
/// let options = PackOptions { length: 4, cls_id, sep_id, own: [0, 0], pad_id };
/// let mut packer = BestFit::new(options, 1 << 20).unwrap();
/// let documents = [&[1u32, 1][..], &[2, 2, 2], &[3], &[4, 4]];
/// assert!(packer.add((0..).zip(documents), 0).is_empty()); // the window is not full
/// assert_eq!(packer.finish().ids, [1, 1, 4, 4, 2, 2, 2, 3]);
/// ```
pub struct BestFit {
    options: PackOptions,
    window: usize,
    ids: Vec<u32>,
    /// For each document in the window, its row and the end of its ids.
    documents: Vec<(i64, usize)>,
}

/// Ids of a document that stay together.
struct Part {
    row: i64,
    /// Start and end of its document in the window.
    document: [usize; 2],
    /// Its start and end in the window.
    ids: [usize; 2],
}

impl BestFit {
    /// Makes a packer that has no documents. `window`: the number of ids that are packed together. Each
    /// document counts as 24 ids more. The last document of a window may exceed it.
    ///
    /// # Errors
    ///
    /// As [`Packer::new`](super::Packer::new).
    pub fn new(options: PackOptions, window: usize) -> Result<Self> {
        options.check()?;
        Ok(BestFit { options, window, ids: Vec::new(), documents: Vec::new() })
    }

    /// An upper limit of the ids that [`BestFit::add`] returns for a number of documents and their
    /// total number of ids. Two sequences of a window never fit into one.
    pub fn most(&self, documents: usize, ids: usize) -> usize {
        let (documents, ids) = (self.documents.len() + documents, self.ids.len() + ids);
        let windows = 4 + (ids + DOCUMENT * documents) / self.window.max(1);
        let rows = 2 * ((ids + documents) / self.body()) + windows;
        rows.saturating_mul(self.options.length)
    }

    /// Adds documents; returns the sequences of the windows that are full. An empty document is left
    /// out. `ids`: the number of ids to reserve memory for, or 0.
    pub fn add<'a, T: Id + 'a>(
        &mut self,
        documents: impl Iterator<Item = (i64, &'a [T])>,
        ids: usize,
    ) -> Sequences {
        let mut out = self.nothing();
        self.ids.reserve(ids.min(self.window.saturating_sub(self.ids.len())));
        for (row, document) in documents {
            if document.is_empty() {
                continue;
            }
            self.ids.extend(document.iter().map(|id| id.value()));
            self.documents.push((row, self.ids.len()));
            if self.ids.len() + DOCUMENT * self.documents.len() >= self.window {
                self.pack(&mut out);
            }
        }
        out
    }

    /// The sequences of the documents in the window.
    pub fn finish(&mut self) -> Sequences {
        let mut out = self.nothing();
        self.pack(&mut out);
        out
    }

    fn nothing(&self) -> Sequences {
        Sequences { is_framed: self.options.cls_id.is_some(), ..Sequences::default() }
    }

    /// Packs the window, and empties it.
    fn pack(&mut self, out: &mut Sequences) {
        let parts = self.parts();
        let sequences = self.sequences(&parts);
        out.ids.reserve_exact(sequences.len() * self.options.length);
        for sequence in sequences {
            self.write(sequence.iter().map(|&part| &parts[part]), out);
        }
        self.ids.clear();
        self.documents.clear();
    }

    /// The number of ids of a body.
    fn body(&self) -> usize {
        self.options.length - 2 * usize::from(self.options.cls_id.is_some())
    }

    /// The parts of all documents in their order.
    fn parts(&self) -> Vec<Part> {
        let (body, mut start) = (self.body(), 0);
        let mut parts = Vec::with_capacity(self.documents.len());
        for &(row, end) in &self.documents {
            for first in (start..end).step_by(body) {
                let ids = [first, end.min(first + body)];
                parts.push(Part { row, document: [start, end], ids });
            }
            start = end;
        }
        parts
    }

    /// The numbers of the parts of each sequence.
    fn sequences(&self, parts: &[Part]) -> Vec<Vec<usize>> {
        let between = usize::from(self.options.sep_id.is_some());
        let room = self.body() + between; // one separator fewer than parts
        let sizes = parts.iter().map(|part| part.ids[1] - part.ids[0] + between);
        let longest_first =
            |(part, size): (usize, usize)| ((room - size) as u64) << 32 | part as u64;
        let mut order: Vec<u64> = sizes.enumerate().map(longest_first).collect();
        order.sort_unstable();
        let mut sequences: Vec<Vec<usize>> = Vec::new();
        let mut spaces = Spaces::new(room);
        for key in order {
            let (size, part) = (room - (key >> 32) as usize, key as u32 as usize);
            let (space, number) = spaces.take(size).unwrap_or_else(|| {
                sequences.push(Vec::new());
                (room, sequences.len() - 1)
            });
            sequences[number].push(part);
            if space - size > between {
                spaces.put(space - size, number);
            }
        }
        sequences.sort_by_key(|sequence| sequence[0]);
        sequences.iter_mut().for_each(|sequence| sequence.sort_unstable());
        sequences
    }

    /// Appends a sequence.
    fn write<'a>(&self, parts: impl Iterator<Item = &'a Part>, out: &mut Sequences) {
        let PackOptions { length, cls_id, sep_id, own, pad_id } = self.options;
        let start = out.ids.len();
        out.ids.extend(cls_id);
        for (number, part) in parts.enumerate() {
            if let Some(sep_id) = sep_id.filter(|_| number > 0) {
                out.separators.push(out.ids.len());
                out.ids.push(sep_id);
            }
            out.document_starts.push((out.ids.len() - start) as i32);
            out.document_rows.push(part.row);
            if sep_id.is_none() {
                let ([from, to], [first, last]) = (part.ids, part.document);
                let ending = (first + own[0]).max(last.saturating_sub(own[1]));
                let begun = from..to.min(first + own[0]);
                let at = out.ids.len();
                out.separators.extend(begun.chain(ending.max(from)..to).map(|id| at + id - from));
            }
            out.ids.extend_from_slice(&self.ids[part.ids[0]..part.ids[1]]);
        }
        out.ids.extend(sep_id.filter(|_| cls_id.is_some()));
        out.lengths.push((out.ids.len() - start) as i32);
        out.ids.resize(start + length, pad_id.unwrap_or(0));
        out.document_ends.push(out.document_starts.len());
    }
}

const NONE: u32 = u32::MAX;

/// Sequences with remaining space.
struct Spaces {
    /// For each space, the last sequence that got it, or [`NONE`].
    last: Vec<u32>,
    /// For each sequence, the previous one with the same space.
    before: Vec<u32>,
    /// A bit for each space that sequences have; then, in each further level, a bit for each word of
    /// the level before that is not zero.
    levels: Vec<Vec<u64>>,
}

impl Spaces {
    /// No sequences yet. `most`: the most space of a sequence.
    fn new(most: usize) -> Self {
        let mut levels = vec![vec![0; most / 64 + 1]];
        while let Some(words) = levels.last().map(Vec::len).filter(|&words| words > 1) {
            levels.push(vec![0; words.div_ceil(64)]);
        }
        Spaces { last: vec![NONE; most + 1], before: Vec::new(), levels }
    }

    /// Adds a sequence, by its number.
    fn put(&mut self, space: usize, number: usize) {
        if self.before.len() <= number {
            self.before.resize(number + 1, NONE);
        }
        self.before[number] = std::mem::replace(&mut self.last[space], number as u32);
        let mut at = space;
        for level in &mut self.levels {
            level[at / 64] |= 1 << (at % 64);
            at /= 64;
        }
    }

    /// Takes out the sequence with the least space of `size` or more. Returns the space, and the
    /// number of the sequence.
    fn take(&mut self, size: usize) -> Option<(usize, usize)> {
        let space = self.least(size)?;
        let number = self.last[space] as usize;
        self.last[space] = self.before[number];
        if self.last[space] == NONE {
            let mut at = space;
            for level in &mut self.levels {
                level[at / 64] &= !(1 << (at % 64));
                if level[at / 64] != 0 {
                    break;
                }
                at /= 64;
            }
        }
        Some((space, number))
    }

    /// The least space of `size` or more that a sequence has.
    fn least(&self, size: usize) -> Option<usize> {
        let mut at = size;
        for (number, level) in self.levels.iter().enumerate() {
            let rest = level.get(at / 64)? >> (at % 64);
            if rest != 0 {
                at += rest.trailing_zeros() as usize;
                let below = self.levels[..number].iter().rev();
                return Some(
                    below.fold(at, |at, level| at * 64 + level[at].trailing_zeros() as usize),
                );
            }
            at = at / 64 + 1;
        }
        None
    }
}
