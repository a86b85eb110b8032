//! Encoding on several threads, inside one call. Texts are divided into blocks of about the same number
//! of bytes. Each thread has several of them, one after the other, so that it knows the words that
//! come again there; the next call with the same texts gives it the same ones. A thread that is done
//! helps the others, so that all end at about the same time.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::error::{Result, caught};
use crate::base::threads::on_threads;
use crate::encode::rows::{MOST_IDS, RowOptions, Rows, TextPair, encode_rows};
use crate::encode::tokenizer::{Session, Tokenizer};

/// Encodes texts in blocks, each of one batch. The results are in the order of the texts.
///
/// # Arguments
///
/// * `tokenizer` - Tokenizes texts.
/// * `options` - How tokens become rows.
/// * `texts` - The texts, or the pairs of texts.
/// * `threads` - How many threads encode, this one included. With one thread, all texts are one
///   block, unless they are many.
/// * `finish` - Is called with the rows of each batch, on the thread that has made them.
///
/// # Errors
///
/// Returns the error of the first block that has one: an error of [`encode_rows`] or of `finish`, or
/// [`Error::Panic`](crate::base::error::Error::Panic).
pub fn encode_blocks<T: Send>(
    tokenizer: &Tokenizer,
    options: &RowOptions,
    texts: &[TextPair<'_>],
    threads: usize,
    finish: impl Fn(Rows) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let blocks = blocks(options, texts, threads);
    // A panic is caught on the thread where it occurs, which knows its place.
    let encode = |session: &mut Session<'_>, block: &Range<usize>| {
        let texts = &texts[block.clone()];
        caught(|| finish(encode_rows(session, options, texts, block.start)?))
    };
    let threads = threads.clamp(1, blocks.len());
    let shares: Vec<Share> =
        (0..threads).map(|thread| Share::new(thread, threads, blocks.len())).collect();
    let work = |thread: usize| {
        let mut session = tokenizer.session(thread, threads);
        let (others, own) = shares.split_at(thread);
        let taken = own.iter().chain(others).flat_map(|share| std::iter::from_fn(|| share.take()));
        taken.map(|number| (number, encode(&mut session, &blocks[number]))).collect::<Vec<_>>()
    };
    let mut done: Vec<_> = on_threads(threads, work).into_iter().flatten().collect();
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The blocks of one thread.
struct Share {
    next: AtomicUsize,
    end: usize,
}

impl Share {
    /// An equal part of `blocks` blocks for each thread.
    fn new(thread: usize, threads: usize, blocks: usize) -> Self {
        let bound = |thread: usize| thread * blocks / threads;
        Share { next: AtomicUsize::new(bound(thread)), end: bound(thread + 1) }
    }

    /// The next block, which belongs to the caller; None if all are taken.
    fn take(&self) -> Option<usize> {
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|&number| number < self.end)
    }
}

/// Divides texts into ranges of about the same number of bytes: at least one, and several for each
/// thread if there is enough text. The ids of a range fit into a batch, unless there are eight ids for each
/// byte, or for each of the padding.
fn blocks(options: &RowOptions, texts: &[TextPair<'_>], threads: usize) -> Vec<Range<usize>> {
    const LEAST: usize = 1 << 16;
    let size = |(text, pair): &TextPair<'_>| {
        let bytes = text.map_or(0, <[u8]>::len) + pair.flatten().map_or(0, <[u8]>::len);
        bytes.max(options.padded_length())
    };
    let all = texts.iter().map(size).fold(0, usize::saturating_add);
    let most = if threads > 1 { (all / threads.saturating_mul(8)).max(LEAST) } else { usize::MAX };
    let most = most.min(MOST_IDS / 8);
    let (mut blocks, mut start, mut held) = (Vec::new(), 0, 0);
    for (row, text) in texts.iter().enumerate() {
        if held >= most {
            blocks.push(start..row);
            (start, held) = (row, 0);
        }
        held = size(text).saturating_add(held);
    }
    blocks.push(start..texts.len());
    blocks
}
