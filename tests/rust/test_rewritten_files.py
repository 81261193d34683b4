"""Chunks in files that the native module reads, changes, encodes and replaces in one go."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunkwright import CodecError, PreparedChain
from chunkwright.entries import Entries, IndexList
from chunkwright.selection import entries_of_pairs
from chunkwright_rust import RustBackend
from chunkwright_store import FilesBatch, WriteJob, write_sync
from tests.rust.chains import BIG, LITTLE, ZSTD, prepare
from tests.rust.test_files import CHAINS, sharding

FILES = RustBackend.file_io
assert FILES is not None

SHAPE = (8, 6)
VALUES = np.arange(3 * 48, dtype="i4").reshape(3, *SHAPE)
KEYS = ["c/0", "c/1", "d/0"]
BOXES = [(slice(0, 8), slice(0, 6)), (slice(1, 5), slice(2, 6)), (slice(0, 7, 3), slice(5, 6))]


@pytest.fixture(params=list(CHAINS))
def chain(request: pytest.FixtureRequest) -> PreparedChain:
    return prepare(CHAINS[request.param], "int32", SHAPE, fill_value=-1)


def write(chain: PreparedChain, root: Path, entries: Entries, source: np.ndarray, *, keep_empty: bool = False) -> None:
    job = WriteJob(
        plan=chain.plan_write(entries, keep_empty=keep_empty),
        sources=[],
        sinks=[],
        keys=KEYS,
        batch=FilesBatch(FILES, root, KEYS),
    )
    write_sync([job], source)


def held(chain: PreparedChain, root: Path) -> np.ndarray:
    out = np.zeros((3, *SHAPE), "i4")
    FILES.read_into(chain, root, KEYS, Entries.whole(SHAPE, 3), out)
    return out


def boxes(selections: list[Any]) -> tuple[Entries, np.ndarray]:
    """Selections of three chunks, one below the other in a source of zeros."""
    sizes = [np.empty(SHAPE)[selection].shape for selection in selections]
    edges = np.cumsum([0, *[rows for rows, _ in sizes]]).tolist()
    places = [(slice(edges[number], edges[number + 1]), slice(0, size[1])) for number, size in enumerate(sizes)]
    entries = entries_of_pairs(selections, places, shape=SHAPE)
    return entries, np.full((edges[-1], 6), 7, "i4")


@pytest.mark.parametrize("dtype", ["i4", ">i4", "f8"])
def test_what_is_not_written_stays(chain: PreparedChain, tmp_path: Path, dtype: str) -> None:
    write(chain, tmp_path, Entries.whole(SHAPE, 3), VALUES)
    np.testing.assert_array_equal(held(chain, tmp_path), VALUES)
    entries, source = boxes(BOXES)
    write(chain, tmp_path, entries, source.astype(dtype))
    expected = VALUES.copy()
    for chunk, selection in zip(expected, BOXES, strict=True):
        chunk[selection] = 7
    np.testing.assert_array_equal(held(chain, tmp_path), expected)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["0", "0", "1"]


def test_the_files_are_those_that_the_core_makes(chain: PreparedChain, tmp_path: Path) -> None:
    write(chain, tmp_path, Entries.whole(SHAPE, 3), VALUES)
    entries, source = boxes(BOXES)
    plan = chain.plan_write(entries)
    needs = plan.needs
    plan.feed(needs["id"], [(tmp_path / KEYS[chunk]).read_bytes() for chunk in needs["chunk"].tolist()])
    made: dict[int, Any] = {}
    while (work := plan.take()) is not None:
        made.update(work.run(source))
    write(chain, tmp_path, entries, source)
    for chunk, content in made.items():
        assert (tmp_path / KEYS[chunk]).read_bytes() == bytes(content)


def test_missing_chunks_begin_with_the_fill_value(chain: PreparedChain, tmp_path: Path) -> None:
    entries, source = boxes(BOXES)
    write(chain, tmp_path, entries, source)
    expected = np.full((3, *SHAPE), -1, "i4")
    for chunk, selection in zip(expected, BOXES, strict=True):
        chunk[selection] = 7
    np.testing.assert_array_equal(held(chain, tmp_path), expected)


def test_chunks_that_become_empty_are_removed_unless_they_are_to_be_kept(chain: PreparedChain, tmp_path: Path) -> None:
    write(chain, tmp_path, Entries.whole(SHAPE, 3), np.full_like(VALUES, -1), keep_empty=True)
    assert all((tmp_path / key).is_file() for key in KEYS)
    write(chain, tmp_path, Entries.whole(SHAPE, 3), VALUES)
    entries, source = boxes([(slice(0, 8), slice(0, 6))] * 2 + [(slice(0, 4), slice(0, 3))])
    source[:] = -1
    write(chain, tmp_path, entries, source)
    assert [(tmp_path / key).is_file() for key in KEYS] == [False, False, True]
    assert (held(chain, tmp_path)[:2] == -1).all()


def test_several_entries_of_one_chunk_are_one_change(chain: PreparedChain, tmp_path: Path) -> None:
    write(chain, tmp_path, Entries.whole(SHAPE, 3), VALUES)
    edges = np.array([[0, 0], [2, 1], [3, 2]])
    entries = Entries.boxes(chunk=np.array([1, 1, 1]), start=edges, count=np.full((3, 2), 3), out_start=edges * [3, 0])
    source = np.arange(1000, 1000 + 12 * 3, dtype="i4").reshape(12, 3)
    write(chain, tmp_path, entries, source)
    expected = VALUES.copy()
    for row, column in edges.tolist():
        expected[1, row : row + 3, column : column + 3] = source[3 * row : 3 * row + 3]
    np.testing.assert_array_equal(held(chain, tmp_path), expected)


def test_lists_are_written_too(chain: PreparedChain, tmp_path: Path) -> None:
    write(chain, tmp_path, Entries.whole(SHAPE, 3), VALUES)
    rows, columns = np.array([6, 0, 3]), np.array([5, 1])
    entries = entries_of_pairs([np.ix_(rows, columns)], [(slice(0, 3), slice(0, 2))], shape=SHAPE)
    assert any(isinstance(list_, IndexList) for list_ in entries.lists)
    source = np.arange(500, 506, dtype="i4").reshape(3, 2)
    write(chain, tmp_path, entries, source)
    expected = VALUES.copy()
    expected[0][np.ix_(rows, columns)] = source
    np.testing.assert_array_equal(held(chain, tmp_path), expected)


DAMAGED = {
    "zstd": (lambda good: b"\xff" * len(good), "zstd"),
    "raw": (lambda good: good[:-1], "bytes"),
    "transposed, big endian": (lambda good: good[:-1] + b"\0", "crc32c"),
    "sharded": (lambda good: good[:-1] + b"\0", "crc32c"),
    "sharded, index first": (lambda good: good[:10], "sharding_indexed"),
    "nested": (lambda good: good[: len(good) // 2], "crc32c"),
}


@pytest.mark.parametrize("name", list(DAMAGED))
def test_a_damaged_chunk_is_named_and_stays_as_it_is(tmp_path: Path, name: str) -> None:
    chain, (damage, codec) = prepare(CHAINS[name], "int32", SHAPE, fill_value=-1), DAMAGED[name]
    write(chain, tmp_path, Entries.whole(SHAPE, 3), VALUES)
    path = tmp_path / KEYS[1]
    path.write_bytes(damage(path.read_bytes()))
    before = path.read_bytes()
    entries, source = boxes(BOXES)
    with pytest.raises(CodecError) as caught:
        write(chain, tmp_path, entries, source)
    assert caught.value.key == KEYS[1]
    assert codec in str(caught.value)
    assert path.read_bytes() == before
    assert not list(tmp_path.rglob("*.partial"))


def test_a_folder_that_cannot_be_written_to_keeps_its_files(tmp_path: Path) -> None:
    chain = prepare([sharding([2, 3], [LITTLE, ZSTD])], "int32", SHAPE, fill_value=-1)
    write(chain, tmp_path, Entries.whole(SHAPE, 3), VALUES)
    (tmp_path / "d" / "0").unlink()
    (tmp_path / "d" / "0").mkdir()
    (tmp_path / "d" / "0" / "else").write_bytes(b"x")
    entries, source = boxes(BOXES)
    with pytest.raises(OSError, match="d/0") as caught:
        write(chain, tmp_path, entries, source)
    assert caught.value.errno is not None
    assert os.listdir(tmp_path / "d") == ["0"]
    assert (tmp_path / "d" / "0" / "else").read_bytes() == b"x"


def test_keys_do_not_lead_out_of_the_root(tmp_path: Path) -> None:
    chain = prepare([BIG], "int32", SHAPE, fill_value=-1)
    kept = np.full(1, -1, np.int64)
    with pytest.raises(ValueError, match="leads out"):
        FILES.rewrite(
            chain, tmp_path, ["../x"], VALUES[0], Entries.whole(SHAPE, 1), kept, keep_empty=False, max_workers=None
        )


def test_a_failed_write_leaves_nothing_open_while_its_error_lives(tmp_path: Path) -> None:
    chain = prepare([LITTLE, ZSTD], "int32", SHAPE, fill_value=-1)
    keys = [f"c/{number}" for number in range(10)]
    FILES.write(tmp_path, keys, [b"garbage"] * 10)
    before = len(os.listdir("/proc/self/fd"))
    entries = entries_of_pairs([(slice(0, 2), slice(0, 2))] * 10, [(slice(0, 2), slice(0, 2))] * 10, shape=SHAPE)
    kept, errors = np.zeros(10, np.int64), []
    for _ in range(5):
        with pytest.raises(CodecError) as caught:
            FILES.rewrite(chain, tmp_path, keys, VALUES[0], entries, kept, keep_empty=False)
        errors.append(caught.value)
    assert len(os.listdir("/proc/self/fd")) == before


def test_few_descriptors_are_enough_to_change_many_shards(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    chain = prepare([sharding([2, 3], [LITTLE, ZSTD])], "int32", SHAPE, fill_value=-1)
    keys = [f"c/{number}" for number in range(300)]
    nothing, source = np.full(300, -1, np.int64), np.arange(300 * 48, dtype="i4").reshape(300, *SHAPE)
    FILES.rewrite(chain, tmp_path, keys, source, Entries.whole(SHAPE, 300), nothing, keep_empty=False)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 40, hard))
    try:
        part = (slice(0, 8, 3), slice(0, 6, 5))
        entries = entries_of_pairs([part] * 300, [(slice(0, 3), slice(0, 2))] * 300, shape=SHAPE)
        for value in range(20):
            filled = np.full((3, 2), value, "i4")
            FILES.rewrite(chain, tmp_path, keys, filled, entries, nothing + 1, keep_empty=False)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    out = np.zeros((300, *SHAPE), "i4")
    FILES.read_into(chain, tmp_path, keys, Entries.whole(SHAPE, 300), out)
    assert (out[:, ::3, ::5] == 19).all()
    assert (out[:, 1] == source[:, 1]).all()
