"""Local stores whose files the backend reads and writes by itself, against those that Python reads and writes."""

from __future__ import annotations

import asyncio
import os
import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
import zarr.codecs as zc
from zarr.core.buffer import cpu
from zarr.storage import LocalStore, StorePath

from chunkwright import CodecError
from chunkwright_rust import RustBackend
from chunkwright_rust._file_io import LocalFiles
from chunkwright_zarr import CodecPipeline, explain
from chunkwright_zarr.few import FewBoxes
from tests.support.arrays import assert_same
from tests.zarr_python.specs import spec_of

pytestmark = pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec")

PATH = {"codec_pipeline.path": "chunkwright_zarr.CodecPipeline"}
NATIVE = {**PATH, "codec_pipeline.backend": "rust"}
PYTHON = {**PATH, "codec_pipeline.backend": "numcodecs"}

VALUES = np.random.default_rng(3).poisson(3, (30, 26)).astype("i4")
VALUES[8:16] = 0

LAYOUTS: dict[str, dict[str, Any]] = {
    "unsharded": {"chunks": (8, 6)},
    "no compressor": {"chunks": (8, 6), "compressors": None},
    "transposed": {"chunks": (8, 6), "filters": [zc.TransposeCodec(order=(1, 0))]},
    "big endian": {"chunks": (8, 6), "serializer": zc.BytesCodec(endian="big")},
    "sharded": {"chunks": (4, 3), "shards": (8, 12)},
    "index first": {
        "chunks": (8, 12),
        "compressors": None,
        "serializer": zc.ShardingCodec(chunk_shape=(4, 3), index_location="start"),
    },
    "nested": {
        "chunks": (16, 12),
        "compressors": None,
        "serializer": zc.ShardingCodec(chunk_shape=(8, 6), codecs=[zc.ShardingCodec(chunk_shape=(4, 3))]),
    },
    "compressed shards": {
        "chunks": (8, 12),
        "serializer": zc.ShardingCodec(chunk_shape=(4, 3), codecs=[zc.BytesCodec()]),
        "compressors": [zc.ZstdCodec()],
    },
    "v2": {"chunks": (8, 6), "zarr_format": 2},
    "v2, order F": {"chunks": (8, 6), "zarr_format": 2, "order": "F"},
}

LISTS = ([0, 29, 7], [3, 0, 25])


def orthogonal(*selection: Any) -> Callable[[Any], Any]:
    """Select by zarr's ``oindex``, and from NumPy's arrays axis by axis, the last one first."""

    def read(array: Any) -> Any:
        if hasattr(array, "oindex"):
            return array.oindex[selection]
        for axis in reversed(range(len(selection))):
            array = array[(slice(None),) * axis + (selection[axis],)]
        return array

    return read


READS: dict[str, Callable[[Any], Any]] = {
    "everything": lambda array: array[...],
    "a row": lambda array: array[17],
    "a column": lambda array: array[:, 5],
    "a box": lambda array: array[3:20, 2:9],
    "steps": lambda array: array[1:29:3, 1:26:2],
    "lists": lambda array: array.oindex[LISTS] if hasattr(array, "oindex") else array[np.ix_(*LISTS)],
    "points": lambda array: array.vindex[LISTS] if hasattr(array, "vindex") else array[LISTS],
    "ascending lists": orthogonal([0, 1, 5, 9, 10, 22, 29], [3, 4, 6, 25]),
    "one index of each": orthogonal([11], [7]),
    "even lists": orthogonal([2, 4, 6, 12, 14], list(range(1, 26, 3))),
    "repeated indices": orthogonal([3, 3, 8, 8, 9], [0, 0]),
    "a list and a slice": orthogonal([1, 2, 20], slice(2, 17)),
    "a slice and a list": orthogonal(slice(5, 28, 4), [0, 1, 12, 13]),
    "an index and a list": orthogonal(9, [0, 1, 5, 12, 13]),
    "a list and an index": orthogonal([0, 7, 8, 9, 23], 14),
    "a mask": orthogonal(np.arange(30) % 7 < 3, slice(None)),
    "a mask and a list": orthogonal(np.arange(30) % 7 < 3, [1, 2]),
    "points in order": lambda array: (
        array.vindex[[1, 2, 9], [3, 4, 5]] if hasattr(array, "vindex") else array[[1, 2, 9], [3, 4, 5]]
    ),
    "nothing": lambda array: array[5:5],
    "one element": lambda array: array[29, 25],
}


