//! Cut boxes along a grid of inner chunks.

use std::ops::Range;

use crate::entries::{Entries, elements};
use crate::errors::{Fault, Kind, Outcome};

/// Boxes within inner chunks, ordered by shard and inner chunk.
#[derive(Default)]
pub struct Parts {
    /// The shard of each touched inner chunk.
    pub owners: Vec<usize>,
    /// Which inner chunk of its shard each touched one is.
    pub cells: Vec<usize>,
    /// The parts; chunks are numbers of touched inner chunks.
    pub numbers: Numbers,
}

/// Columns of boxes, as in [`Entries`].
#[derive(Default)]
#[allow(missing_docs, reason = "see `Entries`")]
pub struct Numbers {
    pub chunk: Vec<i64>,
    pub start: Vec<i64>,
    pub count: Vec<i64>,
    pub step: Vec<i64>,
    pub out_start: Vec<i64>,
    pub out_step: Vec<i64>,
}

/// What a box has in one cell along an axis.
#[derive(Clone, Copy)]
struct Segment {
    cell: usize,
    /// First element within the cell.
    start: i64,
    count: i64,
    /// How many elements of the box come before.
    before: i64,
}

/// A part before it has its place in the order.
type Key = (usize, usize);

/// Cut boxes; `shape` is that of inner chunks, of which a shard has `grid` along its axes.
///
/// # Errors
/// When the entries are no boxes, or lie outside the shards.
pub fn cut(entries: &Entries<'_>, shape: &[usize], grid: &[usize]) -> Outcome<Parts> {
    if entries.lists.iter().chain(&entries.out_lists).any(Option::is_some) || shape.len() != grid.len() {
        return Err(Fault::new(Kind::Plan, "only boxes can be cut along inner chunks"));
    }
    entries.check(usize::MAX >> 1)?;
    let (mut numbers, mut keys) = (Numbers::default(), Vec::new());
    for row in 0..entries.chunk.len() {
        cut_one(entries, row, shape, grid, &mut numbers, &mut keys)?;
    }
    if !keys.is_sorted() {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by_key(|number| keys[*number]);
        numbers = numbers.taken(&order);
        keys.sort_unstable();
    }
    let mut parts = Parts { numbers, ..Parts::default() };
    for (number, key) in keys.iter().enumerate() {
        if number == 0 || *key != keys[number - 1] {
            parts.owners.push(key.0);
            parts.cells.push(key.1);
        }
        parts.numbers.chunk.push(parts.cells.len().cast_signed() as i64 - 1);
    }
    Ok(parts)
}

fn cut_one(
    entries: &Entries<'_>,
    row: usize,
    shape: &[usize],
    grid: &[usize],
    numbers: &mut Numbers,
    keys: &mut Vec<Key>,
) -> Outcome<()> {
    let (ndim, out_ndim) = (shape.len(), entries.out_lists.len());
    let mut cuts = Vec::with_capacity(ndim);
    for axis in 0..ndim {
        let at = row * ndim + axis;
        cuts.push(segments([entries.start[at], entries.count[at], entries.step[at]], shape[axis], grid[axis])?);
    }
    if cuts.iter().any(Vec::is_empty) {
        return Ok(());
    }
    let shard = usize::try_from(entries.chunk[row]).unwrap_or(0);
    let out = row * out_ndim..(row + 1) * out_ndim;
    let (out_start, out_step) = (&entries.out_start[out.clone()], &entries.out_step[out]);
    let mut at = vec![0; ndim];
    loop {
        let mut cell = 0;
        let first = numbers.out_start.len();
        numbers.out_start.extend_from_slice(out_start);
        numbers.out_step.extend_from_slice(out_step);
        numbers.step.extend_from_slice(&entries.step[row * ndim..(row + 1) * ndim]);
        for axis in 0..ndim {
            let segment = cuts[axis][at[axis]];
            cell = cell * grid[axis] + segment.cell;
            numbers.start.push(segment.start);
            numbers.count.push(segment.count);
            if let Some(landing) = entries.axes[axis] {
                // A place that is out of range is found where it is used.
                let moved = segment.before.wrapping_mul(out_step[landing]);
                let place = &mut numbers.out_start[first + landing];
                *place = place.wrapping_add(moved);
            }
        }
        keys.push((shard, cell));
        let Some(axis) = (0..ndim).rev().find(|axis| at[*axis] + 1 < cuts[*axis].len()) else {
            return Ok(());
        };
        at[axis] += 1;
        at[axis + 1..].fill(0);
    }
}

