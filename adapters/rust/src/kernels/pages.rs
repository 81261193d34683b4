//! Pages of pcodec, decoded by loops that are compiled for newer CPUs.
//!
//! The library is compiled for the oldest CPUs that may load this module, where what it does most, to take some bits from
//! somewhere, is several instructions. Here the CPU is asked first. Only what most data are is decoded here: numbers as
//! they are, or sums of differences. In order: the library reads the headers; the table of the entropy decoder is made
//! ([`Table`]); then, 256 numbers at a time, four streams of symbols tell the bin of each number, and bits after them how
//! far it is above the least number of its bin.
//!
//! Errors are not made here. Whatever is unusual is left to the library, from the beginning.

#![allow(unsafe_code)]

use std::arch::x86_64::_bzhi_u64;

use pco::data_types::Number;
use pco::metadata::{Bin, ChunkMeta, DeltaEncoding, DynBins, Mode};
use pco::standalone::{DecompressorItem, FileDecompressor};

use super::pcodec::Order;

/// Numbers that are decoded together.
const BATCH: usize = 256;

/// Streams of symbols, which take turns.
const STREAMS: usize = 4;

/// Most bits of the number of a symbol's next state.
const MOST_STATE_BITS: u32 = 14;

/// Bytes that a batch is read from, and the eight that may be read with the last of them.
const ROOM: usize = BATCH * (64 + MOST_STATE_BITS as usize) / 8 + 16;

/// Most bits that can be taken from four bytes, and from eight, when they begin anywhere in the first byte.
const NARROW: u32 = 25;
const WIDE: u32 = 57;

/// An unsigned integer as long as a number.
pub trait Word: Copy + Default {
    const BITS: u32;
    const TOP: Self;
    fn from_bits(bits: u64) -> Self;
    fn plus(self, other: Self) -> Self;
    fn with_order(self, order: Order) -> Self;
}

macro_rules! word {
    ($word:ty, $signed:ty) => {
        impl Word for $word {
            const BITS: u32 = <$word>::BITS;
            const TOP: Self = 1 << (<$word>::BITS - 1);

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "there are no more bits than a number has")]
            fn from_bits(bits: u64) -> Self {
                bits as $word
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn with_order(self, order: Order) -> Self {
                match order {
                    Order::Unsigned => self,
                    Order::Signed => self ^ Self::TOP,
                    Order::Float => {
                        let negative = !(self.cast_signed() >> (<$word>::BITS - 1)).cast_unsigned();
                        self ^ (negative | Self::TOP)
                    }
                }
            }
        }
    };
}

word!(u16, i16);
word!(u32, i32);
word!(u64, i64);

/// What is to be done in a state of a stream; aligned, so that it is found by its number with the fewest steps.
#[derive(Clone, Copy)]
#[repr(align(8))]
struct Node<W> {
    /// The least number of the bin.
    lower: W,
    /// The next state, when the bits for it are 0.
    next: u16,
    /// Bits to be added to that.
    state_bits: u8,
    /// Bits to be added to the least number of the bin.
    offset_bits: u8,
}

/// The nodes of all states, and the most bits of an offset.
struct Table<W> {
    nodes: Vec<Node<W>>,
    widest: u32,
}

/// What the symbols of a batch say.
struct Batch<W> {
    lower: [W; BATCH],
    /// Where the bits of each offset begin, and how many they are.
    begin: [u32; BATCH],
    offset_bits: [u32; BATCH],
}

