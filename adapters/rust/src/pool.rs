//! Threads that help with a batch.
//!
//! A call does its own work and *invites* helpers: idle threads of the pool join it, and when the caller runs out
//! of work it withdraws the invitations that nobody took and waits for those who came. So a call never waits for
//! another call, a limit of one means that no other thread is involved, and nothing is lost when threads are few.
//!
//! A helper is woken on another CPU than the caller's. Schedulers tend to put a thread that is woken where the one is
//! that wakes it, and find out only milliseconds later that the other CPUs are idle; a batch may be over by then.
//!
//! Waking a thread whose CPU has gone to sleep takes 50 microseconds and more, and small reads come one after the other.
//! So a helper that was called again soon after its last work stays awake for a moment after the next; and a caller
//! looks a few times whether the last helper is done before it sleeps. `docs/design/003-differences.md` has the figures.
//!
//! The pool belongs to a process. A forked child has none of its threads, and its lock may have been held at the
//! fork; so the child never touches the old pool and makes a new one.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::{cpu, leave};

/// Work that several threads do together: each calls it once, and it returns when there is nothing left to do.
type Work<'a> = dyn Fn() + Sync + 'a;

struct Job {
    work: *const Work<'static>,
    invited: AtomicUsize,
    running: AtomicUsize,
}

// SAFETY: `work` is Sync and outlives the job's time in the queue (see `Pool::run`); the rest are atomics.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

/// A thread of the pool.
struct Helper {
    thread: Thread,
    number: cpu::ThreadNumber,
    /// Whether it is to wake up, and what it has to undo then.
    woken: Mutex<Option<cpu::Detour>>,
    /// Whether `woken` is worth a look.
    is_woken: AtomicBool,
    is_awake: AtomicBool,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Arc<Job>>,
    threads: usize,
    idle: Vec<Arc<Helper>>,
}

struct Pool {
    process: u32,
    most: usize,
    /// Helpers that may stay awake at a time, and those that do.
    most_awake: usize,
    awake: AtomicUsize,
    state: Mutex<State>,
    left: Condvar,
}

/// Where the pool of one kind of threads is, once somebody needed it.
type Slot = AtomicPtr<Pool>;

static POOL: Slot = AtomicPtr::new(std::ptr::null_mut());
static WAITING: Slot = AtomicPtr::new(std::ptr::null_mut());

/// Threads that wait for storage, at most: as many requests are under way at a time.
const MOST_WAITING: usize = 32;

/// Bytes that these threads have at hand together, about, as far as a few threads need no more.
const WAITING_BYTES: usize = 12 << 20;

/// How long a helper stays awake when it has nothing to do.
const AWAKE: Duration = Duration::from_micros(500);

/// How many helpers stay awake at most; small reads call no more.
const MOST_AWAKE: usize = 4;

/// How long a caller looks for the last helper before it sleeps.
const LAST_LOOK: Duration = Duration::from_micros(50);

/// How many threads work on a batch when nothing limits them: the caller and all helpers.
#[must_use]
pub fn size() -> usize {
    cores().most + 1
}

/// Whether this was last asked so short a time ago that helpers may be awake still; asked once for each batch.
#[must_use]
pub fn is_called_again() -> bool {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    let last = LAST.swap(now, Ordering::Relaxed);
    u128::from(now.abs_diff(last)) < AWAKE.as_nanos()
}

/// Call `work` on this thread, and on up to `helpers` others while it has not returned here.
pub fn share(helpers: usize, work: &Work<'_>) {
    if helpers == 0 {
        work();
    } else {
        cores().run(helpers, work);
    }
}

/// Call `work` on this thread, and on threads that are not those of [`share`], mostly wait, and need so many bytes each.
pub fn share_waiting(bytes: usize, work: &Work<'_>) {
    // Each may have a few files open.
    let most = (leave::most() / 8).clamp(1, MOST_WAITING - 1);
    let helpers = (WAITING_BYTES / bytes.max(1)).max(4).min(most);
    pool(&WAITING, || Pool::new(MOST_WAITING - 1, 0)).run(helpers, work);
}

fn cores() -> &'static Pool {
    pool(&POOL, || Pool::new(thread::available_parallelism().map_or(1, usize::from) - 1, MOST_AWAKE))
}

