//! `numcodecs.bitround`: the last bits of a float's mantissa become 0, rounded half to even. Nothing is undone.

use crate::errors::{Fault, Kind, Outcome};
use crate::worker::Memory;

/// Configuration of the codec for floats of one size and byte order.
#[derive(Clone, Debug)]
pub struct Bitround {
    size: usize,
    dropped: u32,
    is_swapped: bool,
}

impl Bitround {
    /// Make the codec.
    pub fn new(size: i64, keepbits: i64, is_swapped: bool) -> Outcome<Self> {
        let (size, mantissa) = match size {
            2 => (2, 10),
            4 => (4, 23),
            8 => (8, 52),
            _ => return Err(Fault::new(Kind::Configuration, "it is not made for this data type")),
        };
        let dropped = u32::try_from(keepbits).ok().and_then(|kept| u32::checked_sub(mantissa, kept));
        let dropped = dropped.ok_or_else(|| Fault::new(Kind::Configuration, "keepbits is out of range"))?;
        Ok(Self { size, dropped, is_swapped })
    }

    /// Round all floats.
    pub fn encode(&self, input: &[u8], out: &mut Memory) -> Outcome<usize> {
        let out = out.room(input.len())?;
        out.copy_from_slice(input);
        if self.dropped > 0 {
            match self.size {
                2 => self.each(out, |bytes| round16(u16::from_ne_bytes(bytes), self.dropped).to_ne_bytes()),
                4 => self.each(out, |bytes| round32(u32::from_ne_bytes(bytes), self.dropped).to_ne_bytes()),
                _ => self.each(out, |bytes| round64(u64::from_ne_bytes(bytes), self.dropped).to_ne_bytes()),
            }
        }
        Ok(input.len())
    }

    fn each<const SIZE: usize>(&self, out: &mut [u8], round: impl Fn([u8; SIZE]) -> [u8; SIZE]) {
        for element in out.as_chunks_mut::<SIZE>().0 {
            if self.is_swapped {
                element.reverse();
                *element = round(*element);
                element.reverse();
            } else {
                *element = round(*element);
            }
        }
    }
}

// As numcodecs does it, the sum wraps: some NaNs become other values.
macro_rules! round {
    ($name:ident, $number:ty) => {
        fn $name(bits: $number, dropped: u32) -> $number {
            let half = (1 << (dropped - 1)) - 1;
            bits.wrapping_add((bits >> dropped & 1) + half) >> dropped << dropped
        }
    };
}

round!(round16, u16);
round!(round32, u32);
round!(round64, u64);

#[cfg(test)]
mod tests {
    use super::round32;

    #[test]
    fn halves_become_even() {
        let round = |value: f32| f32::from_bits(round32(value.to_bits(), 22));
        assert_eq!([1.25, 1.75, 2.5, -3.5].map(round).map(f32::to_bits), [1.0, 2.0, 2.0, -4.0].map(f32::to_bits));
    }
}
