//! Selections as Python says them, read into columns without `NumPy`: slices, integers and lists of indices.
//!
//! What is read are the forms that whoever cuts a selection along a grid of chunks makes nearly always: slices and
//! integers; slices and one list; or a list along each axis, laid out as by `numpy.ix_`. Places in the caller's array are
//! slices. Everything else is left to `chunkwright.selection`, which is the reference for these forms too.

#![allow(unsafe_code)]

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PySlice, PyTuple};

use crate::buffers::Column;
use crate::entries::{Entries, List};

/// Columns of selections, as in [`Entries`].
pub struct Selected {
    chunk: Vec<i64>,
    start: Vec<i64>,
    count: Vec<i64>,
    step: Vec<i64>,
    out_start: Vec<i64>,
    out_step: Vec<i64>,
    axes: Vec<Option<usize>>,
    lists: Vec<Option<Runs>>,
    out_ndim: usize,
}

impl Selected {
    /// How many selections there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunk.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunk.is_empty()
    }

    /// Whether the lists of all axes ascend.
    #[must_use]
    pub fn ascends(&self) -> bool {
        self.lists
            .iter()
            .flatten()
            .all(|runs| (0..runs.rows()).all(|row| runs.list().run(row).is_ok_and(<[i64]>::is_sorted)))
    }

    /// Lend the columns.
    pub fn with_entries<T>(&self, take: impl FnOnce(&Entries<'_>) -> T) -> T {
        let lists: Vec<_> = self.lists.iter().map(|runs| runs.as_ref().map(Runs::list)).collect();
        take(&Entries {
            chunk: &self.chunk,
            start: &self.start,
            count: &self.count,
            step: &self.step,
            out_start: &self.out_start,
            out_step: &self.out_step,
            axes: &self.axes,
            lists: &lists,
            out_lists: &vec![None; self.out_ndim],
        })
    }
}

/// The lists that selections have along one axis, one after the other.
#[derive(Clone)]
struct Runs {
    values: Vec<i64>,
    offsets: Vec<i64>,
    /// Whether each of them is evenly spaced, so that slices are as good.
    is_even: bool,
}

impl Default for Runs {
    fn default() -> Self {
        Self { values: Vec::new(), offsets: vec![0], is_even: true }
    }
}

impl Runs {
    fn list(&self) -> List<'_> {
        List { values: &self.values, offsets: &self.offsets }
    }

    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Add a list, and say what slice it is, or begins as.
    fn add(&mut self, list: &[i64]) -> [i64; 3] {
        let step = if let [first, second, ..] = list { second - first } else { 1 };
        self.is_even &= step > 0 && list.windows(2).all(|pair| pair[1] - pair[0] == step);
        self.values.extend_from_slice(list);
        self.offsets.push(length(&self.values));
        [list.first().copied().unwrap_or(0), length(list), step]
    }

    /// Forget all but the first lists.
    fn truncate(&mut self, rows: usize) {
        self.offsets.truncate(rows + 1);
        let end = self.offsets.last().and_then(|end| usize::try_from(*end).ok());
        self.values.truncate(end.unwrap_or(0));
    }
}

fn length(values: &[i64]) -> i64 {
    i64::try_from(values.len()).unwrap_or(i64::MAX)
}

/// What is said of one axis.
pub enum Item {
    /// One index, which leaves the array without the axis.
    Index(i64),
    /// Start, stop and step; none is negative.
    Slice([i64; 3]),
    /// Indices.
    List(Column),
}

impl Item {
    /// Read it; None when it is something else.
    #[must_use]
    pub fn of(item: &Bound<'_, PyAny>) -> Option<Self> {
        whole_number(item)
            .map(Self::Index)
            .or_else(|| slice(item).map(Self::Slice))
            .or_else(|| Column::get(item).ok().map(Self::List))
    }
}

/// Which items a selection has.
#[derive(Default)]
struct Form {
    indices: usize,
    /// Lists that are arrays of one axis.
    flat: usize,
    /// Lists that are arrays of as many axes as the chunk, of which they have elements along their own.
    across: usize,
}

