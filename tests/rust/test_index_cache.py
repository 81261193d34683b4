"""Indexes of shards in files are read once, and again when anything about the file has changed."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunkwright import ChecksumError, PreparedChain, ShardIndexError
from chunkwright.entries import Entries
from chunkwright_rust import RustBackend, _native
from tests.rust.chains import BIG, LITTLE, prepare
from tests.support.settled import Hits, change, hits

__all__ = ("hits",)

FILES = RustBackend.file_io
assert FILES is not None

LIMIT = 1 << 20
CRC = {"name": "crc32c"}


def sharded(location: str = "end", index: Any = (LITTLE, CRC), cells: int = 4) -> PreparedChain:
    configuration = {
        "chunk_shape": [4],
        "codecs": [LITTLE],
        "index_codecs": list(index),
        "index_location": location,
    }
    return prepare([{"name": "sharding_indexed", "configuration": configuration}], "u2", (4 * cells,))


CHAIN = sharded()

# The shards of these have as many bytes, and inner chunks in other places.
FRONT = np.array([1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0], "u2")
BACK = FRONT[::-1].copy()


def encoded(values: Any, chain: PreparedChain = CHAIN) -> bytes:
    made = chain.encode(values)
    assert made is not None
    return bytes(made)


def read(path: Path, chain: PreparedChain = CHAIN, limit: int = LIMIT, count: int = 1) -> list[int]:
    (size,) = chain.spec.shape
    out = np.full(size * count, 99, "u2")
    start = np.arange(count)[:, None] * size
    entries = Entries.boxes(chunk=np.arange(count), start=start * 0, count=start * 0 + size - 1, out_start=start)
    keys = [path.name] if count == 1 else [f"{number}" for number in range(count)]
    FILES.read_into(chain, path.parent, keys, entries, out, max_workers=1, shard_index_cache=limit)
    return out.reshape(count, size)[:, : size - 1].ravel().tolist()


@pytest.fixture
def path(tmp_path: Path, hits: Hits) -> Path:
    path = tmp_path / "0"
    path.write_bytes(encoded(FRONT))
    # Whatever other tests have left.
    read(path, limit=0)
    return path


@pytest.mark.parametrize("location", ["start", "end"])
def test_the_index_is_read_once(path: Path, hits: Hits, location: str) -> None:
    chain = sharded(location)
    path.write_bytes(encoded(FRONT, chain))
    assert [read(path, chain) for _ in range(3)] == [FRONT[:15].tolist()] * 3
    assert hits() == 2


def test_nothing_is_kept_of_a_file_that_was_changed_just_now(path: Path, hits: Hits) -> None:
    # An hour, because nobody knows how long this test is held up.
    _native.set_coarse_times(3600)
    assert [read(path), read(path)] == [FRONT[:15].tolist()] * 2
    assert (hits(), _native.index_cache()[1]) == (0, 0)


def test_nothing_is_kept_of_a_file_from_the_future(path: Path, hits: Hits) -> None:
    os.utime(path, (1 << 33, 1 << 33))
    assert [read(path), read(path)] == [FRONT[:15].tolist()] * 2
    assert (hits(), _native.index_cache()[1]) == (0, 0)


def test_nothing_is_kept_where_it_is_turned_off_and_what_was_kept_goes(path: Path, hits: Hits) -> None:
    read(path)
    assert _native.index_cache()[1] > 0
    assert [read(path, limit=0), read(path, limit=0)] == [FRONT[:15].tolist()] * 2
    assert (hits(), _native.index_cache()[1]) == (0, 0)


def test_a_file_that_was_written_over_in_place_is_read_anew(path: Path, hits: Hits) -> None:
    read(path)
    with open(path, "r+b") as file:

        def write_over() -> None:
            file.seek(0)
            file.write(encoded(BACK))
            file.flush()

        change(path, write_over)
    assert read(path) == BACK[:15].tolist()
    assert hits() == 0


def test_a_file_that_was_replaced_is_read_anew(path: Path, hits: Hits) -> None:
    read(path)

    def replace() -> None:
        path.with_name("new").write_bytes(encoded(BACK))
        path.with_name("new").rename(path)

    change(path, replace)
    assert read(path) == BACK[:15].tolist()
    assert hits() == 0


def test_a_file_that_is_gone_is_missing(path: Path) -> None:
    read(path)
    path.unlink()
    assert read(path) == [0] * 15


def test_an_index_is_used_for_the_form_that_it_was_read_in(path: Path, hits: Hits) -> None:
    little, big = sharded(index=(LITTLE,)), sharded(index=(BIG,))
    path.write_bytes(encoded(FRONT, little))
    other = path.with_name("link")
    other.hardlink_to(path)
    for _ in range(2):
        assert read(path, little) == FRONT[:15].tolist()
        with pytest.raises(ShardIndexError):
            read(other, big)
    assert read(other, little) == FRONT[:15].tolist()
    assert read(path, little) == FRONT[:15].tolist()
    assert hits() == 1


def test_an_index_is_used_for_the_place_that_it_was_read_from(path: Path, hits: Hits) -> None:
    first = sharded("start")
    for _ in range(2):
        assert read(path) == FRONT[:15].tolist()
        with pytest.raises(ChecksumError):
            read(path, first)
    assert hits() == 1


def test_a_damaged_index_is_not_kept(path: Path, hits: Hits) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(ChecksumError):
            read(path)
    assert (hits(), _native.index_cache()[1]) == (0, 0)


def many(folder: Path, count: int, cells: int = 64) -> PreparedChain:
    chain = sharded(cells=cells)
    for number in range(count):
        (folder / f"{number}").write_bytes(encoded(np.full(4 * cells, number + 1, "u2"), chain))
    return chain


def test_no_more_is_kept_than_is_allowed(path: Path, hits: Hits) -> None:
    chain = many(path.parent, 20)
    expected = np.repeat(np.arange(1, 21), 255).tolist()
    # About eight of them.
    limit = 8 * (64 * 16 + 300)
    for _ in range(3):
        assert read(path, chain, limit, 20) == expected
        assert 0 < _native.index_cache()[1] <= limit
    read(path.with_name("19"), chain, limit)
    assert hits() == 1
    assert read(path, chain, LIMIT, 20) == read(path, chain, LIMIT, 20) == expected
    assert hits() >= 20
    kept = _native.index_cache()[1]
    read(path, chain, limit)
    assert kept > limit >= _native.index_cache()[1]


def test_what_is_used_stays_while_others_come_and_go(path: Path, hits: Hits) -> None:
    chain = many(path.parent, 20)
    limit = 8 * (64 * 16 + 300)
    read(path, chain, limit)
    for number in range(1, 20):
        read(path.with_name(f"{number}"), chain, limit)
        read(path, chain, limit)
    assert hits() == 19


def test_an_index_larger_than_all_that_may_be_kept_is_not_kept(path: Path, hits: Hits) -> None:
    assert read(path, limit=100) == read(path, limit=100) == FRONT[:15].tolist()
    assert (hits(), _native.index_cache()[1]) == (0, 0)


def test_threads_read_one_version_or_the_other_while_files_are_replaced(path: Path) -> None:
    versions = (FRONT[:15].tolist(), BACK[:15].tolist())
    seen: list[list[int]] = []

    def reading() -> None:
        seen.extend(read(path) for _ in range(300))

    threads = [threading.Thread(target=reading) for _ in range(4)]
    for thread in threads:
        thread.start()
    number = 0
    while any(thread.is_alive() for thread in threads):
        number += 1
        new = path.with_name("new")
        # Files that settled have different times; these are given times that no other has.
        new.write_bytes(encoded((FRONT, BACK)[number % 2]))
        os.utime(new, ns=(number, number))
        new.rename(path)
    for thread in threads:
        thread.join()
    assert len(seen) == 1200
    assert all(values in versions for values in seen)


def test_a_forked_child_reads_with_what_its_parent_kept(path: Path, hits: Hits) -> None:
    read(path)
    child = os.fork()
    if child == 0:
        before = _native.index_cache()[0]
        good = read(path) == FRONT[:15].tolist() and _native.index_cache()[0] == before + 1
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert read(path) == FRONT[:15].tolist()
