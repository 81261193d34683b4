//! How many files calls may hold open: those of many threads together must not use up what the process has.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Files that one call holds open at a time, at most.
const MOST_HELD: usize = 64;

/// Files that calls of this process hold open at the moment, and which process that is.
static HELD: Mutex<(u32, usize)> = Mutex::new((0, 0));

/// Leave to hold some files open, until it is dropped: calls of many threads together must not use up what the process has.
pub struct Leave(usize);

impl Leave {
    /// Take leave for as many files as are wanted, or for fewer when there are others; always for one.
    #[must_use]
    pub fn take(wanted: usize) -> Self {
        let mut held = Self::held();
        let spare = (most() / 4).saturating_sub(held.1);
        let count = wanted.min(spare).clamp(1, MOST_HELD);
        held.1 += count;
        Self(count)
    }

    /// For how many.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0
    }

    fn held() -> MutexGuard<'static, (u32, usize)> {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if held.0 != process {
            // Forked: what the parent's calls hold is nobody's here.
            *held = (process, 0);
        }
        held
    }
}

impl Drop for Leave {
    fn drop(&mut self) {
        let mut held = Self::held();
        held.1 = held.1.saturating_sub(self.0);
    }
}

/// Files that this process may have open at a time.
#[cfg(unix)]
fn most() -> usize {
    crate::files::descriptors()
}

#[cfg(not(unix))]
fn most() -> usize {
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
