//! Files of the local file system below one root, named by keys.
//!
//! A file is either held open, so that all that is read comes from one version of it, or opened for one read and closed
//! again. What leads nowhere, a directory, or a file where a directory should be, is missing. Keys are checked when the
//! files are named: none leads out of the root, whatever the metadata says that it was made from.
//!
//! The call that reads chunks decodes them too ([`crate::read_stored`]); writing is in [`crate::files_write`].

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::batch::{Results, each_stored};
use crate::buffers::{Array, Bytes, Column};
use crate::errors::{Fault, Kind, Outcome};
use crate::file::{SHORTER, is_missing, look_at, open_at, read_all_at, read_at, size_of};
use crate::program::{Columns, Program, PyEntries, encoded};
use crate::read::Reading;
use crate::read_stored::{Object, Parts, Rows, Storage};
use crate::shards::Shards;
use crate::worker::Memory;

/// So many files make it worth to open their folder.
const MANY: usize = 8;

/// The folder that keys are relative to.
#[derive(Default)]
enum Folder {
    #[default]
    Closed,
    Open(Arc<File>),
    /// It cannot be read, though what is in it may be.
    Unusable,
}

/// One file.
#[derive(Default)]
struct Held {
    file: Mutex<Option<Arc<File>>>,
    missing: AtomicBool,
}

/// Files below a root.
#[pyclass(frozen, module = "chunkwright_rust._native")]
pub struct Files {
    root: PathBuf,
    /// The root, open, so that the way to it is not looked up again for each of many files.
    folder: Mutex<Folder>,
    keys: Vec<String>,
    held: Vec<Held>,
    /// Most bytes of indexes of shards that are kept.
    index_cache: usize,
}

/// Columns of ranges as Python gives them: file, offset, length.
type PyRanges<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

#[pymethods]
impl Files {
    /// Name files below a root.
    ///
    /// # Errors
    /// When a key leads out of it.
    #[new]
    #[pyo3(signature = (root, keys, index_cache=0))]
    pub fn new(root: PathBuf, keys: Vec<String>, index_cache: usize) -> PyResult<Self> {
        for key in &keys {
            if !stays_inside(key) {
                return Err(PyValueError::new_err(format!("key {key:?} leads out of the store")));
            }
        }
        let held = keys.iter().map(|_| Held::default()).collect();
        Ok(Self { root, folder: Mutex::default(), keys, held, index_cache })
    }

    /// Take over the descriptor of one file that has chunks in it, and is held open.
    #[staticmethod]
    #[must_use]
    #[pyo3(signature = (descriptor, path, index_cache=0))]
    pub fn packed(descriptor: RawFd, path: String, index_cache: usize) -> Self {
        // SAFETY: whoever calls this has made the descriptor for it alone.
        #[allow(unsafe_code)]
        let file = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        let held = Held { file: Mutex::new(Some(Arc::new(file))), ..Held::default() };
        let (root, folder) = (PathBuf::new(), Mutex::default());
        Self { root, folder, keys: vec![path], held: vec![held], index_cache }
    }

    fn __len__(&self) -> usize {
        self.keys.len()
    }

    /// Open all files, and return their sizes, -1 for those that are missing.
    fn open(&self, py: Python<'_>) -> PyResult<Vec<i64>> {
        py.detach(|| self.open_all()).map_err(|fault| fault.into_error(py))
    }

    /// Tell which files were found to be missing.
    #[must_use]
    pub fn missing(&self) -> Vec<bool> {
        self.held.iter().map(|held| held.missing.load(Ordering::Relaxed)).collect()
    }

    /// Close what is open.
    fn close(&self) {
        for held in &self.held {
            held.lock().take();
        }
        *self.folder.lock().unwrap_or_else(PoisonError::into_inner) = Folder::Closed;
    }

