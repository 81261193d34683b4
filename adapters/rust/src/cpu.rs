//! On which CPU a thread that is about to be woken begins.
//!
//! Linux alone has calls for that; elsewhere nothing is done. A thread keeps to the CPUs that it was allowed, without the
//! one that it is kept away from, until it runs; then it may go anywhere as before.

#![allow(unsafe_code)]

pub use system::{Detour, ThreadNumber, keep_away, thread_number};

#[cfg(target_os = "linux")]
mod system {
    use std::mem;

    use libc::{CPU_CLR, CPU_COUNT, CPU_EQUAL, CPU_ISSET, cpu_set_t};

    /// What the system calls a thread.
    pub type ThreadNumber = libc::pid_t;

    /// The CPUs that a thread may use again when it runs, and those that it has until then, if it is kept away from one.
    pub struct Detour(Option<(cpu_set_t, cpu_set_t)>);

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
        let Some(allowed) = get(thread).filter(|_| here < 8 * SIZE) else {
            return Detour(None);
        };
        let mut others = allowed;
        // SAFETY: the number was compared with the size of the set.
        unsafe { CPU_CLR(here, &mut others) };
        // SAFETY: as above.
        let useful = unsafe { CPU_ISSET(here, &allowed) && CPU_COUNT(&others) > 0 };
        if !useful || !set(thread, &others) {
            return Detour(None);
        }
        Detour(Some((allowed, others)))
    }

    impl Detour {
        /// Nothing to undo.
        #[must_use]
        pub fn none() -> Self {
            Self(None)
        }

        /// Let this thread go where it was allowed before, unless somebody said meanwhile where it may go.
        pub fn end(self) {
            let Some((allowed, others)) = self.0 else {
                return;
            };
            // SAFETY: both are sets of CPUs.
            if get(0).is_some_and(|now| unsafe { CPU_EQUAL(&now, &others) }) {
                set(0, &allowed);
            }
        }
    }

    fn get(thread: ThreadNumber) -> Option<cpu_set_t> {
        // SAFETY: a set of CPUs is an array of integers.
        let mut cpus: cpu_set_t = unsafe { mem::zeroed() };
        // SAFETY: the set is ours and of the size that is given.
        (unsafe { libc::sched_getaffinity(thread, SIZE, &raw mut cpus) } == 0).then_some(cpus)
    }

    fn set(thread: ThreadNumber, cpus: &cpu_set_t) -> bool {
        // SAFETY: the set is of the size that is given.
        unsafe { libc::sched_setaffinity(thread, SIZE, cpus) == 0 }
    }

    #[cfg(test)]
    mod tests {
        use super::{Detour, get, keep_away, set, thread_number};
        use libc::{CPU_CLR, CPU_COUNT, CPU_EQUAL, CPU_ISSET, CPU_SETSIZE, cpu_set_t};

        fn allowed() -> cpu_set_t {
            get(0).expect("this thread may run somewhere")
        }

        fn count() -> i32 {
            // SAFETY: it is a set of CPUs.
            unsafe { CPU_COUNT(&allowed()) }
        }

        #[test]
        fn a_thread_is_kept_away_from_one_cpu_until_it_runs() {
            let before = count();
            let detour = keep_away(thread_number());
            assert_eq!(count(), if before > 1 { before - 1 } else { 1 });
            detour.end();
            assert_eq!(count(), before);
        }

        #[test]
        fn cpus_that_somebody_chose_meanwhile_are_kept() {
            let detour = keep_away(thread_number());
            let Detour(Some((mut chosen, others))) = detour else {
                return;
            };
            for cpu in 0..CPU_SETSIZE.unsigned_abs() as usize {
                // SAFETY: the number is less than the size of the set.
                unsafe {
                    if CPU_ISSET(cpu, &others) {
                        CPU_CLR(cpu, &mut chosen);
                    }
                }
            }
            assert!(set(0, &chosen));
            detour.end();
            // SAFETY: both are sets of CPUs.
            assert!(unsafe { CPU_EQUAL(&allowed(), &chosen) });
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
        /// Nothing to undo.
        #[must_use]
        pub fn none() -> Self {
            Self
        }

        /// Do nothing.
        pub fn end(self) {}
    }
}
