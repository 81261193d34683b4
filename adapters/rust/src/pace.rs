//! How long storage keeps the threads of a batch waiting, and what is done about it.
//!
//! Files in the page cache are read as fast as memory: then the threads that compute do best to read as well, and more
//! of them would only be in each other's way. A network file system answers after a millisecond, and many requests
//! have to be under way. Nobody says beforehand which it is; so requests are timed, and when a second one was slow, many
//! threads that wait join the batch. From then on a thread needs a permit to compute.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longer than the page cache needs for a small file, shorter than most devices do.
const SLOW: Duration = Duration::from_micros(250);

/// What the page cache takes for a byte that is read, at most, and for one that is stored while the journal is busy too.
const READ_NANOSECONDS: u64 = 2;
const STORE_NANOSECONDS: u64 = 16;

/// So many slow requests are no accident.
const SLOW_REQUESTS: usize = 2;

/// The pace of one batch.
pub struct Pace {
    slow: AtomicUsize,
    grown: AtomicBool,
    permits: Mutex<usize>,
    returned: Condvar,
}

/// Leave to compute, until it is dropped.
pub struct Permit<'a>(Option<&'a Pace>);

impl Pace {
    /// A batch in which so many threads may compute at a time.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        let (slow, grown) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { slow, grown, permits: Mutex::new(workers), returned: Condvar::new() }
    }

    /// Time a request, which returns how many bytes it was about besides its result.
    pub fn request<T>(&self, request: impl FnOnce() -> (usize, T)) -> T {
        self.time(SLOW, READ_NANOSECONDS, request)
    }

    /// Time a request that stores so many bytes, which took so long to make: where that is longer than to store them, more
    /// threads would only be in each other's way.
    pub fn store<T>(&self, bytes: usize, making: Duration, request: impl FnOnce() -> T) -> T {
        self.time(making.max(SLOW), STORE_NANOSECONDS, || (bytes, request()))
    }

    fn time<T>(&self, slow: Duration, each: u64, request: impl FnOnce() -> (usize, T)) -> T {
        let begin = Instant::now();
        let (bytes, result) = request();
        let usual = slow + Duration::from_nanos(each.saturating_mul(bytes as u64));
        if begin.elapsed() > usual {
            self.slow.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    /// Whether more threads should join now; says so once.
    #[must_use]
    pub fn grows(&self) -> bool {
        self.is_slow() && !self.grown.swap(true, Ordering::Relaxed)
    }

    /// Whether requests take long here.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        self.slow.load(Ordering::Relaxed) >= SLOW_REQUESTS
    }

    /// Whether more threads have joined.
    #[must_use]
    pub fn has_grown(&self) -> bool {
        self.grown.load(Ordering::Relaxed)
    }

    /// Wait for leave to compute.
    #[must_use]
    pub fn permit(&self) -> Permit<'_> {
        if !self.has_grown() {
            return Permit(None);
        }
        let mut permits = self.permits.lock().unwrap_or_else(PoisonError::into_inner);
        while *permits == 0 {
            permits = self.returned.wait(permits).unwrap_or_else(PoisonError::into_inner);
        }
        *permits -= 1;
        Permit(Some(self))
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(pace) = self.0 {
            *pace.permits.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            pace.returned.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Pace;
    use crate::batch::each_stored;

    #[test]
    fn a_batch_grows_once_after_two_slow_requests() {
        let pace = Pace::new(1);
        pace.slow.fetch_add(1, Ordering::Relaxed);
        assert!(!pace.grows());
        pace.slow.fetch_add(1, Ordering::Relaxed);
        assert!(pace.grows() && pace.has_grown() && !pace.grows());
    }

    #[test]
    fn many_requests_are_under_way_when_storage_is_slow_but_one_thread_computes() {
        // The last sixteen requests end only when they are all under way.
        let (together, computing) = (Barrier::new(16), AtomicUsize::new(0));
        let result = each_stored(18, 1_usize << 17, Some(1), |number, _, pace| {
            if number < 2 {
                pace.slow.fetch_add(1, Ordering::Relaxed);
            } else {
                together.wait();
            }
            let _permit = pace.permit();
            assert_eq!(computing.fetch_add(1, Ordering::Relaxed), 0);
            computing.fetch_sub(1, Ordering::Relaxed);
            Ok(())
        });
        assert!(result.is_ok());
    }
}
