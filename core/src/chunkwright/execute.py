"""Run prepared chains on batches, from bytes in memory to arrays and back.

Everything here is a generator that yields :class:`~chunkwright.ports.ForeignCall` values and is sent
their results: a backend's work is done between two yields, a foreign codec's work is done by whoever
drives the generator. So one implementation serves a synchronous driver (:func:`run_calls`) and one that
awaits codecs on an event loop, for chains of any depth.

Order of work when decoding: bytes->bytes runs from the last codec back; then either the run that ends in
the caller's array (``decode_into``), or whole arrays that are scattered at the end. Shards are cut into their
inner chunks, and all inner chunks of a batch are decoded in one call of this module. Encoding mirrors it.
Positions of errors are rows of the batch that each function was given.
"""

from __future__ import annotations

from collections.abc import Buffer, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import MISSING, Buffers
from chunkwright.entries import Entries
from chunkwright.errors import CodecError, CorruptChunkError, PlanError
from chunkwright.grid import Split, split
from chunkwright.ports import ForeignCall, ForeignRun, Run
from chunkwright.scatter import Copier, scatter
from chunkwright.shard_format import assemble, kept_spans, locate, place

if TYPE_CHECKING:
    from chunkwright.prepared import PreparedChain, Shard

__all__ = (
    "decode_arrays",
    "decode_into",
    "encode_arrays",
    "encode_from",
    "gather",
    "index_rows",
    "locate_inner",
    "positions",
    "read_indexes",
    "run_calls",
)

type Calls[T] = Generator[ForeignCall, Sequence[Any | None], T]
type AnyRun = Run | ForeignRun


def run_calls[T](calls: Calls[T]) -> T:
    """Drive a generator of this module to its end without an event loop.

    Parameters
    ----------
    calls
        A generator of foreign calls.

    Returns
    -------
    T
        What the generator returns.

    Raises
    ------
    PlanError
        When a codec can only be awaited.
    """
    try:
        call = next(calls)
        while True:
            if call.is_async:
                raise PlanError("this codec can only be awaited on an event loop", codec=call.run.codec.name)
            call = calls.send(call.start())
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        calls.close()


@contextmanager
def positions(rows: NDArray[np.int64] | Sequence[int]) -> Iterator[None]:
    """Translate positions of errors from a smaller batch to the caller's.

    Parameters
    ----------
    rows
        Row of the caller's batch for each row of the smaller one.
    """
    try:
        yield
    except CodecError as error:
        if error.position is not None:
            error.at(int(rows[error.position]))
        raise


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
    data = yield from _decode_runs(chain.tail, buffers, max_workers)
    if shard is None:
        first = chain.runs[0]
        if isinstance(first, Run) and "array->bytes" in first.kinds:
            first.backend.decode_into(first, _rows(data), entries, out, max_workers=max_workers)
            return
        arrays = yield from _decode_runs((first,), data, max_workers)
    elif chain.order is not None:
        yield from _decode_shards_into(shard, _rows(data), entries.permuted(chain.order), out, max_workers)
        return
    else:
        whole = yield from _decode_shards(shard, _rows(data), max_workers)
        arrays = yield from _decode_runs(chain.head, whole, max_workers)
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
    data = yield from _decode_runs(chain.tail, buffers, max_workers)
    runs = chain.runs[:1]
    if chain.shard is not None:
        data = yield from _decode_shards(chain.shard, _rows(data), max_workers)
        runs = chain.head
    arrays: list[Any] = yield from _decode_runs(runs, data, max_workers)
    return arrays


def _decode_shards(shard: Shard, buffers: Buffers, max_workers: int | None) -> Calls[list[Any]]:
    """Decode whole shards, each into an array of its own (they are rarely many)."""
    arrays: list[NDArray[Any] | None] = []
    for row in range(len(buffers)):
        if buffers.offset[row] < 0:
            arrays.append(None)
            continue
        array = np.empty(shard.spec.shape, shard.spec.dtype.numpy)
        entries = _one_whole(shard.spec.shape)
        with positions([row]):
            one = buffers.take(np.array([row]))
            yield from _decode_shards_into(shard, one, entries, array, max_workers)
        arrays.append(array)
    return arrays


