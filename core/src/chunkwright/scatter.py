"""Copy between a chunk's array and the caller's array, one entry at a time, with NumPy.

This is the reference for what an entry means. Boxes are the common case and go the short way: two index tuples,
made for all entries at once, and one assignment. With index lists, each side is read or written in a layout of
its own (:class:`_Side`), and a view of fixed permutation leads from one layout to the other. Slices stay slices
next to one list; only two or more lists on a side meet in a mesh, which spans their axes and no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.entries import Entries, IndexList
from chunkwright.spec import ChunkSpec

__all__ = ("Copier", "gather", "scatter")

type Columns = NDArray[np.int64]
type Index = tuple[slice | int | EllipsisType | None, ...]


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
        self._boxes = entries.is_boxes
        if self._boxes:
            self._make_boxes(entries)
        else:
            self._make_sides(entries)

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
            values = chunk[self._chunk_at[row]]
            out[self._out_at[row]] = values if self._order is None else values.transpose(self._order)
        else:
            values = self._chunk_side.read(row, chunk)
            self._out_side.write(row, out, values.transpose(self._to_out)[self._out_axes])

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
            values = source[self._out_at[row]]
            chunk[self._chunk_at[row]] = values if self._inverse is None else values.transpose(self._inverse)
        else:
            values = self._out_side.read(row, source)
            self._chunk_side.write(row, chunk, values.transpose(self._to_chunk)[self._chunk_axes])

    def selected(self, row: int, source: NDArray[Any]) -> NDArray[Any]:
        """View one entry's elements of the caller's array, in decoded axis order, without a copy.

        Parameters
        ----------
        row
            Which entry; only boxes can be viewed.
        source
            The caller's array.

        Returns
        -------
        NDArray
            View with one axis per decoded axis that is not dropped.
        """
        values = source[self._out_at[row]]
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
        if self._boxes:
            out[self._out_at[row]] = value
        else:
            self._out_side.write(row, out, value)

    def _make_boxes(self, entries: Entries) -> None:
        """Index tuples in which dropped axes and out axes of one element are integers."""
        kept = [out for out in entries.axes if out >= 0]
        order = tuple(sorted(range(len(kept)), key=kept.__getitem__))
        self._order = None if order == tuple(range(len(kept))) else order
        self._inverse = None if self._order is None else tuple(order.index(axis) for axis in range(len(kept)))
        chunk, places = _chunk_slices(entries), _out_slices(entries)
        for axis, out in enumerate(entries.axes):
            if out < 0:
                chunk[axis] = entries.start[:, axis].tolist()
        for out in range(entries.out_ndim):
            if out not in kept:
                places[out] = entries.out_start[:, out].tolist()
        if not kept:
            # Integers alone would give a scalar, which is no view and which objects may be mistaken for.
            chunk.append([...] * len(entries))
            places.append([...] * len(entries))
        self._chunk_at: list[Index] = list(zip(*chunk, strict=True))
        self._out_at: list[Index] = list(zip(*places, strict=True))

    def _make_sides(self, entries: Entries) -> None:
        """Two sides, and the views that lead from the layout of one to that of the other."""
        rows = len(entries)
        self._chunk_side = _Side(_chunk_slices(entries), entries.lists, rows, together=entries.points)
        self._out_side = _Side(_out_slices(entries), entries.out_lists, rows, together=False)
        layout = [entries.axes[axis] for axis in self._chunk_side.layout]
        self._to_out, self._out_axes = _lead(layout, range(entries.out_ndim))
        self._to_chunk, self._chunk_axes = _lead(range(entries.out_ndim), layout)


class _Side:
    """One side of entries with index lists: slices along some axes, lists along others.

    Values are read and written in a layout of their own: one axis per axis of the array, in order; when the
    lists advance together, their common axis comes first and the others follow.
    """

    def __init__(
        self, slices: list[list[slice]], lists: Sequence[IndexList | None], rows: int, *, together: bool
    ) -> None:
        listed = [axis for axis, runs in enumerate(lists) if runs is not None]
        others = [axis for axis, runs in enumerate(lists) if runs is None]
        self._lists = [runs for runs in lists if runs is not None]
        self._together = together and bool(listed)
        self._alone = listed[0] if len(listed) == 1 and not self._together else None
        every = [slice(None)] * rows
        boxes = [every if lists[axis] else slices[axis] for axis in range(len(slices))]
        # The ellipsis makes a view of 0-d arrays too.
        self._boxes: list[Index] = list(zip(*boxes, [...] * rows, strict=True))
        self._front = [*listed, *others]
        self._back = [self._front.index(axis) for axis in range(len(slices))]
        self.layout = [listed[0], *others] if self._together else list(range(len(slices)))

    def read(self, row: int, array: NDArray[Any]) -> NDArray[Any]:
        """Elements of one entry, in this side's layout."""
        view = array[self._boxes[row]]
        if not self._lists:
            return view
        if self._alone is not None:
            return view[(slice(None),) * self._alone + (self._lists[0].run(row),)]
        values: NDArray[Any] = view.transpose(self._front)[self._mesh(row)]
        return values if self._together else values.transpose(self._back)

    def write(self, row: int, array: NDArray[Any], values: Any) -> None:
        """Set the elements of one entry; ``values`` are in this side's layout, or 0-d."""
        view = array[self._boxes[row]]
        if not self._lists:
            view[...] = values
        elif self._alone is not None:
            view[(slice(None),) * self._alone + (self._lists[0].run(row),)] = values
        else:
            if not self._together and np.ndim(values):
                values = values.transpose(self._front)
            view.transpose(self._front)[self._mesh(row)] = values

    def _mesh(self, row: int) -> tuple[NDArray[np.int64], ...]:
        runs = [runs.run(row) for runs in self._lists]
        return tuple(runs) if self._together else np.ix_(*runs)


