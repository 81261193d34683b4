//! Chunks that are encoded as blocks which can be decoded by themselves, of which only some are wanted.

use std::ops::Range;

use crate::chain::Stage;
use crate::entries::{Layout, Selections};
use crate::errors::Outcome;
use crate::place::{Direction, Place};
use crate::program::Chunk;
use crate::read_stored::Ranges;

/// Most times that a block is looked at to decode runs one by one: the library goes through all blocks for each run.
const MAX_LOOKS: usize = 1 << 16;

impl Chunk {
    /// The only stage of chunks that can have blocks which are decoded by themselves.
    #[must_use]
    pub fn blocked(&self) -> Option<&Stage> {
        match self.stages.as_slice() {
            [stage] if stage.kernel.has_blocks() && stage.exact == Some(self.nbytes) => Some(stage),
            _ => None,
        }
    }

    /// The bytes among which selections of a chunk are, in order: runs that are more than `gap` bytes apart.
    ///
    /// # Errors
    /// When a selection is out of bounds of the chunk, or of the caller's array, which has that layout.
    pub fn runs(
        &self,
        selections: &dyn Selections,
        rows: Range<usize>,
        array: &Layout,
        gap: usize,
        place: &mut Place,
    ) -> Outcome<Vec<Range<usize>>> {
        let mut found = Vec::new();
        for row in rows {
            selections.find(row, place, &self.layout, array, Direction::Scatter)?;
            if !place.is_empty {
                place.runs(self.fill.len(), gap, &mut found);
            }
        }
        found.sort_unstable_by_key(|run| run.start);
        let number = |offset: isize| usize::try_from(offset).unwrap_or(0).min(self.nbytes);
        Ok(joined(found.into_iter().map(|run| number(run.start)..number(run.end)), gap))
    }

    /// The bytes of an encoded chunk among which its selections are, in runs that have no block in common, with the stage
    /// that made the blocks; None when there are none, or nearly all are wanted.
    ///
    /// # Errors
    /// When a selection is out of bounds.
    pub fn wanted(
        &self,
        encoded: &[u8],
        selections: &dyn Selections,
        rows: Range<usize>,
        array: &Layout,
        place: &mut Place,
    ) -> Outcome<Option<(&Stage, Ranges)>> {
        let most = self.nbytes / 4 * 3;
        let Some(stage) = self.blocked() else {
            return Ok(None);
        };
        let Some(size) = stage.kernel.blocksize(encoded).filter(|size| *size < most) else {
            return Ok(None);
        };
        let runs = self.runs(selections, rows, array, size - 1, place)?;
        let blocks = runs.iter().map(|run| run.end.div_ceil(size) - run.start / size).sum::<usize>();
        Ok((blocks.saturating_mul(size) <= most).then_some((stage, runs)))
    }
}

impl Stage {
    /// Decode runs of a chunk in blocks, which are in order, to where they are in the whole; whether that was done, or they
    /// are too many for it, or cannot be decoded by themselves.
    ///
    /// # Errors
    /// When there is no frame.
    pub fn decode_runs(&self, encoded: &[u8], runs: &[Range<usize>], chunk: &mut [u8]) -> Outcome<bool> {
        let blocksize = self.kernel.blocksize(encoded).unwrap_or(0);
        // Runs that are less than a block apart may have a block in common, and others have none.
        let runs = joined(runs.iter().cloned(), blocksize.saturating_sub(1));
        if runs.len().saturating_mul(chunk.len() / blocksize.max(1)) > MAX_LOOKS {
            return Ok(false);
        }
        for run in runs {
            if !self.kernel.decode_part(encoded, &run, chunk).map_err(|fault| fault.by(&self.name))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Join runs, which are in order, that are at most `gap` bytes apart.
pub fn joined(runs: impl Iterator<Item = Range<usize>>, gap: usize) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for run in runs {
        match joined.last_mut() {
            Some(last) if run.start <= last.end.saturating_add(gap) => last.end = last.end.max(run.end),
            _ => joined.push(run),
        }
    }
    joined
}
