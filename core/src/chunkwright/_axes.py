"""What many selections take along one axis, as columns; the parts that :mod:`chunkwright.selection` works with.

An axis is read from the items that the selections have there (:func:`read_axis`), which nearly always are all of
one type, and then adapted: dropped, turned from evenly spaced lists into boxes, matched with the axis of the
other side.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.entries import IndexList, offsets_of
from chunkwright.errors import SelectionError

type Ints = NDArray[np.int64]

UNKNOWN = -1

FARTHEST = 1 << 62
"""Steps that are longer lead out of every axis too."""

INT64 = np.dtype(np.int64)


@attrs.frozen(eq=False)
class Axis:
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


def read_axis(column: Sequence[Any], extent: int | None, position: int) -> Axis:
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
    return Axis(_wrapped(values, extent), constant(1, len(values)), constant(1, len(values)), single=True)


def _integer(item: Any) -> int:
    if isinstance(item, bool | np.bool_):
        raise TypeError("a Boolean is no index")
    return operator.index(item)


def _slices(column: Sequence[slice], extent: int | None) -> Axis:
    steps = {item.step for item in column}
    if not all(step is None or (isinstance(step, int) and step >= 1) for step in steps):
        return _odd_slices(column, extent)
    try:
        start = np.array([item.start for item in column], np.int64)
        stop = np.array([item.stop for item in column], np.int64)
    except (TypeError, ValueError, OverflowError):
        return _odd_slices(column, extent)
    step = constant(1, len(start))
    if not steps <= {None, 1}:
        step = np.array([min(item.step or 1, FARTHEST) for item in column], np.int64)
    if start.min(initial=0) < 0 or stop.min(initial=0) < 0 or (extent is not None and stop.max(initial=0) > extent):
        return _odd_slices(column, extent)
    return Axis(start, np.maximum(-((start - stop) // step), 0), step)


def _odd_slices(column: Sequence[slice], extent: int | None) -> Axis:
    """Slices with open ends, ends outside the axis, or negative steps."""
    try:
        if extent is not None:
            ranges = [range(*item.indices(extent)) for item in column]
            rows = [(item.start, len(item), max(min(item.step, FARTHEST), -FARTHEST)) for item in ranges]
        elif all(item.stop is None and (item.start or 0) >= 0 and (item.step or 1) >= 1 for item in column):
            rows = [(item.start or 0, UNKNOWN, min(item.step or 1, FARTHEST)) for item in column]
        else:
            raise SelectionError("a slice that depends on the length of the caller's array")
    except (TypeError, ValueError) as error:
        raise SelectionError(str(error)) from error
    start, count, step = np.array(rows, np.int64).reshape(-1, 3).T
    return Axis(start, count, step)


def _arrays(arrays: list[NDArray[Any]], extent: int | None, position: int) -> Axis:
    ndims = {array.ndim for array in arrays}
    if len(ndims) > 1:
        raise SelectionError("index arrays of different forms")
    across = ndims != {1}
    if across and any(array.ndim <= position or array.shape[position] != array.size for array in arrays):
        raise SelectionError("index arrays that select together must be one-dimensional")
    runs = _runs(arrays, extent)
    runs = attrs.evolve(runs, values=_wrapped(runs.values, extent))
    return Axis(constant(0, len(arrays)), runs.counts, constant(1, len(arrays)), runs, across=across)


def _runs(arrays: list[NDArray[Any]], extent: int | None) -> IndexList:
    if {array.dtype for array in arrays} == {INT64}:
        # Nearly always; orthogonal selections bring tens of thousands of them.
        sizes = np.fromiter((array.size for array in arrays), np.int64, len(arrays))
        return IndexList(np.concatenate(arrays, axis=None), offsets_of(sizes))
    return IndexList.of([_indices(array.reshape(-1), extent) for array in arrays])


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


def constant(value: int, rows: int) -> Ints:
    return np.full(rows, value, np.int64)


def dropped(axis: Axis) -> Axis:
    """An axis of length one that the caller's array does not have."""
    if (axis.count != 1).any():
        raise SelectionError("a dropped axis must have length one")
    start = axis.start if axis.runs is None else axis.runs.values
    return attrs.evolve(axis, start=start, runs=None, single=True)


def evened(axis: Axis, *, descending: bool = False) -> Axis:
    """Turn an index list whose runs are all evenly spaced into starts and steps."""
    runs = axis.runs
    if runs is None:
        return axis
    counts, first = runs.counts, np.diff(runs.values[: runs.offsets[1] if len(runs.offsets) > 1 else 0])
    if (first != first[:1]).any():
        return axis  # as most lists are; nothing else has to be looked at
    padded = np.append(runs.values, [0, 0])
    heads = np.minimum(runs.offsets[:-1], len(runs.values))
    step = np.where(counts > 1, padded[heads + 1] - padded[heads], 1)
    is_odd = np.diff(runs.values) != np.repeat(step, counts)[:-1]
    inner_heads = runs.offsets[1:-1]
    is_odd[inner_heads[(inner_heads > 0) & (inner_heads < len(runs.values))] - 1] = False
    if is_odd.any() or (np.abs(step) if descending else step).min(initial=1) < 1:
        return axis
    return attrs.evolve(axis, start=np.where(counts > 0, padded[heads], 0), step=step, runs=None)


def matched(chunk: Axis, out: Axis) -> tuple[Axis, Axis]:
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


def _listed(axis: Axis) -> Axis:
    """Turn starts and steps into an index list."""
    offsets = offsets_of(axis.count)
    position = np.arange(int(offsets[-1]), dtype=np.int64) - np.repeat(offsets[:-1], axis.count)
    values = np.repeat(axis.start, axis.count) + position * np.repeat(axis.step, axis.count)
    return attrs.evolve(axis, runs=IndexList(values, offsets))
