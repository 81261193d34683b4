//! Write chunks that are files: what they held is read, and what they become is encoded and stored, by the same thread.
//!
//! A chunk needs nothing of the others, so that threads that take whole chunks are all busy all the time, and what was
//! read and encoded is still in their caches when it is used. Shards are written chunk by chunk of what is inside: the
//! first thread that comes to one looks at its index, and the one that made its last inner chunk puts the new file
//! together, from what was made and from the old file where nothing changed. Few are under way at a time.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::batch::each_stored;
use crate::buffers::{Array, Column};
use crate::cut::Cut;
use crate::entries::Entries;
use crate::errors::{Fault, Kind, Outcome};
use crate::file::{read_all_at, read_at};
use crate::files::Files;
use crate::files_write::{remove, replace_by};
use crate::load::Load;
use crate::pace::Pace;
use crate::program::{Columns, Program, PyEntries};
use crate::read_stored::Storage;
use crate::shard::{Form, Outline};
use crate::shards::Shards;
use crate::worker::{Memory, Worker};
use crate::write::{Base, Writing, rows};

/// Bytes that are collected before they are written, and that are copied at a time.
const AT_ONCE: usize = 256 << 10;

/// Gather chunks from an array, encode them, on top of what the files hold where `kept` is not negative, and replace the
/// files.
///
/// # Errors
/// The fault of the first chunk that has one; other files may have been replaced.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python hands over columns, not objects")]
#[allow(clippy::needless_pass_by_value, reason = "PyO3 hands them over by value")]
#[pyo3(signature = (files, program, source, entries, kept, unit, keep_empty, max_workers))]
pub fn encode_files(
    py: Python<'_>,
    files: &Files,
    program: &Program,
    source: &Bound<'_, PyAny>,
    entries: PyEntries<'_>,
    kept: &Bound<'_, PyAny>,
    unit: usize,
    keep_empty: bool,
    max_workers: Option<usize>,
) -> PyResult<()> {
    let chunk = program.chunk();
    let element = chunk.element(unit).map_err(|fault| fault.into_error(py))?;
    let (kept, columns) = (Column::get(kept)?, Columns::get(&entries)?);
    let source = &Array::get(source, columns.out_ndim(), element.size, false)?;
    py.detach(|| {
        let lists = columns.lists();
        let entries = columns.entries(&lists);
        program.check(&entries)?;
        let writing = Writing { chunk, source, selections: &entries, element, keep_empty };
        files.update(&writing, &entries, kept.as_slice(), max_workers)
    })
    .map_err(|fault| fault.into_error(py))
}

/// Gather inner chunks from an array, encode them, and put them into shards, beside those of the files where `kept` is
/// not negative, and replace the files.
///
/// # Errors
/// The fault of the first shard that has one; other files may have been replaced.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python hands over columns, not objects")]
#[allow(clippy::needless_pass_by_value, reason = "PyO3 hands them over by value")]
#[pyo3(signature = (files, shards, source, entries, kept, unit, keep_empty, max_workers))]
pub fn encode_shard_files(
    py: Python<'_>,
    files: &Files,
    shards: &Shards,
    source: &Bound<'_, PyAny>,
    entries: PyEntries<'_>,
    kept: &Bound<'_, PyAny>,
    unit: usize,
    keep_empty: bool,
    max_workers: Option<usize>,
) -> PyResult<()> {
    let form = shards.form();
    let element = form.inner.element(unit).map_err(|fault| fault.into_error(py))?;
    let (kept, columns) = (Column::get(kept)?, Columns::get(&entries)?);
    let source = &Array::get(source, columns.out_ndim(), element.size, false)?;
    py.detach(|| {
        let lists = columns.lists();
        let entries = columns.entries(&lists);
        files.check_kept(&entries, kept.as_slice())?;
        shards.write(&entries, source, element, keep_empty, |cut, writing| {
            ShardUpdating { files, form, cut, writing, kept: kept.as_slice() }.run(max_workers)
        })
    })
    .map_err(|fault| fault.into_error(py))
}

impl Files {
    fn check_kept(&self, entries: &Entries<'_>, kept: &[i64]) -> Outcome<()> {
        entries.check(self.keys().len())?;
        if kept.len() == self.keys().len() {
            return Ok(());
        }
        Err(Fault::new(Kind::Plan, "columns of files do not belong together"))
    }

    fn update(
        &self,
        writing: &Writing<'_>,
        entries: &Entries<'_>,
        kept: &[i64],
        max_workers: Option<usize>,
    ) -> Outcome<()> {
        self.check_kept(entries, kept)?;
        let rows = rows(entries.chunk, kept.len());
        let load = Load::like(writing.chunk.nbytes, &writing.chunk.encoding);
        each_stored(kept.len(), load, max_workers, |number, worker, pace| {
            let mut memory = std::mem::take(&mut worker.input);
            let result = self.update_one(writing, number, &rows, kept[number] >= 0, &mut memory, worker, pace);
            worker.input = memory;
            result
        })
    }

