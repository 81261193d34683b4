"""Whatever happens to a shard whose index is kept, what is read is what is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import pytest
import zarr
import zarr.codecs as zc
from zarr.storage import LocalStore, WrapperStore

from chunkwright import ConfigurationError
from chunkwright_rust import _native
from chunkwright_store import index_cache
from chunkwright_store.index_cache import INDEXES
from chunkwright_zarr import read_boxes
from chunkwright_zarr.config import shard_index_cache
from tests.support.pipelines import DEFAULT, OURS
from tests.support.settled import Hits, change, hits

__all__ = ("hits",)

pytestmark = pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec")

KEY = "codec_pipeline.shard_index_cache"

# The shards of these have as many bytes, and inner chunks in other places.
FRONT = np.array([1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0], "u2")
BACK = FRONT[::-1].copy()


def create(path: Path, values: Any, location: str = "end") -> Any:
    sharding = zc.ShardingCodec(chunk_shape=(4,), codecs=[zc.BytesCodec()], index_location=location)
    array = zarr.create_array(
        path, shape=(32,), chunks=(16,), dtype="u2", serializer=sharding, compressors=None, filters=None
    )
    array[:16] = values
    return array


@pytest.fixture(params=["rust", "numcodecs"])
def backend(request: pytest.FixtureRequest, hits: Hits) -> Iterator[str]:
    with zarr.config.set({"codec_pipeline.path": OURS, "codec_pipeline.backend": request.param}):
        yield request.param


def everything_of(array: Any) -> list[int]:
    """Read in parts, so that indexes are looked at."""
    return [*array[:7].tolist(), *array[7:16].tolist(), *array[16:25].tolist(), *array[25:].tolist()]


def by_default_of(path: Path) -> Any:
    with zarr.config.set({"codec_pipeline.path": DEFAULT}):
        return zarr.open_array(path, mode="r+")


def write_over(path: Path, shard: Path) -> None:
    content = written(path, BACK)
    with open(shard, "r+b", buffering=0) as file:
        assert file.write(content) == shard.stat().st_size


def truncate_and_write(path: Path, shard: Path) -> None:
    shard.write_bytes(written(path, BACK))


def delete_and_write(path: Path, shard: Path) -> None:
    content = written(path, BACK)
    shard.unlink(missing_ok=True)
    shard.write_bytes(content)


def written(path: Path, values: Any) -> bytes:
    folder = path.with_name("written")
    if not folder.exists():
        create(folder, values)
    return (folder / "c/0").read_bytes()


def write(path: Path, shard: Path) -> None:
    zarr.open_array(path, mode="r+")[:16] = BACK


def write_by_default(path: Path, shard: Path) -> None:
    by_default_of(path)[:16] = BACK


def write_a_part(path: Path, shard: Path) -> None:
    zarr.open_array(path, mode="r+")[6:13] = 77


def write_a_part_by_default(path: Path, shard: Path) -> None:
    by_default_of(path)[6:13] = 77


def write_fill_values(path: Path, shard: Path) -> None:
    zarr.open_array(path, mode="r+")[:] = 0


def delete(path: Path, shard: Path) -> None:
    shard.unlink(missing_ok=True)


def cut_off_and_append(path: Path, shard: Path) -> None:
    array = zarr.open_array(path, mode="r+")
    array.resize((0,))
    array.append(BACK)
    array.append(BACK)


CHANGES: list[Callable[[Path, Path], None]] = [
    write_over,
    truncate_and_write,
    delete_and_write,
    write,
    write_by_default,
    write_a_part,
    write_a_part_by_default,
    write_fill_values,
    delete,
    cut_off_and_append,
]


@pytest.mark.parametrize("how", CHANGES, ids=lambda how: how.__name__.replace("_", " "))
def test_what_is_read_after_a_change_is_what_is_there(
    how: Callable[[Path, Path], None], tmp_path: Path, backend: str, hits: Hits
) -> None:
    path, shard = tmp_path / "a", tmp_path / "a/c/0"
    array = create(path, FRONT)
    written(path, BACK)
    for _ in range(2):
        assert everything_of(array) == [*FRONT.tolist(), *[0] * 16]
    assert hits() > 0
    change(shard, lambda: how(path, shard))
    array = zarr.open_array(path, mode="r")
    values = everything_of(array)
    assert values == by_default_of(path)[:].tolist()
    assert values[:16] != FRONT.tolist()
    assert everything_of(array) == values


def test_a_shard_that_was_replaced_is_read_anew(tmp_path: Path, backend: str, hits: Hits) -> None:
    path, shard = tmp_path / "a", tmp_path / "a/c/0"
    array = create(path, FRONT)
    everything_of(array)
    new = tmp_path / "new"

    def replace() -> None:
        new.write_bytes(written(path, BACK))
        new.rename(shard)

    change(shard, replace)
    assert everything_of(array)[:16] == BACK.tolist()


@pytest.mark.parametrize("location", ["start", "end"])
def test_the_second_read_of_a_shard_finds_its_index(tmp_path: Path, backend: str, hits: Hits, location: str) -> None:
    array = create(tmp_path / "a", FRONT, location)
    hits()
    assert [array[1:3].tolist() for _ in range(3)] == [[2, 3]] * 3
    assert hits() == 2
    # Another object for the same array finds it too.
    assert zarr.open_array(tmp_path / "a", mode="r")[5:7].tolist() == [6, 7]
    assert hits() == 1


def test_crops_find_indexes(tmp_path: Path, hits: Hits) -> None:
    # numcodecs reads shards as small as these whole.
    with zarr.config.set({"codec_pipeline.path": OURS, "codec_pipeline.backend": "rust"}):
        array = create(tmp_path / "a", FRONT)
        hits()
        for _ in range(2):
            assert read_boxes(array, [[1], [5]], (2,)).tolist() == [[2, 3], [6, 7]]
    assert hits() == 1


def test_nothing_is_kept_where_it_is_turned_off(tmp_path: Path, backend: str, hits: Hits) -> None:
    array = create(tmp_path / "a", FRONT)
    array[1:3]
    assert INDEXES.nbytes + _native.index_cache()[1] > 0
    hits()
    with zarr.config.set({KEY: 0}):
        assert [array[1:3].tolist() for _ in range(3)] == [[2, 3]] * 3
    kept = INDEXES.nbytes if backend == "numcodecs" else _native.index_cache()[1]
    assert (hits(), kept) == (0, 0)


def test_nothing_is_kept_of_shards_that_were_written_just_now(
    tmp_path: Path, backend: str, hits: Hits, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An hour, because nobody knows how long this test is held up.
    _native.set_coarse_times(3600)
    monkeypatch.setattr(index_cache, "COARSE", 3600 * 10**9)
    array = create(tmp_path / "a", FRONT)
    assert [array[1:3].tolist() for _ in range(3)] == [[2, 3]] * 3
    assert hits() == 0


def test_times_are_taken_to_be_as_coarse_as_two_seconds() -> None:
    before = _native.set_coarse_times(2)
    assert (before, index_cache.COARSE) == (2, 2 * 10**9)


@pytest.mark.parametrize("value", [-1, "much", 1.5, True, [1]])
def test_a_size_that_is_no_number_of_bytes_is_an_error(tmp_path: Path, backend: str, value: Any) -> None:
    array = create(tmp_path / "a", FRONT)
    with zarr.config.set({KEY: value}), pytest.raises(ConfigurationError, match="shard_index_cache"):
        array[1:3]


@pytest.mark.parametrize(("value", "expected"), [(None, 64 << 20), (0, 0), ("1000", 1000), (1 << 80, 1 << 48)])
def test_the_size_may_be_set(value: Any, expected: int) -> None:
    with zarr.config.set({KEY: value}):
        assert shard_index_cache() == expected


class Requests:
    """How many reads icechunk was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._made = 0
        get = icechunk.IcechunkStore.get

        async def counted(*args: Any, **options: Any) -> Any:
            self._made += 1
            return await get(*args, **options)

        monkeypatch.setattr(icechunk.IcechunkStore, "get", counted)

    def __call__(self) -> int:
        made, self._made = self._made, 0
        return made


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    return Requests(monkeypatch)