fn pool(slot: &'static Slot, new: impl Fn() -> Pool) -> &'static Pool {
    let process = std::process::id();
    let mut current = slot.load(Ordering::Acquire);
    loop {
        // SAFETY: a pool that was published is never freed.
        if let Some(pool) = unsafe { current.as_ref() }
            && pool.process == process
        {
            return pool;
        }
        let made = Box::into_raw(Box::new(new()));
        match slot.compare_exchange(current, made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: it is published now and never freed.
            Ok(_) => return unsafe { &*made },
            Err(other) => {
                // SAFETY: it was not published, so nobody else has it.
                drop(unsafe { Box::from_raw(made) });
                current = other;
            }
        }
    }
}

impl Pool {
    fn new(most: usize, most_awake: usize) -> Self {
        let (process, awake) = (std::process::id(), AtomicUsize::new(0));
        Self { process, most, most_awake, awake, state: Mutex::default(), left: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&'static self, helpers: usize, work: &Work<'_>) {
        // SAFETY: only the lifetime changes. `Withdraw` below lets nobody take the job any more and waits for those
        // who did before `work` goes out of scope, also when it panics.
        let work_static: &'static Work<'static> = unsafe { std::mem::transmute(work) };
        let job = Arc::new(Job {
            work: work_static,
            invited: AtomicUsize::new(helpers.min(self.most)),
            running: AtomicUsize::new(0),
        });
        let withdraw = Withdraw { pool: self, job: &job };
        self.post(&job);
        work();
        drop(withdraw);
    }

    fn post(&'static self, job: &Arc<Job>) {
        let invited = job.invited.load(Ordering::Relaxed);
        if invited == 0 {
            return;
        }
        let mut state = self.lock();
        state.jobs.push_back(Arc::clone(job));
        let rest = state.idle.len().saturating_sub(invited);
        let woken = state.idle.split_off(rest);
        let missing = (invited - woken.len()).min(self.most - state.threads);
        for _ in 0..missing {
            let named = thread::Builder::new().name("chunkwright".to_owned());
            if named.spawn(|| self.help()).is_ok() {
                state.threads += 1;
            }
        }
        drop(state);
        for helper in &woken {
            helper.wake();
        }
    }

    fn help(&self) {
        let helper = Arc::new(Helper::current());
        let mut soon = false;
        let mut state = self.lock();
        loop {
            let Some(job) = state.jobs.front().cloned() else {
                helper.is_awake.store(soon && self.stays_awake(), Ordering::Relaxed);
                state.idle.push(Arc::clone(&helper));
                drop(state);
                soon = self.rest(&helper);
                state = self.lock();
                continue;
            };
            job.running.fetch_add(1, Ordering::Relaxed);
            if job.invited.fetch_sub(1, Ordering::Relaxed) == 1 {
                state.jobs.pop_front();
            }
            drop(state);
            // SAFETY: the caller waits for `running` to become 0 before `work` ends its life.
            let work = unsafe { &*job.work };
            // Work reports its own failures; a panic must not lose the count below.
            let _ = catch_unwind(AssertUnwindSafe(work));
            state = self.lock();
            if job.running.fetch_sub(1, Ordering::Relaxed) == 1 {
                self.left.notify_all();
            }
        }
    }

    /// Whether one more helper may stay awake; it is counted then.
    fn stays_awake(&self) -> bool {
        let one_more = |awake| (awake < self.most_awake).then_some(awake + 1);
        self.awake.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    /// Let a helper rest until it is woken, and say whether that was so soon that it had better stay awake next time.
    fn rest(&self, helper: &Helper) -> bool {
        let begin = Instant::now();
        if helper.is_awake.load(Ordering::Relaxed) {
            look(AWAKE, || helper.is_woken.load(Ordering::Relaxed));
            helper.is_awake.store(false, Ordering::Relaxed);
            self.awake.fetch_sub(1, Ordering::Relaxed);
        }
        helper.sleep();
        begin.elapsed() < AWAKE
    }
}

/// Look again and again whether something has come, for so long at most; others that want this CPU may have it.
fn look(most: Duration, has_come: impl Fn() -> bool) {
    let begin = Instant::now();
    while !has_come() && begin.elapsed() < most {
        for _ in 0..32 {
            std::hint::spin_loop();
        }
        thread::yield_now();
    }
}

impl Helper {
    fn current() -> Self {
        let (thread, number) = (thread::current(), cpu::thread_number());
        Self {
            thread,
            number,
            woken: Mutex::default(),
            is_woken: AtomicBool::default(),
            is_awake: AtomicBool::default(),
        }
    }

    fn wake(&self) {
        // Who is awake has a CPU. When it falls asleep meanwhile, it only misses the choice of another one.
        let is_awake = self.is_awake.load(Ordering::Relaxed);
        let mut woken = self.lock();
        *woken = Some(if is_awake { cpu::Detour::none() } else { cpu::keep_away(self.number) });
        self.is_woken.store(true, Ordering::Relaxed);
        drop(woken);
        self.thread.unpark();
    }

    /// Wait for [`Helper::wake`].
    fn sleep(&self) {
        let detour = loop {
            if let Some(detour) = self.called() {
                break detour;
            }
            thread::park();
        };
        detour.end();
    }

    fn called(&self) -> Option<cpu::Detour> {
        let mut woken = self.lock();
        self.is_woken.store(false, Ordering::Relaxed);
        woken.take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<cpu::Detour>> {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Withdraw<'a> {
    pool: &'static Pool,
    job: &'a Arc<Job>,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        state.jobs.retain(|job| !Arc::ptr_eq(job, self.job));
        if self.job.running.load(Ordering::Relaxed) > 0 {
            drop(state);
            look(LAST_LOOK, || self.job.running.load(Ordering::Relaxed) == 0);
            state = self.pool.lock();
        }
        while self.job.running.load(Ordering::Relaxed) > 0 {
            state = self.pool.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{share, size};
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn all_work_is_done_once() {
        for helpers in [0, 1, 7] {
            let next = AtomicUsize::new(0);
            let sum = AtomicUsize::new(0);
            share(helpers, &|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= 1000 {
                        break;
                    }
                    sum.fetch_add(number, Ordering::Relaxed);
                }
            });
            assert_eq!(sum.load(Ordering::Relaxed), 499_500);
        }
        assert!(size() >= 1);
    }

    #[test]
    fn a_panic_of_the_caller_leaves_the_pool_usable() {
        let result = std::panic::catch_unwind(|| share(2, &|| panic!("expected")));
        assert!(result.is_err());
        all_work_is_done_once();
    }
}