impl Form {
    fn count(&mut self, item: &Item, axis: usize, ndim: usize) -> Option<()> {
        match item {
            Item::Slice(_) => {}
            Item::Index(_) => self.indices += 1,
            Item::List(list) => match list.shape() {
                [_] => self.flat += 1,
                shape if shape.len() == ndim && shape[axis] == list.as_slice().len() => self.across += 1,
                _ => return None,
            },
        }
        Some(())
    }

    /// Whether each list selects along its own axis, which stays where it is.
    fn is_orthogonal(&self, ndim: usize) -> bool {
        match (self.flat, self.across) {
            (0, 0) => true,
            (1, 0) => self.indices == 0,
            (0, across) => across == ndim,
            _ => false,
        }
    }
}

/// Selections, one after the other.
pub struct Rows {
    /// For each axis of chunks that of the array that it lands on; None before the first selection.
    pub axes: Option<Vec<Option<usize>>>,
    /// Which chunk each is of.
    pub chunks: Vec<i64>,
    /// Start, count and step along the axes of chunks.
    pub inside: Vec<[i64; 3]>,
    /// First places along the axes of the array, and elements there.
    pub outside: Vec<[i64; 2]>,
    /// Lists along the axes of chunks; their starts, counts and steps are those of slices if they are even.
    lists: Vec<Option<Runs>>,
}

impl Rows {
    /// No selections yet, of chunks of so many axes.
    #[must_use]
    pub fn new(ndim: usize) -> Self {
        let lists = vec![None; ndim];
        Self { axes: None, chunks: Vec::new(), inside: Vec::new(), outside: Vec::new(), lists }
    }

    /// Add a list along an axis, and say what slice it is, or begins as.
    pub fn add_list(&mut self, axis: usize, list: &[i64]) -> [i64; 3] {
        self.lists[axis].get_or_insert_default().add(list)
    }

    /// Axes of the array that selections land on.
    #[must_use]
    pub fn out_ndim(&self) -> usize {
        self.axes.iter().flatten().flatten().count()
    }

    /// Whether all places are within an array.
    #[must_use]
    pub fn fits(&self, shape: &[usize]) -> bool {
        shape.is_empty()
            || self.outside.chunks(shape.len()).all(|row| {
                row.iter().zip(shape).all(|([begin, count], extent)| {
                    begin
                        .checked_add(*count)
                        .and_then(|end| usize::try_from(end).ok())
                        .is_some_and(|end| end <= *extent)
                })
            })
    }

    /// The columns of what was read, with axes of chunks in another order.
    #[must_use]
    pub fn finish(mut self, order: &[usize]) -> Selected {
        let (ndim, out_ndim) = (self.lists.len(), self.out_ndim());
        let axes = self.axes.unwrap_or_else(|| vec![None; ndim]);
        let column = |part: usize| -> Vec<i64> {
            (0..self.chunks.len())
                .flat_map(|row| order.iter().map(move |axis| row * ndim + axis))
                .map(|at| self.inside[at][part])
                .collect()
        };
        Selected {
            start: column(0),
            count: column(1),
            step: column(2),
            out_start: self.outside.iter().map(|[begin, _]| *begin).collect(),
            out_step: vec![1; self.outside.len()],
            axes: order.iter().map(|axis| axes[*axis]).collect(),
            lists: order.iter().map(|axis| self.lists[*axis].take().filter(|runs| !runs.is_even)).collect(),
            out_ndim,
            chunk: self.chunks,
        }
    }
}

/// Reads selections.
pub struct Parser<'a> {
    shape: &'a [usize],
    dropped: &'a [usize],
    /// What was read.
    pub rows: Rows,
}

impl<'a> Parser<'a> {
    /// Read selections of chunks of a shape; the dropped axes are those that lists of one index select along although the
    /// array has not got them.
    #[must_use]
    pub fn new(shape: &'a [usize], dropped: &'a [usize]) -> Self {
        Self { shape, dropped, rows: Rows::new(shape.len()) }
    }

