//! One bytes->bytes codec a module, all behind [`Kernel`].
//!
//! A kernel decodes into memory that it is given and says how much it wrote, or that the memory is too small;
//! so whoever calls it decides how much is allocated. Some decode to a part of what they are given ([`Kernel::part`]),
//! which costs no memory at all. `bitround` and `pcodec` work on arrays; as kernels they take the bytes of their
//! elements.

mod bitround;
mod blosc;
mod bz2;
mod checksum;
mod deflate;
mod lz4;
#[cfg(target_arch = "x86_64")]
mod pages;
mod pcodec;
mod shuffle;
mod zarrs;
mod zstd;

use std::collections::HashMap;
use std::ops::Range;

use crate::errors::{Detail, Fault, Kind, Outcome};
use crate::worker::Memory;
pub use checksum::{Checksum, SIZE as CHECKSUM, Sum};
pub use deflate::Format;

/// Options of a kernel by name, as Python gives them.
pub type Options = HashMap<String, i64>;

/// Contexts of codec libraries that a thread uses again and again.
#[derive(Default)]
pub struct Contexts {
    zstd: zstd::Contexts,
    deflate: deflate::Contexts,
}

impl Contexts {
    /// Give back what is larger than so many bytes.
    pub fn trim(&mut self, most: usize) {
        self.zstd.trim(most);
    }
}

/// A bytes->bytes codec with its configuration.
#[derive(Clone, Debug)]
pub enum Kernel {
    /// Zstandard frames.
    Zstd(zstd::Zstd),
    /// gzip members or a zlib stream.
    Deflate(deflate::Deflate),
    /// A Blosc 1 frame.
    Blosc(blosc::Blosc),
    /// numcodecs' LZ4: the decoded size and a block.
    Lz4(lz4::Lz4),
    /// bzip2 streams.
    Bz2(bz2::Bz2),
    /// Four bytes before or after the content.
    Checksum(Checksum),
    /// Numbers of one data type.
    Pcodec(pcodec::Pcodec),
    /// Floats, rounded when they are encoded.
    Bitround(bitround::Bitround),
    /// Bytes of elements, transposed.
    Shuffle(shuffle::Shuffle),
}

/// How much a kernel wrote; None when the memory that it was given is too small.
pub type Written = Outcome<Option<usize>>;

impl Kernel {
    /// Make a kernel of its name, its options, and a text that only some have.
    ///
    /// # Errors
    /// When there is no such kernel, or an option is missing.
    pub fn new(name: &str, options: &Options, text: &str) -> Outcome<Self> {
        let option = |key: &str| {
            options.get(key).copied().ok_or_else(|| Fault::new(Kind::Configuration, format!("{key} is missing")))
        };
        Ok(match name {
            "zstd" => Self::Zstd(zstd::Zstd::new(option("level")?, option("checksum")? != 0)),
            "gzip" => Self::Deflate(deflate::Deflate::new(Format::Gzip, option("level")?)),
            "zlib" => Self::Deflate(deflate::Deflate::new(Format::Zlib, option("level")?)),
            "blosc" => Self::Blosc(blosc::Blosc::new(options)?),
            "lz4" => Self::Lz4(lz4::Lz4::new(option("acceleration")?)),
            "bz2" => Self::Bz2(bz2::Bz2::new(option("level")?)),
            "pcodec" => Self::Pcodec(pcodec::Pcodec::new(text)?),
            "bitround" => {
                let is_swapped = option("swapped")? != 0;
                Self::Bitround(bitround::Bitround::new(option("size")?, option("keepbits")?, is_swapped)?)
            }
            "shuffle" => Self::Shuffle(shuffle::Shuffle::new(option("elementsize")?)),
            "crc32c" => Self::Checksum(Checksum::new(Sum::Crc32c, option("start")? != 0)),
            "crc32" => Self::Checksum(Checksum::new(Sum::Crc32, option("start")? != 0)),
            "adler32" => Self::Checksum(Checksum::new(Sum::Adler32, option("start")? != 0)),
            "fletcher32" => Self::Checksum(Checksum::new(Sum::Fletcher32, false)),
            _ => return Err(Fault::new(Kind::Configuration, "there is no such kernel")),
        })
    }

