"""What a plan asks for: rows of byte ranges, and how to fetch many of them with few requests.

A need is one row ``(id, chunk, kind, start, stop)``. A range is ``[start, stop)`` of the chunk's encoded
bytes; a suffix is its last ``stop`` bytes; whole is all of them. ``coalesce`` is a pure function: it merges
ranges of one chunk that lie close together into fetches, and remembers which part of a fetch answers
which need. Whether and how far to merge is the driver's decision, because only it knows the store.
"""

from __future__ import annotations

from collections.abc import Buffer
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import MISSING, Buffers
from chunkwright.entries import offsets_of

__all__ = ("NEED", "RANGE", "SUFFIX", "WHOLE", "Fetches", "coalesce")

NEED = np.dtype([("id", "<i8"), ("chunk", "<i8"), ("kind", "<i8"), ("start", "<i8"), ("stop", "<i8")])
"""dtype of a plan's needs."""

RANGE = 0
"""Kind of a need for the bytes from ``start`` up to ``stop``."""

SUFFIX = 1
"""Kind of a need for the last ``stop`` bytes."""

WHOLE = 2
"""Kind of a need for all bytes."""


@attrs.frozen(eq=False)
class Fetches:
    """Requests that together answer a set of needs.

    Parameters
    ----------
    chunk, kind, start, stop
        int64, shape ``(k,)``: one request each, as in a need.
    ids
        int64, shape ``(n,)``: the answered needs, request by request.
    bounds
        int64, shape ``(k + 1,)``: where each request's needs begin in ``ids``.
    offset, length
        int64, shape ``(n,)``: the part of the request that answers each need; length -1 is all of it.

    Examples
    --------
    >>> needs = np.array([(0, 7, RANGE, 0, 4), (1, 7, RANGE, 6, 9)], NEED)
    >>> fetches = coalesce(needs, max_gap=4)
    >>> ids, buffers = fetches.buffers(0, b"abcdefghi")
    >>> ids.tolist(), [bytes(buffers.view(row)) for row in range(2)]
    ([0, 1], [b'abcd', b'ghi'])
    """

    chunk: NDArray[np.int64]
    kind: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    ids: NDArray[np.int64]
    bounds: NDArray[np.int64]
    offset: NDArray[np.int64]
    length: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.chunk)

    def requests(self) -> list[tuple[int, int, int, int]]:
        """Return the requests as rows.

        Returns
        -------
        list of tuple of int
            Chunk, kind, start and stop of each.
        """
        columns = (self.chunk, self.kind, self.start, self.stop)
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def members(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return what one request answers.

        Parameters
        ----------
        number
            Which request.

        Returns
        -------
        tuple of NDArray
            Ids of its needs, and for each the offset and the length within the request.
        """
        rows = slice(int(self.bounds[number]), int(self.bounds[number + 1]))
        return self.ids[rows], self.offset[rows], self.length[rows]

    def buffers(self, number: int, fetched: Buffer | None) -> tuple[NDArray[np.int64], Buffers]:
        """Cut what was fetched into answers, ready for ``plan.feed``.

        Parameters
        ----------
        number
            Which request.
        fetched
            What the store returned; None when the chunk is missing. It may be shorter than was asked
            for: the plan will notice.

        Returns
        -------
        tuple of NDArray and Buffers
            Ids, and one row for each, without a copy.
        """
        ids, offset, length = self.members(number)
        if fetched is None:
            gone = np.full(len(ids), MISSING, np.int64)
            return ids, Buffers.within(b"", gone, np.zeros(len(ids), np.int64))
        size = memoryview(fetched).nbytes
        length = np.where(length < 0, size, length)
        return ids, Buffers.within(fetched, offset, np.clip(size - offset, 0, length))


def coalesce(needs: NDArray[Any], *, max_gap: int = 0, max_size: int = 1 << 62) -> Fetches:
    """Merge needs into fewer requests.

    Ranges of one chunk are merged when no more than ``max_gap`` bytes lie between them and the merged
    range is no longer than ``max_size``. Suffixes and wholes are left alone.

    Parameters
    ----------
    needs
        Rows of dtype ``NEED``.
    max_gap
        Bytes that may be fetched for nothing between two ranges.
    max_size
        Bytes of the longest merged range; a single longer need is still one request.

    Returns
    -------
    Fetches
        The requests, by chunk and start.

    Examples
    --------
    >>> needs = np.array([(0, 7, RANGE, 0, 4), (1, 7, RANGE, 6, 9), (2, 7, RANGE, 90, 99)], NEED)
    >>> fetches = coalesce(needs, max_gap=4)
    >>> fetches.start.tolist(), fetches.stop.tolist(), fetches.members(0)[1].tolist()
    ([0, 90], [9, 99], [0, 6])
    """
    if len(needs) == 1:
        return _alone(needs)
    rows = needs[_order(needs)]
    reach = _running_stop(rows)
    joins = np.zeros(len(rows), bool)
    same = (rows["chunk"][1:] == rows["chunk"][:-1]) & (rows["kind"][1:] == RANGE) & (rows["kind"][:-1] == RANGE)
    joins[1:] = same & (rows["start"][1:] - reach[:-1] <= max_gap)
    _respect_max_size(rows, reach, joins, max_size)
    heads = np.flatnonzero(~joins)
    bounds = np.append(heads, len(rows)).astype(np.int64)
    stop = np.maximum.reduceat(rows["stop"], heads) if len(heads) else np.empty(0, np.int64)
    ranged = rows["kind"] == RANGE
    lead = np.repeat(rows["start"][heads], np.diff(bounds))
    return Fetches(
        rows["chunk"][heads],
        rows["kind"][heads],
        rows["start"][heads],
        stop,
        rows["id"],
        bounds,
        np.where(ranged, rows["start"] - lead, 0),
        np.where(ranged, rows["stop"] - rows["start"], -1),
    )


def _order(needs: NDArray[Any]) -> NDArray[np.int64]:
    """Order needs by chunk, kind and start; those that a plan asks for together are of one kind nearly always."""
    keys = [np.ascontiguousarray(needs[name]) for name in ("start", "kind", "chunk")]
    varying = [key for key in keys if len(key) and (key != key[0]).any()]
    return np.lexsort(varying) if varying else np.arange(len(needs), dtype=np.int64)


def _alone(needs: NDArray[Any]) -> Fetches:
    """The commonest case, one need, without the sorting."""
    length = needs["stop"] - needs["start"] if needs["kind"][0] == RANGE else np.array([-1])
    zero = np.zeros(1, np.int64)
    return Fetches(
        needs["chunk"], needs["kind"], needs["start"], needs["stop"], needs["id"], offsets_of(zero + 1), zero, length
    )


def _running_stop(rows: NDArray[Any]) -> NDArray[np.int64]:
    """Furthest stop so far within each chunk: ranges may lie within one another."""
    stop = rows["stop"].copy()
    later = stop[1:] < stop[:-1]
    if (later & (rows["chunk"][1:] == rows["chunk"][:-1])).any():
        chunks = np.flatnonzero(np.append(True, rows["chunk"][1:] != rows["chunk"][:-1]))
        for first, last in zip(chunks, [*chunks[1:], len(rows)], strict=True):
            np.maximum.accumulate(stop[first:last], out=stop[first:last])
    return stop


def _respect_max_size(rows: NDArray[Any], reach: NDArray[np.int64], joins: NDArray[np.bool_], max_size: int) -> None:
    """Cut merged ranges that are too long, greedily from the left; changes ``joins``."""
    heads = np.flatnonzero(~joins)
    ends = np.append(heads[1:], len(rows))
    too_long = np.flatnonzero(reach[ends - 1] - rows["start"][heads] > max_size) if len(heads) else heads
    for group in too_long.tolist():
        first, last = int(heads[group]), int(ends[group])
        begin = int(rows["start"][first])
        starts, stops = rows["start"][first:last].tolist(), reach[first:last].tolist()
        for row in range(first + 1, last):
            if stops[row - first] - begin > max_size:
                joins[row] = False
                begin = starts[row - first]
