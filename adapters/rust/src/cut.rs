//! Boxes of shards and lists that ascend, cut along the grid of inner chunks.
//!
//! The same as `chunkwright.grid.split`, which is the reference. What is kept of each
//! part of an entry is which it is; where its elements are is worked out when its inner chunk's turn comes, so that a
//! batch of many inner chunks takes little memory.

use std::ops::Range;

use crate::entries::{Entries, Layout, List, Selections};
use crate::errors::{Fault, Kind, Outcome};
use crate::place::{Direction, Place};
use crate::read::groups;

/// The part of an entry that is in one inner chunk.
#[derive(Clone, Copy)]
struct Piece {
    row: u32,
    cell: u32,
}

/// Numbers of one such part, as those of [`Entries`].
#[derive(Default)]
pub struct Clip {
    start: Vec<i64>,
    count: Vec<i64>,
    step: Vec<i64>,
    out_start: Vec<i64>,
    out_step: Vec<i64>,
    /// Along axes with lists what is in the inner chunk, counted from its beginning.
    lists: Vec<Vec<i64>>,
}

/// Which parts of entries are in which inner chunk; those of one inner chunk follow each other.
pub struct Pieces {
    pieces: Vec<Piece>,
    /// First piece of each inner chunk, and the end of the last.
    heads: Vec<u32>,
}

/// Entries, and how they are cut.
pub struct Cut<'a> {
    /// The entries.
    pub entries: &'a Entries<'a>,
    /// Shape of inner chunks.
    pub inner: &'a [usize],
    /// Inner chunks along each axis.
    pub grid: &'a [usize],
    /// The parts.
    pub pieces: &'a Pieces,
}

/// Entries that are being cut.
struct Cutting<'a> {
    entries: &'a Entries<'a>,
    inner: &'a [usize],
    grid: &'a [usize],
    made: Pieces,
}

impl Pieces {
    /// Cut entries along a grid of inner chunks.
    ///
    /// # Errors
    /// When an entry is outside of its shard, or neither a box nor made of lists that ascend.
    pub fn new(entries: &Entries<'_>, inner: &[usize], grid: &[usize]) -> Outcome<Self> {
        let is_simple = entries.out_lists.iter().all(Option::is_none);
        if !is_simple || entries.axes.len() != grid.len() {
            return Err(Fault::new(Kind::Plan, "entries of shards have to land in boxes"));
        }
        let made = Self { pieces: Vec::new(), heads: vec![0] };
        let mut cutting = Cutting { entries, inner, grid, made };
        for (_, rows) in groups(entries.chunk) {
            let first = cutting.made.pieces.len();
            let several = rows.len() > 1;
            for row in rows {
                cutting.add(row)?;
            }
            if several {
                // Stable, so that of two writes to one element the later one wins.
                cutting.made.pieces[first..].sort_by_key(|piece| piece.cell);
            }
            cutting.made.close(first)?;
        }
        Ok(cutting.made)
    }

    /// Note where the inner chunks of the pieces from `first` on begin.
    fn close(&mut self, first: usize) -> Outcome<()> {
        for piece in first + 1..=self.pieces.len() {
            if piece == self.pieces.len() || self.pieces[piece].cell != self.pieces[piece - 1].cell {
                self.heads.push(number(piece)?);
            }
        }
        Ok(())
    }

    /// Inner chunks that are touched.
    #[must_use]
    pub fn count(&self) -> usize {
        self.heads.len() - 1
    }
}

impl Cutting<'_> {
    /// Add the parts of an entry, by flat position of their inner chunks.
    fn add(&mut self, row: usize) -> Outcome<()> {
        let mut cells = vec![0_usize];
        for axis in 0..self.grid.len() {
            let along = self.along(row, axis)?;
            let extent = self.grid[axis];
            cells = cells.iter().flat_map(|cell| along.iter().map(move |one| cell * extent + one)).collect();
        }
        let row = number(row)?;
        self.made.pieces.reserve(cells.len());
        for cell in cells {
            self.made.pieces.push(Piece { row, cell: number(cell)? });
        }
        Ok(())
    }

    /// The cells that an entry touches along an axis.
    fn along(&self, row: usize, axis: usize) -> Outcome<Vec<usize>> {
        let at = row * self.grid.len() + axis;
        let (size, extent) = (self.inner[axis], self.inner[axis] * self.grid[axis]);
        if let Some(list) = &self.entries.lists[axis] {
            return cells_of(list.run(row)?, size, extent);
        }
        let (start, count, step) = (self.entries.start[at], self.entries.count[at], self.entries.step[at]);
        let outside = || {
            let found = format!("{count} elements from {start} on, {step} apart");
            Fault::new(Kind::Selection, "an entry is outside of its chunk").with(format!("below {extent}"), found)
        };
        if count == 0 {
            return Ok(Vec::new());
        }
        let last = (count - 1).checked_mul(step).and_then(|distance| distance.checked_add(start));
        let (first, last) = match (usize::try_from(start), last.map(usize::try_from)) {
            (Ok(first), Some(Ok(last))) if count > 0 && step > 0 && first <= last && last < extent => (first, last),
            _ => return Err(outside()),
        };
        let mut cells: Vec<usize> = (first / size..=last / size).collect();
        if step.unsigned_abs() > size as u64 {
            // A step longer than a cell jumps over cells.
            cells.retain(|cell| clipped(start, count, step, cell * size, size).1 > 0);
        }
        Ok(cells)
    }
}

