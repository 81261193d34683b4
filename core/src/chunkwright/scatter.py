"""Copy between a chunk's array and the caller's array, one entry at a time, with NumPy.

This is the reference for what an entry means. Boxes go the fast way (two views and one assignment);
one list axis a side costs one fancy index; everything else goes through index arrays that are laid
out along the out axes and broadcast together, which is right for every combination.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.entries import Entries

__all__ = ("Copier", "scatter")


@attrs.frozen(eq=False)
class _Columns:
    """The columns of entries as nested lists: Python integers make cheaper slices than NumPy ones."""

    start: list[list[int]]
    count: list[list[int]]
    step: list[list[int]]
    out_start: list[list[int]]
    out_step: list[list[int]]


class Copier:
    """Copies entries between chunk arrays and one array of the caller's.

    Parameters
    ----------
    entries
        The selections; row ``i`` is copied by ``scatter(i, ...)`` or ``gather(i, ...)``.

    Examples
    --------
    >>> entries = Entries.boxes(chunk=np.array([0]), start=np.array([[1]]), count=np.array([[2]]),
    ...                         out_start=np.array([[0]]))
    >>> out = np.zeros(2, int)
    >>> Copier(entries).scatter(0, np.array([7, 8, 9]), out)
    >>> out.tolist()
    [8, 9]
    """

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._columns = _Columns(
            entries.start.tolist(),
            entries.count.tolist(),
            entries.step.tolist(),
            entries.out_start.tolist(),
            entries.out_step.tolist(),
        )
        self._boxes = entries.is_boxes
        kept = [out for out in entries.axes if out >= 0]
        order = sorted(range(len(kept)), key=kept.__getitem__)
        self._order = None if order == list(range(len(kept))) else tuple(order)
        self._inverse = None if self._order is None else tuple(order.index(axis) for axis in range(len(kept)))
        self._mapped = set(kept)
        self._counted_by = {out: axis for axis, out in enumerate(entries.axes) if out >= 0}

    def scatter(self, row: int, chunk: NDArray[Any], out: NDArray[Any]) -> None:
        """Copy one entry's elements from a chunk into the caller's array.

        Parameters
        ----------
        row
            Which entry.
        chunk
            The decoded chunk.
        out
            The caller's array; values are cast as NumPy's assignment does.
        """
        if self._boxes:
            values = chunk[self._chunk_box(row)]
            out[self._out_box(row)] = values if self._order is None else values.transpose(self._order)
        else:
            out[self._out_index(row)] = chunk[self._chunk_index(row)]

    def gather(self, row: int, source: NDArray[Any], chunk: NDArray[Any]) -> None:
        """Copy one entry's elements from the caller's array into a chunk.

        Parameters
        ----------
        row
            Which entry.
        source
            The caller's array; zero strides are fine.
        chunk
            The chunk's array, which is changed.
        """
        if self._boxes:
            values = source[self._out_box(row)]
            chunk[self._chunk_box(row)] = values if self._inverse is None else values.transpose(self._inverse)
        else:
            chunk[self._chunk_index(row)] = source[self._out_index(row)]

    def selected(self, row: int, source: NDArray[Any]) -> NDArray[Any]:
        """View one entry's elements of the caller's array, in decoded axis order, without a copy.

        Parameters
        ----------
        row
            Which entry; only boxes without dropped axes can be viewed.
        source
            The caller's array.

        Returns
        -------
        NDArray
            View of shape ``count``.
        """
        values = source[self._out_box(row)]
        return values if self._inverse is None else values.transpose(self._inverse)

    def fill(self, row: int, value: Any, out: NDArray[Any]) -> None:
        """Set one entry's place in the caller's array to a value.

        Parameters
        ----------
        row
            Which entry.
        value
            A scalar or 0-d array.
        out
            The caller's array.
        """
        out[self._out_box(row) if self._boxes else self._out_index(row)] = value

    def _chunk_box(self, row: int) -> tuple[slice | int, ...]:
        columns = self._columns
        return tuple(
            slice(start, start + count * step, step) if out >= 0 else start
            for start, count, step, out in zip(
                columns.start[row], columns.count[row], columns.step[row], self._entries.axes, strict=True
            )
        )

    def _out_box(self, row: int) -> tuple[slice | int, ...]:
        columns, count = self._columns, self._columns.count[row]
        index: list[slice | int] = []
        for out, (start, step) in enumerate(zip(columns.out_start[row], columns.out_step[row], strict=True)):
            axis = self._counted_by.get(out)
            if axis is None:
                index.append(start)
                continue
            stop = start + count[axis] * step
            index.append(slice(start, stop if stop >= 0 else None, step))
        return tuple(index)

    def _chunk_index(self, row: int) -> tuple[NDArray[np.int64] | int, ...]:
        """Index arrays of the chunk, each laid out along the out axis that it lands on."""
        entries, columns = self._entries, self._columns
        index: list[NDArray[np.int64] | int] = []
        for axis, out in enumerate(entries.axes):
            runs = entries.lists[axis]
            if runs is not None:
                values = runs.run(row)
            else:
                start, count, step = columns.start[row][axis], columns.count[row][axis], columns.step[row][axis]
                values = np.arange(start, start + count * step, step, dtype=np.int64)
            index.append(self._along(values, out) if out >= 0 else values.reshape((1,) * entries.out_ndim))
        return tuple(index)

    def _out_index(self, row: int) -> tuple[NDArray[np.int64], ...]:
        entries, columns = self._entries, self._columns
        index: list[NDArray[np.int64]] = []
        for out, runs in enumerate(entries.out_lists):
            if runs is not None:
                values = runs.run(row)
            else:
                axis = self._counted_by.get(out)
                count = 1 if axis is None else columns.count[row][axis]
                values = columns.out_start[row][out] + columns.out_step[row][out] * np.arange(count, dtype=np.int64)
            index.append(self._along(values, out))
        return tuple(index)

    def _along(self, values: NDArray[np.int64], out: int) -> NDArray[np.int64]:
        shape = [1] * self._entries.out_ndim
        shape[out] = len(values)
        return values.reshape(shape)


def scatter(arrays: Sequence[NDArray[Any] | None], entries: Entries, out: NDArray[Any], fill: Any) -> None:
    """Copy entries of decoded chunks into the caller's array, the fill value where a chunk is missing.

    Parameters
    ----------
    arrays
        Decoded chunks by chunk number, None for missing ones.
    entries
        The selections.
    out
        The caller's array.
    fill
        A scalar or 0-d array.
    """
    copier = Copier(entries)
    for row, chunk in enumerate(entries.chunk.tolist()):
        array = arrays[chunk]
        if array is None:
            copier.fill(row, fill, out)
        else:
            copier.scatter(row, array, out)


def rows_by_chunk(entries: Entries) -> Iterator[tuple[int, range]]:
    """Yield each chunk number with the rows of its entries; entries must be ordered by chunk.

    Parameters
    ----------
    entries
        The selections.

    Yields
    ------
    tuple of int and range
        Chunk number and rows.
    """
    heads = np.flatnonzero(np.append(True, entries.chunk[1:] != entries.chunk[:-1])) if len(entries) else np.empty(0, np.int64)
    bounds = [*heads.tolist(), len(entries)]
    numbers = entries.chunk.tolist()
    for first, last in zip(bounds[:-1], bounds[1:], strict=True):
        yield numbers[first], range(first, last)