    /// The checksum, when all that the kernel does is to append one.
    #[must_use]
    pub fn appended(&self) -> Option<&Checksum> {
        if let Self::Checksum(checksum) = self { Some(checksum).filter(|sum| !sum.is_first()) } else { None }
    }

    /// The checksum, when all that the kernel does is to put one first.
    #[must_use]
    pub fn prefixed(&self) -> Option<&Checksum> {
        if let Self::Checksum(checksum) = self { Some(checksum).filter(|sum| sum.is_first()) } else { None }
    }

    /// How many bytes can be decoded by themselves, for encoded bytes of several such blocks.
    #[must_use]
    pub fn blocksize(&self, input: &[u8]) -> Option<usize> {
        match self {
            Self::Blosc(_) => blosc::blocksize(input),
            _ => None,
        }
    }

    /// Decode a range of bytes, and put it where it is in the whole, which has the size of `out`. False when that cannot be
    /// done; whoever decodes all then finds out why.
    ///
    /// # Errors
    /// When the bytes are not encoded ones.
    pub fn decode_part(&self, input: &[u8], range: &Range<usize>, out: &mut [u8]) -> Outcome<bool> {
        match self {
            Self::Blosc(blosc) => blosc.decode_part(input, range, out),
            _ => Ok(false),
        }
    }

    /// Find the parts of so many encoded bytes that are enough for `decode_part` of some ranges of so many decoded ones,
    /// which are in order and apart.
    /// `head` is how they begin. None when that does not tell.
    #[must_use]
    pub fn needed(
        &self,
        head: &[u8],
        encoded: usize,
        decoded: usize,
        ranges: &[Range<usize>],
    ) -> Option<Vec<Range<usize>>> {
        if let Self::Blosc(blosc) = self { blosc.needed(head, encoded, decoded, ranges) } else { None }
    }

    /// Whether only those parts of encoded bytes, and whatever else between, can be decoded as far as ranges go, which are
    /// in order and apart.
    #[must_use]
    pub fn is_enough(&self, input: &[u8], decoded: usize, ranges: &[Range<usize>], parts: &[Range<usize>]) -> bool {
        if let Self::Blosc(blosc) = self { blosc.is_enough(input, decoded, ranges, parts) } else { false }
    }

    /// Whether `encode_part` may do it; if not, it cannot.
    #[must_use]
    pub fn can_encode_part(&self, input: &[u8], ranges: &[Range<usize>]) -> bool {
        if let Self::Blosc(_) = self { blosc::can_encode_part(input, ranges) } else { false }
    }

    /// Encode ranges of `data` over those of encoded bytes, which decode to as many, and keep the others. Ranges are made of
    /// blocks that can be decoded by themselves, in order and apart. None when that cannot be done.
    ///
    /// # Errors
    /// When the codec refuses.
    pub fn encode_part(
        &self,
        input: &[u8],
        data: &[u8],
        ranges: &[Range<usize>],
        memory: &mut Memory,
    ) -> Outcome<Option<Vec<u8>>> {
        if let Self::Blosc(blosc) = self { blosc.encode_part(input, data, ranges, memory) } else { Ok(None) }
    }

    /// Whether encoded bytes can have blocks that are decoded by themselves.
    #[must_use]
    pub fn has_blocks(&self) -> bool {
        matches!(self, Self::Blosc(_))
    }

    /// The decoded bytes as a range of the encoded ones; None when they are others.
    ///
    /// # Errors
    /// When a checksum is wrong.
    pub fn part(&self, input: &[u8]) -> Outcome<Option<Range<usize>>> {
        match self {
            Self::Bitround(_) => Ok(Some(0..input.len())),
            Self::Checksum(checksum) => {
                let length = checksum.content(input)?.len();
                let begin = if checksum.is_first() { CHECKSUM } else { 0 };
                Ok(Some(begin..begin + length))
            }
            _ => Ok(None),
        }
    }

