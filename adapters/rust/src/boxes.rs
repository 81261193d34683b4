//! Reads of a few selections, from what Python says to elements in the caller's array, with next to nothing done there.
//!
//! A call on a crop or a plane takes less time than making columns of its selections would. So they are read here
//! ([`crate::selections`]), and shards are cut here; whatever else there is, is left to the columns. [`Boxes`] tells how
//! much there is to decode, so that the caller can choose the thread, and then does it.

use std::fmt::Write;
use std::path::PathBuf;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::batch::Inputs;
use crate::buffers::{Array, Bytes};
use crate::cut::Pieces;
use crate::entries::Entries;
use crate::errors::Outcome;
#[cfg(unix)]
use crate::files::Files;
use crate::program::Program;
use crate::read::Reading;
use crate::read_stored;
use crate::region;
use crate::selections::{Item, Parser, Rows, Selected};
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

/// Selections of chunks, and the places in one array where they go.
#[pyclass(frozen, module = "chunkwright_rust._native")]
pub struct Boxes {
    program: Py<Program>,
    shards: Option<Py<Shards>>,
    selected: Selected,
    pieces: Option<Pieces>,
    target: Target,
    chunks: usize,
    keys: Keys,
}

/// Where chunks are.
enum Keys {
    /// Known to Python: the first item of each tuple has a `path`.
    Rows(Py<PyList>),
    Made(Vec<String>),
}

/// What a caller's array has: the array, its number of axes, bytes of the units of its elements, and one to fill it with.
type PyOut<'py> = (Bound<'py, PyAny>, usize, usize, Vec<u8>);

#[pymethods]
impl BoxReader {
    #[new]
    #[pyo3(signature = (program, shards, shape, order))]
    fn new(program: Py<Program>, shards: Option<Py<Shards>>, shape: Vec<usize>, order: Vec<usize>) -> Self {
        Self { program, shards, shape, order }
    }

    /// Read the selections of a batch: tuples that begin with where a chunk is, what else is said of it, what is taken of
    /// it, and where that goes. None when selections are not of the usual forms, or not within the chunks and the array, or
    /// when chunks have not all that else is said in common, or are not in the store. Lists in shards have to ascend. Those
    /// axes that are dropped are ones that the array has not.
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 hands them over by value")]
    fn boxes(
        &self,
        rows: Bound<'_, PyList>,
        store: Option<Bound<'_, PyAny>>,
        dropped: Vec<usize>,
        out: PyOut<'_>,
    ) -> PyResult<Option<Boxes>> {
        let mut parser = Parser::new(&self.shape, &dropped);
        if parse(&rows, store.as_ref(), &mut parser).is_none() {
            return Ok(None);
        }
        let py = rows.py();
        self.boxes_of(py, parser.rows, out, || Keys::Rows(rows.unbind()))
    }

    /// Read one selection of an array whose chunks lie on a regular grid: an integer, a slice or ascending indices along each
    /// axis. Keys are what comes before and between numbers of chunks. None when it is of another form, or of more chunks
    /// than so many.
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 hands them over by value")]
    fn region(
        &self,
        selection: Bound<'_, PyTuple>,
        key_format: (String, String),
        max_chunks: usize,
        out: PyOut<'_>,
    ) -> PyResult<Option<Boxes>> {
        let items: Option<Vec<Item>> = selection.iter().map(|item| Item::of(&item)).collect();
        let Some(found) = items.and_then(|items| region::cut(&items, &self.shape, max_chunks)) else {
            return Ok(None);
        };
        let keys = || Keys::Made(found.cells.chunks(self.shape.len()).map(|cell| key(&key_format, cell)).collect());
        let boxes = self.boxes_of(selection.py(), found.rows, out, keys)?;
        // What a selection does not reach of the array would stay as it is.
        Ok(boxes.filter(|boxes| boxes.target.out.layout().shape == found.shape))
    }
}

impl BoxReader {
    /// What is taken of chunks, with the array that it goes to; None when it does not fit there.
    fn boxes_of(
        &self,
        py: Python<'_>,
        rows: Rows,
        (out, ndim, unit, fill): PyOut<'_>,
        keys: impl FnOnce() -> Keys,
    ) -> PyResult<Option<Boxes>> {
        let element = self.program.get().filled_element(py, unit, &fill)?;
        if rows.out_ndim() != ndim {
            return Ok(None);
        }
        let out = Array::get(&out, ndim, element.size, true)?;
        if !rows.fits(&out.layout().shape) {
            return Ok(None);
        }
        let selected = rows.finish(&self.order);
        let mut pieces = None;
        if let Some(shards) = &self.shards {
            if !selected.ascends() {
                return Ok(None);
            }
            let made = selected.with_entries(|entries| shards.get().cut(entries));
            pieces = Some(made.map_err(|fault| fault.into_error(py))?);
        }
        let chunks = pieces.as_ref().map_or(selected.len(), Pieces::count);
        let shards = self.shards.as_ref().map(|shards| shards.clone_ref(py));
        let program = self.program.clone_ref(py);
        let target = Target { out, element, fill };
        Ok(Some(Boxes { program, shards, selected, pieces, target, chunks, keys: keys() }))
    }
}

