//! `numcodecs.bz2`: bzip2 streams that follow one another. What follows a stream and is no further stream is
//! ignored, as numcodecs does; no bytes at all are no streams.

use bzip2::{Action, Compress, Compression, Decompress, Status};

use super::Written;
use crate::errors::{Fault, Kind, Outcome};
use crate::worker::Memory;

/// Configuration of the codec.
#[derive(Clone, Debug)]
pub struct Bz2 {
    level: u32,
}

impl Bz2 {
    /// Make the codec.
    pub fn new(level: i64) -> Self {
        Self { level: u32::try_from(level).unwrap_or(1).clamp(1, 9) }
    }

    /// Encode as one stream.
    pub fn encode(&self, input: &[u8], out: &mut Memory) -> Outcome<usize> {
        // The library's documentation promises that this is enough.
        let out = out.room(input.len() + input.len() / 100 + 600)?;
        let mut stream = Compress::new(Compression::new(self.level), 0);
        let mut begin = 0;
        loop {
            let written = size(stream.total_out());
            let status = stream.compress(&input[begin..], &mut out[written..], Action::Finish);
            begin = size(stream.total_in());
            match status {
                Ok(Status::StreamEnd) => {
                    return Ok(size(stream.total_out()));
                }
                Ok(Status::FinishOk) if written < out.len() => {}
                _ => return Err(Fault::new(Kind::Configuration, "cannot be encoded")),
            }
        }
    }
}

/// Decode all streams.
pub fn decode(input: &[u8], out: &mut [u8]) -> Written {
    let (mut begin, mut total) = (0, 0);
    while begin < input.len() {
        match one(&input[begin..], &mut out[total..]) {
            Ok(Some((read, written))) => {
                begin += read;
                total += written;
            }
            Ok(None) => return Ok(None),
            Err(Broken::Early) => return Err(Fault::corrupt("the stream ends early")),
            Err(Broken::Data) if begin == 0 => return Err(Fault::corrupt("the stream is broken")),
            Err(Broken::Data) => break,
        }
    }
    Ok(Some(total))
}

enum Broken {
    Data,
    Early,
}

/// Decode one stream; returns what was read and written, None when there is too little room.
fn one(input: &[u8], out: &mut [u8]) -> Result<Option<(usize, usize)>, Broken> {
    let mut stream = Decompress::new(false);
    // Room for one byte more than there may be: with it, a stream that fits is also seen to end.
    let mut beyond = [0];
    loop {
        let (read, written) = (size(stream.total_in()), size(stream.total_out()));
        let room = if written < out.len() { &mut out[written..] } else { &mut beyond };
        let status = stream.decompress(&input[read..], room);
        let (now_read, now_written) = (size(stream.total_in()), size(stream.total_out()));
        if now_written > out.len() {
            return Ok(None);
        }
        match status {
            Ok(Status::StreamEnd) => return Ok(Some((now_read, now_written))),
            Ok(_) if now_read == input.len() && now_written == written => return Err(Broken::Early),
            Ok(_) => {}
            Err(_) => return Err(Broken::Data),
        }
    }
}

/// A number of bytes in memory.
fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
