"""Files that are read and decoded, and written, by the native module."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunkwright import CorruptChunkError, PreparedChain, ShardIndexError
from chunkwright.buffers import Buffers
from chunkwright.entries import Entries
from chunkwright.errors import CodecError
from chunkwright_numcodecs import NumcodecsBackend
from chunkwright_rust import RustBackend, _native
from tests.rust.chains import BIG, LITTLE, RUST, ZSTD, poisson, prepare
from tests.rust.test_processes import in_a_fork

FILES = RustBackend.file_io
assert FILES is not None

SHAPE = (8, 6)
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}


def sharding(inner: list[int], codecs: list[Any], location: str = "end") -> dict[str, Any]:
    configuration = {
        "chunk_shape": inner,
        "codecs": codecs,
        "index_codecs": [LITTLE, "crc32c"],
        "index_location": location,
    }
    return {"name": "sharding_indexed", "configuration": configuration}


CHAINS: dict[str, list[Any]] = {
    "raw": [LITTLE],
    "zstd": [LITTLE, ZSTD],
    "transposed, big endian": [TRANSPOSE, BIG, ZSTD, "crc32c"],
    "sharded": [sharding([2, 3], [LITTLE, ZSTD])],
    "sharded, index first": [sharding([2, 3], [LITTLE, "crc32c"], "start")],
    "transposed shards": [TRANSPOSE, sharding([3, 2], [LITTLE, ZSTD])],
    "nested": [sharding([4, 6], [sharding([2, 3], [LITTLE, ZSTD])])],
    "compressed shards": [sharding([2, 3], [LITTLE]), ZSTD],
}


@pytest.fixture(params=list(CHAINS))
def chain(request: pytest.FixtureRequest) -> PreparedChain:
    return prepare(CHAINS[request.param], "int32", SHAPE, fill_value=-1)


@pytest.fixture(params=["sizes as they are", "smallest sizes"])
def windows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files at a time: as ever, or one or two."""
    if request.param == "smallest sizes":
        monkeypatch.setattr("chunkwright_rust._file_io.WINDOW_NBYTES", 1)
        monkeypatch.setattr("chunkwright_rust._file_io.MAX_OPEN", 2)


def keys_of(count: int) -> list[str]:
    return [f"c/{number // 3}/{number}" for number in range(count)]


def stored(root: Path, chain: PreparedChain, count: int) -> np.ndarray[Any, Any]:
    """Write chunks, all but every third, and return what an array of them holds."""
    values = poisson((count, *SHAPE), "i4")
    contents: list[Any] = list(chain.encode_many(list(values)))
    contents[2::3] = [None] * len(contents[2::3])
    values[2::3] = -1
    FILES.write(root, keys_of(count), contents)
    return values


def assert_reads(chain: PreparedChain, root: Path, values: np.ndarray[Any, Any], dtype: Any = "i4") -> None:
    """Whole and in part, in the array's dtype or another."""
    count = len(values)
    out = np.zeros(values.shape, dtype)
    there = FILES.read_into(chain, root, keys_of(count), Entries.whole(SHAPE, count), out)
    assert there.tolist() == [number % 3 != 2 for number in range(count)]
    np.testing.assert_array_equal(out, values)
    chunk = np.arange(count)
    part = Entries.boxes(
        chunk=chunk,
        start=np.tile([3, 1], (count, 1)),
        count=np.tile([2, 4], (count, 1)),
        out_start=np.stack([2 * chunk, 0 * chunk], axis=1),
    )
    few = np.zeros((2 * count, 4), dtype)
    FILES.read_into(chain, root, keys_of(count), part, few)
    np.testing.assert_array_equal(few, values[:, 3:5, 1:5].reshape(-1, 4))


@pytest.mark.usefixtures("windows")
def test_what_was_written_is_read_whole_and_in_part(chain: PreparedChain, tmp_path: Path) -> None:
    assert_reads(chain, tmp_path, stored(tmp_path, chain, 10))


def test_arrays_of_another_dtype_are_read_into_as_numpy_assigns(chain: PreparedChain, tmp_path: Path) -> None:
    values = stored(tmp_path, chain, 4)
    assert_reads(chain, tmp_path, values, "f8")
    assert_reads(chain, tmp_path, values, ">i4")


@pytest.mark.usefixtures("windows")
def test_strings_are_read_from_files(tmp_path: Path) -> None:
    chain = prepare(["vlen-utf8", ZSTD], np.dtypes.StringDType(), (3,), fill_value="")
    array = np.array(["a", "", "word"], np.dtypes.StringDType())
    FILES.write(tmp_path, ["0"], [chain.encode(array)])
    out = np.full(6, "x", np.dtypes.StringDType())
    entries = Entries.boxes(
        chunk=np.arange(2), start=np.zeros((2, 1), int), count=np.full((2, 1), 3), out_start=np.array([[0], [3]])
    )
    assert FILES.read_into(chain, tmp_path, ["0", "1"], entries, out).tolist() == [True, False]
    assert out.tolist() == ["a", "", "word", "", "", ""]


