"""Turn NumPy-like selections into entries, once, outside the codecs.

Two questions are answered here. :func:`entries_of` takes one selection of one chunk, as NumPy's
``chunk[selection]`` (arrays select orthogonally, each along its own axis). :func:`entries_of_pairs` takes
many pairs at once and means ``out[out_selection] = chunk[selection]`` for each, as NumPy does it; whoever
has cut a selection along a grid of chunks has such pairs.

Pairs are turned around first: one column per axis, so that the items of an axis, which are nearly
always all slices or all arrays, are read in a few passes over plain lists. Index arrays that turn out to
be evenly spaced become boxes again, because boxes are copied without an index.

What cannot be expressed (integers mixed with arrays in one pair, arrays that broadcast against each
other, extents that NumPy would broadcast) is a ``SelectionError``: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright._axes import Axis, Ints, constant, dropped, evened, matched, read_axis
from chunkwright._plain import few_boxes
from chunkwright.entries import Entries, IndexList
from chunkwright.errors import SelectionError

__all__ = ("Selection", "Selector", "check_entries", "entries_of", "entries_of_pairs", "expanded", "out_extents")

type Selector = int | slice | EllipsisType | NDArray[Any] | list[int] | list[bool]
type Selection = Selector | tuple[Selector, ...]

FEW = 20
"""Up to so many pairs, plain Python is faster than a dozen calls of NumPy."""


def entries_of(selection: Selection, shape: tuple[int, ...]) -> tuple[Entries, tuple[int, ...]]:
    """Turn one selection of one chunk into one entry.

    Parameters
    ----------
    selection
        Integers (which drop their axis), slices with steps of either sign, one-dimensional integer or
        Boolean arrays (each along its own axis), an ellipsis; or a tuple of these.
    shape
        Shape of the chunk.

    Returns
    -------
    tuple of Entries and tuple of int
        One entry of chunk 0, and the shape of the array that the selection makes.

    Raises
    ------
    SelectionError
        When the selection is not of this form, or lies outside the chunk.

    Examples
    --------
    >>> entries, out_shape = entries_of((2, slice(None, None, -1)), (4, 5))
    >>> out_shape, entries.start.tolist(), entries.out_start.tolist(), entries.out_step.tolist()
    ((5,), [[2, 0]], [[4]], [[-1]])
    """
    items = expanded(selection if isinstance(selection, tuple) else (selection,), len(shape))
    axes = [
        read_axis([item], extent, position) for position, (item, extent) in enumerate(zip(items, shape, strict=True))
    ]
    if any(axis.across for axis in axes):
        raise SelectionError("index arrays must be one-dimensional")
    out_shape = tuple(int(axis.count[0]) for axis in axes if not axis.single)
    out = [Axis(constant(0, 1), axis.count, constant(1, 1)) for axis in axes if not axis.single]
    entries = _joined(axes, out, rows=1, points=False)
    check_entries(entries, shape, out_shape)
    return entries, out_shape


def entries_of_pairs(
    selections: Sequence[Any],
    out_selections: Sequence[Any],
    *,
    shape: tuple[int, ...],
    out_shape: tuple[int, ...] | None = None,
    drop_axes: tuple[int, ...] = (),
) -> Entries:
    """Turn pairs that mean ``out[out_selection] = chunk[selection]`` into entries, one per pair.

    Parameters
    ----------
    selections
        What is taken of each chunk; all of one form. Tuples of slices and integers; tuples of slices and
        one array; ``numpy.ix_`` arrays; one one-dimensional array per axis (points).
    out_selections
        Where it goes; the same forms, or a bare array or slice.
    shape
        Shape of every chunk.
    out_shape
        Shape of the caller's array; None when it is as large as need be.
    drop_axes
        Axes of the chunk on which the selection has length one, and which the caller's array has not.

    Returns
    -------
    Entries
        Entry ``i`` is of chunk ``i``.

    Raises
    ------
    SelectionError
        When a pair cannot be expressed, or lies outside the chunk or the caller's array.

    Examples
    --------
    >>> entries = entries_of_pairs([(slice(1, 3), 0)], [(slice(4, 6),)], shape=(4, 2), out_shape=(9,))
    >>> entries.start.tolist(), entries.count.tolist(), entries.out_start.tolist(), entries.axes
    ([[1, 0]], [[2, 1]], [[4]], (0, -1))
    """
    if len(selections) <= FEW and not drop_axes:
        entries = few_boxes(selections, out_selections, shape, out_shape)
        if entries is not None:
            return entries
    chunk_axes = _side(selections, shape, len(shape))
    out_axes = _side(out_selections, out_shape, None if out_shape is None else len(out_shape))
    points = sum(axis.runs is not None and not axis.across for axis in chunk_axes) > 1
    if points and not all(axis.runs is not None for axis in chunk_axes):
        raise SelectionError("several index arrays must select along every axis")
    chunk_axes = [dropped(axis) if position in drop_axes else axis for position, axis in enumerate(chunk_axes)]
    if not points:
        chunk_axes = [evened(axis) for axis in chunk_axes]
    out_axes = [evened(axis, descending=True) for axis in out_axes]
    entries = _joined(chunk_axes, out_axes, rows=len(selections), points=points)
    check_entries(entries, shape, out_shape)
    return entries


def out_extents(entries: Entries) -> tuple[int, ...]:
    """Return the shape of the smallest array that holds every place that the entries name.

    Parameters
    ----------
    entries
        Any entries.

    Returns
    -------
    tuple of int
        One length per out axis.

    Examples
    --------
    >>> out_extents(entries_of((slice(1, 3), 0), (4, 2))[0])
    (2,)
    """
    taken = (entries.count > 0).all(axis=1)
    extents = []
    for out, runs in enumerate(entries.out_lists):
        if runs is not None:
            last = int(runs.values.max(initial=-1))
        else:
            ends = entries.out_start[:, out] + np.maximum((_out_count(entries, out) - 1) * entries.out_step[:, out], 0)
            last = int(ends.max(initial=-1, where=taken))
        extents.append(last + 1)
    return tuple(extents)


def check_entries(entries: Entries, shape: tuple[int, ...], out_shape: tuple[int, ...] | None = None) -> None:
    """Make sure that entries lie within their chunks and within the caller's array.

    Parameters
    ----------
    entries
        Any entries.
    shape
        Shape of the chunks.
    out_shape
        Shape of the caller's array; None: only the chunks are checked.

    Raises
    ------
    SelectionError
        When an entry reaches outside.
    """
    taken = (entries.count > 0).all(axis=1)
    if out_shape is None and not any(entries.lists):
        # All axes at once; what is wrong is found below.
        last = entries.start + (entries.count - 1) * entries.step
        if not (((entries.start < 0) | (last >= shape)).any(axis=1) & taken).any():
            return
    for axis, extent in enumerate(shape):
        start = entries.start[:, axis]
        last = start + (entries.count[:, axis] - 1) * entries.step[:, axis]
        _check_axis(start, last, entries.lists[axis], taken, extent, "chunk")
    for out, extent in enumerate(out_shape or ()):
        start = entries.out_start[:, out]
        last = start + (_out_count(entries, out) - 1) * entries.out_step[:, out]
        _check_axis(np.minimum(start, last), np.maximum(start, last), entries.out_lists[out], taken, extent, "array")


def _check_axis(
    low: Ints, high: Ints, runs: IndexList | None, taken: NDArray[np.bool_], extent: int, what: str
) -> None:
    if runs is not None:
        lowest, highest = runs.values.min(initial=0), runs.values.max(initial=-1)
    else:
        lowest, highest = low.min(initial=0, where=taken), high.max(initial=-1, where=taken)
    if lowest < 0 or highest >= extent:
        found = int(lowest if lowest < 0 else highest)
        raise SelectionError(f"index outside the {what}", expected=f"0 to {extent - 1}", found=found)


def _out_count(entries: Entries, out: int) -> Ints:
    if out in entries.axes:
        return entries.count[:, entries.axes.index(out)]
    return np.ones(len(entries), np.int64)


def expanded(items: tuple[Any, ...], ndim: int) -> tuple[Any, ...]:
    """Replace an ellipsis, and select everything along axes that are not mentioned.

    Parameters
    ----------
    items
        What is selected along the axes that are mentioned.
    ndim
        Number of axes.

    Returns
    -------
    tuple
        One item for each axis.

    Raises
    ------
    SelectionError
        When there are several ellipses, or more items than axes.

    Examples
    --------
    >>> expanded((3, ..., 4), 4)
    (3, slice(None, None, None), slice(None, None, None), 4)
    """
    where = [position for position, item in enumerate(items) if item is Ellipsis]
    if len(where) > 1:
        raise SelectionError("more than one ellipsis")
    at = where[0] if where else len(items)
    missing = ndim - (len(items) - len(where))
    if missing < 0:
        raise SelectionError("too many indices", expected=ndim, found=len(items) - len(where))
    return items[:at] + (slice(None),) * missing + items[at + 1 :]


def _side(selections: Sequence[Any], shape: tuple[int, ...] | None, ndim: int | None) -> list[Axis]:
    """Read one side of all pairs, axis by axis."""
    kinds = set(map(type, selections))
    if kinds != {tuple}:
        selections = [item if isinstance(item, tuple) else (item,) for item in selections]
    lengths = set(map(len, selections))
    if ndim is not None and (lengths != {ndim} or any(item is Ellipsis for item in selections[0])):
        selections = [expanded(item, ndim) for item in selections]
    elif len(lengths) > 1:
        raise SelectionError("selections of different forms")
    columns = list(zip(*selections, strict=True))
    axes = [
        read_axis(column, None if shape is None else shape[position], position)
        for position, column in enumerate(columns)
    ]
    across = [axis.across for axis in axes]
    if any(across) and not all(across):
        raise SelectionError("index arrays of different forms")
    if any(axis.single for axis in axes) and any(axis.runs is not None for axis in axes):
        raise SelectionError("integers mixed with index arrays")
    return axes


def _joined(chunk_axes: list[Axis], out_axes: list[Axis], *, rows: int, points: bool) -> Entries:
    """Match the axes of both sides and make entries of them."""
    landing = [out for out, axis in enumerate(out_axes) if not axis.single]
    kept = [position for position, axis in enumerate(chunk_axes) if not axis.single]
    targets = landing * len(kept) if points and len(landing) == 1 else landing
    if len(targets) != len(kept):
        raise SelectionError("wrong number of axes", expected=len(landing), found=len(kept))
    chunk_axes, out_axes = list(chunk_axes), list(out_axes)
    axes = [-1] * len(chunk_axes)
    for position, out in zip(kept, targets, strict=True):
        axes[position] = out
        chunk_axes[position], out_axes[out] = matched(chunk_axes[position], out_axes[out])
    return Entries(
        chunk=np.arange(rows, dtype=np.int64),
        start=_stacked([axis.start for axis in chunk_axes], rows),
        count=_stacked([axis.count for axis in chunk_axes], rows),
        step=_stacked([axis.step for axis in chunk_axes], rows),
        out_start=_stacked([axis.start for axis in out_axes], rows),
        out_step=_stacked([axis.step for axis in out_axes], rows),
        axes=tuple(axes),
        lists=tuple(axis.runs for axis in chunk_axes),
        out_lists=tuple(axis.runs for axis in out_axes),
        points=points,
    )


def _stacked(columns: list[Ints], rows: int) -> Ints:
    return np.stack(columns, axis=1) if columns else np.empty((rows, 0), np.int64)
