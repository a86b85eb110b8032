//! Memory whose size follows from options or from data. Where the system has no more of it, the work is
//! given up, and [`caught`](crate::base::error::caught) makes it [`Error::Memory`](crate::base::error::Error::Memory).
//! The functions of Rust's vectors end the process in that case.
//!
//! The work is given up by unwinding, as from a panic, so that the loops over characters and tokens need
//! not look for errors.

#![allow(unsafe_code)]

use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasher, Hash};
use std::panic::resume_unwind;

use hashbrown::HashTable;

/// What unwinds where memory is wanting: how many bytes were asked for.
pub struct OutOfMemory(pub usize);

/// Gives up: there is no memory for so many values.
#[cold]
fn give_up<T>(values: usize) -> ! {
    // Unlike a panic this calls no hook, which would write a message.
    resume_unwind(Box::new(OutOfMemory(values.saturating_mul(size_of::<T>()))))
}

/// Makes room for `more` values, or for as many again as there are.
#[inline]
pub fn reserve<T>(values: &mut Vec<T>, more: usize) {
    if values.capacity() - values.len() < more {
        grow(values, more);
    }
}

#[cold]
fn grow<T>(values: &mut Vec<T>, more: usize) {
    // Twice as much is nicer to have, but not needed.
    if values.try_reserve(more).is_err() && values.try_reserve_exact(more).is_err() {
        give_up::<T>(values.len().saturating_add(more));
    }
}

/// Makes room for `more` values, and no more.
pub(crate) fn reserve_exact<T>(values: &mut Vec<T>, more: usize) {
    if values.try_reserve_exact(more).is_err() {
        give_up::<T>(values.len().saturating_add(more));
    }
}

/// Appends a value.
#[inline]
pub fn push<T>(values: &mut Vec<T>, value: T) {
    reserve(values, 1);
    values.push(value);
}

/// Appends values.
#[inline]
pub fn extend<T>(values: &mut Vec<T>, more: impl ExactSizeIterator<Item = T>) {
    reserve(values, more.len());
    values.extend(more);
}

/// Appends copies of values.
#[inline]
pub fn extend_from_slice<T: Copy>(values: &mut Vec<T>, more: &[T]) {
    reserve(values, more.len());
    values.extend_from_slice(more);
}

/// Makes the vector one of `length` values. New ones are copies of `value`.
#[inline]
pub fn resize<T: Clone>(values: &mut Vec<T>, length: usize, value: T) {
    reserve(values, length.saturating_sub(values.len()));
    values.resize(length, value);
}

/// Appends to a string.
#[inline]
pub(crate) fn push_str(text: &mut String, more: &str) {
    reserve_text(text, more.len());
    text.push_str(more);
}

/// Appends a character.
#[inline]
pub(crate) fn push_char(text: &mut String, c: char) {
    reserve_text(text, c.len_utf8());
    text.push(c);
}

/// Makes room in a string for `more` bytes.
#[inline]
pub(crate) fn reserve_text(text: &mut String, more: usize) {
    if text.try_reserve(more).is_err() {
        give_up::<u8>(text.len().saturating_add(more));
    }
}

/// Makes room in a map for one more key.
#[inline]
pub(crate) fn reserve_entry<K: Eq + Hash, V, S: BuildHasher>(map: &mut HashMap<K, V, S>) {
    if map.try_reserve(1).is_err() {
        give_up::<(K, V)>(2 * map.len());
    }
}

/// Makes room in a table for one more value. `hash`: that of a value.
#[inline]
pub(crate) fn reserve_slot<T>(table: &mut HashTable<T>, hash: impl Fn(&T) -> u64) {
    if table.try_reserve(1, hash).is_err() {
        give_up::<T>(2 * table.len());
    }
}

/// Puts a value into a heap.
#[inline]
pub(crate) fn push_heap<T: Ord>(heap: &mut BinaryHeap<T>, value: T) {
    if heap.try_reserve(1).is_err() {
        give_up::<T>(heap.len() + 1);
    }
    heap.push(value);
}

/// Asks for memory that will be read soon, without waiting for it. It does nothing where there is no
/// instruction for that.
#[inline(always)]
pub(crate) fn ask_for<T>(soon: &T) {
    // SAFETY: every x86_64 processor has SSE, and a prefetch reads and writes nothing.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(soon).cast());
    }
    // SAFETY: a prefetch reads and writes nothing.
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    unsafe {
        let soon = std::ptr::from_ref(soon);
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) soon, options(nostack, preserves_flags));
    }
    let _ = soon;
}

/// A vector with room for so many values.
pub fn with_capacity<T>(capacity: usize) -> Vec<T> {
    let mut values = Vec::new();
    reserve_exact(&mut values, capacity);
    values
}

/// A vector of `length` copies of a value.
pub fn filled<T: Clone>(value: T, length: usize) -> Vec<T> {
    let mut values = with_capacity(length);
    values.resize(length, value);
    values
}

/// A copy of some bytes.
pub(crate) fn boxed(bytes: &[u8]) -> Box<[u8]> {
    let mut copy = with_capacity(bytes.len());
    copy.extend_from_slice(bytes);
    copy.into()
}

/// A vector of all values of an iterator.
pub fn collected<T>(values: impl ExactSizeIterator<Item = T>) -> Vec<T> {
    let mut all = with_capacity(values.len());
    all.extend(values);
    all
}
