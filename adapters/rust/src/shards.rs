//! `Shards`: what a sharding codec is compiled to when its inner chunks and its index are both native.

#![allow(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::buffers::{Array, Column};
use crate::copy::Element;
use crate::cut::{Cut, Pieces};
use crate::entries::Entries;
use crate::errors::Outcome;
use crate::program::{Columns, Program, PyBuffers, PyEntries, Rows, encoded};
use crate::read::Reading;
use crate::shard::Form;
use crate::shard_read::ShardReading;
use crate::shard_write::ShardWriting;
use crate::write::Writing;

/// A sharding codec, compiled.
#[pyclass(frozen, module = "chunkwright_rust._native")]
pub struct Shards(Form);

#[pymethods]
impl Shards {
    #[new]
    #[allow(clippy::too_many_arguments, reason = "Python hands over numbers, not objects")]
    #[pyo3(signature = (inner, index, unit, index_size, at_start, grid, order, inner_size))]
    fn new(
        py: Python<'_>,
        inner: &Program,
        index: &Program,
        unit: usize,
        index_size: usize,
        at_start: bool,
        grid: Vec<usize>,
        order: &Bound<'_, PyAny>,
        inner_size: (Option<usize>, Option<usize>),
    ) -> PyResult<Self> {
        index.element(py, unit)?;
        let (inner, index) = (Arc::clone(inner.chunk()), Arc::clone(index.chunk()));
        let order =
            Column::get(order)?.as_slice().iter().map(|cell| usize::try_from(*cell)).collect::<Result<_, _>>()?;
        let (exact, most) = inner_size;
        let form = Form { inner, index, unit, index_size, at_start, grid, order, exact, most };
        form.check().map_err(|fault| fault.into_error(py))?;
        Ok(Self(form))
    }

    /// Decode parts of shards and put the entries' elements into an array.
    #[allow(clippy::too_many_arguments, reason = "Python hands over columns, not objects")]
    #[pyo3(signature = (buffers, entries, out, unit, fill, max_workers))]
    fn decode_into(
        &self,
        py: Python<'_>,
        buffers: PyBuffers<'_>,
        entries: PyEntries<'_>,
        out: &Bound<'_, PyAny>,
        unit: usize,
        fill: Vec<u8>,
        max_workers: Option<usize>,
    ) -> PyResult<()> {
        let (rows, columns) = (Rows::get(&buffers)?, Columns::get(&entries)?);
        let target = self.target(out, &columns, unit, fill)?;
        py.detach(|| {
            let lists = columns.lists();
            let (inputs, entries) = (rows.inputs(), columns.entries(&lists));
            self.read(&entries, &self.cut(&entries)?, &target, |reading| reading.run(&inputs, max_workers))
        })
        .map_err(|fault| fault.into_error(py))
    }

    /// Gather inner chunks from an array, encode them, and put them into shards, beside those that stay.
    #[allow(clippy::too_many_arguments, reason = "Python hands over columns, not objects")]
    #[pyo3(signature = (source, entries, buffers, unit, keep_empty, max_workers))]
    fn encode_from<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        entries: PyEntries<'py>,
        buffers: PyBuffers<'py>,
        unit: usize,
        keep_empty: bool,
        max_workers: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let element = self.0.inner.element(unit).map_err(|fault| fault.into_error(py))?;
        let (rows, columns) = (Rows::get(&buffers)?, Columns::get(&entries)?);
        let source = Array::get(source, columns.out_ndim(), element.size, false)?;
        let made = py.detach(|| {
            let lists = columns.lists();
            let (existing, entries) = (rows.inputs(), columns.entries(&lists));
            existing.check()?;
            entries.check(existing.len())?;
            self.write(&entries, &source, element, keep_empty, |cut, writing| {
                ShardWriting { form: &self.0, cut, writing, existing: &existing }.run(max_workers)
            })
        });
        encoded(py, made)
    }
}

/// Where decoded elements go.
pub struct Target {
    /// The caller's array.
    pub out: Array,
    /// How an element is copied.
    pub element: Element,
    /// The fill value, as in the caller's array.
    pub fill: Vec<u8>,
}

impl Shards {
    /// What the shards have in common.
    #[must_use]
    pub fn form(&self) -> &Form {
        &self.0
    }

    /// Borrow the caller's array.
    ///
    /// # Errors
    /// When it is not what entries and elements are about.
    pub fn target(&self, out: &Bound<'_, PyAny>, columns: &Columns, unit: usize, fill: Vec<u8>) -> PyResult<Target> {
        let element = self.0.inner.filled_element(unit, &fill).map_err(|fault| fault.into_error(out.py()))?;
        let out = Array::get(out, columns.out_ndim(), element.size, true)?;
        Ok(Target { out, element, fill })
    }

    /// Cut entries of shards.
    ///
    /// # Errors
    /// When they make no sense.
    pub fn cut(&self, entries: &Entries<'_>) -> Outcome<Pieces> {
        Pieces::new(entries, &self.0.inner.layout.shape, &self.0.grid)
    }

    /// Read entries that are cut by means of a function.
    ///
    /// # Errors
    /// Those of the function.
    pub fn read(
        &self,
        entries: &Entries<'_>,
        pieces: &Pieces,
        target: &Target,
        read: impl FnOnce(&ShardReading<'_>) -> Outcome<()>,
    ) -> Outcome<()> {
        let (form, chunk) = (&self.0, self.0.inner.as_ref());
        let cut = Cut { entries, inner: &chunk.layout.shape, grid: &form.grid, pieces };
        let Target { out, element, fill } = target;
        let reading = Reading { chunk, selections: &cut, out, element: *element, fill };
        read(&ShardReading { form, entries, cut: &cut, reading: &reading })
    }

    /// Cut entries, and write them by means of a function.
    ///
    /// # Errors
    /// When the entries make no sense, and those of the function.
    pub fn write<T>(
        &self,
        entries: &Entries<'_>,
        source: &Array,
        element: Element,
        keep_empty: bool,
        write: impl FnOnce(&Cut<'_>, &Writing<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        let (form, chunk, pieces) = (&self.0, self.0.inner.as_ref(), self.cut(entries)?);
        let cut = Cut { entries, inner: &chunk.layout.shape, grid: &form.grid, pieces: &pieces };
        write(&cut, &Writing { chunk, source, selections: &cut, element, keep_empty })
    }
}
