//! Documents of ids to sequences of one length: `[CLS] body [SEP]`.
//!
//! All documents form one stream of ids, with one `[SEP]` between two of them, and a body is the
//! next `length - 2` ids of the stream. A body neither begins nor ends with such a separator, since
//! the `[SEP]` around it says as much. Ids are copied once, to where Arrow finds them. Between two
//! batches only the last sequence is kept, which is not full yet.
//!
//! A vocabulary without `[CLS]` has sequences that are bodies alone, as GPT's are. There every
//! separator is kept. Documents that begin or end with special tokens of their own have no separator
//! between them.

use crate::base::error::{Error, Result};
use crate::encode::rows::MOST_PADDED;

/// An id as a column holds it: an `i32` or a `u16`.
pub trait Id: Copy {
    /// The id as a number. A negative one gives a number beyond every vocabulary.
    fn value(self) -> u32;
}

impl Id for u32 {
    fn value(self) -> u32 {
        self
    }
}

impl Id for i32 {
    fn value(self) -> u32 {
        self as u32
    }
}

impl Id for u16 {
    fn value(self) -> u32 {
        self.into()
    }
}

/// The options for packing documents.
#[derive(Clone, Copy, Debug)]
pub struct PackOptions {
    /// The length of a sequence, in ids, `[CLS]` and `[SEP]` included: 3 at least.
    pub length: usize,
    /// The id of `[CLS]`. None: sequences are bodies alone.
    pub cls_id: Option<u32>,
    /// The id of `[SEP]`, after a body with `[CLS]` before it, and between documents. None: no separator.
    pub sep_id: Option<u32>,
    /// Without a `[SEP]`, the number of special tokens at the beginning and at the end of each document.
    pub own: [usize; 2],
    /// The id that the last sequence is filled up with. None: that sequence is dropped.
    pub pad_id: Option<u32>,
}

impl PackOptions {
    /// Checks that sequences have room for text.
    pub(super) fn check(&self) -> Result<()> {
        let length = self.length;
        if length < 3 {
            return Err(Error::option(format!("sequences of {length} ids have no room for text")));
        }
        if length > MOST_PADDED {
            let message = format!("sequences of {length} ids are longer than {MOST_PADDED}");
            return Err(Error::option(message));
        }
        if self.cls_id.is_some() && self.sep_id.is_none() {
            return Err(Error::option("cls_id: also set sep_id"));
        }
        Ok(())
    }
}

/// Sequences of one length, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequences {
    /// The ids of all sequences.
    pub ids: Vec<u32>,
    /// True if a sequence is `[CLS]` body `[SEP]`, false if it is only a body.
    pub is_framed: bool,
    /// The number of ids of each sequence before its padding.
    pub lengths: Vec<i32>,
    /// The indices in `ids` of the separators between documents, and of special tokens in them.
    pub separators: Vec<usize>,
    /// For each document in each sequence, the index in the sequence of its first id there.
    pub document_starts: Vec<i32>,
    /// For each document in each sequence, its row.
    pub document_rows: Vec<i64>,
    /// The end of each sequence in `document_starts` and `document_rows`.
    pub document_ends: Vec<usize>,
}

/// Packs documents into sequences of one length.
///
/// # Examples
///
/// ```
/// use wordpiece_core::encode::{PackOptions, Packer};
///
/// let (cls_id, sep_id, pad_id) = (Some(1), Some(2), Some(0));
/// let options = PackOptions { length: 5, cls_id, sep_id, own: [0, 0], pad_id };
/// let mut packer = Packer::new(options).unwrap();
/// let documents = [&[10u32, 11][..], &[12, 13]];
/// let full = packer.add((0..).zip(documents), 0);
/// assert_eq!(full.ids, [1, 10, 11, 12, 2]);
/// assert_eq!(packer.finish().ids, [1, 13, 2, 0, 0]);
/// ```
pub struct Packer {
    options: PackOptions,
    /// The sequence that is not full: empty, or `[CLS]` and at least one id. It does not end with a
    /// separator.
    open: Sequences,
    /// True if there were documents in this stream.
    has_begun: bool,
    dropped: u64,
}