    /// Decode into memory that is given.
    ///
    /// # Errors
    /// When the bytes do not decode.
    pub fn decode(&self, contexts: &mut Contexts, input: &[u8], out: &mut [u8]) -> Written {
        match self {
            Self::Zstd(_) => contexts.zstd.decode(input, out),
            Self::Deflate(deflate) => deflate.decode(&mut contexts.deflate, input, out),
            Self::Blosc(_) => blosc::decode(input, out),
            Self::Lz4(_) => lz4::decode(input, out),
            Self::Bz2(_) => bz2::decode(input, out),
            Self::Shuffle(shuffle) => shuffle.decode(input, out),
            Self::Pcodec(pcodec) => pcodec.decode(input, out),
            Self::Checksum(_) | Self::Bitround(_) => {
                let content = self.part(input)?.map_or(input, |range| &input[range]);
                let Some(out) = out.get_mut(..content.len()) else { return Ok(None) };
                out.copy_from_slice(content);
                Ok(Some(content.len()))
            }
        }
    }

    /// Decode into memory of exactly the size that the chain fixes.
    ///
    /// # Errors
    /// When the bytes do not decode, or to another size.
    pub fn decode_exact(&self, contexts: &mut Contexts, input: &[u8], out: &mut [u8]) -> Outcome<()> {
        let expected = out.len();
        let wrong = |found: Detail| Err(Fault::length("wrong decoded size", expected, found));
        match self.decode(contexts, input, out) {
            Ok(Some(found)) if found == expected => Ok(()),
            Ok(Some(found)) => wrong(found.into()),
            Ok(None) => wrong(self.claimed(input).map_or(Detail::Text("more".to_owned()), Detail::Number)),
            // What a header claims tells more than how the library failed.
            Err(fault) => match self.claimed(input) {
                Some(claimed) if claimed != expected as u64 => wrong(Detail::Number(claimed)),
                _ => Err(fault),
            },
        }
    }

    /// The decoded size that headers claim, where there are any.
    fn claimed(&self, input: &[u8]) -> Option<u64> {
        match self {
            Self::Zstd(_) => zstd::claimed(input),
            Self::Blosc(_) => blosc::claimed(input),
            Self::Lz4(_) => header(input).map(u64::from),
            _ => None,
        }
    }

    /// Decode into memory that grows with what comes out, and return its size.
    ///
    /// # Errors
    /// When the bytes do not decode, or to more than `most` bytes.
    pub fn decode_growing(
        &self,
        contexts: &mut Contexts,
        input: &[u8],
        out: &mut Memory,
        most: usize,
    ) -> Outcome<usize> {
        let mut size = input.len().saturating_mul(8).max(1 << 16).min(most);
        loop {
            if let Some(found) = self.decode(contexts, input, out.room(size)?)? {
                return Ok(found);
            }
            if size == most {
                return Err(Fault::too_many(most));
            }
            size = size.saturating_mul(2).min(most);
        }
    }

    /// Encode, and return the size of what was made.
    ///
    /// # Errors
    /// When the codec cannot encode so many bytes.
    pub fn encode(&self, contexts: &mut Contexts, input: &[u8], out: &mut Memory) -> Outcome<usize> {
        match self {
            Self::Zstd(zstd) => contexts.zstd.encode(zstd, input, out),
            Self::Deflate(deflate) => deflate.encode(&mut contexts.deflate, input, out),
            Self::Blosc(blosc) => blosc.encode(input, out),
            Self::Lz4(lz4) => lz4.encode(input, out),
            Self::Bz2(bz2) => bz2.encode(input, out),
            Self::Shuffle(shuffle) => shuffle.encode(input, out),
            Self::Checksum(checksum) => checksum.encode(input, out),
            Self::Pcodec(pcodec) => pcodec.encode(input, out),
            Self::Bitround(bitround) => bitround.encode(input, out),
        }
    }
}

/// The first four bytes as a little-endian number.
fn header(input: &[u8]) -> Option<u32> {
    input.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}