    #[allow(clippy::too_many_arguments, reason = "one step of the above")]
    fn update_one(
        &self,
        writing: &Writing<'_>,
        number: usize,
        rows: &[usize],
        is_kept: bool,
        memory: &mut Memory,
        worker: &mut Worker,
        pace: &Pace,
    ) -> Outcome<()> {
        let old = if is_kept {
            pace.request(|| {
                let read = self.read(number, 0, None, memory);
                (read.as_ref().ok().copied().flatten().unwrap_or(0), read)
            })?
        } else {
            None
        };
        let base = old.map_or(Base::Fill, |size| Base::Encoded(memory.filled(size)));
        let permit = pace.permit();
        let begin = Instant::now();
        let made = writing.one(rows[number]..rows[number + 1], base, worker)?;
        let making = begin.elapsed();
        drop(permit);
        let path = self.path(number);
        match &made {
            Some(bytes) => pace.store(bytes.len(), making, || store(&path, |file| file.write_all(bytes))),
            None => pace.store(0, making, || remove(&path).map_err(|error| Fault::system(&error, &path))),
        }
    }
}

fn store(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Outcome<()> {
    replace_by(path, write).map_err(|error| Fault::system(&error, path))
}

/// Shards in files, and the places in one array where elements of their inner chunks come from.
struct ShardUpdating<'a> {
    files: &'a Files,
    form: &'a Form,
    cut: &'a Cut<'a>,
    writing: &'a Writing<'a>,
    kept: &'a [i64],
}

/// A shard as it was before.
struct Old {
    file: File,
    path: PathBuf,
    places: Vec<Option<Range<usize>>>,
}

/// A shard as far as it is made.
struct Pending {
    /// Whether somebody looked for an old file.
    looked: bool,
    old: Option<Arc<Old>>,
    made: Vec<Option<Vec<u8>>>,
    left: usize,
}

