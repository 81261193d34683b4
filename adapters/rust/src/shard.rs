//! The form of shards: where the index and the inner chunks are, and what an index may say.
//!
//! The same rules as in `chunkwright.shard_format`, which is the reference: everything in an index is untrusted, and an
//! entry is checked before its bytes are looked at.

#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use crate::chain::{decode, encode};
use crate::copy::{Element, copy};
use crate::entries::Layout;
use crate::errors::{Fault, Kind, Outcome};
use crate::place::{Direction, Place};
use crate::program::Chunk;
use crate::worker::{Memory, Worker};

const CODEC: &str = "sharding_indexed";
const ABSENT: u64 = u64::MAX;
const WORD: usize = 8;

/// What all shards of an array have in common.
pub struct Form {
    /// The inner chunks.
    pub inner: Arc<Chunk>,
    /// The index: offset and length of each inner chunk.
    pub index: Arc<Chunk>,
    /// Bytes of an index entry's numbers that are reversed together.
    pub unit: usize,
    /// Bytes of the encoded index.
    pub index_size: usize,
    /// Whether the index comes first.
    pub at_start: bool,
    /// Inner chunks along each axis.
    pub grid: Vec<usize>,
    /// Flat positions of inner chunks in the order in which they are written; none when shards are only read.
    pub order: Vec<usize>,
    /// Bytes of an encoded inner chunk, when they are fixed.
    pub exact: Option<usize>,
    /// Most bytes of an encoded inner chunk, when there is a bound.
    pub most: Option<usize>,
}

/// What is known of a shard from the lengths of its inner chunks.
pub struct Outline {
    /// The encoded index.
    pub index: Vec<u8>,
    /// Bytes of the whole shard.
    pub size: usize,
}

/// The index of one shard: offset and length of each inner chunk in turn.
pub struct Index(Vec<u64>);

impl Index {
    /// Bytes of its numbers.
    #[must_use]
    pub fn nbytes(&self) -> usize {
        self.0.len() * WORD
    }
}

impl Form {
    /// Check that everything belongs together.
    ///
    /// # Errors
    /// When it does not.
    pub fn check(&self) -> Outcome<()> {
        let cells = self.grid.iter().try_fold(1_usize, |cells, extent| cells.checked_mul(*extent));
        let mut seen = vec![false; self.order.len()];
        let permuted =
            self.order.iter().all(|cell| seen.get_mut(*cell).is_some_and(|seen| !std::mem::replace(seen, true)));
        let ordered = self.order.is_empty() || permuted && cells == Some(self.order.len());
        let together = self.grid.len() == self.inner.layout.shape.len()
            && ordered
            && cells.and_then(|cells| cells.checked_mul(2)) == Some(self.index.count)
            && self.index.fill.len() == WORD;
        if together {
            Ok(())
        } else {
            Err(Fault::new(Kind::Configuration, "grid, index and order do not belong together"))
        }
    }