impl Packer {
    /// Makes a packer that has no documents.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Option`] if a sequence has no room for an id between `[CLS]` and `[SEP]`, if
    /// sequences are longer than 2^24 ids, or if there is a `[CLS]` without a `[SEP]`.
    pub fn new(options: PackOptions) -> Result<Self> {
        options.check()?;
        Ok(Packer { options, open: Sequences::default(), has_begun: false, dropped: 0 })
    }

    /// Return the number of ids of documents that were dropped, because their sequence was not full at the end.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Return an upper limit of the ids of the sequences that [`Packer::add`] returns for `documents` documents
    /// with `ids` ids in total.
    pub fn most(&self, documents: usize, ids: usize) -> usize {
        let stream = self.open.ids.len() + documents + ids;
        (stream / (self.options.length - 2 * self.frame()) + 1).saturating_mul(self.options.length)
    }

    /// Adds documents; returns the sequences that are full.
    ///
    /// # Arguments
    ///
    /// * `documents` - The rows of the documents and their ids. Empty documents are skipped.
    /// * `most` - The number of ids to reserve memory for (see [`Packer::most`]).
    pub fn add<'a, T: Id + 'a>(
        &mut self,
        documents: impl Iterator<Item = (i64, &'a [T])>,
        most: usize,
    ) -> Sequences {
        let mut out = std::mem::take(&mut self.open);
        out.is_framed = self.frame() == 1;
        let held = out.ids.len();
        out.ids.reserve_exact(most.saturating_sub(held));
        let mut start = 0; // where the sequence begins that is not full
        for (row, document) in documents {
            if !document.is_empty() {
                self.write(row, document, &mut out, &mut start);
            }
        }
        self.open = out.split_off(start);
        out
    }

    /// Return the number of ids before and after a body.
    fn frame(&self) -> usize {
        usize::from(self.options.cls_id.is_some())
    }

    /// Appends a document. `start`: where the sequence begins that is not full.
    fn write(&mut self, row: i64, mut rest: &[impl Id], out: &mut Sequences, start: &mut usize) {
        let body_end = self.options.length - self.frame();
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let at = out.ids.len() - *start;
        let is_inside = match self.frame() {
            0 => !is_first,
            _ => (1..body_end - 1).contains(&at),
        };
        if let Some(sep_id) = self.options.sep_id.filter(|_| is_inside) {
            out.separators.push(out.ids.len());
            out.ids.push(sep_id);
            self.close_if_full(out, start);
        }
        let [first, last] = if self.options.sep_id.is_none() { self.options.own } else { [0; 2] };
        let length = rest.len();
        while !rest.is_empty() {
            if out.ids.len() == *start {
                out.ids.extend(self.options.cls_id);
            }
            let at = out.ids.len() - *start;
            out.document_starts.push(at as i32);
            out.document_rows.push(row);
            let (now, later) = rest.split_at(rest.len().min(body_end - at));
            let (from, to) = (length - rest.len(), length - later.len());
            let ending = from.max(first).max(length.saturating_sub(last));
            for special in (from..to.min(first)).chain(ending..to) {
                out.separators.push(out.ids.len() + special - from);
            }
            out.ids.extend(now.iter().map(|id| id.value()));
            rest = later;
            self.close_if_full(out, start);
        }
    }

    /// Ends the last sequence if its body is full.
    fn close_if_full(&self, out: &mut Sequences, start: &mut usize) {
        if out.ids.len() - *start == self.options.length - self.frame() {
            self.end_body(out);
            out.lengths.push(self.options.length as i32);
            out.document_ends.push(out.document_starts.len());
            *start = out.ids.len();
        }
    }

    /// Append the ids after a body.
    fn end_body(&self, out: &mut Sequences) {
        out.ids.extend(self.options.sep_id.filter(|_| self.frame() == 1));
    }

    /// The last sequence, padded. There is none if it is empty, or if sequences are not padded: then
    /// its ids count as dropped. Documents that are added later form a new stream.
    pub fn finish(&mut self) -> Sequences {
        let mut last = std::mem::take(&mut self.open);
        last.is_framed = self.frame() == 1;
        self.has_begun = false;
        if last.ids.is_empty() {
            return last;
        }
        let Some(pad) = self.options.pad_id else {
            let between = if self.options.sep_id.is_none() { 0 } else { last.separators.len() };
            self.dropped += (last.ids.len() - self.frame() - between) as u64;
            return Sequences::default();
        };
        self.end_body(&mut last);
        last.lengths.push(last.ids.len() as i32);
        last.ids.resize(self.options.length, pad);
        last.document_ends.push(last.document_starts.len());
        last
    }
}

impl Sequences {
    /// Return the number of sequences.
    pub fn len(&self) -> usize {
        self.document_ends.len()
    }

