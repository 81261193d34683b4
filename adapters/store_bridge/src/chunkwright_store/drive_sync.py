"""Drive plans on the calling thread.

A read fetches what the plan needs a window at a time and decodes what is ready, sub-batch by sub-batch, until
the plan needs nothing more. A second thread fetches the next window while this one decodes, when the last one took long
enough for that to pay: files in the page cache are there at once, and two threads that both need the interpreter are
slower than one. Where the bytes are in memory there is nothing to fetch, and ranges are cut from what the source
holds.

A write holds the locks of all its chunks from before their bytes are read until the last is stored. It
reads what incomplete chunks hold, encodes a sub-batch, and stores it while the next is encoded. Where threads may share
the work, each takes turns of its own instead: read, encode and store a few chunks, so few that their bytes stay in the
caches of its processor. When encoding fails, nothing of that sub-batch is stored; chunks that were stored before are
whole. A batch of files that a backend writes by itself is left to it, and each chunk is replaced as soon as it is made.

``stop`` may be set from another thread; a driver looks at it between sub-batches and returns early, with
``out`` or the store half done, as a cancelled call leaves it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Buffer, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.errors import CodecError
from chunkwright.needs import WHOLE, coalesce
from chunkwright_store._schedule import NOTHING, Schedule, answers, from_memory, range_of
from chunkwright_store._share import take_turns
from chunkwright_store.helper import Helper
from chunkwright_store.index_cache import INDEXES
from chunkwright_store.jobs import Limits, ReadJob, WriteJob
from chunkwright_store.locks import LOCKS
from chunkwright_store.sources import Batch

__all__ = ("Stop", "read_sync", "write_sync")

OVERLAP_SECONDS = 0.004
"""What should be fetched sooner than this is not worth a second thread."""

BATCH_BYTES = 64 << 20
"""Decoded bytes that a batch is handed at a time, about; between two of them a call can be stopped."""

MAX_OPEN = 128
"""Chunks that may be open at a time where a source holds a file descriptor."""

TURN_BYTES = 1024 << 10
"""What a thread encodes in one turn, about."""

type Answer = tuple[NDArray[np.int64], Buffers | Sequence[Buffer | None]]


class Stop:
    """A request to return early, made by another thread.

    Examples
    --------
    >>> stop = Stop()
    >>> stop.set()
    >>> bool(stop)
    True
    """

    __slots__ = ("_set",)

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        """Ask."""
        self._set = True

    def __bool__(self) -> bool:
        return self._set


DEFAULT = Limits()
NEVER = Stop()


def read_sync(
    jobs: Iterable[ReadJob], out: NDArray[Any], limits: Limits | None = None, *, stop: Stop | None = None
) -> None:
    """Read chunks into an array; afterwards ``plan.statuses`` tells which were present.

    Parameters
    ----------
    jobs
        Plans with synchronous sources.
    out
        The caller's array.
    limits
        How much to do at a time.
    stop
        Looked at between sub-batches.

    Raises
    ------
    CodecError
        With the key of the chunk. Elements of other chunks may have been read.

    Examples
    --------
    >>> import numpy as np
    >>> from chunkwright import CodecChain, ReferenceBackend
    >>> chain = CodecChain.from_json([{"name": "bytes"}]).bind("uint8", 0)
    >>> prepared = chain.prepare((4,), backends=[ReferenceBackend()])
    >>> from chunkwright_store import MappingSource
    >>> sources = [MappingSource({"c/0": bytes([1, 2, 3, 4])}, "c/0")]
    >>> job = ReadJob(plan=prepared.plan_read(slice(1, 3)), sources=sources, keys=["c/0"])
    >>> out = np.zeros(2, "u1")
    >>> read_sync([job], out)
    >>> out.tolist()
    [2, 3]
    """
    for job in jobs:
        try:
            _Reader(job, out, limits or DEFAULT, NEVER if stop is None else stop).run()
        except CodecError as error:
            INDEXES.clear()
            job.named(error)
            raise


def write_sync(
    jobs: Iterable[WriteJob],
    value: NDArray[Any],
    limits: Limits | None = None,
    *,
    locked: bool = False,
    stop: Stop | None = None,
) -> None:
    """Write an array into chunks.

    Locks are waited for on the calling thread. From an event loop use ``write_hop``, not a thread of the loop's
    own executor: threads that wait there may keep the holder of the lock from being served.

    Parameters
    ----------
    jobs
        Plans with synchronous sources and sinks.
    value
        The caller's array.
    limits
        How much to do at a time.
    locked
        Whether the caller holds the locks of all jobs already.
    stop
        Looked at between sub-batches.

    Raises
    ------
    CodecError
        With the key of the chunk. Other chunks may have been written; each is as it was or as it should be.
    RuntimeError
        When a lock is taken and this thread runs an event loop.

    Examples
    --------
    >>> import numpy as np
    >>> from chunkwright import CodecChain, ReferenceBackend
    >>> chain = CodecChain.from_json([{"name": "bytes"}]).bind("uint8", 0)
    >>> prepared = chain.prepare((4,), backends=[ReferenceBackend()])
    >>> from chunkwright_store import MappingSink, MappingSource
    >>> stored = {"c/0": bytes([1, 2, 3, 4])}
    >>> sources, sinks = [MappingSource(stored, "c/0")], [MappingSink(stored, "c/0")]
    >>> job = WriteJob(plan=prepared.plan_write(slice(1, 3)), sources=sources, sinks=sinks, keys=["c/0"])
    >>> write_sync([job], np.array([8, 9], "u1"))
    >>> list(stored["c/0"])
    [1, 8, 9, 4]
    """
    jobs = list(jobs)
    keys = [] if locked else [key for job in jobs for key in job.lock_keys]
    with LOCKS.hold(keys) if keys else nullcontext():
        for job in jobs:
            try:
                _Writer(job, value, limits or DEFAULT, NEVER if stop is None else stop).run()
            except CodecError as error:
                job.named(error)
                raise


class _Fetcher:
    """Fetches windows of one plan's needs; knows which kind of sources the job has."""

    def __init__(self, job: ReadJob | WriteJob, limits: Limits) -> None:
        self._job = job
        self._limits = limits
        first = job.sources[0] if len(job.sources) else None
        self.in_memory = hasattr(first, "whole")
        self._closes = hasattr(first, "close")
        self._max_gap = min(limits.max_gap, getattr(first, "max_gap", limits.max_gap))
        self._is_scratch = getattr(first, "is_scratch", False)
        self._open: set[int] = set()
        self._seconds_per_byte = 0.0
        self._schedule = Schedule(job.plan, whole_nbytes=job.whole_nbytes)

    def window(self, most: int | None = None) -> NDArray[Any]:
        """The needs to fetch next, none when there are none; ``most`` bytes, about."""
        max_bytes = most or (1 << 62 if self.in_memory else self._limits.batch_bytes)
        needs, _ = self._schedule.next(max_bytes, MAX_OPEN if self._closes else None)
        return needs

    def overlaps(self, needs: NDArray[Any]) -> bool:
        """Whether a window is worth a second thread."""
        if self.in_memory or not len(needs):
            return False
        return int(self._schedule.nbytes(needs).sum()) * self._seconds_per_byte >= OVERLAP_SECONDS

    def fetch(self, needs: NDArray[Any]) -> Answer:
        """Fetch a window; safe on a thread of its own while the plan is used elsewhere."""
        if self.in_memory:
            return from_memory(needs, self._job.sources)
        started = time.perf_counter()
        answer = self._requested(needs)
        nbytes = int(self._schedule.nbytes(needs).sum())
        self._seconds_per_byte = (time.perf_counter() - started) / max(nbytes, 1)
        return answer

    def _requested(self, needs: NDArray[Any]) -> Answer:
        if (needs["kind"] == WHOLE).all():
            # Nothing to merge.
            whole = [self._get(chunk, WHOLE, 0, 0) for chunk in needs["chunk"].tolist()]
            return needs["id"], Buffers.of(whole, is_scratch=self._is_scratch)
        fetches = coalesce(needs, max_gap=self._max_gap, max_size=self._limits.max_size)
        get = self._get_first if self._schedule.is_first(needs) else self._get
        return answers(fetches, range(len(fetches)), [get(*row) for row in fetches.requests()])

    def _get(self, chunk: int, kind: int, start: int, stop: int) -> Buffer | None:
        if self._closes:
            self._open.add(chunk)
        [data] = self._job.sources[chunk].get_ranges((range_of(kind, start, stop),))
        if self._closes and kind == WHOLE:
            self._close({chunk})
        return data  # type: ignore[no-any-return]

    def _get_first(self, chunk: int, kind: int, start: int, stop: int) -> Buffer | None:
        """A whole chunk, or the index of a shard, which may be known."""
        if self._closes:
            self._open.add(chunk)
        limit = self._limits.shard_index_cache
        key = INDEXES.key(self._job.sources[chunk], range_of(kind, start, stop), limit)
        data: Buffer | None = INDEXES.find(key, limit)
        if data is None:
            data = self._get(chunk, kind, start, stop)
            INDEXES.keep(key, data, limit)
        return data

    def feed(self, answer: Answer) -> NDArray[Any]:
        """Give the plan a window, close chunks that need nothing more, and return the next window."""
        self._job.plan.feed(*answer)
        self._schedule.refresh()
        if self._open:
            self._close(self._open.difference(self._schedule.begun.tolist()))
        return self.window()

    def close(self) -> None:
        self._close(set(self._open))

    def _close(self, chunks: set[int]) -> None:
        self._open -= chunks
        for chunk in chunks:
            self._job.sources[chunk].close()


