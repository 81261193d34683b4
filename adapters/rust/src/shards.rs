//! Shards: entries are cut along the inner chunks, the inner chunks are found in the indexes, and decoded in one go.
//!
//! What an index says is not trusted: every entry that is used is checked first. Only boxes are cut here, since they are
//! what most calls ask for; selections with index lists are cut by `chunkwright.grid`, with the same result.
//!
//! The steps: [`crate::cut`] makes parts, one for each entry and inner chunk that meet; the indexes of the touched
//! shards are read, decoded and looked up, several shards at a time; then it is a batch of chunks like any other,
//! in memory or in storage.

use std::sync::OnceLock;

use pyo3::prelude::*;

use crate::batch::{Inputs, each, each_stored};
use crate::buffers::Array;
use crate::chain::{Decoded, decode};
use crate::cut::{Parts, cut};
use crate::errors::{Fault, Kind, Outcome};
use crate::program::{Chunk, Columns, Program, PyBuffers, PyEntries, Rows};
use crate::read::Reading;
use crate::read_stored;
use crate::worker::{Memory, Worker};

/// Bytes of an entry of an index.
const ENTRY: usize = 16;

/// Offset and length of an inner chunk that is missing.
const ABSENT: u64 = u64::MAX;

/// Where an inner chunk is in its owner, negative for a missing one, and how many bytes it has.
type Span = (i64, i64);

/// The sharding codec, for reading.
#[pyclass(frozen, module = "chunkwright_rust._native")]
pub struct Shards {
    inner: Py<Program>,
    index: Py<Program>,
    grid: Vec<usize>,
    layout: IndexLayout,
}

/// Where the index of a shard is, how its numbers are stored, and what it may say.
struct IndexLayout {
    size: usize,
    at_start: bool,
    big_endian: bool,
    /// The least and the most bytes of an encoded inner chunk, when they are known.
    inner: (u64, Option<u64>),
}

#[pymethods]
impl Shards {
    /// Inner chunks along each axis.
    #[must_use]
    pub fn grid(&self) -> &[usize] {
        &self.grid
    }

    #[new]
    #[pyo3(signature = (inner, index, grid, index_size, at_start, big_endian, inner_size))]
    fn new(
        inner: Py<Program>,
        index: Py<Program>,
        grid: Vec<usize>,
        index_size: usize,
        at_start: bool,
        big_endian: bool,
        inner_size: (u64, Option<u64>),
    ) -> Self {
        let layout = IndexLayout { size: index_size, at_start, big_endian, inner: inner_size };
        Self { inner, index, grid, layout }
    }

    /// Decode parts of shards that are in memory, and put the entries' elements into an array.
    #[allow(clippy::too_many_arguments, reason = "Python hands over columns, not objects")]
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 hands them over by value")]
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
        let rows = Rows::get(&buffers)?;
        self.read(py, &entries, out, unit, &fill, |reading| {
            let inputs = rows.inputs();
            inputs.check()?;
            reading.run(&inputs, max_workers)
        })
    }
}

impl Shards {
    /// Set a reading up, and let it be done without the GIL.
    ///
    /// # Errors
    /// When the arguments do not belong together, or the work fails.
    pub fn read(
        &self,
        py: Python<'_>,
        entries: &PyEntries<'_>,
        out: &Bound<'_, PyAny>,
        unit: usize,
        fill: &[u8],
        work: impl FnOnce(&ShardReading<'_>) -> Outcome<()> + Send,
    ) -> PyResult<()> {
        let inner = self.inner.get();
        let element = inner.filled_element(py, unit, fill)?;
        let columns = Columns::get(entries)?;
        let out = Array::get(out, columns.out_ndim(), element.size, true)?;
        py.detach(|| {
            let entries = columns.entries();
            inner.check(&entries)?;
            let parts = cut(&entries, &inner.chunk().layout.shape, &self.grid)?;
            let cut_entries = parts.numbers.entries(&entries.axes, columns.out_ndim());
            let reading = Reading { chunk: inner.chunk(), entries: &cut_entries, out: &out, element, fill };
            work(&ShardReading::new(self, &parts, reading))
        })
        .map_err(|fault| fault.into_error(py))
    }
}

/// Parts of shards, and the places in one array where their entries go.
pub struct ShardReading<'a> {
    shards: &'a Shards,
    index: &'a Chunk,
    parts: &'a Parts,
    reading: Reading<'a>,
}

