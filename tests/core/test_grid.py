"""Entries cut along a grid select the same elements as before."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from chunkwright.entries import Entries, IndexList
from chunkwright.grid import split
from chunkwright.scatter import Copier


@st.composite
def batches(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], int, Entries]:
    """An inner shape, a grid, a number of chunks, and entries of any form over them."""
    ndim = draw(st.integers(0, 3))
    inner = tuple(draw(st.lists(st.integers(1, 4), min_size=ndim, max_size=ndim)))
    grid = tuple(draw(st.lists(st.integers(1, 4), min_size=ndim, max_size=ndim)))
    shape = [a * b for a, b in zip(inner, grid, strict=True)]
    chunks = draw(st.integers(1, 3))
    rows = draw(st.integers(0, 4))
    points = ndim > 0 and draw(st.booleans())
    listed = [points or draw(st.booleans()) for _ in range(ndim)]
    dropped = [not points and not on and draw(st.integers(0, 3)) == 0 for on in listed]
    kept = [axis for axis in range(ndim) if not dropped[axis]]
    order = [0] * ndim if points else draw(st.permutations(range(len(kept))))
    axes = [0] * ndim if points else [order[kept.index(axis)] if axis in kept else -1 for axis in range(ndim)]
    out_ndim = 1 if points else len(kept)
    start, count, step = (np.ones((rows, ndim), np.int64) for _ in range(3))
    runs: list[list[NDArray[np.int64]]] = [[] for _ in range(ndim)]
    for row in range(rows):
        length = draw(st.integers(0, 6))
        for axis in range(ndim):
            if listed[axis]:
                size = length if points else draw(st.integers(0, 6))
                values = draw(st.lists(st.integers(0, shape[axis] - 1), min_size=size, max_size=size))
                runs[axis].append(np.array(values, np.int64))
                count[row, axis] = size
                continue
            start[row, axis] = draw(st.integers(0, shape[axis] - 1))
            step[row, axis] = draw(st.integers(1, 5))
            most = (shape[axis] - 1 - start[row, axis]) // step[row, axis] + 1
            count[row, axis] = 1 if dropped[axis] else draw(st.integers(0, int(most)))
    entries = Entries(
        chunk=np.sort(np.array(draw(st.lists(st.integers(0, chunks - 1), min_size=rows, max_size=rows)), np.int64)),
        start=start,
        count=count,
        step=step,
        out_start=np.full((rows, out_ndim), 40, np.int64),
        out_step=np.array([[draw(st.sampled_from([-2, -1, 1, 3])) for _ in range(out_ndim)]] * rows, np.int64).reshape(
            rows, out_ndim
        ),
        axes=tuple(axes),
        lists=tuple(IndexList.of(runs[axis]) if listed[axis] else None for axis in range(ndim)),
        out_lists=(None,) * out_ndim,
        points=points,
    )
    return inner, grid, chunks, entries


@given(batches())
def test_cut_entries_copy_the_same_elements(batch: tuple[tuple[int, ...], tuple[int, ...], int, Entries]) -> None:
    inner, grid, chunks, entries = batch
    shape = tuple(a * b for a, b in zip(inner, grid, strict=True))
    data = np.arange(chunks * int(np.prod(shape))).reshape(chunks, *shape) + 1
    want, got = (np.zeros((80,) * entries.out_ndim, int) for _ in range(2))
    # Rows may write the same place: give each its own array in turn.
    for row in range(len(entries)):
        one = entries.take(np.array([row]))
        Copier(one).scatter(0, data[int(one.chunk[0])], want)
        parts = split(one, inner, grid)
        assert (np.diff(parts.chunk * int(np.prod(grid)) + parts.cell) > 0).all()
        copier = Copier(parts.entries)
        for part, item in enumerate(parts.entries.chunk.tolist()):
            where = np.unravel_index(int(parts.cell[item]), grid) if grid else ()
            box = tuple(slice(c * n, (c + 1) * n) for c, n in zip(where, inner, strict=True))
            copier.scatter(part, data[int(parts.chunk[item])][box], got)
    assert (want == got).all()


@given(batches())
def test_cutting_many_entries_is_cutting_each(batch: tuple[tuple[int, ...], tuple[int, ...], int, Entries]) -> None:
    inner, grid, _, entries = batch
    together = split(entries, inner, grid)
    keys = set(zip(together.chunk.tolist(), together.cell.tolist(), strict=True))
    alone = [split(entries.take(np.array([row])), inner, grid) for row in range(len(entries))]
    assert keys == {key for parts in alone for key in zip(parts.chunk.tolist(), parts.cell.tolist(), strict=True)}
    assert len(together.entries) == sum(len(parts.entries) for parts in alone)
    assert (np.diff(together.entries.chunk) >= 0).all()


def test_a_step_longer_than_a_cell_jumps_over_cells() -> None:
    entries = Entries.boxes(
        chunk=np.array([0]),
        start=np.array([[1]]),
        count=np.array([[3]]),
        step=np.array([[7]]),
        out_start=np.array([[0]]),
    )
    parts = split(entries, (3,), (6,))
    assert parts.cell.tolist() == [0, 2, 5]
    assert parts.entries.start.ravel().tolist() == [1, 2, 0]
