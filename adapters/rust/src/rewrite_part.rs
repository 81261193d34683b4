//! Write over a part of a frame of blocks: only the blocks that have changed elements are decoded and encoded, the others
//! are copied as they are.
//!
//! What is damaged in the others is not noticed, and stays: whoever reads it will.

use std::ops::Range;

use crate::blocks::joined;
use crate::errors::Outcome;
use crate::fill::is_filled;
use crate::place::Place;
use crate::worker::Worker;
use crate::write::Writing;

impl Writing<'_> {
    /// Encode a chunk over what it held; None when that takes all of it.
    ///
    /// # Errors
    /// When a selection is out of bounds, the old bytes do not decode, or the codec refuses.
    pub fn make_part(
        &self,
        rows: &Range<usize>,
        encoded: &[u8],
        place: &mut Place,
        worker: &mut Worker,
    ) -> Outcome<Option<Vec<u8>>> {
        let Some((stage, runs)) =
            self.chunk.wanted(encoded, self.selections, rows.clone(), self.source.layout(), place)?
        else {
            return Ok(None);
        };
        let (nbytes, fill) = (self.chunk.nbytes, self.chunk.fill.as_slice());
        let size = stage.kernel.blocksize(encoded).unwrap_or(nbytes);
        let whole = |run: Range<usize>| run.start / size * size..(run.end.div_ceil(size) * size).min(nbytes);
        let blocks = joined(runs.into_iter().map(whole), 0);
        if !size.is_multiple_of(fill.len()) || !stage.kernel.can_encode_part(encoded, &blocks) {
            return Ok(None);
        }
        let mut memory = std::mem::take(&mut worker.chunk);
        let mut attempt = || {
            let data = memory.room(nbytes)?;
            if !stage.decode_runs(encoded, &blocks, data)? {
                return Ok(None);
            }
            self.put(rows.clone(), place, data)?;
            let is_empty = |block: &Range<usize>| is_filled(&data[block.clone()], fill, self.chunk.mask.as_deref());
            if !self.keep_empty && blocks.iter().all(is_empty) {
                // Perhaps nothing is left in the others either, and the chunk is not to be stored at all.
                return Ok(None);
            }
            stage.kernel.encode_part(encoded, data, &blocks, &mut worker.back).map_err(|fault| fault.by(&stage.name))
        };
        let made = attempt();
        worker.chunk = memory;
        made
    }
}
