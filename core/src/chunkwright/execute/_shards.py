"""Inner chunks within shards that are in memory: found when decoding, put together when encoding."""

from __future__ import annotations

from collections.abc import Buffer
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import MISSING, Buffers
from chunkwright.errors import CodecError
from chunkwright.execute._calls import Calls, decode_runs, encode_runs, positions
from chunkwright.grid import Split
from chunkwright.shard_format import assemble, kept_spans, locate, place

if TYPE_CHECKING:
    from chunkwright.shard import Shard

__all__ = ("Located", "existing_inner", "index_rows", "locate_all", "locate_inner", "put_together", "read_indexes")

type Located = tuple[NDArray[np.int64], NDArray[np.int64]]


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
    # Parts are ordered by shard.
    heads = np.flatnonzero(np.diff(parts.chunk, prepend=-1))
    tails = np.searchsorted(parts.chunk, parts.chunk[heads], "right")
    there = buffers.offset[parts.chunk[heads]] >= 0
    heads, tails, present = heads[there], tails[there], parts.chunk[heads[there]]
    tables = yield from read_indexes(shard, index_rows(shard, buffers, present), present)
    offset = np.full(len(parts.chunk), MISSING, np.int64)
    length = np.zeros(len(parts.chunk), np.int64)
    for table, chunk, begin, end in zip(tables, present.tolist(), heads.tolist(), tails.tolist(), strict=True):
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
        tables = yield from decode_runs(shard.index.runs, encoded, None)
    return [table.reshape(-1, 2) for table in tables]


def locate_all(table: NDArray[np.uint64], shard: Shard, row: int, size: int) -> Located:
    with positions(np.full(len(table), row)):
        return locate(table, shard.layout, size)


def existing_inner(shard: Shard, parts: Split, existing: Buffers, old: dict[int, Located]) -> Buffers:
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


def put_together(
    shard: Shard, touched: list[tuple[int, Buffer | None]], old: memoryview | None, located: Located | None
) -> Calls[Buffer | None]:
    cells = shard.cells
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
    encoded = yield from encode_runs(shard.index.runs, [table.reshape(shard.index.spec.shape)], None)
    index: Buffer = encoded[0]
    return index
