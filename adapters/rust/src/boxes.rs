//! Reads of a few boxes, from Python's slices to elements in the caller's array, with next to nothing done in Python.
//!
//! A call on a crop or a plane takes less time than making columns of its selections would. So the slices are read here,
//! and shards are cut here; what is no plain box is left to the columns. [`Boxes`] tells how much there is to decode,
//! so that the caller can choose the thread, and then does it.

#![allow(unsafe_code)]

use std::path::PathBuf;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PySlice, PyTuple};

use crate::batch::Inputs;
use crate::buffers::{Array, Bytes};
use crate::cut::Pieces;
use crate::entries::{Entries, List};
use crate::errors::Outcome;
#[cfg(unix)]
use crate::files::Files;
use crate::program::Program;
use crate::read::Reading;
use crate::read_stored;
use crate::shard_read::ShardReading;
use crate::shards::{Shards, Target};

/// What reads boxes of chunks of one form.
#[pyclass(frozen, module = "chunkwright_rust._native")]
pub struct BoxReader {
    /// The program of chunks, or of inner chunks.
    program: Py<Program>,
    shards: Option<Py<Shards>>,
    shape: Vec<usize>,
    /// Axis `i` of the array that the sharding codec is given is axis `order[i]` of the chunk.
    order: Vec<usize>,
}

/// Boxes of chunks, and the places in one array where they go.
#[pyclass(frozen, module = "chunkwright_rust._native")]
pub struct Boxes {
    program: Py<Program>,
    shards: Option<Py<Shards>>,
    numbers: Numbers,
    axes: Vec<Option<usize>>,
    pieces: Option<Pieces>,
    target: Target,
    chunks: usize,
}

#[pymethods]
impl BoxReader {
    #[new]
    #[pyo3(signature = (program, shards, shape, order))]
    fn new(program: Py<Program>, shards: Option<Py<Shards>>, shape: Vec<usize>, order: Vec<usize>) -> Self {
        Self { program, shards, shape, order }
    }

    /// Read slices; None when they are not plain boxes within the chunks and the array.
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 hands them over by value")]
    fn boxes(
        &self,
        py: Python<'_>,
        selections: Vec<Bound<'_, PyAny>>,
        places: Vec<Bound<'_, PyAny>>,
        out: (Bound<'_, PyAny>, usize),
        unit: usize,
        fill: Vec<u8>,
    ) -> PyResult<Option<Boxes>> {
        let (program, (out, out_ndim)) = (self.program.get(), out);
        let element = program.filled_element(py, unit, &fill)?;
        let mut parser = Parser::new(&self.shape);
        for (row, (selection, place)) in selections.iter().zip(&places).enumerate() {
            if !parser.add(row, selection, place) {
                return Ok(None);
            }
        }
        if selections.len() != places.len() || parser.out_ndim() != out_ndim {
            return Ok(None);
        }
        let out = Array::get(&out, out_ndim, element.size, true)?;
        if !parser.fits(&out.layout().shape) {
            return Ok(None);
        }
        let (numbers, axes) = parser.into_columns(&self.order);
        let mut pieces = None;
        if let Some(shards) = &self.shards {
            let made = shards.get().cut(&numbers.entries(&axes, &no_lists(axes.len(), out_ndim)));
            pieces = Some(made.map_err(|fault| fault.into_error(py))?);
        }
        let chunks = pieces.as_ref().map_or(numbers.chunk.len(), Pieces::count);
        let shards = self.shards.as_ref().map(|shards| shards.clone_ref(py));
        let program = self.program.clone_ref(py);
        let target = Target { out, element, fill };
        Ok(Some(Boxes { program, shards, numbers, axes, pieces, target, chunks }))
    }
}

#[pymethods]
impl Boxes {
    /// Chunks, or inner chunks, that have to be decoded.
    #[getter]
    fn chunks(&self) -> usize {
        self.chunks
    }

