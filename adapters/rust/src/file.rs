//! One file of the local file system: opened, looked at, read.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::errors::{Fault, Outcome};
use crate::index_cache::Version;
use crate::read_stored::Object;

/// Open a file of a folder.
///
/// # Errors
/// When the system cannot.
pub fn open_at(folder: &File, key: &str) -> io::Result<File> {
    let key = CString::new(key)?;
    loop {
        // SAFETY: the key ends with a zero, and the folder is open.
        #[allow(unsafe_code)]
        let opened = unsafe { libc::openat(folder.as_raw_fd(), key.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        if opened >= 0 {
            // SAFETY: it was opened just now, and nobody else has it.
            #[allow(unsafe_code)]
            return Ok(File::from(unsafe { OwnedFd::from_raw_fd(opened) }));
        }
        let error = io::Error::last_os_error();
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Bytes of a file.
///
/// # Errors
/// For directories, and when the system cannot tell.
pub fn size_of(file: &File) -> io::Result<usize> {
    look_at(file).map(|found| found.size)
}

/// What a file is now.
///
/// # Errors
/// For directories, and when the system cannot tell.
pub fn look_at(file: &File) -> io::Result<Object> {
    let status = file.metadata()?;
    if status.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    let size = usize::try_from(status.len()).unwrap_or(usize::MAX);
    Ok(Object { size, version: Version::of(&status) })
}

/// Whether an error says that there is no file.
#[must_use]
pub fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory)
}

/// What is said of a file of which there is less than there has to be.
pub const SHORTER: &str = "the file is shorter than when it was looked at";

/// Fill memory with bytes that are known to be in a file.
///
/// # Errors
/// When storage fails, or the file has become shorter.
pub fn read_all_at(file: &File, path: impl FnOnce() -> PathBuf, offset: usize, into: &mut [u8]) -> Outcome<()> {
    match read_at(file, offset, into) {
        Ok(read) if read == into.len() => Ok(()),
        Ok(read) => Err(Fault::length(SHORTER, into.len(), read)),
        Err(error) => Err(Fault::system(&error, &path())),
    }
}

/// Read until memory is full or the file ends.
///
/// # Errors
/// When storage fails.
pub fn read_at(file: &File, offset: usize, into: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], (offset + done) as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