    /// Return true if there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.document_ends.is_empty()
    }

    /// Takes off the last sequence, which is not full and begins at index `start` of `ids`.
    fn split_off(&mut self, start: usize) -> Self {
        let documents = self.document_ends.last().copied().unwrap_or(0);
        let separators = self.separators.partition_point(|&at| at < start);
        Sequences {
            ids: self.ids.split_off(start),
            separators: self.separators.drain(separators..).map(|at| at - start).collect(),
            document_starts: self.document_starts.split_off(documents),
            document_rows: self.document_rows.split_off(documents),
            ..Sequences::default()
        }
    }

    /// The number of ids of a sequence with its padding.
    pub fn length(&self) -> usize {
        self.ids.len() / self.len().max(1)
    }

    /// The number of ids that are padding.
    pub fn padding(&self) -> u64 {
        let inside: i64 = self.lengths.iter().map(|&length| i64::from(length)).sum();
        self.ids.len() as u64 - inside as u64
    }

    /// Makes a column with a value for each id. `fill`: sets the values of a sequence, from the number
    /// of its ids before the padding and the starts of its documents.
    fn column<T: Copy>(&self, padding: T, fill: impl Fn(&mut [T], &[i32])) -> Vec<T> {
        let mut column = vec![padding; self.ids.len()];
        let mut first = 0;
        let rows = column.chunks_exact_mut(self.length().max(1));
        for ((row, &length), &end) in rows.zip(&self.lengths).zip(&self.document_ends) {
            fill(&mut row[..length as usize], &self.document_starts[first..end]);
            first = end;
        }
        column
    }

    /// For each id 1, or 0 for padding.
    pub fn attention_mask(&self) -> Vec<i8> {
        self.column(0, |row, _| row.fill(1))
    }

    /// For each id, its position in its document; 0 for padding. Ids before the first document belong
    /// to it, and separators to the document before them.
    pub fn position_ids(&self) -> Vec<i32> {
        self.column(0, |row, starts| {
            for [start, end] in bounds(starts, row.len()) {
                (0..).zip(&mut row[start..end]).for_each(|(position, id)| *id = position);
            }
        })
    }

    /// For each id, the number of its document in the sequence, from 0; -1 for padding.
    pub fn document_ids(&self) -> Vec<i32> {
        self.column(-1, |row, starts| {
            for (number, [start, end]) in (0..).zip(bounds(starts, row.len())) {
                row[start..end].fill(number);
            }
        })
    }

    /// For each document in each sequence, the number of its ids, with the separator after it. The sum
    /// of a sequence is its length before the padding.
    pub fn document_lengths(&self) -> Vec<i32> {
        let (mut lengths, mut first) = (Vec::with_capacity(self.document_starts.len()), 0);
        for (&length, &end) in self.lengths.iter().zip(&self.document_ends) {
            let of_sequence = bounds(&self.document_starts[first..end], length as usize);
            lengths.extend(of_sequence.map(|[start, end]| (end - start) as i32));
            first = end;
        }
        lengths
    }

    /// For each id, 1 if it is `[CLS]`, `[SEP]`, a special token at an end of a document, or padding,
    /// and 0 if it is of a text.
    pub fn special_tokens_mask(&self) -> Vec<i8> {
        let framed = i8::from(self.is_framed);
        let mut mask = self.column(1, |row, _| {
            row.fill(0);
            for end in [0, row.len() - 1] {
                row[end] = framed;
            }
        });
        self.separators.iter().for_each(|&at| mask[at] = 1);
        mask
    }
}