def _one_whole(shape: tuple[int, ...]) -> Entries:
    zeros = np.zeros((1, len(shape)), np.int64)
    return Entries.boxes(
        chunk=np.zeros(1, np.int64), start=zeros, count=np.array([shape], np.int64).reshape(1, -1), out_start=zeros
    )


def _decode_shards_into(
    shard: Shard, buffers: Buffers, entries: Entries, out: NDArray[Any], max_workers: int | None
) -> Calls[None]:
    parts = split(entries, shard.inner.spec.shape, shard.grid)
    inner = yield from locate_inner(shard, buffers, parts)
    with positions(parts.chunk):
        yield from decode_into(shard.inner, inner, parts.entries, out, max_workers)


def locate_inner(shard: Shard, buffers: Buffers, parts: Split) -> Calls[Buffers]:
    """Find the inner chunks that a split touches, within shards that are in memory.

    Parameters
    ----------
    shard
        The sharding codec, prepared.
    buffers
        One row per shard.
    parts
        The touched inner chunks.

    Yields
    ------
    ForeignCall
        To be sent its result.

    Returns
    -------
    Buffers
        One row per touched inner chunk.
    """
    touched = np.unique(parts.chunk)
    present = touched[buffers.offset[touched] >= 0]
    tables = yield from read_indexes(shard, index_rows(shard, buffers, present), present)
    offset = np.full(len(parts.chunk), MISSING, np.int64)
    length = np.zeros(len(parts.chunk), np.int64)
    first = np.searchsorted(parts.chunk, present, "left")
    last = np.searchsorted(parts.chunk, present, "right")
    for table, chunk, begin, end in zip(tables, present.tolist(), first.tolist(), last.tolist(), strict=True):
        rows = slice(begin, end)
        with positions(np.full(end - begin, chunk)):
            found, length[rows] = locate(table[parts.cell[rows]], shard.layout, int(buffers.length[chunk]))
        offset[rows] = np.where(found < 0, MISSING, found + buffers.offset[chunk])
    return Buffers(buffers.owners, buffers.source[parts.chunk], offset, length)


def index_rows(shard: Shard, buffers: Buffers, rows: NDArray[np.int64]) -> Buffers:
    """Return the encoded indexes of shards that are in memory.

    Parameters
    ----------
    shard
        The sharding codec, prepared.
    buffers
        One row per shard.
    rows
        The shards that are wanted, all of them present.

    Returns
    -------
    Buffers
        One row per wanted shard.

    Raises
    ------
    ShardIndexError
        When a shard is too short to hold its index.
    """
    spans: list[tuple[int, int]] = []
    for row in rows.tolist():
        with positions([row]):
            spans.append(_span(shard, int(buffers.length[row])))
    start = np.array([begin for begin, _ in spans], np.int64)
    length = np.full(len(rows), shard.layout.index_size, np.int64)
    return Buffers(buffers.owners, buffers.source[rows], buffers.offset[rows] + start, length)


def _span(shard: Shard, size: int) -> tuple[int, int]:
    try:
        return shard.layout.index_span(size)
    except CodecError as error:
        raise error.at(0) from None


