"""When work is done right here instead of in another thread.

A hop to a thread and back costs 40 to 70 microseconds where the CPUs are awake, and 200 where they have gone to sleep:
more than decoding a small chunk. Doing the work on the event loop instead holds up whatever else runs there, so it is
done only on the private loop that zarr keeps for its synchronous API, and there

- when the work takes about as long as the hop and a little; or
- when nobody else uses the loop, and the last work of this kind went so fast that this should be over in ten
  milliseconds. The first of its kind is done in a thread, to see.

Foreign codecs never run there: nobody knows what they do, and some call zarr's synchronous API themselves.
"""

from __future__ import annotations

import asyncio
import math

from zarr.core import sync

from chunkwright.entries import Entries
from chunkwright.prepared import PreparedChain
from chunkwright_zarr.ready import Ready

__all__ = (
    "granule",
    "is_brief",
    "is_brief_when_awaited",
    "is_small",
    "is_small_selection",
    "on_private_loop",
    "touched",
)

MAX_CHUNKS = 8
"""Most (inner) chunks of small work; each costs ten to twenty microseconds besides its bytes."""

MAX_NBYTES = 128 << 10
"""Most decoded bytes of small work; a hundred microseconds or so for common codecs."""

MAX_BRIEF_NBYTES = 32 << 20
"""Most decoded bytes of work that is done here when nobody else uses the loop, however fast the last was."""

MAX_AWAITED_NBYTES = 512 << 10
"""Most decoded bytes of work that is done here when nobody else uses the loop and the bytes are waited for."""

MAX_BRIEF_SECONDS = 0.01
"""How long that work should take at most: whoever comes to the loop meanwhile waits so long, once."""

HOP_SECONDS = 0.0001
"""What a hop takes, about; to find out who else uses the loop takes a tenth of it."""


def on_private_loop() -> bool:
    """Whether the running event loop is the one that zarr keeps for its synchronous API.

    Returns
    -------
    bool
        False when no loop runs.
    """
    return asyncio._get_running_loop() is sync.loop[0] is not None


def is_small(ready: Ready, chunks: int) -> bool:
    """Whether decoding or encoding whole chunks is small work.

    Parameters
    ----------
    ready
        Their chain.
    chunks
        How many there are.

    Returns
    -------
    bool
        Never for elements of variable length.
    """
    prepared = ready.prepared
    if prepared is None or ready.is_foreign:
        return False
    itemsize = prepared.spec.dtype.itemsize
    if itemsize is None:
        return False
    inner, elements = chunks, chunks * prepared.spec.elements
    while prepared.shard is not None:
        inner *= math.prod(prepared.shard.grid)
        prepared = prepared.shard.inner
    return inner <= MAX_CHUNKS and elements * itemsize <= MAX_NBYTES


def is_small_selection(ready: Ready, entries: Entries) -> bool:
    """Whether reading or writing what entries select is small work.

    Parameters
    ----------
    ready
        The chain of the chunks.
    entries
        Their selections.

    Returns
    -------
    bool
        Never for elements of variable length, nor for selections with index lists.
    """
    work = touched(ready, entries) if len(entries) <= MAX_CHUNKS else None
    return work is not None and _is_little(*work)


def _is_little(chunks: int, nbytes: int) -> bool:
    return chunks <= MAX_CHUNKS and nbytes <= MAX_NBYTES


def is_brief(ready: Ready, work: tuple[int, int] | None) -> bool:
    """Whether a read is over so soon that it may be done on zarr's loop.

    Parameters
    ----------
    ready
        The chain of the chunks.
    work
        What :func:`touched` says of it.

    Returns
    -------
    bool
        Always for small work.
    """
    if work is None:
        return False
    if _is_little(*work):
        return True
    _, nbytes = work
    seconds = ready.pace.expected(nbytes)
    if nbytes > MAX_BRIEF_NBYTES or seconds > MAX_BRIEF_SECONDS:
        return False
    return seconds <= HOP_SECONDS or _is_alone()


def is_brief_when_awaited(work: tuple[int, int] | None) -> bool:
    """Whether what comes from a store that is waited for is decoded so soon that this may be done on zarr's loop.

    Parameters
    ----------
    work
        What :func:`touched` says of it.

    Returns
    -------
    bool
        Only when nobody else uses the loop.
    """
    return work is not None and work[1] <= MAX_AWAITED_NBYTES and _is_alone()


def _is_alone() -> bool:
    """Whether no other task uses the running loop."""
    return len(asyncio.all_tasks()) == 1


def touched(ready: Ready, entries: Entries) -> tuple[int, int] | None:
    """Count what has to be decoded for a selection.

    Parameters
    ----------
    ready
        The chain of the chunks.
    entries
        Their selections.

    Returns
    -------
    tuple of int or None
        (Inner) chunks and their decoded bytes. None for elements of variable length, foreign codecs, and index lists in
        shards.
    """
    prepared = ready.prepared
    if prepared is None or ready.is_foreign:
        return None
    itemsize = prepared.spec.dtype.itemsize
    least = granule(prepared)
    if itemsize is None or not (entries.is_boxes or least == prepared.spec.shape):
        return None
    chunks = len(entries)
    if least != prepared.spec.shape:
        chunks = 0
        columns = (entries.start.tolist(), entries.count.tolist(), entries.step.tolist())
        for start, count, step in zip(*columns, strict=True):
            pieces = 1
            for first, taken, by, size in zip(start, count, step, least, strict=True):
                pieces *= (first + max(taken - 1, 0) * by) // size - first // size + 1
            chunks += pieces
    return chunks, chunks * math.prod(least) * itemsize


def granule(prepared: PreparedChain) -> tuple[int, ...]:
    """Return the shape of what is decoded at least.

    Parameters
    ----------
    prepared
        The chain of the chunks.

    Returns
    -------
    tuple of int
        The shape of the innermost chunks that can be read by themselves, along the axes of the decoded chunk.
    """
    if not prepared.is_partial or prepared.shard is None or prepared.order is None:
        return prepared.spec.shape
    inner = granule(prepared.shard.inner)
    shape = [0] * len(inner)
    for axis, decoded in enumerate(prepared.order):
        shape[decoded] = inner[axis]
    return tuple(shape)
