"""One plan of an asynchronous call, from its first request to its last.

:mod:`chunkwright_store.drive_async` tells how lanes, stages and requests work together. Here ``_go_on`` is the one
place that decides what happens next; everything that ends (a request, a stage, the storing of a chunk) calls it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Buffer, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.errors import CodecError
from chunkwright.needs import Fetches, coalesce
from chunkwright_store._calls import await_calls
from chunkwright_store._crew import Crew, drain
from chunkwright_store._schedule import Schedule, answers, range_of
from chunkwright_store.drive_sync import Stop
from chunkwright_store.index_cache import INDEXES
from chunkwright_store.jobs import Limits, ReadJob, WriteJob
from chunkwright_store.pool import run_off_loop
from chunkwright_store.sources import ByteRange, closing

__all__ = ("Call", "Driver", "Reader", "Writer")

MAX_AT_ONCE = 64
"""With more chunks than this, finding the first requests would hold the loop up."""


ALL_AT_ONCE = 32 << 20
"""Bytes that are handed to a backend at a time, about, when nothing more is waited for."""


class Call:
    """What the plans of one call share. Used on the loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: Limits) -> None:
        self.loop = loop
        self.ended: asyncio.Future[None] = loop.create_future()
        self.stop = Stop()
        self.running = 0
        self.in_flight = 0
        self.max_in_flight = limits.max_bytes_in_flight
        self.fetching = Crew(limits.concurrency, self.fail)
        self.storing = Crew(limits.concurrency, self.fail)
        self.stages: set[asyncio.Task[None]] = set()

    def fail(self, error: BaseException) -> None:
        self.stop.set()
        if not self.ended.done():
            self.ended.set_exception(error)

    def done(self) -> None:
        self.running -= 1
        if not self.running and not self.ended.done():
            self.ended.set_result(None)

    async def close(self) -> None:
        """End everything that is under way; after a call that went well there is nothing."""
        self.stop.set()
        self.fetching.stop()
        self.storing.stop()
        for task in (*self.fetching.tasks, *self.stages):
            task.cancel()
        await drain((*self.fetching.tasks, *self.stages, *self.storing.tasks))
        if self.ended.done() and not self.ended.cancelled():
            self.ended.exception()  # it may never have been awaited


@attrs.frozen(eq=False)
class _Arrival:
    """What one answer of a store brought."""

    fetches: Fetches
    numbers: Sequence[int]
    fetched: Sequence[Buffer | None]


@attrs.frozen(eq=False)
class _Request:
    """One call of a source."""

    source: Any
    fetches: Fetches
    numbers: Sequence[int]
    streams: bool
    is_first: bool
    nbytes: int