impl<'a> ShardReading<'a> {
    /// Set a reading up; its entries are the parts.
    #[must_use]
    pub fn new(shards: &'a Shards, parts: &'a Parts, reading: Reading<'a>) -> Self {
        Self { shards, index: shards.index.get().chunk(), parts, reading }
    }

    fn check(&self, shards: usize) -> Outcome<()> {
        if self.parts.owners.last().is_none_or(|last| *last < shards) {
            return Ok(());
        }
        Err(Fault::new(Kind::Plan, "entries name chunks that are not there"))
    }

    /// Do it all, with shards that are in memory.
    ///
    /// # Errors
    /// The fault of the first shard that has one.
    pub fn run(&self, inputs: &Inputs<'_>, max_workers: Option<usize>) -> Outcome<()> {
        self.check(inputs.len())?;
        let layout = &self.shards.layout;
        let touched = self.parts.shards();
        let spans: Vec<OnceLock<Vec<Span>>> = touched.iter().map(|_| OnceLock::new()).collect();
        each(touched.len(), layout.size, max_workers, |number, worker| {
            let (shard, cells) = &touched[number];
            let found = inputs.row(*shard).and_then(|bytes| match bytes {
                None => Ok(vec![(-1, 0); cells.len()]),
                Some(bytes) => {
                    let begin = layout.begin(bytes.len())?;
                    let index = &bytes[begin..begin + layout.size];
                    let base = usize::try_from(inputs.offset[*shard]).unwrap_or(0);
                    self.look_up(index, &self.parts.cells[cells.clone()], base, bytes.len(), worker)
                }
            });
            let _ = spans[number].set(found.map_err(|fault| fault.at(*shard))?);
            Ok(())
        })?;
        let found = Found::new(self.parts, &spans, inputs.source);
        let owners = inputs.owners.clone();
        let inner = Inputs { owners, source: &found.source, offset: &found.offset, length: &found.length };
        self.reading.run(&inner, max_workers).map_err(|fault| self.parts.at_shard(fault))
    }

    /// Do it all, with shards that are in storage.
    ///
    /// # Errors
    /// The fault of the first shard that has one.
    pub fn run_stored(&self, rows: &read_stored::Rows<'_>, max_workers: Option<usize>) -> Outcome<()> {
        rows.check()?;
        self.check(rows.offset.len())?;
        let touched = self.parts.shards();
        let spans: Vec<OnceLock<Vec<Span>>> = touched.iter().map(|_| OnceLock::new()).collect();
        each_stored(touched.len(), self.shards.layout.size / 4, max_workers, |number, worker, pace| {
            let (shard, cells) = &touched[number];
            let mut memory = std::mem::take(&mut worker.input);
            let found = self.look_up_stored(rows, *shard, &self.parts.cells[cells.clone()], &mut memory, worker, pace);
            worker.input = memory;
            let _ = spans[number].set(found.map_err(|fault| fault.at(*shard))?);
            Ok(())
        })?;
        let found = Found::new(self.parts, &spans, rows.source);
        let inner = read_stored::Rows {
            storage: rows.storage,
            source: &found.source,
            offset: &found.offset,
            length: &found.length,
        };
        self.reading.run_stored(&inner, max_workers).map_err(|fault| self.parts.at_shard(fault))
    }

    fn look_up_stored(
        &self,
        rows: &read_stored::Rows<'_>,
        shard: usize,
        cells: &[usize],
        memory: &mut Memory,
        worker: &mut Worker,
        pace: &crate::pace::Pace,
    ) -> Outcome<Vec<Span>> {
        let layout = &self.shards.layout;
        let missing = || Ok(vec![(-1, 0); cells.len()]);
        let Some((source, base, length)) = rows.row(shard)? else {
            return missing();
        };
        let size = match length {
            Some(length) => Some(length),
            None => pace.request(|| (0, rows.storage.hold(source)))?.map(|size| size.saturating_sub(base)),
        };
        let Some(size) = size else {
            return missing();
        };
        let begin = layout.begin(size)?;
        let read = pace.request(|| {
            let read = rows.storage.read(source, base + begin, Some(layout.size), memory);
            (layout.size, read)
        })?;
        if read.is_none() {
            return missing();
        }
        let _permit = pace.permit();
        self.look_up(memory.filled(layout.size), cells, base, size, worker)
    }

