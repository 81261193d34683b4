"""Boxes of an array as entries of its chunks: the geometry of random crops, without any IO.

Boxes are columns, as entries are. They are cut along one axis after the other at the edges of the array's
chunks, which may differ in length; the pieces are then numbered by chunk, so that each chunk comes once however
many boxes touch it.

A great many boxes in small (inner) chunks would make more columns than there is room for beside the result. So
boxes are first cut in halves, between chunks, until each half makes few enough pieces; every chunk is in one
half only, and nothing is read twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

import attrs
import numpy as np
from numpy.typing import NDArray
from zarr.core.chunk_grids import ChunkGrid, FixedDimension, VaryingDimension

from chunkwright.entries import Entries, ragged_positions

__all__ = ("Boxes", "ChunkPieces", "Edges", "cut", "edges_of", "in_halves")

type Columns = NDArray[np.int64]


@attrs.frozen(eq=False)
class Edges:
    """Where chunks begin and end along one axis of an array.

    Parameters
    ----------
    size
        Length of every chunk, when they are equal.
    bounds
        int64: where each chunk begins, and the end of the last, when they are not.

    Examples
    --------
    >>> edges = Edges(bounds=np.array([0, 3, 4, 9]))
    >>> edges.cells(np.array([0, 3, 8])).tolist(), edges.begin(np.array([2])).tolist()
    ([0, 1, 2], [4])
    """

    size: int = 0
    bounds: Columns | None = None

    def cells(self, indices: Columns) -> Columns:
        """Return in which chunk indices lie.

        Parameters
        ----------
        indices
            int64: indices within the array.

        Returns
        -------
        NDArray
            int64: numbers of chunks.
        """
        if self.bounds is None:
            return indices // self.size
        return np.searchsorted(self.bounds, indices, "right") - 1

    def begin(self, cells: Columns) -> Columns:
        """Return where chunks begin.

        Parameters
        ----------
        cells
            int64: numbers of chunks.

        Returns
        -------
        NDArray
            int64: indices within the array.
        """
        return cells * self.size if self.bounds is None else self.bounds[cells]

    def length(self, cells: Columns) -> Columns:
        """Return how long chunks are, also where they reach beyond the array.

        Parameters
        ----------
        cells
            int64: numbers of chunks.

        Returns
        -------
        NDArray
            int64, at least 1.
        """
        if self.bounds is None:
            return np.full_like(cells, self.size)
        return self.bounds[cells + 1] - self.bounds[cells]


def edges_of(grid: ChunkGrid) -> tuple[Edges, ...]:
    """Return the edges of the chunks of one of zarr's grids.

    Parameters
    ----------
    grid
        Regular or rectilinear.

    Returns
    -------
    tuple of Edges
        One per axis.

    Raises
    ------
    TypeError
        When zarr has got another kind of grid.

    Examples
    --------
    >>> [edges.size for edges in edges_of(ChunkGrid.from_sizes((9, 9), (2, 4)))]
    [2, 4]
    """
    return tuple(map(_edges_along, grid.dimensions))


def _edges_along(dimension: object) -> Edges:
    if isinstance(dimension, FixedDimension):
        return Edges(dimension.size)
    if isinstance(dimension, VaryingDimension):
        return Edges(bounds=np.array([0, *dimension.cumulative], np.int64))
    raise TypeError(f"unknown chunk grid: {dimension!r}")


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


def in_halves(boxes: Boxes, edges: Sequence[Edges], granule: Sequence[int], max_pieces: int) -> Iterator[Boxes]:
    """Cut boxes in halves between chunks, until each half makes few pieces or lies in one chunk.

    Parameters
    ----------
    boxes
        The boxes.
    edges
        Where chunks begin and end, per axis.
    granule
        Shape of what is decoded at least: the inner chunk, or the (largest) chunk.
    max_pieces
        About how many pieces a half may make.

    Yields
    ------
    Boxes
        In order; each chunk is touched by one of them only.

    Examples
    --------
    >>> boxes = Boxes.of(np.array([[5], [0]]), (4,))
    >>> [half.start.ravel().tolist() for half in in_halves(boxes, [Edges(2)], [2], 2)]
    [[0], [5], [6]]
    """
    if not len(boxes):
        return
    spans = [_span(boxes, axis, along) for axis, along in enumerate(edges)]
    axis = max(range(len(spans)), key=lambda axis: spans[axis][1] - spans[axis][0], default=None)
    if axis is None or spans[axis][0] == spans[axis][1] or _pieces(boxes, edges, granule) <= max_pieces:
        yield boxes
        return
    middle = int(edges[axis].begin(np.array((sum(spans[axis]) + 1) // 2)))
    end = int(boxes.last[:, axis].max()) + 1
    before, after = np.flatnonzero(boxes.start[:, axis] < middle), np.flatnonzero(boxes.last[:, axis] >= middle)
    yield from in_halves(boxes.within(axis, before, 0, middle), edges, granule, max_pieces)
    yield from in_halves(boxes.within(axis, after, middle, end), edges, granule, max_pieces)


def _span(boxes: Boxes, axis: int, along: Edges) -> tuple[int, int]:
    """The first and the last chunk along an axis."""
    extremes = np.array([boxes.start[:, axis].min(), boxes.last[:, axis].max()])
    first, last = along.cells(extremes).tolist()
    return first, last


def _pieces(boxes: Boxes, edges: Sequence[Edges], granule: Sequence[int]) -> int:
    """About how many pieces boxes make, by chunks and by granules, whichever are more."""
    pieces = np.ones(len(boxes))
    for axis, (along, size) in enumerate(zip(edges, granule, strict=True)):
        first, last = boxes.start[:, axis], boxes.last[:, axis]
        pieces *= 1 + np.maximum(last // size - first // size, along.cells(last) - along.cells(first))
    return int(min(pieces.sum(), 2.0**62))


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
    cells = np.empty((len(boxes), 0), np.int64)
    for axis, along in enumerate(edges):
        first, last = along.cells(boxes.start[:, axis]), along.cells(boxes.last[:, axis])
        touched = last - first + 1
        rows = np.repeat(np.arange(len(boxes)), touched)
        cell = ragged_positions(first, touched)
        begin = along.begin(cell)
        boxes = boxes.within(axis, rows, begin, begin + along.length(cell))
        boxes.start[:, axis] -= begin
        cells = np.concatenate([cells[rows], cell[:, None]], axis=1)
    lengths = [along.length(cells[:, axis]) for axis, along in enumerate(edges)]
    return [_numbered(shape, rows, cells, boxes) for shape, rows in _by_shape(lengths, len(boxes))]


def _by_shape(lengths: Sequence[Columns], pieces: int) -> Iterator[tuple[tuple[int, ...], Columns]]:
    """Shapes of chunks, with the pieces in chunks of that shape."""
    if all((column == column[0]).all() for column in lengths):
        yield tuple(int(column[0]) for column in lengths), np.arange(pieces)
        return
    shapes, which = np.unique(np.stack(lengths, axis=1), axis=0, return_inverse=True)
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
