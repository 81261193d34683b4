//! Checksums: `crc32c`, and numcodecs' `crc32`, `crc32c`, `adler32` and `fletcher32`. Four little-endian bytes before
//! or after the content.

#![allow(unsafe_code)]

use libdeflate_sys::{libdeflate_adler32, libdeflate_crc32};

use crate::errors::{Fault, Kind, Outcome};
use crate::worker::Memory;

/// Bytes of a checksum.
pub const SIZE: usize = 4;

/// Which checksum.
#[derive(Clone, Copy, Debug)]
pub enum Sum {
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// zlib's CRC-32.
    Crc32,
    /// zlib's Adler-32.
    Adler32,
    /// The Fletcher-32 of HDF5.
    Fletcher32,
}

/// A checksum and its place.
#[derive(Clone, Debug)]
pub struct Checksum {
    sum: Sum,
    start: bool,
}

impl Checksum {
    /// Make the codec.
    #[must_use]
    pub fn new(sum: Sum, start: bool) -> Self {
        Self { sum, start }
    }

    /// Whether it comes before the content.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.start
    }

    /// Compute the checksum of some content.
    #[must_use]
    pub fn of(&self, content: &[u8]) -> [u8; SIZE] {
        let sum = match self.sum {
            Sum::Crc32c => crc32c::crc32c(content),
            // SAFETY: pointer and length are those of the slice.
            Sum::Crc32 => unsafe { libdeflate_crc32(0, content.as_ptr().cast(), content.len()) },
            // SAFETY: pointer and length are those of the slice.
            Sum::Adler32 => unsafe { libdeflate_adler32(1, content.as_ptr().cast(), content.len()) },
            Sum::Fletcher32 => fletcher32(content),
        };
        sum.to_le_bytes()
    }

    /// The content of what was encoded, checked.
    ///
    /// # Errors
    /// When the checksum is wrong, or there is none.
    pub fn content<'a>(&self, input: &'a [u8]) -> Outcome<&'a [u8]> {
        let parts = if self.start {
            input.split_first_chunk().map(|(stored, content)| (content, *stored))
        } else {
            input.split_last_chunk().map(|(content, stored)| (content, *stored))
        };
        let (content, stored): (&[u8], [u8; SIZE]) =
            parts.ok_or_else(|| Fault::length("no room for a checksum", format!("at least {SIZE}"), input.len()))?;
        let computed = self.of(content);
        if computed == stored {
            return Ok(content);
        }
        let text = |sum| format!("{:#010x}", u32::from_le_bytes(sum));
        Err(Fault::new(Kind::Checksum, "wrong checksum").with(text(stored), text(computed)))
    }

    /// Put checksum and content together.
    ///
    /// # Errors
    /// When there is not so much memory.
    pub fn encode(&self, input: &[u8], out: &mut Memory) -> Outcome<usize> {
        let out = out.room(input.len() + SIZE)?;
        let (content, sum) = if self.start { (SIZE, 0) } else { (0, input.len()) };
        out[content..content + input.len()].copy_from_slice(input);
        out[sum..sum + SIZE].copy_from_slice(&self.of(input));
        Ok(input.len() + SIZE)
    }
}

/// Pairs of bytes, big endian, summed in runs so short that 32 bits hold them; an odd byte counts as a pair with 0.
fn fletcher32(content: &[u8]) -> u32 {
    const RUN: usize = 2 * 360;
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    let (mut first, mut second) = (0_u32, 0_u32);
    let (pairs, odd) = content.split_at(content.len() & !1);
    for run in pairs.chunks(RUN) {
        for pair in run.chunks_exact(2) {
            first += u32::from(pair[0]) << 8 | u32::from(pair[1]);
            second += first;
        }
        (first, second) = (fold(first), fold(second));
    }
    if let [byte] = odd {
        first += u32::from(*byte) << 8;
        second += first;
        (first, second) = (fold(first), fold(second));
    }
    fold(second) << 16 | fold(first)
}

#[cfg(test)]
mod tests {
    use super::{Checksum, Sum};

    fn value(sum: Sum, content: &[u8]) -> u32 {
        u32::from_le_bytes(Checksum::new(sum, false).of(content))
    }

    #[test]
    fn known_values_are_found() {
        assert_eq!(value(Sum::Crc32c, b"123456789"), 0xe306_9283);
        assert_eq!(value(Sum::Crc32, b"123456789"), 0xcbf4_3926);
        assert_eq!(value(Sum::Adler32, b"123456789"), 0x091e_01de);
    }
}
