//! `gzip` (RFC 1952) and `zlib` (RFC 1950), by libdeflate: about twice as fast as zlib, both ways.
//!
//! What may follow a stream is what numcodecs accepts: more members and zero bytes after a gzip member, anything
//! after a zlib stream. No bytes at all are no gzip members.
//!
//! libdeflate takes some streams for good that zlib does not, and that decode to bytes of the right checksum: those whose
//! headers have a wrong checksum, which is checked here, and those with a code that nothing stands for (see
//! `docs/limits.md`).

#![allow(unsafe_code)]

use std::ptr::NonNull;

use libdeflate_sys as ffi;

use super::Written;
use crate::errors::{Failure, Fault, Kind, Outcome};
use crate::worker::Memory;

/// zlib's default level, which -1 stands for.
const DEFAULT: i32 = 6;

/// Which of the two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One or more gzip members.
    Gzip,
    /// One zlib stream.
    Zlib,
}

/// Configuration of the codec.
#[derive(Clone, Debug)]
pub struct Deflate {
    format: Format,
    level: i32,
}

/// A decompressor and the compressor of the level that was used last, made when they are first needed.
#[derive(Default)]
pub struct Contexts {
    decompressor: Option<Decompressor>,
    compressor: Option<(i32, Compressor)>,
}

struct Decompressor(NonNull<ffi::libdeflate_decompressor>);

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: it came from `libdeflate_alloc_decompressor` and is freed once.
        unsafe { ffi::libdeflate_free_decompressor(self.0.as_ptr()) }
    }
}

struct Compressor(NonNull<ffi::libdeflate_compressor>);

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: it came from `libdeflate_alloc_compressor` and is freed once.
        unsafe { ffi::libdeflate_free_compressor(self.0.as_ptr()) }
    }
}

impl Contexts {
    fn decompressor(&mut self) -> Outcome<&mut Decompressor> {
        if self.decompressor.is_none() {
            // SAFETY: the function has no requirements; null is checked.
            let made = unsafe { ffi::libdeflate_alloc_decompressor() };
            self.decompressor = NonNull::new(made).map(Decompressor);
        }
        self.decompressor.as_mut().ok_or_else(no_context)
    }

    fn compressor(&mut self, level: i32) -> Outcome<&mut Compressor> {
        if self.compressor.as_ref().is_none_or(|(kept, _)| *kept != level) {
            // SAFETY: the function has no requirements; null (no memory, or no such level) is checked.
            let made = unsafe { ffi::libdeflate_alloc_compressor(level) };
            self.compressor = NonNull::new(made).map(|pointer| (level, Compressor(pointer)));
        }
        self.compressor.as_mut().map(|(_, compressor)| compressor).ok_or_else(no_context)
    }
}

#[allow(clippy::unnecessary_box_returns, reason = "faults are handed on in boxes")]
fn no_context() -> Failure {
    Fault::new(Kind::Configuration, "there is no memory for a context")
}

impl Deflate {
    /// Make the codec.
    pub fn new(format: Format, level: i64) -> Self {
        Self { format, level: i32::try_from(level).ok().filter(|level| *level >= 0).unwrap_or(DEFAULT) }
    }

    /// Decode all members, or the stream.
    pub fn decode(&self, contexts: &mut Contexts, input: &[u8], out: &mut [u8]) -> Written {
        let decompressor = contexts.decompressor()?;
        if self.format == Format::Zlib {
            return Ok(one(decompressor, self.format, input, out)?.map(|(_, written)| written));
        }
        let (mut begin, mut total) = (0, 0);
        while begin < input.len() {
            if !has_good_header(&input[begin..]) {
                return Err(Fault::corrupt("wrong checksum of the header"));
            }
            let Some((read, written)) = one(decompressor, self.format, &input[begin..], &mut out[total..])? else {
                return Ok(None);
            };
            total += written;
            begin += read;
            begin += input[begin..].iter().take_while(|byte| **byte == 0).count();
        }
        Ok(Some(total))
    }

    /// Encode as one member or stream.
    pub fn encode(&self, contexts: &mut Contexts, input: &[u8], out: &mut Memory) -> Outcome<usize> {
        let compressor = contexts.compressor(self.level)?.0.as_ptr();
        let (bound, compress): (unsafe extern "C" fn(_, _) -> _, unsafe extern "C" fn(_, _, _, _, _) -> _) =
            match self.format {
                Format::Gzip => (ffi::libdeflate_gzip_compress_bound, ffi::libdeflate_gzip_compress),
                Format::Zlib => (ffi::libdeflate_zlib_compress_bound, ffi::libdeflate_zlib_compress),
            };
        // SAFETY: the compressor is alive.
        let most = unsafe { bound(compressor, input.len()) };
        let out = out.room(most)?;
        // SAFETY: the compressor is used by this thread alone, pointers and lengths are those of the slices.
        let size =
            unsafe { compress(compressor, input.as_ptr().cast(), input.len(), out.as_mut_ptr().cast(), out.len()) };
        if size == 0 { Err(Fault::new(Kind::Configuration, "cannot be encoded")) } else { Ok(size) }
    }
}

/// Whether the header of a gzip member has the checksum that it claims to have; other faults are not looked for.
fn has_good_header(member: &[u8]) -> bool {
    const FIXED: usize = 10;
    const CHECKED: u8 = 2;
    const EXTRA: u8 = 4;
    const TEXTS: [u8; 2] = [8, 16];
    let short = |at: usize| member.get(at..at + 2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
    let [0x1f, 0x8b, _, flags, ..] = member else { return true };
    if flags & CHECKED == 0 {
        return true;
    }
    let mut end = FIXED;
    if flags & EXTRA != 0 {
        end += 2 + usize::from(short(end).unwrap_or(0));
    }
    for text in TEXTS {
        if flags & text != 0 {
            end += 1 + member.iter().skip(end).take_while(|byte| **byte != 0).count();
        }
    }
    let Some((head, stored)) = member.get(..end).zip(short(end)) else {
        return true;
    };
    // SAFETY: pointer and length are those of the slice.
    let sum = unsafe { ffi::libdeflate_crc32(0, head.as_ptr().cast(), head.len()) };
    sum & 0xffff == u32::from(stored)
}

/// Decode one stream; returns what was read and written, None when there is too little room.
fn one(
    decompressor: &mut Decompressor,
    format: Format,
    input: &[u8],
    out: &mut [u8],
) -> Outcome<Option<(usize, usize)>> {
    let decompress = match format {
        Format::Gzip => ffi::libdeflate_gzip_decompress_ex,
        Format::Zlib => ffi::libdeflate_zlib_decompress_ex,
    };
    let (mut read, mut written) = (0, 0);
    // SAFETY: the decompressor is used by this thread alone, pointers and lengths are those of the slices, and the
    // library neither reads nor writes beyond them.
    let result = unsafe {
        decompress(
            decompressor.0.as_ptr(),
            input.as_ptr().cast(),
            input.len(),
            out.as_mut_ptr().cast(),
            out.len(),
            &raw mut read,
            &raw mut written,
        )
    };
    match result {
        ffi::libdeflate_result_LIBDEFLATE_SUCCESS => Ok(Some((read, written))),
        ffi::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => Ok(None),
        _ => Err(Fault::corrupt("the stream is broken or ends early")),
    }
}
