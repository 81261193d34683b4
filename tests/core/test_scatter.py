"""Copying entries, against a loop over single elements."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunkwright.entries import Entries, IndexList
from chunkwright.scatter import Copier, scatter

CHUNK = (4, 5, 3)


def pairs(entries, row):
    """Every (index in the chunk, index in the caller's array) of an entry, in order."""
    along = []
    for axis in range(entries.ndim):
        runs = entries.lists[axis]
        start, count, step = entries.start[row, axis], entries.count[row, axis], entries.step[row, axis]
        along.append(runs.run(row).tolist() if runs is not None else [int(start + step * i) for i in range(count)])
    together = [axis for axis in range(entries.ndim) if entries.lists[axis] is not None] if entries.points else []
    lead = together[:1]
    free = [axis for axis in range(entries.ndim) if axis not in together] + lead
    for positions in itertools.product(*[range(len(along[axis])) for axis in free]):
        position = dict(zip(free, positions, strict=True))
        position.update((axis, position[lead[0]]) for axis in together)
        chunk = tuple(along[axis][position[axis]] for axis in range(entries.ndim))
        place = []
        for out in range(entries.out_ndim):
            axis = entries.axes.index(out) if out in entries.axes else None
            number = 0 if axis is None else position[axis]
            runs = entries.out_lists[out]
            start, step = int(entries.out_start[row, out]), int(entries.out_step[row, out])
            place.append(int(runs.run(row)[number]) if runs is not None else start + step * number)
        yield chunk, tuple(place)


@st.composite
def axis_runs(draw, length, count, *, unique):
    values = st.integers(0, length - 1)
    return np.array(draw(st.lists(values, min_size=count, max_size=count, unique=unique)), np.int64)


@st.composite
def cases(draw, *, boxes=False):
    """An entry on a chunk of shape CHUNK, with its shape of the caller's array."""
    out_axes = list(range(draw(st.integers(1, 4))))
    points = draw(st.booleans())
    listed = [not boxes and draw(st.booleans()) for _ in CHUNK]
    axes = list(draw(st.permutations([*out_axes, -1, -1, -1])))[:3]
    common = draw(st.integers(0, 3))
    if points and any(listed):
        lead = listed.index(True)
        shared = axes[lead] if axes[lead] >= 0 else 0
        axes = [-1 if axis == shared else axis for axis in axes]
        axes = [shared if listed[i] else axis for i, axis in enumerate(axes)]
    start, count, step, lists = [], [], [], []
    for axis, length in enumerate(CHUNK):
        dropped = axes[axis] < 0
        first = draw(st.integers(0, length - 1))
        stride = draw(st.integers(1, 3))
        most = (length - 1 - first) // stride + 1
        number = 1 if dropped else draw(st.integers(0, most))
        if listed[axis]:
            number = common if points else number
            lists.append(IndexList.of([draw(axis_runs(length, number, unique=not points))]))
        else:
            lists.append(None)
        start.append(first), count.append(number), step.append(stride)
    out_start, out_step, out_lists, shape = [], [], [], []
    for out in out_axes:
        number = count[axes.index(out)] if out in axes else 1
        stride = draw(st.sampled_from([1, 2, -1, -2]))
        reach = abs(stride) * max(number - 1, 0)
        begin = draw(st.integers(0, 2)) + (reach if stride < 0 else 0)
        length = max(begin, begin + stride * max(number - 1, 0)) + draw(st.integers(1, 3))
        length = max(length, number)
        listed_here = not boxes and draw(st.booleans())
        out_lists.append(IndexList.of([draw(axis_runs(length, number, unique=True))]) if listed_here else None)
        out_start.append(begin), out_step.append(stride), shape.append(length)
    entries = Entries(
        chunk=np.zeros(1, np.int64),
        start=np.array([start]),
        count=np.array([count]),
        step=np.array([step]),
        out_start=np.array([out_start]),
        out_step=np.array([out_step]),
        axes=tuple(axes),
        lists=tuple(lists),
        out_lists=tuple(out_lists),
        points=points and any(listed),
    )
    return entries, tuple(shape)


@given(cases())
def test_scatter_puts_every_element_where_a_loop_puts_it(case):
    entries, shape = case
    chunk = np.arange(60).reshape(CHUNK)
    expected, found = np.full(shape, -1), np.full(shape, -1)
    for source, place in pairs(entries, 0):
        expected[place] = chunk[source]
    Copier(entries).scatter(0, chunk, found)
    np.testing.assert_array_equal(found, expected)


@given(cases())
def test_gather_takes_every_element_from_where_a_loop_takes_it(case):
    entries, shape = case
    source = np.arange(np.prod(shape)).reshape(shape)
    expected, found = np.full(CHUNK, -1), np.full(CHUNK, -1)
    for target, place in pairs(entries, 0):
        expected[target] = source[place]
    Copier(entries).gather(0, source, found)
    np.testing.assert_array_equal(found, expected)


@given(cases())
def test_fill_sets_the_same_places_as_scatter(case):
    entries, shape = case
    expected, found = np.zeros(shape, int), np.zeros(shape, int)
    Copier(entries).scatter(0, np.ones(CHUNK, int), expected)
    Copier(entries).fill(0, 1, found)
    np.testing.assert_array_equal(found, expected)


@given(cases(boxes=True))
def test_a_view_of_a_box_holds_what_gather_would_take(case):
    entries, shape = case
    source = np.arange(np.prod(shape)).reshape(shape)
    gathered = np.full(CHUNK, -1)
    copier = Copier(entries)
    copier.gather(0, source, gathered)
    viewed = copier.selected(0, source)
    assert viewed.base is not None
    box = tuple(
        slice(begin, begin + count * step, step)
        for begin, count, step in zip(entries.start[0], entries.count[0], entries.step[0], strict=True)
    )
    np.testing.assert_array_equal(viewed.reshape(entries.count[0]), gathered[box])


def test_a_chunk_of_no_axes_is_copied_as_an_array():
    zero = np.zeros((1, 0), np.int64)
    entries = Entries.boxes(chunk=np.zeros(1, np.int64), start=zero, count=zero, out_start=zero)
    out, chunk = np.empty((), object), np.empty((), object)
    chunk[()] = [1, 2]
    Copier(entries).scatter(0, chunk, out)
    assert out[()] == [1, 2]
    assert isinstance(Copier(entries).selected(0, out), np.ndarray)


def test_of_two_values_for_one_element_the_later_one_stays():
    entries = Entries(
        chunk=np.zeros(1, np.int64),
        start=np.zeros((1, 1), np.int64),
        count=np.array([[3]]),
        step=np.ones((1, 1), np.int64),
        out_start=np.zeros((1, 1), np.int64),
        out_step=np.ones((1, 1), np.int64),
        axes=(0,),
        lists=(IndexList.of([np.array([1, 1, 0])]),),
        out_lists=(None,),
    )
    chunk = np.zeros(2, int)
    Copier(entries).gather(0, np.array([5, 6, 7]), chunk)
    assert chunk.tolist() == [7, 6]


@pytest.mark.parametrize("missing", [True, False])
def test_scatter_of_many_chunks_fills_missing_ones(missing):
    out = np.zeros((2, 3), int)
    entries = Entries.whole((3,), 2)
    scatter([np.arange(3), None if missing else np.arange(3, 6)], entries, out, np.array(9))
    assert out.tolist() == [[0, 1, 2], [9, 9, 9] if missing else [3, 4, 5]]


def test_axes_that_are_rotated_on_reading_are_rotated_back_on_writing():
    """Three axes: the permutation and its inverse differ."""
    entries = Entries.boxes(
        chunk=np.zeros(1, np.int64),
        start=np.zeros((1, 3), np.int64),
        count=np.array([CHUNK]),
        out_start=np.zeros((1, 3), np.int64),
        axes=(1, 2, 0),
    )
    chunk, copier = np.arange(60).reshape(CHUNK), Copier(entries)
    out, again = np.zeros((3, 4, 5), int), np.zeros(CHUNK, int)
    copier.scatter(0, chunk, out)
    np.testing.assert_array_equal(out, chunk.transpose(2, 0, 1))
    copier.gather(0, out, again)
    np.testing.assert_array_equal(again, chunk)