    /// Read ranges; None for those of missing files.
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 hands them over by value")]
    fn load<'py>(
        &self,
        py: Python<'py>,
        source: Bound<'py, PyAny>,
        offset: Bound<'py, PyAny>,
        length: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let columns = Ranges::get(&(source, offset, length))?;
        let made = py.detach(|| self.load_all(&columns.rows(self)));
        encoded(py, made)
    }

    /// Read and decode chunks, and put the entries' elements into an array.
    #[allow(clippy::too_many_arguments, reason = "Python hands over columns, not objects")]
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 hands them over by value")]
    #[pyo3(signature = (program, ranges, entries, out, unit, fill, max_workers))]
    fn decode_into(
        &self,
        py: Python<'_>,
        program: &Program,
        ranges: PyRanges<'_>,
        entries: PyEntries<'_>,
        out: &Bound<'_, PyAny>,
        unit: usize,
        fill: Vec<u8>,
        max_workers: Option<usize>,
    ) -> PyResult<()> {
        let element = program.filled_element(py, unit, &fill)?;
        let (ranges, columns) = (Ranges::get(&ranges)?, Columns::get(&entries)?);
        let out = Array::get(out, columns.out_ndim(), element.size, true)?;
        py.detach(|| {
            let lists = columns.lists();
            let entries = columns.entries(&lists);
            program.check(&entries)?;
            let reading = Reading { chunk: program.chunk(), selections: &entries, out: &out, element, fill: &fill };
            reading.run_stored(&entries, &ranges.rows(self), max_workers)
        })
        .map_err(|fault| fault.into_error(py))
    }

    /// Read and decode parts of shards, and put the entries' elements into an array.
    #[allow(clippy::too_many_arguments, reason = "Python hands over columns, not objects")]
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 hands them over by value")]
    #[pyo3(signature = (shards, ranges, entries, out, unit, fill, max_workers))]
    fn decode_shards_into(
        &self,
        py: Python<'_>,
        shards: &Shards,
        ranges: PyRanges<'_>,
        entries: PyEntries<'_>,
        out: &Bound<'_, PyAny>,
        unit: usize,
        fill: Vec<u8>,
        max_workers: Option<usize>,
    ) -> PyResult<()> {
        let (ranges, columns) = (Ranges::get(&ranges)?, Columns::get(&entries)?);
        let target = shards.target(out, &columns, unit, fill)?;
        let lists = columns.lists();
        py.detach(|| {
            let (entries, rows) = (columns.entries(&lists), ranges.rows(self));
            shards.read(&entries, &shards.cut(&entries)?, &target, |reading| reading.run_stored(&rows, max_workers))
        })
        .map_err(|fault| fault.into_error(py))
    }

    /// Replace files, each entirely or not at all; None removes one.
    #[pyo3(signature = (contents, max_workers))]
    #[allow(clippy::needless_pass_by_value, reason = "PyO3 hands it over by value")]
    fn write(
        &self,
        py: Python<'_>,
        contents: Vec<Option<Bound<'_, PyAny>>>,
        max_workers: Option<usize>,
    ) -> PyResult<()> {
        if contents.len() != self.keys.len() {
            return Err(PyValueError::new_err("one content per file is needed"));
        }
        let contents: Vec<Option<Bytes>> =
            contents.iter().map(|bytes| bytes.as_ref().map(Bytes::get).transpose()).collect::<PyResult<_>>()?;
        py.detach(|| self.write_all(&contents, max_workers)).map_err(|fault| fault.into_error(py))
    }
}

impl Files {
    /// The keys.
    #[must_use]
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The path of a file.
    #[must_use]
    pub fn path(&self, number: usize) -> PathBuf {
        self.root.join(&self.keys[number])
    }

