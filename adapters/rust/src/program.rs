//! `Program`: what a run of codecs is compiled to, and the calls that Python makes with it.

#![allow(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::batch::Inputs;
use crate::buffers::{Array, Bytes, Column, Encoded};
use crate::chain::{Decoded, Stage, decode};
use crate::copy::Element;
use crate::entries::{Entries, Layout, List};
use crate::errors::{Fault, Kind, Outcome};
use crate::kernels::Kernel;
use crate::load::Cost;
use crate::read::{self, Reading};
use crate::text;
use crate::worker::Worker;
use crate::write::{self, Writing};

/// The form of decoded chunks, and the stages behind it.
pub struct Chunk {
    /// Shape of the decoded chunk, and strides of its elements as they are stored.
    pub layout: Layout,
    /// Elements of a chunk.
    pub count: usize,
    /// Bytes of a chunk.
    pub nbytes: usize,
    /// The fill value as it is stored.
    pub fill: Vec<u8>,
    /// Bits of an element that count when it is compared with the fill value; None when all do.
    pub mask: Option<Vec<u8>>,
    /// The bytes->bytes codecs, in order of encoding.
    pub stages: Vec<Stage>,
    /// What decoding takes.
    pub decoding: Cost,
    /// What encoding takes.
    pub encoding: Cost,
}

impl Chunk {
    fn new(
        shape: Vec<usize>,
        order: &[usize],
        fill: Vec<u8>,
        mask: Option<Vec<u8>>,
        stages: Vec<Stage>,
    ) -> Outcome<Self> {
        let wrong = |message: &'static str| Fault::new(Kind::Configuration, message);
        let mut strides = vec![0; shape.len()];
        let mut nbytes = fill.len().cast_signed();
        let mut seen = vec![false; shape.len()];
        if order.len() != shape.len() || mask.as_ref().is_some_and(|mask| mask.len() != fill.len()) {
            return Err(wrong("order, mask and shape do not belong together"));
        }
        for axis in order.iter().rev().copied() {
            if shape.get(axis).is_none() || std::mem::replace(&mut seen[axis], true) {
                return Err(wrong("order is not a permutation"));
            }
            strides[axis] = nbytes;
            nbytes = isize::try_from(shape[axis])
                .ok()
                .and_then(|extent| nbytes.checked_mul(extent))
                .ok_or_else(|| wrong("a chunk is too large to address"))?;
        }
        let count = shape.iter().product();
        Ok(Self {
            layout: Layout { shape, strides },
            count,
            nbytes: nbytes.unsigned_abs(),
            fill,
            mask,
            stages,
            decoding: Cost::default(),
            encoding: Cost::default(),
        })
    }

    /// How elements are copied.
    ///
    /// # Errors
    /// When they cannot be.
    pub fn element(&self, unit: usize) -> Outcome<Element> {
        let size = self.fill.len();
        if size == 0 || unit == 0 || !size.is_multiple_of(unit) {
            return Err(Fault::new(Kind::Configuration, "an element cannot be copied"));
        }
        Ok(Element { size, unit })
    }

    /// The same, with a fill value that has to be of the size of an element.
    ///
    /// # Errors
    /// When it is not.
    pub fn filled_element(&self, unit: usize, fill: &[u8]) -> Outcome<Element> {
        let element = self.element(unit)?;
        if fill.len() == element.size {
            return Ok(element);
        }
        Err(Fault::new(Kind::Configuration, "the fill value has the wrong size"))
    }

    /// Decode a chunk into memory of its size.
    ///
    /// # Errors
    /// When it does not decode.
    pub fn decode_whole(&self, input: &[u8], memory: &mut [u8], worker: &mut Worker) -> Outcome<()> {
        let decoded = decode(&self.stages, input, worker, Some(memory))?;
        if let Some(data) = self.array(&decoded, worker)? {
            memory.copy_from_slice(data);
        }
        Ok(())
    }

    /// The bytes of a decoded chunk, None when they are where they belong already.
    ///
    /// # Errors
    /// When they are too few or too many.
    pub fn array<'a>(&self, decoded: &Decoded<'a>, worker: &'a Worker) -> Outcome<Option<&'a [u8]>> {
        let data = match decoded {
            Decoded::Input(data) => data,
            Decoded::Front(range) => &worker.front.filled(range.end)[range.clone()],
            Decoded::Target => return Ok(None),
        };
        if data.len() == self.nbytes {
            Ok(Some(data))
        } else {
            Err(Fault::length("wrong length", self.nbytes, data.len()).by("bytes"))
        }
    }
}

