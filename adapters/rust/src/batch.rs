//! One call: the chunks of a batch, shared among threads.
//!
//! Each thread takes the next few chunks until there are none. The fault of the first chunk that has one is
//! reported, whichever thread met it; after a fault no further chunks are begun.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::errors::{Fault, Kind, Outcome};
use crate::load::Load;
use crate::pace::Pace;
use crate::pool;
use crate::worker::Worker;

/// Bytes of decoded chunks that a thread takes at once.
const BYTES_AT_ONCE: usize = 64 << 10;

/// Encoded chunks: owners and columns.
pub struct Inputs<'a> {
    /// Where the bytes are.
    pub owners: Vec<&'a [u8]>,
    /// The owner of each row.
    pub source: &'a [i64],
    /// First byte of each row, negative for missing chunks.
    pub offset: &'a [i64],
    /// Bytes of each row.
    pub length: &'a [i64],
}

impl<'a> Inputs<'a> {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offset.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.offset.is_empty()
    }

    /// Check that the columns belong together.
    ///
    /// # Errors
    /// When they do not.
    pub fn check(&self) -> Outcome<()> {
        if self.source.len() == self.len() && self.length.len() == self.len() {
            return Ok(());
        }
        Err(Fault::new(Kind::Plan, "columns of buffers do not belong together"))
    }

    /// The bytes of a row, None for a missing chunk.
    ///
    /// # Errors
    /// When they are not within their owner.
    pub fn row(&self, row: usize) -> Outcome<Option<&'a [u8]>> {
        let Ok(begin) = usize::try_from(self.offset[row]) else {
            return Ok(None);
        };
        let owner = usize::try_from(self.source[row]).ok().and_then(|source| self.owners.get(source));
        let end = usize::try_from(self.length[row]).ok().and_then(|length| begin.checked_add(length));
        match owner.zip(end).and_then(|(owner, end)| owner.get(begin..end)) {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(Fault::new(Kind::Plan, "a chunk is not within its buffer")),
        }
    }
}

/// Do something with each of `count` items of some load each.
///
/// # Errors
/// The fault of the first item that has one, with its position.
pub fn each<'a>(
    count: usize,
    load: impl Into<Load<'a>>,
    max_workers: Option<usize>,
    work: impl Fn(usize, &mut Worker) -> Outcome<()> + Sync,
) -> Outcome<()> {
    let load = load.into();
    let at_once = (BYTES_AT_ONCE / load.bytes.max(1)).clamp(1, 256);
    Batch::new(count, at_once, load, None).run(helpers(count, load, max_workers), &work)
}

/// The same for items that come from storage or go there: while that keeps threads waiting, more of them join in, so
/// that many requests are under way; those that compute are no more than before.
///
/// # Errors
/// The fault of the first item that has one, with its position.
pub fn each_stored<'a>(
    count: usize,
    load: impl Into<Load<'a>>,
    max_workers: Option<usize>,
    work: impl Fn(usize, &mut Worker, &Pace) -> Outcome<()> + Sync,
) -> Outcome<()> {
    let pace = Pace::new(max_workers.unwrap_or_else(pool::size).max(1));
    let load = load.into();
    let at_once = (BYTES_AT_ONCE / load.bytes.max(1)).clamp(1, 16);
    let work = |number: usize, worker: &mut Worker| work(number, worker, &pace);
    Batch::new(count, at_once, load, Some(&pace)).run(helpers(count, load, max_workers), &work)
}

fn helpers(count: usize, load: Load<'_>, max_workers: Option<usize>) -> usize {
    let useful = load.threads(count);
    if useful < 2 {
        return 0;
    }
    useful.min(max_workers.unwrap_or_else(pool::size)).saturating_sub(1)
}

struct Batch<'a> {
    count: usize,
    at_once: usize,
    load: Load<'a>,
    pace: Option<&'a Pace>,
    next: AtomicUsize,
    stopped: AtomicBool,
    fault: Mutex<Option<Box<Fault>>>,
}

impl<'a> Batch<'a> {
    fn new(count: usize, at_once: usize, load: Load<'a>, pace: Option<&'a Pace>) -> Self {
        let (next, stopped, fault) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(None));
        Self { count, at_once, load, pace, next, stopped, fault }
    }

    fn run(self, helpers: usize, work: &(impl Fn(usize, &mut Worker) -> Outcome<()> + Sync)) -> Outcome<()> {
        pool::share(helpers, &|| Worker::lend(|worker| self.share(worker, work)));
        let fault = self.fault.into_inner().unwrap_or_else(PoisonError::into_inner);
        fault.map_or(Ok(()), Err)
    }

    fn share(&self, worker: &mut Worker, work: &(impl Fn(usize, &mut Worker) -> Outcome<()> + Sync)) {
        let started = Instant::now();
        let done = self.share_items(worker, work);
        if done > 0 {
            self.load.record(done, started.elapsed());
        }
    }

    /// Do items until there are none, and return how many that were.
    fn share_items(&self, worker: &mut Worker, work: &(impl Fn(usize, &mut Worker) -> Outcome<()> + Sync)) -> usize {
        let mut done = 0;
        loop {
            if self.pace.is_some_and(Pace::grows) {
                pool::share_waiting(self.load.bytes, &|| Worker::lend(|worker| self.share(worker, work)));
            }
            // Where threads wait, each takes one item, so that as many as possible are waited for together.
            let at_once = if self.pace.is_some_and(Pace::has_grown) { 1 } else { self.at_once };
            let first = self.next.fetch_add(at_once, Ordering::Relaxed);
            if first >= self.count || self.stopped.load(Ordering::Relaxed) {
                return done;
            }
            for number in first..self.count.min(first + at_once) {
                if let Err(fault) = guarded(|| work(number, worker)) {
                    self.report(if fault.position.is_none() { fault.at(number) } else { fault });
                    return done;
                }
                done += 1;
            }
        }
    }

    fn report(&self, fault: Box<Fault>) {
        self.stopped.store(true, Ordering::Relaxed);
        let mut kept = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_none_or(|kept| fault.position < kept.position) {
            *kept = Some(fault);
        }
    }
}

/// A panic is a bug, here or in a codec library; it must not take the host down.
fn guarded(work: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(Fault::corrupt(format!("the decoder failed ({})", text(&*panic)))))
}

fn text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// What the items of a batch became, by number.
pub struct Results(Mutex<Vec<Option<Vec<u8>>>>);

impl Results {
    /// Nothing, so many times.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self(Mutex::new(vec![None; count]))
    }

    /// Keep what an item became.
    pub fn set(&self, number: usize, made: Vec<u8>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(made);
    }

    /// Everything.
    #[must_use]
    pub fn into_inner(self) -> Vec<Option<Vec<u8>>> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::each;
    use crate::errors::Fault;

    #[test]
    fn the_first_fault_is_reported() {
        let result =
            each(
                1000,
                1_usize << 20,
                None,
                |number, _| if number >= 10 { Err(Fault::corrupt("expected")) } else { Ok(()) },
            );
        assert_eq!(result.map_err(|fault| fault.position), Err(Some(10)));
    }

    #[test]
    fn a_panic_is_a_fault() {
        let result = each(1, 1_usize, None, |_, _| panic!("expected"));
        assert_eq!(result.map_err(|fault| fault.position), Err(Some(0)));
    }
}