    /// Inner chunks of a shard.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.index.count / 2
    }

    /// Shape of a shard.
    #[must_use]
    pub fn shape(&self) -> Vec<usize> {
        self.grid.iter().zip(&self.inner.layout.shape).map(|(cells, extent)| cells * extent).collect()
    }

    /// Where the index of a shard of so many bytes is.
    ///
    /// # Errors
    /// When there are too few.
    pub fn index_span(&self, size: usize) -> Outcome<Range<usize>> {
        match size.checked_sub(self.index_size) {
            Some(_) if self.at_start => Ok(0..self.index_size),
            Some(begin) => Ok(begin..size),
            None => Err(Fault::new(Kind::ShardIndex, "the shard is too short for its index")
                .with(self.index_size, size)
                .by(CODEC)),
        }
    }

    /// Decode an index.
    ///
    /// # Errors
    /// When it does not decode.
    pub fn decode(&self, encoded: &[u8], worker: &mut Worker) -> Outcome<Index> {
        let decoded = decode(&self.index.stages, encoded, worker, None)?;
        let mut numbers = vec![0_u64; self.index.count];
        // Nothing is decoded straight into a target, for none was given.
        if let Some(data) = self.index.array(&decoded, worker)? {
            let mut place = Place::default();
            place.whole(&self.index.layout, &self.numbers_layout(), Direction::Scatter);
            // SAFETY: `array` checked the length of the data, and both have the layouts that the place is about.
            unsafe { copy(&place, self.element(), data.as_ptr(), numbers.as_mut_ptr().cast()) }
        }
        Ok(Index(numbers))
    }

    fn encode(&self, index: &Index, worker: &mut Worker) -> Outcome<Vec<u8>> {
        let mut place = Place::default();
        place.whole(&self.index.layout, &self.numbers_layout(), Direction::Gather);
        let Worker { front, back, chunk, contexts, .. } = worker;
        let memory = chunk.room(self.index.nbytes)?;
        // SAFETY: both have the layouts that the place is about; the memory is ours.
        unsafe { copy(&place, self.element(), index.0.as_ptr().cast(), memory.as_mut_ptr()) }
        encode(&self.index.stages, Memory::filled(chunk, self.index.nbytes), front, back, contexts)
    }

    fn element(&self) -> Element {
        Element { size: WORD, unit: self.unit }
    }

    /// Numbers as they are in an [`Index`].
    fn numbers_layout(&self) -> Layout {
        let shape = self.index.layout.shape.clone();
        let mut strides = vec![0; shape.len()];
        let mut distance = WORD;
        for (stride, extent) in strides.iter_mut().zip(&shape).rev() {
            *stride = distance.cast_signed();
            distance *= extent;
        }
        Layout { shape, strides }
    }

    /// Where an inner chunk is in a shard of so many bytes, None when it is missing.
    ///
    /// # Errors
    /// When the index points somewhere else than into the shard's data, or to a length that the chain does not allow.
    pub fn find(&self, index: &Index, cell: usize, size: usize) -> Outcome<Option<Range<usize>>> {
        let (offset, length) = (index.0[2 * cell], index.0[2 * cell + 1]);
        if offset == ABSENT && length == ABSENT {
            return Ok(None);
        }
        let refuse = |message: String| {
            let found = format!("{message}: offset {offset}, length {length}");
            Err(Fault::new(Kind::ShardIndex, found).by(CODEC))
        };
        let position = |number: u64| i64::try_from(number).ok().and_then(|number| usize::try_from(number).ok());
        let end = offset.checked_add(length).and_then(position);
        let (Some(begin), Some(end), Some(count)) = (position(offset), end, position(length)) else {
            return refuse("an index entry is out of range".to_owned());
        };
        if let Some(exact) = self.exact.filter(|exact| *exact != count) {
            return refuse(format!("an inner chunk must have {exact} bytes"));
        }
        if let Some(most) = self.most.filter(|most| count > *most) {
            return refuse(format!("an inner chunk has at most {most} bytes"));
        }
        if self.at_start && begin < self.index_size && count > 0 {
            return refuse("an index entry points into the index".to_owned());
        }
        if end > if self.at_start { size } else { size.saturating_sub(self.index_size) } {
            return refuse("an index entry points outside the shard's data".to_owned());
        }
        Ok(Some(begin..end))
    }

    /// Say what a shard is like whose inner chunks have so many bytes, by flat position; 0 where one is missing. None when
    /// all are.
    ///
    /// # Errors
    /// When the index cannot be encoded.
    pub fn outline(&self, length: &dyn Fn(usize) -> usize, worker: &mut Worker) -> Outcome<Option<Outline>> {
        let mut index = Index(vec![ABSENT; 2 * self.cells()]);
        let first = if self.at_start { self.index_size } else { 0 };
        let mut end = first;
        for cell in self.order.iter().copied() {
            let length = length(cell);
            if length > 0 {
                index.0[2 * cell] = end as u64;
                index.0[2 * cell + 1] = length as u64;
                end += length;
            }
        }
        if end == first {
            return Ok(None);
        }
        let index = self.encode(&index, worker)?;
        if index.len() != self.index_size {
            return Err(Fault::length("wrong length of an index", self.index_size, index.len()).by(CODEC));
        }
        Ok(Some(Outline { index, size: end - first + self.index_size }))
    }

    /// Put a shard together from the bytes of its inner chunks, by flat position; empty where one is missing. None when
    /// all are.
    ///
    /// # Errors
    /// When the index cannot be encoded.
    pub fn assemble(&self, parts: &[&[u8]], worker: &mut Worker) -> Outcome<Option<Vec<u8>>> {
        let Some(Outline { index, size }) = self.outline(&|cell| parts[cell].len(), worker)? else {
            return Ok(None);
        };
        let mut made = Vec::with_capacity(size);
        if self.at_start {
            made.extend_from_slice(&index);
        }
        for cell in &self.order {
            made.extend_from_slice(parts[*cell]);
        }
        if !self.at_start {
            made.extend_from_slice(&index);
        }
        Ok(Some(made))
    }
}
