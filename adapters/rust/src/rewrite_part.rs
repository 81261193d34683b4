//! Write over a part of a frame of blocks: only the blocks that have changed elements are decoded and encoded, the others
//! are copied as they are.
//!
//! What is damaged in the others is not noticed, and stays: whoever reads it will.

use std::ops::Range;

use crate::errors::Outcome;
use crate::fill::is_filled;
use crate::place::Place;
use crate::read::{Reading, joined};
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
        // A read of the same elements would need the same blocks.
        let Writing { chunk, source: out, selections, element, .. } = *self;
        let reading = Reading { chunk, selections, out, element, fill: &chunk.fill };
        let most = chunk.nbytes / 4 * 3;
        let Some(stage) = reading.blocked() else {
            return Ok(None);
        };
        let Some(size) = stage.kernel.blocksize(encoded).filter(|size| size.is_multiple_of(element.size)) else {
            return Ok(None);
        };
        if size >= most {
            return Ok(None);
        }
        let runs = reading.runs(rows.clone(), size - 1, place)?;
        let whole = |run: Range<usize>| run.start / size * size..(run.end.div_ceil(size) * size).min(chunk.nbytes);
        let blocks = joined(runs.into_iter().map(whole), 0);
        if blocks.iter().map(Range::len).sum::<usize>() > most {
            return Ok(None);
        }
        let mut memory = std::mem::take(&mut worker.chunk);
        let mut attempt = || {
            let data = memory.room(chunk.nbytes)?;
            for block in &blocks {
                if !stage.kernel.decode_part(encoded, block, data)? {
                    return Ok(None);
                }
            }
            self.put(rows.clone(), place, data)?;
            let is_empty = |block: &Range<usize>| is_filled(&data[block.clone()], &chunk.fill, chunk.mask.as_deref());
            if !self.keep_empty && blocks.iter().all(is_empty) {
                // Perhaps nothing is left in the others either, and the chunk is not to be stored at all.
                return Ok(None);
            }
            stage.kernel.encode_part(encoded, data, &blocks, &mut worker.back)
        };
        let made = attempt().map_err(|fault| fault.by(&stage.name));
        worker.chunk = memory;
        made
    }
}
