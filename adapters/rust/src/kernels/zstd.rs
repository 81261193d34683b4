//! `zstd`: Zstandard frames (RFC 8878), with contexts that are kept per thread.
//!
//! Several frames and skippable ones are accepted, anything else after a frame is not; as numcodecs does.

use zstd_safe::{
    CCtx, CParameter, DCtx, ResetDirective, compress_bound, find_frame_compressed_size, get_error_name,
    get_frame_content_size,
};

use super::Written;
use crate::errors::{Failure, Fault, Kind, Outcome};
use crate::worker::Memory;

/// libzstd's error code for a destination that is too small, negated as the library returns it.
const TOO_SMALL: usize = 70_usize.wrapping_neg();

/// The highest level; higher ones are taken for it, as numcodecs does.
const HIGHEST: i64 = 22;

/// Configuration of the codec.
#[derive(Clone, Debug)]
pub struct Zstd {
    level: i32,
    checksum: bool,
}

impl Zstd {
    /// Make the codec.
    pub fn new(level: i64, checksum: bool) -> Self {
        Self { level: i32::try_from(level.min(HIGHEST)).unwrap_or(i32::MIN), checksum }
    }
}

/// A compressor and a decompressor, made when they are first needed.
#[derive(Default)]
pub struct Contexts {
    compressor: Option<CCtx<'static>>,
    decompressor: Option<DCtx<'static>>,
}

impl Contexts {
    /// Decode all frames.
    pub fn decode(&mut self, input: &[u8], out: &mut [u8]) -> Written {
        if let Ok(Some(claimed)) = get_frame_content_size(input)
            && claimed > out.len() as u64
        {
            return Ok(None);
        }
        let context = match &mut self.decompressor {
            Some(context) => context,
            empty => empty.insert(DCtx::try_create().ok_or_else(no_context)?),
        };
        match context.decompress(out, input) {
            Ok(size) => Ok(Some(size)),
            Err(TOO_SMALL) => Ok(None),
            Err(code) => Err(Fault::corrupt(get_error_name(code))),
        }
    }

    /// Encode as one frame.
    pub fn encode(&mut self, codec: &Zstd, input: &[u8], out: &mut Memory) -> Outcome<usize> {
        let context = match &mut self.compressor {
            Some(context) => context,
            empty => empty.insert(CCtx::try_create().ok_or_else(no_context)?),
        };
        let out = out.room(compress_bound(input.len()))?;
        context
            .reset(ResetDirective::SessionAndParameters)
            .and_then(|_| context.set_parameter(CParameter::CompressionLevel(codec.level)))
            .and_then(|_| context.set_parameter(CParameter::ChecksumFlag(codec.checksum)))
            .and_then(|_| context.compress2(out, input))
            .map_err(|code| Fault::new(Kind::Configuration, get_error_name(code)))
    }
}

impl Contexts {
    /// Give back what is larger than so many bytes: high levels need hundreds of megabytes.
    pub fn trim(&mut self, most: usize) {
        if self.compressor.as_ref().is_some_and(|context| context.sizeof() > most) {
            self.compressor = None;
        }
    }
}

/// The sum of the sizes that all frames claim, None when one does not or a frame is broken.
pub fn claimed(mut input: &[u8]) -> Option<u64> {
    let mut total = 0_u64;
    while !input.is_empty() {
        let size = find_frame_compressed_size(input).ok()?;
        total = total.checked_add(get_frame_content_size(input).ok()??)?;
        input = input.get(size..)?;
    }
    Some(total)
}

#[allow(clippy::unnecessary_box_returns, reason = "faults are handed on in boxes")]
fn no_context() -> Failure {
    Fault::new(Kind::Configuration, "there is no memory for a context")
}