/// Decode all numbers and return how many that were; None when the library has to do it.
pub fn decode<T: Number>(input: &[u8], out: &mut [u8], order: Order) -> Option<usize> {
    if !is_able() {
        return None;
    }
    let (file, mut rest) = FileDecompressor::new(input).ok()?;
    let mut done = 0;
    while let DecompressorItem::Chunk(chunk) = file.chunk_decompressor::<T, &[u8]>(rest).ok()? {
        let (count, meta) = (chunk.n(), chunk.meta().clone());
        let before = rest;
        rest = chunk.into_src();
        let head = &before[..before.len() - rest.len()];
        let target = out.get_mut(done * size_of::<T>()..(done + count) * size_of::<T>())?;
        let read = match &meta.per_latent_var.primary.bins {
            DynBins::U16(bins) => page(&meta, bins, head, rest, target, order)?,
            DynBins::U32(bins) => page(&meta, bins, head, rest, target, order)?,
            DynBins::U64(bins) => page(&meta, bins, head, rest, target, order)?,
            _ => return None,
        };
        rest = &rest[read..];
        done += count;
    }
    Some(done)
}

fn is_able() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2")
}

/// Decode a page and return the bytes that it took; `head` is all before it, the last of which is what a page begins with.
fn page<W: Word + pco::data_types::Latent>(
    meta: &ChunkMeta,
    bins: &[Bin<W>],
    head: &[u8],
    body: &[u8],
    out: &mut [u8],
    order: Order,
) -> Option<usize> {
    // SAFETY: integers have no bits that are not allowed.
    let ([], out, []) = (unsafe { out.align_to_mut::<W>() }) else { return None };
    let differences = match meta.delta_encoding {
        DeltaEncoding::NoOp => 0,
        DeltaEncoding::Consecutive { order, .. } => order,
        _ => return None,
    };
    if !matches!(meta.mode, Mode::Classic) || meta.per_latent_var.secondary.is_some() {
        return None;
    }
    let state_bits = meta.per_latent_var.primary.ans_size_log;
    let table = Table::new(bins, state_bits)?;
    let length = differences * <W as Word>::BITS as usize + STREAMS * state_bits as usize;
    let mut start = head.get(head.len().checked_sub(length.div_ceil(8))?..)?.to_vec();
    start.extend([0; 8]);
    let mut at = 0;
    let mut take = |count: u32| {
        let taken = bits_at(&start, at, count);
        at += count as usize;
        taken
    };
    let moments: Vec<W> = (0..differences).map(|_| W::from_bits(take(<W as Word>::BITS))).collect();
    let states = std::array::from_fn(|_| usize::try_from(take(state_bits)).unwrap_or(0));
    Page { table, moments, states, order }.decode(body, out)
}

/// Some bits, the first of them the least; they may end in the last but eight bytes at most.
fn bits_at(bytes: &[u8], at: usize, count: u32) -> u64 {
    let (byte, shift) = (at / 8, at % 8);
    let mut bits = 0_u128;
    for (number, byte) in bytes[byte..].iter().take(9).enumerate() {
        bits |= u128::from(*byte) << (8 * number);
    }
    let mask = (1_u128 << count) - 1;
    u64::try_from(bits >> shift & mask).unwrap_or(0)
}

impl<W: Word + pco::data_types::Latent> Table<W> {
    fn new(bins: &[Bin<W>], state_bits: u32) -> Option<Self> {
        let size = 1_usize << state_bits;
        let weights: usize = bins.iter().map(|bin| bin.weight as usize).sum();
        let widest = bins.iter().map(|bin| bin.offset_bits).max()?;
        if weights != size || state_bits > MOST_STATE_BITS || widest > WIDE {
            return None;
        }
        // Symbols are spread over the states: each next one is about three fifths of the table further on.
        let stride = (size * 3 / 5) | 1;
        let mut symbols = vec![0; size];
        let each = bins.iter().enumerate().flat_map(|(symbol, bin)| std::iter::repeat_n(symbol, bin.weight as usize));
        for (step, symbol) in each.enumerate() {
            symbols[stride * step % size] = symbol;
        }
        let mut seen: Vec<usize> = bins.iter().map(|bin| bin.weight as usize).collect();
        let nodes = symbols.into_iter().map(|symbol| {
            let number = seen[symbol];
            seen[symbol] += 1;
            let missing = number.leading_zeros() - size.leading_zeros();
            Some(Node {
                lower: bins[symbol].lower,
                next: u16::try_from((number << missing) - size).ok()?,
                state_bits: u8::try_from(missing).ok()?,
                offset_bits: u8::try_from(bins[symbol].offset_bits).ok()?,
            })
        });
        Some(Self { nodes: nodes.collect::<Option<_>>()?, widest })
    }
}

