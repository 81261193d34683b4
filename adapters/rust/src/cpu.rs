//! On which CPU a thread that is about to be woken begins.
//!
//! Linux alone has calls for that; elsewhere nothing is done. A thread keeps to the CPUs that it was allowed, without the
//! one that it is kept away from, until it runs; then it may go anywhere as before.

#![allow(unsafe_code)]

pub use system::{Detour, ThreadNumber, keep_away, thread_number};

#[cfg(target_os = "linux")]
mod system {
    use std::mem;

    use libc::{CPU_CLR, CPU_COUNT, CPU_ISSET, cpu_set_t};

    /// What the system calls a thread.
    pub type ThreadNumber = libc::pid_t;

    /// The CPUs that a thread may use again when it runs, if it is kept away from one.
    pub struct Detour(Option<cpu_set_t>);

    const SIZE: usize = mem::size_of::<cpu_set_t>();

    /// The number of this thread.
    #[must_use]
    pub fn thread_number() -> ThreadNumber {
        // SAFETY: it has no conditions.
        unsafe { libc::gettid() }
    }

    /// Keep a thread that sleeps away from the CPU that this one is on.
    #[must_use]
    pub fn keep_away(thread: ThreadNumber) -> Detour {
        // SAFETY: it has no conditions.
        let here = unsafe { libc::sched_getcpu() };
        let Ok(here) = usize::try_from(here) else {
            return Detour(None);
        };
        // SAFETY: a set of CPUs is an array of integers.
        let mut allowed: cpu_set_t = unsafe { mem::zeroed() };
        // SAFETY: the set is ours and of the size that is given.
        if unsafe { libc::sched_getaffinity(thread, SIZE, &raw mut allowed) } != 0 || here >= 8 * SIZE {
            return Detour(None);
        }
        let mut others = allowed;
        // SAFETY: the number was compared with the size of the set.
        unsafe { CPU_CLR(here, &mut others) };
        // SAFETY: as above.
        let useful = unsafe { CPU_ISSET(here, &allowed) && CPU_COUNT(&others) > 0 };
        if !useful || !set(thread, &others) {
            return Detour(None);
        }
        Detour(Some(allowed))
    }

    impl Detour {
        /// Let this thread go where it was allowed before.
        pub fn end(self) {
            if let Some(allowed) = self.0 {
                set(0, &allowed);
            }
        }
    }

    fn set(thread: ThreadNumber, cpus: &cpu_set_t) -> bool {
        // SAFETY: the set is of the size that is given.
        unsafe { libc::sched_setaffinity(thread, SIZE, cpus) == 0 }
    }

    #[cfg(test)]
    mod tests {
        use super::{SIZE, keep_away, thread_number};
        use libc::{CPU_COUNT, cpu_set_t};

        fn allowed() -> i32 {
            // SAFETY: a set of CPUs is an array of integers.
            let mut cpus: cpu_set_t = unsafe { std::mem::zeroed() };
            // SAFETY: the set is of the size that is given.
            assert_eq!(unsafe { libc::sched_getaffinity(0, SIZE, &raw mut cpus) }, 0);
            // SAFETY: it is a set of CPUs.
            unsafe { CPU_COUNT(&cpus) }
        }

        #[test]
        fn a_thread_is_kept_away_from_one_cpu_until_it_runs() {
            let before = allowed();
            let detour = keep_away(thread_number());
            assert_eq!(allowed(), if before > 1 { before - 1 } else { 1 });
            detour.end();
            assert_eq!(allowed(), before);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    /// Threads have no numbers here.
    pub type ThreadNumber = ();

    /// Nothing to undo.
    pub struct Detour;

    /// The number of this thread.
    pub fn thread_number() -> ThreadNumber {}

    /// Do nothing.
    #[must_use]
    pub fn keep_away((): ThreadNumber) -> Detour {
        Detour
    }

    impl Detour {
        /// Do nothing.
        pub fn end(self) {}
    }
}