/// A run of codecs, compiled.
#[pyclass(frozen, module = "chunkwright_rust._native")]
pub struct Program(Arc<Chunk>);

/// A stage as Python gives it: name, kernel, options, text, exact size or None, largest size.
type Step = (String, String, HashMap<String, i64>, String, Option<usize>, usize);

/// An index list as Python gives it.
pub type PyRuns<'py> = Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>;

/// Columns of encoded chunks as Python gives them: owners, source, offset, length.
pub type PyBuffers<'py> = (Vec<Bound<'py, PyAny>>, Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Columns of entries as Python gives them: the six columns, axes, lists, out lists.
pub type PyEntries<'py> = (Bound<'py, PyTuple>, Vec<isize>, Vec<PyRuns<'py>>, Vec<PyRuns<'py>>);

#[pymethods]
impl Program {
    #[new]
    fn new(
        py: Python<'_>,
        shape: Vec<usize>,
        order: Vec<usize>,
        fill: Vec<u8>,
        mask: Option<Vec<u8>>,
        steps: Vec<Step>,
    ) -> PyResult<Self> {
        let stages: Outcome<Vec<Stage>> = steps
            .into_iter()
            .map(|(name, kernel, options, text, exact, most)| {
                let kernel = Kernel::new(&kernel, &options, &text).map_err(|fault| fault.by(&name))?;
                Ok(Stage { name, kernel, exact, most })
            })
            .collect();
        let chunk = stages.and_then(|stages| Chunk::new(shape, &order, fill, mask, stages));
        chunk.map(|chunk| Self(Arc::new(chunk))).map_err(|fault| fault.into_error(py))
    }

