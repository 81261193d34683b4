"""Encode batches, from the caller's array or from whole chunks, on top of what chunks held before.

The mirror of decoding: the run that starts in the caller's array, or whole arrays that are gathered first, then
bytes->bytes runs. In a shard only the touched inner chunks are encoded (and decoded first where they are only
partly written), all of a batch in one call; the others are spliced verbatim.
"""

from __future__ import annotations

from collections.abc import Buffer, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.entries import Entries
from chunkwright.execute._calls import Calls, decode_runs, encode_runs, positions, rows_of
from chunkwright.execute._decode import decode_arrays, one_whole
from chunkwright.execute._shards import existing_inner, index_rows, locate_all, put_together, read_indexes
from chunkwright.grid import split
from chunkwright.ports import Run
from chunkwright.rewriting import Rewrites
from chunkwright.scatter import gather

if TYPE_CHECKING:
    from chunkwright.prepared import PreparedChain
    from chunkwright.shard import Shard

__all__ = ("encode_arrays", "encode_from")


def encode_from(
    chain: PreparedChain,
    source: NDArray[Any],
    entries: Entries,
    existing: Buffers,
    keep_empty: bool,
    max_workers: int | None = None,
) -> Calls[list[Buffer | None]]:
    """Encode chunks whose elements come from the caller's array, on top of what they held before.

    Parameters
    ----------
    chain
        The prepared chain.
    source
        The caller's array.
    entries
        Selections of the chunks and where in ``source`` their elements are, ordered by chunk.
    existing
        One row per chunk: its encoded bytes so far, missing when it does not matter or there are none.
    keep_empty
        Whether chunks that hold nothing but the fill value are encoded all the same.
    max_workers
        Limit of threads.

    Yields
    ------
    ForeignCall
        To be sent its result.

    Returns
    -------
    list of Buffer or None
        One per chunk; None when it is not to be stored.
    """
    shard = chain.shard
    if shard is not None and chain.order is not None and not (keep_empty and chain.is_wrapped_shard):
        bodies = yield from decode_runs(chain.tail, existing, max_workers)
        moved = entries.permuted(chain.order)
        shards = yield from _encode_shards(shard, source, moved, rows_of(bodies), keep_empty, max_workers)
        return (yield from encode_runs(chain.tail, shards, max_workers))
    if shard is None:
        first = chain.runs[0]
        if isinstance(first, Run) and "array->bytes" in first.kinds:
            data = yield from decode_runs(chain.tail, existing, max_workers)
            items = _encode_run(first, source, entries, rows_of(data), keep_empty, max_workers)
            return (yield from encode_runs(chain.tail, items, max_workers))
    base: list[Any] = [None] * len(existing)
    if (existing.offset >= 0).any():
        base = yield from decode_arrays(chain, existing, max_workers)
    arrays = gather(source, entries, base, chain.spec, keep_empty=keep_empty)
    return (yield from encode_arrays(chain, arrays, max_workers, keep_empty))


def _encode_run(
    run: Run, source: NDArray[Any], entries: Entries, existing: Buffers, keep_empty: bool, max_workers: int | None
) -> list[Buffer | None]:
    """Encode with the run that starts in the caller's array, on top of what it encoded before."""
    backend = run.backend
    base: list[NDArray[Any] | None] = [None] * len(existing)
    if (existing.offset >= 0).any():
        if isinstance(backend, Rewrites):
            items = backend.rewrite_from(
                run, source, entries, existing=existing, keep_empty=keep_empty, max_workers=max_workers
            )
            if items is not None:
                return items
        base = backend.decode_arrays(run, list(existing.views()), max_workers=max_workers)
    return backend.encode_from(run, source, entries, base=base, keep_empty=keep_empty, max_workers=max_workers)


def encode_arrays(
    chain: PreparedChain, arrays: Sequence[NDArray[Any] | None], max_workers: int | None = None, keep_empty: bool = True
) -> Calls[list[Buffer | None]]:
    """Encode whole chunks, without the emptiness rule for the chunk itself.

    Parameters
    ----------
    chain
        The prepared chain.
    arrays
        Chunks; None stays None.
    max_workers
        Limit of threads.
    keep_empty
        Whether inner chunks of nothing but the fill value are kept.

    Yields
    ------
    ForeignCall
        To be sent its result.

    Returns
    -------
    list of Buffer or None
        One per chunk.
    """
    items: Sequence[Any | None] = arrays
    if chain.shard is None:
        return (yield from encode_runs(chain.runs, items, max_workers))
    items = yield from encode_runs(chain.head, items, max_workers)
    shards: list[Buffer | None] = []
    for number, array in enumerate(items):
        if array is None:
            shards.append(None)
            continue
        with positions([number]):
            whole = one_whole(chain.shard.spec.shape)
            none = Buffers.of([None])
            shards += yield from _encode_shards(chain.shard, array, whole, none, keep_empty, max_workers)
    return (yield from encode_runs(chain.tail, shards, max_workers))


def _encode_shards(
    shard: Shard, source: NDArray[Any], entries: Entries, existing: Buffers, keep_empty: bool, max_workers: int | None
) -> Calls[list[Buffer | None]]:
    """Encode the touched inner chunks of shards and splice the others verbatim."""
    writer = shard.writer
    if writer is not None and writer.takes(entries):
        return writer.encode_from(source, entries, existing, keep_empty=keep_empty, max_workers=max_workers)
    parts = split(entries, shard.inner.spec.shape, shard.grid)
    rows = np.flatnonzero(existing.offset >= 0)
    tables = yield from read_indexes(shard, index_rows(shard, existing, rows), rows)
    old = {
        row: locate_all(table, shard, row, int(existing.length[row]))
        for row, table in zip(rows.tolist(), tables, strict=True)
    }
    inner_existing = existing_inner(shard, parts, existing, old)
    with positions(parts.chunk):
        inner = yield from encode_from(shard.inner, source, parts.entries, inner_existing, keep_empty, max_workers)
    bounds = np.searchsorted(parts.chunk, np.arange(len(existing) + 1)).tolist()
    cells = parts.cell.tolist()
    shards: list[Buffer | None] = []
    for row in range(len(existing)):
        mine = slice(bounds[row], bounds[row + 1])
        touched = list(zip(cells[mine], inner[mine], strict=True))
        view = existing.view(row)
        shards.append((yield from put_together(shard, touched, view, old.get(row))))
    return shards