/// The cells that a list touches along an axis.
fn cells_of(list: &[i64], size: usize, extent: usize) -> Outcome<Vec<usize>> {
    let ends = list.first().zip(list.last());
    if !list.is_sorted() || ends.is_some_and(|(first, last)| *first < 0 || *last >= extent.cast_signed() as i64) {
        return Err(Fault::new(Kind::Selection, "a list does not ascend within its chunk"));
    }
    let mut cells: Vec<usize> =
        list.iter().filter_map(|index| usize::try_from(*index).ok()).map(|index| index / size).collect();
    cells.dedup();
    Ok(cells)
}

impl Cut<'_> {
    /// Inner chunks that are touched.
    #[must_use]
    pub fn count(&self) -> usize {
        self.pieces.count()
    }

    /// The parts of entries in a touched inner chunk.
    #[must_use]
    pub fn pieces(&self, item: usize) -> Range<usize> {
        self.pieces.heads[item] as usize..self.pieces.heads[item + 1] as usize
    }

    /// The shard of a touched inner chunk, and its flat position there.
    #[must_use]
    pub fn inner_chunk(&self, item: usize) -> (usize, usize) {
        let piece = self.pieces.pieces[self.pieces.heads[item] as usize];
        (usize::try_from(self.entries.chunk[piece.row as usize]).unwrap_or(0), piece.cell as usize)
    }

    /// Touched inner chunks of each of so many shards.
    #[must_use]
    pub fn by_shard(&self, shards: usize) -> Vec<Range<usize>> {
        let mut item = 0;
        let mut ranges = Vec::with_capacity(shards);
        for shard in 0..shards {
            let begin = item;
            while item < self.count() && self.inner_chunk(item).0 == shard {
                item += 1;
            }
            ranges.push(begin..item);
        }
        ranges
    }

    fn clip(&self, piece: Piece, clip: &mut Clip) -> Outcome<()> {
        let (ndim, out_ndim) = (self.grid.len(), self.entries.out_lists.len());
        let (row, out_row) = (piece.row as usize * ndim, piece.row as usize * out_ndim);
        clip.set(self.entries, row..row + ndim, out_row..out_row + out_ndim);
        let mut rest = piece.cell as usize;
        for axis in (0..ndim).rev() {
            let begin = rest % self.grid[axis] * self.inner[axis];
            rest /= self.grid[axis];
            let first = match &self.entries.lists[axis] {
                Some(list) => clip.take_list(axis, list.run(piece.row as usize)?, begin, self.inner[axis]),
                None => clip.take_slice(axis, begin, self.inner[axis]),
            };
            if let Some(out) = self.entries.axes[axis] {
                let moved = first.checked_mul(clip.out_step[out]).and_then(|by| clip.out_start[out].checked_add(by));
                clip.out_start[out] =
                    moved.ok_or_else(|| Fault::new(Kind::Selection, "an entry is outside of the array"))?;
            }
        }
        Ok(())
    }
}

impl Clip {
    /// Keep of a slice what is in a cell, and return the number of its first element.
    fn take_slice(&mut self, axis: usize, begin: usize, size: usize) -> i64 {
        let (start, count, step) = (self.start[axis], self.count[axis], self.step[axis]);
        let (first, count) = clipped(start, count, step, begin, size);
        self.start[axis] = start + first * step - begin.cast_signed() as i64;
        self.count[axis] = count;
        first
    }

    /// The same of a list.
    fn take_list(&mut self, axis: usize, list: &[i64], begin: usize, size: usize) -> i64 {
        let begin = begin.cast_signed() as i64;
        let first = list.partition_point(|index| *index < begin);
        let end = list.partition_point(|index| *index < begin + size.cast_signed() as i64);
        self.lists[axis].clear();
        self.lists[axis].extend(list[first..end].iter().map(|index| index - begin));
        self.count[axis] = (end - first).cast_signed() as i64;
        first.cast_signed() as i64
    }

