"""The sharded chunk format, bytes only: where inner chunks lie, and how a shard is put together.

A shard is a data section and an index; the index has, for each inner chunk in C order of the shard's grid,
a uint64 offset and a uint64 length, both ``2**64 - 1`` when the inner chunk is missing. The index is encoded
by a codec chain of fixed size of its own and lies at the start or at the end. Everything in an index is
untrusted: :func:`locate` checks every entry before its offset is used. Inner chunks may share bytes.

Follows https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed/.
"""

from __future__ import annotations

import math
from collections.abc import Buffer, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import MISSING
from chunkwright.errors import ShardIndexError
from chunkwright.spec import BoundedSize, FixedSize, Size

__all__ = ("ABSENT", "Layout", "Placement", "assemble", "inner_chunk_order", "kept_spans", "locate", "place")

ABSENT = np.uint64(2**64 - 1)
"""Offset and length of a missing inner chunk."""

FEW = 16
"""Up to so many entries of an index, plain Python is faster than a dozen calls of NumPy."""


@attrs.frozen(eq=False)
class Layout:
    """Where the index and the inner chunks of a shard may lie.

    Parameters
    ----------
    index_size
        Bytes of the encoded index.
    at_start
        Whether the index comes first.
    inner_size
        Bytes of an encoded inner chunk, as far as they are known.
    """

    index_size: int
    at_start: bool
    inner_size: Size

    def index_span(self, size: int) -> tuple[int, int]:
        """Return where the index of a shard lies.

        Parameters
        ----------
        size
            Bytes of the shard.

        Returns
        -------
        tuple of int
            Start and stop.

        Raises
        ------
        ShardIndexError
            When the shard is too short to hold its index.
        """
        if size < self.index_size:
            raise ShardIndexError(
                "the shard is too short for its index", codec="sharding_indexed", expected=self.index_size, found=size
            )
        return (0, self.index_size) if self.at_start else (size - self.index_size, size)


