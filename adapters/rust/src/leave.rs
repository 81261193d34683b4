//! How many files calls may hold open: those of many threads together must not use up what the process has.

use std::sync::atomic::{AtomicU64, Ordering};

/// Files that one call holds open at a time, at most.
const MOST_HELD: usize = 64;

/// Files that calls of a process hold open at the moment, below the number of that process. Not behind a lock, which a
/// forked child could find locked by a thread that it has not.
static HELD: AtomicU64 = AtomicU64::new(0);

/// Leave to hold some files open, until it is dropped: calls of many threads together must not use up what the process has.
pub struct Leave(usize);

impl Leave {
    /// Take leave for as many files as are wanted, or for fewer when there are others; always for one.
    #[must_use]
    pub fn take(wanted: usize) -> Self {
        let granted = |held: usize| wanted.min((most() / 4).saturating_sub(held)).clamp(1, MOST_HELD);
        let before = update(|held| held + granted(held));
        Self(granted(before))
    }

    /// For how many.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0
    }
}

impl Drop for Leave {
    fn drop(&mut self) {
        update(|held| held.saturating_sub(self.0));
    }
}

/// Change how many files are held, and say how many that were before.
fn update(change: impl Fn(usize) -> usize) -> usize {
    let process = u64::from(std::process::id()) << 32;
    // Forked: what the parent's calls hold is nobody's here.
    let held = |state: u64| if state >> 32 == process >> 32 { state & u64::from(u32::MAX) } else { 0 };
    let held = |state: u64| usize::try_from(held(state)).unwrap_or(usize::MAX);
    let next = |state: u64| Some(process | u64::from(u32::try_from(change(held(state))).unwrap_or(u32::MAX)));
    held(HELD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or_default())
}

/// Files that this process may have open at a time.
#[cfg(unix)]
#[must_use]
pub fn most() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is ours, and is filled or left alone.
    #[allow(unsafe_code)]
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    if result == 0 { usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX) } else { 256 }
}

/// Files that this process may have open at a time, about.
#[cfg(not(unix))]
#[must_use]
pub fn most() -> usize {
    512
}

#[cfg(test)]
mod tests {
    use super::{Leave, MOST_HELD, most};

    #[test]
    fn there_is_always_leave_for_one_file_and_never_for_too_many() {
        let leaves: Vec<Leave> = (0..=most() / MOST_HELD).map(|_| Leave::take(1000)).collect();
        assert!(leaves.iter().all(|leave| (1..=MOST_HELD).contains(&leave.count())));
        assert_eq!(leaves.last().map(Leave::count), Some(1));
    }
}
