"""A pool of threads of our own, bounded by the CPUs that this process may use.

Work is a function over ranges of rows. A call cuts its rows into contiguous ranges and puts them up as one job;
idle threads of the pool help with it, and so does the calling thread, which takes ranges until none is left and
then waits only for ranges that a helper has *begun*. So a call never depends on a thread being free: calls from
inside the pool, from many threads at once, or with no thread to be had at all come to an end.

Threads are made when the first job is put up, are daemons, and belong to their process: in a forked child there
are none (and no lock that some other thread held at the fork), so that the child makes its own when it needs them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from itertools import pairwise
from queue import SimpleQueue

from chunkwright_numcodecs._cpu import Sleeper

__all__ = ("Pool", "available_cpus", "shared_pool")

type Work = Callable[[int, int], None]

# Ranges per thread and call: enough that a slow one does not keep everybody waiting.
_SHARES = 4


def available_cpus() -> int:
    """Count the CPUs that this process may run on.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> available_cpus() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


class _Job:
    """One call: its ranges, who is at work on them, and the first error."""

    def __init__(self, work: Work, ranges: list[tuple[int, int]]) -> None:
        self._work = work
        self._ranges = ranges[::-1]
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._at_work = 0
        self._failed_at = -1
        self.error: BaseException | None = None

    def help(self) -> None:
        """Take ranges until none is left, or one failed."""
        while True:
            with self._lock:
                if not self._ranges:
                    return
                first, last = self._ranges.pop()
                self._at_work += 1
            error: BaseException | None = None
            try:
                self._work(first, last)
            except BaseException as caught:  # the caller raises it
                error = caught
            with self._lock:
                self._at_work -= 1
                if error is not None:
                    self._ranges.clear()
                    if self.error is None or first < self._failed_at:
                        self.error, self._failed_at = error, first
                if not self._at_work:
                    self._idle.notify_all()

    def finish(self) -> None:
        """Let nobody begin another range, and wait for those that were begun."""
        with self._lock:
            self._ranges.clear()
            while self._at_work:
                self._idle.wait()
        # The job stays in the queue until a thread gets there; the arrays that the work refers to must not.
        del self._work


class Pool:
    """Threads that help with jobs.

    Parameters
    ----------
    size
        Most threads that work on a job, the calling one included.

    Examples
    --------
    >>> done = []
    >>> Pool(2).run(lambda first, last: done.append((first, last)), 3)
    >>> sorted(done)
    [(0, 1), (1, 2), (2, 3)]
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._sleepers: list[Sleeper] = []
        self._waking = threading.Lock()

    def run(self, work: Work, rows: int, *, max_workers: int | None = None, at_least: int = 1) -> None:
        """Do ``work(first, last)`` for ranges that make up all rows, and return when all of it is done.

        Parameters
        ----------
        work
            Called from several threads at once.
        rows
            How many rows there are.
        max_workers
            Most threads that work on it, the calling one included.
        at_least
            Fewest rows of a range, as far as every thread gets one.

        Raises
        ------
        BaseException
            What ``work`` raised, of several errors that of the earliest rows. Ranges that nobody had begun by then
            are not done; those that somebody had are, before this returns.
        """
        workers = min(self.size, rows, self.size if max_workers is None else max(max_workers, 1))
        if workers < 2:
            work(0, rows)
            return
        job = _Job(work, _ranges(rows, max(min(workers * _SHARES, rows // max(at_least, 1)), workers)))
        self._make_threads(workers - 1)
        # One call at a time looks after the threads; others need not wait for that.
        if self._waking.acquire(blocking=False):
            try:
                for sleeper in self._sleepers[: workers - 1]:
                    sleeper.keep_away()
            finally:
                self._waking.release()
        for _ in range(workers - 1):
            self._jobs.put(job)
        try:
            job.help()
        finally:
            # Also when this thread is interrupted: helpers write to memory that the caller will let go of.
            job.finish()
        if job.error is not None:
            raise job.error

    def _make_threads(self, wanted: int) -> None:
        with self._lock:
            while self._threads < wanted:
                name = f"chunkwright-{self._threads}"
                thread = threading.Thread(target=_serve, args=(self._jobs, self._sleepers), name=name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the system has no thread left, or the interpreter is on its way out
                    return
                self._threads += 1


def _serve(jobs: SimpleQueue[_Job], sleepers: list[Sleeper]) -> None:
    sleeper = Sleeper()
    sleepers.append(sleeper)
    while True:
        job = jobs.get()
        sleeper.awake()
        job.help()
        # A thread that waits for the next job must not keep the arrays of the last one alive.
        del job


def _ranges(rows: int, parts: int) -> list[tuple[int, int]]:
    parts = min(rows, parts)
    bounds = [rows * part // parts for part in range(parts + 1)]
    return list(pairwise(bounds))


class _Shared:
    """The pool of this process."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, as after a fork: neither threads nor locks of the parent are of use."""
        self._lock = threading.Lock()
        self._pool: Pool | None = None

    def get(self) -> Pool:
        pool = self._pool
        if pool is None:
            with self._lock:
                pool = self._pool = self._pool or Pool(available_cpus())
        return pool


_shared = _Shared()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.forget)


def shared_pool() -> Pool:
    """Return the pool of this process, made when it is first asked for.

    Returns
    -------
    Pool
        As many threads as :func:`available_cpus` said then.

    Examples
    --------
    >>> shared_pool() is shared_pool()
    True
    """
    return _shared.get()
