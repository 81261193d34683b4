"""Cut a few boxes along a grid with plain Python, which beats a hundred small NumPy calls.

Single boxes are what viewers and training loops ask for, one call each; for them the fixed cost of
:mod:`chunkwright.grid` would be larger than decoding. The result is the same, column for column, and is tested
against it. Anything but boxes, and anything large, is left to the columns.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.entries import Entries

__all__ = ("cut_few",)

MAX_ENTRIES = 8
"""Most entries."""

MAX_PARTS = 64
"""Most inner chunks touched; from about here on the columns are as fast."""

type Segment = tuple[int, int, int, int]
"""Cell along an axis, first element within it, number of elements, and position of the first in the entry."""


def cut_few(
    entries: Entries, inner: tuple[int, ...], grid: tuple[int, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Entries] | None:
    """Cut boxes that touch few inner chunks.

    Parameters
    ----------
    entries
        The selections.
    inner
        Shape of an inner chunk.
    grid
        Inner chunks along each axis.

    Returns
    -------
    tuple or None
        Chunk and cell of each touched inner chunk, and the cut entries; None when this is a case for the
        columns.
    """
    if len(entries) > MAX_ENTRIES or not entries.is_boxes:
        return None
    strides = [math.prod(grid[axis + 1 :]) for axis in range(len(grid))]
    columns = (entries.chunk, entries.start, entries.count, entries.step, entries.out_start, entries.out_step)
    rows: list[list[int]] = []
    sources: list[int] = []
    last = -1
    for number, (chunk, start, count, step, out_start, out_step) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        boxes = list(zip(start, count, step, inner, strict=True))
        if any(_span(*box) > MAX_PARTS for box in boxes):
            return None
        segments = [_cut(*box) for box in boxes]
        parts = math.prod(map(len, segments))
        if len(rows) + parts > MAX_PARTS:
            return None
        first = chunk * math.prod(grid)
        for combination in product(*segments):
            row = _row(combination, strides, entries.axes, out_start, out_step)
            if first + row[0] <= last:
                return None  # two entries meet in one inner chunk: they have to be grouped
            last = first + row[0]
            rows.append([chunk, *row])
        sources += [number] * parts
    return _columns(entries, rows, sources)


def _span(start: int, count: int, step: int, size: int) -> int:
    """Most cells that a box touches along an axis."""
    return min(count, (start + (count - 1) * step) // size - start // size + 1)


def _cut(start: int, count: int, step: int, size: int) -> list[Segment]:
    if count <= 0:
        return []
    segments: list[Segment] = []
    for cell in range(start // size, (start + (count - 1) * step) // size + 1):
        first = max(-((start - cell * size) // step), 0)
        taken = min(((cell + 1) * size - 1 - start) // step, count - 1) - first + 1
        if taken > 0:
            segments.append((cell, start + first * step - cell * size, taken, first))
    return segments


def _row(
    combination: tuple[Segment, ...],
    strides: list[int],
    axes: tuple[int, ...],
    out_start: list[int],
    out_step: list[int],
) -> list[int]:
    """Cell, starts, counts and out starts of one part, in one list."""
    cell, starts, counts, places = 0, [], [], out_start.copy()
    for (at, local, taken, first), stride, out in zip(combination, strides, axes, strict=True):
        cell += at * stride
        starts.append(local)
        counts.append(taken)
        if out >= 0:
            places[out] += first * out_step[out]
    return [cell, *starts, *counts, *places]


def _columns(
    entries: Entries, rows: list[list[int]], sources: list[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Entries]:
    ndim = entries.ndim
    table = np.array(rows, np.int64).reshape(len(rows), 2 + 2 * ndim + entries.out_ndim)
    changed: dict[str, Any] = {
        "chunk": np.arange(len(rows), dtype=np.int64),
        "start": table[:, 2 : 2 + ndim],
        "count": table[:, 2 + ndim : 2 + 2 * ndim],
        "out_start": table[:, 2 + 2 * ndim :],
    }
    changed["step"], changed["out_step"] = entries.step[sources], entries.out_step[sources]
    return table[:, 0], table[:, 1], attrs.evolve(entries, **changed)