class _Reader:
    def __init__(self, job: ReadJob, out: NDArray[Any], limits: Limits, stop: Stop) -> None:
        self._plan = job.plan
        self._out = out
        self._limits = limits
        self._stop = stop
        self._fetcher = _Fetcher(job, limits)

    def run(self) -> None:
        fetcher, fetched = self._fetcher, None
        try:
            with Helper() as helper:
                needs = fetcher.window()
                while len(needs) and not self._stop:
                    needs = fetcher.feed(fetcher.fetch(needs) if fetched is None else fetched())
                    ahead = fetcher.overlaps(needs) and not self._stop
                    fetched = helper.start(partial(fetcher.fetch, needs)) if ahead else None
                    self._decode()
                self._decode()
        finally:
            fetcher.close()

    def _decode(self) -> None:
        while not self._stop and (work := self._plan.take(self._limits.batch_bytes)) is not None:
            work.run(self._out, max_workers=self._limits.max_workers)


class _Writer:
    def __init__(self, job: WriteJob, value: NDArray[Any], limits: Limits, stop: Stop) -> None:
        self._plan = job.plan
        self._sinks = job.sinks
        self._batch = job.batch
        self._value = value
        self._limits = limits
        self._stop = stop
        self._fetcher = _Fetcher(job, limits)
        # Two chunks for each, at least, or one thread would often wait for another.
        self._threads = min(limits.threads, len(job.sinks) // 2) if job.side_by_side and job.batch is None else 1
        self._planning = threading.Lock()
        # Where storing takes no time it need not overlap with encoding, and larger batches wake threads less often.
        self._batch_bytes = limits.batch_bytes * (2 if self._fetcher.in_memory else 1)

    def run(self) -> None:
        try:
            if self._batch is not None:
                self._by_batch(self._batch)
            elif self._threads > 1:
                take_turns(self._turn, self._threads)
            else:
                self._in_batches()
        finally:
            self._fetcher.close()

    def _by_batch(self, batch: Batch) -> None:
        """Leave reading and storing to the batch, which knows best when to do so."""
        self._plan.feed_later()
        while not self._stop and (work := self._plan.take(BATCH_BYTES)) is not None:
            batch.rewrite(work, self._value)

    def _turn(self) -> bool:
        """Read, encode and store a few chunks; whether there were any."""
        fetcher = self._fetcher
        with self._planning:
            work = self._plan.take(TURN_BYTES)
            needs = fetcher.window(TURN_BYTES) if work is None else NOTHING
        if len(needs):
            answer = fetcher.fetch(needs)
            with self._planning:
                # The plan of a write asks for nothing but whole chunks, so nothing comes of what it is given.
                self._plan.feed(*answer)
                work = self._plan.take()
        if work is None or self._stop:
            return False
        self._store(work.run(self._value, max_workers=self._limits.threads // self._threads))
        return True

    def _in_batches(self) -> None:
        fetcher = self._fetcher
        needs = fetcher.window()
        with Helper() as helper:
            self._encode(helper)
            while len(needs) and not self._stop:
                needs = fetcher.feed(fetcher.fetch(needs))
                self._encode(helper)

    def _encode(self, helper: Helper) -> None:
        work = self._plan.take(self._batch_bytes)
        while work is not None and not self._stop:
            chunks = work.run(self._value, max_workers=self._limits.max_workers)
            work = self._plan.take(self._batch_bytes)
            helper.wait()
            if work is None or self._fetcher.in_memory:
                self._store(chunks)
            else:
                helper.start(partial(self._store, chunks))
        helper.wait()

    def _store(self, chunks: Sequence[tuple[int, Buffer | None]]) -> None:
        for chunk, data in chunks:
            if data is None:
                self._sinks[chunk].delete()
            else:
                self._sinks[chunk].set(data)
