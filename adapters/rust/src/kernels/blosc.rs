//! `blosc`: Blosc 1 frames, by c-blosc, one thread a frame.
//!
//! Bytes after the frame are ignored, as numcodecs does.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ops::Range;

use blosc_src::{
    BLOSC_MAX_BUFFERSIZE, BLOSC_MAX_OVERHEAD, BLOSC_MIN_HEADER_LENGTH, BLOSC_VERSION_FORMAT, blosc_cbuffer_validate,
    blosc_compress_ctx, blosc_decompress_ctx, blosc_getitem,
};

use super::{Options, Written, header};
use crate::errors::{Fault, Kind, Outcome};
use crate::worker::Memory;

const HEADER: usize = BLOSC_MIN_HEADER_LENGTH as usize;

/// Names of the compressors inside, in the order in which Python numbers them.
const COMPRESSORS: [&CStr; 6] = [c"blosclz", c"lz4", c"lz4hc", c"snappy", c"zlib", c"zstd"];

/// What each of them calls its format in the header.
const FORMATS: [u8; 6] = [0, 1, 1, 2, 3, 4];

/// Flags of the header.
const SHUFFLED: u8 = 1;
const COPIED: u8 = 2;
const BITSHUFFLED: u8 = 4;
const RESERVED: u8 = 8;
const NOT_SPLIT: u8 = 16;

/// Elements of more bytes, or blocks of fewer elements, are not split into one stream for each byte of an element.
const MAX_SPLIT: usize = 16;
const MIN_SPLIT: usize = 128;

/// A block of a frame, and the bytes where it is.
struct Block {
    number: usize,
    bytes: Range<usize>,
}

/// Configuration of the codec.
#[derive(Clone, Debug)]
pub struct Blosc {
    /// Which of the compressors.
    format: usize,
    compressor: &'static CStr,
    level: i32,
    shuffle: i32,
    typesize: usize,
    blocksize: usize,
}

impl Blosc {
    /// Make the codec.
    pub fn new(options: &Options) -> Outcome<Self> {
        let option = |key: &str| {
            let value = options.get(key).and_then(|value| i32::try_from(*value).ok()).filter(|value| *value >= 0);
            value.ok_or_else(|| Fault::new(Kind::Configuration, format!("{key} is missing or out of range")))
        };
        let size = |key: &str| option(key).map(|value| usize::try_from(value).unwrap_or(0));
        let compressor = COMPRESSORS.get(size("compressor")?);
        Ok(Self {
            compressor: compressor.ok_or_else(|| Fault::new(Kind::Configuration, "there is no such compressor"))?,
            format: size("compressor")?,
            level: option("clevel")?,
            shuffle: option("shuffle")?,
            typesize: size("typesize")?,
            blocksize: size("blocksize")?,
        })
    }

    /// Encode as one frame.
    pub fn encode(&self, input: &[u8], out: &mut Memory) -> Outcome<usize> {
        if input.len() > BLOSC_MAX_BUFFERSIZE as usize {
            let most = format!("at most {BLOSC_MAX_BUFFERSIZE}");
            return Err(Fault::new(Kind::Configuration, "too many bytes for a frame").with(most, input.len()));
        }
        let out = out.room(input.len() + BLOSC_MAX_OVERHEAD as usize)?;
        // SAFETY: pointers and lengths are those of the slices, and the function uses no state but its own.
        let size = unsafe {
            blosc_compress_ctx(
                self.level,
                self.shuffle,
                self.typesize,
                input.len(),
                input.as_ptr().cast(),
                out.as_mut_ptr().cast(),
                out.len(),
                self.compressor.as_ptr(),
                self.blocksize,
                1,
            )
        };
        match usize::try_from(size) {
            Ok(size) if size > 0 => Ok(size),
            _ => Err(Fault::new(Kind::Configuration, "cannot be encoded")),
        }
    }

    /// Decode the blocks that have some of the bytes of a range, and put those where they are in the whole.
    ///
    /// # Errors
    /// When there is no frame.
    pub fn decode_part(&self, input: &[u8], range: &Range<usize>, out: &mut [u8]) -> Outcome<bool> {
        if validate(input)? != out.len() || range.is_empty() || !self.is_usual(input, out.len()) {
            return Ok(false);
        }
        let (first, end) = (range.start / self.typesize, range.end.div_ceil(self.typesize));
        let Some(place) = out.get_mut(first * self.typesize..end * self.typesize) else {
            return Ok(false);
        };
        let (Ok(start), Ok(count)) = (i32::try_from(first), i32::try_from(end - first)) else {
            return Ok(false);
        };
        // SAFETY: the frame was validated, so all of it is within `input`; the items are within the frame, and there is
        // room for as many, since the frame's items have as many bytes as ours.
        let size = unsafe { blosc_getitem(input.as_ptr().cast(), start, count, place.as_mut_ptr().cast()) };
        Ok(usize::try_from(size) == Ok(place.len()))
    }

