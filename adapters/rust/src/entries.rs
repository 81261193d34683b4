//! The columns of `chunkwright.entries.Entries`, and the layout of the arrays that they are about.

use crate::errors::{Fault, Kind, Outcome};
use crate::place::{Direction, Place};

/// A ragged index list.
#[derive(Clone, Copy)]
pub struct List<'a> {
    /// The runs, one after the other.
    pub values: &'a [i64],
    /// Where each run starts, and the end of the last.
    pub offsets: &'a [i64],
}

impl<'a> List<'a> {
    /// The values of an entry.
    ///
    /// # Errors
    /// When there are fewer than the offsets say.
    pub fn run(&self, row: usize) -> Outcome<&'a [i64]> {
        let bounds = self.offsets.get(row).zip(self.offsets.get(row + 1));
        let run = bounds
            .and_then(|(first, last)| self.values.get(usize::try_from(*first).ok()?..usize::try_from(*last).ok()?));
        run.ok_or_else(|| Fault::new(Kind::Selection, "an index list is shorter than its offsets say"))
    }
}

/// Selections of chunks and their places in the caller's array.
pub struct Entries<'a> {
    /// Which chunk, ascending.
    pub chunk: &'a [i64],
    /// First index along each decoded axis.
    pub start: &'a [i64],
    /// Elements along each decoded axis.
    pub count: &'a [i64],
    /// Distance along each decoded axis.
    pub step: &'a [i64],
    /// First index along each out axis.
    pub out_start: &'a [i64],
    /// Distance along each out axis.
    pub out_step: &'a [i64],
    /// For each decoded axis the out axis that it lands on.
    pub axes: &'a [Option<usize>],
    /// For each decoded axis an index list instead of start and step.
    pub lists: &'a [Option<List<'a>>],
    /// For each out axis an index list instead of start and step.
    pub out_lists: &'a [Option<List<'a>>],
}

/// Selections of chunks, by row.
pub trait Selections: Sync {
    /// Find the elements of a selection.
    ///
    /// # Errors
    /// When an index is outside of the chunk or of the caller's array.
    fn find(&self, row: usize, place: &mut Place, chunk: &Layout, out: &Layout, direction: Direction) -> Outcome<()>;

    /// Whether a selection is a box that covers a chunk.
    fn covers(&self, row: usize, shape: &[usize]) -> bool;
}

impl Selections for Entries<'_> {
    fn find(&self, row: usize, place: &mut Place, chunk: &Layout, out: &Layout, direction: Direction) -> Outcome<()> {
        place.find(self, row, chunk, out, direction)
    }

    fn covers(&self, row: usize, shape: &[usize]) -> bool {
        let ndim = self.axes.len();
        let column = row * ndim..(row + 1) * ndim;
        let (start, count, step) = (&self.start[column.clone()], &self.count[column.clone()], &self.step[column]);
        self.lists.iter().all(Option::is_none)
            && (0..ndim).all(|axis| {
                let extent = shape[axis];
                start[axis] == 0 && usize::try_from(count[axis]) == Ok(extent) && (step[axis] == 1 || extent == 1)
            })
    }
}

impl Entries<'_> {
    /// Whether no axis has an index list.
    #[must_use]
    pub fn is_boxes(&self) -> bool {
        self.lists.iter().chain(self.out_lists.iter()).all(Option::is_none)
    }

    /// Check that the columns belong together.
    ///
    /// # Errors
    /// When they do not, or are not ordered by chunk.
    pub fn check(&self, chunks: usize) -> Outcome<()> {
        let (rows, ndim, out_ndim) = (self.chunk.len(), self.axes.len(), self.out_lists.len());
        let columns = [self.start, self.count, self.step];
        let whole = columns.iter().all(|column| column.len() == rows * ndim)
            && [self.out_start, self.out_step].iter().all(|column| column.len() == rows * out_ndim)
            && self.lists.len() == ndim
            && self.axes.iter().flatten().all(|axis| *axis < out_ndim);
        let ordered = self.chunk.is_sorted()
            && self.chunk.first().is_none_or(|first| *first >= 0)
            && self.chunk.last().is_none_or(|last| usize::try_from(*last).is_ok_and(|last| last < chunks));
        match (whole, ordered) {
            (true, true) => Ok(()),
            (false, _) => Err(Fault::new(Kind::Plan, "columns of entries do not belong together")),
            (true, false) => {
                Err(Fault::new(Kind::Plan, "entries are not ordered by chunk, or name chunks that are not there"))
            }
        }
    }
}

/// Shape and strides, in bytes, of an array.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Elements along each axis.
    pub shape: Vec<usize>,
    /// Bytes between elements along each axis.
    pub strides: Vec<isize>,
}

impl Layout {
    /// The same axes with no distance between elements: one element for all places.
    #[must_use]
    pub fn of_one_element(shape: &[usize]) -> Self {
        Self { shape: shape.to_vec(), strides: vec![0; shape.len()] }
    }
}

/// A number of elements.
///
/// # Errors
/// When it is negative.
pub fn elements(count: i64) -> Outcome<usize> {
    usize::try_from(count).map_err(|_| Fault::new(Kind::Selection, "a negative number of elements"))
}

/// Elements that an entry has along a decoded axis.
///
/// # Errors
/// When the columns do not belong together.
pub fn decoded_count(entries: &Entries<'_>, row: usize, axis: usize) -> Outcome<usize> {
    match &entries.lists[axis] {
        Some(list) => list.run(row).map(<[i64]>::len),
        None => elements(entries.count[row * entries.axes.len() + axis]),
    }
}
