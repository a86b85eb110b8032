//! Helpers for the kernel's tests: pseudorandom numbers, and an allocator that measures peak memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Pseudorandom numbers, the same in every run (xorshift64*).
pub struct Random(u64);

impl Random {
    /// The numbers that follow from a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number from 0 to `end - 1`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end
    }

    /// One of these values.
    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// A word of 1 to `most` characters, each one of these.
    pub fn word(&mut self, characters: &[char], most: usize) -> String {
        (0..1 + self.below(most)).map(|_| *self.choose(characters)).collect()
    }
}

/// The memory of the thread of a test.
#[derive(Clone, Copy)]
struct Held {
    bytes: isize,
    peak: isize,
}

thread_local! {
    static HELD: Cell<Held> =
        const { Cell::new(Held { bytes: 0, peak: 0 }) };
}

/// The system's allocator, which counts the bytes of each thread.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all memory comes from the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        changed(0, layout.size());
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        changed(layout.size(), 0);
        // SAFETY: as the caller says.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new memory exist at the same time, as during a copy.
        changed(0, size);
        changed(layout.size(), 0);
        // SAFETY: as the caller says.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Record the numbers of bytes that are freed and allocated.
fn changed(freed: usize, allocated: usize) {
    // A thread that ends has no count any more.
    let _ = HELD.try_with(|held| {
        let Held { bytes, peak } = held.get();
        let bytes = bytes + allocated as isize - freed as isize;
        held.set(Held { bytes, peak: peak.max(bytes) });
    });
}

/// Return the peak memory of this thread during `work` in bytes, without the memory that it held before.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD.get().bytes;
    HELD.set(Held { bytes: before, peak: before });
    let result = work();
    ((HELD.get().peak - before) as usize, result)
}
