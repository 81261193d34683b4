"""Which elements of which chunks go where: the one columnar form that plans, backends and bridges share.

An entry is one selection of one chunk and the place of the selected elements in the caller's array (the
*out* side; for writes it is where the values come from). Entries are columns, not objects, because a call
may touch hundreds of thousands of inner chunks.

Along each decoded axis an entry either takes ``count`` elements from ``start`` on, ``step`` apart, or the
elements that a ragged index list names; likewise on the out side. ``axes`` says which out axis a decoded
axis lands on, -1 when the axis is dropped (its count is 1). With ``points``, the decoded axes that have
lists land on one out axis and advance together, as NumPy's pointwise indexing does.

Everything a caller can ask for (boxes with steps, orthogonal lists, Boolean masks along an axis, points,
integers, zero-size selections, 0-d arrays) becomes entries once, in :mod:`chunkwright.selection`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import attrs
import numpy as np
from numpy.typing import NDArray

__all__ = ("Entries", "IndexList", "distinct", "offsets_of", "ragged_positions")


@attrs.frozen(eq=False)
class IndexList:
    """A ragged list of indices: one run of values per entry.

    Parameters
    ----------
    values
        int64, shape ``(m,)``: the runs, one after the other.
    offsets
        int64, shape ``(n + 1,)``: where each run starts, and the end of the last.

    Examples
    --------
    >>> runs = IndexList(np.array([4, 0, 7]), np.array([0, 2, 3]))
    >>> runs.run(0).tolist(), runs.counts.tolist()
    ([4, 0], [2, 1])
    """

    values: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, runs: list[NDArray[np.int64]]) -> Self:
        """Make an index list of separate arrays.

        Parameters
        ----------
        runs
            One 1-D integer array per entry.

        Returns
        -------
        Self
            The list.
        """
        offsets = np.zeros(len(runs) + 1, np.int64)
        np.cumsum([len(run) for run in runs], out=offsets[1:])
        values = np.concatenate(runs).astype(np.int64) if runs else np.empty(0, np.int64)
        return cls(values, offsets)

    @property
    def counts(self) -> NDArray[np.int64]:
        """int64, shape ``(n,)``: values in each run."""
        return np.diff(self.offsets)

    def run(self, row: int) -> NDArray[np.int64]:
        """Return the values of one entry.

        Parameters
        ----------
        row
            Which entry.

        Returns
        -------
        NDArray
            int64, one-dimensional.
        """
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Select runs.

        Parameters
        ----------
        rows
            int64, the entries to keep, in order.

        Returns
        -------
        Self
            The runs of those entries.
        """
        counts = self.counts[rows]
        return type(self)(self.values[ragged_positions(self.offsets[rows], counts)], offsets_of(counts))


def offsets_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Turn run lengths into offsets, shape ``(n + 1,)``.

    Parameters
    ----------
    counts
        int64, shape ``(n,)``.

    Returns
    -------
    NDArray
        int64: 0, then the running sum.
    """
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def distinct(column: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the different values of a column in ascending order; NumPy's ``unique`` loads ten megabytes of modules.

    Parameters
    ----------
    column
        int64, shape ``(n,)``, in order, none negative.

    Returns
    -------
    NDArray
        int64.

    Examples
    --------
    >>> distinct(np.array([0, 0, 3])).tolist()
    [0, 3]
    """
    return column[np.flatnonzero(np.diff(column, prepend=-1))]


