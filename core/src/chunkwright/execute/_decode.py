"""Decode batches, from bytes in memory into the caller's array or into arrays of their own.

Bytes->bytes runs come first, last codec first; then either the run that ends in the caller's array, or whole
arrays that are scattered at the end. Shards are cut into their inner chunks, and all inner chunks of a batch are
decoded in one call. Positions of errors are rows of the batch that each function was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.entries import Entries
from chunkwright.execute._calls import Calls, decode_runs, positions, rows_of
from chunkwright.execute._shards import locate_inner
from chunkwright.grid import split
from chunkwright.ports import Run
from chunkwright.scatter import scatter

if TYPE_CHECKING:
    from chunkwright.prepared import PreparedChain
    from chunkwright.shard import Shard

__all__ = ("decode_arrays", "decode_into", "one_whole")


def decode_into(
    chain: PreparedChain, buffers: Buffers, entries: Entries, out: NDArray[Any], max_workers: int | None = None
) -> Calls[None]:
    """Decode chunks and put the entries' elements into the caller's array.

    Parameters
    ----------
    chain
        The prepared chain.
    buffers
        One row per chunk.
    entries
        Selections, ordered by chunk.
    out
        The caller's array.
    max_workers
        Limit of threads.

    Yields
    ------
    ForeignCall
        To be sent its result.
    """
    shard = chain.shard
    data = yield from decode_runs(chain.tail, buffers, max_workers)
    if shard is None:
        first = chain.runs[0]
        if isinstance(first, Run) and "array->bytes" in first.kinds:
            first.backend.decode_into(first, rows_of(data), entries, out, max_workers=max_workers)
            return
        arrays = yield from decode_runs((first,), data, max_workers)
    elif chain.order is not None:
        yield from _decode_shards_into(shard, rows_of(data), entries.permuted(chain.order), out, max_workers)
        return
    else:
        whole = yield from _decode_shards(shard, rows_of(data), max_workers)
        arrays = yield from decode_runs(chain.head, whole, max_workers)
    scatter(arrays, entries, out, chain.spec.fill_value.value)


def decode_arrays(chain: PreparedChain, buffers: Buffers, max_workers: int | None = None) -> Calls[list[Any]]:
    """Decode whole chunks into arrays of their own.

    Parameters
    ----------
    chain
        The prepared chain.
    buffers
        One row per chunk.
    max_workers
        Limit of threads.

    Yields
    ------
    ForeignCall
        To be sent its result.

    Returns
    -------
    list of NDArray or None
        One per row, None for missing ones; they own their memory.
    """
    data = yield from decode_runs(chain.tail, buffers, max_workers)
    runs = chain.runs[:1]
    if chain.shard is not None:
        data = yield from _decode_shards(chain.shard, rows_of(data), max_workers)
        runs = chain.head
    arrays: list[Any] = yield from decode_runs(runs, data, max_workers)
    return arrays


def _decode_shards(shard: Shard, buffers: Buffers, max_workers: int | None) -> Calls[list[Any]]:
    """Decode whole shards, each into an array of its own (they are rarely many)."""
    arrays: list[NDArray[Any] | None] = []
    for row in range(len(buffers)):
        if buffers.offset[row] < 0:
            arrays.append(None)
            continue
        array = np.empty(shard.spec.shape, shard.spec.dtype.numpy)
        entries = one_whole(shard.spec.shape)
        with positions([row]):
            one = buffers.take(np.array([row]))
            yield from _decode_shards_into(shard, one, entries, array, max_workers)
        arrays.append(array)
    return arrays


def one_whole(shape: tuple[int, ...]) -> Entries:
    zeros = np.zeros((1, len(shape)), np.int64)
    return Entries.boxes(
        chunk=np.zeros(1, np.int64), start=zeros, count=np.array([shape], np.int64).reshape(1, -1), out_start=zeros
    )


def _decode_shards_into(
    shard: Shard, buffers: Buffers, entries: Entries, out: NDArray[Any], max_workers: int | None
) -> Calls[None]:
    if shard.reader is not None and shard.reader.takes(entries, out.dtype):
        shard.reader.decode_into(buffers, entries, out, max_workers=max_workers)
        return
    parts = split(entries, shard.inner.spec.shape, shard.grid)
    inner = yield from locate_inner(shard, buffers, parts)
    with positions(parts.chunk):
        yield from decode_into(shard.inner, inner, parts.entries, out, max_workers)