impl ShardUpdating<'_> {
    fn run(&self, max_workers: Option<usize>) -> Outcome<()> {
        let touched = self.cut.by_shard(self.kept.len());
        let pending = |items: &Range<usize>| {
            let (made, left) = (vec![None; items.len()], items.len());
            Mutex::new(Pending { looked: false, old: None, made, left })
        };
        let pending: Vec<_> = touched.iter().map(pending).collect();
        let inner = &self.form.inner;
        // One shard after the other: a file is better written beside work that only computes than beside another file.
        each_stored(self.cut.count(), Load::like(inner.nbytes, &inner.encoding), max_workers, |item, worker, pace| {
            let (shard, _) = self.cut.inner_chunk(item);
            let first = touched[shard].start;
            let done = self.inner_chunk(item, item - first, &pending[shard], worker, pace);
            match done.map_err(|fault| fault.at(shard))? {
                Some((old, made)) => self.finish(shard, touched[shard].clone(), &made, old.as_deref(), worker, pace),
                None => Ok(()),
            }
        })?;
        for (shard, items) in touched.iter().enumerate().filter(|(_, items)| items.is_empty()) {
            // Nothing of it changes, but the empty inner chunks that it has may go.
            let pace = &Pace::new(1);
            let old = Worker::lend(|worker| self.old(shard, worker, pace)).map_err(|fault| fault.at(shard))?;
            Worker::lend(|worker| self.finish(shard, items.clone(), &[], old.as_ref(), worker, pace))?;
        }
        Ok(())
    }

    /// Make an inner chunk; everything of its shard when it was the last one.
    #[allow(clippy::type_complexity, reason = "an old shard and the new inner chunks")]
    fn inner_chunk(
        &self,
        item: usize,
        number: usize,
        pending: &Mutex<Pending>,
        worker: &mut Worker,
        pace: &Pace,
    ) -> Outcome<Option<(Option<Arc<Old>>, Vec<Option<Vec<u8>>>)>> {
        let (shard, cell) = self.cut.inner_chunk(item);
        let old = {
            let mut state = lock(pending);
            if !state.looked {
                state.old = self.old(shard, worker, pace)?.map(Arc::new);
                state.looked = true;
            }
            state.old.clone()
        };
        let mut memory = std::mem::take(&mut worker.input);
        let made = self.encode(item, cell, old.as_deref(), &mut memory, worker, pace);
        worker.input = memory;
        let mut state = lock(pending);
        state.made[number] = made?;
        state.left -= 1;
        Ok((state.left == 0).then(|| (state.old.take(), std::mem::take(&mut state.made))))
    }

    fn encode(
        &self,
        item: usize,
        cell: usize,
        old: Option<&Old>,
        memory: &mut Memory,
        worker: &mut Worker,
        pace: &Pace,
    ) -> Outcome<Option<Vec<u8>>> {
        let mut base = Base::Fill;
        let pieces = self.cut.pieces(item);
        if let Some((old, place)) = old.and_then(|old| Some((old, old.places[cell].clone()?)))
            && self.writing.keeps(&pieces)
        {
            let size = place.len();
            let read = pace.request(|| (size, old.read(place.start, memory.room(size))));
            read?;
            base = Base::Encoded(memory.filled(size));
        }
        let _permit = pace.permit();
        self.writing.one(pieces, base, worker)
    }

    /// Open the file of a shard and look at its index, with every entry checked.
    fn old(&self, shard: usize, worker: &mut Worker, pace: &Pace) -> Outcome<Option<Old>> {
        if self.kept[shard] < 0 {
            return Ok(None);
        }
        let Some((file, found)) = pace.request(|| (0, self.files.find(shard)))? else {
            return Ok(None);
        };
        let size = found.size;
        let mut memory = std::mem::take(&mut worker.input);
        let span = self.form.index_span(size);
        let index = span.and_then(|span| {
            let old = Old { file, path: self.files.path(shard), places: Vec::new() };
            let count = span.len();
            pace.request(|| (count, old.read(span.start, memory.room(count))))?;
            let index = self.form.decode(memory.filled(count), worker)?;
            Ok((old, index))
        });
        worker.input = memory;
        let (old, index) = index?;
        let places = (0..self.form.cells()).map(|cell| self.form.find(&index, cell, size)).collect::<Outcome<_>>()?;
        Ok(Some(Old { places, ..old }))
    }

    /// Put a shard together and replace its file, or remove it when nothing is in it.
    fn finish(
        &self,
        shard: usize,
        items: Range<usize>,
        made: &[Option<Vec<u8>>],
        old: Option<&Old>,
        worker: &mut Worker,
        pace: &Pace,
    ) -> Outcome<()> {
        let mut parts: Vec<Part<'_>> = (0..self.form.cells()).map(|_| Part::Nothing).collect();
        if let Some(old) = old {
            for (part, place) in parts.iter_mut().zip(&old.places) {
                *part = place.clone().map_or(Part::Nothing, Part::Kept);
            }
        }
        for (item, made) in items.zip(made) {
            let cell = self.cut.inner_chunk(item).1;
            parts[cell] = made.as_deref().filter(|made| !made.is_empty()).map_or(Part::Nothing, Part::Made);
        }
        let path = self.files.path(shard);
        let outline = self.form.outline(&|cell| parts[cell].len(), worker).map_err(|fault| fault.at(shard))?;
        let Some(outline) = outline else {
            return pace.store(0, Duration::ZERO, || remove(&path).map_err(|error| Fault::system(&error, &path)));
        };
        let mut memory = std::mem::take(&mut worker.input);
        let done = pace.store(outline.size, Duration::ZERO, || {
            store(&path, |file| self.write(file, &outline, &parts, old, memory.room(AT_ONCE)))
        });
        worker.input = memory;
        done.map_err(|fault| fault.at(shard))
    }

    fn write(
        &self,
        file: &mut File,
        outline: &Outline,
        parts: &[Part<'_>],
        old: Option<&Old>,
        memory: Outcome<&mut [u8]>,
    ) -> io::Result<()> {
        let memory = memory.map_err(|fault| io::Error::new(ErrorKind::OutOfMemory, fault.message))?;
        let mut file = BufWriter::with_capacity(AT_ONCE, file);
        if self.form.at_start {
            file.write_all(&outline.index)?;
        }
        let mut run = 0..0;
        for cell in self.form.order.iter().copied() {
            match &parts[cell] {
                Part::Kept(place) if place.start == run.end && !run.is_empty() => run.end = place.end,
                part => {
                    copy_run(old, std::mem::take(&mut run), &mut file, memory)?;
                    match part {
                        Part::Kept(place) => run = place.clone(),
                        Part::Made(bytes) => file.write_all(bytes)?,
                        Part::Nothing => {}
                    }
                }
            }
        }
        copy_run(old, run, &mut file, memory)?;
        if !self.form.at_start {
            file.write_all(&outline.index)?;
        }
        file.flush()
    }
}

/// What an inner chunk of a new shard is.
enum Part<'a> {
    Nothing,
    /// Bytes that are where they were in the old file.
    Kept(Range<usize>),
    /// New bytes.
    Made(&'a [u8]),
}

impl Part<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Kept(place) => place.len(),
            Self::Made(bytes) => bytes.len(),
        }
    }
}

impl Old {
    fn read(&self, offset: usize, into: Outcome<&mut [u8]>) -> Outcome<()> {
        read_all_at(&self.file, || self.path.clone(), offset, into?)
    }
}

/// Copy bytes that stay as they are.
fn copy_run(old: Option<&Old>, run: Range<usize>, file: &mut impl Write, memory: &mut [u8]) -> io::Result<()> {
    let Some(old) = old else {
        return Ok(());
    };
    let mut offset = run.start;
    while offset < run.end {
        let part = &mut memory[..(run.end - offset).min(AT_ONCE)];
        if read_at(&old.file, offset, part)? < part.len() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        file.write_all(part)?;
        offset += part.len();
    }
    Ok(())
}

fn lock(pending: &Mutex<Pending>) -> MutexGuard<'_, Pending> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}
