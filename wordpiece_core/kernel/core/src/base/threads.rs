//! Work on several threads.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

use crate::base::error::Result;

/// Return the number of threads that can run at the same time in this process; a guess if that is unknown.
pub(crate) fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Call `work` on up to `threads` threads, including this one, with the number of the thread from 0. If
/// fewer threads start, they share all work: `work` must take its tasks from a shared queue. Returns the
/// results by number.
pub(crate) fn on_threads<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = if cfg!(feature = "threads") { threads } else { 1 };
    on_threads_of(Builder::new, threads, work)
}

fn on_threads_of<T: Send>(
    builder: fn() -> Builder,
    threads: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let spawn = |thread| builder().spawn_scoped(scope, move || work(thread)).ok();
        let others: Vec<_> = (1..threads).map_while(spawn).collect();
        let mut done = vec![work(0)];
        done.extend(
            others.into_iter().map(|other| other.join().unwrap_or_else(|p| resume_unwind(p))),
        );
        done
    })
}

/// Process all items, and return the state of every thread. `begin` makes the state of a thread.
/// The items come in any order.
///
/// # Errors
///
/// Returns an error of `work`.
pub(crate) fn in_threads<T: Sync, S: Send>(
    items: &[T],
    threads: usize,
    begin: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let next = AtomicUsize::new(0);
    let run = |_| {
        let mut state = begin();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(&mut state, item)?;
        }
        Ok(state)
    };
    on_threads(threads, run).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_items_are_done_by_the_threads_that_there_are() {
        let items: Vec<usize> = (0..1000).collect();
        let sums = in_threads(
            &items,
            3,
            || 0,
            |sum, item| {
                *sum += item;
                Ok(())
            },
        );
        assert_eq!(sums.unwrap().into_iter().sum::<usize>(), 499_500);
        assert_eq!(on_threads(4, |thread| thread), [0, 1, 2, 3]);
        assert_eq!(on_threads(0, |thread| thread), [0]);
        // No system gives a thread so large a stack.
        let huge = || Builder::new().stack_size(1 << 62);
        assert_eq!(on_threads_of(huge, 4, |thread| thread), [0]);
    }
}
