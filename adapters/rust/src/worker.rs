//! What a thread keeps from chunk to chunk: contexts of codec libraries, and memory for what is made on the way.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed};
use std::cell::Cell;

use crate::errors::{Fault, Kind, Outcome};
use crate::kernels::Contexts;

/// Memory that stays with a thread between calls is at most this large; more is given back.
const KEPT: usize = 4 << 20;

/// Memory that is used again and again; its contents are whatever was there before.
#[derive(Default)]
pub struct Memory(Vec<u8>);

impl Memory {
    /// How many bytes it has now.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// Lend exactly so many bytes; those that were lent before keep their contents if no more are asked for.
    ///
    /// # Errors
    /// When there is not so much memory.
    pub fn room(&mut self, length: usize) -> Outcome<&mut [u8]> {
        if self.0.len() < length {
            self.0 = Vec::new();
            self.0 = zeroed(length)?;
        }
        Ok(&mut self.0[..length])
    }

    /// Give the first bytes away.
    #[must_use]
    pub fn into_bytes(mut self, length: usize) -> Vec<u8> {
        self.0.truncate(length);
        self.0
    }

    /// What was put into the first bytes.
    #[must_use]
    pub fn filled(&self, length: usize) -> &[u8] {
        &self.0[..length]
    }
}

/// Make a vector of zeros, which costs nothing until they are used.
///
/// # Errors
/// When there is not so much memory.
pub fn zeroed(length: usize) -> Outcome<Vec<u8>> {
    if length == 0 {
        return Ok(Vec::new());
    }
    let unavailable = || Fault::new(Kind::Configuration, "a chunk does not fit into memory");
    let layout = Layout::array::<u8>(length).map_err(|_| unavailable())?;
    // SAFETY: the layout is not empty; the pointer is checked, comes from the global allocator, and `length` bytes
    // are initialised.
    unsafe {
        let pointer = alloc_zeroed(layout);
        if pointer.is_null() {
            return Err(unavailable().with(length, "less".to_owned()));
        }
        let (filled, capacity) = (length, length);
        Ok(Vec::from_raw_parts(pointer, filled, capacity))
    }
}

/// Copy bytes into a vector that has room for so many more.
///
/// # Errors
/// When there is not so much memory.
pub fn copied(bytes: &[u8], more: usize) -> Outcome<Vec<u8>> {
    let mut made = Vec::new();
    made.try_reserve_exact(bytes.len() + more)
        .map_err(|_| Fault::new(Kind::Configuration, "a chunk does not fit into memory"))?;
    made.extend_from_slice(bytes);
    Ok(made)
}

/// The same for the contexts of codec libraries; those of usual levels are smaller.
const KEPT_CONTEXT: usize = 8 << 20;

/// The working memory of one thread.
#[derive(Default)]
pub struct Worker {
    /// Bytes that were read from a file.
    pub input: Memory,
    /// What the last kernel made.
    pub front: Memory,
    /// What the next kernel makes.
    pub back: Memory,
    /// A whole chunk before it is encoded.
    pub chunk: Memory,
    /// Contexts of codec libraries.
    pub contexts: Contexts,
    /// Axes of the entry that is being copied.
    pub place: crate::place::Place,
}

thread_local! {
    static WORKER: Cell<Option<Box<Worker>>> = const { Cell::new(None) };
}

impl Worker {
    /// Lend this thread's working memory to a function.
    pub fn lend<T>(function: impl FnOnce(&mut Self) -> T) -> T {
        let mut worker = WORKER.take().unwrap_or_default();
        let result = function(&mut worker);
        for memory in [&mut worker.input, &mut worker.front, &mut worker.back, &mut worker.chunk] {
            if memory.0.len() > KEPT {
                *memory = Memory::default();
            }
        }
        worker.contexts.trim(KEPT_CONTEXT);
        WORKER.set(Some(worker));
        result
    }
}

#[cfg(test)]
mod tests {
    use super::zeroed;

    #[test]
    fn memory_that_is_not_there_is_an_error() {
        assert!(zeroed(isize::MAX as usize - 7).is_err());
        assert_eq!(zeroed(3).map_err(|fault| fault.message), Ok(vec![0; 3]));
    }
}