/// The bounds of the documents in a sequence of `length` ids, from their starts. The first begins
/// with the sequence.
fn bounds(starts: &[i32], length: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..starts.len()).map(move |n| {
        let at = |n: usize| if n == 0 { 0 } else { starts[n] as usize };
        [at(n), if n + 1 < starts.len() { at(n + 1) } else { length }]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLS: u32 = 901; // larger than all ids of documents, as other special tokens are
    const SEP: u32 = 902;
    const PAD: u32 = 903;

    fn packer(length: usize, pads: bool) -> Packer {
        let (cls_id, sep_id, pad_id) = (Some(CLS), Some(SEP), pads.then_some(PAD));
        Packer::new(PackOptions { length, cls_id, sep_id, own: [0; 2], pad_id }).unwrap()
    }

    fn add(packer: &mut Packer, first: i64, documents: &[Vec<u32>]) -> Sequences {
        packer.add((first..).zip(documents.iter().map(Vec::as_slice)), 0)
    }

    #[test]
    fn documents_follow_each_other_with_one_separator_between() {
        let mut packer = packer(6, true);
        let documents = [vec![1, 2, 3], vec![], vec![4, 5], vec![6, 7, 8], vec![9]];
        let full = add(&mut packer, 0, &documents);
        // A separator before 4 would end a body, and is left out, as the one before 10.
        assert_eq!(full.ids, [CLS, 1, 2, 3, 4, SEP, CLS, 5, SEP, 6, 7, SEP]);
        assert_eq!((full.separators.as_slice(), full.len()), (&[8][..], 2));
        assert_eq!(full.document_starts, [1, 4, 1, 3]);
        assert_eq!(full.document_rows, [0, 2, 2, 3]);
        assert_eq!(full.document_ends, [2, 4]);
        assert_eq!(full.special_tokens_mask(), [1, 0, 0, 0, 0, 1, 1, 0, 1, 0, 0, 1]);
        assert_eq!(full.position_ids(), [0, 1, 2, 3, 0, 1, 0, 1, 2, 0, 1, 2]);
        assert_eq!(full.document_ids(), [0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1]);
        assert_eq!(full.document_lengths(), [4, 2, 3, 3]);
        assert_eq!(add(&mut packer, 5, &[vec![10, 11]]).ids, [CLS, 8, SEP, 9, 10, SEP]);
        assert_eq!(packer.finish().ids, [CLS, 11, SEP, PAD, PAD, PAD]);
    }

    #[test]
    fn without_cls_a_sequence_is_a_body() {
        let (cls_id, sep_id, pad_id) = (None, Some(SEP), None);
        let options = PackOptions { length: 4, cls_id, sep_id, own: [0; 2], pad_id };
        let documents = [vec![1, 2, 3, 4], vec![], vec![5, 6, 7], vec![8]];
        let mut drops = Packer::new(options).unwrap();
        let full = add(&mut drops, 0, &documents);
        // The first separator begins a body, which ends where a document does.
        assert_eq!(full.ids, [1, 2, 3, 4, SEP, 5, 6, 7]);
        assert_eq!(full.special_tokens_mask(), [0, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(full.document_starts, [0, 1]);
        assert!(drops.finish().is_empty());
        assert_eq!(drops.dropped(), 1);
        let mut pads = Packer::new(PackOptions { pad_id: Some(PAD), ..options }).unwrap();
        add(&mut pads, 0, &documents);
        let last = pads.finish();
        assert_eq!(last.ids, [SEP, 8, PAD, PAD]);
        assert_eq!(last.special_tokens_mask(), [1, 0, 1, 1]);
        assert_eq!(add(&mut pads, 9, &[vec![1, 2, 3, 4]]).ids, [1, 2, 3, 4]);
    }

    #[test]
    fn special_tokens_of_documents_are_marked_and_nothing_is_between() {
        let pad_id = Some(PAD);
        let (cls_id, sep_id, own) = (None, None, [1, 2]);
        let options = PackOptions { length: 4, cls_id, sep_id, own, pad_id };
        let mut packer = Packer::new(options).unwrap();
        let documents =
            [vec![908, 1, 2, 3, 4, 909, 909], vec![], vec![908, 909, 909], vec![908, 5, 909, 909]];
        let mut mask = Vec::new();
        let mut ids = Vec::new();
        for document in documents.chunks(1) {
            let full = add(&mut packer, 0, document);
            mask.extend(full.special_tokens_mask());
            ids.extend(full.ids);
        }
        let last = packer.finish();
        mask.extend(last.special_tokens_mask());
        ids.extend(last.ids);
        let of_documents = [908, 1, 2, 3, 4, 909, 909, 908, 909, 909, 908, 5, 909, 909];
        assert_eq!(ids, [&of_documents[..], &[PAD, PAD]].concat());
        assert_eq!(mask, ids.iter().map(|&id| i8::from(id > 900)).collect::<Vec<_>>());
        let mut drops = Packer::new(PackOptions { pad_id: None, ..options }).unwrap();
        assert_eq!(add(&mut drops, 0, &documents).ids, of_documents[..12]);
        assert!(drops.finish().is_empty());
        assert_eq!(drops.dropped(), 2);
    }

    #[test]
    fn the_last_sequence_is_padded_or_dropped() {
        let documents = [vec![1, 2, 3, 4, 5], vec![6]];
        let (mut pads, mut drops) = (packer(7, true), packer(7, false));
        for packer in [&mut pads, &mut drops] {
            assert_eq!(add(packer, 0, &documents).ids, [CLS, 1, 2, 3, 4, 5, SEP]);
        }
        let last = pads.finish();
        assert_eq!(last.ids, [CLS, 6, SEP, PAD, PAD, PAD, PAD]);
        assert_eq!(last.attention_mask(), [1, 1, 1, 0, 0, 0, 0]);
        assert_eq!(last.special_tokens_mask(), [1, 0, 1, 1, 1, 1, 1]);
        assert_eq!((last.lengths.as_slice(), last.padding(), pads.dropped()), (&[3][..], 4, 0));
        assert_eq!(last.position_ids(), [0, 1, 2, 0, 0, 0, 0]);
        assert_eq!(last.document_ids(), [0, 0, 0, -1, -1, -1, -1]);
        assert!(drops.finish().is_empty());
        assert_eq!(drops.dropped(), 1);
        assert!(drops.finish().is_empty() && pads.finish().is_empty());
        assert_eq!(drops.dropped(), 1);
    }

    #[test]
    fn batches_that_end_anywhere_change_nothing() {
        let documents: Vec<Vec<u32>> = (0..40).map(|n| (0..n * 7 % 23).collect()).collect();
        for length in 3..30 {
            let mut whole = packer(length, true);
            let mut all = add(&mut whole, 0, &documents).ids;
            all.extend(whole.finish().ids);
            for size in [1, 3, 7] {
                let mut packer = packer(length, true);
                let mut ids = Vec::new();
                for (part, first) in documents.chunks(size).zip((0..).step_by(size)) {
                    let most = packer.most(part.len(), part.iter().map(Vec::len).sum());
                    let full = add(&mut packer, first, part);
                    assert!(full.ids.len() <= most && packer.open.ids.len() < length);
                    ids.extend(full.ids);
                }
                ids.extend(packer.finish().ids);
                assert_eq!(ids, all, "{length} {size}");
            }
        }
    }

    #[test]
    fn sequences_without_room_for_text_or_an_end_are_refused() {
        let options =
            PackOptions { length: 2, cls_id: None, sep_id: None, own: [0; 2], pad_id: None };
        assert!(Packer::new(options).is_err());
        assert!(Packer::new(PackOptions { length: 3, ..options }).is_ok());
        assert!(Packer::new(PackOptions { length: 3, cls_id: Some(1), ..options }).is_err());
    }
}
