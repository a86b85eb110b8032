//! Prefetching memory.

#![allow(unsafe_code)]

/// Prefetch memory that will be read soon. Does nothing on processors without a prefetch instruction.
#[inline(always)]
pub(crate) fn prefetch<T>(soon: &T) {
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
