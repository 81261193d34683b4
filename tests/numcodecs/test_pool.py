"""The thread pool: all is done once, errors and interruptions drain, no call waits for a thread, forks are survived."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import weakref

import pytest

from chunkwright_numcodecs._cpu import MOST, Sleeper
from chunkwright_numcodecs.backend import workers_for
from chunkwright_numcodecs.pool import Pool, _Job, available_cpus, shared_pool


class Record:
    """Work that remembers which rows were done, and by how many threads at a time."""

    def __init__(self, meet: int = 1) -> None:
        self.rows: list[int] = []
        self.threads: set[int] = set()
        self._meeting = threading.Barrier(meet)
        self._first = threading.local()

    def __call__(self, first: int, last: int) -> None:
        if not hasattr(self._first, "came"):
            # Each thread waits once, so that as many as are wanted are really at work together.
            self._first.came = True
            self._meeting.wait(30)
        self.threads.add(threading.get_ident())
        self.rows += range(first, last)


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 7, 1000])
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_every_row_is_done_once(rows, size):
    done = []
    Pool(size).run(lambda first, last: done.extend(range(first, last)), rows)
    assert sorted(done) == list(range(rows))


@pytest.mark.parametrize(("size", "limit", "threads"), [(4, None, 4), (4, 2, 2), (4, 1, 1), (2, 8, 2), (3, 0, 1)])
def test_as_many_threads_as_allowed_work_together(size, limit, threads):
    record = Record(meet=threads)
    Pool(size).run(record, 1000, max_workers=limit)
    assert len(record.threads) == threads
    assert threading.get_ident() in record.threads


def test_a_limited_call_leaves_the_pool_as_large_as_it_is():
    pool = Pool(3)
    pool.run(Record(), 100, max_workers=1)
    record = Record(meet=3)
    pool.run(record, 100)
    assert len(record.threads) == 3


def test_of_several_errors_that_of_the_earliest_rows_is_raised():
    meeting = threading.Barrier(2)

    def work(first: int, last: int) -> None:
        meeting.wait(30)
        raise ValueError(first)

    with pytest.raises(ValueError, match=r"^0$"):
        Pool(2).run(work, 2)


def test_after_an_error_no_further_rows_are_begun_and_begun_ones_are_finished():
    begun, failed, finished = [], threading.Event(), []

    def work(first: int, last: int) -> None:
        begun.append(first)
        if not first:
            failed.wait(30)
            finished.append(first)
            return
        failed.set()
        raise ValueError(first)

    with pytest.raises(ValueError, match=r"^125$"):
        Pool(2).run(work, 1000, max_workers=2)
    assert finished == [0]
    assert len(begun) == 2


def test_an_interruption_of_the_calling_thread_waits_for_the_helpers(monkeypatch):
    caller, helping, waiting, finished = threading.get_ident(), threading.Event(), threading.Event(), []
    finish = _Job.finish

    def announced(job: _Job) -> None:
        waiting.set()
        finish(job)

    def work(first: int, last: int) -> None:
        if threading.get_ident() == caller:
            helping.wait(30)
            raise KeyboardInterrupt
        helping.set()
        waiting.wait(30)
        finished.append(first)

    monkeypatch.setattr(_Job, "finish", announced)

    with pytest.raises(KeyboardInterrupt):
        Pool(2).run(work, 100)
    assert len(finished) == 1


def test_calls_from_inside_the_pool_come_to_an_end():
    pool, done = Pool(2), []

    def outer(first: int, last: int) -> None:
        for _ in range(first, last):
            pool.run(lambda begin, end: done.extend(range(begin, end)), 10)

    pool.run(outer, 20)
    assert sorted(done) == sorted([*range(10)] * 20)


def test_many_threads_share_a_pool():
    pool, results = Pool(2), []

    def call(number: int) -> None:
        done: list[int] = []
        pool.run(lambda first, last: done.extend(range(first, last)), 500)
        results.append((number, len(done)))

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(results) == [(number, 500) for number in range(8)]


def test_without_a_thread_to_be_had_the_caller_does_it_all(monkeypatch):
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    done: list[int] = []
    Pool(4).run(lambda first, last: done.extend(range(first, last)), 100)
    assert sorted(done) == list(range(100))


def test_an_idle_thread_keeps_nothing_of_the_last_call_alive():

    class Work:
        def __init__(self) -> None:
            self.meeting = threading.Barrier(2)

        def __call__(self, first: int, last: int) -> None:
            self.meeting.wait(30)

    pool, work = Pool(2), Work()
    pool.run(work, 2)
    gone = weakref.ref(work)
    done = threading.Event()
    weakref.finalize(work, done.set)
    del work
    gc.collect()
    assert done.wait(30)
    assert gone() is None


def test_helpers_that_come_late_keep_nothing_alive():
    class Work:
        def __call__(self, first, last):
            pass

    pool, go_on = Pool(2), threading.Event()
    other = threading.Thread(target=pool.run, args=(lambda first, last: go_on.wait(30), 2))
    other.start()
    try:
        # The only helper is at work until the end of the test.
        while pool._threads == 0 or not pool._jobs.empty():
            pass
        work = Work()
        gone = weakref.ref(work)
        pool.run(work, 2)
        assert not pool._jobs.empty()
        del work
        gc.collect()
        assert gone() is None
    finally:
        go_on.set()
        other.join()


def test_the_shared_pool_has_as_many_threads_as_the_process_has_cpus():
    assert shared_pool().size == available_cpus()


@pytest.mark.parametrize(
    ("count", "cost", "limit", "expected"),
    [
        (1, 1 << 30, None, 1),
        (1 << 16, 512, None, 1),
        (2, 1 << 15, None, 1),
        (64, 1 << 20, 1, 1),
        (64, 1 << 20, 2, 2),
        (64, 1 << 20, None, 4),
        (3, 1 << 20, None, 3),
    ],
)
def test_small_batches_stay_in_the_calling_thread(monkeypatch, count, cost, limit, expected):
    monkeypatch.setattr("chunkwright_numcodecs.backend.shared_pool", lambda: Pool(4))
    assert workers_for(count, cost, limit) == expected


PREPARE = """
    import os, sys, threading, time
    import numpy as np
    from chunkwright import CodecChain, Entries
    from chunkwright_numcodecs import NumcodecsBackend, pool

    pool.available_cpus = lambda: 3
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {}}]
    chain = CodecChain.from_json(codecs).bind("int32", 0).prepare((64, 64, 16), backends=[NumcodecsBackend()])
    arrays = [np.full((64, 64, 16), i, "i4") for i in range(1, 33)]
    encoded = chain.encode_many(arrays)

    def decode():
        for array, found in zip(arrays, chain.decode_many(encoded), strict=True):
            assert (array == found).all()

    def in_child(function):
        pid = os.fork()
        if not pid:
            try:
                function()
            except BaseException:
                os._exit(1)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