    /// Find inner chunks of a shard of `size` bytes, which begins at `base` of its owner.
    fn look_up(
        &self,
        index: &[u8],
        cells: &[usize],
        base: usize,
        size: usize,
        worker: &mut Worker,
    ) -> Outcome<Vec<Span>> {
        let decoded = decode(&self.index.stages, index, worker, None)?;
        let table = match &decoded {
            Decoded::Input(data) => data,
            Decoded::Front(range) => &worker.front.filled(range.end)[range.clone()],
            Decoded::Target => &[][..],
        };
        if table.len() != self.index.nbytes {
            return Err(Fault::length("wrong length", self.index.nbytes, table.len()).by("bytes"));
        }
        cells.iter().map(|cell| self.shards.layout.span(table, *cell, base, size)).collect()
    }
}

impl IndexLayout {
    /// Where the index of a shard begins.
    fn begin(&self, size: usize) -> Outcome<usize> {
        match size.checked_sub(self.size) {
            Some(_) if self.at_start => Ok(0),
            Some(begin) => Ok(begin),
            None => Err(fault("the shard is too short for its index").with(self.size, size)),
        }
    }

    /// Look an inner chunk up, and check what the index says.
    fn span(&self, table: &[u8], cell: usize, base: usize, size: usize) -> Outcome<Span> {
        let entry = cell.checked_mul(ENTRY).and_then(|begin| table.get(begin..begin + ENTRY));
        let entry = entry.ok_or_else(|| Fault::new(Kind::Plan, "there is no such inner chunk"))?;
        let (offset, length) = (self.number(&entry[..ENTRY / 2]), self.number(&entry[ENTRY / 2..]));
        if (offset, length) == (ABSENT, ABSENT) {
            return Ok((-1, 0));
        }
        let refuse =
            |message: &str| -> Outcome<Span> { Err(fault(format!("{message}: offset {offset}, length {length}"))) };
        let Some(end) = offset.checked_add(length).filter(|end| i64::try_from(*end).is_ok()) else {
            return refuse("an index entry is out of range");
        };
        match self.inner {
            (least, Some(most)) if least == most && length != most => {
                return refuse(&format!("an inner chunk must have {most} bytes"));
            }
            (_, Some(most)) if length > most => {
                return refuse(&format!("an inner chunk has at most {most} bytes"));
            }
            _ => {}
        }
        if self.at_start && length > 0 && offset < self.size as u64 {
            return refuse("an index entry points into the index");
        }
        let data_end = if self.at_start { size } else { size - self.size };
        if end > data_end as u64 {
            return refuse("an index entry points outside the shard's data");
        }
        let first = i64::try_from(base as u64 + offset);
        let length = i64::try_from(length);
        match (first, length) {
            (Ok(first), Ok(length)) => Ok((first, length)),
            _ => refuse("an index entry is out of range"),
        }
    }

    fn number(&self, bytes: &[u8]) -> u64 {
        let bytes = bytes.try_into().unwrap_or([u8::MAX; 8]);
        if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
    }
}

/// Columns of inner chunks that were found.
struct Found {
    source: Vec<i64>,
    offset: Vec<i64>,
    length: Vec<i64>,
}

impl Found {
    fn new(parts: &Parts, spans: &[OnceLock<Vec<Span>>], source: &[i64]) -> Self {
        let spans = || spans.iter().filter_map(OnceLock::get).flatten();
        Self {
            source: parts.owners.iter().map(|shard| source[*shard]).collect(),
            offset: spans().map(|span| span.0).collect(),
            length: spans().map(|span| span.1).collect(),
        }
    }
}

#[allow(clippy::unnecessary_box_returns, reason = "faults are handed on in boxes")]
fn fault(message: impl Into<std::borrow::Cow<'static, str>>) -> Box<Fault> {
    Fault::new(Kind::ShardIndex, message).by("sharding_indexed")
}