    /// Decode chunks and put the entries' elements into an array.
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
        let element = self.filled_element(py, unit, &fill)?;
        let (rows, columns) = (Rows::get(&buffers)?, Columns::get(&entries)?);
        let out = Array::get(out, columns.out_ndim(), element.size, true)?;
        py.detach(|| {
            let lists = columns.lists();
            let (inputs, entries) = (rows.inputs(), columns.entries(&lists));
            self.check(&entries)?;
            let selections = &entries;
            Reading { chunk: &self.0, selections, out: &out, element, fill: &fill }.run(&entries, &inputs, max_workers)
        })
        .map_err(|fault| fault.into_error(py))
    }

    /// Decode whole chunks, each into an array of its own.
    #[pyo3(signature = (buffers, outs, unit, max_workers))]
    fn decode_each(
        &self,
        py: Python<'_>,
        buffers: PyBuffers<'_>,
        outs: Vec<Option<Bound<'_, PyAny>>>,
        unit: usize,
        max_workers: Option<usize>,
    ) -> PyResult<()> {
        let element = self.element(py, unit)?;
        let (rows, outs) = (Rows::get(&buffers)?, self.arrays(&outs, true)?);
        py.detach(|| read::decode_each(&self.0, &rows.inputs(), &outs, element, max_workers))
            .map_err(|fault| fault.into_error(py))
    }

    /// Decode the bytes of each chunk.
    #[pyo3(signature = (buffers, max_workers))]
    fn decode_bytes<'py>(
        &self,
        py: Python<'py>,
        buffers: PyBuffers<'py>,
        max_workers: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let rows = Rows::get(&buffers)?;
        let made = py.detach(|| read::decode_bytes(&self.0, &rows.inputs(), max_workers));
        encoded(py, made)
    }

    /// Gather chunks from an array and encode them.
    #[allow(clippy::too_many_arguments, reason = "Python hands over columns, not objects")]
    #[pyo3(signature = (source, entries, base, units, keep_empty, max_workers))]
    fn encode_from<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        entries: PyEntries<'py>,
        base: Vec<Option<Bound<'py, PyAny>>>,
        units: (usize, usize),
        keep_empty: bool,
        max_workers: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (element, base_element) = (self.element(py, units.0)?, self.element(py, units.1)?);
        let columns = Columns::get(&entries)?;
        let source = Array::get(source, columns.out_ndim(), element.size, false)?;
        let base = self.arrays(&base, false)?;
        let made = py.detach(|| {
            let lists = columns.lists();
            let entries = columns.entries(&lists);
            self.check(&entries)?;
            let (chunk, source, base) = (&self.0, &source, base.as_slice());
            let writing = Writing { chunk, source, selections: &entries, element, keep_empty };
            writing.run(&entries, base, base_element, max_workers)
        });
        encoded(py, made)
    }

    /// Gather chunks from an array and encode them, on top of what they held before.
    #[allow(clippy::too_many_arguments, reason = "Python hands over columns, not objects")]
    #[pyo3(signature = (source, entries, buffers, unit, keep_empty, max_workers))]
    fn rewrite_from<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        entries: PyEntries<'py>,
        buffers: PyBuffers<'py>,
        unit: usize,
        keep_empty: bool,
        max_workers: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let element = self.element(py, unit)?;
        let (rows, columns) = (Rows::get(&buffers)?, Columns::get(&entries)?);
        let source = Array::get(source, columns.out_ndim(), element.size, false)?;
        let made = py.detach(|| {
            let lists = columns.lists();
            let (existing, entries) = (rows.inputs(), columns.entries(&lists));
            self.check(&entries)?;
            let (chunk, source) = (&self.0, &source);
            let writing = Writing { chunk, source, selections: &entries, element, keep_empty };
            writing.rewrite(&entries, &existing, max_workers)
        });
        encoded(py, made)
    }

    /// Encode whole chunks, each from an array of its own.
    #[pyo3(signature = (arrays, unit, max_workers))]
    fn encode_each<'py>(
        &self,
        py: Python<'py>,
        arrays: Vec<Option<Bound<'py, PyAny>>>,
        unit: usize,
        max_workers: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let element = self.element(py, unit)?;
        let arrays = self.arrays(&arrays, false)?;
        let made = py.detach(|| write::encode_each(&self.0, &arrays, element, max_workers));
        encoded(py, made)
    }

    /// Encode the bytes of each row.
    #[pyo3(signature = (buffers, max_workers))]
    fn encode_bytes<'py>(
        &self,
        py: Python<'py>,
        buffers: PyBuffers<'py>,
        max_workers: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let rows = Rows::get(&buffers)?;
        let made = py.detach(|| write::encode_bytes(&self.0, &rows.inputs(), max_workers));
        encoded(py, made)
    }

    /// Decode chunks of texts or bytes of variable length.
    #[pyo3(signature = (buffers, count, codec, form, max_workers))]
    fn decode_items<'py>(
        &self,
        py: Python<'py>,
        buffers: PyBuffers<'py>,
        count: usize,
        codec: &str,
        form: (bool, bool),
        max_workers: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (rows, (is_text, is_even)) = (Rows::get(&buffers)?, form);
        let format = text::Format { codec, is_text, is_even };
        let made = py
            .detach(|| text::decode(&self.0, &rows.inputs(), count, format, max_workers))
            .map_err(|fault| fault.into_error(py))?;
        text::objects(py, made, is_text)
    }

    /// Encode chunks of texts or bytes of variable length.
    #[pyo3(signature = (chunks, is_text, max_workers))]
    fn encode_items<'py>(
        &self,
        py: Python<'py>,
        chunks: Vec<Option<Bound<'py, PyList>>>,
        is_text: bool,
        max_workers: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let packed = text::pack(&chunks, is_text)?;
        let made = py.detach(|| text::encode(&self.0, &packed, max_workers));
        encoded(py, made)
    }
}

impl Program {
    /// The form of decoded chunks, and the stages behind it.
    #[must_use]
    pub fn chunk(&self) -> &Arc<Chunk> {
        &self.0
    }

    /// How elements are copied.
    ///
    /// # Errors
    /// When they cannot be.
    pub fn element(&self, py: Python<'_>, unit: usize) -> PyResult<Element> {
        self.0.element(unit).map_err(|fault| fault.into_error(py))
    }

    /// The same, with a fill value that has to be of the size of an element.
    ///
    /// # Errors
    /// When it is not.
    pub fn filled_element(&self, py: Python<'_>, unit: usize, fill: &[u8]) -> PyResult<Element> {
        self.0.filled_element(unit, fill).map_err(|fault| fault.into_error(py))
    }

