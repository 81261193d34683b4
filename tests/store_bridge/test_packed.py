"""Shards in zip archives are read where they lie in the file, when it is certain that they lie there as they are."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore, LoggingStore, StorePath, ZipStore

import chunkwright_zarr
from chunkwright import CodecError
from chunkwright_store.packed import packed_in
from tests.support.arrays import assert_same

VALUES = np.arange(40 * 30).reshape(40, 30).astype("i4")
SHARDS: dict[str, dict[str, Any]] = {
    "shards": {"chunks": (4, 5), "shards": (16, 10)},
    "index first": {
        "chunks": (16, 10),
        "compressors": None,
        "serializer": zarr.codecs.ShardingCodec(chunk_shape=(4, 5), index_location="start"),
    },
    "raw": {"chunks": (4, 5), "shards": (16, 10), "compressors": None},
    "many": {"chunks": (1, 1), "shards": (8, 6)},
}


def zipped(
    tmp_path: Path, values: np.ndarray = VALUES, damage: Callable[[Path], object] | None = None, **options: Any
) -> Path:
    """Write an array into a zip archive, without the shards of which nothing is stored, and damaged beforehand."""
    folder, path = tmp_path / "folder", tmp_path / "a.zip"
    chunks = {name: options.pop(name) for name in ("chunks", "shards", "compressors", "serializer") if name in options}
    zarr.create_array(LocalStore(folder), shape=values.shape, dtype=values.dtype, fill_value=-1, **chunks)[...] = values
    if damage is not None:
        damage(folder)
    with zipfile.ZipFile(path, "w", **options) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder).as_posix())
    return path


OPEN: list[Any] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close what was opened."""
    yield
    while OPEN:
        OPEN.pop().close()


def opened(store: Any, backend: str = "rust") -> Any:
    OPEN.append(store)
    with chunkwright_zarr.use(backend=backend):
        return zarr.open_array(store)


@pytest.fixture
def paths() -> Callable[[], set[str]]:
    """Which ways reads have gone since."""
    before = chunkwright_zarr.counters()
    return lambda: {way for way, count in chunkwright_zarr.counters().items() if count > before.get(way, 0)}


@pytest.mark.parametrize("backend", ["rust", "numcodecs"])
@pytest.mark.parametrize("layout", SHARDS.values(), ids=list(SHARDS))
def test_what_is_selected_is_what_numpy_selects(
    layout: dict[str, Any], backend: str, tmp_path: Path, paths: Any
) -> None:
    values = VALUES.copy()
    values[16:32, 10:20] = -1
    array = opened(ZipStore(zipped(tmp_path, values, **layout)), backend)
    assert_same(np.asarray(array[...]), values)
    assert_same(np.asarray(array[17]), values[17])
    assert_same(np.asarray(array[:, 29]), values[:, 29])
    assert_same(np.asarray(array[15:18, 9:12]), values[15:18, 9:12])
    assert_same(np.asarray(array[::7, ::3]), values[::7, ::3])
    assert_same(np.asarray(array.oindex[[1, 17, 39], [0, 4, 12]]), values[np.ix_([1, 17, 39], [0, 4, 12])])
    assert_same(np.asarray(array.oindex[[30, 2], [12, 0, 29]]), values[np.ix_([30, 2], [12, 0, 29])])
    assert_same(np.asarray(array.vindex[[30, 2, 17], [12, 0, 11]]), values[[30, 2, 17], [12, 0, 11]])
    assert paths() <= {"read.sync", "read.inline"}
    assert chunkwright_zarr.explain(array).read.path == "sync"


def compressed(tmp_path: Path) -> Any:
    return ZipStore(zipped(tmp_path, compression=zipfile.ZIP_DEFLATED, **SHARDS["shards"]))


def appending(tmp_path: Path) -> Any:
    return ZipStore(zipped(tmp_path, **SHARDS["shards"]), mode="a")


def logged(tmp_path: Path) -> Any:
    return LoggingStore(ZipStore(zipped(tmp_path, **SHARDS["shards"])))


def from_open_file(tmp_path: Path) -> Any:
    file = zipped(tmp_path, **SHARDS["shards"]).open("rb")
    OPEN.append(file)
    return ZipStore(file)


def not_sharded(tmp_path: Path) -> Any:
    return ZipStore(zipped(tmp_path, chunks=(16, 10)))


def with_own_get(tmp_path: Path) -> Any:
    store = ZipStore(zipped(tmp_path, **SHARDS["shards"]))
    store.get = lambda *args, **options: ZipStore.get(store, *args, **options)  # type: ignore[method-assign]
    return store


@pytest.mark.parametrize("make", [compressed, appending, logged, from_open_file, not_sharded, with_own_get])
def test_everything_else_is_read_by_the_store(make: Callable[[Path], Any], tmp_path: Path, paths: Any) -> None:
    array = opened(make(tmp_path))
    assert_same(np.asarray(array[15:18, 9:12]), VALUES[15:18, 9:12])
    assert paths() == {"read.async"}
    assert chunkwright_zarr.explain(array).read.path == "async"


def place_of(path: Path, key: str) -> tuple[int, int, int]:
    """Where the header of a member is, its content, and how long that is."""
    with zipfile.ZipFile(path) as archive:
        store = ZipStore(path)
        packed = packed_in([StorePath(store, key)])
        store.close()
        assert packed is not None
        return archive.getinfo(key).header_offset, packed.offset[0], packed.length[0]