    /// Find the parts of a frame of so many bytes that are enough for `decode_part` of some ranges: its header and table, and
    /// the blocks. `head` is how it begins. None when that does not tell.
    #[must_use]
    pub fn needed(
        &self,
        head: &[u8],
        encoded: usize,
        decoded: usize,
        ranges: &[Range<usize>],
    ) -> Option<Vec<Range<usize>>> {
        self.blocks(head, encoded, decoded, ranges).map(|blocks| parts(head, decoded, &blocks))
    }

    /// Whether a frame of which only those parts are there, and whatever else between, can be decoded as far as the
    /// ranges go: its streams are in the parts, without a gap.
    #[must_use]
    pub fn is_enough(&self, frame: &[u8], decoded: usize, ranges: &[Range<usize>], read: &[Range<usize>]) -> bool {
        self.blocks(frame, frame.len(), decoded, ranges).is_some_and(|blocks| {
            parts(frame, decoded, &blocks) == read
                && blocks.iter().all(|block| streams(&frame[block.bytes.clone()]) == self.splits(frame, decoded, block))
        })
    }

    /// Encode blocks, which ranges of `data` are made of, over those of a frame, and keep the others: the result is what
    /// encoding everything gives, if the frame was made so.
    ///
    /// # Errors
    /// When the library refuses.
    pub fn encode_part(
        &self,
        frame: &[u8],
        data: &[u8],
        ranges: &[Range<usize>],
        memory: &mut Memory,
    ) -> Outcome<Option<Vec<u8>>> {
        let everything = 0..data.len();
        let (Some(blocks), Some(blocksize)) =
            (self.blocks(frame, frame.len(), data.len(), &[everything]), blocksize(frame))
        else {
            return Ok(None);
        };
        let table = HEADER + 4 * blocks.len();
        // Blocks that are encoded by themselves come out as in a frame whose blocks have this size.
        let one = Self { blocksize, ..self.clone() };
        let mut made = Vec::with_capacity(frame.len() + frame.len() / 8);
        made.extend_from_slice(&frame[..table]);
        for block in blocks {
            let (begin, end) = (block.number * blocksize, (block.number + 1) * blocksize);
            let start = made.len();
            if touches(ranges, &(begin..end)) {
                let Some(whole) = data.get(begin..end) else {
                    return Ok(None);
                };
                let size = one.encode(whole, memory)?;
                let Some(stream) = only_block(memory.filled(size), frame) else {
                    return Ok(None);
                };
                made.extend_from_slice(stream);
            } else if streams(&frame[block.bytes.clone()]) == self.splits(frame, data.len(), &block) {
                made.extend_from_slice(&frame[block.bytes]);
            } else {
                return Ok(None);
            }
            put_size(&mut made[HEADER + 4 * block.number..], start);
            if made.len() > data.len() + BLOSC_MAX_OVERHEAD as usize {
                // The library copies the content then. And many blocks of a hostile frame may be one and the same.
                return Ok(None);
            }
        }
        let size = made.len();
        put_size(&mut made[12..], size);
        made.shrink_to_fit();
        Ok(Some(made))
    }

    /// The blocks that have some of the bytes of ranges, in order.
    fn blocks(&self, head: &[u8], encoded: usize, decoded: usize, ranges: &[Range<usize>]) -> Option<Vec<Block>> {
        let end = size(head.get(12..)?);
        if head[2] & COPIED != 0 || size(&head[4..]) != decoded || end > encoded || !self.is_usual(head, decoded) {
            return None;
        }
        let blocksize = blocksize(head)?;
        let table = head.get(HEADER..)?.chunks_exact(4).map(size).take(decoded.div_ceil(blocksize));
        // Threads that encode blocks side by side may have put them in any order.
        let starts: Vec<usize> = table.collect();
        let mut ends = starts.clone();
        ends.push(end);
        ends.sort_unstable();
        let is_wanted = |number: &usize| {
            let (first, last) = (number * blocksize, (number + 1) * blocksize);
            touches(ranges, &(first..last))
        };
        let numbers = (0..starts.len()).filter(is_wanted);
        numbers
            .map(|number| {
                let start = starts[number];
                let end = ends.get(ends.partition_point(|end| *end <= start))?;
                Some(Block { number, bytes: start..*end })
            })
            .collect()
    }

    /// How many streams the library expects in a block.
    fn splits(&self, head: &[u8], decoded: usize, block: &Block) -> Option<usize> {
        let blocksize = blocksize(head)?;
        let is_short = (block.number + 1) * blocksize > decoded;
        let is_split = head[2] & NOT_SPLIT == 0
            && self.typesize <= MAX_SPLIT
            && blocksize / self.typesize >= MIN_SPLIT
            && !is_short;
        Some(if is_split { self.typesize } else { 1 })
    }

