//! `numcodecs.pcodec`: numbers, compressed. Bytes are those of elements in native byte order.
//!
//! zarrs encodes. Decoding goes to the library below it, which can decode into memory that it is given, and of large
//! chunks most of the work is done by [`super::pages`].

#![allow(unsafe_code)]

use half::f16;
use pco::data_types::Number;
use pco::standalone::simple_decompress_into;

use super::Written;
#[cfg(target_arch = "x86_64")]
use super::pages;
use super::zarrs::Encoder;
use crate::errors::{Fault, Kind, Outcome};
use crate::worker::Memory;

/// Decodes numbers of one type.
type Decode = fn(&[u8], &mut [u8]) -> Written;

/// Numbers of a chunk from which on it pays to do without the library's loops.
#[cfg(target_arch = "x86_64")]
const LARGE: usize = 2048;

/// How the bits of a number follow from an integer that is ordered as numbers are.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// They are the same.
    Unsigned,
    /// The sign bit is the other way round.
    Signed,
    /// So it is, and all others are where it was 0.
    Float,
}

/// A type of numbers.
trait Ordered: Number {
    const ORDER: Order;
}

macro_rules! ordered {
    ($order:ident: $($number:ty),*) => {
        $(impl Ordered for $number {
            const ORDER: Order = Order::$order;
        })*
    };
}

ordered!(Unsigned: u16, u32, u64);
ordered!(Signed: i16, i32, i64);
ordered!(Float: f16, f32, f64);

/// The codec for one data type.
#[derive(Clone, Debug)]
pub struct Pcodec {
    encoder: Encoder,
    decode: Decode,
}

impl Pcodec {
    /// Make the codec: Zarr v3 metadata and data type, one after the other in two lines.
    pub fn new(text: &str) -> Outcome<Self> {
        let (metadata, data_type) = text.split_once('\n').unwrap_or((text, ""));
        let (decode, size): (Decode, usize) = match data_type {
            "uint16" => (decode_as::<u16>, 2),
            "uint32" => (decode_as::<u32>, 4),
            "uint64" => (decode_as::<u64>, 8),
            "int16" => (decode_as::<i16>, 2),
            "int32" => (decode_as::<i32>, 4),
            "int64" => (decode_as::<i64>, 8),
            "float16" => (decode_as::<f16>, 2),
            "float32" => (decode_as::<f32>, 4),
            "float64" => (decode_as::<f64>, 8),
            _ => return Err(Fault::new(Kind::Configuration, "it is not made for this data type")),
        };
        Ok(Self { encoder: Encoder::new(metadata, data_type, size)?, decode })
    }

    /// Decode all numbers.
    pub fn decode(&self, input: &[u8], out: &mut [u8]) -> Written {
        (self.decode)(input, out)
    }

    /// Encode all numbers.
    pub fn encode(&self, input: &[u8], out: &mut Memory) -> Outcome<usize> {
        self.encoder.encode(input, out)
    }
}

fn decode_as<T: Ordered>(input: &[u8], out: &mut [u8]) -> Written {
    let size = size_of::<T>();
    #[cfg(target_arch = "x86_64")]
    if out.len() >= LARGE * size
        && let Some(count) = pages::decode::<T>(input, out, T::ORDER)
    {
        return Ok(Some(count * size));
    }
    // SAFETY: numbers have no bits that are not allowed.
    let (before, numbers, after) = unsafe { out.align_to_mut::<T>() };
    let progress = if before.is_empty() && after.is_empty() {
        simple_decompress_into(input, numbers)
    } else {
        let count = out.len() / size;
        let mut aligned: Vec<T> = Vec::new();
        if aligned.try_reserve_exact(count).is_err() {
            return Err(Fault::new(Kind::Configuration, "a chunk does not fit into memory"));
        }
        aligned.resize(count, T::default());
        let progress = simple_decompress_into(input, &mut aligned);
        // SAFETY: numbers have no padding.
        let (_, bytes, _) = unsafe { aligned.align_to::<u8>() };
        out[..bytes.len()].copy_from_slice(bytes);
        progress
    };
    match progress {
        Ok(progress) if progress.finished => Ok(Some(progress.n_processed * size)),
        Ok(_) => Ok(None),
        Err(error) => Err(Fault::corrupt(error.to_string())),
    }
}