struct Page<W> {
    table: Table<W>,
    moments: Vec<W>,
    states: [usize; STREAMS],
    order: Order,
}

impl<W: Word> Page<W> {
    /// Decode all numbers and return the bytes that they took.
    fn decode(mut self, body: &[u8], out: &mut [W]) -> Option<usize> {
        let mut batch = Batch { lower: [W::default(); BATCH], begin: [0; BATCH], offset_bits: [0; BATCH] };
        // Bytes with enough behind them, and where they begin.
        let (mut padded, mut origin) = (Vec::new(), 0);
        let mut at = 0;
        let mut stored = out.len().saturating_sub(self.moments.len());
        for numbers in out.chunks_mut(BATCH) {
            if padded.is_empty() && body.len() - at / 8 < ROOM {
                origin = at / 8;
                padded = [&body[origin..], &[0; ROOM]].concat();
            }
            let source = if padded.is_empty() { body } else { &padded };
            let count = stored.min(numbers.len());
            stored -= count;
            let bytes = source[at / 8 - origin..].first_chunk::<ROOM>()?;
            at = at / 8 * 8 + self.numbers(bytes, at % 8, &mut batch, &mut numbers[..count]);
            if at > body.len() * 8 {
                return None;
            }
            numbers[count..].fill(W::default());
            self.finish(numbers);
        }
        let unused = at.next_multiple_of(8) - at;
        let is_clean = unused == 0 || body[at / 8] >> (8 - unused) == 0;
        is_clean.then(|| at.div_ceil(8))
    }

    /// Decode some numbers that begin at a bit, and return the bit at which they end.
    fn numbers(&mut self, bytes: &[u8; ROOM], at: usize, batch: &mut Batch<W>, out: &mut [W]) -> usize {
        // SAFETY: the CPU was asked whether it has these instructions.
        unsafe {
            let end = symbols(&self.table.nodes, &mut self.states, bytes, at, batch, out.len());
            let bits = out.len().checked_sub(1).map_or(0, |last| batch.begin[last] + batch.offset_bits[last]);
            if self.table.widest <= NARROW {
                offsets::<W, false>(bytes, end, batch, out);
            } else {
                offsets::<W, true>(bytes, end, batch, out);
            }
            end + bits as usize
        }
    }

    /// From differences to numbers, from their order to their bits.
    fn finish(&mut self, numbers: &mut [W]) {
        if !self.moments.is_empty() {
            for number in &mut *numbers {
                *number = number.plus(W::TOP);
            }
        }
        for moment in self.moments.iter_mut().rev() {
            for number in &mut *numbers {
                let difference = std::mem::replace(number, *moment);
                *moment = moment.plus(difference);
            }
        }
        match self.order {
            Order::Unsigned => {}
            Order::Signed => numbers.iter_mut().for_each(|number| *number = number.with_order(Order::Signed)),
            Order::Float => numbers.iter_mut().for_each(|number| *number = number.with_order(Order::Float)),
        }
    }
}

