"""Random arrays under random reads and writes: ours, NumPy, and zarr's default pipeline say the same.

After every write the whole array is compared with NumPy; at the end each pipeline reads what the other one
stored, and the stored objects themselves are compared.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, note
from zarr import open_array
from zarr.storage import MemoryStore, WrapperStore

from tests.differential.dtypes import DTYPES, INTEGERS, DType
from tests.differential.effort import effort
from tests.differential.layouts import Layout, layouts
from tests.differential.mixtures import mixtures
from tests.differential.selections import selections
from tests.support.arrays import assert_same
from tests.support.pipelines import DEFAULT, Pipeline

pytestmark = [
    pytest.mark.usefixtures("uneven_chunks", "stopped_clock"),
    pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec:UserWarning"),
    pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning"),
]


class Wrapped(WrapperStore[MemoryStore]):
    """A store that is driven asynchronously, because it is no longer exactly a memory store."""


class Twins:
    """The same array three times: under the pipeline that is tested, under zarr's default one, and in NumPy."""

    def __init__(self, pipeline: Pipeline, layout: Layout, fill_value: Any, *, wrapped: bool) -> None:
        self.layout = layout
        self.pipelines = (pipeline, Pipeline(DEFAULT))
        self.stores = (MemoryStore(), MemoryStore())
        self.reference = np.full(layout.shape, fill_value, layout.dtype.numpy)
        self.arrays = []
        for chosen, store in zip(self.pipelines, self.stores, strict=True):
            with chosen.use():
                self.arrays.append(layout.create(Wrapped(store) if wrapped else store, fill_value))

    def read(self, selection: Any) -> None:
        expected = selection.read_numpy(self.reference)
        for array, chosen in zip(self.arrays, self.pipelines, strict=True):
            assert_same(selection.read(array), expected, f"{selection} under {chosen}")

    def write(self, selection: Any, value: Any) -> None:
        selection.write_numpy(self.reference, value)
        for array, chosen in zip(self.arrays, self.pipelines, strict=True):
            selection.write(array, value)
            assert_same(array[...], self.reference, f"{selection} under {chosen}")

    def exchange(self) -> None:
        """Each pipeline reads what the other one stored, and both stored the same."""
        for chosen, store in zip(self.pipelines, reversed(self.stores), strict=True):
            with chosen.use():
                assert_same(open_array(store, mode="r")[...], self.reference, "stored by the other pipeline")
        ours, zarrs_own = ({key: value.to_bytes() for key, value in store._store_dict.items()} for store in self.stores)
        assert sorted(ours) == sorted(zarrs_own)
        if self.layout.stores_what_zarr_stores:
            assert [key for key in ours if ours[key] != zarrs_own[key]] == []


def _value(data: st.DataObject, layout: Layout, shape: tuple[int, ...], fill_value: Any) -> Any:
    """Something to assign: an array, also a strided one or one of the other byte order, a scalar, the fill value."""
    random = np.random.default_rng(data.draw(st.integers(0, 2**32), label="seed"))
    kind = data.draw(st.sampled_from(["array", "strided", "swapped", "scalar", "fill"]), label="value")
    if kind == "fill":
        return fill_value
    if kind == "scalar":
        return layout.dtype.scalar(random)
    if kind == "strided":
        return layout.dtype.values(random, tuple(2 * extent for extent in reversed(shape))).T[
            tuple(slice(None, None, 2) for _ in shape)
        ]
    values = layout.dtype.values(random, shape)
    if kind == "swapped" and values.dtype.kind in "iufcmMU":
        return values.astype(values.dtype.newbyteorder())
    return values


def _exercise(data: st.DataObject, pipeline: Pipeline, layout: Layout) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 2**32), label="seed"))
    fill_value = layout.dtype.scalar(random)
    twins = Twins(pipeline, layout, fill_value, wrapped=data.draw(st.booleans(), label="wrapped"))
    for _ in range(data.draw(st.integers(1, 5), label="steps")):
        selection = data.draw(selections(layout.shape, layout.chunks, unique=True))
        shape = np.shape(selection.read_numpy(twins.reference))
        value = _value(data, layout, shape, fill_value)
        note(f"{selection} = {value!r}")
        twins.write(selection, value)
        twins.read(data.draw(selections(layout.shape, layout.chunks)))
    twins.exchange()


@given(data=st.data())
@effort(150)
def test_random_layouts_agree_with_numpy_and_zarr(pipeline: Pipeline, data: st.DataObject) -> None:
    _exercise(data, pipeline, data.draw(layouts(data.draw(st.sampled_from(INTEGERS)))))


@given(data=st.data())
@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
@effort(12)
def test_every_dtype_agrees_with_numpy_and_zarr(pipeline: Pipeline, dtype: DType, data: st.DataObject) -> None:
    _exercise(data, pipeline, data.draw(layouts(dtype)))


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3 specification:UserWarning")
@given(data=st.data())
@effort(150)
def test_mixtures_of_codecs_agree_with_numpy_and_zarr(pipeline: Pipeline, data: st.DataObject) -> None:
    _exercise(data, pipeline, data.draw(mixtures()))


@given(data=st.data())
@effort(100)
def test_arrays_that_shrink_and_grow_agree_with_zarr(pipeline: Pipeline, data: st.DataObject) -> None:
    """What a chunk holds beyond the array's edge is kept as zarr keeps it, and comes back when the array grows."""
    layout = data.draw(layouts(data.draw(st.sampled_from(INTEGERS))).filter(lambda layout: layout.chunks))
    fill_value = layout.dtype.scalar(np.random.default_rng(data.draw(st.integers(0, 99))))
    twins = Twins(pipeline, layout, fill_value, wrapped=data.draw(st.booleans(), label="wrapped"))
    shape = layout.shape
    for _ in range(data.draw(st.integers(2, 6), label="steps")):
        if data.draw(st.booleans(), label="resize"):
            shape = tuple(data.draw(st.lists(st.integers(0, 9), min_size=len(shape), max_size=len(shape))))
            for array in twins.arrays:
                array.resize(shape)
        else:
            selection = data.draw(selections(shape, layout.chunks, unique=True))
            value = _value(data, layout, np.shape(selection.read_numpy(np.empty(shape, "u1"))), fill_value)
            for array in twins.arrays:
                selection.write(array, value)
        assert_same(twins.arrays[0][...], twins.arrays[1][...])
    twins.reference = twins.arrays[1][...]
    twins.exchange()