    /// Their decoded bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.chunks.saturating_mul(self.program.get().chunk().nbytes)
    }

    /// Read and decode files, one for each selection, and tell which were there.
    #[cfg(unix)]
    #[pyo3(signature = (root, keys, max_workers, index_cache=0))]
    fn read_files(
        &self,
        py: Python<'_>,
        root: PathBuf,
        keys: Vec<String>,
        max_workers: Option<usize>,
        index_cache: usize,
    ) -> PyResult<Vec<bool>> {
        let files = Files::new(root, keys, index_cache)?;
        py.detach(|| {
            let count = i64::try_from(files.keys().len()).unwrap_or(i64::MAX);
            let (source, offset, length): (Vec<_>, Vec<_>, Vec<_>) = (0..count).map(|file| (file, 0, -1)).collect();
            let rows = read_stored::Rows { storage: &files, source: &source, offset: &offset, length: &length };
            let chunks = |reading: &Reading<'_>, entries: &Entries<'_>| reading.run_stored(entries, &rows, max_workers);
            self.read(chunks, |shards| shards.run_stored(&rows, max_workers))
        })
        .map_err(|fault| fault.into_error(py))?;
        Ok(files.missing().into_iter().map(|missing| !missing).collect())
    }

    /// Decode chunks that are in memory, one for each selection.
    #[pyo3(signature = (buffers, max_workers))]
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 hands them over by value")]
    fn decode(
        &self,
        py: Python<'_>,
        buffers: Vec<Option<Bound<'_, PyAny>>>,
        max_workers: Option<usize>,
    ) -> PyResult<()> {
        let bytes: Vec<Option<Bytes>> =
            buffers.iter().map(|buffer| buffer.as_ref().map(Bytes::get).transpose()).collect::<PyResult<_>>()?;
        py.detach(|| {
            let owners: Vec<&[u8]> =
                bytes.iter().map(|bytes| bytes.as_ref().map_or(&[][..], Bytes::as_slice)).collect();
            let column = |number: &dyn Fn(usize) -> usize| -> Vec<i64> {
                (0..owners.len()).map(|row| i64::try_from(number(row)).unwrap_or(i64::MAX)).collect()
            };
            let (source, length) = (column(&|row| row), column(&|row| owners[row].len()));
            let offset: Vec<i64> = bytes.iter().map(|bytes| if bytes.is_some() { 0 } else { -1 }).collect();
            let inputs = Inputs { owners, source: &source, offset: &offset, length: &length };
            let chunks = |reading: &Reading<'_>, entries: &Entries<'_>| reading.run(entries, &inputs, max_workers);
            self.read(chunks, |shards| shards.run(&inputs, max_workers))
        })
        .map_err(|fault| fault.into_error(py))
    }
}

impl Boxes {
    fn read(
        &self,
        chunks: impl FnOnce(&Reading<'_>, &Entries<'_>) -> Outcome<()>,
        shards: impl FnOnce(&ShardReading<'_>) -> Outcome<()>,
    ) -> Outcome<()> {
        let lists = no_lists(self.axes.len(), self.target.out.layout().shape.len());
        let entries = self.numbers.entries(&self.axes, &lists);
        if let (Some(of), Some(pieces)) = (&self.shards, &self.pieces) {
            return of.get().read(&entries, pieces, &self.target, shards);
        }
        let Target { out, element, fill } = &self.target;
        let chunk = self.program.get().chunk();
        chunks(&Reading { chunk, selections: &entries, out, element: *element, fill }, &entries)
    }
}

/// Columns of boxes, as in [`Entries`].
struct Numbers {
    chunk: Vec<i64>,
    start: Vec<i64>,
    count: Vec<i64>,
    step: Vec<i64>,
    out_start: Vec<i64>,
    out_step: Vec<i64>,
}

impl Numbers {
    fn entries<'a>(&'a self, axes: &'a [Option<usize>], [lists, out_lists]: &'a NoLists) -> Entries<'a> {
        Entries {
            chunk: &self.chunk,
            start: &self.start,
            count: &self.count,
            step: &self.step,
            out_start: &self.out_start,
            out_step: &self.out_step,
            axes,
            lists,
            out_lists,
        }
    }
}

