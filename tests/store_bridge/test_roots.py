"""Files behind obstore and fsspec are read as files, when it is certain that they are some."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import obstore.store
import pytest
import zarr
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from zarr.storage import FsspecStore, LocalStore, LoggingStore, MemoryStore, ObjectStore, StorePath, WrapperStore

import chunkwright_zarr
from chunkwright import CodecError
from chunkwright_store.roots import plain_root
from chunkwright_store.zarr import classify
from tests.support.arrays import assert_same

type Make = Callable[[Path], Any]


class OtherFiles(LocalFileSystem):
    """May read in another way."""


class OtherStore(ObjectStore[Any]):
    """May read in another way."""


def fsspec_store(files: Any, path: Any, **options: Any) -> FsspecStore:
    return FsspecStore(AsyncFileSystemWrapper(files, asynchronous=True), path=str(path), **options)


def with_own_reader(path: Path) -> FsspecStore:
    files = LocalFileSystem(skip_instance_cache=True)
    files.cat_file = lambda *_args, **_options: b"mine"
    return fsspec_store(files, path)


def with_own_wrapper(path: Path) -> FsspecStore:
    store = fsspec_store(LocalFileSystem(), path)
    store.fs._cat_file = lambda *_args, **_options: b"mine"
    return store


def relative(path: Path) -> ObjectStore[Any]:
    with contextlib.chdir(path):
        return ObjectStore(obstore.store.LocalStore("."))


def with_own_get(path: Path) -> ObjectStore[Any]:
    store = ObjectStore(obstore.store.LocalStore(path))
    store.get = lambda *args, **options: ObjectStore.get(store, *args, **options)  # type: ignore[method-assign]
    return store


PLAIN: dict[str, Make] = {
    "obstore": lambda path: ObjectStore(obstore.store.LocalStore(path)),
    "fsspec": lambda path: fsspec_store(LocalFileSystem(auto_mkdir=True), path),
    "fsspec, path with a slash": lambda path: fsspec_store(LocalFileSystem(auto_mkdir=True), f"{path}/"),
    "fsspec, by URL": lambda path: FsspecStore.from_url(f"file://{path}", {"auto_mkdir": True}),
}

OTHERS: dict[str, Make] = {
    "obstore in memory": lambda path: ObjectStore(obstore.store.MemoryStore()),
    "obstore without a folder": lambda path: ObjectStore(obstore.store.LocalStore()),
    "a class of obstore store": lambda path: OtherStore(obstore.store.LocalStore(path)),
    "an object with its own get": with_own_get,
    "fsspec in memory": lambda path: fsspec_store(MemoryFileSystem(), "/a"),
    "fsspec below a folder": lambda path: fsspec_store(DirFileSystem(str(path), LocalFileSystem()), "/"),
    "a wrapper with its own reader": with_own_wrapper,
    "a relative folder of obstore's": relative,
    "fsspec at the root": lambda path: fsspec_store(LocalFileSystem(), "/"),
    "fsspec nowhere": lambda path: fsspec_store(LocalFileSystem(), ""),
    "a class of file system": lambda path: fsspec_store(OtherFiles(), path),
    "a file system with its own reader": with_own_reader,
    "other exceptions": lambda path: fsspec_store(LocalFileSystem(), path, allowed_exceptions=(FileNotFoundError,)),
    "a wrapper": lambda path: WrapperStore(ObjectStore(obstore.store.LocalStore(path))),
    "a logger": lambda path: LoggingStore(ObjectStore(obstore.store.LocalStore(path))),
    "memory": lambda path: MemoryStore(),
}


@pytest.mark.parametrize("make", PLAIN.values(), ids=list(PLAIN))
def test_files_are_known_by_exact_class(make: Make, tmp_path: Path) -> None:
    store = make(tmp_path)
    root = plain_root(store)
    assert root is not None
    assert os.path.samefile(root, tmp_path)
    getters = [StorePath(store, "c/0")]
    assert (classify(getters, reading=True), classify(getters)) == ("local", "async")


@pytest.mark.parametrize("make", OTHERS.values(), ids=list(OTHERS))
def test_everything_else_decides_itself_how_it_is_read(make: Make, tmp_path: Path) -> None:
    store = make(tmp_path)
    reading = classify([StorePath(store, "c/0")], reading=True)
    assert reading == ("memory" if type(store) is MemoryStore else "async")


@pytest.mark.parametrize("backend", ["rust", "numcodecs"])
@pytest.mark.parametrize("layout", [{"chunks": (4, 5)}, {"chunks": (2, 5), "shards": (8, 10)}], ids=["plain", "shards"])
@pytest.mark.parametrize("make", PLAIN.values(), ids=list(PLAIN))
def test_what_is_written_through_a_library_is_read_from_its_files(
    make: Make, layout: dict[str, Any], backend: str, tmp_path: Path
) -> None:
    values = np.arange(16 * 20).reshape(16, 20).astype("i4")
    with chunkwright_zarr.use(backend=backend):
        array = zarr.create_array(make(tmp_path), shape=values.shape, dtype="i4", fill_value=-1, **layout)
        array[2:14] = values[2:14]
        values[:2], values[14:] = -1, -1
        before = chunkwright_zarr.counters()
        assert_same(np.asarray(array[...]), values)
        assert_same(np.asarray(array[3:9, 4]), values[3:9, 4])
        assert_same(np.asarray(array.oindex[[1, 5, 6], [0, 2, 19]]), values[np.ix_([1, 5, 6], [0, 2, 19])])
        assert_same(np.asarray(array.vindex[[5, 1], [0, 19]]), values[[5, 1], [0, 19]])
        crops = chunkwright_zarr.read_boxes(array, np.array([[1, 2], [9, 9]]), (3, 4))
        assert_same(crops, np.stack([values[1:4, 2:6], values[9:12, 9:13]]))
        after = chunkwright_zarr.counters()
        assert after.get("read.async", 0) == before.get("read.async", 0)
        assert chunkwright_zarr.explain(array).read.path == "sync"
        assert chunkwright_zarr.explain(array).write.path == "async"


@pytest.mark.parametrize("backend", ["rust", "numcodecs"])
@pytest.mark.parametrize("make", PLAIN.values(), ids=list(PLAIN))
def test_a_damaged_file_is_an_error_that_names_its_key(make: Make, backend: str, tmp_path: Path) -> None:
    with chunkwright_zarr.use(backend=backend):
        array = zarr.create_array(make(tmp_path), name="a", shape=(8,), chunks=(4,), dtype="i4")
        array[:] = np.arange(8)
        (tmp_path / "a/c/1").write_bytes(b"not a frame")
        assert array[:4].tolist() == [0, 1, 2, 3]
        with pytest.raises(CodecError) as caught:
            array[2:6]
    assert caught.value.key == "a/c/1"


@pytest.mark.parametrize("make", PLAIN.values(), ids=list(PLAIN))
def test_a_shard_that_is_replaced_is_read_anew(make: Make, tmp_path: Path) -> None:
    with chunkwright_zarr.use(backend="rust"):
        array = zarr.create_array(make(tmp_path), shape=(1024,), chunks=(2,), shards=(1024,), dtype="i4")
        for value in (3, 5):
            array[:] = value
            zarr.open_array(LocalStore(tmp_path))[7] = value + 1
            assert array[5:9].tolist() == [value, value, value + 1, value]