@pytest.fixture(params=list(LAYOUTS))
def layout(request: pytest.FixtureRequest) -> dict[str, Any]:
    return LAYOUTS[request.param]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the calls that the pipeline made of the backend's file IO."""
    made: list[str] = []

    def note(owner: type, name: str) -> None:
        method = getattr(owner, name)

        def noted(*args: Any, **options: Any) -> Any:
            made.append(name.strip("_"))
            return method(*args, **options)

        monkeypatch.setattr(owner, name, noted)

    for name in ("read_into", "rewrite", "load", "write"):
        note(LocalFiles, name)
    note(FewBoxes, "_files")
    return made


def create(path: Path, config: dict[str, Any], **layout: Any) -> Any:
    with zarr.config.set(config):
        return zarr.create_array(LocalStore(path), shape=VALUES.shape, dtype="i4", **layout)


def reopen(path: Path, config: dict[str, Any], mode: Any = "r") -> Any:
    with zarr.config.set(config):
        return zarr.open_array(LocalStore(path), mode=mode)


def stored_bytes(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.usefixtures("thresholds")
@pytest.mark.parametrize("read", READS.values(), ids=list(READS))
def test_files_are_read_as_numpy_reads(
    tmp_path: Path, layout: dict[str, Any], read: Callable[[Any], Any], calls: list[str]
) -> None:
    create(tmp_path, PYTHON, **layout)[...] = VALUES
    assert_same(np.asarray(read(reopen(tmp_path, NATIVE))), np.asarray(read(VALUES)))
    assert set(calls) <= {"read_into", "files"}


@pytest.mark.usefixtures("thresholds")
def test_files_are_written_as_python_writes_them(tmp_path: Path, layout: dict[str, Any], calls: list[str]) -> None:
    ours, theirs = create(tmp_path / "ours", NATIVE, **layout), create(tmp_path / "theirs", PYTHON, **layout)
    for array in (ours, theirs):
        array[...] = VALUES
        array[5:11, 4:20] = 7
        array[20] = 0
        array[16:24, :12] = 0
    assert set(calls) - {"files", "read_into"} <= {"rewrite", "load", "write"}
    assert "rewrite" in calls
    assert_same(reopen(tmp_path / "ours", PYTHON)[...], theirs[...])
    assert stored_bytes(tmp_path / "ours").keys() == stored_bytes(tmp_path / "theirs").keys()


@pytest.mark.parametrize(
    "name", ["ascending lists", "even lists", "repeated indices", "a list and a slice", "an index and a list"]
)
def test_lists_need_no_columns(tmp_path: Path, name: str, calls: list[str]) -> None:
    create(tmp_path, PYTHON, chunks=(8, 6))[...] = VALUES
    assert_same(np.asarray(READS[name](reopen(tmp_path, NATIVE))), np.asarray(READS[name](VALUES)))
    assert calls == ["files"]


def test_chunks_of_an_irregular_grid_that_are_alike_need_no_columns(tmp_path: Path, calls: list[str]) -> None:
    values = np.arange(70, dtype="i4")
    with zarr.config.set({"array.rectilinear_chunks": True, **NATIVE}):
        array = zarr.create_array(LocalStore(tmp_path), shape=(70,), chunks=[[10, 10, 20, 30]], dtype="i4")
        array[...] = values
        calls.clear()
        np.testing.assert_array_equal(array[5:15], values[5:15])
        assert calls == ["files"]
        np.testing.assert_array_equal(array[5:60], values[5:60])
        assert calls == ["files", "read_into", "read_into", "read_into"]


def test_missing_chunks_are_the_fill_value_or_an_error_as_configured(tmp_path: Path, calls: list[str]) -> None:
    array = create(tmp_path, NATIVE, chunks=(8, 6), fill_value=9)
    assert (array[...] == 9).all()
    array[0, 0] = 1
    strict = array.with_config({"read_missing_chunks": False})
    assert strict[0, 0] == 1
    with pytest.raises(zarr.errors.ChunkNotFoundError):
        strict[...]
    assert "files" in calls


def test_a_folder_in_the_place_of_a_chunk_is_missing(tmp_path: Path, calls: list[str]) -> None:
    array = create(tmp_path, NATIVE, chunks=(8, 6), fill_value=9)
    (tmp_path / "c" / "0" / "0").mkdir(parents=True)
    (tmp_path / "c" / "1").write_bytes(b"not a folder")
    assert (array[...] == 9).all()
    assert calls == ["files"]


def test_a_cut_off_chunk_is_an_error_that_names_its_key(tmp_path: Path, layout: dict[str, Any]) -> None:
    array = create(tmp_path, NATIVE, **layout)
    array[...] = VALUES + 1
    victim = next(file for file in sorted(tmp_path.rglob("*")) if file.is_file() and file.name[-1].isdigit())
    victim.write_bytes(victim.read_bytes()[:-1])
    key = str(victim.relative_to(tmp_path))
    with pytest.raises(CodecError) as caught:
        array[...]
    assert caught.value.key == key


def test_strings_take_their_way_through_python(tmp_path: Path) -> None:
    with zarr.config.set(NATIVE):
        array = zarr.create_array(LocalStore(tmp_path), shape=(5,), chunks=(2,), dtype=str)
    array[...] = np.array(["a", "", "word", "x", "y"], object)
    assert array[1:4].tolist() == ["", "word", "x"]


def test_only_the_first_backend_and_exactly_local_stores_count(tmp_path: Path, calls: list[str]) -> None:
    class Mine(LocalStore):
        pass

    create(tmp_path, PYTHON, chunks=(8, 6))[...] = VALUES
    assert_same(reopen(tmp_path, PYTHON)[...], VALUES)
    with zarr.config.set(NATIVE):
        array = zarr.open_array(Mine(tmp_path))
    assert_same(array[...], VALUES)
    array[0] = 1
    assert calls == []


def test_explain_says_who_reads_the_files(tmp_path: Path) -> None:
    assert "native files" in explain(create(tmp_path / "a", NATIVE, chunks=(8, 6))).read.reason
    assert "native files" not in explain(create(tmp_path / "b", PYTHON, chunks=(8, 6))).read.reason
    lzma = create(tmp_path / "c", NATIVE, chunks=(8, 6), compressors=[zarr.codecs.numcodecs.LZMA()])
    assert "native files" not in explain(lzma).read.reason
    lzma[...] = VALUES
    assert_same(lzma[...], VALUES)


def test_a_read_only_store_refuses_to_be_written_to_as_zarr_does(tmp_path: Path, calls: list[str]) -> None:
    create(tmp_path, NATIVE, chunks=(8, 6))[...] = VALUES
    before = stored_bytes(tmp_path)
    array = reopen(tmp_path, NATIVE)
    pipeline = array.async_array.codec_pipeline
    assert isinstance(pipeline, CodecPipeline)
    calls.clear()
    with pytest.raises(ValueError, match="read-only mode"):
        array[...] = 1
    assert calls == []
    assert stored_bytes(tmp_path) == before


@pytest.mark.parametrize("key", ["../secret", "c/../../secret", "/etc/passwd", "c/0\0"])
def test_hostile_keys_are_refused(tmp_path: Path, key: str) -> None:
    """zarr refuses most of them itself; what makes a path by other means meets our own check."""
    root = tmp_path / "store"
    pipeline = create(root, NATIVE, chunks=(8, 6)).async_array.codec_pipeline
    (tmp_path / "secret").write_bytes(b"kept")
    spec = spec_of((2,), "i4")
    at = StorePath(LocalStore(root), "c/0")
    at.path = key
    everything = (slice(0, 2),)
    out = cpu.NDBuffer.from_numpy_array(np.ones(2, "i4"))
    with pytest.raises(ValueError, match="leads out of the store"):
        asyncio.run(pipeline.read([(at, spec, everything, everything, True)], out))
    with pytest.raises(ValueError, match="leads out of the store"):
        asyncio.run(
            pipeline.write([(at, spec, everything, everything, True)], cpu.NDBuffer.from_numpy_array(np.ones(2, "i4")))
        )
    assert (tmp_path / "secret").read_bytes() == b"kept"


def test_reads_of_many_threads_agree(tmp_path: Path, layout: dict[str, Any]) -> None:
    create(tmp_path, NATIVE, **layout)[...] = VALUES
    array, right = reopen(tmp_path, NATIVE), []

    def read() -> None:
        right.extend(bool((array[...] == VALUES).all()) for _ in range(20))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 80


def test_a_cancelled_read_ends_before_the_cancellation_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chunkwright_rust._file_io.WINDOW_NBYTES", 1)
    monkeypatch.setattr("chunkwright_zarr.few.MAX_FEW_NBYTES", 0)
    create(tmp_path, NATIVE, chunks=(8, 6))[...] = VALUES
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    read_into = LocalFiles.read_into

    def held(*args: Any, stop: Any, **options: Any) -> Any:
        begun.set()
        go_on.wait()
        try:
            return read_into(*args, stop=stop, **options)
        finally:
            assert stop
            ended.set()

    monkeypatch.setattr(LocalFiles, "read_into", held)

    async def cancelled() -> None:
        with zarr.config.set(NATIVE):
            array = await zarr.api.asynchronous.open_array(store=LocalStore(tmp_path))
        task = asyncio.ensure_future(array.getitem(...))
        await asyncio.get_running_loop().run_in_executor(None, begun.wait)
        task.cancel()
        asyncio.get_running_loop().call_soon(go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()

    asyncio.run(cancelled())


def test_a_store_that_was_deleted_below_an_open_array_has_no_chunks(tmp_path: Path) -> None:
    array = create(tmp_path / "a", NATIVE, chunks=(8, 6), fill_value=9)
    array[...] = VALUES
    os.rename(tmp_path / "a", tmp_path / "b")
    assert (array[...] == 9).all()


def test_the_backend_offers_files() -> None:
    assert isinstance(RustBackend.file_io, LocalFiles)


def test_a_few_shards_are_read_with_fewer_descriptors(tmp_path: Path) -> None:
    with zarr.config.set(NATIVE):
        array = zarr.create_array(LocalStore(tmp_path), shape=(60, 8), chunks=(1, 4), shards=(1, 8), dtype="i4")
        array[...] = np.arange(480).reshape(60, 8)
    assert array[3, 3] == 27
    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [os.open(os.devnull, os.O_RDONLY) for _ in range(24)]
    for file in free:
        os.close(file)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(free), old[1]))
    try:
        for _ in range(2):
            np.testing.assert_array_equal(array[:, 3], np.arange(3, 480, 8))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, old)


def test_many_threads_that_read_shards_do_not_use_up_the_descriptors(tmp_path: Path) -> None:
    with zarr.config.set(NATIVE):
        array = zarr.create_array(LocalStore(tmp_path), shape=(60, 8), chunks=(1, 4), shards=(1, 8), dtype="i4")
        array[...] = np.arange(480).reshape(60, 8)
    assert array[3, 3] == 27
    wrong: list[object] = []

    def read(column: int) -> None:
        try:
            expected = np.arange(column, 480, 8)
            wrong.extend(column for _ in range(5) if (array[:, column] != expected).any())
        except OSError as error:
            wrong.append(error)

    threads = [threading.Thread(target=read, args=(number % 8,)) for number in range(24)]
    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    # As many as are open now, and for each thread what it takes at least.
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 100, old[1]))
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, old)
    assert wrong == []