"""


def run(code: str, prepare: str = PREPARE) -> str:
    """Run code in an interpreter of its own; a hang is an error."""
    whole = textwrap.dedent(prepare) + textwrap.dedent(code)
    options = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", whole]
    finished = subprocess.run(options, capture_output=True, text=True, timeout=120, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


@needs_fork
def test_a_child_that_is_forked_after_the_pool_was_used_has_threads_of_its_own():
    run("""
        decode()
        assert pool._shared._pool is not None

        def child():
            assert pool._shared._pool is None
            decode()
            assert pool._shared._pool._threads == 2

        in_child(child)
        in_child(lambda: in_child(child))
        decode()
    """)


@needs_fork
def test_a_child_that_is_forked_while_another_thread_decodes_can_decode():
    run("""
        stop = threading.Event()

        def busy():
            while not stop.is_set():
                decode()

        threads = [threading.Thread(target=busy) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(10):
            in_child(decode)
        stop.set()
        for thread in threads:
            thread.join()
    """)


@needs_fork
def test_a_child_that_is_forked_while_another_thread_holds_the_locks_can_decode():
    run("""
        decode()
        shared = pool._shared
        held, release = threading.Event(), threading.Event()

        def hold():
            with shared._lock, shared._pool._lock:
                held.set()
                release.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        in_child(decode)
        release.set()
        thread.join()
    """)


def test_importing_the_backend_starts_no_thread_and_leaves_blosc_alone():
    printed = run(
        """
        import threading
        import numcodecs.blosc
        from chunkwright_numcodecs import NumcodecsBackend, pool

        NumcodecsBackend()
        print(threading.active_count(), pool._shared._pool, numcodecs.blosc.use_threads)
        """,
        prepare="",
    )
    assert printed == "1 None None"


def test_a_process_ends_while_its_threads_are_idle():
    assert run("decode(); print(pool._shared._pool._threads)") == "2"


def test_an_error_in_a_helper_has_the_position_of_its_chunk():
    run("""
        from chunkwright import CodecError

        for bad in (0, 13, 31):
            broken = [*encoded]
            broken[bad] = b"broken"
            try:
                chain.decode_many(broken)
            except CodecError as error:
                assert error.position == bad, error.position
            else:
                raise AssertionError("nothing was raised")
    """)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system has no calls for it")
def test_threads_run_on_every_cpu_that_they_were_allowed():
    pool, seen = Pool(4), set()
    everyone = threading.Barrier(4)

    def work(_first: int, _last: int) -> None:
        everyone.wait()
        seen.add(frozenset(os.sched_getaffinity(0)))

    for _ in range(20):
        pool.run(work, 4)
    assert seen == {frozenset(os.sched_getaffinity(0))}


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or available_cpus() < 2, reason="needs two CPUs")
def test_a_thread_is_kept_away_from_one_cpu_until_it_is_awake():
    allowed = os.sched_getaffinity(0)
    sleeper = Sleeper()
    sleeper.keep_away()
    assert len(os.sched_getaffinity(0)) == len(allowed) - (len(allowed) <= MOST)
    sleeper.keep_away()
    sleeper.awake()
    assert os.sched_getaffinity(0) == allowed


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or available_cpus() < 2, reason="needs two CPUs")
def test_cpus_that_somebody_chose_for_a_thread_meanwhile_are_kept(monkeypatch: pytest.MonkeyPatch):
    allowed = os.sched_getaffinity(0)
    monkeypatch.setattr("chunkwright_numcodecs._cpu.MOST", len(allowed))
    sleeper = Sleeper()
    sleeper.keep_away()
    chosen = allowed - os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, chosen)
        sleeper.awake()
        assert os.sched_getaffinity(0) == chosen
    finally:
        os.sched_setaffinity(0, allowed)