/// Cut a range along one axis.
fn segments([start, count, step]: [i64; 3], size: usize, cells: usize) -> Outcome<Vec<Segment>> {
    let outside = || Fault::new(Kind::Selection, "a selection is outside of its shard");
    let count = elements(count)?;
    let mut found = Vec::new();
    if count == 0 {
        return Ok(found);
    }
    let (first, step) = (usize::try_from(start).ok(), usize::try_from(step).ok().filter(|step| *step > 0));
    let (Some(mut index), Some(step)) = (first, step) else {
        return Err(outside());
    };
    let last = (count - 1).checked_mul(step).and_then(|distance| distance.checked_add(index));
    if last.is_none_or(|last| last / size.max(1) >= cells) || size == 0 {
        return Err(outside());
    }
    let mut before = 0;
    while before < count {
        let cell = index / size;
        let taken = ((cell + 1) * size - index).div_ceil(step).min(count - before);
        let number = |number: usize| i64::try_from(number).map_err(|_| outside());
        found.push(Segment {
            cell,
            start: number(index - cell * size)?,
            count: number(taken)?,
            before: number(before)?,
        });
        before += taken;
        index = index.saturating_add(taken * step);
    }
    Ok(found)
}

impl Numbers {
    /// The columns as entries.
    #[must_use]
    pub fn entries(&self, axes: &[Option<usize>], out_ndim: usize) -> Entries<'_> {
        Entries {
            chunk: &self.chunk,
            start: &self.start,
            count: &self.count,
            step: &self.step,
            out_start: &self.out_start,
            out_step: &self.out_step,
            axes: axes.to_vec(),
            lists: vec![None; axes.len()],
            out_lists: vec![None; out_ndim],
        }
    }

    /// Rows in another order.
    fn taken(&self, order: &[usize]) -> Self {
        let column = |values: &[i64]| {
            let width = values.len() / order.len().max(1);
            order.iter().flat_map(|row| &values[row * width..(row + 1) * width]).copied().collect()
        };
        Self {
            chunk: Vec::new(),
            start: column(&self.start),
            count: column(&self.count),
            step: column(&self.step),
            out_start: column(&self.out_start),
            out_step: column(&self.out_step),
        }
    }
}

impl Parts {
    /// Each touched shard, with its range of touched inner chunks.
    #[must_use]
    pub fn shards(&self) -> Vec<(usize, Range<usize>)> {
        let mut shards: Vec<(usize, Range<usize>)> = Vec::new();
        for (number, owner) in self.owners.iter().enumerate() {
            match shards.last_mut() {
                Some((last, cells)) if last == owner => cells.end = number + 1,
                _ => shards.push((*owner, number..number + 1)),
            }
        }
        shards
    }

    /// Say which shard a fault is about, instead of which inner chunk.
    #[must_use]
    pub fn at_shard(&self, mut fault: Box<Fault>) -> Box<Fault> {
        fault.position = fault.position.and_then(|inner| self.owners.get(inner)).copied();
        fault
    }
}

#[cfg(test)]
mod tests {
    use super::{cut, segments};
    use crate::entries::Entries;

    fn one(columns: &[Vec<i64>; 6], axes: Vec<Option<usize>>, out_ndim: usize) -> Entries<'_> {
        let [chunk, start, count, step, out_start, out_step] = columns.each_ref().map(Vec::as_slice);
        let lists = vec![None; axes.len()];
        Entries { chunk, start, count, step, out_start, out_step, axes, lists, out_lists: vec![None; out_ndim] }
    }

    #[test]
    fn a_range_is_cut_at_the_edges_of_cells() {
        let cut = segments([3, 4, 3], 5, 4)
            .map(|found| found.iter().map(|part| (part.cell, part.start, part.count, part.before)).collect::<Vec<_>>());
        assert_eq!(cut.ok(), Some(vec![(0, 3, 1, 0), (1, 1, 2, 1), (2, 2, 1, 3)]));
    }

    #[test]
    fn ranges_outside_of_the_grid_are_refused() {
        for wrong in [[-1, 1, 1], [0, 21, 1], [20, 1, 1], [0, 2, 0], [0, -1, 1], [0, 2, i64::MAX], [1, i64::MAX, 2]] {
            assert!(segments(wrong, 5, 4).is_err(), "{wrong:?}");
        }
        assert!(segments([0, 1, 1], 0, 4).is_err());
    }

    #[test]
    fn parts_of_one_inner_chunk_are_together() {
        // Two boxes of one shard of 2 x 2 inner chunks of 2 x 2; the second axis is dropped.
        let columns = [vec![0, 0], vec![1, 0, 0, 1], vec![2, 1, 2, 1], vec![1, 1, 1, 1], vec![10, 20], vec![1, -1]];
        let entries = one(&columns, vec![Some(0), None], 1);
        let parts = cut(&entries, &[2, 2], &[2, 2]).unwrap_or_default();
        assert_eq!((parts.owners.as_slice(), parts.cells.as_slice()), (&[0, 0][..], &[0, 2][..]));
        let made = parts.numbers.entries(&entries.axes, 1);
        assert_eq!(made.chunk, [0, 0, 1]);
        assert_eq!(made.start, [1, 0, 0, 1, 0, 0]);
        assert_eq!(made.out_start, [10, 20, 11]);
        assert_eq!(parts.shards(), [(0, 0..2)]);
    }
}
