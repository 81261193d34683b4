"""One selection of an array, read on the calling thread without zarr's indexers and event loop.

zarr makes a row for each chunk and hands the rows to its loop: for a crop of a few chunks that takes longer than
reading them does, and for thousands of small chunks as long. Here a selection is put into a plain form (integers,
slices, indices that ascend) and the backend cuts it along the chunks itself. Large selections are cut in halves first,
between chunks, so that what a part needs besides its result stays small.

What is done only where the backend can: chunks on a regular grid, in files or in memory, without codecs of Python's.
Everything else is None here, and whoever asked does it as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from operator import index
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.errors import SelectionError
from chunkwright.selection import expanded
from chunkwright_zarr.driving import prepared_chain, whole_nbytes
from chunkwright_zarr.few import MAX_FEW, MAX_FEW_NBYTES, FewBoxes, region_boxes
from chunkwright_zarr.grid_array import GridArray
from chunkwright_zarr.inline import granule
from chunkwright_zarr.ready import Ready

__all__ = ("MAX_EXTENT", "PlainSelection", "parts_of_region", "plain_selection")

MAX_EXTENT = (1 << 63) - 1
"""Indices are columns of int64."""

MAX_LISTED = 1 << 22
"""Most indices that the backend copies for one part."""

type Axis = int | slice | NDArray[np.int64]
"""What is selected along one axis: one index, a slice of which nothing is left out, or indices that ascend."""


@attrs.frozen(eq=False)
class PlainSelection:
    """A selection that is not empty, in a plain form.

    Parameters
    ----------
    axes
        What is selected along each axis.
    shape
        Shape of the result, which integers leave without their axis.
    """

    axes: tuple[Axis, ...]
    shape: tuple[int, ...]


def plain_selection(selection: object, extents: Sequence[int], *, orthogonal: bool) -> PlainSelection | None:
    """Put a selection of an array into a plain form.

    Parameters
    ----------
    selection
        As NumPy takes it.
    extents
        Shape of the array.
    orthogonal
        Whether arrays may select, each along its own axis.

    Returns
    -------
    PlainSelection or None
        None when it selects nothing, goes backwards or beyond the array, or is of another form; and when indices
        of the array may be longer than 64 bits.

    Examples
    --------
    >>> plain_selection((-1, ..., slice(1, None)), (4, 5, 6), orthogonal=False)
    PlainSelection(axes=(3, slice(0, 5, 1), slice(1, 6, 1)), shape=(5, 5))
    """
    try:
        items = expanded(selection if isinstance(selection, tuple) else (selection,), len(extents))
    except SelectionError:
        return None
    if max(extents, default=0) > MAX_EXTENT:
        return None
    axes: list[Axis] = []
    shape: list[int] = []
    for item, extent in zip(items, extents, strict=True):
        axis = _axis(item, extent, orthogonal=orthogonal)
        if axis is None:
            return None
        axes.append(axis)
        if not isinstance(axis, int):
            shape.append(_length(axis))
    return None if 0 in shape else PlainSelection(tuple(axes), tuple(shape))


def _axis(item: Any, extent: int, *, orthogonal: bool) -> Axis | None:
    if type(item) is slice:
        return _slice(item, extent)
    if type(item) is int or (isinstance(item, np.integer) and item.dtype.kind in "iu"):
        number = index(item)
        return number % extent if -extent <= number < extent else None
    return _ascending(item, extent) if orthogonal and isinstance(item, np.ndarray) else None


def _slice(item: slice, extent: int) -> slice | None:
    try:
        start, stop, step = item.indices(extent)
    except (TypeError, ValueError):  # zarr says what is wrong with it
        return None
    return slice(start, max(start, stop), step) if step > 0 else None


def _ascending(item: NDArray[Any], extent: int) -> NDArray[np.int64] | None:
    """Indices along an axis; None when they do not ascend or are not all within it."""
    if item.ndim != 1:
        return None
    if item.dtype.kind == "b":
        return np.flatnonzero(item).astype(np.int64, copy=False) if len(item) == extent else None
    if item.dtype.kind not in "iu" or not item.size or item.min() < -extent or item.max() >= extent:
        return None
    numbers = item.astype(np.int64)
    numbers[numbers < 0] += extent
    return numbers if (numbers[1:] >= numbers[:-1]).all() else None


def _length(axis: slice | NDArray[np.int64]) -> int:
    return len(range(axis.start, axis.stop, axis.step)) if isinstance(axis, slice) else len(axis)


def parts_of_region(array: GridArray, plain: PlainSelection, *, out: NDArray[Any]) -> Iterator[FewBoxes | None]:
    """Make the reads of a selection, one after the other.

    Parameters
    ----------
    array
        The array.
    plain
        What is selected.
    out
        The array that is read into.

    Yields
    ------
    FewBoxes or None
        What is to be read next, mostly all of it; None, and no more, when this cannot be read like that.
    """
    sizes = array.ready.spec.shape
    if _most_of_shard(array.ready, plain) > MAX_FEW_NBYTES:
        yield None
        return
    touched = [_touched(axis, size) for axis, size in zip(plain.axes, sizes, strict=True)]
    if _is_at_once(array.ready, plain, touched):
        found = region_boxes(array, plain.axes, out=out)
        if found is None or prod(touched) == 1 or found.boxes.nbytes <= MAX_FEW_NBYTES:
            yield found
            return
    for half, place in _halves(plain, touched, sizes):
        for part in parts_of_region(array, half, out=out[place]):
            yield part
            if part is None:
                return


def _is_at_once(ready: Ready, plain: PlainSelection, touched: Sequence[int]) -> bool:
    """Whether a selection of so many chunks along each axis may be few boxes: one chunk always may."""
    chunks = prod(touched)
    nbytes = chunks * whole_nbytes(prepared_chain(ready)) if prepared_chain(ready).shard is None else 0
    # The backend takes a copy of a list for each chunk along the other axes.
    listed = sum(
        len(axis) * chunks // along
        for axis, along in zip(plain.axes, touched, strict=True)
        if isinstance(axis, np.ndarray)
    )
    return chunks == 1 or (chunks <= MAX_FEW and nbytes <= MAX_FEW_NBYTES and listed <= MAX_LISTED)


def _most_of_shard(ready: Ready, plain: PlainSelection) -> int:
    """How many decoded bytes are read of one shard at most; no part is smaller, so that a shard is of one version."""
    chain = prepared_chain(ready)
    if chain.shard is None:
        return 0
    nbytes = whole_nbytes(chain)
    for axis, size, leaf in zip(plain.axes, ready.spec.shape, granule(chain), strict=True):
        nbytes = nbytes // (size // leaf) * min(_leaves(axis, leaf), size // leaf)
    return nbytes


def _leaves(axis: Axis, leaf: int) -> int:
    """How many of what is decoded at least is touched along an axis, at most."""
    if isinstance(axis, int):
        return 1
    return (axis.stop - axis.start - 1) // leaf + 2 if isinstance(axis, slice) else len(axis)


def _touched(axis: Axis, size: int) -> int:
    """How many chunks are touched along an axis, at most."""
    if isinstance(axis, int):
        return 1
    first, last = _ends(axis)
    return min(last // size - first // size + 1, _length(axis))


def _ends(axis: slice | NDArray[np.int64]) -> tuple[int, int]:
    """The first and the last index."""
    if isinstance(axis, slice):
        return axis.start, axis.start + (_length(axis) - 1) * axis.step
    return int(axis[0]), int(axis[-1])


def _halves(
    plain: PlainSelection, touched: Sequence[int], sizes: Sequence[int]
) -> Iterator[tuple[PlainSelection, tuple[slice, ...]]]:
    """A selection of several chunks in two parts, cut between chunks, and where each goes in the result."""
    number = max(range(len(touched)), key=touched.__getitem__)
    axis, size = plain.axes[number], sizes[number]
    assert not isinstance(axis, int)
    first, last = _ends(axis)
    before = _before(axis, (first // size + last // size + 1) // 2 * size)
    out_axis = sum(not isinstance(other, int) for other in plain.axes[:number])
    for half, place in ((_first(axis, before), slice(before)), (_rest(axis, before), slice(before, None))):
        axes = (*plain.axes[:number], half, *plain.axes[number + 1 :])
        shape = (*plain.shape[:out_axis], _length(half), *plain.shape[out_axis + 1 :])
        yield PlainSelection(axes, shape), (slice(None),) * out_axis + (place,)


def _before(axis: slice | NDArray[np.int64], index: int) -> int:
    """How many of what is selected lie before an index."""
    if isinstance(axis, slice):
        count: int = -((axis.start - index) // axis.step)
        return count
    return int(np.searchsorted(axis, index))


def _first(axis: slice | NDArray[np.int64], count: int) -> slice | NDArray[np.int64]:
    if isinstance(axis, slice):
        return slice(axis.start, axis.start + (count - 1) * axis.step + 1, axis.step)
    return axis[:count]


def _rest(axis: slice | NDArray[np.int64], count: int) -> slice | NDArray[np.int64]:
    if isinstance(axis, slice):
        return slice(axis.start + count * axis.step, axis.stop, axis.step)
    return axis[count:]
