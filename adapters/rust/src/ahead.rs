//! Ask for memory before it is needed.

/// Bytes that come together.
const LINE: usize = 64;

/// Ask for some bytes, so that they are in a cache when they are read or written a little later. Nothing is read or
/// written here, so the pointer may be any, also one to no memory at all.
#[inline]
pub fn fetch(first: *const u8, length: usize) {
    let mut at = 0;
    while at < length {
        hint(first.wrapping_add(at));
        at += LINE;
    }
    if length > 1 {
        hint(first.wrapping_add(length - 1));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[allow(unsafe_code)]
fn hint(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction never faults, and every x86-64 CPU has it.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn hint(_address: *const u8) {}
