"""Many chunks that are files or objects in memory, read by the threads that decode them, without a plan."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
import zarr.codecs as zc
from zarr.core.buffer import cpu
from zarr.core.sync import sync
from zarr.storage import LocalStore, MemoryStore

from chunkwright import CodecError
from chunkwright_store import Stop
from chunkwright_store.files import WholeFiles
from chunkwright_zarr import reads
from tests.support.arrays import assert_same
from tests.zarr_python.ours import OURS

BACKENDS = ("numcodecs", "rust")

LAYOUTS: dict[str, dict[str, Any]] = {
    "no compressor": {"compressors": None},
    "compressed": {"compressors": [zc.BloscCodec()]},
    "transposed": {"filters": [zc.TransposeCodec(order=(1, 0))]},
    "big endian": {"serializer": zc.BytesCodec(endian="big")},
    "v2": {"zarr_format": 2},
}

LISTS = ([0, 69, 7], [3, 0, 25])

READS: dict[str, Callable[[Any], Any]] = {
    "everything": lambda array: array[...],
    "a row": lambda array: array[17],
    "steps": lambda array: array[1:69:3, 1:66:2],
    "lists": lambda array: array.oindex[LISTS] if hasattr(array, "oindex") else array[np.ix_(*LISTS)],
    "points": lambda array: array.vindex[LISTS] if hasattr(array, "vindex") else array[LISTS],
}

VALUES = np.random.default_rng(3).poisson(3, (70, 66)).astype("i4")
VALUES[8:16] = 9


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even the small chunks of these tests are plain, and windows hold a few of them."""
    monkeypatch.setattr(reads, "PLAIN_NBYTES", 0)
    monkeypatch.setattr(reads, "PLANNED_NBYTES", 7 * 8 * 6 * 4)
    monkeypatch.setattr("chunkwright_numcodecs.backend._SMALLEST_BATCH", 1)
    monkeypatch.setattr("chunkwright_numcodecs.backend._SMALLEST_CHUNK", 1)


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return LocalStore(tmp_path) if request.param == "local" else MemoryStore()


def create(store: Any, backend: str, **options: Any) -> Any:
    with zarr.config.set({**OURS, "codec_pipeline.backend": backend}):
        return zarr.create_array(store, shape=VALUES.shape, chunks=(8, 6), dtype="i4", fill_value=9, **options)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_everything_is_as_numpy_has_it(backend: str, layout: dict[str, Any], read: Any, store: Any) -> None:
    array = create(store, backend, **layout)
    array[...] = VALUES
    assert_same(read(array), read(VALUES))


def test_files_are_read_a_few_at_a_time_and_by_several_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meeting, loads = threading.Barrier(2, timeout=20), list[int]()
    load = WholeFiles.load

    def met(self: WholeFiles, source: Any, offset: Any, length: Any) -> Any:
        if not loads:
            meeting.wait()
        loads.append(len(source))
        return load(self, source, offset, length)

    array = create(LocalStore(tmp_path), "numcodecs", compressors=None)
    array[...] = VALUES
    monkeypatch.setattr("chunkwright_numcodecs.pool.available_cpus", lambda: 2)
    monkeypatch.setattr("chunkwright_numcodecs.pool._shared._pool", None)
    monkeypatch.setattr(WholeFiles, "load", met)
    assert_same(array[...], VALUES)
    assert sum(loads) == 99
    assert max(loads) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_names_the_chunk_in_whichever_window_it_is(backend: str, store: Any) -> None:
    array = create(store, backend, compressors=None)
    array[...] = VALUES
    sync(store.set("c/7/9", cpu.Buffer.from_bytes(b"short")))
    with pytest.raises(CodecError, match="c/7/9"):
        array[...]


def test_chunks_that_are_not_there_are_told(store: Any) -> None:
    array = create(store, "numcodecs", compressors=None)
    array[...] = VALUES
    with zarr.config.set({**OURS, "array.read_missing_chunks": False}):
        strict = zarr.open_array(store, mode="r")
        with pytest.raises(zarr.errors.ChunkNotFoundError):
            strict[...]
        assert_same(strict[16:], VALUES[16:])


def test_a_read_that_is_told_to_stop_ends_between_windows(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    array = create(store, "numcodecs", compressors=None)
    array[...] = VALUES

    class Impatient(Stop):
        """Says stop when it is looked at for the third time."""

        looks = 0

        def __bool__(self) -> bool:
            Impatient.looks += 1
            return Impatient.looks > 2

    monkeypatch.setattr(reads, "Stop", Impatient)
    found = np.full(VALUES.shape, -1, "i4")
    array.get_basic_selection(..., out=cpu.NDBuffer.from_numpy_array(found))
    assert Impatient.looks == 3
    # Two windows of seven chunks were read, of eleven chunks a row.
    assert_same(found[:8], VALUES[:8])
    assert_same(found[8:16, :18], VALUES[8:16, :18])
    assert (found[8:16, 18:] == -1).all()
    assert (found[16:] == -1).all()
