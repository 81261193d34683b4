"""Random entries: boxes with steps, index lists, points and dropped axes, over several chunks; and their meaning.

Entry ``i`` has the out array's row ``i`` for itself, so that entries never overlap there. Its elements begin at a
random place of the row and run in a random direction.
"""

from __future__ import annotations

from typing import Any

import attrs
import hypothesis.strategies as st
import numpy as np
from numpy.typing import NDArray

from chunkwright import Entries, IndexList

type Draw = st.DrawFn
type Ints = NDArray[np.int64]

ROOM = 3
"""Places beyond the longest selection along each out axis."""


@attrs.frozen(eq=False)
class Selections:
    """Entries, the shape of their out array, and what each entry is in NumPy's terms."""

    entries: Entries
    out_shape: tuple[int, ...]
    indices: list[tuple[Any, Any]]

    def scatter(self, chunks: list[NDArray[Any]], out: NDArray[Any]) -> None:
        """Do with NumPy what a read does."""
        for chunk, (inside, outside) in zip(self.entries.chunk, self.indices, strict=True):
            out[outside] = chunks[chunk][inside]

    def gather(self, source: NDArray[Any], chunks: list[NDArray[Any]]) -> None:
        """Do with NumPy what a write does; later entries win."""
        for chunk, (inside, outside) in zip(self.entries.chunk, self.indices, strict=True):
            values = source[outside]
            chunks[chunk][inside] = values if inside else values[0]


@st.composite
def selections(draw: Draw, shape: tuple[int, ...], chunks: int, *, unique: bool = False) -> Selections:
    """Draw up to eight entries; ``unique``: none selects an element twice."""
    count = draw(st.integers(0, 8))
    kinds = _kinds(draw, len(shape))
    chunk = np.array(sorted(draw(st.lists(st.integers(0, chunks - 1), min_size=count, max_size=count))), np.int64)
    lists = _lists(draw, shape, kinds, count, unique)
    boxes = [
        [_box(draw, extent, single=kind == "drop") for _ in range(count)]
        for extent, kind in zip(shape, kinds, strict=True)
    ]
    axes, out_ndim = _axes(kinds)
    start, length, step = (_column(boxes, at, count, len(shape)) for at in range(3))
    for axis, runs in enumerate(lists):
        if runs is not None:
            length[:, axis] = [len(run) for run in runs]
    out_shape, out_start, out_step = _places(draw, axes, out_ndim, length, count)
    entries = Entries(
        chunk=chunk,
        start=start,
        count=length,
        step=step,
        out_start=out_start,
        out_step=out_step,
        axes=axes,
        lists=tuple(None if runs is None else IndexList.of(runs) for runs in lists),
        out_lists=(None,) * out_ndim,
        points="point" in kinds,
    )
    return Selections(entries, out_shape, [_meaning(entries, lists, row) for row in range(count)])


def _kinds(draw: Draw, ndim: int) -> list[str]:
    kinds = draw(st.lists(st.sampled_from(["box", "list", "drop", "point"]), min_size=ndim, max_size=ndim))
    if kinds.count("point") == 1 or ("point" in kinds and "list" in kinds):
        return ["list" if kind == "point" else kind for kind in kinds]
    return kinds


def _lists(draw: Draw, shape: tuple[int, ...], kinds: list[str], count: int, unique: bool) -> list[list[Ints] | None]:
    """One run of indices per entry for each axis that has lists; the runs of point axes are equally long."""
    lists: list[list[Ints] | None] = [None] * len(shape)
    for axis, kind in enumerate(kinds):
        if kind == "list":
            index = st.lists(st.integers(0, shape[axis] - 1), max_size=6, unique=unique)
            lists[axis] = [np.array(draw(index), np.int64) for _ in range(count)]
    together = [axis for axis, kind in enumerate(kinds) if kind == "point"]
    if together:
        extents = tuple(shape[axis] for axis in together)
        point = st.integers(0, int(np.prod(extents)) - 1)
        flat = [np.array(draw(st.lists(point, max_size=6, unique=unique)), np.int64) for _ in range(count)]
        for column, axis in enumerate(together):
            lists[axis] = [np.unravel_index(run, extents)[column].astype(np.int64) for run in flat]
    return lists


def _box(draw: Draw, extent: int, *, single: bool) -> tuple[int, int, int]:
    """Start, count and step along one axis."""
    start = draw(st.integers(0, extent - 1))
    if single:
        return start, 1, 1
    step = draw(st.integers(1, 3))
    return start, draw(st.integers(0, (extent - 1 - start) // step + 1)), step


def _axes(kinds: list[str]) -> tuple[tuple[int, ...], int]:
    """Out axis of each axis, and how many there are; out axis 0 tells the entries apart."""
    axes: list[int] = []
    points = None
    free = 1
    for kind in kinds:
        if kind == "drop":
            axes.append(-1)
        elif kind == "point" and points is not None:
            axes.append(points)
        else:
            points = free if kind == "point" else points
            axes.append(free)
            free += 1
    return tuple(axes), free


def _column(boxes: list[list[tuple[int, int, int]]], at: int, count: int, ndim: int) -> Ints:
    return np.array([[box[at] for box in axis] for axis in boxes], np.int64).reshape(ndim, count).T.copy()


def _places(
    draw: Draw, axes: tuple[int, ...], out_ndim: int, length: Ints, count: int
) -> tuple[tuple[int, ...], Ints, Ints]:
    out_length = np.ones((count, out_ndim), np.int64)
    for axis, out in enumerate(axes):
        if out >= 0:
            out_length[:, out] = length[:, axis]
    out_shape = (count, *(int(extent) + ROOM for extent in out_length[:, 1:].max(axis=0, initial=0)))
    out_start = np.zeros((count, out_ndim), np.int64)
    out_step = np.ones((count, out_ndim), np.int64)
    out_start[:, 0] = np.arange(count)
    for out in range(1, out_ndim):
        first = np.array([draw(st.integers(0, ROOM)) for _ in range(count)], np.int64).reshape(count)
        backwards = draw(st.booleans())
        out_start[:, out] = first + (np.maximum(out_length[:, out], 1) - 1) * backwards
        out_step[:, out] = -1 if backwards else 1
    return out_shape, out_start, out_step


def _meaning(entries: Entries, lists: list[list[Ints] | None], row: int) -> tuple[Any, Any]:
    """Index arrays of one entry, in the chunk and in the out array, laid out along the out axes."""
    counts = {out: int(entries.count[row, axis]) for axis, out in enumerate(entries.axes) if out >= 0}
    inside = []
    for axis, out in enumerate(entries.axes):
        runs = lists[axis]
        start, count, step = (int(column[row, axis]) for column in (entries.start, entries.count, entries.step))
        values = start + step * np.arange(count) if runs is None else runs[row]
        inside.append(_along(values, out, entries.out_ndim) if out >= 0 else values.reshape((1,) * entries.out_ndim))
    outside = []
    for out in range(entries.out_ndim):
        values = int(entries.out_start[row, out]) + int(entries.out_step[row, out]) * np.arange(counts.get(out, 1))
        outside.append(_along(values, out, entries.out_ndim))
    return tuple(inside), tuple(outside)


def _along(values: Ints, axis: int, ndim: int) -> Ints:
    shape = [1] * ndim
    shape[axis] = len(values)
    return values.reshape(shape)
