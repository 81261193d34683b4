//! Decoded indexes of shards that are files, kept from one call to the next.
//!
//! An index is used again only for the file that it was read from, unchanged: every call opens the file and asks the
//! system about it anyway, and what that says (device, inode, size, times of the last changes) is compared. A file that
//! was changed within the last seconds may change again without its times showing it, because they are coarse; its index
//! is not kept. What was kept says where inner chunks are said to be, no more: every entry is checked again when it is
//! used.
//!
//! There are two generations: what is used moves to the young one, and when that holds half of what may be kept, the old
//! one is dropped and takes its place. Nobody waits for the lock: it is held for a moment only, and after a fork it may
//! be held by a thread that is no more. Whoever finds it taken does without.

use std::collections::HashMap;
use std::hint::spin_loop;
use std::mem::{replace, take};
use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::program::Chunk;
use crate::shard::Index;

/// Times of files may be as coarse as so many seconds.
static COARSE: AtomicI64 = AtomicI64::new(2);

/// Looks at the lock before it is given up.
const PATIENCE: usize = 64;

/// Bytes that an index takes besides its numbers, about.
const OVERHEAD: usize = 256;

/// What the system says of a file: equal as long as it is the same file and unchanged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Version {
    file: (u64, u64),
    size: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Which index of a file: its bytes, and what they mean.
pub struct Wanted<'a> {
    /// The file.
    pub version: Version,
    /// Where the index is.
    pub span: Range<usize>,
    /// What decodes it.
    pub form: &'a Arc<Chunk>,
}

/// An index, and what it is the index of.
struct Kept {
    version: Version,
    span: Range<usize>,
    form: Arc<Chunk>,
    index: Arc<Index>,
}

#[derive(Default)]
struct Generation {
    kept: HashMap<(u64, u64), Kept>,
    nbytes: usize,
}

#[derive(Default)]
struct Generations {
    young: Generation,
    old: Generation,
}

// A constant, so that no thread has to make it while another forks.
static CACHE: Mutex<Option<Generations>> = Mutex::new(None);
static HITS: AtomicU64 = AtomicU64::new(0);

impl Version {
    /// What the system says of a file.
    #[cfg(unix)]
    #[must_use]
    pub fn of(status: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;

        Self {
            file: (status.dev(), status.ino()),
            size: status.size(),
            modified: (status.mtime(), status.mtime_nsec()),
            changed: (status.ctime(), status.ctime_nsec()),
        }
    }

    /// Whether every later change will show. To be asked before the bytes are read.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let Ok(now) = SystemTime::now().duration_since(UNIX_EPOCH) else {
            return false;
        };
        let now = (i64::try_from(now.as_secs()).unwrap_or(0), i64::from(now.subsec_nanos()));
        let (seconds, nanoseconds) = self.modified.max(self.changed);
        (seconds.saturating_add(COARSE.load(Ordering::Relaxed)), nanoseconds) <= now
    }
}

impl Kept {
    fn nbytes(&self) -> usize {
        OVERHEAD + self.index.nbytes()
    }

    fn is(&self, wanted: &Wanted<'_>) -> bool {
        self.version == wanted.version && self.span == wanted.span && Arc::ptr_eq(&self.form, wanted.form)
    }
}

impl Generation {
    fn remove(&mut self, file: (u64, u64)) -> Option<Kept> {
        let kept = self.kept.remove(&file)?;
        self.nbytes -= kept.nbytes();
        Some(kept)
    }
}

impl Generations {
    fn find(&mut self, wanted: &Wanted<'_>, limit: usize) -> (Option<Arc<Index>>, Generation) {
        let file = wanted.version.file;
        if let Some(kept) = self.young.kept.get(&file) {
            return (kept.is(wanted).then(|| Arc::clone(&kept.index)), Generation::default());
        }
        let Some(kept) = self.old.remove(file).filter(|kept| kept.is(wanted)) else {
            return (None, Generation::default());
        };
        let index = Arc::clone(&kept.index);
        (Some(index), self.keep(kept, limit))
    }

    /// Keep an index; returns what has to go for it.
    fn keep(&mut self, kept: Kept, limit: usize) -> Generation {
        let (nbytes, half, file) = (kept.nbytes(), limit / 2, kept.version.file);
        self.young.remove(file);
        self.old.remove(file);
        if nbytes > half {
            return Generation::default();
        }
        let mut gone = Generation::default();
        if self.young.nbytes + nbytes > half {
            gone = replace(&mut self.old, take(&mut self.young));
        }
        self.young.nbytes += nbytes;
        self.young.kept.insert(file, kept);
        gone
    }

    /// Hold no more than a limit; returns what has to go.
    fn shrink(&mut self, limit: usize) -> [Generation; 2] {
        let mut gone = [Generation::default(), Generation::default()];
        if self.young.nbytes + self.old.nbytes > limit {
            gone[0] = take(&mut self.old);
        }
        if self.young.nbytes > limit {
            gone[1] = take(&mut self.young);
        }
        gone
    }
}

/// The index of a file, if it is known.
#[must_use]
pub fn find(wanted: &Wanted<'_>, limit: usize) -> Option<Arc<Index>> {
    // What goes is dropped when the lock is free again.
    let (found, _gone) = look()?.get_or_insert_default().find(wanted, limit);
    if found.is_some() {
        HITS.fetch_add(1, Ordering::Relaxed);
    }
    found
}

/// Keep the index of a file that had settled when it was read.
pub fn keep(wanted: &Wanted<'_>, index: &Arc<Index>, limit: usize) {
    let Wanted { version, span, form } = wanted;
    let kept = Kept { version: *version, span: span.clone(), form: Arc::clone(form), index: Arc::clone(index) };
    let _gone = look().map(|mut cache| cache.get_or_insert_default().keep(kept, limit));
}

/// Hold no more than a limit from now on.
pub fn shrink(limit: usize) {
    let _gone = look().and_then(|mut cache| cache.as_mut().map(|cache| cache.shrink(limit)));
}

/// Say how many seconds times of files may be apart and look the same; returns what held before. Tests do not wait.
pub fn set_coarse(seconds: i64) -> i64 {
    COARSE.swap(seconds, Ordering::Relaxed)
}

/// How often an index was found, and bytes that are kept.
#[must_use]
pub fn state() -> (u64, usize) {
    let nbytes = look().and_then(|cache| cache.as_ref().map(|cache| cache.young.nbytes + cache.old.nbytes));
    (HITS.load(Ordering::Relaxed), nbytes.unwrap_or(0))
}

fn look() -> Option<MutexGuard<'static, Option<Generations>>> {
    for _ in 0..PATIENCE {
        match CACHE.try_lock() {
            Ok(cache) => return Some(cache),
            Err(TryLockError::Poisoned(cache)) => return Some(cache.into_inner()),
            Err(TryLockError::WouldBlock) => spin_loop(),
        }
    }
    None
}
