//! Decode the chunks of a batch into arrays.

#![allow(unsafe_code)]

use std::ops::Range;

use crate::batch::{Inputs, each};
use crate::buffers::Array;
use crate::chain::{Decoded, Stage, decode};
use crate::copy::{Element, copy};
use crate::entries::{Entries, Layout, Selections};
use crate::errors::{Fault, Outcome};
use crate::load::Load;
use crate::place::{Direction, Place};
use crate::program::Chunk;
use crate::worker::Worker;

/// Chunks, and the places in one array where their entries go.
pub struct Reading<'a> {
    /// The chunks' form and stages.
    pub chunk: &'a Chunk,
    /// Selections of chunks.
    pub selections: &'a dyn Selections,
    /// The caller's array.
    pub out: &'a Array,
    /// How an element is copied.
    pub element: Element,
    /// The fill value, as in the caller's array.
    pub fill: &'a [u8],
}

impl Reading<'_> {
    /// Do it all, with encoded chunks that are in memory.
    ///
    /// # Errors
    /// The fault of the first chunk that has one.
    pub fn run(&self, entries: &Entries<'_>, inputs: &Inputs<'_>, max_workers: Option<usize>) -> Outcome<()> {
        inputs.check()?;
        entries.check(inputs.len())?;
        let groups = groups(entries.chunk);
        each(groups.len(), Load::like(self.chunk.nbytes, &self.chunk.decoding), max_workers, |number, worker| {
            let (chunk, rows) = groups[number].clone();
            inputs.row(chunk).and_then(|input| self.one(input, rows, worker)).map_err(|fault| fault.at(chunk))
        })
    }

    /// Decode one chunk, None when it is missing, and put the elements of its selections where they go.
    ///
    /// # Errors
    /// When it does not decode.
    pub fn one(&self, input: Option<&[u8]>, rows: Range<usize>, worker: &mut Worker) -> Outcome<()> {
        let mut place = std::mem::take(&mut worker.place);
        let result = self.put(input, rows, &mut place, worker);
        worker.place = place;
        result
    }

    fn put(&self, input: Option<&[u8]>, rows: Range<usize>, place: &mut Place, worker: &mut Worker) -> Outcome<()> {
        let Some(input) = input else {
            let layout = Layout::of_one_element(&self.chunk.layout.shape);
            return self.fill(self.selections, rows, &layout, place);
        };
        let first = rows.start;
        self.selections.find(first, place, &self.chunk.layout, self.out.layout(), Direction::Scatter)?;
        let straight =
            rows.len() == 1 && self.element.unit == 1 && place.is_contiguous(self.chunk.count, self.element.size);
        // SAFETY: `find` checked that the elements of the place are within the array; they are neighbours, and no other
        // entry of the batch has them.
        let target = straight.then(|| unsafe {
            std::slice::from_raw_parts_mut(self.out.pointer().offset(place.out), self.chunk.nbytes)
        });
        let decoded = if target.is_none() && self.blocks(input, rows.clone(), place, worker)? {
            Decoded::Front(0..self.chunk.nbytes)
        } else {
            decode(&self.chunk.stages, input, worker, target)?
        };
        // Whoever looked for blocks went through all rows, and ended with the last one.
        let found = (rows.len() == 1).then_some(first);
        self.scatter(&decoded, rows, found, place, worker)
    }

    /// Put elements of a decoded chunk where selections go; the place may be that of one of them.
    fn scatter(
        &self,
        decoded: &Decoded<'_>,
        rows: Range<usize>,
        found: Option<usize>,
        place: &mut Place,
        worker: &Worker,
    ) -> Outcome<()> {
        let Some(data) = self.chunk.array(decoded, worker)? else {
            return Ok(());
        };
        for row in rows {
            if found != Some(row) {
                self.selections.find(row, place, &self.chunk.layout, self.out.layout(), Direction::Scatter)?;
            }
            // SAFETY: `find` checked that the elements of the place are within both arrays, and `array` that the data
            // are those of a whole chunk; they are not the caller's memory.
            unsafe {
                copy(place, self.element, data.as_ptr().offset(place.chunk), self.out.pointer().offset(place.out));
            }
        }
        Ok(())
    }

    /// Decode only the blocks of a chunk that have some of the bytes of `runs`, among which all that is selected is; whether
    /// that was done.
    ///
    /// # Errors
    /// When there is no frame, or a selection is out of bounds.
    pub fn put_blocks(
        &self,
        stage: &Stage,
        input: &[u8],
        runs: &[Range<usize>],
        rows: Range<usize>,
        worker: &mut Worker,
    ) -> Outcome<bool> {
        if !stage.decode_runs(input, runs, worker.front.room(self.chunk.nbytes)?)? {
            return Ok(false);
        }
        let mut place = std::mem::take(&mut worker.place);
        let put = self.scatter(&Decoded::Front(0..self.chunk.nbytes), rows, None, &mut place, worker);
        worker.place = place;
        put.map(|()| true)
    }

    /// Decode only the blocks that have what is wanted, to where they are in the chunk; whether that was done.
    fn blocks(&self, input: &[u8], rows: Range<usize>, place: &mut Place, worker: &mut Worker) -> Outcome<bool> {
        match self.chunk.wanted(input, self.selections, rows, self.out.layout(), place)? {
            Some((stage, runs)) => stage.decode_runs(input, &runs, worker.front.room(self.chunk.nbytes)?),
            None => Ok(false),
        }
    }

    /// The bytes of a chunk among which its selections are, in order: runs that are more than `gap` bytes apart.
    ///
    /// # Errors
    /// When a selection is out of bounds.
    pub fn runs(&self, rows: Range<usize>, gap: usize, place: &mut Place) -> Outcome<Vec<Range<usize>>> {
        self.chunk.runs(self.selections, rows, self.out.layout(), gap, place)
    }

    /// Put elements of a chunk that nothing was done to where its selections go; `data` are those from `first` on, as far
    /// as selections want them.
    ///
    /// # Errors
    /// When a selection is out of bounds.
    pub fn put_part(&self, data: &[u8], first: usize, rows: Range<usize>, worker: &mut Worker) -> Outcome<()> {
        for row in rows {
            let place = &mut worker.place;
            self.selections.find(row, place, &self.chunk.layout, self.out.layout(), Direction::Scatter)?;
            let wanted = place.span(self.element.size);
            let inside = usize::try_from(wanted.start).is_ok_and(|start| start >= first)
                && usize::try_from(wanted.end).is_ok_and(|end| end <= first + data.len());
            if !inside && !place.is_empty {
                return Err(Fault::corrupt("a part of a chunk is too short"));
            }
            let begin = place.chunk - first.cast_signed();
            // SAFETY: `find` checked that the elements of the place are within the array; those of the chunk are within the
            // data, as was just seen, unless there are none.
            unsafe {
                copy(place, self.element, data.as_ptr().wrapping_offset(begin), self.out.pointer().offset(place.out));
            }
        }
        Ok(())
    }

    /// Put the fill value where selections of a missing chunk go; the layout has one element for all places of a chunk.
    ///
    /// # Errors
    /// When a selection is out of bounds.
    pub fn fill(
        &self,
        selections: &dyn Selections,
        rows: Range<usize>,
        layout: &Layout,
        place: &mut Place,
    ) -> Outcome<()> {
        let element = Element { size: self.element.size, unit: 1 };
        for row in rows {
            selections.find(row, place, layout, self.out.layout(), Direction::Scatter)?;
            // SAFETY: `find` checked that the elements of the place are within the array; the chunk side is always the
            // one element.
            unsafe { copy(place, element, self.fill.as_ptr(), self.out.pointer().offset(place.out)) }
        }
        Ok(())
    }
}