def locate(
    entries: NDArray[np.uint64], layout: Layout, shard_size: NDArray[np.int64] | int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Check index entries and turn them into offsets and lengths.

    Parameters
    ----------
    entries
        uint64, shape ``(n, 2)``: offset and length.
    layout
        What the shard's chain allows.
    shard_size
        Bytes of the shard (one number, or int64 per entry), None when nobody knows yet.

    Returns
    -------
    tuple of NDArray
        int64 offsets (-1 for missing inner chunks) and int64 lengths, each of shape ``(n,)``.

    Raises
    ------
    ShardIndexError
        When an entry points outside the shard, into its index, or has a length that the chain does not
        allow; ``position`` is the row.

    Examples
    --------
    >>> layout = Layout(index_size=32, at_start=False, inner_size=FixedSize(2))
    >>> offset, length = locate(np.array([[0, 2], [ABSENT, ABSENT]], np.uint64), layout, 34)
    >>> offset.tolist(), length.tolist()
    ([0, -1], [2, 0])
    """
    if len(entries) <= FEW and not isinstance(shard_size, np.ndarray):
        few = _few_located(entries, layout, shard_size)
        if few is not None:
            return few
    missing = (entries[:, 0] == ABSENT) & (entries[:, 1] == ABSENT)
    limit = np.uint64(2**63 - 1)
    wide = (entries > limit).any(axis=1) & ~missing
    _refuse(wide, entries, "an index entry is out of range")
    offset = np.where(missing, 0, entries[:, 0]).astype(np.int64)
    length = np.where(missing, 0, entries[:, 1]).astype(np.int64)
    _refuse(length > np.int64(2**63 - 1) - offset, entries, "an index entry is out of range")
    _check_lengths(length, missing, entries, layout)
    if layout.at_start:
        _refuse((offset < layout.index_size) & ~missing & (length > 0), entries, "an index entry points into the index")
    if shard_size is not None:
        end = np.asarray(shard_size) - (0 if layout.at_start else layout.index_size)
        _refuse((offset + length > end) & ~missing, entries, "an index entry points outside the shard's data")
    return np.where(missing, MISSING, offset), length


def _few_located(
    entries: NDArray[np.uint64], layout: Layout, shard_size: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Do the same in plain Python; None when an entry is refused, which the others explain."""
    size = layout.inner_size
    least = size.nbytes if isinstance(size, FixedSize) else 0
    most = size.nbytes if isinstance(size, FixedSize | BoundedSize) else 2**63 - 1
    first = layout.index_size if layout.at_start else 0
    end = 2**63 - 1 if shard_size is None else shard_size - (0 if layout.at_start else layout.index_size)
    absent, located = int(ABSENT), entries.tolist()
    for entry in located:
        offset, length = entry
        if offset == length == absent:
            entry[:] = MISSING, 0
        elif not (least <= length <= most and offset + length <= end and (offset >= first or not length)):
            return None
    offset, length = np.array(located, np.int64).reshape(-1, 2).T
    return np.ascontiguousarray(offset), np.ascontiguousarray(length)


def _check_lengths(
    length: NDArray[np.int64], missing: NDArray[np.bool_], entries: NDArray[np.uint64], layout: Layout
) -> None:
    size = layout.inner_size
    if isinstance(size, FixedSize):
        _refuse((length != size.nbytes) & ~missing, entries, f"an inner chunk must have {size.nbytes} bytes")
    elif isinstance(size, BoundedSize):
        _refuse((length > size.nbytes) & ~missing, entries, f"an inner chunk has at most {size.nbytes} bytes")


def _refuse(bad: NDArray[np.bool_], entries: NDArray[np.uint64], message: str) -> None:
    if bad.any():
        row = int(bad.argmax())
        found = f"offset {int(entries[row, 0])}, length {int(entries[row, 1])}"
        raise ShardIndexError(f"{message}: {found}", codec="sharding_indexed", position=row)


def inner_chunk_order(grid: tuple[int, ...], order: str) -> NDArray[np.int64]:
    """Return the flat positions of a shard's inner chunks in the order in which they are written.

    Parameters
    ----------
    grid
        Inner chunks along each axis.
    order
        ``morton``, ``lexicographic``, ``colexicographic``, or ``unordered`` (which promises nothing and
        is lexicographic).

    Returns
    -------
    NDArray
        int64 permutation of ``range(prod(grid))``.

    Examples
    --------
    >>> inner_chunk_order((2, 3), "morton").tolist()
    [0, 3, 1, 4, 2, 5]
    >>> inner_chunk_order((2, 3), "colexicographic").tolist()
    [0, 3, 1, 4, 2, 5]
    >>> inner_chunk_order((2, 2), "morton").tolist()
    [0, 2, 1, 3]
    """
    flat = np.arange(math.prod(grid), dtype=np.int64)
    if order == "morton":
        return np.argsort(_morton_codes(grid), kind="stable")
    if order == "colexicographic":
        return flat.reshape(grid).transpose().ravel()
    return flat


def _morton_codes(grid: tuple[int, ...]) -> NDArray[np.int64]:
    """Interleave coordinate bits, first axis lowest; an axis drops out once its bits are used up."""
    codes = np.zeros(math.prod(grid), np.int64)
    coordinates = np.indices(grid, np.int64).reshape(len(grid), -1) if grid else np.zeros((0, 1), np.int64)
    widths = [(extent - 1).bit_length() for extent in grid]
    position = 0
    for bit in range(max(widths, default=0)):
        for axis, width in enumerate(widths):
            if bit < width:
                codes |= ((coordinates[axis] >> bit) & 1) << position
                position += 1
    return codes


@attrs.frozen(eq=False)
class Placement:
    """The data section of a shard before it is copied together.

    Parameters
    ----------
    table
        uint64, shape ``(cells, 2)``: the index.
    start
        int64, shape ``(cells,)``: first byte of each inner chunk in the shard.
    size
        Bytes of index and data.
    """

    table: NDArray[np.uint64]
    start: NDArray[np.int64]
    size: int


def place(lengths: NDArray[np.int64], order: NDArray[np.int64], layout: Layout) -> Placement:
    """Give each present inner chunk its place.

    Parameters
    ----------
    lengths
        int64, shape ``(cells,)``: bytes of each encoded inner chunk, 0 for missing ones.
    order
        The order in which they are written.
    layout
        Where the index goes.

    Returns
    -------
    Placement
        Index and offsets.
    """
    first = layout.index_size if layout.at_start else 0
    ordered = lengths[order]
    start = np.empty(len(lengths), np.int64)
    start[order] = first + np.cumsum(ordered) - ordered
    table = np.full((len(lengths), 2), ABSENT)
    present = lengths > 0
    table[present, 0] = start[present].astype(np.uint64)
    table[present, 1] = lengths[present].astype(np.uint64)
    return Placement(table, start, layout.index_size + int(lengths.sum()))


def assemble(
    placement: Placement,
    layout: Layout,
    index: Buffer,
    written: Sequence[tuple[int, Buffer]],
    kept: Sequence[tuple[int, memoryview]],
) -> memoryview:
    """Copy a shard together.

    Parameters
    ----------
    placement
        Where everything goes.
    layout
        Where the index goes.
    index
        The encoded index.
    written
        Newly encoded inner chunks: flat position and bytes.
    kept
        Spans of the old shard that are spliced verbatim: first byte in the new shard and bytes.

    Returns
    -------
    memoryview
        The shard, read-only.
    """
    shard = np.empty(placement.size, np.uint8)
    target = memoryview(shard)
    begin, end = layout.index_span(placement.size)
    target[begin:end] = memoryview(index).cast("B")
    starts = placement.start.tolist()
    for cell, data in written:
        view = memoryview(data).cast("B")
        target[starts[cell] : starts[cell] + view.nbytes] = view
    for start, view in kept:
        target[start : start + view.nbytes] = view
    shard.flags.writeable = False
    return memoryview(shard)


def kept_spans(
    old: memoryview, offset: NDArray[np.int64], length: NDArray[np.int64], start: NDArray[np.int64]
) -> list[tuple[int, memoryview]]:
    """Merge inner chunks that are kept into as few copies as possible.

    Parameters
    ----------
    old
        The old shard.
    offset, length
        int64: where each kept inner chunk lies in the old shard, in the order of the new one.
    start
        int64: where it goes.

    Returns
    -------
    list of tuple of int and memoryview
        First byte in the new shard, and bytes of the old one.
    """
    if not len(offset):
        return []
    together = (offset[1:] == offset[:-1] + length[:-1]) & (start[1:] == start[:-1] + length[:-1])
    heads = np.flatnonzero(np.append(True, ~together))
    totals = np.add.reduceat(length, heads)
    spans: list[tuple[int, memoryview]] = []
    for first, begin, total in zip(start[heads].tolist(), offset[heads].tolist(), totals.tolist(), strict=True):
        spans.append((first, old[begin : begin + total]))
    return spans
