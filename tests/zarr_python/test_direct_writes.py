"""What DirectArray writes is what zarr-python's arrays write, without zarr-python's event loop where it says so."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from zarr.storage import LocalStore, MemoryStore, WrapperStore

from chunkwright import CorruptChunkError
from chunkwright_zarr import DirectArray
from tests.support.arrays import assert_same
from tests.zarr_python.direct import BASIC, DATA, LAYOUTS, RUST, created, reads


def contents(store: Any) -> dict[str, bytes]:
    if isinstance(store, LocalStore):
        files = [path for path in store.root.rglob("*") if path.is_file()]
        return {str(path.relative_to(store.root)): path.read_bytes() for path in files}
    return {key: value.to_bytes() for key, value in store._store_dict.items()}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
@pytest.mark.parametrize("backend", ["rust", "numcodecs"])
@pytest.mark.parametrize("in_memory", [True, False], ids=["memory", "files"])
def test_arrays_are_written_without_the_loop(
    tmp_path: Path,
    layout: dict[str, Any],
    in_memory: bool,
    backend: str,
    no_loop: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stores = [MemoryStore() if in_memory else LocalStore(tmp_path / name) for name in ("zarrs", "ours")]
    config = {**RUST, "codec_pipeline.backend": backend}
    array, other = (created(store, config=config, **layout) for store in stores)
    direct, wanted = DirectArray(other), DATA.copy()
    writes: list[tuple[Any, Any]] = []
    for number, selection in enumerate(BASIC):
        value = np.array(-DATA[selection] - number)
        if value.ndim:
            writes.append((selection, value))
            array[selection] = wanted[selection] = value
    no_loop()
    for number, (selection, value) in enumerate(writes):
        if number % 2:
            direct[selection] = value
        else:
            direct.set_basic_selection(selection, value)
    assert contents(stores[0]) == contents(stores[1])
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        monkeypatch.undo()
        assert_same(zarr.open_array(stores[1], path="a/b")[...], wanted)


def outcome(array: Any, write: Callable[[Any], None]) -> Any:
    """What an array holds after a write, or what that raised."""
    try:
        write(array)
    except Exception as error:
        return type(error), str(error)
    return array[...].tolist()


VALUES = [
    7,
    np.int16(7),
    [[7]],
    np.full((1, 3), 7, "i4"),
    np.full((15, 3), 7.9),
    np.full((15, 3), 7, ">i4"),
    np.array(7),
    np.zeros((2, 15, 3), "i4"),
    np.zeros((15, 3, 1), "i4"),
    "seven",
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_what_is_converted_broadcast_or_refused_is_zarrs(value: Any) -> None:
    def basic(one: Any) -> None:
        one.set_basic_selection(slice(9, 10), value)

    def item(one: Any) -> None:
        one[4] = value

    for write in (basic, item):
        array, other = (created(MemoryStore(), chunks=(8, 6, 2)) for _ in range(2))
        assert outcome(DirectArray(other), write) == outcome(array, write)


def test_lists_masks_and_others_are_zarrs() -> None:
    array, other = (created(MemoryStore(), chunks=(8, 6, 2)) for _ in range(2))
    for one in (array, DirectArray(other)):
        one.oindex[[3, 1], :2] = np.zeros((2, 2, 3), "i4")
        one.vindex[[3, 19], [4, 5], [0, 2]] = np.array([5, 6], "i4")
        one[DATA > 800] = 1
        one[5, [1, 2]] = np.array([[7, 7, 7], [8, 8, 8]], "i4")
        one.set_basic_selection((2, 2, 2), np.array(9, "i4"), prototype=None)
    assert_same(other[...], array[...])


def test_empty_chunks_are_deleted_or_kept() -> None:
    for keep in (False, True):
        store = MemoryStore()
        direct = DirectArray(created(store, chunks=(8, 6, 2)))
        direct.with_config({"write_empty_chunks": keep})[:8] = np.zeros((8, 15, 3), "i4")
        assert ("a/b/c/0/0/0" in contents(store)) is keep
        assert "a/b/c/1/0/0" in contents(store)


def test_other_stores_are_written_by_zarr() -> None:
    store = MemoryStore()
    direct = DirectArray(created(WrapperStore(store), chunks=(8, 6, 2)))
    direct[3:9] = -DATA[3:9]
    assert_same(direct[3:9], -DATA[3:9])


def test_a_store_that_is_read_only_is_not_written_to(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    created(store, chunks=(8, 6, 2))
    before = contents(store)
    for mode in (store.with_read_only(True), MemoryStore(created(MemoryStore()).store._store_dict, read_only=True)):
        direct = DirectArray(zarr.open_array(mode, path="a/b", mode="r"))
        with pytest.raises(ValueError, match="read-only"):
            direct[3:9] = -DATA[3:9]
    assert contents(store) == before


def test_a_damaged_chunk_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    direct = DirectArray(created(LocalStore(tmp_path), chunks=(8, 6, 2)))
    (tmp_path / "a/b/c/1/0/0").write_bytes(b"no zstd")
    with pytest.raises(CorruptChunkError) as caught:
        direct[9, 0:6, 0:2] = DATA[9, 0:6, 0:2]
    assert caught.value.key == "a/b/c/1/0/0"
    assert (tmp_path / "a/b/c/1/0/0").read_bytes() == b"no zstd"
    direct[8:16, :6, :2] = DATA[8:16, :6, :2]  # complete chunks need nothing of what was there
    assert_same(direct[...], DATA)


def test_a_shard_that_was_clipped_keeps_what_lies_beyond_its_end() -> None:
    """zarr-python calls a chunk complete that is written as far as the array goes; its old values may come back."""
    outcomes = []
    for make in (lambda array: array, DirectArray):
        one = make(created(MemoryStore(), chunks=(2, 3, 1), shards=(8, 6, 2)))
        one.resize((10, 15, 3))
        one[8:10] = np.full((2, 15, 3), 5, "i4")
        one.resize((20, 15, 3))
        outcomes.append(np.asarray(one[...]))
    assert_same(outcomes[1], outcomes[0])


@pytest.mark.parametrize("in_memory", [True, False], ids=["memory", "files"])
def test_threads_that_write_one_shard_lose_nothing(tmp_path: Path, in_memory: bool) -> None:
    direct = DirectArray(
        created(MemoryStore() if in_memory else LocalStore(tmp_path), DATA * 0, chunks=(2, 3, 1), shards=(20, 15, 3))
    )

    def write(row: int) -> None:
        direct[row] = DATA[row]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(20)))
    assert_same(direct[...], DATA)


def test_a_running_loop_is_not_held_up() -> None:
    direct = DirectArray(created(MemoryStore(), chunks=(8, 6, 2)))

    async def write() -> None:
        direct[3:9] = -DATA[3:9]

    asyncio.run(write())
    assert_same(direct[3:9], -DATA[3:9])


@settings(deadline=None, max_examples=200)
@given(reads())
def test_any_write_is_what_numpy_writes(case: tuple[tuple[int, ...], dict[str, Any], tuple[Any, ...]]) -> None:
    shape, layout, selection = case
    values = np.arange(np.prod(shape), dtype="u2").reshape(shape)
    direct = DirectArray(created(MemoryStore(), values, **layout))
    items = tuple(
        item if isinstance(item, int | slice) else slice(int(item[0]) % extent, None)
        for item, extent in zip(selection, shape, strict=True)
    )
    value = np.array(values[items] + 1000)
    direct[items] = value
    values[items] = value
    assert_same(direct[...], values)


def test_an_array_longer_than_int64_is_written_by_zarr() -> None:
    with zarr.config.set(RUST):
        direct = DirectArray(zarr.create_array({}, shape=(1 << 64,), chunks=(1 << 10,), dtype="i4"))
    direct[5:7] = np.array([8, 9], "i4")
    assert direct[4:8].tolist() == [0, 8, 9, 0]


INTERRUPTED = """
import signal, sys, numpy, zarr
from chunkwright_zarr import DirectArray

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
settings = {"codec_pipeline.path": "chunkwright_zarr.CodecPipeline", "codec_pipeline.backend": sys.argv[2]}
with zarr.config.set(settings):
    direct = DirectArray(zarr.create_array(sys.argv[1], shape=(64, 64, 64), chunks=(16, 16, 16), dtype="i4"))
direct[...] = values = numpy.zeros((64, 64, 64), "i4")
interrupted = 0
for number in range(40):
    signal.setitimer(signal.ITIMER_REAL, 0.0005 * (1 + number % 20))
    try:
        direct[:, 3:] = values[:, 3:] + number
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupted += 1
signal.setitimer(signal.ITIMER_REAL, 0)
direct[...] = values + 7
assert (direct[...] == 7).all()
print(interrupted)
"""


@pytest.mark.parametrize("backend", ["rust", "numcodecs"])
def test_an_interrupted_write_leaves_no_files_and_no_locks_behind(tmp_path: Path, backend: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path / "a"), backend], check=True, capture_output=True, timeout=100
    )
    assert int(ran.stdout) > 0
    assert not list(tmp_path.rglob(".*"))
