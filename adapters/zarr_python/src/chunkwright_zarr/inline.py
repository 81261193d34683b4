"""When work is done right here instead of in another thread.

A hop to a thread and back costs 40 to 70 microseconds, more than decoding a small chunk. Doing the work on the
event loop instead holds up whatever else runs there, so it is done only on the private loop that zarr keeps for
its synchronous API, and only when the planned work takes about as long as the hop and a little. Foreign codecs
never run there: nobody knows what they do, and some call zarr's synchronous API themselves.
"""

from __future__ import annotations

import asyncio
import math

from zarr.core import sync

from chunkwright.entries import Entries
from chunkwright.prepared import PreparedChain
from chunkwright_zarr.ready import Ready

__all__ = ("granule", "is_small", "is_small_selection", "on_private_loop")

MAX_CHUNKS = 8
"""Most (inner) chunks of small work; each costs ten to twenty microseconds besides its bytes."""

MAX_NBYTES = 128 << 10
"""Most decoded bytes of small work; a hundred microseconds or so for common codecs."""


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
    prepared = ready.prepared
    if prepared is None or ready.is_foreign:
        return False
    itemsize = prepared.spec.dtype.itemsize
    if itemsize is None or len(entries) > MAX_CHUNKS or not entries.is_boxes:
        return False
    least = granule(prepared)
    touched = 0
    for start, count, step in zip(entries.start.tolist(), entries.count.tolist(), entries.step.tolist(), strict=True):
        pieces = 1
        for first, taken, by, size in zip(start, count, step, least, strict=True):
            pieces *= (first + max(taken - 1, 0) * by) // size - first // size + 1
        touched += pieces
    return touched <= MAX_CHUNKS and touched * math.prod(least) * itemsize <= MAX_NBYTES


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
