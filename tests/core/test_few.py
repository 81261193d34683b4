"""Few boxes are cut as many are."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from chunkwright import _few, grid
from chunkwright.entries import Entries
from tests.core.test_grid import batches


@given(batches())
def test_few_boxes_are_cut_as_columns_are(batch: tuple[tuple[int, ...], tuple[int, ...], int, Entries]) -> None:
    inner, cells, _, entries = batch
    few = _few.cut_few(entries, inner, cells)
    if few is None:
        return
    many = grid.split_columns(entries, inner, cells)
    assert np.array_equal(few[0], many.chunk)
    assert np.array_equal(few[1], many.cell)
    for name in ("chunk", "start", "count", "step", "out_start", "out_step"):
        assert np.array_equal(getattr(few[2], name), getattr(many.entries, name)), name
        assert getattr(few[2], name).dtype == np.int64


def one_box(count: int) -> Entries:
    return Entries.boxes(
        chunk=np.array([0]), start=np.array([[1]]), count=np.array([[count]]), out_start=np.array([[0]])
    )


def test_many_parts_and_many_entries_are_left_to_the_columns() -> None:
    assert _few.cut_few(one_box(64), (1,), (100,)) is not None
    assert _few.cut_few(one_box(65), (1,), (100,)) is None
    assert _few.cut_few(Entries.whole((2,), 9), (1,), (2,)) is None


def test_entries_that_meet_in_an_inner_chunk_are_left_to_the_columns() -> None:
    twice = Entries.boxes(
        chunk=np.array([0, 0]), start=np.array([[0], [1]]), count=np.array([[1], [1]]), out_start=np.array([[0], [1]])
    )
    assert _few.cut_few(twice, (4,), (2,)) is None
    assert grid.split(twice, (4,), (2,)).cell.tolist() == [0]


def test_inner_chunks_are_counted_in_c_order_however_they_are_cut() -> None:
    box = Entries.boxes(
        chunk=np.array([0]), start=np.array([[3, 3]]), count=np.array([[1, 1]]), out_start=np.array([[0, 0]])
    )
    few = _few.cut_few(box, (2, 2), (2, 3))
    assert few is not None
    assert few[1].tolist() == grid.split_columns(box, (2, 2), (2, 3)).cell.tolist() == [4]