def read_indexes(shard: Shard, encoded: Buffers, rows: NDArray[np.int64]) -> Calls[list[NDArray[np.uint64]]]:
    """Decode shard indexes.

    Parameters
    ----------
    shard
        The sharding codec, prepared.
    encoded
        One encoded index per row.
    rows
        Positions to report in errors.

    Yields
    ------
    ForeignCall
        To be sent its result.

    Returns
    -------
    list of NDArray
        uint64, shape ``(cells, 2)`` each.
    """
    if not len(encoded):
        return []
    with positions(rows):
        tables = yield from decode_arrays(shard.index, encoded)
    return [table.reshape(-1, 2) for table in tables]


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
    if shard is not None and chain.order is not None:
        bodies = yield from _decode_runs(chain.tail, existing, max_workers)
        moved = entries.permuted(chain.order)
        shards = yield from _encode_shards(shard, source, moved, _rows(bodies), keep_empty, max_workers)
        return (yield from _encode_runs(chain.tail, shards, max_workers))
    base: list[Any] = [None] * len(existing)
    if (existing.offset >= 0).any():
        base = yield from decode_arrays(chain, existing, max_workers)
    if shard is None:
        first = chain.runs[0]
        if isinstance(first, Run) and "array->bytes" in first.kinds:
            items = first.backend.encode_from(
                first, source, entries, base=base, keep_empty=keep_empty, max_workers=max_workers
            )
            return (yield from _encode_runs(chain.tail, items, max_workers))
    arrays = gather(chain, source, entries, base, keep_empty)
    return (yield from encode_arrays(chain, arrays, max_workers, keep_empty))


def gather(
    chain: PreparedChain, source: NDArray[Any], entries: Entries, base: Sequence[NDArray[Any] | None], keep_empty: bool
) -> list[NDArray[Any] | None]:
    """Put together whole chunks as arrays, None for those that need not be stored.

    Parameters
    ----------
    chain
        The prepared chain, for its spec.
    source
        The caller's array.
    entries
        The selections.
    base
        What each chunk held before, or None; changed.
    keep_empty
        Whether chunks of nothing but the fill value are kept.

    Returns
    -------
    list of NDArray or None
        One per chunk.
    """
    arrays = [chain.spec.full() if array is None else array for array in base]
    copier = Copier(entries)
    for row, chunk in enumerate(entries.chunk.tolist()):
        copier.gather(row, source, arrays[chunk])
    fill = chain.spec.fill_value
    return [array if keep_empty or not fill.fills(array) else None for array in arrays]


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
        return (yield from _encode_runs(chain.runs, items, max_workers))
    items = yield from _encode_runs(chain.head, items, max_workers)
    shards: list[Buffer | None] = []
    for number, array in enumerate(items):
        if array is None:
            shards.append(None)
            continue
        with positions([number]):
            whole = _one_whole(chain.shard.spec.shape)
            none = Buffers.of([None])
            shards += yield from _encode_shards(chain.shard, array, whole, none, keep_empty, max_workers)
    return (yield from _encode_runs(chain.tail, shards, max_workers))


def _encode_shards(
    shard: Shard, source: NDArray[Any], entries: Entries, existing: Buffers, keep_empty: bool, max_workers: int | None
) -> Calls[list[Buffer | None]]:
    """Encode the touched inner chunks of shards and splice the others verbatim."""
    parts = split(entries, shard.inner.spec.shape, shard.grid)
    rows = np.flatnonzero(existing.offset >= 0)
    tables = yield from read_indexes(shard, index_rows(shard, existing, rows), rows)
    old = {
        row: _located(table, shard, row, int(existing.length[row]))
        for row, table in zip(rows.tolist(), tables, strict=True)
    }
    inner_existing = _inner_existing(shard, parts, existing, old)
    with positions(parts.chunk):
        inner = yield from encode_from(shard.inner, source, parts.entries, inner_existing, keep_empty, max_workers)
    bounds = np.searchsorted(parts.chunk, np.arange(len(existing) + 1)).tolist()
    cells = parts.cell.tolist()
    shards: list[Buffer | None] = []
    for row in range(len(existing)):
        mine = slice(bounds[row], bounds[row + 1])
        touched = list(zip(cells[mine], inner[mine], strict=True))
        view = existing.view(row)
        shards.append((yield from _put_together(shard, touched, view, old.get(row))))
    return shards


type Located = tuple[NDArray[np.int64], NDArray[np.int64]]


def _located(table: NDArray[np.uint64], shard: Shard, row: int, size: int) -> Located:
    with positions(np.full(len(table), row)):
        return locate(table, shard.layout, size)