    fn open_all(&self) -> Outcome<Vec<i64>> {
        let sizes: Vec<Mutex<i64>> = self.keys.iter().map(|_| Mutex::new(-1)).collect();
        each_stored(self.keys.len(), 1, None, |number, _, pace| {
            let found = pace.request(|| (0, self.find(number)))?;
            if let Some((file, Object { size, .. })) = found {
                *self.held[number].lock() = Some(Arc::new(file));
                *sizes[number].lock().unwrap_or_else(PoisonError::into_inner) = i64::try_from(size).unwrap_or(i64::MAX);
            }
            Ok(())
        })?;
        Ok(sizes.into_iter().map(|size| size.into_inner().unwrap_or_else(PoisonError::into_inner)).collect())
    }

    fn held(&self, number: usize) -> Outcome<&Held> {
        self.held.get(number).ok_or_else(|| Fault::new(Kind::Plan, "there is no such file"))
    }

    /// Say how large a file is, which is opened unless it is held open.
    fn opened(&self, number: usize, kept: Option<Arc<File>>) -> Outcome<Option<(Arc<File>, usize)>> {
        let Some(file) = kept else {
            return Ok(self.find(number)?.map(|(file, found)| (Arc::new(file), found.size)));
        };
        let size = size_of(&file).map_err(|error| Fault::system(&error, &self.path(number)))?;
        Ok(Some((file, size)))
    }

    /// Open a file, and say what it is; None when it is missing.
    ///
    /// # Errors
    /// When storage fails.
    pub fn find(&self, number: usize) -> Outcome<Option<(File, Object)>> {
        let Some(file) = self.open_file(number)? else {
            return Ok(None);
        };
        let found = look_at(&file);
        self.unless_missing(number, found).map(|found| found.map(|found| (file, found)))
    }

    fn open_file(&self, number: usize) -> Outcome<Option<File>> {
        let file = match self.folder() {
            Some(folder) => open_at(&folder, &self.keys[number]),
            None => File::open(self.path(number)),
        };
        self.unless_missing(number, file)
    }

    /// The root, for calls that open many files.
    fn folder(&self) -> Option<Arc<File>> {
        if self.keys.len() < MANY {
            return None;
        }
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*folder, Folder::Closed) {
            *folder = File::open(&self.root).map_or(Folder::Unusable, |folder| Folder::Open(Arc::new(folder)));
        }
        if let Folder::Open(folder) = &*folder { Some(Arc::clone(folder)) } else { None }
    }

    fn unless_missing<T>(&self, number: usize, found: io::Result<T>) -> Outcome<Option<T>> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_missing(&error) => {
                self.held[number].missing.store(true, Ordering::Relaxed);
                Ok(None)
            }
            Err(error) => Err(Fault::system(&error, &self.path(number))),
        }
    }

    /// Read a file from `offset` to its end.
    fn read_rest(&self, number: usize, file: &File, offset: usize, into: &mut Memory) -> Outcome<Option<usize>> {
        // Whether it fits into the memory that is there is found out by reading, which takes less than asking.
        let room = into.size();
        let read = read_at(file, offset, into.room(room)?);
        let fits = !read.as_ref().is_ok_and(|read| *read == room);
        if fits {
            return self.unless_missing(number, read);
        }
        let Some(size) = self.unless_missing(number, size_of(file))? else {
            return Ok(None);
        };
        let read = read_at(file, offset, into.room(size.saturating_sub(offset))?);
        self.unless_missing(number, read)
    }

    fn load_all(&self, rows: &Rows<'_>) -> Outcome<Vec<Option<Vec<u8>>>> {
        rows.check()?;
        let count = rows.offset.len();
        let results = Results::new(count);
        let bytes = rows.length.iter().map(|length| usize::try_from(*length).unwrap_or(1 << 20)).sum::<usize>();
        each_stored(count, bytes / count.max(1) / 4, None, |number, _, pace| {
            let Some((source, offset, length)) = rows.row(number)? else {
                return Ok(());
            };
            let mut memory = Memory::default();
            let read = pace.request(|| {
                let read = self.read(source, offset, length, &mut memory);
                (read.as_ref().ok().copied().flatten().unwrap_or(0), read)
            })?;
            if let Some(size) = read {
                results.set(number, memory.into_bytes(size));
            }
            Ok(())
        })?;
        Ok(results.into_inner())
    }
}