@pytest.fixture
def repository(backend: str) -> icechunk.Repository:
    repository = icechunk.Repository.create(icechunk.in_memory_storage())
    session = repository.writable_session("main")
    create(session.store, FRONT)
    session.commit("front")
    return repository


@pytest.mark.parametrize("wrap", [lambda store: store, WrapperStore], ids=["alone", "wrapped"])
def test_a_snapshot_is_asked_for_an_index_once(
    repository: icechunk.Repository, requests: Requests, hits: Hits, wrap: Callable[[Any], Any]
) -> None:
    array = zarr.open_array(wrap(repository.readonly_session("main").store), mode="r")
    requests()
    assert array[1:3].tolist() == [2, 3]
    assert (requests(), hits()) == (2, 0)
    assert array[5:7].tolist() == [6, 7]
    assert (requests(), hits()) == (1, 1)


def test_a_session_that_can_be_written_to_has_no_version(repository: icechunk.Repository, hits: Hits) -> None:
    array = zarr.open_array(repository.writable_session("main").store, mode="r+")
    for values in (FRONT, BACK, FRONT):
        array[:16] = values
        assert everything_of(array)[:16] == everything_of(array)[:16] == values.tolist()
    assert hits() == 0


def test_another_snapshot_has_indexes_of_its_own(repository: icechunk.Repository, hits: Hits) -> None:
    before = zarr.open_array(repository.readonly_session("main").store, mode="r")
    assert everything_of(before)[:16] == FRONT.tolist()
    session = repository.writable_session("main")
    written = zarr.open_array(session.store, mode="r+")
    written[:16] = BACK
    assert everything_of(written)[:16] == BACK.tolist()
    session.commit("back")
    after = zarr.open_array(repository.readonly_session("main").store, mode="r")
    for _ in range(2):
        assert everything_of(after)[:16] == everything_of(written)[:16] == BACK.tolist()
        assert everything_of(before)[:16] == FRONT.tolist()
    assert hits() > 0


def test_a_store_that_decides_by_itself_what_is_read_has_no_version(
    repository: icechunk.Repository, hits: Hits, tmp_path: Path
) -> None:
    class Other(WrapperStore):
        """Overrides nothing, but could."""

    inner = repository.readonly_session("main").store
    patched = repository.readonly_session("main").store
    patched.get = inner.get
    for store in (Other(inner), patched, LocalStore(tmp_path)):
        if isinstance(store, LocalStore):
            create(store, FRONT)
            store = WrapperStore(store)
        array = zarr.open_array(store, mode="r")
        assert [array[1:3].tolist() for _ in range(2)] == [[2, 3]] * 2
    assert hits() == 0
