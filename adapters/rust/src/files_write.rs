//! Replace files, each entirely or not at all.
//!
//! Bytes go to a new file beside the old one, whose name then becomes the old one's; a failure leaves the old file and no
//! other. Nothing is flushed to the device: after a power cut the last chunks may be missing, old or incomplete, as with
//! any file that is written and not synchronised.
//!
//! Where the system can exchange two names, an old file is exchanged with the new one and then removed. Readers see
//! the same as with a rename, but file systems do not take it for the end of a transaction: a rename over a file makes
//! ext4 write the new bytes to the device first, which takes far longer than to write them to the page cache.

#![allow(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::batch::each_stored;
use crate::buffers::Bytes;
use crate::errors::{Fault, Outcome};
use crate::files::Files;

impl Files {
    /// Write all files; None removes one.
    ///
    /// # Errors
    /// The fault of the first file that has one; others may have been written.
    pub fn write_all(&self, contents: &[Option<Bytes>], max_workers: Option<usize>) -> Outcome<()> {
        let bytes = contents.iter().flatten().map(|bytes| bytes.as_slice().len()).sum::<usize>();
        let each = bytes / contents.len().max(1) + CALLS;
        each_stored(contents.len(), each, max_workers, |number, _, pace| {
            let path = self.path(number);
            let bytes = contents[number].as_ref().map(Bytes::as_slice);
            let done = pace.store(bytes.map_or(0, <[u8]>::len), Duration::ZERO, || match bytes {
                Some(bytes) => replace(&path, bytes),
                None => remove(&path),
            });
            done.map_err(|error| Fault::system(&error, &path))
        })
    }
}

/// What the calls of the system for one file are worth, in bytes.
const CALLS: usize = 16 << 10;

/// How often a file is made whose folder others remove at the same time.
const ATTEMPTS: usize = 8;

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_by(path, |file| file.write_all(bytes))
}

/// Replace a file by what a function writes.
///
/// # Errors
/// Those of the function, and of the system; the file is as it was.
pub fn replace_by(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let (mut file, temporary) = create_beside(path)?;
    let done = write(&mut file).and_then(|()| {
        drop(file);
        put_in_place(&temporary, path)
    });
    if done.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    done
}

/// Make a new file in the folder of another, and the folder if need be.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    for _ in 0..ATTEMPTS {
        let temporary = temporary_name(path);
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((file, temporary)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let folder = path.parent().ok_or(error)?;
                fs::create_dir_all(folder)?;
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from_raw_os_error(libc::ENOENT))
}

fn temporary_name(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Processes that share a folder must not meet, forked ones neither: the seed is random, the number this process's.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let token = RandomState::new().hash_one((std::process::id(), number));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{token:016x}.partial"))
}

#[cfg(not(target_os = "linux"))]
fn put_in_place(temporary: &Path, path: &Path) -> io::Result<()> {
    fs::rename(temporary, path)
}

#[cfg(target_os = "linux")]
fn put_in_place(temporary: &Path, path: &Path) -> io::Result<()> {
    if exchange(temporary, path).is_err() {
        // There is no old file, or the file system cannot exchange names.
        return fs::rename(temporary, path);
    }
    fs::remove_file(temporary).or_else(|error| {
        // What was there cannot be removed, for instance because it is a directory: it stays.
        exchange(temporary, path)?;
        Err(if error.kind() == ErrorKind::PermissionDenied { is_a_directory(path, error) } else { error })
    })
}

/// Some systems say "not permitted" for a directory.
#[cfg(target_os = "linux")]
fn is_a_directory(path: &Path, error: io::Error) -> io::Error {
    if path.is_dir() { io::Error::from_raw_os_error(libc::EISDIR) } else { error }
}

#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    let (one, other) = (CString::new(one.as_os_str().as_bytes())?, CString::new(other.as_os_str().as_bytes())?);
    // SAFETY: both are strings that end with a zero, and live until the call returns.
    let result =
        unsafe { libc::renameat2(libc::AT_FDCWD, one.as_ptr(), libc::AT_FDCWD, other.as_ptr(), libc::RENAME_EXCHANGE) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Remove a file, or the directory that is in its place; it may be missing.
///
/// # Errors
/// When the system does not.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(_) if fs::symlink_metadata(path).is_ok_and(|status| status.is_dir()) => fs::remove_dir_all(path),
        done => done,
    }
}