    /// Whether the header is one that this codec makes. Where all is decoded, mistakes in it show in some block or other;
    /// where a part is, they must not be believed.
    fn is_usual(&self, input: &[u8], decoded: usize) -> bool {
        let Some(blocksize) = blocksize(input) else {
            return false;
        };
        let (version, flags, typesize) = (input[0], input[2], usize::from(input[3]));
        let shuffled = match self.shuffle {
            0 => 0,
            1 => SHUFFLED,
            _ => BITSHUFFLED,
        };
        let usual = u32::from(version) == BLOSC_VERSION_FORMAT
            && flags & (SHUFFLED | BITSHUFFLED | RESERVED) == shuffled
            && Some(flags >> 5) == FORMATS.get(self.format).copied()
            && typesize == self.typesize
            && blocksize % typesize == 0;
        // The first block follows the table of their places, so the table tells how many there are.
        let table = decoded.div_ceil(blocksize).checked_mul(4).and_then(|size| input.get(HEADER..HEADER + size));
        let first = table.and_then(|table| table.chunks_exact(4).filter_map(header).min());
        usual && (flags & COPIED != 0 || first.map(|first| first as usize) == table.map(|table| HEADER + table.len()))
    }
}

/// Decode the frame.
pub fn decode(input: &[u8], out: &mut [u8]) -> Written {
    let decoded = validate(input)?;
    if decoded > out.len() {
        return Ok(None);
    }
    if decoded == 0 {
        return Ok(Some(0));
    }
    // SAFETY: the frame was validated, so all of it is within `input`, and no more than `out.len()` is written.
    let size = unsafe { blosc_decompress_ctx(input.as_ptr().cast(), out.as_mut_ptr().cast(), out.len(), 1) };
    match usize::try_from(size) {
        Ok(size) if size == decoded => Ok(Some(size)),
        _ => Err(Fault::corrupt("the frame is broken")),
    }
}

/// Whether blocks of a frame can be replaced. The library does not split the last block where that is a short one, and
/// by itself it would not be short.
pub fn can_encode_part(input: &[u8], ranges: &[Range<usize>]) -> bool {
    let is_whole = |size: usize| ranges.last().is_some_and(|range| range.end.is_multiple_of(size));
    input.len() >= HEADER && input[2] & COPIED == 0 && blocksize(input).is_some_and(is_whole)
}

/// Bytes of the blocks that are decoded each by itself, as the header has it.
pub fn blocksize(input: &[u8]) -> Option<usize> {
    header(input.get(8..HEADER)?).map(|size| size as usize).filter(|size| *size > 0)
}

/// The header with its table, and where blocks are, in order.
fn parts(head: &[u8], decoded: usize, blocks: &[Block]) -> Vec<Range<usize>> {
    let table = blocksize(head).map_or(0, |size| 4 * decoded.div_ceil(size));
    let mut parts: Vec<_> = blocks.iter().map(|block| block.bytes.clone()).collect();
    parts.push(0..HEADER + table);
    parts.sort_unstable_by_key(|part| part.start);
    parts
}

/// Whether one of ranges, which are in order and apart, has some of the bytes of a block.
fn touches(ranges: &[Range<usize>], block: &Range<usize>) -> bool {
    debug_assert!(ranges.is_sorted_by(|one, next| one.end <= next.start), "a block would be left out");
    ranges.get(ranges.partition_point(|range| range.end <= block.start)).is_some_and(|range| range.start < block.end)
}

/// The block of a frame that has one only, unless the library made something else of it: a copy, or streams of other kinds.
fn only_block<'a>(made: &'a [u8], frame: &[u8]) -> Option<&'a [u8]> {
    let is_like = made[..4] == frame[..4] && made[8..12] == frame[8..12];
    is_like.then(|| &made[HEADER + 4..])
}

/// How many streams there are, each behind its size; None when the last one is not whole.
fn streams(block: &[u8]) -> Option<usize> {
    let (mut at, mut count) = (0, 0);
    while at < block.len() {
        at = at.checked_add(4)?.checked_add(size(&block[at..]))?;
        count += 1;
    }
    (at == block.len()).then_some(count)
}

/// Check that there is a frame, and say how many bytes it decodes to.
fn validate(input: &[u8]) -> Outcome<usize> {
    if input.len() < HEADER {
        return Err(Fault::corrupt("no room for a header").with(HEADER, input.len()));
    }
    let (decoded, encoded) = (size(&input[4..]), size(&input[12..]));
    if encoded < HEADER || encoded > input.len() {
        return Err(Fault::length("wrong encoded size", format!("at most {}", input.len()), encoded));
    }
    let mut claimed = 0;
    // SAFETY: `encoded` bytes are there; the function reads no more.
    let valid = unsafe { blosc_cbuffer_validate(input.as_ptr().cast(), encoded, &raw mut claimed) } == 0;
    if !valid || claimed != decoded {
        return Err(Fault::corrupt("no valid header"));
    }
    // The library takes larger blocks when there is room for them, whatever comes out.
    let blocks = size(&input[8..]);
    if decoded > 0 && !(1..=decoded).contains(&blocks) {
        return Err(Fault::corrupt("wrong size of blocks").with(format!("1 to {decoded}"), blocks));
    }
    Ok(decoded)
}

/// The decoded size that the header claims.
pub fn claimed(input: &[u8]) -> Option<u64> {
    header(input.get(4..HEADER)?).map(u64::from)
}

fn size(input: &[u8]) -> usize {
    header(input).map_or(0, |size| size as usize)
}

fn put_size(out: &mut [u8], size: usize) {
    // Sizes of frames are below 2^31.
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    out[..4].copy_from_slice(&size.to_le_bytes());
}