    fn arrays(&self, arrays: &[Option<Bound<'_, PyAny>>], writable: bool) -> PyResult<Vec<Option<Array>>> {
        let (ndim, size) = (self.0.layout.shape.len(), self.0.fill.len());
        let get = |array: &Option<Bound<'_, PyAny>>| {
            array.as_ref().map(|array| Array::get(array, ndim, size, writable)).transpose()
        };
        arrays.iter().map(get).collect()
    }

    /// Check that entries are about chunks of this form.
    ///
    /// # Errors
    /// When they have another number of axes.
    pub fn check(&self, entries: &Entries<'_>) -> Outcome<()> {
        if entries.axes.len() == self.0.layout.shape.len() {
            return Ok(());
        }
        Err(Fault::new(Kind::Plan, "entries have another number of axes than chunks"))
    }
}

/// Give what was made to Python.
///
/// # Errors
/// When there is a fault instead.
pub fn encoded(py: Python<'_>, made: Outcome<Vec<Option<Vec<u8>>>>) -> PyResult<Bound<'_, PyList>> {
    let made = made.map_err(|fault| fault.into_error(py))?;
    let items: PyResult<Vec<Option<Py<Encoded>>>> =
        made.into_iter().map(|bytes| bytes.map(|bytes| Py::new(py, Encoded::new(bytes))).transpose()).collect();
    PyList::new(py, items?)
}

/// Borrowed columns of encoded chunks.
pub struct Rows {
    owners: Vec<Bytes>,
    source: Column,
    offset: Column,
    length: Column,
}

impl Rows {
    /// Borrow columns.
    ///
    /// # Errors
    /// When they are not columns.
    pub fn get((owners, source, offset, length): &PyBuffers<'_>) -> PyResult<Self> {
        Ok(Self {
            owners: owners.iter().map(Bytes::get).collect::<PyResult<_>>()?,
            source: Column::get(source)?,
            offset: Column::get(offset)?,
            length: Column::get(length)?,
        })
    }

    /// The encoded chunks.
    #[must_use]
    pub fn inputs(&self) -> Inputs<'_> {
        Inputs {
            owners: self.owners.iter().map(Bytes::as_slice).collect(),
            source: self.source.as_slice(),
            offset: self.offset.as_slice(),
            length: self.length.as_slice(),
        }
    }
}

/// Borrowed columns of entries.
pub struct Columns {
    numbers: [Column; 6],
    axes: Vec<Option<usize>>,
    lists: Vec<Option<[Column; 2]>>,
    out_lists: Vec<Option<[Column; 2]>>,
}

impl Columns {
    /// Borrow columns.
    ///
    /// # Errors
    /// When they are not columns.
    pub fn get((columns, axes, lists, out_lists): &PyEntries<'_>) -> PyResult<Self> {
        let column = |number| Column::get(&columns.get_item(number)?);
        let runs = |runs: &PyRuns<'_>| {
            runs.as_ref().map(|(values, offsets)| Ok([Column::get(values)?, Column::get(offsets)?])).transpose()
        };
        Ok(Self {
            numbers: [column(0)?, column(1)?, column(2)?, column(3)?, column(4)?, column(5)?],
            axes: axes.iter().map(|axis| usize::try_from(*axis).ok()).collect(),
            lists: lists.iter().map(runs).collect::<PyResult<_>>()?,
            out_lists: out_lists.iter().map(runs).collect::<PyResult<_>>()?,
        })
    }

    /// Axes of the caller's array.
    #[must_use]
    pub fn out_ndim(&self) -> usize {
        self.out_lists.len()
    }

    /// The index lists, which the entries have to borrow.
    #[must_use]
    pub fn lists(&self) -> [Vec<Option<List<'_>>>; 2] {
        [&self.lists, &self.out_lists].map(|lists| lists.iter().map(|runs| runs.as_ref().map(list)).collect())
    }

    /// The entries.
    #[must_use]
    pub fn entries<'a>(&'a self, [lists, out_lists]: &'a [Vec<Option<List<'a>>>; 2]) -> Entries<'a> {
        let [chunk, start, count, step, out_start, out_step] = self.numbers.each_ref().map(Column::as_slice);
        Entries { chunk, start, count, step, out_start, out_step, axes: &self.axes, lists, out_lists }
    }
}

fn list([values, offsets]: &[Column; 2]) -> List<'_> {
    List { values: values.as_slice(), offsets: offsets.as_slice() }
}
