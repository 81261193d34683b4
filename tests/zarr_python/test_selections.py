"""Whatever zarr's indexers make becomes entries that copy the same elements, and values follow NumPy's rules."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import zarr
from hypothesis import given
from numpy.typing import NDArray
from zarr.core.array_spec import ArrayConfig, ArraySpec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.chunk_grids import ChunkGrid
from zarr.core.indexing import (
    BasicIndexer,
    BlockIndexer,
    CoordinateIndexer,
    Indexer,
    MaskIndexer,
    OrthogonalIndexer,
)

from chunkwright.scatter import Copier, scatter
from chunkwright_zarr.selections import Group, grouped, read_entries, write_entries

SHAPE = (11, 7, 5)
CHUNKS = (4, 3, 5)
DATA = np.arange(np.prod(SHAPE)).reshape(SHAPE)
GRID = ChunkGrid.from_sizes(SHAPE, CHUNKS)


def spec_of(shape: tuple[int, ...]) -> ArraySpec:
    return ArraySpec(shape, zarr.dtype.Int64(), np.int64(0), ArrayConfig("C", False), default_buffer_prototype())


def batch_of(indexer: Indexer, spec: ArraySpec) -> list[Any]:
    """Rows as zarr hands them over; the coordinates of the chunk stand for its place in the store."""
    return [(coords, spec, chunk, out, complete) for coords, chunk, out, complete in indexer]


def chunk_at(coords: tuple[int, ...]) -> NDArray[Any]:
    """A chunk of the grid, with zeros beyond the edge of the array."""
    chunk = np.zeros(CHUNKS, DATA.dtype)
    part = DATA[tuple(slice(at * size, (at + 1) * size) for at, size in zip(coords, CHUNKS, strict=True))]
    chunk[tuple(map(slice, part.shape))] = part
    return chunk


def read(indexer: Indexer) -> NDArray[Any]:
    (group,) = grouped(batch_of(indexer, spec_of(CHUNKS)))
    out = np.full(indexer.shape, -1)
    entries = read_entries(group, out.shape, indexer.drop_axes)
    scatter([chunk_at(row[0]) for row in group.rows], entries, out, 0)
    return out


MASK = np.random.default_rng(3).random(SHAPE) < 0.3
ROWS = np.array([1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0], bool)

BASIC: list[Any] = [
    (),
    np.s_[:],
    np.s_[5],
    np.s_[-1, 2:],
    np.s_[3, 6, 4],
    np.s_[2:9:3, ::2, 1:4],
    np.s_[..., 3],
    np.s_[10:, 6:, :],
]

ORTHOGONAL: list[Any] = [
    (np.array([1, 5, 9]), slice(None), slice(None)),
    (np.array([9, 1, 5, 1]), slice(None), slice(None)),
    (np.array([9, 5, 1]), slice(1, 6), 3),
    (slice(None), np.array([0, 6]), np.array([4, 0])),
    (np.array([3, 3, 0]), np.array([6, 0, 2]), np.array([4, 0])),
    (ROWS, slice(2, 3), slice(None)),
    (ROWS, np.array([5, 0]), 2),
    (4, 5, np.array([4, 4, 1])),
    (np.array([-1, -11]), 0, slice(None)),
    (np.array([2]), np.array([3]), np.array([4])),
]


@pytest.mark.parametrize("selection", BASIC)
def test_basic_selections_are_read(selection: Any) -> None:
    np.testing.assert_array_equal(read(BasicIndexer(selection, SHAPE, GRID)), DATA[selection])


@pytest.mark.parametrize("selection", ORTHOGONAL)
def test_orthogonal_selections_are_read(selection: Any) -> None:
    kept = [np.atleast_1d(np.arange(length)[item]) for item, length in zip(selection, SHAPE, strict=True)]
    expected = DATA[np.ix_(*kept)]
    dropped = tuple(axis for axis, item in enumerate(selection) if isinstance(item, int))
    np.testing.assert_array_equal(read(OrthogonalIndexer(selection, SHAPE, GRID)), expected.squeeze(axis=dropped))


@pytest.mark.parametrize(
    "points", [[[0, 10, 4, 0], [6, 0, 3, 6], [4, 4, 0, 4]], [[1, 2], [0, 0], [0, 1]], [[3], [3], [3]]]
)
def test_coordinates_are_read(points: list[list[int]]) -> None:
    selection = tuple(map(np.array, points))
    np.testing.assert_array_equal(read(CoordinateIndexer(selection, SHAPE, GRID)), DATA[selection])


def test_masks_are_read() -> None:
    np.testing.assert_array_equal(read(MaskIndexer((MASK,), SHAPE, GRID)), DATA[MASK])


def test_blocks_are_read() -> None:
    np.testing.assert_array_equal(read(BlockIndexer((slice(1, 3), 0), SHAPE, GRID)), DATA[4:, :3])


def test_one_dimension_of_coordinates_is_read() -> None:
    grid, data = ChunkGrid.from_sizes((20,), (6,)), np.arange(20) * 3
    indexer = CoordinateIndexer((np.array([19, 0, 7, 0, 13]),), (20,), grid)
    (group,) = grouped(batch_of(indexer, spec_of((6,))))
    out = np.full(5, -1)
    chunks = [np.resize(data[row[0][0] * 6 : row[0][0] * 6 + 6], 6) for row in group.rows]
    scatter(chunks, read_entries(group, (5,), ()), out, 0)
    np.testing.assert_array_equal(out, data[[19, 0, 7, 0, 13]])


def test_rows_are_grouped_by_equal_specs() -> None:
    one, same, other = spec_of((2,)), spec_of((2,)), spec_of((3,))
    rows: list[Any] = [("a", one, 0, 0, True), ("b", other, 0, 0, True), ("c", same, 0, 0, True)]
    groups = grouped(rows)
    assert [(group.spec.shape, [row[0] for row in group.rows], group.positions) for group in groups] == [
        ((2,), ["a", "c"], [0, 2]),
        ((3,), ["b"], [1]),
    ]


def test_equal_specs_are_one_group() -> None:
    groups = grouped([("a", spec_of((2,)), 0, 0, True), ("b", spec_of((2,)), 0, 0, True)])
    assert [group.positions for group in groups] == [None]


def written(indexer: Indexer, value: Any) -> NDArray[Any]:
    """What the default pipeline's assignment to each chunk gives, by entries."""
    groups = grouped(batch_of(indexer, spec_of(CHUNKS)))
    (entries,), source = write_entries(groups, np.asarray(value), indexer.drop_axes)
    result = np.full(tuple(-(-length // size) * size for length, size in zip(SHAPE, CHUNKS, strict=True)), -1)
    copier = Copier(entries)
    for row, (coords, *_) in enumerate(groups[0].rows):
        place = tuple(slice(at * size, (at + 1) * size) for at, size in zip(coords, CHUNKS, strict=True))
        copier.gather(row, source, result[place])
    return result[tuple(map(slice, SHAPE))]


@pytest.mark.parametrize(
    ("selection", "value"),
    [
        (np.s_[2:9, 1, :], 7),
        (np.s_[2:9, 1, :], np.arange(35).reshape(7, 5)),
        (np.s_[2:9, 1, :], np.asfortranarray(np.arange(35).reshape(7, 5))),
        (np.s_[2:9, 1, :], np.arange(35).reshape(7, 5).astype(">i8")),
        (np.s_[2:9, 1, :], np.arange(70).reshape(7, 10)[:, ::2]),
        (np.s_[0:4, 0:3, :], np.arange(15).reshape(1, 3, 5)),
        (np.s_[0:4, 0:3, :], np.ones((9, 9, 9), int)),
        (np.s_[3, 3, 3], 5),
    ],
)
def test_values_are_written_as_numpy_assigns_them(selection: Any, value: Any) -> None:
    expected = np.full(SHAPE, -1)
    indexer = BasicIndexer(selection, SHAPE, GRID)
    full = value if np.ndim(value) == 0 else value[tuple(map(slice, indexer.shape))]
    expected[selection] = full
    np.testing.assert_array_equal(written(indexer, value), expected)


def test_values_lack_dropped_axes() -> None:
    selection = (np.array([1, 9]), 3, slice(None))
    value = np.arange(10).reshape(2, 5)
    expected = np.full(SHAPE, -1)
    expected[[1, 9], 3] = value
    np.testing.assert_array_equal(written(OrthogonalIndexer(selection, SHAPE, GRID), value), expected)


@pytest.mark.parametrize(
    ("value", "error"), [(np.zeros(5), IndexError), (np.zeros((2, 5)), ValueError), (np.zeros((7, 5, 1)), ValueError)]
)
def test_values_that_do_not_broadcast_fail_as_in_numpy(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        written(BasicIndexer(np.s_[2:9, 1, :], SHAPE, GRID), value)


def test_scalars_are_broadcast_without_a_copy() -> None:
    groups = [Group(spec_of((4,)), [("a", spec_of((4,)), (slice(0, 4),), (slice(96, 100),), True)])]
    _, source = write_entries(groups, np.array(3), ())
    assert source.shape == (100,)
    assert source.strides == (0,)


def axis_items(extent: int) -> st.SearchStrategy[Any]:
    index = st.integers(-extent, extent - 1)
    steps = st.builds(slice, st.none() | index, st.none() | index, st.none() | st.integers(1, 4))
    arrays = st.lists(index, min_size=1, max_size=6).map(np.array)
    masks = st.lists(st.booleans(), min_size=extent, max_size=extent).map(lambda values: np.array(values, bool))
    return steps | index | arrays | masks


@given(st.tuples(*map(axis_items, SHAPE)))
def test_any_orthogonal_selection_is_read(selection: tuple[Any, ...]) -> None:
    kept = [np.atleast_1d(np.arange(length)[item]) for item, length in zip(selection, SHAPE, strict=True)]
    dropped = tuple(axis for axis, item in enumerate(selection) if isinstance(item, int))
    expected = DATA[np.ix_(*kept)].squeeze(axis=dropped)
    indexer = OrthogonalIndexer(selection, SHAPE, GRID)
    if expected.size:
        np.testing.assert_array_equal(read(indexer), expected)
    else:
        assert 0 in indexer.shape