def test_only_chains_that_rust_runs_alone_are_served() -> None:
    both = prepare([LITTLE, {"name": "numcodecs.lzma", "configuration": {}}], "i4", (4,), backends=RUST_THEN_NUMCODECS)
    assert FILES.serves(prepare(CHAINS["nested"], "i4", SHAPE))
    assert not FILES.serves(both)


RUST_THEN_NUMCODECS = (RUST, NumcodecsBackend())


def test_entries_may_come_in_any_order_and_many_times(chain: PreparedChain, tmp_path: Path) -> None:
    values = stored(tmp_path, chain, 2)
    entries = Entries.boxes(
        chunk=np.array([1, 0, 1]),
        start=np.array([[0, 0], [2, 3], [7, 5]]),
        count=np.array([[1, 1], [1, 1], [1, 1]]),
        out_start=np.array([[0, 0], [0, 1], [0, 2]]),
    )
    out = np.zeros((1, 3), "i4")
    FILES.read_into(chain, tmp_path, keys_of(2), entries, out)
    assert out.tolist() == [[values[1, 0, 0], values[0, 2, 3], values[1, 7, 5]]]


def test_what_is_in_the_place_of_a_file_decides_whether_it_is_missing(chain: PreparedChain, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    FILES.write(tmp_path, ["file", "real"], [b"abc", chain.encode(np.full(SHAPE, 7, "i4"))])
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("nowhere")
    keys = ["folder", "file/below", "nothing", "dangling", "link"]
    out = np.zeros((5, *SHAPE), "i4")
    there = FILES.read_into(chain, tmp_path, keys, Entries.whole(SHAPE, 5), out)
    assert there.tolist() == [False, False, False, False, True]
    assert (out[:4] == -1).all()
    assert (out[4] == 7).all()


def test_a_file_that_must_not_be_read_is_an_error_with_its_path(chain: PreparedChain, tmp_path: Path) -> None:
    stored(tmp_path, chain, 1)
    path = tmp_path / keys_of(1)[0]
    path.chmod(0)

    def refused() -> bool:
        if os.geteuid() == 0:
            os.setuid(65534)
        with pytest.raises(PermissionError) as caught:
            FILES.read_into(chain, tmp_path, keys_of(1), Entries.whole(SHAPE, 1), np.zeros((1, *SHAPE), "i4"))
        return bool(caught.value.filename == str(path))

    assert in_a_fork(refused)


def test_a_folder_that_must_not_be_written_to_keeps_its_files(tmp_path: Path) -> None:
    FILES.write(tmp_path, ["a"], [b"old"])
    tmp_path.chmod(0o555)

    def refused() -> bool:
        if os.geteuid() == 0:
            os.setuid(65534)
        with pytest.raises(PermissionError) as caught:
            FILES.write(tmp_path, ["a"], [b"new"])
        return bool(caught.value.filename == str(tmp_path / "a"))

    assert in_a_fork(refused)
    tmp_path.chmod(0o755)
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_link_to_itself_is_an_error_with_its_path(chain: PreparedChain, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="loop") as caught:
        FILES.read_into(chain, tmp_path, ["loop"], Entries.whole(SHAPE, 1), np.zeros((1, *SHAPE), "i4"))
    assert caught.value.filename == str(tmp_path / "loop")


@pytest.mark.parametrize("keep", [0, 1, 5, 30, -1])
def test_files_that_were_cut_off_are_corrupt_chunks(chain: PreparedChain, tmp_path: Path, keep: int) -> None:
    stored(tmp_path, chain, 2)
    path = tmp_path / keys_of(2)[1]
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CorruptChunkError) as caught:
        FILES.read_into(chain, tmp_path, keys_of(2), Entries.whole(SHAPE, 2), np.zeros((2, *SHAPE), "i4"))
    assert caught.value.position == 1
    assert caught.value.codec is not None


def test_an_index_that_points_beyond_the_file_is_an_error_of_the_index(tmp_path: Path) -> None:
    plain = sharding([2, 3], [LITTLE])
    plain["configuration"]["index_codecs"] = [LITTLE]
    chain = prepare([plain], "i4", SHAPE)
    shard = bytearray(memoryview(chain.encode(np.ones(SHAPE, "i4"))))
    shard[-8:] = (2**62).to_bytes(8, "little")
    FILES.write(tmp_path, ["0"], [bytes(shard)])
    with pytest.raises(ShardIndexError):
        FILES.read_into(chain, tmp_path, ["0"], Entries.whole(SHAPE, 1), np.zeros((1, *SHAPE), "i4"))


