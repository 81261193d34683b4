"""Selections become entries that copy exactly what NumPy copies."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwright.entries import Entries
from chunkwright.errors import SelectionError
from chunkwright.scatter import scatter
from chunkwright.selection import check_entries, entries_of, entries_of_pairs, out_extents

SHAPE = (5, 4, 6)
CHUNK = np.arange(120).reshape(SHAPE)


def copied(entries: Entries, chunks: list[np.ndarray], out_shape: tuple[int, ...]) -> np.ndarray:
    out = np.full(out_shape, -1)
    scatter(chunks, entries, out, 0)
    return out


def orthogonal(array: np.ndarray, items: tuple[Any, ...]) -> np.ndarray:
    """Select axis by axis, which is what orthogonal selection means."""
    for axis, item in reversed(list(enumerate(items))):
        array = array[(slice(None),) * axis + (item,)]
    return array


ITEMS = [
    slice(None),
    slice(1, 3),
    slice(0, 4, 3),
    slice(None, None, -1),
    slice(3, 0, -2),
    slice(2, 2),
    slice(-2, None),
    slice(1, 99),
    0,
    -1,
    np.int64(2),
    np.array([2, 0, 3]),
    np.array([1, 1]),
    np.array([-1, 0]),
    np.array([0, 2]),
    np.array([3]),
    np.array([], int),
    [1, 3],
]


@pytest.mark.parametrize("first", range(len(ITEMS)))
def test_one_chunk_is_selected_as_numpy_selects_axis_by_axis(first: int) -> None:
    for second, third in itertools.product(ITEMS, ITEMS):
        items = (ITEMS[first], second, third)
        expected = orthogonal(CHUNK, items)
        entries, out_shape = entries_of(items, SHAPE)
        assert out_shape == expected.shape
        np.testing.assert_array_equal(copied(entries, [CHUNK], out_shape), expected)


@pytest.mark.parametrize("length", [(True, False, True, False, True), (False,) * 5, (True,) * 5])
def test_boolean_arrays_select_along_their_axis(length: tuple[bool, ...]) -> None:
    mask = np.array(length)
    entries, out_shape = entries_of((slice(1, 3), mask), (4, 5))
    array = np.arange(20).reshape(4, 5)
    np.testing.assert_array_equal(copied(entries, [array], out_shape), array[1:3, mask])


@pytest.mark.parametrize(
    ("selection", "shape"),
    [
        (Ellipsis, SHAPE),
        ((), SHAPE),
        (0, SHAPE),
        ((Ellipsis, 1), SHAPE),
        ((1, Ellipsis, 2), SHAPE),
        ((), ()),
        (Ellipsis, ()),
    ],
)
def test_axes_that_are_not_mentioned_are_selected_whole(selection: Any, shape: tuple[int, ...]) -> None:
    array = np.arange(120)[: np.prod(shape, dtype=int)].reshape(shape)
    entries, out_shape = entries_of(selection, shape)
    np.testing.assert_array_equal(copied(entries, [array], out_shape), array[selection])


@pytest.mark.parametrize(
    "selection",
    [
        5,
        -6,
        (0, 0, 0, 0),
        (Ellipsis, Ellipsis),
        np.array([5]),
        np.array([True, False]),
        np.array([0.5]),
        "a",
        None,
        True,
        slice("a", None),
        slice(0, 3, 0),
        np.zeros((2, 2), int),
        2**70,
        slice(0, 3, "x"),
    ],
)
def test_a_selection_that_is_not_allowed_is_a_selection_error(selection: Any) -> None:
    with pytest.raises(SelectionError):
        entries_of(selection, SHAPE)


PAIRS: dict[str, tuple[list[Any], list[Any], tuple[int, ...]]] = {
    "boxes": (
        [np.s_[0:2, 1:4, 0:6], np.s_[3:5, 0:3, 0:6]],
        [np.s_[0:2, 0:3, 0:6], np.s_[2:4, 0:3, 0:6]],
        (4, 3, 6),
    ),
    "steps": ([np.s_[0:5:2, 0:4:3, 1:6:5]], [np.s_[0:3, 0:2, 0:1]], (3, 2, 1)),
    "backwards": ([np.s_[4:1:-1, ::-1, 0]], [np.s_[0:3, 0:4]], (3, 4)),
    "integers": ([(1, slice(0, 4), np.int64(2)), (4, slice(0, 4), np.int64(3))], [np.s_[0:4], np.s_[4:8]], (8,)),
    "one array": ([(slice(0, 5), np.array([3, 1]), slice(0, 6))], [np.s_[0:5, 2:4, 0:6]], (5, 4, 6)),
    "one array, array out": (
        [(slice(0, 5), np.array([3, 1, 0]), slice(0, 6))],
        [(slice(0, 5), np.array([3, 0, 1]), slice(0, 6))],
        (5, 4, 6),
    ),
    "mask": ([(slice(0, 5), np.array([True, False, True, True]), slice(0, 6))], [np.s_[0:5, 2:5, 0:6]], (5, 5, 6)),
    "orthogonal": ([np.ix_([0, 3], [2, 1], range(6))], [np.s_[0:2, 0:2, 0:6]], (2, 2, 6)),
    "orthogonal, arrays out": (
        [np.ix_([0, 3, 3], [2, 1], range(6))],
        [np.ix_([2, 0, 1], [1, 0], range(6))],
        (3, 2, 6),
    ),
    "points": ([(np.array([0, 4, 0]), np.array([1, 1, 3]), np.array([5, 0, 5]))], [np.array([2, 0, 1])], (3,)),
    "points, slice out": ([(np.array([0, 4]), np.array([1, 1]), np.array([5, 0]))], [slice(1, 3)], (3,)),
    "whole": ([np.s_[:, :, :], Ellipsis], [np.s_[0:5, 0:4, :], np.s_[5:10, ...]], (10, 4, 6)),
    "extra axis out": ([np.s_[:, :, 0]], [(slice(0, 5), 2, slice(0, 4))], (5, 3, 4)),
    "steps out": ([np.s_[0:5, 0, 0]], [np.s_[9:0:-2]], (10,)),
    "backwards, array out": ([np.s_[::-1, 0, 0]], [np.array([4, 0, 1, 3, 2])], (5,)),
    "negative indices": ([np.s_[-3:-1, 0, -1]], [np.s_[-2:]], (5,)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_copy_what_a_numpy_assignment_copies(name: str) -> None:
    selections, out_selections, out_shape = PAIRS[name]
    chunks = [CHUNK + 1000 * number for number in range(len(selections))]
    expected = np.full(out_shape, -1)
    for chunk, selection, out_selection in zip(chunks, selections, out_selections, strict=True):
        expected[out_selection] = chunk[selection]
    entries = entries_of_pairs(selections, out_selections, shape=SHAPE, out_shape=out_shape)
    np.testing.assert_array_equal(copied(entries, chunks, out_shape), expected)


def test_dropped_axes_are_squeezed() -> None:
    selection = np.ix_([1, 4], [2], range(6))
    entries = entries_of_pairs([selection], [np.s_[0:2, 0:6]], shape=SHAPE, out_shape=(2, 6), drop_axes=(1,))
    np.testing.assert_array_equal(copied(entries, [CHUNK], (2, 6)), CHUNK[selection].squeeze(axis=1))


def test_evenly_spaced_arrays_become_boxes() -> None:
    entries = entries_of_pairs(
        [np.ix_([0, 2, 4], range(1, 4), [5])], [np.ix_([2, 1, 0], range(3), [0])], shape=SHAPE, out_shape=(3, 3, 1)
    )
    assert entries.is_boxes
    assert entries.start.tolist() == [[0, 1, 5]]
    assert entries.step.tolist() == [[2, 1, 1]]
    assert entries.out_step.tolist() == [[-1, 1, 1]]


@pytest.mark.parametrize("runs", [[[0, 1], [3, 2]], [[0, 0]], [[0, 1, 3]], [[0], [1, 1]]])
def test_unevenly_spaced_arrays_stay_lists(runs: list[list[int]]) -> None:
    selections = [(np.array(run),) for run in runs]
    entries = entries_of_pairs(selections, [slice(0, len(run)) for run in runs], shape=(5,), out_shape=(9,))
    assert not entries.is_boxes


@pytest.mark.parametrize(
    ("selection", "out_selection"),
    [
        (np.s_[0:5, 0:4, 0:6], np.s_[0:5, 0:4, 0:5]),
        (np.s_[0:1, 0:4, 0:6], np.s_[0:5, 0:4, 0:6]),
        (np.s_[0, 0:4, 0:6], np.s_[0:5, 0:4, 0:6]),
        ((0, np.array([1, 2]), slice(0, 6)), np.s_[0:2, 0:6, 0:1]),
        ((slice(0, 5), np.array([1, 2]), np.array([1, 2])), np.s_[0:5, 0:2, 0:1]),
        ((np.array([[1], [2]]), np.array([1, 2]), np.array([1, 2])), np.s_[0:2, 0:1, 0:1]),
        ((np.array([0, 1]), np.array([1, 2]), np.array([1])), np.s_[0:2, 0:1, 0:1]),
        (np.s_[0:5, 0:4, 0:6], np.s_[8:13, 0:4, 0:6]),
    ],
)
def test_a_pair_that_cannot_be_expressed_is_a_selection_error(selection: Any, out_selection: Any) -> None:
    with pytest.raises(SelectionError):
        entries_of_pairs([selection], [out_selection], shape=SHAPE, out_shape=(10, 8, 6))


@pytest.mark.parametrize("rows", [1, 100], ids=["few", "many"])
@pytest.mark.parametrize("step", [1 << 62, 1 << 63, 1 << 64, 10**30])
def test_steps_may_be_longer_than_any_integer_of_the_machine(rows: int, step: int) -> None:
    chunk = np.arange(5)
    for taken in (slice(1, 5, step), slice(1, None, step)):
        selections, places = [(taken,)] * rows, [(slice(row, row + 1),) for row in range(rows)]
        entries = entries_of_pairs(selections, places, shape=(5,), out_shape=(rows,))
        assert copied(entries, [chunk] * rows, (rows,)).tolist() == [1] * rows
    for taken in (slice(4, None, -step), slice(None, None, step)):
        entries, out_shape = entries_of((taken,), (5,))
        assert copied(entries, [chunk], out_shape).tolist() == chunk[taken].tolist()


def test_steps_that_lead_back_select_nothing_and_those_that_lead_nowhere_are_an_error() -> None:
    places = [(slice(3, 2),)]
    entries = entries_of_pairs([(slice(1, 2, -1),)], places, shape=(5,), out_shape=(5,))
    assert entries.count.tolist() == [[0]]
    with pytest.raises(SelectionError):
        entries_of_pairs([(slice(1, 2, 0),)], places, shape=(5,), out_shape=(5,))


def test_pairs_of_different_forms_are_a_selection_error() -> None:
    with pytest.raises(SelectionError):
        entries_of_pairs([(slice(0, 1),), (0,)], [(slice(0, 1),), ()], shape=(5,))


def test_a_dropped_axis_longer_than_one_is_a_selection_error() -> None:
    with pytest.raises(SelectionError):
        entries_of_pairs([np.s_[0:2, 0:4]], [np.s_[0:4]], shape=(5, 4), drop_axes=(0,))


def test_places_of_unknown_extent_are_taken_from_the_chunk() -> None:
    entries = entries_of_pairs([np.s_[1:3, :]], [(slice(None), slice(2, None))], shape=(5, 4))
    assert out_extents(entries) == (2, 6)
    with pytest.raises(SelectionError):
        entries_of_pairs([np.s_[1:3]], [slice(-2, None)], shape=(5,))


def test_extents_ignore_empty_selections() -> None:
    entries = entries_of_pairs([np.s_[1:1, 0:4], np.s_[0:2, 0:4]], [np.s_[7:7, 0:4], np.s_[0:2, 0:4]], shape=(5, 4))
    assert out_extents(entries) == (2, 4)


def test_entries_outside_are_found() -> None:
    entries = Entries.boxes(
        chunk=np.array([0]), start=np.array([[3]]), count=np.array([[2]]), out_start=np.array([[0]])
    )
    check_entries(entries, (5,), (2,))
    with pytest.raises(SelectionError):
        check_entries(entries, (4,))
    with pytest.raises(SelectionError):
        check_entries(entries, (5,), (1,))


def axis_items(extent: int) -> st.SearchStrategy[Any]:
    index = st.integers(-extent, extent - 1)
    return st.one_of(
        st.slices(extent),
        index,
        st.lists(index, max_size=6).map(lambda values: np.array(values, int)),
        st.lists(st.booleans(), min_size=extent, max_size=extent).map(lambda values: np.array(values, bool)),
    )


@given(st.tuples(*map(axis_items, SHAPE)))
def test_any_orthogonal_selection_is_right(items: tuple[Any, ...]) -> None:
    expected = orthogonal(CHUNK, items)
    entries, out_shape = entries_of(items, SHAPE)
    assert out_shape == expected.shape
    np.testing.assert_array_equal(copied(entries, [CHUNK], out_shape), expected)


def test_an_array_without_axes_is_an_integer() -> None:
    entries, out_shape = entries_of((np.array(2), 1), (5, 4))
    assert out_shape == ()
    assert entries.start.tolist() == [[2, 1]]


def test_an_array_that_is_laid_out_along_its_axis_is_for_pairs_only() -> None:
    with pytest.raises(SelectionError, match="one-dimensional"):
        entries_of((np.array([[2], [1]]), slice(None)), (5, 4))


@pytest.mark.parametrize(
    ("selections", "out_selections", "shape"),
    [
        ([np.s_[0:2, 0:2]], [np.s_[0:2, 0:2, 0:2]], (5, 4)),
        ([(np.array([1]),), (np.array([[1]]),)], [slice(0, 1), slice(1, 2)], (5,)),
        ([(slice(0, 2),), (slice(0, 2),)], [(slice(0, 2),), (slice(0, 2), slice(0, 2))], (5,)),
    ],
)
def test_selections_of_different_forms_are_a_selection_error(
    selections: Any, out_selections: Any, shape: tuple[int, ...]
) -> None:
    with pytest.raises(SelectionError):
        entries_of_pairs(selections, out_selections, shape=shape)


def test_extents_follow_index_lists() -> None:
    entries = entries_of_pairs([(np.array([0, 4, 1]),)], [np.array([7, 2, 3])], shape=(5,))
    assert out_extents(entries) == (8,)
