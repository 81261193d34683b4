//! The only module that calls `zarrs`: codecs that it runs as we need them.
//!
//! Of the codecs of zarrs 0.23 that have no direct kernel here, that is the encoder of `numcodecs.pcodec`. Its decoders
//! allocate as the bytes say (all but those of checksums), its `fletcher32` leaves out an odd byte, and its `bitround`
//! saturates where numcodecs wraps.

use std::fmt;
use std::num::NonZeroU64;

use zarrs::array::{ArrayBytes, ArrayToBytesCodecTraits, CodecChain, CodecOptions, DataType, FillValue};
use zarrs::metadata::v3::MetadataV3;

use crate::errors::{Failure, Fault, Kind, Outcome};
use crate::worker::Memory;

/// An array->bytes codec of zarrs.
#[derive(Clone)]
pub struct Encoder {
    chain: CodecChain,
    data_type: DataType,
    fill_value: FillValue,
    size: usize,
}

impl fmt::Debug for Encoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Encoder").field(&self.data_type).finish()
    }
}

impl Encoder {
    /// Make the codec of its Zarr v3 metadata, for elements of a Zarr v3 data type.
    pub fn new(metadata: &str, data_type: &str, size: usize) -> Outcome<Self> {
        let codec = MetadataV3::try_from(metadata).map_err(refused)?;
        let data_type = DataType::from_metadata(&MetadataV3::new(data_type)).map_err(refused)?;
        let chain = CodecChain::from_metadata(&[codec]).map_err(refused)?;
        Ok(Self { chain, data_type, fill_value: FillValue::new(vec![0; size]), size })
    }

    /// Encode the bytes of elements in native byte order.
    pub fn encode(&self, input: &[u8], out: &mut Memory) -> Outcome<usize> {
        let Some(count) = u64::try_from(input.len() / self.size).ok().and_then(NonZeroU64::new) else {
            return Err(Fault::new(Kind::Configuration, "no elements cannot be encoded"));
        };
        let options = CodecOptions::default().with_concurrent_target(1);
        let encoded = self.chain.encode(ArrayBytes::from(input), &[count], &self.data_type, &self.fill_value, &options);
        let encoded = encoded.map_err(refused)?;
        out.room(encoded.len())?.copy_from_slice(&encoded);
        Ok(encoded.len())
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for `map_err`")]
#[allow(clippy::unnecessary_box_returns, reason = "faults are handed on in boxes")]
fn refused(error: impl fmt::Display) -> Failure {
    Fault::new(Kind::Configuration, error.to_string())
}