/// Find the symbols of a batch, and return the bit after them.
///
/// Not compiled for AVX2: vectors of four streams are slower than four streams.
#[target_feature(enable = "bmi1,bmi2")]
fn symbols<W: Word>(
    nodes: &[Node<W>],
    states: &mut [usize; STREAMS],
    bytes: &[u8; ROOM],
    at: usize,
    batch: &mut Batch<W>,
    count: usize,
) -> usize {
    let (mut byte, mut shift, mut begin) = (0, at, 0);
    let [mut first, mut second, mut third, mut fourth] = *states;
    let mut symbol = |number: usize, state: &mut usize, packed: u64, shift: &mut usize| {
        // SAFETY: states are less than the size of the table: a table is made so, and so are states at the beginning,
        // which have as many bits.
        let node = unsafe { nodes.get_unchecked(*state) };
        let bits = u32::from(node.state_bits);
        #[allow(clippy::cast_possible_truncation, reason = "no more than 14 bits")]
        let more = _bzhi_u64(packed >> *shift, bits) as usize;
        batch.lower[number] = node.lower;
        batch.begin[number] = begin;
        batch.offset_bits[number] = u32::from(node.offset_bits);
        begin += u32::from(node.offset_bits);
        *shift += bits as usize;
        *state = usize::from(node.next) + more;
    };
    let mut next = 0;
    while next + STREAMS <= count.min(BATCH) {
        byte += shift / 8;
        shift %= 8;
        // SAFETY: a round is no more than 56 bits, so that all rounds are within the first 512 bytes.
        let packed = u64::from_le_bytes(unsafe { bytes.as_ptr().add(byte).cast::<[u8; 8]>().read() });
        symbol(next, &mut first, packed, &mut shift);
        symbol(next + 1, &mut second, packed, &mut shift);
        symbol(next + 2, &mut third, packed, &mut shift);
        symbol(next + 3, &mut fourth, packed, &mut shift);
        next += STREAMS;
    }
    byte += shift / 8;
    shift %= 8;
    // SAFETY: as above.
    let packed = u64::from_le_bytes(unsafe { bytes.as_ptr().add(byte).cast::<[u8; 8]>().read() });
    for (number, state) in (next..count.min(BATCH)).zip([&mut first, &mut second, &mut third]) {
        symbol(number, state, packed, &mut shift);
    }
    *states = [first, second, third, fourth];
    byte * 8 + shift
}

/// Add to the least number of each bin what the bits from `at` on say.
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn offsets<W: Word, const IS_WIDE: bool>(bytes: &[u8; ROOM], at: usize, batch: &Batch<W>, out: &mut [W]) {
    let bytes = bytes[at / 8..].as_ptr();
    #[allow(clippy::cast_possible_truncation, reason = "less than 8")]
    let shift = (at % 8) as u32;
    for (number, out) in out.iter_mut().take(BATCH).enumerate() {
        let (begin, count) = (batch.begin[number] + shift, batch.offset_bits[number]);
        // SAFETY: a batch has no more than 256 symbols of 14 bits and offsets of 64, and eight bytes behind them.
        let offset = unsafe {
            let from = bytes.add((begin / 8) as usize);
            if IS_WIDE {
                let packed = u64::from_le(from.cast::<u64>().read_unaligned());
                packed >> (begin % 8) & ((1_u64 << count) - 1)
            } else {
                let packed = u32::from_le(from.cast::<u32>().read_unaligned());
                u64::from(packed >> (begin % 8) & ((1_u32 << count) - 1))
            }
        };
        *out = batch.lower[number].plus(W::from_bits(offset));
    }
}

#[cfg(test)]
mod tests {
    use super::{Order, decode, is_able};
    use pco::ChunkConfig;
    use pco::standalone::simple_compress;

    #[test]
    fn plain_numbers_are_decoded_wherever_the_cpu_is_able_to() {
        let numbers: Vec<u32> = (0..5000_u32).map(|number| number.wrapping_mul(2_654_435_761) >> 20).collect();
        let encoded = simple_compress(&numbers, &ChunkConfig::default()).unwrap_or_default();
        let mut out = vec![0_u32; numbers.len()];
        // SAFETY: integers have no padding.
        let (_, bytes, _) = unsafe { out.align_to_mut::<u8>() };
        let decoded = decode::<u32>(&encoded, bytes, Order::Unsigned);
        assert_eq!(decoded, is_able().then_some(numbers.len()));
        assert_eq!(out == numbers, is_able());
    }
}
