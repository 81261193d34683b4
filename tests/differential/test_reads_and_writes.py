"""Random arrays under random reads and writes: ours, NumPy, and zarr's default pipeline say the same.

After every write the whole array is compared with NumPy; at the end each pipeline reads what the other one
stored, and the stored objects themselves are compared.
"""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, note

from tests.differential.dtypes import DTYPES, INTEGERS, DType
from tests.differential.effort import effort
from tests.differential.layouts import Layout, layouts
from tests.differential.mixtures import mixtures
from tests.differential.selections import selections
from tests.differential.twins import Twins, draw_value, twins
from tests.support.arrays import assert_same
from tests.support.pipelines import Pipeline

pytestmark = [
    pytest.mark.usefixtures("uneven_chunks", "stopped_clock"),
    pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec:UserWarning"),
    pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3 specification:UserWarning"),
    pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning"),
]


def _exercise(data: st.DataObject, pipeline: Pipeline, layout: Layout, *, swapped: bool = True) -> None:
    with twins(data, pipeline, layout) as pair:
        for _ in range(data.draw(st.integers(1, 5), label="steps")):
            selection = data.draw(selections(layout.shape, layout.chunks, unique=True))
            shape = np.shape(selection.read_numpy(pair.reference))
            # zarr cannot assign one object to a chunk of one element.
            if shape or layout.dtype.numpy.kind != "O":
                value = draw_value(data, pair, shape, swapped=swapped)
                note(f"{selection} = {value!r}")
                pair.write(selection, value)
            pair.read(data.draw(selections(layout.shape, layout.chunks)))
        pair.exchange()


@pytest.mark.usefixtures("thresholds")
@given(data=st.data())
@effort(120)
def test_random_layouts_agree_with_numpy_and_zarr(pipeline: Pipeline, data: st.DataObject) -> None:
    _exercise(data, pipeline, data.draw(layouts(data.draw(st.sampled_from(INTEGERS)))))


@given(data=st.data())
@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
@effort(12)
def test_every_dtype_agrees_with_numpy_and_zarr(pipeline: Pipeline, dtype: DType, data: st.DataObject) -> None:
    _exercise(data, pipeline, data.draw(layouts(dtype)))


@pytest.mark.usefixtures("thresholds")
@given(data=st.data())
@effort(120)
def test_mixtures_of_codecs_agree_with_numpy_and_zarr(pipeline: Pipeline, data: st.DataObject) -> None:
    # Under zarr's own pipelines numcodecs' filters take big-endian values for little-endian ones.
    _exercise(data, pipeline, data.draw(mixtures()), swapped=False)


def _change(data: st.DataObject, pair: Twins) -> None:
    shape = pair.arrays[0].shape
    way = data.draw(st.sampled_from(["resize", "append", "delete", "write", "write"]), label="way")
    if way == "resize":
        shape = tuple(data.draw(st.lists(st.integers(0, 9), min_size=len(shape), max_size=len(shape))))
        for array in pair.arrays:
            array.resize(shape)
    elif way == "append":
        axis = data.draw(st.integers(0, len(shape) - 1), label="axis")
        added = draw_value(data, pair, (*shape[:axis], data.draw(st.integers(0, 3)), *shape[axis + 1 :]))
        if np.ndim(added):
            for array in pair.arrays:
                array.append(added, axis=axis)
    elif way == "delete":
        pair.delete(data)
    else:
        selection = data.draw(selections(shape, pair.layout.chunks, unique=True))
        value = draw_value(data, pair, np.shape(selection.read_numpy(np.empty(shape, "u1"))))
        for array in pair.arrays:
            selection.write(array, value)
    assert_same(pair.arrays[0][...], pair.arrays[1][...])


@pytest.mark.usefixtures("thresholds")
@given(data=st.data())
@effort(80)
def test_arrays_that_shrink_and_grow_agree_with_zarr(pipeline: Pipeline, data: st.DataObject) -> None:
    """What a chunk holds beyond the array's edge is kept as zarr keeps it, and comes back when the array grows.

    Arrays are appended to as well, and chunks are deleted behind their backs.
    """
    layout = data.draw(layouts(data.draw(st.sampled_from(INTEGERS))).filter(lambda layout: layout.chunks))
    with twins(data, pipeline, layout) as pair:
        for _ in range(data.draw(st.integers(2, 6), label="steps")):
            _change(data, pair)
        pair.reference = pair.arrays[1][...]
        pair.exchange()