/// The key of a chunk.
fn key((head, separator): &(String, String), cell: &[i64]) -> String {
    let mut key = head.clone();
    for (axis, number) in cell.iter().enumerate() {
        if axis > 0 {
            key.push_str(separator);
        }
        let _ = write!(key, "{number}");
    }
    key
}

/// Read the selections of a batch; None when one is not like the others or not of the usual forms.
fn parse(rows: &Bound<'_, PyList>, store: Option<&Bound<'_, PyAny>>, parser: &mut Parser<'_>) -> Option<()> {
    let mut first = None;
    for (number, row) in rows.iter().enumerate() {
        let row = row.cast_into_exact::<PyTuple>().ok()?;
        let item = |at| row.get_item(at).ok();
        let (chunk, said) = (item(0)?, item(1)?);
        if let Some(store) = store {
            chunk.getattr(intern!(row.py(), "store")).ok().filter(|found| found.is(store))?;
        }
        parser.add(number, &item(2)?, &item(3)?)?;
        let (kind, shared) = first.get_or_insert_with(|| (chunk.get_type(), said.clone()));
        (chunk.get_type().is(&*kind) && said.is(&*shared)).then_some(())?;
    }
    Some(())
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

    /// Where chunks are.
    #[getter]
    fn keys(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let key = |row: Bound<'_, PyAny>| row.get_item(0)?.getattr(intern!(py, "path"))?.extract();
        match &self.keys {
            Keys::Rows(rows) => rows.bind(py).iter().map(key).collect(),
            Keys::Made(keys) => Ok(keys.clone()),
        }
    }

    /// Read and decode files, one for each selection, whose `path` is below the root, and tell which were there.
    #[cfg(unix)]
    #[pyo3(signature = (root, max_workers, index_cache=0))]
    fn read_files(
        &self,
        py: Python<'_>,
        root: PathBuf,
        max_workers: Option<usize>,
        index_cache: usize,
    ) -> PyResult<Vec<bool>> {
        let files = Files::new(root, self.keys(py)?, index_cache)?;
        py.detach(|| {
            let count = i64::try_from(files.keys().len()).unwrap_or(i64::MAX);
            let (source, offset, length): (Vec<_>, Vec<_>, Vec<_>) = (0..count).map(|file| (file, 0, -1)).collect();
            let rows = read_stored::Rows { storage: &files, source: &source, offset: &offset, length: &length };
            self.read_rows(&rows, max_workers)
        })
        .map_err(|fault| fault.into_error(py))?;
        Ok(files.missing().into_iter().map(|missing| !missing).collect())
    }

    /// Read and decode chunks that lie in one file, whose descriptor is taken over: first byte, negative for those that are
    /// missing, and bytes of the chunk of each selection.
    #[cfg(unix)]
    #[pyo3(signature = (descriptor, path, rows, max_workers, index_cache=0))]
    fn read_packed(
        &self,
        py: Python<'_>,
        descriptor: std::os::fd::RawFd,
        path: String,
        rows: (Vec<i64>, Vec<i64>),
        max_workers: Option<usize>,
        index_cache: usize,
    ) -> PyResult<()> {
        let (files, (offset, length)) = (Files::packed(descriptor, path, index_cache), rows);
        py.detach(|| {
            let source = vec![0; offset.len()];
            let rows = read_stored::Rows { storage: &files, source: &source, offset: &offset, length: &length };
            self.read_rows(&rows, max_workers)
        })
        .map_err(|fault| fault.into_error(py))
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
    #[cfg(unix)]
    fn read_rows(&self, rows: &read_stored::Rows<'_>, max_workers: Option<usize>) -> Outcome<()> {
        let chunks = |reading: &Reading<'_>, entries: &Entries<'_>| reading.run_stored(entries, rows, max_workers);
        self.read(chunks, |shards| shards.run_stored(rows, max_workers))
    }

    fn read(
        &self,
        chunks: impl FnOnce(&Reading<'_>, &Entries<'_>) -> Outcome<()>,
        shards: impl FnOnce(&ShardReading<'_>) -> Outcome<()>,
    ) -> Outcome<()> {
        self.selected.with_entries(|entries| {
            if let (Some(of), Some(pieces)) = (&self.shards, &self.pieces) {
                return of.get().read(entries, pieces, &self.target, shards);
            }
            let Target { out, element, fill } = &self.target;
            let chunk = self.program.get().chunk();
            chunks(&Reading { chunk, selections: entries, out, element: *element, fill }, entries)
        })
    }
}
