"""Drive plans on an event loop.

Each plan has a *lane*: at most one thread of the pool is in the plan at a time. A stage is one hop off the loop.
In the lane it feeds everything that has arrived, learns what the plan needs now, and takes a sub-batch of work;
then it leaves the lane, so that the loop can start the new requests and the next stage, and does the work where
it is. So requests go out as soon as the bytes that ask for them are in, decoding overlaps with them, and
nothing but bookkeeping runs on the loop. Work that has async-only codecs goes on as a dialogue between loop and
pool instead.

Requests of all plans of a call share one crew of ``concurrency`` workers. A chunk's first need is one plain
request; the later needs of a chunk (the inner chunks of a shard) go in one call to sources that like to merge
or multiplex ranges themselves, and one request each to all others. Bytes in flight, from the request to the end
of the work they made possible, are bounded; nothing else of a large call is in memory.

Writes hold the locks of all their chunks from before the first byte is read until the last is stored. When a
sub-batch does not encode, nothing of it is stored.

When anything fails, or the call is cancelled, requests and stages are cancelled and waited for. The exception is
a ``set`` or ``delete`` that has begun: it is waited for but not cancelled, because stores tend to leave a
cancelled write running in a thread, where it could overwrite what the next holder of the lock wrote.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from numpy.typing import NDArray

from chunkwright_store._lane import Call, Driver, Reader, Writer
from chunkwright_store.drive_sync import Stop, read_sync, write_sync
from chunkwright_store.jobs import Limits, ReadJob, WriteJob
from chunkwright_store.locks import LOCKS
from chunkwright_store.pool import run_off_loop

__all__ = ("read_async", "read_hop", "write_async", "write_hop")


async def read_async(
    jobs: Iterable[ReadJob],
    out: NDArray[Any],
    limits: Limits | None = None,
    *,
    is_async: bool = False,
    here: bool = False,
) -> None:
    """Read chunks into an array; afterwards ``plan.statuses`` tells which were present.

    Parameters
    ----------
    jobs
        Plans with asynchronous sources.
    out
        The caller's array.
    limits
        How much to do at a time.
    is_async
        Whether a chain has codecs that can only be awaited.
    here
        Whether to compute on the loop, because there is so little of it that hops would take longer.

    Raises
    ------
    CodecError
        With the key of the chunk. Elements of other chunks may have been read.

    Examples
    --------
    >>> import asyncio
    >>> import numpy as np
    >>> from chunkwright import CodecChain, ReferenceBackend
    >>> chain = CodecChain.from_json([{"name": "bytes"}]).bind("uint8", 0)
    >>> prepared = chain.prepare((4,), backends=[ReferenceBackend()])
    >>> from chunkwright_store import AsyncFunctionSource
    >>> async def fetch(wanted):
    ...     return bytes([1, 2, 3, 4])
    >>> sources = [AsyncFunctionSource(fetch)]
    >>> job = ReadJob(plan=prepared.plan_read(slice(1, 3)), sources=sources, keys=["c/0"])
    >>> out = np.zeros(2, "u1")
    >>> asyncio.run(read_async([job], out))
    >>> out.tolist()
    [2, 3]
    """
    limits = limits or Limits()
    await _drive([Reader(job, out, limits, is_async, here) for job in jobs], limits)


async def write_async(
    jobs: Iterable[WriteJob], value: NDArray[Any], limits: Limits | None = None, *, is_async: bool = False
) -> None:
    """Write an array into chunks.

    Parameters
    ----------
    jobs
        Plans with asynchronous sources and sinks.
    value
        The caller's array.
    limits
        How much to do at a time.
    is_async
        Whether a chain has codecs that can only be awaited.

    Raises
    ------
    CodecError
        With the key of the chunk. Other chunks may have been written; each is as it was or as it should be.

    Examples
    --------
    >>> import asyncio
    >>> import numpy as np
    >>> from chunkwright import CodecChain, ReferenceBackend
    >>> chain = CodecChain.from_json([{"name": "bytes"}]).bind("uint8", 0)
    >>> prepared = chain.prepare((4,), backends=[ReferenceBackend()])
    >>> from obstore.store import MemoryStore
    >>> from chunkwright_store import AsyncObspecSink, AsyncObspecSource
    >>> store = MemoryStore()
    >>> sources, sinks = [AsyncObspecSource(store, "c/0")], [AsyncObspecSink(store, "c/0")]
    >>> job = WriteJob(plan=prepared.plan_write(slice(1, 3)), sources=sources, sinks=sinks, keys=["c/0"])
    >>> asyncio.run(write_async([job], np.array([8, 9], "u1")))
    >>> list(bytes(store.get("c/0").buffer()))
    [0, 8, 9, 0]
    """
    jobs, limits = list(jobs), limits or Limits()
    async with _locked(jobs):
        await _drive([Writer(job, value, limits, is_async) for job in jobs], limits)


async def read_hop(jobs: Iterable[ReadJob], out: NDArray[Any], limits: Limits | None = None) -> None:
    """Read synchronous sources from an event loop: everything in one thread, with one hop.

    Parameters
    ----------
    jobs
        Plans with synchronous sources.
    out
        The caller's array.
    limits
        How much to do at a time.

    Raises
    ------
    CodecError
        With the key of the chunk. Elements of other chunks may have been read.

    Examples
    --------
    >>> import asyncio
    >>> import numpy as np
    >>> from chunkwright import CodecChain, ReferenceBackend
    >>> chain = CodecChain.from_json([{"name": "bytes"}]).bind("uint8", 0)
    >>> prepared = chain.prepare((4,), backends=[ReferenceBackend()])
    >>> from chunkwright_store import MappingSource
    >>> sources = [MappingSource({"c/0": bytes([1, 2, 3, 4])}, "c/0")]
    >>> job = ReadJob(plan=prepared.plan_read(slice(1, 3)), sources=sources, keys=["c/0"])
    >>> out = np.zeros(2, "u1")
    >>> asyncio.run(read_hop([job], out))
    >>> out.tolist()
    [2, 3]
    """
    stop = Stop()
    await run_off_loop(partial(read_sync, jobs, out, limits, stop=stop), on_cancel=stop.set)


async def write_hop(jobs: Iterable[WriteJob], value: NDArray[Any], limits: Limits | None = None) -> None:
    """Write to synchronous sinks from an event loop: everything in one thread, with one hop.

    The locks are waited for on the loop, not in the thread.

    Parameters
    ----------
    jobs
        Plans with synchronous sources and sinks.
    value
        The caller's array.
    limits
        How much to do at a time.

    Raises
    ------
    CodecError
        With the key of the chunk. Other chunks may have been written; each is as it was or as it should be.

    Examples
    --------
    >>> import asyncio
    >>> import numpy as np
    >>> from chunkwright import CodecChain, ReferenceBackend
    >>> chain = CodecChain.from_json([{"name": "bytes"}]).bind("uint8", 0)
    >>> prepared = chain.prepare((4,), backends=[ReferenceBackend()])
    >>> from chunkwright_store import MappingSink, MappingSource
    >>> stored = {"c/0": bytes([1, 2, 3, 4])}
    >>> sources, sinks = [MappingSource(stored, "c/0")], [MappingSink(stored, "c/0")]
    >>> job = WriteJob(plan=prepared.plan_write(slice(1, 3)), sources=sources, sinks=sinks, keys=["c/0"])
    >>> asyncio.run(write_hop([job], np.array([8, 9], "u1")))
    >>> list(stored["c/0"])
    [1, 8, 9, 4]
    """
    jobs, stop = list(jobs), Stop()
    async with _locked(jobs):
        write = partial(write_sync, jobs, value, limits, locked=True, stop=stop)
        await run_off_loop(write, on_cancel=stop.set)


def _locked(jobs: Sequence[WriteJob]) -> Any:
    keys = [key for job in jobs for key in job.lock_keys]
    return LOCKS.hold(keys) if keys else nullcontext()


async def _drive(drivers: Sequence[Driver], limits: Limits) -> None:
    """Run the plans of a call side by side until all have ended, or one has failed."""
    loop = asyncio.get_running_loop()
    call = Call(loop, limits)
    try:
        for driver in drivers:
            driver.start(call)
        if call.running:
            await call.ended
    finally:
        await call.close()