impl Storage for Files {
    fn release(&self, source: usize) {
        if let Some(held) = self.held.get(source) {
            held.lock().take();
        }
    }

    fn hold(&self, source: usize) -> Outcome<Option<Object>> {
        let held = self.held(source)?;
        if let Some(file) = held.lock().clone() {
            return look_at(&file).map(Some).map_err(|error| Fault::system(&error, &self.path(source)));
        }
        Ok(self.find(source)?.map(|(file, found)| {
            *held.lock() = Some(Arc::new(file));
            found
        }))
    }

    fn index_cache(&self) -> usize {
        self.index_cache
    }

    fn read(&self, source: usize, offset: usize, length: Option<usize>, into: &mut Memory) -> Outcome<Option<usize>> {
        let kept = self.held(source)?.lock().clone();
        let file = match kept {
            Some(file) => file,
            None => match self.open_file(source)? {
                Some(file) => Arc::new(file),
                None => return Ok(None),
            },
        };
        let Some(length) = length else {
            return self.read_rest(source, &file, offset, into);
        };
        let system = |error: io::Error| Fault::system(&error, &self.path(source));
        // A length that needs more memory may be one that somebody made up.
        let there =
            if length > into.size() { size_of(&file).map_err(system)?.saturating_sub(offset) } else { usize::MAX };
        let read = read_at(&file, offset, into.room(length.min(there))?).map_err(system)?;
        if read < length {
            return Err(Fault::length(SHORTER, length, read));
        }
        Ok(Some(read))
    }

    fn read_parts(&self, parts: &Parts<'_>, into: &mut Memory) -> Outcome<bool> {
        let kept = self.held(parts.source)?.lock().clone();
        let file = match (kept, parts.whole) {
            (Some(file), None) => file,
            (kept, whole) => {
                let Some((file, size)) = self.opened(parts.source, kept)? else {
                    return Ok(false);
                };
                let there = size.saturating_sub(parts.offset);
                if let Some(whole) = whole.filter(|whole| *whole != there) {
                    return Err(Fault::length("wrong length", whole, there).by("bytes"));
                }
                file
            }
        };
        let Some((first, last)) = parts.ranges.first().zip(parts.ranges.last()) else {
            return Ok(true);
        };
        let room = into.room(last.end - first.start)?;
        for range in parts.ranges {
            let part = &mut room[range.start - first.start..range.end - first.start];
            read_all_at(&file, || self.path(parts.source), parts.offset + range.start, part)?;
        }
        Ok(true)
    }
}

impl Held {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<File>>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Borrowed columns of ranges.
struct Ranges([Column; 3]);

impl Ranges {
    fn get((source, offset, length): &PyRanges<'_>) -> PyResult<Self> {
        Ok(Self([Column::get(source)?, Column::get(offset)?, Column::get(length)?]))
    }

    fn rows<'a>(&'a self, storage: &'a dyn Storage) -> Rows<'a> {
        let [source, offset, length] = self.0.each_ref().map(Column::as_slice);
        Rows { storage, source, offset, length }
    }
}

/// Whether a key leads to something below the root, judged by its text alone.
fn stays_inside(key: &str) -> bool {
    !key.starts_with('/') && !key.contains('\0') && key.split('/').all(|part| part != "..")
}

#[cfg(test)]
mod tests {
    use super::stays_inside;

    #[test]
    fn keys_stay_below_the_root() {
        for key in ["c/0", "", "a/..b/c", "./c"] {
            assert!(stays_inside(key), "{key}");
        }
        for key in ["..", "a/../../b", "/etc/passwd", "a\0b", "a/.."] {
            assert!(!stays_inside(key), "{key}");
        }
    }
}
