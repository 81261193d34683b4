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

import operator
from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.entries import Entries, IndexList, offsets_of
from chunkwright.errors import SelectionError

__all__ = ("Selection", "Selector", "check_entries", "entries_of", "entries_of_pairs", "out_extents")

type Selector = int | slice | EllipsisType | NDArray[Any] | list[int] | list[bool]
type Selection = Selector | tuple[Selector, ...]

type Ints = NDArray[np.int64]

UNKNOWN = -1

FEW = 8
"""Up to so many pairs, plain Python is faster than a dozen calls of NumPy."""


@attrs.frozen(eq=False)
class _Axis:
    """What every selection of a batch takes along one axis.

    ``runs`` replaces start and step. A count of ``UNKNOWN`` is settled by the other side. ``single`` axes
    came as integers; ``across`` axes came as arrays that are laid out along their own axis (``numpy.ix_``).
    """

    start: Ints
    count: Ints
    step: Ints
    runs: IndexList | None = None
    single: bool = False
    across: bool = False


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
    items = _expanded(selection if isinstance(selection, tuple) else (selection,), len(shape))
    axes = [_axis([item], extent, position) for position, (item, extent) in enumerate(zip(items, shape, strict=True))]
    if any(axis.across for axis in axes):
        raise SelectionError("index arrays must be one-dimensional")
    out_shape = tuple(int(axis.count[0]) for axis in axes if not axis.single)
    out = [_Axis(_constant(0, 1), axis.count, _constant(1, 1)) for axis in axes if not axis.single]
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
        entries = _few_boxes(selections, out_selections, shape, out_shape)
        if entries is not None:
            return entries
    chunk_axes = _side(selections, shape, len(shape))
    out_axes = _side(out_selections, out_shape, None if out_shape is None else len(out_shape))
    points = sum(axis.runs is not None and not axis.across for axis in chunk_axes) > 1
    if points and not all(axis.runs is not None for axis in chunk_axes):
        raise SelectionError("several index arrays must select along every axis")
    chunk_axes = [_dropped(axis) if position in drop_axes else axis for position, axis in enumerate(chunk_axes)]
    if not points:
        chunk_axes = [_evened(axis) for axis in chunk_axes]
    out_axes = [_evened(axis, descending=True) for axis in out_axes]
    entries = _joined(chunk_axes, out_axes, rows=len(selections), points=points)
    check_entries(entries, shape, out_shape)
    return entries


def _few_boxes(
    selections: Sequence[Any], out_selections: Sequence[Any], shape: tuple[int, ...], out_shape: tuple[int, ...] | None
) -> Entries | None:
    """The commonest case, a few plain boxes inside their arrays; None when it is anything else."""
    rows = []
    axes: tuple[int, ...] | None = None
    for selection, out_selection in zip(selections, out_selections, strict=True):
        box = _plain_box(selection, out_selection, shape, out_shape)
        if box is None or (axes is not None and box[0] != axes):
            return None
        axes = box[0]
        rows.append(box[1:])
    starts, counts, steps, out_starts = (np.array(column, np.int64).reshape(len(rows), -1) for column in zip(*rows, strict=True))
    return Entries(
        chunk=np.arange(len(rows), dtype=np.int64),
        start=starts,
        count=counts,
        step=steps,
        out_start=out_starts,
        out_step=np.ones(out_starts.shape, np.int64),
        axes=axes or (),
        lists=(None,) * starts.shape[1],
        out_lists=(None,) * out_starts.shape[1],
    )


type _Box = tuple[tuple[int, ...], list[int], list[int], list[int], list[int]]


