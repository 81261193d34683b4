"""The commonest selections, a few plain boxes, without the machinery for all others.

A call on a small array or a crop has a handful of pairs of integers and slices, for which a dozen calls of NumPy
cost more than reading the numbers in plain Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chunkwright.entries import Entries


def few_boxes(
    selections: Sequence[Any], out_selections: Sequence[Any], shape: tuple[int, ...], out_shape: tuple[int, ...] | None
) -> Entries | None:
    """The commonest case, a few plain boxes inside their arrays; None when it is anything else."""
    boxes: list[int] = []
    places: list[int] = []
    axes: list[int] | None = None
    for selection, place in zip(selections, out_selections, strict=True):
        landing = _add(selection, place, shape, out_shape, boxes, places)
        if landing is None or (axes is not None and landing != axes):
            return None
        axes = landing
    rows, ndim = len(selections), len(shape)
    # Rows of start, count and step along each axis, as columns of their own.
    start, count, step = np.array(boxes, np.int64).reshape(rows, ndim, 3).transpose(2, 0, 1).copy()
    out_start = np.array(places, np.int64).reshape(rows, -1)
    return Entries(
        chunk=np.arange(rows, dtype=np.int64),
        start=start,
        count=count,
        step=step,
        out_start=out_start,
        out_step=np.ones(out_start.shape, np.int64),
        axes=tuple(axes or ()),
        lists=(None,) * ndim,
        out_lists=(None,) * out_start.shape[1],
    )


def _add(
    selection: Any,
    place: Any,
    shape: tuple[int, ...],
    out_shape: tuple[int, ...] | None,
    boxes: list[int],
    places: list[int],
) -> list[int] | None:
    """Add start, count and step along each axis of a chunk, and starts in the caller's array; return the axes there."""
    if type(selection) is not tuple or type(place) is not tuple or len(selection) != len(shape):
        return None
    if out_shape is not None and len(place) != len(out_shape):
        return None
    axes: list[int] = []
    out = 0
    for item, extent in zip(selection, shape, strict=True):
        if type(item) is int and 0 <= item < extent:
            boxes += (item, 1, 1)
            axes.append(-1)
            continue
        if out == len(place) or type(item) is not slice or type(place[out]) is not slice:
            return None
        first, stop, by = item.start, item.stop, 1 if item.step is None else item.step
        begin, end, apart = place[out].start, place[out].stop, place[out].step
        # One comparison of classes after the other: a loop over them would take longer than all the rest.
        if not (type(first) is type(stop) is type(by) is type(begin) is type(end) is int) or apart not in (None, 1):
            return None
        if first < 0 or not 0 <= stop <= extent or by <= 0 or begin < 0:
            return None
        taken = max(-((first - stop) // by), 0)
        if end - begin != taken:
            return None
        # Steps may be of any size, and entries have 64 bits for them.
        by = min(by, max(extent, 1))
        if out_shape is not None and end > out_shape[out]:
            return None
        boxes += (first, taken, by)
        places.append(begin)
        axes.append(out)
        out += 1
    return axes if out == len(place) else None
