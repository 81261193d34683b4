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
    rows = []
    axes: tuple[int, ...] | None = None
    for selection, out_selection in zip(selections, out_selections, strict=True):
        box = _plain_box(selection, out_selection, shape, out_shape)
        if box is None or (axes is not None and box[0] != axes):
            return None
        axes = box[0]
        rows.append(box[1:])
    starts, counts, steps, out_starts = (
        np.array(column, np.int64).reshape(len(rows), -1) for column in zip(*rows, strict=True)
    )
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


def _plain_box(
    selection: Any, out_selection: Any, shape: tuple[int, ...], out_shape: tuple[int, ...] | None
) -> _Box | None:
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
