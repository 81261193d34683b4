"""Boxes of an array as entries of its chunks: the geometry of random crops, without any IO.

Boxes are columns, as entries are. They are cut along one axis after the other at the edges of the array's
chunks, which may differ in length; the pieces are then numbered by chunk, so that each chunk comes once however
many boxes touch it.

Where boxes overlap a lot, their pieces are many more than the (inner) chunks. Then it is cheaper to decode what
they touch into one array, the *stage*, and to copy the boxes from there. The array is cut into regions for that,
between chunks, so that no stage is large and no chunk is read twice; and also where boxes are so many that the
columns of their pieces would be large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Self

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.entries import Entries, ragged_positions
from chunkwright_zarr.edges import Edges

__all__ = ("MAX_PIECES", "Boxes", "ChunkPieces", "Region", "cut", "regions", "touched")

type Columns = NDArray[np.int64]

MAX_PIECES = 1 << 17
"""Pieces that are planned at a time: some tens of megabytes of columns."""

MIN_OVERLAP = 2
"""Boxes go by way of a stage when each element of the stage is wanted so many times, on average."""


@attrs.frozen(eq=False)
class Boxes:
    """Boxes of an array, and where each goes in the caller's array, columnar.

    Parameters
    ----------
    start, count
        int64, shape ``(n, ndim)``; no count is zero.
    out_start
        int64, shape ``(n, ndim + 1)``: the number of the crop, and the place within it.

    Examples
    --------
    >>> boxes = Boxes.of(np.array([[5], [0]]), (4,))
    >>> boxes.count.tolist(), boxes.out_start.tolist()
    ([[4], [4]], [[0, 0], [1, 0]])
    """

    start: Columns
    count: Columns
    out_start: Columns

    @classmethod
    def of(cls, starts: Columns, shape: tuple[int, ...]) -> Self:
        """Make crops of one shape.

        Parameters
        ----------
        starts
            int64, shape ``(n, ndim)``.
        shape
            Shape of every crop.

        Returns
        -------
        Self
            One box per crop; none when they are of no elements.
        """
        if 0 in shape:
            starts = starts[:0]
        count = np.broadcast_to(np.array(shape, np.int64), starts.shape)
        out_start = np.zeros((len(starts), len(shape) + 1), np.int64)
        out_start[:, 0] = np.arange(len(starts))
        return cls(starts, count, out_start)

    def __len__(self) -> int:
        return len(self.start)

    @property
    def last(self) -> Columns:
        """int64, shape ``(n, ndim)``: the last index of each box along each axis."""
        return self.start + self.count - 1

    @property
    def bounds(self) -> tuple[Columns, Columns]:
        """int64, shape ``(ndim,)`` each: start and shape of the smallest box around all of them."""
        start = self.start.min(axis=0)
        return start, (self.start + self.count).max(axis=0) - start

    def within(self, axis: int, rows: Columns, low: Columns | int, high: Columns | int) -> Self:
        """Take boxes, each clipped along one axis.

        Parameters
        ----------
        axis
            Which axis.
        rows
            int64: the boxes to take, in order; a box may be taken many times.
        low, high
            int64, one per row or one for all: what to clip it to, the end excluded; something of the box is left.

        Returns
        -------
        Self
            The clipped boxes.
        """
        start, count, out_start = self.start[rows], self.count[rows], self.out_start[rows]
        first = np.maximum(start[:, axis], low)
        last = np.minimum(start[:, axis] + count[:, axis], high)
        out_start[:, axis + 1] += first - start[:, axis]
        start[:, axis], count[:, axis] = first, last - first
        return type(self)(start, count, out_start)


@attrs.frozen(eq=False)
class Region:
    """Boxes, clipped to some of the array's chunks, that are read together.

    Parameters
    ----------
    boxes
        At least one.
    is_staged
        Whether they overlap so much that they are better copied from an array of what they touch.

    Examples
    --------
    >>> Region(Boxes.of(np.array([[5], [0]]), (4,)), is_staged=False).boxes.bounds
    (array([0]), array([9]))
    """

    boxes: Boxes
    is_staged: bool


def regions(boxes: Boxes, edges: Sequence[Edges], leaves: Sequence[Edges], max_stage: int) -> Iterator[Region]:
    """Cut boxes into regions, between chunks.

    Parameters
    ----------
    boxes
        The boxes.
    edges
        Where chunks begin and end, per axis.
    leaves
        Where what can be decoded by itself begins and ends, per axis: inner chunks, or the chunks.
    max_stage
        Most elements of a stage.

    Yields
    ------
    Region
        In order; each chunk is touched by one of them only.

    Examples
    --------
    >>> boxes = Boxes.of(np.array([[5], [0], [6], [2], [3]]), (4,))
    >>> found = regions(boxes, [Edges(2)], [Edges(2)], max_stage=6)
    >>> [(region.is_staged, region.boxes.start.ravel().tolist()) for region in found]
    [(False, [0, 2, 3]), (True, [5, 6, 4, 4])]
    """
    if not len(boxes):
        return
    is_dense, fits = _load(boxes, leaves, max_stage)
    spans = [_span(boxes, axis, along) for axis, along in enumerate(edges)]
    axis = max(range(len(spans)), key=lambda axis: spans[axis][1] - spans[axis][0], default=None)
    if fits or axis is None or spans[axis][0] == spans[axis][1]:
        yield Region(boxes, is_dense and fits)
        return
    middle = int(edges[axis].begin(np.array((sum(spans[axis]) + 1) // 2)))
    end = int(boxes.last[:, axis].max()) + 1
    before, after = np.flatnonzero(boxes.start[:, axis] < middle), np.flatnonzero(boxes.last[:, axis] >= middle)
    yield from regions(boxes.within(axis, before, 0, middle), edges, leaves, max_stage)
    yield from regions(boxes.within(axis, after, middle, end), edges, leaves, max_stage)


def _span(boxes: Boxes, axis: int, along: Edges) -> tuple[int, int]:
    """The first and the last chunk along an axis."""
    extremes = np.array([boxes.start[:, axis].min(), boxes.last[:, axis].max()])
    first, last = along.cells(extremes).tolist()
    return first, last


def _load(boxes: Boxes, leaves: Sequence[Edges], max_stage: int) -> tuple[bool, bool]:
    """Whether boxes overlap a lot, and whether they are few enough, or close enough, to be read together."""
    # In floating point, because no grid is too large for it.
    pieces, cells = np.ones(len(boxes)), 1.0
    for axis, along in enumerate(leaves):
        first, last = along.cells(boxes.start[:, axis]), along.cells(boxes.last[:, axis])
        pieces *= last - first + 1
        cells *= float(last.max() - first.min() + 1)
    stage = float(boxes.bounds[1].prod(dtype=float))
    is_dense = float(boxes.count.prod(axis=1, dtype=float).sum()) >= MIN_OVERLAP * stage
    fits = (stage <= max_stage and cells <= MAX_PIECES) if is_dense else bool(pieces.sum() <= MAX_PIECES)
    return is_dense, fits


def touched(boxes: Boxes, leaves: Sequence[Edges]) -> Boxes:
    """Return what boxes touch, to be read into an array of the smallest box around all of them.

    Parameters
    ----------
    boxes
        At least one.
    leaves
        Where what can be decoded by itself begins and ends, per axis.

    Returns
    -------
    Boxes
        One per leaf that is touched, clipped to that array, all of crop number 0.

    Examples
    --------
    >>> found = touched(Boxes.of(np.array([[5], [1]]), (2,)), [Edges(3)])
    >>> found.start.ravel().tolist(), found.count.ravel().tolist(), found.out_start[:, 1].tolist()
    ([1, 3, 6], [2, 3, 1], [0, 2, 5])
    """
    start, shape = boxes.bounds
    first, last = _each(Edges.cells, leaves, boxes.start), _each(Edges.cells, leaves, boxes.last)
    origin = first.min(axis=0)
    marks = np.zeros(last.max(axis=0) - origin + 1, bool)
    for low, high in zip((first - origin).tolist(), (last - origin + 1).tolist(), strict=True):
        marks[tuple(map(slice, low, high))] = True
    cells = np.argwhere(marks) + origin
    begin, length = _each(Edges.begin, leaves, cells), _each(Edges.length, leaves, cells)
    low, high = np.maximum(begin, start), np.minimum(begin + length, start + shape)
    return Boxes(low, high - low, np.insert(low - start, 0, 0, axis=1))


def _each(what: Callable[[Edges, Columns], Columns], edges: Sequence[Edges], columns: Columns) -> Columns:
    """Ask the edges of each axis about its column."""
    answers = np.empty_like(columns)
    for axis, along in enumerate(edges):
        answers[:, axis] = what(along, columns[:, axis])
    return answers


@attrs.frozen(eq=False)
class ChunkPieces:
    """The chunks of one shape that boxes touch, and the pieces of the boxes in them.

    Parameters
    ----------
    shape
        Shape of the chunks.
    cells
        int64, shape ``(k, ndim)``: their places in the grid, in C order.
    entries
        The pieces; their chunk ``i`` is the one at ``cells[i]``.

    Examples
    --------
    >>> [pieces] = cut(Boxes.of(np.array([[5], [0]]), (4,)), [Edges(3)])
    >>> pieces.cells.ravel().tolist(), pieces.entries.chunk.tolist(), pieces.entries.start.ravel().tolist()
    ([0, 1, 2], [0, 1, 1, 2], [0, 2, 0, 0])
    """

    shape: tuple[int, ...]
    cells: Columns
    entries: Entries


def cut(boxes: Boxes, edges: Sequence[Edges]) -> list[ChunkPieces]:
    """Cut boxes at the edges of chunks.

    Parameters
    ----------
    boxes
        The boxes, at least one.
    edges
        Where chunks begin and end, per axis.

    Returns
    -------
    list of ChunkPieces
        One per shape of chunks.

    Examples
    --------
    >>> edges = Edges(bounds=np.array([0, 3, 4, 9]))
    >>> [(pieces.shape, pieces.cells.tolist()) for pieces in cut(Boxes.of(np.array([[2]]), (5,)), [edges])]
    [((1,), [[1]]), ((3,), [[0]]), ((5,), [[2]])]
    """
    # The columns are cut one after the other, so those of earlier axes are within chunks already.
    cells = np.empty((len(boxes), 0), np.int64)
    for axis, along in enumerate(edges):
        first, last = along.cells(boxes.start[:, axis]), along.cells(boxes.last[:, axis])
        per_box = last - first + 1
        rows = np.repeat(np.arange(len(boxes)), per_box)
        cell = ragged_positions(first, per_box)
        begin = along.begin(cell)
        boxes = boxes.within(axis, rows, begin, begin + along.length(cell))
        boxes.start[:, axis] -= begin
        cells = np.concatenate([cells[rows], cell[:, None]], axis=1)
    return [_numbered(shape, rows, cells, boxes) for shape, rows in _by_shape(_each(Edges.length, edges, cells))]


def _by_shape(lengths: Columns) -> Iterator[tuple[tuple[int, ...], Columns]]:
    """Shapes of chunks, with the pieces in chunks of that shape."""
    if (lengths == lengths[0]).all():
        yield tuple(lengths[0].tolist()), np.arange(len(lengths))
        return
    shapes, which = np.unique(lengths, axis=0, return_inverse=True)
    for number, shape in enumerate(shapes.tolist()):
        yield tuple(shape), np.flatnonzero(which == number)


def _numbered(shape: tuple[int, ...], rows: Columns, cells: Columns, boxes: Boxes) -> ChunkPieces:
    """Number the chunks of some pieces, in order of their cells."""
    if cells.shape[1]:
        # A flat position in the grid could exceed 64 bits, so rows are compared column by column.
        rows = rows[np.lexsort(cells[rows].T[::-1])]
    cells = cells[rows]
    heads = np.ones(len(rows), bool)
    heads[1:] = (cells[1:] != cells[:-1]).any(axis=1)
    entries = Entries.boxes(
        chunk=np.cumsum(heads) - 1,
        start=boxes.start[rows],
        count=boxes.count[rows],
        out_start=boxes.out_start[rows],
        axes=tuple(range(1, len(shape) + 1)),
    )
    return ChunkPieces(shape, cells[heads], entries)