/// Decode whole chunks, each into an array of its own. Arrays of missing chunks are left as they are.
///
/// # Errors
/// The fault of the first chunk that has one.
pub fn decode_each(
    chunk: &Chunk,
    inputs: &Inputs<'_>,
    outs: &[Option<Array>],
    element: Element,
    max_workers: Option<usize>,
) -> Outcome<()> {
    inputs.check()?;
    each(outs.len(), Load::like(chunk.nbytes, &chunk.decoding), max_workers, |number, worker| {
        let (Some(out), Some(input)) = (&outs[number], inputs.row(number)?) else {
            return Ok(());
        };
        if out.layout().shape != chunk.layout.shape {
            return Err(Fault::corrupt("an array has the wrong shape"));
        }
        let mut place = std::mem::take(&mut worker.place);
        place.whole(&chunk.layout, out.layout(), Direction::Scatter);
        let straight = element.unit == 1 && place.is_contiguous(chunk.count, element.size);
        // SAFETY: the array has the chunk's shape, its elements are neighbours, and it belongs to this chunk alone.
        let target = straight.then(|| unsafe { std::slice::from_raw_parts_mut(out.pointer(), chunk.nbytes) });
        let decoded = decode(&chunk.stages, input, worker, target)?;
        if let Some(data) = chunk.array(&decoded, worker)? {
            // SAFETY: both have the chunk's shape, and the data are not the array's memory.
            unsafe { copy(&place, element, data.as_ptr(), out.pointer()) }
        }
        worker.place = place;
        Ok(())
    })
}

/// Decode the bytes of each row.
///
/// # Errors
/// The fault of the first row that has one.
pub fn decode_bytes(chunk: &Chunk, inputs: &Inputs<'_>, max_workers: Option<usize>) -> Outcome<Vec<Option<Vec<u8>>>> {
    inputs.check()?;
    let results = crate::batch::Results::new(inputs.len());
    let bytes = chunk.stages.first().and_then(|stage| stage.exact);
    each(inputs.len(), bytes.unwrap_or(1 << 16), max_workers, |number, worker| {
        let Some(input) = inputs.row(number)? else {
            return Ok(());
        };
        let made = match decode(&chunk.stages, input, worker, None)? {
            Decoded::Input(bytes) => bytes.to_vec(),
            Decoded::Front(range) => worker.front.filled(range.end)[range].to_vec(),
            Decoded::Target => Vec::new(),
        };
        results.set(number, made);
        Ok(())
    })?;
    Ok(results.into_inner())
}

/// The chunks that have rows, each with its own.
#[must_use]
pub fn groups(chunk: &[i64]) -> Vec<(usize, Range<usize>)> {
    let mut groups = Vec::new();
    let mut begin = 0;
    for row in 1..=chunk.len() {
        if row == chunk.len() || chunk[row] != chunk[begin] {
            groups.push((usize::try_from(chunk[begin]).unwrap_or(0), begin..row));
            begin = row;
        }
    }
    groups
}