    /// Where the list along each axis begins and ends; nothing when there are none.
    fn offsets(&self, entries: &Entries<'_>) -> Vec<[i64; 2]> {
        if entries.is_boxes() {
            return Vec::new();
        }
        self.lists.iter().map(|list| [0, list.len().cast_signed() as i64]).collect()
    }

    fn lists<'a>(&'a self, entries: &Entries<'_>, offsets: &'a [[i64; 2]]) -> Vec<Option<List<'a>>> {
        let axes = self.lists.iter().zip(offsets).zip(entries.lists);
        axes.map(|((values, offsets), known)| known.map(|_| List { values, offsets })).collect()
    }

    fn set(&mut self, entries: &Entries<'_>, row: Range<usize>, out_row: Range<usize>) {
        for (mine, column) in [
            (&mut self.start, &entries.start[row.clone()]),
            (&mut self.count, &entries.count[row.clone()]),
            (&mut self.step, &entries.step[row]),
            (&mut self.out_start, &entries.out_start[out_row.clone()]),
            (&mut self.out_step, &entries.out_step[out_row]),
        ] {
            mine.clear();
            mine.extend_from_slice(column);
        }
        self.lists.resize_with(entries.axes.len(), Vec::new);
    }
}

impl Selections for Cut<'_> {
    fn find(&self, row: usize, place: &mut Place, chunk: &Layout, out: &Layout, direction: Direction) -> Outcome<()> {
        let mut clip = std::mem::take(&mut place.clip);
        let found = self.clip(self.pieces.pieces[row], &mut clip).and_then(|()| {
            let offsets = clip.offsets(self.entries);
            let lists = clip.lists(self.entries, &offsets);
            let one = Entries {
                chunk: &[0],
                start: &clip.start,
                count: &clip.count,
                step: &clip.step,
                out_start: &clip.out_start,
                out_step: &clip.out_step,
                axes: self.entries.axes,
                lists: if lists.is_empty() { self.entries.lists } else { &lists },
                out_lists: self.entries.out_lists,
            };
            place.find(&one, 0, chunk, out, direction)
        });
        place.clip = clip;
        found
    }

    fn covers(&self, row: usize, shape: &[usize]) -> bool {
        let piece = self.pieces.pieces[row];
        let mut rest = piece.cell as usize;
        (0..self.grid.len()).rev().all(|axis| {
            let begin = rest % self.grid[axis] * self.inner[axis];
            rest /= self.grid[axis];
            let at = piece.row as usize * self.grid.len() + axis;
            if self.entries.lists[axis].is_some() {
                return false;
            }
            let step = self.entries.step[at];
            let (_, count) = clipped(self.entries.start[at], self.entries.count[at], step, begin, shape[axis]);
            (step == 1 || shape[axis] == 1) && usize::try_from(count) == Ok(shape[axis])
        })
    }
}

/// The first element of a selection that is in a cell, and how many are. The selection was checked.
fn clipped(start: i64, count: i64, step: i64, begin: usize, size: usize) -> (i64, i64) {
    // The step of a single element may be anything.
    let step = if count == 1 { 1 } else { step };
    let begin = begin.cast_signed() as i64;
    let end = begin + size.cast_signed() as i64;
    let first = if start >= begin { 0 } else { (begin - start + step - 1) / step };
    let last = (end - 1 - start).div_euclid(step).min(count - 1);
    (first, (last - first + 1).max(0))
}

fn number(number: usize) -> Outcome<u32> {
    u32::try_from(number).map_err(|_| Fault::new(Kind::Plan, "a batch has too many inner chunks"))
}

#[cfg(test)]
mod tests {
    use super::clipped;

    #[test]
    fn parts_of_a_selection_are_those_of_its_elements() {
        for (start, count, step) in [(0, 20, 1), (3, 5, 3), (7, 2, 11), (19, 1, 1), (1, 7, 2)] {
            for begin in (0..20).step_by(5) {
                let inside = |number: &i64| (begin..begin + 5).contains(&(start + number * step));
                let numbers: Vec<i64> = (0..count).filter(inside).collect();
                let (first, found) = clipped(start, count, step, usize::try_from(begin).unwrap_or(0), 5);
                assert_eq!(usize::try_from(found), Ok(numbers.len()));
                assert!(numbers.first().is_none_or(|number| *number == first));
            }
        }
    }
}