def _inner_existing(shard: Shard, parts: Split, existing: Buffers, old: dict[int, Located]) -> Buffers:
    """What the touched inner chunks held before, where the entries do not cover them."""
    items = len(parts.chunk)
    covered = np.zeros(items, bool)
    np.logical_or.at(covered, parts.entries.chunk, parts.entries.covers(shard.inner.spec.shape))
    offset, length = np.full(items, MISSING, np.int64), np.zeros(items, np.int64)
    for row, (where, size) in old.items():
        rows = np.flatnonzero((parts.chunk == row) & ~covered)
        found = where[parts.cell[rows]]
        offset[rows] = np.where(found < 0, MISSING, found + existing.offset[row])
        length[rows] = size[parts.cell[rows]]
    return Buffers(existing.owners, existing.source[parts.chunk], offset, length)


def _put_together(
    shard: Shard, touched: list[tuple[int, Buffer | None]], old: memoryview | None, located: Located | None
) -> Calls[Buffer | None]:
    cells = len(shard.write_order)
    lengths = np.zeros(cells, np.int64)
    kept = np.empty(0, np.int64)
    if located is not None:
        lengths[:] = np.where(located[0] < 0, 0, located[1])
        lengths[[cell for cell, _ in touched]] = 0
        kept = shard.write_order[lengths[shard.write_order] > 0]
    written: list[tuple[int, Buffer]] = []
    for cell, data in touched:
        lengths[cell] = 0 if data is None else memoryview(data).nbytes
        if data is not None and lengths[cell]:
            written.append((cell, data))
    if not lengths.any():
        return None
    placement = place(lengths, shard.write_order, shard.layout)
    index = yield from _encode_index(shard, placement.table)
    spans: list[tuple[int, memoryview]] = []
    if located is not None and old is not None:
        spans = kept_spans(old, located[0][kept], lengths[kept], placement.start[kept])
    return assemble(placement, shard.layout, index, written, spans)


def _encode_index(shard: Shard, table: NDArray[np.uint64]) -> Calls[Buffer]:
    encoded = yield from encode_arrays(shard.index, [table.reshape(shard.index.spec.shape)])
    index = encoded[0]
    assert index is not None
    return index


def _decode_runs(runs: Sequence[AnyRun], data: Any, max_workers: int | None) -> Calls[Any]:
    """Decode through runs, last first; ``data`` is Buffers, or a list of arrays or buffers."""
    for run in reversed(runs):
        if isinstance(run, ForeignRun):
            data = yield from _decode_foreign(run, data)
        elif run.kinds[0] == "bytes->bytes":
            data = run.backend.decode_bytes(run, _rows(data), max_workers=max_workers)
        else:
            data = run.backend.decode_arrays(run, _items(data), max_workers=max_workers)
    return data


def _encode_runs(runs: Sequence[AnyRun], data: Sequence[Any | None], max_workers: int | None) -> Calls[list[Any]]:
    for run in runs:
        if isinstance(run, ForeignRun):
            data = yield ForeignCall(run, data, "encode")
        elif run.kinds[0] == "bytes->bytes":
            data = run.backend.encode_bytes(run, data, max_workers=max_workers)
        else:
            data = run.backend.encode_arrays(run, data, max_workers=max_workers)
    return list(data)


def _decode_foreign(run: ForeignRun, data: Any) -> Calls[list[Any]]:
    items = list((yield ForeignCall(run, _items(data), "decode")))
    if run.codec.kind == "bytes->bytes":
        return items
    for row, array in enumerate(items):
        if array is not None and array.shape != run.step.spec.shape:
            raise CorruptChunkError(
                "wrong decoded shape",
                codec=run.codec.name,
                position=row,
                expected=run.step.spec.shape,
                found=array.shape,
            )
    # They may be views of stored bytes or of one another: a partial write changes them.
    return [array if array is None or array.flags.writeable else array.copy() for array in items]


def _rows(data: Any) -> Buffers:
    return data if isinstance(data, Buffers) else Buffers.of(data)


def _items(data: Any) -> list[Any | None]:
    return list(data.views()) if isinstance(data, Buffers) else list(data)