class Driver:
    """One plan on its way through stages. Plan, schedule and next work belong to the lane, the rest to the loop."""

    _max_stages: int
    _frees_room: bool

    def __init__(self, job: ReadJob | WriteJob, limits: Limits, is_async: bool, here: bool = False) -> None:
        self._job = job
        self._here = here
        self._plan: Any = job.plan
        self._limits = limits
        self._is_async = is_async
        self._schedule = Schedule(job.plan, whole_nbytes=job.whole_nbytes)
        self._arrived: list[_Arrival] = []
        self._arrived_nbytes = 0
        self._fetching = 0
        self._stages = 0
        self._unstored = 0
        self._lane_busy = False
        self._due = False
        self._next_work: Any = None
        self._more = True
        self._over = False
        self._call: Call

    def start(self, call: Call) -> None:
        """Send the first requests; few of them from the loop at once, because what they are is known already."""
        self._call = call
        call.running += 1
        if self._schedule.unbegun <= MAX_AT_ONCE:
            self._send(self._requests(call.max_in_flight - call.in_flight))
        if not self._fetching:
            self._go_on()

    def _go_on(self) -> None:
        """Start the next stage if there is reason to, or end."""
        call = self._call
        if call.stop or self._over or self._lane_busy or self._stages >= self._max_stages:
            return
        room = call.max_in_flight - call.in_flight
        may_fetch = self._schedule.waiting and (room > 0 or not self._fetching)
        may_work = self._more and (room > 0 or self._frees_room or not self._busy())
        if self._arrived or may_fetch or may_work:
            self._begin_stage(room)
        elif not self._busy():
            self._over = True
            call.done()

    def _busy(self) -> bool:
        """Whether anything is under way that will call ``_go_on`` when it ends."""
        return bool(self._fetching or self._stages or self._unstored or self._due)

    def _begin_stage(self, room: int) -> None:
        arrived, self._arrived = self._arrived, []
        nbytes, self._arrived_nbytes = self._arrived_nbytes, 0
        self._more = False
        self._lane_busy = True
        self._stages += 1
        batch = self._limits.batch_bytes
        if self._frees_room and not self._fetching:
            # All is there, and nothing comes of it: there is nothing that smaller batches could overlap with.
            batch = max(batch, ALL_AT_ONCE)
        task = self._call.loop.create_task(self._stage(arrived, nbytes, room, batch))
        self._call.stages.add(task)
        task.add_done_callback(self._call.stages.discard)

    async def _stage(self, arrived: list[_Arrival], nbytes: int, room: int, batch: int) -> None:
        call = self._call
        try:
            work = partial(self._in_thread, arrived, room, batch)
            result = work() if self._here else await run_off_loop(work, on_cancel=call.stop.set)
            if self._is_async and result is not None:
                result = await await_calls(self._calls(result))
            self._finish(result)
        except BaseException as error:  # reported to whoever waits for the whole call
            if isinstance(error, CodecError):
                INDEXES.clear()
                self._job.named(error)
            call.fail(error)
            return
        call.in_flight -= nbytes
        self._stages -= 1
        self._go_on()

    def _in_thread(self, arrived: list[_Arrival], room: int, batch: int) -> Any:
        """One stage: in the lane, then out of it and at work."""
        call = self._call
        if arrived:
            self._plan.feed(*_merged(arrived))
            self._schedule.refresh()
        requests = self._requests(room)
        work = None if call.stop else self._next_work or self._plan.take(batch)
        # One ahead, so that the loop does not start a stage only to find out that there is nothing to do.
        self._next_work = None if work is None else self._plan.take(batch)
        call.loop.call_soon_threadsafe(self._leave_lane, requests, self._next_work is not None)
        if work is None or self._is_async:
            return work
        return self._run(work)

    def _leave_lane(self, requests: list[_Request], more: bool) -> None:
        self._lane_busy = False
        self._more = self._more or more
        self._go_on_with(requests)

    def _go_on_with(self, requests: Sequence[_Request]) -> None:
        """Send requests and go on, from a callback of the loop."""
        try:
            self._send(requests)
            self._go_on()
        except BaseException as error:  # the loop would only log it, and the call never end
            self._call.fail(error)

    def _requests(self, room: int) -> list[_Request]:
        """What to ask stores for now, within the bytes that may be in flight; at least something."""
        requests: list[_Request] = []
        while self._schedule.waiting and (room > 0 or not (requests or self._fetching)):
            needs, fresh = self._schedule.next(max(room, 1))
            fetches = coalesce(needs, max_gap=self._limits.max_gap, max_size=self._limits.max_size)
            new = list(self._split(fetches, fresh))
            requests += new
            room -= sum(request.nbytes for request in new)
        return requests

    def _split(self, fetches: Fetches, fresh: bool) -> Iterable[_Request]:
        """One request per source that streams, otherwise one per fetch."""
        sources, chunks = self._job.sources, fetches.chunk.tolist()
        sizes = self._schedule.nbytes_of(fetches).tolist()
        streams = len(chunks) > 0 and hasattr(sources[chunks[0]], "stream_ranges")
        if not streams or (fresh and len(set(chunks)) == len(chunks)):
            for number, chunk in enumerate(chunks):
                yield _Request(sources[chunk], fetches, (number,), False, fresh, sizes[number])
            return
        bounds = [0, *(np.flatnonzero(np.diff(fetches.chunk)) + 1).tolist(), len(chunks)]
        for first, last in pairwise(bounds):
            numbers = range(first, last)
            yield _Request(sources[chunks[first]], fetches, numbers, True, False, sum(sizes[first:last]))

    def _send(self, requests: Sequence[_Request]) -> None:
        call = self._call
        for request in requests:
            self._fetching += 1
            call.in_flight += request.nbytes
            call.fetching.add(partial(self._fetch, request))

    async def _fetch(self, request: _Request) -> None:
        fetches, numbers = request.fetches, request.numbers
        ranges = [
            range_of(int(fetches.kind[number]), int(fetches.start[number]), int(fetches.stop[number]))
            for number in numbers
        ]
        if request.streams:
            groups = request.source.stream_ranges(ranges)
            async with closing(groups):
                async for group in groups:
                    self._arrive(request, [numbers[at] for at, _ in group], [data for _, data in group], 0)
            self._fetching -= 1
            self._arrived_nbytes += request.nbytes
            self._go_on_soon()
        else:
            fetched = await (
                self._first(request.source, *ranges) if request.is_first else request.source.get_ranges(ranges)
            )
            self._fetching -= 1
            self._arrive(request, numbers, fetched, request.nbytes)

    async def _first(self, source: Any, wanted: ByteRange) -> Sequence[Buffer | None]:
        """A whole chunk, or the index of a shard, which may be known."""
        limit = self._limits.shard_index_cache
        key = INDEXES.key(source, wanted, limit)
        found = INDEXES.find(key, limit)
        if found is not None:
            return (found,)
        fetched: Sequence[Buffer | None] = await source.get_ranges((wanted,))
        INDEXES.keep(key, fetched[0], limit)
        return fetched

    def _arrive(self, request: _Request, numbers: Sequence[int], fetched: Sequence[Buffer | None], nbytes: int) -> None:
        if numbers:
            self._arrived.append(_Arrival(request.fetches, numbers, fetched))
        self._arrived_nbytes += nbytes
        self._go_on_soon()

    def _go_on_soon(self) -> None:
        """Start a stage when everything has been taken that the loop has at hand by now: one hop for all of it."""
        if not self._due:
            self._due = True
            self._call.loop.call_soon(self._when_due)

    def _when_due(self) -> None:
        self._due = False
        self._go_on_with(())

    def _run(self, work: Any) -> Any:
        raise NotImplementedError

    def _calls(self, work: Any) -> Any:
        raise NotImplementedError

    def _finish(self, result: Any) -> None:
        raise NotImplementedError


