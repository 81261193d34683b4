//! `numcodecs.lz4`: an LZ4 block after its decoded size. Nothing may follow the block.

#![allow(unsafe_code)]

use std::ffi::c_int;

use lz4_sys::{LZ4_compress_fast, LZ4_compressBound, LZ4_decompress_safe};

use super::{Written, header};
use crate::errors::{Fault, Kind, Outcome};
use crate::worker::Memory;

const HEADER: usize = 4;

/// Most bytes that the library encodes as one block.
const MOST: usize = 0x7E00_0000;

/// Configuration of the codec.
#[derive(Clone, Debug)]
pub struct Lz4 {
    acceleration: c_int,
}

impl Lz4 {
    /// Make the codec.
    pub fn new(acceleration: i64) -> Self {
        Self { acceleration: c_int::try_from(acceleration).unwrap_or(c_int::MAX).max(1) }
    }

    /// Encode as one block.
    pub fn encode(&self, input: &[u8], out: &mut Memory) -> Outcome<usize> {
        let size = c_int::try_from(input.len()).ok().filter(|_| input.len() <= MOST).ok_or_else(|| {
            Fault::new(Kind::Configuration, "too many bytes for a block").with(format!("at most {MOST}"), input.len())
        })?;
        // SAFETY: plain arithmetic.
        let bound = unsafe { LZ4_compressBound(size) };
        let out = out.room(HEADER + usize::try_from(bound).unwrap_or(0))?;
        let (head, block) = out.split_at_mut(HEADER);
        head.copy_from_slice(&size.to_le_bytes());
        // SAFETY: pointers and lengths are those of the slices.
        let written = unsafe {
            LZ4_compress_fast(input.as_ptr().cast(), block.as_mut_ptr().cast(), size, bound, self.acceleration)
        };
        match usize::try_from(written) {
            Ok(written) if written > 0 => Ok(HEADER + written),
            _ => Err(Fault::new(Kind::Configuration, "cannot be encoded")),
        }
    }
}

/// Decode the block.
pub fn decode(input: &[u8], out: &mut [u8]) -> Written {
    let Some(claimed) = header(input) else {
        return Err(Fault::corrupt("no room for a header").with(HEADER, input.len()));
    };
    let decoded = claimed as usize;
    let Some(out) = out.get_mut(..decoded) else {
        return Ok(None);
    };
    let block = &input[HEADER..];
    let sizes = c_int::try_from(block.len()).ok().zip(c_int::try_from(decoded).ok());
    let Some((encoded, room)) = sizes else {
        return Err(Fault::corrupt("too many bytes for a block"));
    };
    if decoded == 0 {
        return Ok(Some(0));
    }
    // SAFETY: pointers and lengths are those of the slices; this function checks both.
    let written = unsafe { LZ4_decompress_safe(block.as_ptr().cast(), out.as_mut_ptr().cast(), encoded, room) };
    if written == room { Ok(Some(decoded)) } else { Err(Fault::corrupt("the block is broken")) }
}
