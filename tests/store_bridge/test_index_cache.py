"""Indexes of shards are asked for once, where sources say which version they are of."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunkwright import ChecksumError
from chunkwright_store import ByteRange, ByteSuffix, FileSource, Limits, OpenFiles, ReadJob, read_async, read_sync
from chunkwright_store import index_cache as module
from chunkwright_store.index_cache import INDEXES, IndexCache
from chunkwright_store.sources import cut
from tests.store_bridge.volumes import Volume, volume
from tests.support.settled import Hits, change, hits

__all__ = ("hits",)

SHARDS = ["shards", "shards with the index first", "nested shards"]
BOX = ((7, 17), (9, 17))
LIMITS = Limits(shard_index_cache=1 << 20)


class Versioned:
    """A store that says which version it is of, and writes down what it is asked for."""

    def __init__(self, stored: dict[str, bytes]) -> None:
        self.stored = dict(stored)
        self.version: Hashable | None = 1
        self.requests: list[tuple[str, ByteRange]] = []

    def answer(self, key: str, wanted: ByteRange) -> Any:
        self.requests.append((key, wanted))
        data = self.stored.get(key)
        return None if data is None else cut(data, wanted)

    def asked(self) -> list[tuple[str, ByteRange]]:
        asked, self.requests = self.requests, []
        return asked


class Source:
    def __init__(self, store: Versioned, key: str) -> None:
        self.store, self.key = store, key

    def version(self) -> Hashable | None:
        return None if self.store.version is None else (id(self.store), self.key, self.store.version)

    def get_ranges(self, ranges: Sequence[ByteRange]) -> list[Any]:
        return [self.store.answer(self.key, wanted) for wanted in ranges]


class AsyncSource(Source):
    async def get_ranges(self, ranges: Sequence[ByteRange]) -> list[Any]:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().get_ranges(ranges)


class StreamingSource(AsyncSource):
    async def stream_ranges(self, ranges: Sequence[ByteRange]) -> Any:
        for at, wanted in enumerate(ranges):
            yield [(at, self.store.answer(self.key, wanted))]


def job(made: Volume, sources: Any, box: Any = BOX) -> ReadJob:
    entries, keys = made.entries(box)
    return ReadJob(plan=made.prepared.plan_read(entries), sources=[sources(key) for key in keys], keys=keys)


def read(made: Volume, store: Versioned, kind: type[Source], limits: Limits = LIMITS, box: Any = BOX) -> Any:
    out = np.zeros([stop - start for start, stop in box], made.data.dtype)
    task = job(made, lambda key: kind(store, key), box)
    if kind is Source:
        read_sync([task], out, limits)
    else:
        asyncio.run(read_async([task], out, limits))
    return out


KINDS = [Source, AsyncSource, StreamingSource]


@pytest.fixture(params=KINDS, ids=["synchronous", "asynchronous", "streaming"])
def kind(request: pytest.FixtureRequest, hits: Hits) -> type[Source]:
    chosen: type[Source] = request.param
    return chosen


@pytest.mark.parametrize("layout", SHARDS)
def test_a_second_read_asks_for_no_index(layout: str, kind: type[Source], hits: Hits) -> None:
    made = volume(layout)
    store = Versioned(made.stored)
    np.testing.assert_array_equal(read(made, store, kind), made.expected(BOX))
    first = store.asked()
    np.testing.assert_array_equal(read(made, store, kind), made.expected(BOX))
    second = store.asked()
    shards = {key for key, _ in first}
    assert len(shards) == 4
    assert {key for key, _ in second} == shards
    # One per shard less, and nothing else; which is asked for first is not said.
    assert set(second) < set(first)
    assert len(first) - len(second) == hits() == 4


def test_chunks_that_are_wanted_whole_are_asked_for_each_time(kind: type[Source], hits: Hits) -> None:
    made = volume("chunks")
    store = Versioned(made.stored)
    read(made, store, kind)
    first = store.asked()
    read(made, store, kind)
    assert sorted(store.asked()) == sorted(first)
    assert (hits(), INDEXES.nbytes) == (0, 0)


@pytest.mark.parametrize("version", [2, None], ids=["another", "unknown"])
def test_an_index_of_another_version_is_asked_for(kind: type[Source], hits: Hits, version: Hashable) -> None:
    made, other = volume("shards"), volume("shards", dtype=">u2")
    store = Versioned(made.stored)
    read(made, store, kind)
    store.stored, store.version = {key: other.stored[key] for key in made.stored}, version
    np.testing.assert_array_equal(read(other, store, kind), made.expected(BOX))
    assert hits() == 0


def test_nothing_is_kept_where_it_is_turned_off_and_what_was_kept_goes(kind: type[Source], hits: Hits) -> None:
    made = volume("shards")
    store = Versioned(made.stored)
    read(made, store, kind)
    assert INDEXES.nbytes > 0
    for _ in range(2):
        np.testing.assert_array_equal(read(made, store, kind, Limits()), made.expected(BOX))
    assert (hits(), INDEXES.nbytes) == (0, 0)


def test_missing_shards_are_asked_for_again(kind: type[Source], hits: Hits) -> None:
    made = volume("shards")
    store = Versioned({})
    assert not read(made, store, kind).any()
    store.stored = made.stored
    np.testing.assert_array_equal(read(made, store, kind), made.expected(BOX))


def test_what_does_not_decode_is_not_kept(kind: type[Source], hits: Hits) -> None:
    made = volume("shards")
    store = Versioned({key: data[:-1] + bytes([data[-1] ^ 1]) for key, data in made.stored.items()})
    with pytest.raises(ChecksumError):
        read(made, store, kind)
    store.stored = made.stored
    np.testing.assert_array_equal(read(made, store, kind), made.expected(BOX))
    assert hits() == 0


def stored_in(folder: Path, made: Volume) -> None:
    for key, data in made.stored.items():
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(data)


def test_files_say_which_version_they_are_of(tmp_path: Path, hits: Hits) -> None:
    made = volume("shards")
    stored_in(tmp_path, made)
    out = np.zeros((10, 8), "u2")
    for expected in (0, 4, 4):
        read_sync([job(made, lambda key: FileSource(tmp_path / key))], out, LIMITS)
        np.testing.assert_array_equal(out, made.expected(BOX))
        assert hits() == expected


def test_files_that_are_decoded_without_a_plan_say_it_too(tmp_path: Path, hits: Hits) -> None:
    made = volume("shards")
    stored_in(tmp_path, made)
    entries, keys = made.entries(BOX)
    out = np.zeros((10, 8), "u2")
    for expected in (0, 4, 4):
        files = OpenFiles([tmp_path / key for key in keys], 1 << 20)
        made.prepared.decode_many_into(files.rows(), entries, out)
        files.close()
        np.testing.assert_array_equal(out, made.expected(BOX))
        assert hits() == expected


def test_a_file_has_a_version_until_it_changes(tmp_path: Path, hits: Hits) -> None:
    path = tmp_path / "0"
    path.write_bytes(b"abcd")
    first, again = FileSource(path), FileSource(path)
    assert first.version() == again.version() is not None
    change(path, lambda: path.write_bytes(b"efgh"))
    again.close()
    # What is held open is what it was when it was opened; the file was opened before it changed.
    assert first.version() != again.version() is not None
    first.close()
    path.unlink()
    assert first.version() is None


def test_a_file_that_was_changed_just_now_or_in_the_future_has_no_version(
    tmp_path: Path, hits: Hits, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "0"
    path.write_bytes(b"abcd")
    os.utime(path, (1 << 33, 1 << 33))
    assert FileSource(path).version() is None
    os.utime(path, (1, 1))
    assert FileSource(path).version() is not None
    monkeypatch.setattr(module, "COARSE", 1 << 40)
    assert FileSource(path).version() is None


def test_systems_that_say_less_of_files_give_no_version(
    tmp_path: Path, hits: Hits, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "0"
    path.write_bytes(b"abcd")
    source = FileSource(path)
    assert source.version() is not None
    monkeypatch.setattr(module.os, "name", "nt")
    assert source.version() is None


class Numbered:
    def __init__(self, number: int) -> None:
        self._number = number

    def version(self) -> int:
        return self._number


SUFFIX = ByteSuffix(100)
SOME = 10 * (100 + module.OVERHEAD)


def key_of(cache: IndexCache, number: int, limit: int = SOME) -> Any:
    return cache.key(Numbered(number), SUFFIX, limit)


def test_no_more_is_kept_than_is_allowed() -> None:
    cache = IndexCache()
    for number in range(100):
        cache.keep(key_of(cache, number), b"x" * 100, SOME)
        assert cache.nbytes <= SOME
    found = [number for number in range(100) if cache.find(key_of(cache, number), SOME) is not None]
    assert len(found) >= 5
    assert found[-1] == 99


def test_what_is_used_stays_while_others_come_and_go() -> None:
    cache = IndexCache()
    for number in range(100):
        cache.keep(key_of(cache, number), b"x" * 100, SOME)
        assert cache.find(key_of(cache, 0), SOME) == b"x" * 100


def test_a_smaller_limit_holds_from_the_next_index_on() -> None:
    cache = IndexCache()
    for number in range(10):
        cache.keep(key_of(cache, number), b"x" * 100, SOME)
    cache.keep(key_of(cache, 10), b"x" * 100, SOME // 5)
    assert cache.nbytes <= SOME // 5
    cache.keep(key_of(cache, 11), b"x" * SOME, SOME)
    assert cache.find(key_of(cache, 11), SOME) is None


def test_what_is_kept_is_a_copy() -> None:
    cache, data = IndexCache(), bytearray(b"abcd")
    cache.keep(key_of(cache, 0), data, SOME)
    data[:] = b"efgh"
    assert cache.find(key_of(cache, 0), SOME) == b"abcd"


def test_nobody_waits_for_another_and_a_forked_child_finds_its_way() -> None:
    cache = IndexCache()
    cache.keep(key_of(cache, 0), b"abcd", SOME)
    with cache._lock:
        cache.keep(key_of(cache, 1), b"abcd", SOME)
        cache.clear()
        assert cache.find(key_of(cache, 0), SOME) is None
        child = os.fork()
        if child == 0:
            os._exit(0 if cache.find(key_of(cache, 0), SOME) is None else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert cache.find(key_of(cache, 0), SOME) == b"abcd"
    assert cache.find(key_of(cache, 1), SOME) is None


def test_many_threads_find_only_what_was_kept() -> None:
    cache = IndexCache()
    wrong: list[int] = []

    def use() -> None:
        for turn in range(2000):
            number = turn * 7 % 30
            key = key_of(cache, number)
            if cache.find(key, SOME) not in (None, bytes([number]) * 100):
                wrong.append(number)
            cache.keep(key, bytes([number]) * 100, SOME)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert 0 < cache.nbytes <= SOME
    kept = [*cache._young.values(), *cache._old.values()]
    assert cache.nbytes == sum(len(data) + module.OVERHEAD for data in kept)