def _plain_box(selection: Any, out_selection: Any, shape: tuple[int, ...], out_shape: tuple[int, ...] | None) -> _Box | None:
    """Axes, start, count and step on the chunk's side, and start on the caller's side."""
    if type(selection) is not tuple or type(out_selection) is not tuple or len(selection) != len(shape):
        return None
    axes, start, count, step, out_start = [], [], [], [], []
    out = 0
    for item, extent in zip(selection, shape, strict=True):
        if type(item) is int and 0 <= item < extent:
            axes.append(-1)
            first, taken, by = item, 1, 1
        elif type(item) is slice and out < len(out_selection) and type(out_selection[out]) is slice:
            first, stop, by = item.start, item.stop, item.step or 1
            place = out_selection[out]
            ends = first, stop, by, place.start, place.stop
            if not all(type(end) is int and end >= 0 for end in ends) or stop > extent or place.step not in (None, 1):
                return None
            taken = max(-((first - stop) // by), 0)
            if place.stop - place.start != taken or (out_shape is not None and place.stop > out_shape[out]):
                return None
            axes.append(out)
            out_start.append(place.start)
            out += 1
        else:
            return None
        start.append(first)
        count.append(taken)
        step.append(by)
    if out != len(out_selection) or (out_shape is not None and len(out_shape) != out):
        return None
    return tuple(axes), start, count, step, out_start


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


def _expanded(items: tuple[Any, ...], ndim: int) -> tuple[Any, ...]:
    """Replace an ellipsis, and select everything along axes that are not mentioned."""
    where = [position for position, item in enumerate(items) if item is Ellipsis]
    if len(where) > 1:
        raise SelectionError("more than one ellipsis")
    at = where[0] if where else len(items)
    missing = ndim - (len(items) - len(where))
    if missing < 0:
        raise SelectionError("too many indices", expected=ndim, found=len(items) - len(where))
    return items[:at] + (slice(None),) * missing + items[at + 1 :]


def _side(selections: Sequence[Any], shape: tuple[int, ...] | None, ndim: int | None) -> list[_Axis]:
    """Read one side of all pairs, axis by axis."""
    kinds = set(map(type, selections))
    if kinds != {tuple}:
        selections = [item if isinstance(item, tuple) else (item,) for item in selections]
    lengths = set(map(len, selections))
    if ndim is not None and (lengths != {ndim} or any(item is Ellipsis for item in selections[0])):
        selections = [_expanded(item, ndim) for item in selections]
    elif len(lengths) > 1:
        raise SelectionError("selections of different forms")
    columns = list(zip(*selections, strict=True))
    axes = [_axis(column, None if shape is None else shape[position], position) for position, column in enumerate(columns)]
    across = [axis.across for axis in axes]
    if any(across) and not all(across):
        raise SelectionError("index arrays of different forms")
    if any(axis.single for axis in axes) and any(axis.runs is not None for axis in axes):
        raise SelectionError("integers mixed with index arrays")
    return axes


def _axis(column: Sequence[Any], extent: int | None, position: int) -> _Axis:
    """Read what all pairs take along one axis."""
    kinds = set(map(type, column))
    if kinds == {slice}:
        return _slices(column, extent)
    if any(issubclass(kind, np.ndarray | list) for kind in kinds):
        arrays = [np.asarray(item) for item in column]
        if any(array.ndim for array in arrays):
            return _arrays(arrays, extent, position)
    try:
        values = np.array([_integer(item) for item in column], np.int64)
    except (TypeError, OverflowError) as error:
        raise SelectionError("neither an integer, a slice nor an index array") from error
    return _Axis(_wrapped(values, extent), _constant(1, len(values)), _constant(1, len(values)), single=True)


def _integer(item: Any) -> int:
    if isinstance(item, bool | np.bool_):
        raise TypeError("a Boolean is no index")
    return operator.index(item)


def _slices(column: Sequence[slice], extent: int | None) -> _Axis:
    steps = {item.step for item in column}
    if not all(step is None or (isinstance(step, int) and step >= 1) for step in steps):
        return _odd_slices(column, extent)
    try:
        start = np.array([item.start for item in column], np.int64)
        stop = np.array([item.stop for item in column], np.int64)
        step = np.ones(len(start), np.int64) if steps <= {None, 1} else np.array([item.step or 1 for item in column], np.int64)
    except (TypeError, ValueError, OverflowError):
        return _odd_slices(column, extent)
    if start.min(initial=0) < 0 or stop.min(initial=0) < 0 or (extent is not None and stop.max(initial=0) > extent):
        return _odd_slices(column, extent)
    return _Axis(start, np.maximum(-((start - stop) // step), 0), step)


def _odd_slices(column: Sequence[slice], extent: int | None) -> _Axis:
    """Slices with open ends, ends outside the axis, or negative steps."""
    try:
        if extent is not None:
            ranges = [range(*item.indices(extent)) for item in column]
            rows = [(item.start, len(item), item.step) for item in ranges]
        elif all(item.stop is None and (item.start or 0) >= 0 and (item.step or 1) >= 1 for item in column):
            rows = [(item.start or 0, UNKNOWN, item.step or 1) for item in column]
        else:
            raise SelectionError("a slice that depends on the length of the caller's array")
    except (TypeError, ValueError) as error:
        raise SelectionError(str(error)) from error
    start, count, step = np.array(rows, np.int64).reshape(-1, 3).T
    return _Axis(start, count, step)


def _arrays(arrays: list[NDArray[Any]], extent: int | None, position: int) -> _Axis:
    ndims = {array.ndim for array in arrays}
    if len(ndims) > 1:
        raise SelectionError("index arrays of different forms")
    across = ndims != {1}
    if across and any(array.ndim <= position or array.shape[position] != array.size for array in arrays):
        raise SelectionError("index arrays that select together must be one-dimensional")
    runs = IndexList.of([_indices(array.reshape(-1), extent) for array in arrays])
    runs = attrs.evolve(runs, values=_wrapped(runs.values, extent))
    return _Axis(_constant(0, len(arrays)), runs.counts, _constant(1, len(arrays)), runs, across=across)


def _indices(array: NDArray[Any], extent: int | None) -> Ints:
    if array.dtype.kind == "b":
        if extent is not None and len(array) != extent:
            raise SelectionError("wrong length of a Boolean array", expected=extent, found=len(array))
        return np.flatnonzero(array).astype(np.int64)
    if array.dtype.kind not in "iu" and array.size:
        raise SelectionError("an index array must be of integers or Booleans")
    return array.astype(np.int64)


def _wrapped(values: Ints, extent: int | None) -> Ints:
    """Count negative indices from the end."""
    if extent is None or values.min(initial=0) >= 0:
        return values
    return np.where(values < 0, values + extent, values)


def _constant(value: int, rows: int) -> Ints:
    return np.full(rows, value, np.int64)


def _dropped(axis: _Axis) -> _Axis:
    """An axis of length one that the caller's array does not have."""
    if (axis.count != 1).any():
        raise SelectionError("a dropped axis must have length one")
    start = axis.start if axis.runs is None else axis.runs.values
    return attrs.evolve(axis, start=start, runs=None, single=True)


def _evened(axis: _Axis, *, descending: bool = False) -> _Axis:
    """Turn an index list whose runs are all evenly spaced into starts and steps."""
    runs = axis.runs
    if runs is None:
        return axis
    counts = runs.counts
    padded = np.append(runs.values, [0, 0])
    heads = np.minimum(runs.offsets[:-1], len(runs.values))
    step = np.where(counts > 1, padded[heads + 1] - padded[heads], 1)
    within = np.ones(max(len(runs.values) - 1, 0), bool)
    inner_heads = runs.offsets[1:-1]
    within[inner_heads[(inner_heads > 0) & (inner_heads < len(runs.values))] - 1] = False
    expected = np.repeat(step, counts)[:-1]
    if (np.diff(runs.values)[within] != expected[within]).any() or not (step if not descending else np.abs(step)).min(initial=1) >= 1:
        return axis
    return attrs.evolve(axis, start=np.where(counts > 0, padded[heads], 0), step=step, runs=None)


def _joined(chunk_axes: list[_Axis], out_axes: list[_Axis], *, rows: int, points: bool) -> Entries:
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
        chunk_axes[position], out_axes[out] = _matched(chunk_axes[position], out_axes[out])
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


def _matched(chunk: _Axis, out: _Axis) -> tuple[_Axis, _Axis]:
    """Make sure that both sides have as many elements, with ascending steps on the chunk's side."""
    if (out.count == UNKNOWN).any():
        out = attrs.evolve(out, count=np.where(out.count == UNKNOWN, chunk.count, out.count))
    if (chunk.count != out.count).any():
        raise SelectionError("different numbers of elements on both sides")
    backwards = chunk.step < 0
    if not backwards.any():
        return chunk, out
    if out.runs is not None:
        return _listed(chunk), out
    reach = np.maximum(chunk.count - 1, 0)
    return (
        attrs.evolve(
            chunk, start=np.where(backwards, chunk.start + reach * chunk.step, chunk.start), step=np.abs(chunk.step)
        ),
        attrs.evolve(
            out,
            start=np.where(backwards, out.start + reach * out.step, out.start),
            step=np.where(backwards, -out.step, out.step),
        ),
    )


def _listed(axis: _Axis) -> _Axis:
    """Turn starts and steps into an index list."""
    offsets = offsets_of(axis.count)
    position = np.arange(int(offsets[-1]), dtype=np.int64) - np.repeat(offsets[:-1], axis.count)
    values = np.repeat(axis.start, axis.count) + position * np.repeat(axis.step, axis.count)
    return attrs.evolve(axis, runs=IndexList(values, offsets))


def _stacked(columns: list[Ints], rows: int) -> Ints:
    return np.stack(columns, axis=1) if columns else np.empty((rows, 0), np.int64)