def ragged_positions(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ``starts[i] .. starts[i] + counts[i]`` for every i, one after the other.

    Parameters
    ----------
    starts, counts
        int64, shape ``(n,)``.

    Returns
    -------
    NDArray
        int64, ``counts.sum()`` values.

    Examples
    --------
    >>> ragged_positions(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    total = int(counts.sum())
    ends = np.cumsum(counts)
    positions: NDArray[np.int64] = np.arange(total, dtype=np.int64) + np.repeat(starts - (ends - counts), counts)
    return positions


@attrs.frozen(eq=False, kw_only=True)
class Entries:
    """Selections of chunks and their places in the caller's array, columnar.

    Parameters
    ----------
    chunk
        int64, shape ``(n,)``: which chunk of the batch. A chunk may occur many times.
    start, count, step
        int64, shape ``(n, ndim)``: the selection along each decoded axis; ``step`` is at least 1.
        For an axis with a list, ``count`` is the length of the run and the others are unused.
    out_start, out_step
        int64, shape ``(n, out_ndim)``: place along each axis of the caller's array; ``out_step`` may be
        negative. An out axis that no decoded axis lands on takes one element.
    axes
        For each decoded axis the out axis it lands on, or -1 when it is dropped.
    lists
        For each decoded axis a ragged index list instead of start and step, or None.
    out_lists
        For each out axis a ragged index list instead of out_start and out_step, or None.
    points
        Whether the decoded axes with lists advance together (all of them land on one out axis).

    Examples
    --------
    >>> entries = Entries.boxes(
    ...     chunk=np.array([0, 1]),
    ...     start=np.array([[2], [0]]), count=np.array([[2], [3]]), out_start=np.array([[0], [2]]),
    ... )
    >>> len(entries), entries.ndim, entries.axes
    (2, 1, (0,))
    """

    chunk: NDArray[np.int64]
    start: NDArray[np.int64]
    count: NDArray[np.int64]
    step: NDArray[np.int64]
    out_start: NDArray[np.int64]
    out_step: NDArray[np.int64]
    axes: tuple[int, ...]
    lists: tuple[IndexList | None, ...]
    out_lists: tuple[IndexList | None, ...]
    points: bool = False

    @classmethod
    def boxes(
        cls,
        *,
        chunk: NDArray[np.int64],
        start: NDArray[np.int64],
        count: NDArray[np.int64],
        out_start: NDArray[np.int64],
        step: NDArray[np.int64] | None = None,
        axes: tuple[int, ...] | None = None,
    ) -> Self:
        """Make entries that are boxes: the commonest form.

        Parameters
        ----------
        chunk
            int64, shape ``(n,)``.
        start, count
            int64, shape ``(n, ndim)``.
        out_start
            int64, shape ``(n, out_ndim)``; the out side is contiguous.
        step
            int64, shape ``(n, ndim)``; 1 everywhere by default.
        axes
            Out axis of each decoded axis, or -1; the identity by default.

        Returns
        -------
        Self
            The entries.
        """
        ndim, out_ndim = start.shape[1], out_start.shape[1]
        return cls(
            chunk=np.asarray(chunk, np.int64),
            start=np.asarray(start, np.int64),
            count=np.asarray(count, np.int64),
            step=np.ones_like(start, np.int64) if step is None else np.asarray(step, np.int64),
            out_start=np.asarray(out_start, np.int64),
            out_step=np.ones((len(chunk), out_ndim), np.int64),
            axes=tuple(range(ndim)) if axes is None else axes,
            lists=(None,) * ndim,
            out_lists=(None,) * out_ndim,
        )

    @classmethod
    def whole(cls, shape: tuple[int, ...], chunks: int) -> Self:
        """Make one entry per chunk that selects all of it, chunk ``i`` at index ``i`` of a new first out axis.

        Parameters
        ----------
        shape
            Shape of every chunk.
        chunks
            How many chunks.

        Returns
        -------
        Self
            Entries for an out array of shape ``(chunks, *shape)``.
        """
        zeros = np.zeros((chunks, len(shape)), np.int64)
        number = np.arange(chunks, dtype=np.int64)
        return cls.boxes(
            chunk=number,
            start=zeros,
            count=np.broadcast_to(np.array(shape, np.int64), zeros.shape),
            out_start=np.concatenate([number[:, None], zeros], axis=1),
            axes=tuple(range(1, len(shape) + 1)),
        )

    def __len__(self) -> int:
        return len(self.chunk)

    @property
    def ndim(self) -> int:
        """Decoded axes."""
        return int(self.start.shape[1])

    @property
    def out_ndim(self) -> int:
        """Axes of the caller's array."""
        return int(self.out_start.shape[1])

    @property
    def is_boxes(self) -> bool:
        """Whether no axis on either side has an index list."""
        return not any(self.lists) and not any(self.out_lists)

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Select entries.

        Parameters
        ----------
        rows
            int64, the entries to keep, in order.

        Returns
        -------
        Self
            The selected entries, with unchanged chunk numbers.
        """
        return attrs.evolve(
            self,
            chunk=self.chunk[rows],
            start=self.start[rows],
            count=self.count[rows],
            step=self.step[rows],
            out_start=self.out_start[rows],
            out_step=self.out_step[rows],
            lists=tuple(runs and runs.take(rows) for runs in self.lists),
            out_lists=tuple(runs and runs.take(rows) for runs in self.out_lists),
        )

    def with_chunk(self, chunk: NDArray[np.int64]) -> Self:
        """Renumber the chunks.

        Parameters
        ----------
        chunk
            int64, shape ``(n,)``: the new numbers.

        Returns
        -------
        Self
            The same selections of other chunk numbers.
        """
        return attrs.evolve(self, chunk=chunk)

    def windows(self, chunks: int, most: int) -> Iterator[tuple[int, int, Self]]:
        """Cut a batch into parts of so many chunks.

        Parameters
        ----------
        chunks
            How many chunks there are.
        most
            How many a part has at most; at least 1.

        Yields
        ------
        tuple
            The first chunk of a part, the one after its last, and the part's entries, with chunks numbered from 0.
            Entries that are not in the order of their chunks are one part.

        Examples
        --------
        >>> whole = Entries.whole((2,), 3)
        >>> [(first, last, part.chunk.tolist()) for first, last, part in whole.windows(3, 2)]
        [(0, 2, [0, 1]), (2, 3, [0])]
        """
        if chunks <= most or (self.chunk[1:] < self.chunk[:-1]).any():
            yield 0, chunks, self
            return
        for first in range(0, chunks, most):
            last = min(first + most, chunks)
            begin, end = np.searchsorted(self.chunk, (first, last)).tolist()
            yield first, last, self.take(np.arange(begin, end)).with_chunk(self.chunk[begin:end] - first)

    def permuted(self, order: tuple[int, ...]) -> Self:
        """Express the same selections on the chunk that ``transpose`` with this order makes.

        Axis ``i`` of the transposed chunk is axis ``order[i]`` of the decoded chunk, so only columns move.

        Parameters
        ----------
        order
            Permutation, as in the configuration of the ``transpose`` codec.

        Returns
        -------
        Self
            Entries over the transposed chunk.
        """
        columns = list(order)
        if columns == list(range(len(columns))):
            return self
        return attrs.evolve(
            self,
            start=self.start[:, columns],
            count=self.count[:, columns],
            step=self.step[:, columns],
            axes=tuple(self.axes[axis] for axis in order),
            lists=tuple(self.lists[axis] for axis in order),
        )

    def covers(self, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Whether each entry, by itself, selects every element of its chunk exactly once.

        Parameters
        ----------
        shape
            Shape of the chunks.

        Returns
        -------
        NDArray
            bool, shape ``(n,)``. Entries with index lists are never said to cover a chunk.
        """
        if any(self.lists):
            return np.zeros(len(self), bool)
        extent = np.array(shape, np.int64).reshape(1, -1)
        exact = (self.start == 0) & (self.count == extent) & ((self.step == 1) | (extent == 1))
        covered: NDArray[np.bool_] = exact.all(axis=1)
        return covered