/// For each axis of both sides, that it has no index list.
type NoLists = [Vec<Option<List<'static>>>; 2];

fn no_lists(ndim: usize, out_ndim: usize) -> NoLists {
    [vec![None; ndim], vec![None; out_ndim]]
}

/// Reads slices.
struct Parser<'a> {
    shape: &'a [usize],
    axes: Option<Vec<Option<usize>>>,
    rows: Vec<i64>,
    /// Start, count and step along the axes of chunks; first places along those of the array, and elements there.
    inside: Vec<[i64; 3]>,
    outside: Vec<[i64; 2]>,
}

impl<'a> Parser<'a> {
    fn new(shape: &'a [usize]) -> Self {
        Self { shape, axes: None, rows: Vec::new(), inside: Vec::new(), outside: Vec::new() }
    }

    fn out_ndim(&self) -> usize {
        self.axes.iter().flatten().flatten().count()
    }

    /// Read what is taken of one chunk, and where it goes; whether that is a plain box.
    fn add(&mut self, row: usize, selection: &Bound<'_, PyAny>, place: &Bound<'_, PyAny>) -> bool {
        let (Ok(selection), Ok(place)) = (selection.cast_exact::<PyTuple>(), place.cast_exact::<PyTuple>()) else {
            return false;
        };
        if selection.len() != self.shape.len() {
            return false;
        }
        let (first, mut landing) = ((self.inside.len(), self.outside.len()), 0);
        let mut axes = Vec::with_capacity(self.shape.len());
        for (item, extent) in selection.iter().zip(self.shape) {
            let extent = i64::try_from(*extent).unwrap_or(i64::MAX);
            if let Some(index) = whole_number(&item) {
                axes.push(None);
                self.inside.push([index, 1, 1]);
                if index >= extent {
                    return false;
                }
                continue;
            }
            let Ok(item_place) = place.get_item(landing) else {
                return false;
            };
            let (Some([start, stop, by]), Some([begin, end, 1])) = (slice(&item), slice(&item_place)) else {
                return false;
            };
            let count = if stop > start { (stop - start - 1) / by + 1 } else { 0 };
            if stop > extent || end.checked_sub(begin) != Some(count) {
                return false;
            }
            axes.push(Some(landing));
            landing += 1;
            self.inside.push([start, count, by]);
            self.outside.push([begin, count]);
        }
        if landing != place.len() || self.axes.as_ref().is_some_and(|known| *known != axes) {
            return false;
        }
        self.axes = Some(axes);
        if self.inside[first.0..].iter().any(|[_, count, _]| *count == 0) {
            self.inside.truncate(first.0);
            self.outside.truncate(first.1);
        } else {
            self.rows.push(i64::try_from(row).unwrap_or(i64::MAX));
        }
        true
    }

    /// Whether all places are within an array.
    fn fits(&self, shape: &[usize]) -> bool {
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

    fn into_columns(self, order: &[usize]) -> (Numbers, Vec<Option<usize>>) {
        let ndim = self.shape.len();
        let axes = self.axes.unwrap_or_else(|| vec![None; ndim]);
        let column = |part: usize| -> Vec<i64> {
            (0..self.rows.len())
                .flat_map(|row| order.iter().map(move |axis| row * ndim + axis))
                .map(|at| self.inside[at][part])
                .collect()
        };
        let numbers = Numbers {
            start: column(0),
            count: column(1),
            step: column(2),
            out_start: self.outside.iter().map(|[begin, _]| *begin).collect(),
            out_step: vec![1; self.outside.len()],
            chunk: self.rows,
        };
        (numbers, order.iter().map(|axis| axes[*axis]).collect())
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