def _chunk_slices(entries: Entries) -> list[list[Any]]:
    return _slices(entries.start, entries.start + entries.count * entries.step, entries.step)


def _out_slices(entries: Entries) -> list[list[Any]]:
    """Out axes that no decoded axis lands on take one element."""
    if entries.axes == tuple(range(entries.out_ndim)):
        count = entries.count
    else:
        count = np.ones_like(entries.out_start)
        kept = [axis for axis, out in enumerate(entries.axes) if out >= 0]
        count[:, [entries.axes[axis] for axis in kept]] = entries.count[:, kept]
    return _slices(entries.out_start, entries.out_start + count * entries.out_step, entries.out_step)


def _slices(start: Columns, stop: Columns, step: Columns) -> list[list[Any]]:
    """Slices of all entries, axis by axis."""
    starts, stops = start.T.tolist(), stop.T.tolist()
    if (step == 1).all():
        return [list(map(slice, *ends)) for ends in zip(starts, stops, strict=True)]
    # A negative stop would count from the end; with a negative step it means that the first element is included.
    stops = [[None if end < 0 else end for end in ends] for ends in stops]
    return [list(map(slice, *ends)) for ends in zip(starts, stops, step.T.tolist(), strict=True)]


def _lead(layout: Sequence[int], target: Sequence[int]) -> tuple[list[int], Index]:
    """The permutation and the index that turn values of one layout into another.

    Both are given as the out axis of each axis, -1 for dropped ones. Axes that only one of them has are of one
    element: they are taken away, or added.
    """
    place = {out: axis for axis, out in enumerate(layout) if out >= 0}
    common = [out for out in target if out in place]
    extra = [axis for axis, out in enumerate(layout) if out not in common]
    added = [slice(None) if out in place else None for out in target]
    return [*(place[out] for out in common), *extra], (*added, *(0 for _ in extra), ...)


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


def gather(
    source: NDArray[Any], entries: Entries, base: Sequence[NDArray[Any] | None], spec: ChunkSpec, *, keep_empty: bool
) -> list[NDArray[Any] | None]:
    """Put whole chunks together from the caller's array.

    Parameters
    ----------
    source
        The caller's array.
    entries
        The selections.
    base
        What each chunk held before, which is changed; None is the fill value.
    spec
        The decoded chunk.
    keep_empty
        Whether chunks of nothing but the fill value are kept.

    Returns
    -------
    list of NDArray or None
        One per chunk of ``base``; None for those that need not be stored.

    Examples
    --------
    >>> from chunkwright import DataType, FillValue
    >>> dtype = DataType(np.dtype("u1"))
    >>> spec = ChunkSpec((3,), dtype, FillValue.of(dtype, 9))
    >>> entries = Entries.boxes(chunk=np.array([0]), start=np.array([[1]]), count=np.array([[2]]),
    ...                         out_start=np.array([[0]]))
    >>> gather(np.array([7, 8], "u1"), entries, [None, None], spec, keep_empty=False)
    [array([9, 7, 8], dtype=uint8), None]
    """
    arrays = [spec.full() if array is None else array for array in base]
    copier = Copier(entries)
    for row, chunk in enumerate(entries.chunk.tolist()):
        copier.gather(row, source, arrays[chunk])
    return [array if keep_empty or not spec.fill_value.fills(array) else None for array in arrays]