def damaged(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


@pytest.mark.parametrize("backend", ["rust", "numcodecs"])
@pytest.mark.parametrize("selection", [(slice(16, 20), slice(0, 5)), Ellipsis, ([17, 18], [0, 2])])
def test_a_damaged_shard_is_an_error_that_names_its_key(tmp_path: Path, selection: Any, backend: str) -> None:
    def damage(folder: Path) -> None:
        shard = folder / "c/1/0"
        shard.write_bytes(shard.read_bytes()[:-4] + bytes(4))

    array = opened(ZipStore(zipped(tmp_path, damage=damage, **SHARDS["shards"])), backend)
    with pytest.raises(CodecError) as caught:
        array.oindex[selection] if isinstance(selection, tuple) else array[selection]
    assert caught.value.key == "c/1/0"


@pytest.mark.parametrize("backend", ["rust", "numcodecs"])
def test_a_member_with_a_wrong_checksum_is_refused_whatever_is_wanted(tmp_path: Path, backend: str) -> None:
    path = zipped(tmp_path, **SHARDS["raw"])
    _, start, _ = place_of(path, "c/0/0")
    damaged(path, start, b"\7")
    array = opened(ZipStore(path), backend)
    assert_same(np.asarray(array[16:]), VALUES[16:])
    for selection in (Ellipsis, (0, 0), (5, 5), slice(3, 20)):
        with pytest.raises(zipfile.BadZipFile, match="CRC"):
            array[selection]
        with pytest.raises(zipfile.BadZipFile, match="CRC"):
            array.oindex[[2, 9, 12], [4, 5]]
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        OPEN.append(ZipStore(path))
        theirs = zarr.open_array(OPEN[-1])
    with pytest.raises(zipfile.BadZipFile, match="CRC"):
        theirs[5, 5]


@pytest.mark.parametrize("change", ["signature", "name", "length of the name", "patched", "encrypted"])
def test_a_member_whose_header_does_not_fit_is_refused_by_the_store(tmp_path: Path, change: str) -> None:
    path = zipped(tmp_path, **SHARDS["shards"])
    header, _, _ = place_of(path, "c/1/0")
    changes = {"signature": (0, b"XX"), "name": (31, b"x"), "length of the name": (26, b"\x04")}
    if change in changes:
        at, data = changes[change]
        damaged(path, header + at, data)
    else:
        with zipfile.ZipFile(path) as archive:
            at = archive.start_dir + path.read_bytes()[archive.start_dir :].index(b"c/1/0") - 38
        damaged(path, at, bytes([0x20 if change == "patched" else 0x40]))
    array = opened(ZipStore(path))
    assert_same(np.asarray(array[:16, :10]), VALUES[:16, :10])
    with pytest.raises((zipfile.BadZipFile, NotImplementedError)):
        array[16:20]


@pytest.mark.parametrize("backend", ["rust", "numcodecs"])
def test_a_file_that_was_cut_off_is_an_error(tmp_path: Path, backend: str) -> None:
    path = zipped(tmp_path, **SHARDS["shards"])
    store = ZipStore(path)
    array = opened(store, backend)
    assert_same(np.asarray(array[...]), VALUES)
    _, start, _ = place_of(path, "c/2/2")
    with path.open("r+b") as file:
        file.truncate(start + 5)
    with pytest.raises(CodecError) as caught:
        array[32:, 20:]
    assert caught.value.key == "c/2/2"


@pytest.mark.parametrize("backend", ["rust", "numcodecs"])
def test_the_file_that_is_open_is_read_whatever_has_its_name_now(tmp_path: Path, backend: str) -> None:
    path = zipped(tmp_path, **SHARDS["shards"])
    array = opened(ZipStore(path), backend)
    assert_same(np.asarray(array[:4, :5]), VALUES[:4, :5])
    (tmp_path / "other").write_bytes(b"nothing")
    (tmp_path / "other").replace(path)
    assert_same(np.asarray(array[...]), VALUES)


@pytest.mark.parametrize("backend", ["rust", "numcodecs"])
def test_a_store_that_was_closed_opens_its_archive_again(tmp_path: Path, backend: str) -> None:
    store = ZipStore(zipped(tmp_path, **SHARDS["shards"]))
    array = opened(store, backend)
    assert array[3, 3] == VALUES[3, 3]
    store.close()
    # zarr opens it for appending then.
    assert array[3, 3] == VALUES[3, 3]


@pytest.mark.parametrize("backend", ["rust", "numcodecs"])
def test_no_descriptor_is_left_open(tmp_path: Path, backend: str) -> None:
    array = opened(ZipStore(zipped(tmp_path, **SHARDS["shards"])), backend)
    array[...]
    before = len(os.listdir("/dev/fd"))
    for _ in range(50):
        array[3:30, 2]
        array.oindex[[1, 5, 30], [4, 2]]
    assert len(os.listdir("/dev/fd")) == before


def test_without_reads_at_a_position_the_store_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ZipStore(zipped(tmp_path, **SHARDS["shards"]))
    opened(store)
    getters = [StorePath(store, "c/0/0")]
    assert packed_in(getters) is not None
    monkeypatch.delattr(os, "pread")
    assert packed_in(getters) is None