HOSTILE = ["../secret", "c/../../secret", "/etc/passwd", "c/0\0", "..", "c/.."]


@pytest.mark.parametrize("key", HOSTILE)
def test_keys_that_lead_out_of_the_root_are_refused(tmp_path: Path, key: str) -> None:
    chain = prepare([LITTLE], "u1", (3,))
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_bytes(b"abc")
    with pytest.raises(ValueError, match="leads out of the store"):
        FILES.read_into(chain, root, ["c/0", key], Entries.whole((3,), 2), np.zeros((2, 3), "u1"))
    with pytest.raises(ValueError, match="leads out of the store"):
        FILES.write(root, ["c/0", key], [b"x", b"x"])
    assert (tmp_path / "secret").read_bytes() == b"abc"
    assert list(root.iterdir()) == []


def test_names_that_only_look_like_the_parent_are_files(tmp_path: Path) -> None:
    FILES.write(tmp_path, ["..a/b..", "./c"], [b"1", b"2"])
    assert (tmp_path / "..a" / "b..").read_bytes() == b"1"
    assert (tmp_path / "c").read_bytes() == b"2"


def names(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


def test_writing_makes_folders_replaces_and_removes(tmp_path: Path) -> None:
    FILES.write(tmp_path, ["a/b/0", "a/1", "2"], [b"0", b"1", b"2"])
    FILES.write(tmp_path, ["a/b/0", "a/1", "gone"], [b"new", None, None])
    assert names(tmp_path) == ["2", "a/b/0"]
    assert (tmp_path / "a/b/0").read_bytes() == b"new"


def test_a_folder_in_the_place_of_a_file_is_removed_or_an_error_that_leaves_it(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inside").write_bytes(b"kept")
    with pytest.raises(IsADirectoryError) as caught:
        FILES.write(tmp_path, ["folder"], [b"new"])
    assert caught.value.filename == str(tmp_path / "folder")
    assert names(tmp_path) == ["folder/inside"]
    FILES.write(tmp_path, ["folder"], [None])
    assert names(tmp_path) == []


def test_new_files_have_the_permissions_that_the_umask_leaves(tmp_path: Path) -> None:
    code = (
        "import os, sys; os.umask(0o027)\n"
        "from chunkwright_rust import RustBackend\n"
        "RustBackend.file_io.write(sys.argv[1], ['a', 'b/c'], [b'1', b'2'])\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o750


def test_a_link_is_replaced_and_what_it_leads_to_is_not(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    FILES.write(tmp_path, ["link"], [b"new"])
    assert (tmp_path / "target").read_bytes() == b"old"
    assert not (tmp_path / "link").is_symlink()
    assert names(tmp_path) == ["link", "target"]


@contextmanager
def largest_file(nbytes: int) -> Iterator[None]:
    """Let the system refuse larger files, as a full disk does."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


def test_a_write_that_fails_half_way_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    FILES.write(tmp_path, ["a", "b"], [b"old", b"old"])
    with largest_file(1000), pytest.raises(OSError, match="File too large") as caught:
        FILES.write(tmp_path, ["a", "b"], [b"x" * 5000, b"y" * 5000])
    assert caught.value.filename in {str(tmp_path / "a"), str(tmp_path / "b")}
    assert names(tmp_path) == ["a", "b"]
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == b"old"


def test_a_file_where_a_folder_should_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"file")
    with pytest.raises(NotADirectoryError):
        FILES.write(tmp_path, ["a/b"], [b"new"])
    assert names(tmp_path) == ["a"]


def test_whole_chunks_are_loaded_in_one_call(tmp_path: Path) -> None:
    FILES.write(tmp_path, ["a", "b"], [b"abc", b""])
    loaded = FILES.load(tmp_path, ["a", "nothing", "b"])
    assert [data if data is None else bytes(data) for data in loaded] == [b"abc", None, b""]


def test_buffers_in_storage_have_views_of_what_is_asked_for(tmp_path: Path) -> None:
    FILES.write(tmp_path, ["a", "b"], [b"abcdef", b"xyz"])
    files = _native.Files(tmp_path, ["a", "b"])
    assert files.open() == [6, 3]
    rows = Buffers(files, np.array([1, 0, 0]), np.array([1, -1, 2]), np.array([2, 0, 3]))
    assert [view if view is None else bytes(view) for view in rows.views()] == [b"yz", None, b"cde"]
    assert rows.view(1) is None
    assert bytes(rows.view(2) or b"") == b"cde"
    both = Buffers.concatenate([rows, Buffers.of([b"memory"])])
    assert [None if view is None else bytes(view) for view in both.views()] == [b"yz", None, b"cde", b"memory"]


def test_a_file_that_shrinks_after_it_was_opened_is_a_corrupt_chunk(tmp_path: Path) -> None:
    FILES.write(tmp_path, ["a"], [b"abcdef"])
    files = _native.Files(tmp_path, ["a"])
    files.open()
    os.truncate(tmp_path / "a", 2)
    with pytest.raises(CorruptChunkError, match="shorter"):
        files.load(np.array([0]), np.array([0]), np.array([6]))


def test_open_files_stay_the_ones_that_were_opened(tmp_path: Path) -> None:
    FILES.write(tmp_path, ["a"], [b"old"])
    files = _native.Files(tmp_path, ["a"])
    files.open()
    FILES.write(tmp_path, ["a"], [b"new"])
    (data,) = files.load(np.array([0]), np.array([0]), np.array([3]))
    assert bytes(data or b"") == b"old"
    files.close()
    (data,) = files.load(np.array([0]), np.array([0]), np.array([3]))
    assert bytes(data or b"") == b"new"


def test_nothing_stays_open_after_a_read_or_a_failure(chain: PreparedChain, tmp_path: Path) -> None:
    values = stored(tmp_path, chain, 6)
    assert_reads(chain, tmp_path, values)
    before = len(os.listdir("/proc/self/fd"))
    assert_reads(chain, tmp_path, values)
    (tmp_path / keys_of(6)[4]).write_bytes(b"")
    with pytest.raises(CodecError):
        FILES.read_into(chain, tmp_path, keys_of(6), Entries.whole(SHAPE, 6), np.zeros((6, *SHAPE), "i4"))
    assert len(os.listdir("/proc/self/fd")) == before


def test_many_shards_are_read_with_few_descriptors(tmp_path: Path) -> None:
    chain = prepare(CHAINS["sharded"], "int32", SHAPE, fill_value=-1)
    values = stored(tmp_path, chain, 300)
    old = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 64, old[1]))
    try:
        assert_reads(chain, tmp_path, values)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, old)


def test_a_read_that_is_stopped_leaves_the_rest_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chunkwright_rust._file_io.WINDOW_NBYTES", 1)
    chain = prepare(CHAINS["zstd"], "int32", SHAPE, fill_value=-1)
    values = stored(tmp_path, chain, 2)

    class StopAfter:
        def __init__(self) -> None:
            self.left = 1

        def __bool__(self) -> bool:
            self.left -= 1
            return self.left < 0

    out = np.full((2, *SHAPE), 99, "i4")
    FILES.read_into(chain, tmp_path, keys_of(2), Entries.whole(SHAPE, 2), out, stop=StopAfter())
    np.testing.assert_array_equal(out[0], values[0])
    assert (out[1] == 99).all()


def test_a_forked_child_reads_and_writes(chain: PreparedChain, tmp_path: Path) -> None:
    values = stored(tmp_path, chain, 10)
    assert_reads(chain, tmp_path, values)

    def again() -> bool:
        assert_reads(chain, tmp_path, values)
        FILES.write(tmp_path, ["child"], [b"written"])
        return True

    assert in_a_fork(again)
    assert (tmp_path / "child").read_bytes() == b"written"


def test_readers_beside_a_writer_see_one_version_of_each_shard(tmp_path: Path) -> None:
    chain = prepare([sharding([2, 3], [LITTLE])], "int32", SHAPE, fill_value=-1)
    # Versions differ in size, so that the index of one is wrong for the other.
    versions = [np.full(SHAPE, 5, "i4"), np.full(SHAPE, -1, "i4")]
    versions[1][:, :3] = 6
    encoded = [chain.encode(version) for version in versions]
    FILES.write(tmp_path, ["0"], encoded[:1])
    over, failures = threading.Event(), []

    def read() -> None:
        out = np.zeros((1, *SHAPE), "i4")
        while not over.is_set():
            FILES.read_into(chain, tmp_path, ["0"], Entries.whole(SHAPE, 1), out)
            if not any((out[0] == version).all() for version in versions):
                failures.append(out.copy())
                return

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for turn in range(400):
        FILES.write(tmp_path, ["0"], [encoded[turn % 2]])
    over.set()
    for reader in readers:
        reader.join()
    assert failures == []


def test_writers_of_one_file_leave_one_of_their_versions(tmp_path: Path) -> None:
    contents = [bytes([number]) * 3000 for number in range(4)]

    def write(content: bytes) -> None:
        for _ in range(100):
            FILES.write(tmp_path, ["deep/0"], [content])

    writers = [threading.Thread(target=write, args=(content,)) for content in contents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert (tmp_path / "deep/0").read_bytes() in contents
    assert names(tmp_path) == ["deep/0"]