class Reader(Driver):
    # Enough to feed and decode side by side.
    _max_stages = 3
    _frees_room = True

    def __init__(self, job: ReadJob, out: NDArray[Any], limits: Limits, is_async: bool, here: bool) -> None:
        super().__init__(job, limits, is_async, here)
        self._out = out

    def _run(self, work: Any) -> None:
        work.run(self._out, max_workers=self._limits.max_workers)

    def _calls(self, work: Any) -> Any:
        return work.calls(self._out, max_workers=self._limits.max_workers)

    def _finish(self, result: Any) -> None:
        return


class Writer(Driver):
    # All needs are known from the start, and what is encoded piles up: one batch at a time.
    _max_stages = 1
    _frees_room = False

    def __init__(self, job: WriteJob, value: NDArray[Any], limits: Limits, is_async: bool) -> None:
        super().__init__(job, limits, is_async)
        self._sinks = job.sinks
        self._value = value

    def _run(self, work: Any) -> Any:
        return work.run(self._value, max_workers=self._limits.max_workers)

    def _calls(self, work: Any) -> Any:
        return work.calls(self._value, max_workers=self._limits.max_workers)

    def _finish(self, result: Sequence[tuple[int, Buffer | None]] | None) -> None:
        call = self._call
        if result is None or call.stop:
            return
        for chunk, data in result:
            nbytes = 0 if data is None else memoryview(data).nbytes
            self._unstored += 1
            call.in_flight += nbytes
            call.storing.add(partial(self._store, self._sinks[chunk], data, nbytes))

    async def _store(self, sink: Any, data: Buffer | None, nbytes: int) -> None:
        if data is None:
            await sink.delete()
        else:
            await sink.set(data)
        self._unstored -= 1
        self._call.in_flight -= nbytes
        self._go_on()


def _merged(arrived: Sequence[_Arrival]) -> tuple[NDArray[np.int64], Buffers | Sequence[Buffer | None]]:
    """Everything that has arrived, for one call of ``feed``."""
    together: dict[int, tuple[Fetches, list[int], list[Buffer | None]]] = {}
    for arrival in arrived:
        _, numbers, fetched = together.setdefault(id(arrival.fetches), (arrival.fetches, [], []))
        numbers += arrival.numbers
        fetched += arrival.fetched
    parts = [answers(*group) for group in together.values()]
    if len(parts) == 1:
        return parts[0]
    rows = [part if isinstance(part, Buffers) else Buffers.of(part) for _, part in parts]
    return np.concatenate([ids for ids, _ in parts]), Buffers.concatenate(rows)
