"""Entries of every form that :mod:`chunkwright.entries` allows, made from a number."""

from __future__ import annotations

import numpy as np

from chunkwright.entries import Entries, IndexList

__all__ = ("entries_of_every_form", "out_shape_of")

_EXTENT = 90


def entries_of_every_form(number: int) -> tuple[tuple[int, ...], Entries]:
    """Make the shape of a chunk and three entries of it that go to different places.

    Parameters
    ----------
    number
        Another number makes other entries: boxes with steps, dropped and permuted axes, index lists on either
        side, points.

    Returns
    -------
    tuple of tuple and Entries
        The shape, and the entries of chunk 0.

    Examples
    --------
    >>> shape, entries = entries_of_every_form(3)
    >>> len(entries), entries.ndim == len(shape)
    (3, True)
    """
    rng = np.random.default_rng(number)
    ndim, rows = int(rng.integers(1, 4)), 3
    shape = tuple(int(extent) for extent in rng.integers(1, 9, ndim))
    points = number % 4 == 3
    listed = [points or (number % 2 == 1 and bool(rng.integers(0, 2))) for _ in range(ndim)]
    dropped = [not points and not on and not rng.integers(0, 4) for on in listed]
    kept = [axis for axis in range(ndim) if not dropped[axis]]
    order = rng.permutation(len(kept)).tolist()
    axes = [0] * ndim if points else [-1 if dropped[axis] else order[kept.index(axis)] for axis in range(ndim)]
    out_ndim = 1 if points else len(kept)
    start, count, step = (np.ones((rows, ndim), np.int64) for _ in range(3))
    length = rng.integers(1, 7, rows)
    runs: list[IndexList | None] = [None] * ndim
    for axis, extent in enumerate(shape):
        if listed[axis]:
            runs[axis] = IndexList.of([rng.integers(0, extent, size) for size in length])
            count[:, axis] = length
            continue
        start[:, axis] = rng.integers(0, extent, rows)
        step[:, axis] = rng.integers(1, 4, rows)
        most = (extent - 1 - start[:, axis]) // step[:, axis] + 1
        count[:, axis] = 1 if dropped[axis] else rng.integers(1, most + 1)
    out_start = np.full((rows, out_ndim), 40, np.int64)
    if out_ndim:
        out_start[:, 0] += _EXTENT * np.arange(rows)
    out_step = rng.choice(np.array([-2, -1, 1, 3]), (rows, out_ndim))
    entries = Entries(
        chunk=np.zeros(rows, np.int64),
        start=start,
        count=count,
        step=step,
        out_start=out_start,
        out_step=out_step,
        axes=tuple(axes),
        lists=tuple(runs),
        out_lists=(None,) * out_ndim,
        points=points,
    )
    return shape, _with_out_list(entries, rng) if number % 8 == 5 and out_ndim else entries


def _with_out_list(entries: Entries, rng: np.random.Generator) -> Entries:
    """The same with an index list on the first out axis."""
    axis = entries.axes.index(0)
    places = [40 + _EXTENT * row + rng.permutation(20)[: int(entries.count[row, axis])] for row in range(len(entries))]
    return Entries(
        chunk=entries.chunk,
        start=entries.start,
        count=entries.count,
        step=entries.step,
        out_start=entries.out_start,
        out_step=entries.out_step,
        axes=entries.axes,
        lists=entries.lists,
        out_lists=(IndexList.of(places), *entries.out_lists[1:]),
        points=entries.points,
    )


def out_shape_of(entries: Entries) -> tuple[int, ...]:
    """Return the shape of an array that has all places of such entries.

    Parameters
    ----------
    entries
        Made by :func:`entries_of_every_form`.

    Returns
    -------
    tuple of int
        The shape.
    """
    return tuple(_EXTENT * len(entries) if axis == 0 else _EXTENT for axis in range(entries.out_ndim))