    /// Read what is taken of one chunk, and where it goes; None when it is not of the forms that are read here.
    pub fn add(&mut self, row: usize, selection: &Bound<'_, PyAny>, place: &Bound<'_, PyAny>) -> Option<()> {
        let (selection, place) = (selection.cast_exact::<PyTuple>().ok()?, place.cast_exact::<PyTuple>().ok()?);
        let (ndim, first, mut landing) = (self.shape.len(), (self.rows.inside.len(), self.rows.outside.len()), 0);
        if selection.len() != ndim {
            return None;
        }
        let (mut axes, mut form) = (Vec::with_capacity(ndim), Form::default());
        for (axis, item) in selection.iter().enumerate() {
            let item = Item::of(&item)?;
            form.count(&item, axis, ndim)?;
            let taken = self.take(axis, &item)?;
            self.rows.inside.push(taken);
            if self.is_single(axis, &item)? {
                axes.push(None);
                continue;
            }
            let [begin, end, _] = slice(&place.get_item(landing).ok()?).filter(|[_, _, by]| *by == 1)?;
            (end.checked_sub(begin) == Some(taken[1])).then_some(())?;
            axes.push(Some(landing));
            landing += 1;
            self.rows.outside.push([begin, taken[1]]);
        }
        let fits = landing == place.len() && self.rows.axes.as_ref().is_none_or(|known| *known == axes);
        (fits && form.is_orthogonal(ndim)).then_some(())?;
        self.rows.axes = Some(axes);
        if self.rows.inside[first.0..].iter().any(|[_, count, _]| *count == 0) {
            self.rows.inside.truncate(first.0);
            self.rows.outside.truncate(first.1);
            self.rows.lists.iter_mut().flatten().for_each(|runs| runs.truncate(self.rows.chunks.len()));
        } else {
            self.rows.chunks.push(i64::try_from(row).unwrap_or(i64::MAX));
        }
        // An axis has lists in all selections or in none.
        self.rows.lists.iter().flatten().all(|runs| runs.rows() == self.rows.chunks.len()).then_some(())
    }

    /// What is taken along an axis, if all of it is within the chunk: start, count and step.
    fn take(&mut self, axis: usize, item: &Item) -> Option<[i64; 3]> {
        let extent = i64::try_from(self.shape[axis]).unwrap_or(i64::MAX);
        match item {
            Item::Index(index) => (*index < extent).then_some([*index, 1, 1]),
            Item::Slice([start, stop, by]) => {
                let count = if stop > start { (stop - start - 1) / by + 1 } else { 0 };
                (*stop <= extent).then_some([*start, count, *by])
            }
            Item::List(list) => {
                let list = list.as_slice();
                let inside = list.iter().all(|index| (0..extent).contains(index));
                inside.then(|| self.rows.add_list(axis, list))
            }
        }
    }

    /// Whether the array has not got an axis; None when there is more to select along it than one element.
    fn is_single(&self, axis: usize, item: &Item) -> Option<bool> {
        if !self.dropped.contains(&axis) {
            return Some(matches!(item, Item::Index(_)));
        }
        matches!(item, Item::List(list) if list.as_slice().len() == 1).then_some(true)
    }
}

/// A number that is not negative, and nothing that is merely like one.
fn whole_number(item: &Bound<'_, PyAny>) -> Option<i64> {
    item.cast_exact::<PyInt>().ok().and_then(|number| number.extract().ok()).filter(|number| *number >= 0)
}

/// Start, stop and step of a slice that goes forwards. What it leaves out at its end is more than any axis has.
fn slice(item: &Bound<'_, PyAny>) -> Option<[i64; 3]> {
    let slice = item.cast_exact::<PySlice>().ok()?;
    let (mut start, mut stop, mut by) = (0, 0, 0);
    // SAFETY: it is a slice, and the numbers are ours.
    if unsafe { ffi::PySlice_Unpack(slice.as_ptr(), &raw mut start, &raw mut stop, &raw mut by) } < 0 {
        // Whoever reads the slice next raises it again.
        drop(PyErr::take(item.py()));
        return None;
    }
    (start >= 0 && stop >= 0 && by > 0).then_some([start as i64, stop as i64, by as i64])
}
