//! Encoding on several threads, inside one call. Texts are cut into blocks of about the same number
//! of bytes, several for each thread, so that all threads end at about the same time.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::encode::encoder::Encoder;
use crate::encode::rows::{self, RowOptions, Rows, TextPair};
use crate::error::{Result, caught};

/// Encodes texts in blocks, which threads take one after the other. The results are in the order of
/// the texts.
///
/// # Arguments
///
/// * `encoder` - Cuts texts into tokens.
/// * `options` - How tokens become rows.
/// * `texts` - The texts, or the pairs of texts.
/// * `threads` - How many threads encode, this one included. With one thread, all texts are one
///   block.
/// * `finish` - Is called with the rows of each block, on the thread that has made them.
///
/// # Errors
///
/// Returns the error of the first block that has one: that of [`rows::encode`], that of `finish`, or
/// [`Error::Panic`](crate::error::Error::Panic).
pub fn encode_blocks<T: Send>(
    encoder: &Encoder,
    options: &RowOptions,
    texts: &[TextPair<'_>],
    threads: usize,
    finish: impl Fn(Rows) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let blocks = blocks(texts, threads);
    // A panic is caught on the thread where it occurs, which knows its place.
    let encode = |block: &Range<usize>| {
        let encode = || rows::encode(encoder, options, &texts[block.clone()], block.start);
        caught(|| encode().and_then(&finish))
    };
    if blocks.len() == 1 {
        return blocks.iter().map(encode).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let taken = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let taken = taken.map_while(|number| Some((number, blocks.get(number)?)));
        taken.map(|(number, block)| (number, encode(block))).collect::<Vec<_>>()
    };
    let mut done = std::thread::scope(|scope| {
        // If the system gives no more threads, the work is done by those that there are.
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads.min(blocks.len())).map_while(spawn).collect();
        let mut done = work();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Cuts texts into ranges of about the same number of bytes: one at least, and several for each
/// thread if there is enough text.
fn blocks(texts: &[TextPair<'_>], threads: usize) -> Vec<Range<usize>> {
    const LEAST: usize = 1 << 16;
    let size = |(text, pair): &TextPair<'_>| {
        text.map_or(0, <[u8]>::len) + pair.flatten().map_or(0, <[u8]>::len)
    };
    let all: usize = texts.iter().map(size).sum();
    let most = if threads > 1 { (all / threads.saturating_mul(8)).max(LEAST) } else { usize::MAX };
    let (mut blocks, mut start, mut held) = (Vec::new(), 0, 0);
    for (row, text) in texts.iter().enumerate() {
        if held >= most {
            blocks.push(start..row);
            (start, held) = (row, 0);
        }
        held += size(text);
    }
    blocks.push(start..texts.len());
    blocks
}
