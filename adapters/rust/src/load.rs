//! How much work an item of a batch is: what the last ones like it took, or a guess from its bytes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::pool;

/// Nanoseconds of work for which it pays to wake a thread.
const WORTH_A_THREAD: u64 = 60_000;

/// The same where one call follows the other: next to nothing, since a thread that is awake comes at once, and keeps a CPU
/// awake besides, on which the caller is sooner back from where it waits.
const WORTH_ONE_AWAKE: u64 = 5_000;

/// Picoseconds for a decoded byte, when nobody knows better.
const USUAL: u64 = 600;

/// What a decoded byte took last time, in picoseconds; 0 when there was no last time.
#[derive(Default)]
pub struct Cost(AtomicU64);

/// The size of each item of a batch.
#[derive(Clone, Copy)]
pub struct Load<'a> {
    /// Decoded bytes, about.
    pub bytes: usize,
    cost: Option<&'a Cost>,
}

impl Cost {
    fn record(&self, bytes: usize, took: Duration) {
        if bytes > 0 {
            let each = took.as_nanos() * 1000 / bytes as u128;
            self.0.store(u64::try_from(each).unwrap_or(u64::MAX).max(1), Ordering::Relaxed);
        }
    }
}

impl From<usize> for Load<'_> {
    fn from(bytes: usize) -> Self {
        Self { bytes, cost: None }
    }
}

impl<'a> Load<'a> {
    /// Items of so many bytes, which cost what the last ones like them did.
    #[must_use]
    pub fn like(bytes: usize, cost: &'a Cost) -> Self {
        Self { bytes, cost: Some(cost) }
    }

    /// Remember what some items took.
    pub fn record(&self, items: usize, took: Duration) {
        if let Some(cost) = self.cost {
            cost.record(items.saturating_mul(self.bytes), took);
        }
    }

    /// How many threads so many items are worth.
    #[must_use]
    pub fn threads(&self, items: usize) -> usize {
        self.threads_worth(items, if pool::is_called_again() { WORTH_ONE_AWAKE } else { WORTH_A_THREAD })
    }

    fn threads_worth(&self, items: usize, worth: u64) -> usize {
        let each = match self.cost.map_or(0, |cost| cost.0.load(Ordering::Relaxed)) {
            0 => USUAL,
            known => known,
        };
        let nanoseconds = (items as u64).saturating_mul(self.bytes as u64).saturating_mul(each) / 1000;
        items.min(usize::try_from(nanoseconds / worth).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::{Cost, Load, WORTH_A_THREAD, WORTH_ONE_AWAKE};
    use std::time::Duration;

    #[test]
    fn threads_are_woken_for_work_that_takes_its_time() {
        let cost = Cost::default();
        let load = Load::like(64 << 10, &cost);
        let threads = |items| load.threads_worth(items, WORTH_A_THREAD);
        assert_eq!(threads(4), 2);
        load.record(10, Duration::from_micros(100));
        assert_eq!((threads(4), threads(24), load.threads_worth(4, WORTH_ONE_AWAKE)), (0, 3, 4));
        load.record(1, Duration::from_millis(1));
        assert_eq!(threads(4), 4);
    }

    #[test]
    fn nothing_is_learnt_from_nothing() {
        let cost = Cost::default();
        Load::like(0, &cost).record(5, Duration::from_secs(1));
        assert_eq!(Load::like(1 << 20, &cost).threads(1), 1);
    }
}
