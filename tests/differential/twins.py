"""The same array under several pipelines and in NumPy, and what to assign to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import hypothesis.strategies as st
import numpy as np
from numpy.typing import NDArray
from zarr import open_array
from zarr.core.sync import sync
from zarr.storage import LocalStore, MemoryStore, WrapperStore

from tests.differential.layouts import Layout
from tests.differential.selections import Selection
from tests.support.arrays import assert_same
from tests.support.pipelines import DEFAULT, Pipeline


class Wrapped(WrapperStore[MemoryStore]):
    """A store that is driven asynchronously, because it is no longer exactly a memory store."""


KINDS: dict[str, Callable[[Path], Any]] = {
    "memory": lambda folder: MemoryStore(),
    "wrapped": lambda folder: Wrapped(MemoryStore()),
    "local": LocalStore,
}


def _objects(store: Any) -> dict[str, bytes]:
    """What a store holds, by key."""
    if isinstance(store, LocalStore):
        files = (file for file in store.root.rglob("*") if file.is_file())
        return {str(file.relative_to(store.root)): file.read_bytes() for file in files}
    inner = store._store if isinstance(store, WrapperStore) else store
    return {key: value.to_bytes() for key, value in inner._store_dict.items()}


@attrs.define(eq=False)
class Twins:
    """The same array three times: under the pipeline that is tested, under zarr's default one, and in NumPy."""

    layout: Layout
    fill_value: Any
    pipelines: tuple[Pipeline, Pipeline]
    stores: tuple[Any, Any]
    arrays: tuple[Any, Any]
    reference: NDArray[Any]

    def read(self, selection: Selection) -> None:
        """Compare what a selection gives."""
        expected = selection.read_numpy(self.reference)
        for array, chosen in zip(self.arrays, self.pipelines, strict=True):
            assert_same(selection.read(array), expected, f"{selection} under {chosen}")

    def write(self, selection: Selection, value: Any) -> None:
        """Assign to all three, and compare all of the arrays."""
        selection.write_numpy(self.reference, value)
        for array, chosen in zip(self.arrays, self.pipelines, strict=True):
            selection.write(array, value)
            assert_same(array[...], self.reference, f"{selection} under {chosen}")

    def delete(self, data: st.DataObject) -> None:
        """Delete a chunk of both arrays in their stores, if there is any and stores can do that."""
        chunks = sorted(
            key for key in _objects(self.stores[0]) if not key.rpartition("/")[2].startswith((".z", "zarr"))
        )
        if chunks and all(store.supports_deletes for store in self.stores):
            key = data.draw(st.sampled_from(chunks), label="deleted chunk")
            for store in self.stores:
                sync(store.delete(key))

    def exchange(self) -> None:
        """Each pipeline reads what the other one stored, and both stored the same."""
        for chosen, store in zip(self.pipelines, reversed(self.stores), strict=True):
            with chosen.use():
                assert_same(open_array(store, mode="r")[...], self.reference, f"stored by the other, read by {chosen}")
        ours, zarrs_own = map(_objects, self.stores)
        assert sorted(ours) == sorted(zarrs_own)
        # The Rust backend has compressors of its own: same content, other bytes.
        same_library = self.pipelines[0].backend != "rust" or not self.layout.is_compressed
        if same_library:
            assert [key for key in ours if ours[key] != zarrs_own[key]] == []


@contextmanager
def twins(data: st.DataObject, pipeline: Pipeline, layout: Layout) -> Iterator[Twins]:
    """Create the arrays in a store of a random kind."""
    fill_value = layout.dtype.scalar(np.random.default_rng(data.draw(st.integers(0, 99), label="fill value")))
    kind = data.draw(st.sampled_from(list(KINDS)), label="store")
    pipelines = (pipeline, Pipeline(DEFAULT))
    with TemporaryDirectory() as folder:
        ours, zarrs_own = (KINDS[kind](Path(folder) / name) for name in ("ours", "zarr"))
        with pipelines[0].use():
            first = layout.create(ours, fill_value)
        with pipelines[1].use():
            second = layout.create(zarrs_own, fill_value)
        reference = np.full(layout.shape, fill_value, layout.dtype.numpy)
        yield Twins(layout, fill_value, pipelines, (ours, zarrs_own), (first, second), reference)


def draw_value(data: st.DataObject, pair: Twins, shape: tuple[int, ...], *, swapped: bool = True) -> Any:
    """Something to assign: an array, also a strided one or one of the other byte order, a scalar, the fill value."""
    dtype = pair.layout.dtype
    random = np.random.default_rng(data.draw(st.integers(0, 2**32), label="seed"))
    kinds = ["array", "strided", "scalar", "fill", *(["swapped"] if swapped else [])]
    kind = data.draw(st.sampled_from(kinds), label="value")
    if kind == "fill":
        return pair.fill_value
    if kind == "scalar":
        return dtype.scalar(random)
    if kind == "strided":
        larger = dtype.values(random, tuple(2 * extent for extent in reversed(shape)))
        return larger.T[tuple(slice(None, None, 2) for _ in shape)]
    values = dtype.values(random, shape)
    if kind == "swapped" and values.dtype.kind in "iufcmMU":
        return values.astype(values.dtype.newbyteorder())
    return values
