//! Encode the chunks of a batch from arrays.

#![allow(unsafe_code)]

use std::ops::Range;

use crate::batch::{Inputs, Results, each};
use crate::buffers::Array;
use crate::chain::{append, appending, decode, encode};
use crate::copy::{Element, copy};
use crate::entries::{Entries, Selections};
use crate::errors::{Fault, Kind, Outcome};
use crate::fill::{fill, is_filled};
use crate::kernels::CHECKSUM;
use crate::load::Load;
use crate::place::{Direction, Place};
use crate::program::Chunk;
use crate::worker::{Memory, Worker, copied, zeroed};

/// Chunks, and the places in one array where their elements come from.
pub struct Writing<'a> {
    /// The chunks' form and stages.
    pub chunk: &'a Chunk,
    /// The caller's array.
    pub source: &'a Array,
    /// Selections of chunks.
    pub selections: &'a dyn Selections,
    /// How an element of the caller's array is copied.
    pub element: Element,
    /// Whether chunks of nothing but the fill value are encoded.
    pub keep_empty: bool,
}

/// What a chunk held before.
#[derive(Clone, Copy)]
pub enum Base<'a> {
    /// The fill value.
    Fill,
    /// These elements.
    Elements(&'a Array, Element),
    /// What these bytes decode to.
    Encoded(&'a [u8]),
}

/// Memory that is filled with a chunk's elements.
enum Gathered<'a> {
    /// The caller's memory, which is what is needed already.
    Source(&'a [u8]),
    /// Memory that becomes the encoded chunk.
    Made(Vec<u8>),
    /// The worker's memory for a chunk.
    Chunk,
}

impl Writing<'_> {
    /// Do it all, on top of arrays; chunks that are not to be stored are None.
    ///
    /// # Errors
    /// The fault of the first chunk that has one.
    pub fn run(
        &self,
        entries: &Entries<'_>,
        base: &[Option<Array>],
        base_element: Element,
        max_workers: Option<usize>,
    ) -> Outcome<Vec<Option<Vec<u8>>>> {
        self.each(entries, base.len(), max_workers, |number| {
            Ok(base[number].as_ref().map_or(Base::Fill, |array| Base::Elements(array, base_element)))
        })
    }

    /// Do it all, on top of encoded chunks.
    ///
    /// # Errors
    /// The fault of the first chunk that has one.
    pub fn rewrite(
        &self,
        entries: &Entries<'_>,
        existing: &Inputs<'_>,
        max_workers: Option<usize>,
    ) -> Outcome<Vec<Option<Vec<u8>>>> {
        existing.check()?;
        self.each(entries, existing.len(), max_workers, |number| {
            Ok(existing.row(number)?.map_or(Base::Fill, Base::Encoded))
        })
    }

    fn each<'a>(
        &self,
        entries: &Entries<'_>,
        count: usize,
        max_workers: Option<usize>,
        base: impl Fn(usize) -> Outcome<Base<'a>> + Sync,
    ) -> Outcome<Vec<Option<Vec<u8>>>> {
        entries.check(count)?;
        let rows = rows(entries.chunk, count);
        let results = Results::new(count);
        each(count, Load::like(self.chunk.nbytes, &self.chunk.encoding), max_workers, |number, worker| {
            if let Some(made) = self.one(rows[number]..rows[number + 1], base(number)?, worker)? {
                results.set(number, made);
            }
            Ok(())
        })?;
        Ok(results.into_inner())
    }

    /// Whether selections with these rows leave something of what a chunk held before.
    #[must_use]
    pub fn keeps(&self, rows: &Range<usize>) -> bool {
        rows.len() != 1 || !self.selections.covers(rows.start, &self.chunk.layout.shape)
    }

    /// Encode one chunk, whose selections have these rows.
    ///
    /// # Errors
    /// When an index is out of bounds, or a codec refuses.
    pub fn one(&self, rows: Range<usize>, base: Base<'_>, worker: &mut Worker) -> Outcome<Option<Vec<u8>>> {
        let mut place = std::mem::take(&mut worker.place);
        let made = self.make(rows, base, &mut place, worker);
        worker.place = place;
        made
    }

    fn make(
        &self,
        rows: Range<usize>,
        base: Base<'_>,
        place: &mut Place,
        worker: &mut Worker,
    ) -> Outcome<Option<Vec<u8>>> {
        let single = !self.keeps(&rows);
        if single {
            self.find(rows.start, place)?;
            if self.element.unit == 1 && place.is_contiguous(self.chunk.count, self.element.size) {
                // SAFETY: `find` checked that the elements of the place are within the array; they are neighbours.
                let source =
                    unsafe { std::slice::from_raw_parts(self.source.pointer().offset(place.out), self.chunk.nbytes) };
                return self.chunk.encode(Gathered::Source(source), worker, self.keep_empty);
            }
        } else if let Base::Encoded(encoded) = base {
            if let Some(made) = self.make_part(&rows, encoded, place, worker)? {
                return Ok(Some(made));
            }
            if appending(&self.chunk.stages) == self.chunk.stages.len() {
                // What was stored is what was decoded: it is copied once, into memory that need not be cleared before.
                let decoded = decode(&self.chunk.stages, encoded, worker, None)?;
                let held = self.chunk.array(&decoded, worker)?.unwrap_or_default();
                let mut made = copied(held, self.chunk.stages.len() * CHECKSUM)?;
                self.put(rows, place, &mut made)?;
                return self.chunk.encode(Gathered::Made(made), worker, self.keep_empty);
            }
        }
        self.chunk.gather(worker, self.keep_empty, |memory, worker| {
            match base {
                _ if single => {}
                Base::Elements(array, element) => {
                    gather_whole(self.chunk, array, element, &mut Place::default(), memory)?;
                }
                Base::Encoded(encoded) => self.chunk.decode_whole(encoded, memory, worker)?,
                Base::Fill => fill(memory, &self.chunk.fill),
            }
            self.put(rows, place, memory)
        })
    }

    /// Put selected elements into the memory of a chunk.
    ///
    /// # Errors
    /// When a selection is out of bounds.
    pub fn put(&self, rows: Range<usize>, place: &mut Place, memory: &mut [u8]) -> Outcome<()> {
        for row in rows {
            self.find(row, place)?;
            // SAFETY: `find` checked that the elements of the place are within both arrays; the memory is that of a
            // whole chunk, and ours.
            unsafe {
                let (from, to) = (self.source.pointer().offset(place.out), memory.as_mut_ptr().offset(place.chunk));
                copy(place, self.element, from, to);
            }
        }
        Ok(())
    }

    fn find(&self, row: usize, place: &mut Place) -> Outcome<()> {
        self.selections.find(row, place, &self.chunk.layout, self.source.layout(), Direction::Gather)
    }
}

