//! Read only a part of a chunk: of one that nothing is done to, the bytes that are wanted; of a frame of blocks, its
//! header and the blocks that have them.
//!
//! What is damaged elsewhere in the chunk is not noticed then. Lengths are checked all the same, and of a frame that its
//! blocks are where its table says: the memory between them has whatever was there before, which must not come out.

use std::ops::Range;

use crate::chain::Stage;
use crate::errors::Outcome;
use crate::pace::Pace;
use crate::place::Place;
use crate::read::Reading;
use crate::read_stored::{Item, MAX_GAP, MIN_REQUEST, Parts, Ranges, Storage};
use crate::worker::{Memory, Worker};

/// Chunks of fewer decoded bytes are not read in blocks.
const MIN_BLOCKED: usize = 128 << 10;

/// How much is read to learn where blocks are.
const HEAD: usize = 1 << 10;

/// How much longer than what they decode to frames of blocks may be.
const MAX_OVERHEAD: usize = 1 << 10;

impl Reading<'_> {
    /// Which bytes are wanted of each of large chunks that can be read in part; nothing when chunks are others.
    ///
    /// # Errors
    /// When a selection is out of bounds.
    pub fn parts(&self, items: &[Item]) -> Outcome<Vec<Ranges>> {
        let least = if self.chunk.stages.is_empty() { MIN_REQUEST } else { MIN_BLOCKED };
        if self.chunk.nbytes < least || !(self.chunk.stages.is_empty() || self.chunk.blocked().is_some()) {
            return Ok(Vec::new());
        }
        Worker::lend(|worker| {
            let part = |item: &Item| self.part(item, &mut worker.place).map_err(|fault| fault.at(item.chunk));
            items.iter().map(part).collect()
        })
    }

    /// Which decoded bytes are wanted of one of them, unless that is about all of it.
    fn part(&self, item: &Item, place: &mut Place) -> Outcome<Ranges> {
        let mut runs = self.runs(item.rows.clone(), MAX_GAP, place)?;
        let effort: usize = runs.iter().map(|run| run.len() + MAX_GAP).sum();
        let is_odd = self.chunk.stages.is_empty() && item.length.is_some_and(|length| length != self.chunk.nbytes);
        if effort >= self.chunk.nbytes || is_odd {
            runs.clear();
        }
        Ok(runs)
    }

    /// Read and decode what is wanted of a chunk; false when that cannot be done, and nothing was.
    ///
    /// # Errors
    /// When storage fails, or the chunk is corrupt.
    pub fn read_part(
        &self,
        storage: &dyn Storage,
        item: &Item,
        ranges: &[Range<usize>],
        memory: &mut Memory,
        worker: &mut Worker,
        pace: &Pace,
    ) -> Outcome<bool> {
        match self.chunk.blocked() {
            None => self.read_ranges(storage, item, ranges, memory, worker, pace).map(|()| true),
            // Where a request takes long, another one is the greater evil.
            Some(_) if pace.is_slow() => Ok(false),
            Some(stage) => {
                let Some(size) = Self::held_size(storage, item)? else {
                    return self.one(None, item.rows.clone(), worker).map(|()| true);
                };
                let done = self.read_blocks(storage, (item, size), (stage, ranges), memory, worker, pace);
                if item.length.is_none() {
                    storage.release(item.source);
                }
                done
            }
        }
    }

    /// Bytes of a chunk, of which one version is held from now on; None when it is missing.
    fn held_size(storage: &dyn Storage, item: &Item) -> Outcome<Option<usize>> {
        match item.length {
            Some(length) => Ok(Some(length)),
            None => Ok(storage.hold(item.source)?.map(|object| object.size.saturating_sub(item.offset))),
        }
    }

    fn read_blocks(
        &self,
        storage: &dyn Storage,
        (item, size): (&Item, usize),
        (stage, ranges): (&Stage, &[Range<usize>]),
        memory: &mut Memory,
        worker: &mut Worker,
        pace: &Pace,
    ) -> Outcome<bool> {
        let nbytes = self.chunk.nbytes;
        if size > nbytes + MAX_OVERHEAD {
            return Ok(false);
        }
        let read = |ranges: &[Range<usize>], memory: &mut Memory| {
            let parts = Parts { source: item.source, offset: item.offset, ranges, whole: None };
            let bytes = ranges.iter().map(Range::len).sum();
            pace.request(|| (bytes, storage.read_parts(&parts, memory)))
        };
        // All of the frame is in memory of which only parts are filled.
        memory.room(size)?;
        let head = 0..HEAD.min(size);
        read(std::slice::from_ref(&head), memory)?;
        let Some(parts) = stage.kernel.needed(memory.filled(head.end), size, nbytes, ranges) else {
            return Ok(false);
        };
        if parts.iter().map(Range::len).sum::<usize>() >= size / 4 * 3 {
            return Ok(false);
        }
        read(&parts, memory)?;
        let _permit = pace.permit();
        let frame = memory.filled(size);
        Ok(stage.kernel.is_enough(frame, nbytes, ranges, &parts)
            && self.put_blocks(stage, frame, ranges, item.rows.clone(), worker)?)
    }

    fn read_ranges(
        &self,
        storage: &dyn Storage,
        item: &Item,
        ranges: &[Range<usize>],
        memory: &mut Memory,
        worker: &mut Worker,
        pace: &Pace,
    ) -> Outcome<()> {
        let (first, end) = (ranges[0].start, ranges[ranges.len() - 1].end);
        let whole = item.length.is_none().then_some(self.chunk.nbytes);
        // Where a request takes long, bytes between are the lesser evil.
        let together = first..end;
        let ranges = if pace.is_slow() { std::slice::from_ref(&together) } else { ranges };
        let parts = Parts { source: item.source, offset: item.offset, ranges, whole };
        let found = pace.request(|| (end - first, storage.read_parts(&parts, memory)))?;
        let _permit = pace.permit();
        if found {
            return self.put_part(memory.filled(end - first), first, item.rows.clone(), worker);
        }
        self.one(None, item.rows.clone(), worker)
    }
}
