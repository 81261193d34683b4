//! `numcodecs.shuffle`: the first bytes of all elements, then the second bytes, and so on.

use super::Written;
use crate::errors::{Fault, Outcome};
use crate::worker::Memory;

/// Configuration of the codec.
#[derive(Clone, Debug)]
pub struct Shuffle {
    size: usize,
}

impl Shuffle {
    /// Make the codec.
    pub fn new(size: i64) -> Self {
        Self { size: usize::try_from(size).unwrap_or(1).max(1) }
    }

    /// Put the bytes of each element together again.
    pub fn decode(&self, input: &[u8], out: &mut [u8]) -> Written {
        self.check(input)?;
        let Some(out) = out.get_mut(..input.len()) else {
            return Ok(None);
        };
        match self.size {
            1 => out.copy_from_slice(input),
            2 => unshuffle::<2>(input, out),
            4 => unshuffle::<4>(input, out),
            8 => unshuffle::<8>(input, out),
            size => unshuffle_any(input, out, size),
        }
        Ok(Some(input.len()))
    }

    /// Take the bytes of all elements apart.
    pub fn encode(&self, input: &[u8], out: &mut Memory) -> Outcome<usize> {
        self.check(input)?;
        let out = out.room(input.len())?;
        match self.size {
            1 => out.copy_from_slice(input),
            2 => shuffle::<2>(input, out),
            4 => shuffle::<4>(input, out),
            8 => shuffle::<8>(input, out),
            size => shuffle_any(input, out, size),
        }
        Ok(input.len())
    }

    fn check(&self, input: &[u8]) -> Outcome<()> {
        if input.len().is_multiple_of(self.size) {
            return Ok(());
        }
        Err(Fault::length("no whole elements", format!("a multiple of {}", self.size), input.len()))
    }
}

/// Elements whose bytes are moved together, so that the compiler can use wide registers.
const TILE: usize = 64;

fn unshuffle<const SIZE: usize>(input: &[u8], out: &mut [u8]) {
    let count = input.len() / SIZE;
    if count == 0 {
        return;
    }
    let planes: [&[u8]; SIZE] = std::array::from_fn(|byte| &input[byte * count..(byte + 1) * count]);
    for (tile, elements) in out.chunks_mut(SIZE * TILE).enumerate() {
        let parts = planes.map(|plane| &plane[tile * TILE..tile * TILE + elements.len() / SIZE]);
        for (number, element) in elements.as_chunks_mut::<SIZE>().0.iter_mut().enumerate() {
            *element = std::array::from_fn(|byte| parts[byte][number]);
        }
    }
}

fn shuffle<const SIZE: usize>(input: &[u8], out: &mut [u8]) {
    let count = input.len() / SIZE;
    if count == 0 {
        return;
    }
    let elements = input.as_chunks::<SIZE>().0;
    for (byte, plane) in out.chunks_exact_mut(count).enumerate() {
        for (target, element) in plane.iter_mut().zip(elements) {
            *target = element[byte];
        }
    }
}

fn unshuffle_any(input: &[u8], out: &mut [u8], size: usize) {
    for (byte, plane) in input.chunks_exact((input.len() / size).max(1)).enumerate() {
        for (element, source) in out.chunks_exact_mut(size).zip(plane) {
            element[byte] = *source;
        }
    }
}

fn shuffle_any(input: &[u8], out: &mut [u8], size: usize) {
    for (byte, plane) in out.chunks_exact_mut((input.len() / size).max(1)).enumerate() {
        for (target, element) in plane.iter_mut().zip(input.chunks_exact(size)) {
            *target = element[byte];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Shuffle;
    use crate::worker::Memory;

    #[test]
    fn every_size_makes_a_round_trip() -> Result<(), String> {
        for size in 1_u8..10 {
            let content: Vec<u8> = (0..size).cycle().take(130 * usize::from(size)).collect();
            let codec = Shuffle::new(i64::from(size));
            let mut memory = Memory::default();
            let length = codec.encode(&content, &mut memory).map_err(|fault| fault.message)?;
            let encoded = memory.filled(length);
            assert!(encoded.is_sorted());
            let mut decoded = vec![0; content.len()];
            codec.decode(encoded, &mut decoded).map_err(|fault| fault.message)?;
            assert_eq!(decoded, content);
        }
        Ok(())
    }
}
