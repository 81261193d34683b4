//! Threads that help with a batch.
//!
//! A call does its own work and *invites* helpers: idle threads of the pool join it, and when the caller runs out
//! of work it withdraws the invitations that nobody took and waits for those who came. So a call never waits for
//! another call, a limit of one means that no other thread is involved, and nothing is lost when threads are few.
//!
//! A helper is woken on another CPU than the caller's. Schedulers tend to put a thread that is woken where the one is
//! that wakes it, and find out only milliseconds later that the other CPUs are idle; a batch may be over by then.
//!
//! The pool belongs to a process. A forked child has none of its threads, and its lock may have been held at the
//! fork; so the child never touches the old pool and makes a new one.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use crate::cpu;

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

/// How many threads work on a batch when nothing limits them: the caller and all helpers.
#[must_use]
pub fn size() -> usize {
    cores().most + 1
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
    let helpers = (WAITING_BYTES / bytes.max(1)).clamp(4, MOST_WAITING - 1);
    pool(&WAITING, || MOST_WAITING - 1).run(helpers, work);
}

fn cores() -> &'static Pool {
    pool(&POOL, || thread::available_parallelism().map_or(1, usize::from) - 1)
}

fn pool(slot: &'static Slot, most: impl Fn() -> usize) -> &'static Pool {
    let process = std::process::id();
    let mut current = slot.load(Ordering::Acquire);
    loop {
        // SAFETY: a pool that was published is never freed.
        if let Some(pool) = unsafe { current.as_ref() }
            && pool.process == process
        {
            return pool;
        }
        let made = Box::into_raw(Box::new(Pool::new(process, most())));
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
    fn new(process: u32, most: usize) -> Self {
        Self { process, most, state: Mutex::default(), left: Condvar::new() }
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
        let mut state = self.lock();
        loop {
            let Some(job) = state.jobs.front().cloned() else {
                state.idle.push(Arc::clone(&helper));
                drop(state);
                helper.sleep();
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
}

impl Helper {
    fn current() -> Self {
        Self { thread: thread::current(), number: cpu::thread_number(), woken: Mutex::default() }
    }

    fn wake(&self) {
        *self.lock() = Some(cpu::keep_away(self.number));
        self.thread.unpark();
    }

    /// Wait for [`Helper::wake`].
    fn sleep(&self) {
        let detour = loop {
            if let Some(detour) = self.lock().take() {
                break detour;
            }
            thread::park();
        };
        detour.end();
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