/// Encode whole chunks, each from an array of its own.
///
/// # Errors
/// The fault of the first chunk that has one.
pub fn encode_each(
    chunk: &Chunk,
    arrays: &[Option<Array>],
    element: Element,
    max_workers: Option<usize>,
) -> Outcome<Vec<Option<Vec<u8>>>> {
    let results = Results::new(arrays.len());
    each(arrays.len(), Load::like(chunk.nbytes, &chunk.encoding), max_workers, |number, worker| {
        let Some(array) = &arrays[number] else {
            return Ok(());
        };
        let mut place = std::mem::take(&mut worker.place);
        let made = chunk.gather(worker, true, |memory, _| gather_whole(chunk, array, element, &mut place, memory));
        worker.place = place;
        if let Some(made) = made? {
            results.set(number, made);
        }
        Ok(())
    })?;
    Ok(results.into_inner())
}

/// Encode the bytes of each row.
///
/// # Errors
/// The fault of the first row that has one.
pub fn encode_bytes(chunk: &Chunk, inputs: &Inputs<'_>, max_workers: Option<usize>) -> Outcome<Vec<Option<Vec<u8>>>> {
    inputs.check()?;
    let results = Results::new(inputs.len());
    let bytes = inputs.owners.iter().map(|owner| owner.len()).max().unwrap_or(0);
    each(inputs.len(), bytes, max_workers, |number, worker| {
        if let Some(input) = inputs.row(number)? {
            let Worker { front, back, contexts, .. } = worker;
            results.set(number, encode(&chunk.stages, input, front, back, contexts)?);
        }
        Ok(())
    })?;
    Ok(results.into_inner())
}

fn gather_whole(chunk: &Chunk, array: &Array, element: Element, place: &mut Place, memory: &mut [u8]) -> Outcome<()> {
    if array.layout().shape != chunk.layout.shape {
        let (expected, found) = (format!("{:?}", chunk.layout.shape), format!("{:?}", array.layout().shape));
        return Err(Fault::new(Kind::Configuration, "wrong shape of a chunk").with(expected, found));
    }
    place.whole(&chunk.layout, array.layout(), Direction::Gather);
    // SAFETY: both have the chunk's shape, and the memory is ours.
    unsafe { copy(place, element, array.pointer(), memory.as_mut_ptr()) }
    Ok(())
}

impl Chunk {
    /// Gather a chunk by means of a function and encode it.
    fn gather(
        &self,
        worker: &mut Worker,
        keep_empty: bool,
        put: impl FnOnce(&mut [u8], &mut Worker) -> Outcome<()>,
    ) -> Outcome<Option<Vec<u8>>> {
        if appending(&self.stages) == self.stages.len() {
            // What is gathered is what is stored, up to checksums: no need to copy it once more.
            let mut made = zeroed(self.nbytes + self.stages.len() * CHECKSUM)?;
            made.truncate(self.nbytes);
            put(&mut made, worker)?;
            return self.encode(Gathered::Made(made), worker, keep_empty);
        }
        let mut memory = std::mem::take(&mut worker.chunk);
        let filled = memory.room(self.nbytes).and_then(|memory| put(memory, worker));
        worker.chunk = memory;
        filled.and_then(|()| self.encode(Gathered::Chunk, worker, keep_empty))
    }

    fn encode(&self, gathered: Gathered<'_>, worker: &mut Worker, keep_empty: bool) -> Outcome<Option<Vec<u8>>> {
        let Worker { front, back, chunk, contexts, .. } = worker;
        let data = match &gathered {
            Gathered::Source(data) => data,
            Gathered::Made(data) => data.as_slice(),
            Gathered::Chunk => Memory::filled(chunk, self.nbytes),
        };
        if !keep_empty && is_filled(data, &self.fill, self.mask.as_deref()) {
            return Ok(None);
        }
        match gathered {
            Gathered::Made(mut made) => {
                append(&self.stages, &mut made);
                Ok(Some(made))
            }
            _ => encode(&self.stages, data, front, back, contexts).map(Some),
        }
    }
}

/// First row of each chunk, and the end of the last.
#[must_use]
pub fn rows(chunk: &[i64], count: usize) -> Vec<usize> {
    let mut rows = Vec::with_capacity(count + 1);
    let mut row = 0;
    for number in 0..=count {
        while row < chunk.len() && usize::try_from(chunk[row]).is_ok_and(|found| found < number) {
            row += 1;
        }
        rows.push(row);
    }
    rows
}
