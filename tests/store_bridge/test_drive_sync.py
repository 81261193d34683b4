"""Plans driven on the calling thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from obstore.store import MemoryStore

from chunkwright import ChecksumError, CodecError, ShardIndexError
from chunkwright_store import (
    LOCKS,
    ByteRange,
    ByteSuffix,
    FileSink,
    FileSource,
    FunctionSource,
    Limits,
    MappingSink,
    MappingSource,
    ObspecSink,
    ObspecSource,
    ReadJob,
    Stop,
    WriteJob,
    drive_sync,
    read_sync,
    write_sync,
)
from chunkwright_store.sources import cut
from tests.store_bridge.volumes import BOXES, CHAINS, Volume, decoded, volume

LAYOUTS = list(CHAINS)


class Recording:
    """A source that writes down what it is asked for."""

    def __init__(self, stored: dict[str, bytes], key: str, requests: list[tuple[str, ByteRange]]) -> None:
        self._stored, self._key, self._requests = stored, key, requests

    def get_ranges(self, ranges: Sequence[ByteRange]) -> list[Any]:
        self._requests += [(self._key, wanted) for wanted in ranges]
        data = self._stored.get(self._key)
        return [None if data is None else cut(data, wanted) for wanted in ranges]


class Places:
    """The volume's chunks in some kind of store."""

    def __init__(self, kind: str, stored: dict[str, bytes], folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.mapping: dict[str, Any] = dict(stored)
        self.objects = MemoryStore()
        for key, data in stored.items():
            self.sink(key).set(data)

    def source(self, key: str) -> Any:
        match self.kind:
            case "mapping":
                return MappingSource(self.mapping, key)
            case "files":
                return FileSource(self.folder / key)
            case "functions":
                return FunctionSource(MappingReader(self.mapping, key))
            case _:
                return ObspecSource(self.objects, key)

    def sink(self, key: str) -> Any:
        match self.kind:
            case "files":
                return FileSink(self.folder / key)
            case "obspec":
                return ObspecSink(self.objects, key)
            case _:
                return MappingSink(self.mapping, key)

    def content(self, keys: Sequence[str]) -> dict[str, Any]:
        held = {key: self.source(key).get_ranges([None])[0] for key in keys}
        return {key: data for key, data in held.items() if data is not None}


class MappingReader:
    """A function of the caller's own, as an object to have the key at hand."""

    def __init__(self, mapping: dict[str, Any], key: str) -> None:
        self._mapping, self._key = mapping, key

    def __call__(self, wanted: ByteRange) -> Any:
        data = self._mapping.get(self._key)
        return None if data is None else cut(data, wanted)


@pytest.fixture(params=["mapping", "files", "functions", "obspec"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Volume], Places]:
    return lambda made: Places(request.param, made.stored, tmp_path)


@pytest.fixture(params=["inline", "overlapped"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways in which a read can go, whatever its size."""
    monkeypatch.setattr(drive_sync, "OVERLAP_SECONDS", 0 if request.param == "overlapped" else 1e9)
    return str(request.param)


def read(made: Volume, box: Any, source: Callable[[str], Any], limits: Limits | None = None) -> Any:
    entries, keys = made.entries(box)
    plan = made.prepared.plan_read(entries)
    out = np.zeros([stop - start for start, stop in box], made.data.dtype)
    read_sync([ReadJob(plan=plan, sources=[source(key) for key in keys], keys=keys)], out, limits)
    return out, plan.statuses


def write_job(made: Volume, box: Any, source: Callable[[str], Any], sink: Callable[[str], Any]) -> WriteJob:
    entries, keys = made.entries(box)
    return WriteJob(
        plan=made.prepared.plan_write(entries),
        sources=[source(key) for key in keys],
        sinks=[sink(key) for key in keys],
        keys=keys,
        lock_keys=keys,
    )


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_box_of_any_layout_is_read_from_any_source(layout: str, box: Any, places: Any) -> None:
    made = volume(layout)
    out, statuses = read(made, box, places(made).source)
    np.testing.assert_array_equal(out, made.expected(box))
    assert statuses.all()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_read_in_the_smallest_steps_gives_the_same(layout: str, places: Any) -> None:
    made = volume(layout)
    limits = Limits(max_gap=0, max_size=1, max_bytes_in_flight=1, max_workers=1)
    out, _ = read(made, BOXES["a corner"], places(made).source, limits)
    np.testing.assert_array_equal(out, made.expected(BOXES["a corner"]))


@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_box_of_any_layout_is_written_to_any_sink(layout: str, box: Any, places: Any) -> None:
    made = volume(layout)
    held = places(made)
    made.expected(box)[...] += 1000
    write_sync([write_job(made, box, held.source, held.sink)], made.expected(box))
    np.testing.assert_array_equal(decoded(made, held.content(list(made.stored))), made.data)
    assert len(LOCKS) == 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_write_in_the_smallest_steps_gives_the_same(layout: str, places: Any) -> None:
    made = volume(layout)
    held = places(made)
    made.data[...] += 1000
    job = write_job(made, BOXES["everything"], held.source, held.sink)
    write_sync([job], made.data, Limits(max_bytes_in_flight=1))
    np.testing.assert_array_equal(decoded(made, held.content(list(made.stored))), made.data)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_chunks_that_become_the_fill_value_are_deleted(layout: str, places: Any) -> None:
    made = volume(layout)
    held = places(made)
    zeros = np.zeros((30, 26), made.data.dtype)
    write_sync([write_job(made, BOXES["everything"], held.source, held.sink)], zeros)
    assert held.content(list(made.stored)) == {}


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_missing_chunks_are_the_fill_value_and_are_told(layout: str, places: Any) -> None:
    made = volume(layout)
    del made.stored["c/1/1"]
    made.data[12:24, 12:24] = 0
    out, statuses = read(made, BOXES["a corner"], places(made).source)
    np.testing.assert_array_equal(out, made.expected(BOXES["a corner"]))
    _, keys = made.entries(BOXES["a corner"])
    assert [key for key, present in zip(keys, statuses, strict=True) if not present] == ["c/1/1"]


def test_a_shard_is_asked_for_its_index_and_the_touched_inner_chunks_alone() -> None:
    made, requests = volume("shards"), list[tuple[str, ByteRange]]()
    read(made, ((4, 8), (0, 8)), lambda key: Recording(made.stored, key, requests), Limits(max_gap=0))
    inner = 4 * 4 * 2 + 4
    index = 9 * 16 + 4
    assert [wanted for _, wanted in requests[:1]] == [ByteSuffix(index)]
    assert sum(wanted[1] - wanted[0] for _, wanted in requests[1:] if isinstance(wanted, tuple)) == 2 * inner


def test_close_ranges_are_read_with_one_request() -> None:
    made, requests = volume("shards"), list[tuple[str, ByteRange]]()
    read(made, ((0, 12), (0, 4)), lambda key: Recording(made.stored, key, requests))
    assert len(requests) == 2


def test_a_few_shards_are_begun_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made = volume("shards")
    begun: list[set[str]] = [set()]

    class Open(Recording):
        def get_ranges(self, ranges: Sequence[ByteRange]) -> list[Any]:
            begun.append(begun[-1] | {self._key})
            return super().get_ranges(ranges)

        def close(self) -> None:
            begun.append(begun[-1] - {self._key})

    monkeypatch.setattr(drive_sync, "MAX_OPEN", 2)
    out, _ = read(made, ((1, 29), (1, 25)), lambda key: Open(made.stored, key, []))
    np.testing.assert_array_equal(out, made.data[1:29, 1:25])
    assert max(map(len, begun)) == 2
    assert begun[-1] == set()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("layout", "at", "error"),
    [("chunks", 5, ChecksumError), ("shards", 5, ChecksumError), ("shards", -3, ChecksumError)],
)
def test_an_error_names_the_chunk(layout: str, at: int, error: type[CodecError], places: Any) -> None:
    made = volume(layout)
    damaged = bytearray(made.stored["c/1/0"])
    damaged[at] ^= 255
    made.stored["c/1/0"] = bytes(damaged)
    with pytest.raises(error, match="'c/1/0'") as caught:
        read(made, BOXES["everything"], places(made).source)
    assert caught.value.key == "c/1/0"


def test_a_shard_that_is_cut_short_is_an_index_error_that_names_it() -> None:
    made = volume("shards")
    made.stored["c/0/1"] = made.stored["c/0/1"][:20]
    with pytest.raises(ShardIndexError, match="'c/0/1'"):
        read(made, BOXES["a corner"], lambda key: MappingSource(made.stored, key))


def test_an_error_while_old_bytes_are_decoded_names_the_chunk_and_stores_nothing() -> None:
    made = volume("chunks")
    made.stored["c/0/1"] = b"\0" * len(made.stored["c/0/1"])
    before = dict(made.stored)
    job = write_job(
        made,
        BOXES["a corner"],
        lambda key: MappingSource(made.stored, key),
        lambda key: MappingSink(made.stored, key),
    )
    with pytest.raises(ChecksumError, match="'c/0/1'"):
        write_sync([job], made.expected(BOXES["a corner"]))
    assert made.stored == before
    assert len(LOCKS) == 0


@pytest.mark.usefixtures("way")
def test_errors_of_a_store_pass_through_as_they_are() -> None:
    made = volume("chunks")

    def broken(wanted: ByteRange) -> bytes:
        raise PermissionError("not yours")

    with pytest.raises(PermissionError, match="not yours"):
        read(made, BOXES["everything"], lambda key: FunctionSource(broken))


@pytest.mark.usefixtures("way")
def test_an_error_of_a_later_window_passes_through_as_well() -> None:
    made = volume("chunks")

    def source(key: str) -> FunctionSource:
        def fetch(wanted: ByteRange) -> Any:
            if key == "c/2/1":
                raise PermissionError("not yours")
            return cut(made.stored[key], wanted)

        return FunctionSource(fetch)

    with pytest.raises(PermissionError, match="not yours"):
        read(made, BOXES["everything"], source, Limits(max_bytes_in_flight=1))


@pytest.mark.parametrize("fails", ["while the next chunk is encoded", "when nothing is left to encode"])
def test_a_failed_set_is_raised_whenever_it_happens(fails: str) -> None:
    made, last = volume("chunks"), fails == "when nothing is left to encode"
    stored: dict[str, Any] = {}

    class Full(MappingSink):
        def set(self, data: Any) -> None:
            if len(stored) == (3 if last else 0):
                raise OSError("disk full")
            super().set(data)

    job = write_job(made, ((0, 24), (0, 24)), lambda key: MappingSource({}, key), lambda key: Full(stored, key))
    with pytest.raises(OSError, match="disk full"):
        write_sync([job], made.data[:24, :24], Limits(max_bytes_in_flight=1))
    assert len(stored) == (3 if last else 0)


def test_a_failed_set_leaves_other_chunks_whole() -> None:
    made = volume("chunks")
    before = dict(made.stored)

    class Full(MappingSink):
        def set(self, data: Any) -> None:
            raise OSError("disk full")

    job = write_job(
        made,
        BOXES["everything"],
        lambda key: MappingSource(made.stored, key),
        lambda key: (Full if key == "c/1/1" else MappingSink)(made.stored, key),
    )
    with pytest.raises(OSError, match="disk full"):
        write_sync([job], made.data + 1000, Limits(max_bytes_in_flight=1))
    rows = decoded(made, made.stored)
    for key, data in made.stored.items():
        assert data == before[key] or key != "c/1/1"
    assert set(np.unique(rows - made.data).tolist()) <= {0, 1000}
    assert len(LOCKS) == 0


def test_a_read_that_fails_while_the_next_window_is_fetched_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive_sync, "OVERLAP_SECONDS", 0)
    made = volume("chunks")
    made.stored["c/0/0"] = b"\0" * len(made.stored["c/0/0"])
    asked, answered = [], []
    failing = threading.Event()

    def slow(key: str) -> FunctionSource:
        def fetch(wanted: ByteRange) -> Any:
            asked.append(key)
            if key != "c/0/0":
                failing.wait(30)
            answered.append(key)
            return cut(made.stored[key], wanted)

        return FunctionSource(fetch)

    class Failing:
        """A plan whose work fails, and which lets the fetching thread go on only then."""

        def __init__(self, plan: Any) -> None:
            self._plan = plan

        def __getattr__(self, name: str) -> Any:
            return getattr(self._plan, name)

        def take(self, max_bytes: int) -> Any:
            failing.set()
            return self._plan.take(max_bytes)

    entries, keys = made.entries(BOXES["everything"])
    plan = Failing(made.prepared.plan_read(entries))
    job = ReadJob(plan=plan, sources=[slow(key) for key in keys], keys=keys)
    with pytest.raises(ChecksumError):
        read_sync([job], np.zeros((30, 26), "u2"), Limits(max_bytes_in_flight=1))
    assert asked == answered
    assert len(asked) == 2


def test_a_read_that_is_told_to_stop_ends_early() -> None:
    made, stop, requests = volume("chunks"), Stop(), list[str]()

    def source(key: str) -> FunctionSource:
        def fetch(wanted: ByteRange) -> Any:
            requests.append(key)
            stop.set()
            return made.stored[key]

        return FunctionSource(fetch)

    entries, keys = made.entries(BOXES["everything"])
    job = ReadJob(plan=made.prepared.plan_read(entries), sources=[source(key) for key in keys], keys=keys)
    read_sync([job], np.zeros((30, 26), "u2"), Limits(max_bytes_in_flight=1), stop=stop)
    assert len(requests) == 1


def test_plans_of_several_chunk_shapes_fill_one_array() -> None:
    made, out, jobs = volume("chunks"), np.zeros((30, 26), "u2"), []
    for first, stop in ((0, 12), (12, 30)):
        entries, keys = made.entries(((first, stop), (0, 26)))
        plan = made.prepared.plan_read(attrs.evolve(entries, out_start=entries.out_start + np.array([first, 0])))
        jobs.append(ReadJob(plan=plan, sources=[MappingSource(made.stored, key) for key in keys], keys=keys))
    read_sync(jobs, out)
    np.testing.assert_array_equal(out, made.data)


def test_threads_that_write_different_inner_chunks_of_one_shard_lose_nothing() -> None:
    made = volume("shards")
    stored: dict[str, Any] = {}
    rows = [((row, row + 1), (0, 26)) for row in range(30)]

    def write(mine: list[Any]) -> None:
        for box in mine:
            job = write_job(made, box, lambda key: MappingSource(stored, key), lambda key: MappingSink(stored, key))
            write_sync([job], made.expected(box))

    threads = [threading.Thread(target=write, args=(rows[first::5],)) for first in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(decoded(made, stored), made.data)
    assert len(LOCKS) == 0


def test_a_reader_never_mixes_two_versions_of_a_shard(tmp_path: Path) -> None:
    old, new = volume("shards"), volume("shards")
    new.data[...] = new.data[::-1] % 251 + 1
    for held in (MappingVersions(), FileVersions(tmp_path)):
        held.put(old.stored["c/0/0"])
        source = held.source()
        entries, keys = old.entries(((0, 8), (0, 8)))
        plan = old.prepared.plan_read(entries)
        out = np.zeros((8, 8), "u2")

        def replaced(wanted: ByteRange, source: Any = source, held: Any = held) -> Any:
            [data] = source.get_ranges([wanted])
            held.put(b"\0" * 700)  # between the index and the inner chunks, and with nothing at its place
            return data

        read_sync([ReadJob(plan=plan, sources=[FunctionSource(replaced)], keys=keys)], out)
        np.testing.assert_array_equal(out, old.data[:8, :8])


class MappingVersions:
    def __init__(self) -> None:
        self._mapping: dict[str, Any] = {}

    def put(self, data: bytes) -> None:
        MappingSink(self._mapping, "c/0/0").set(data)

    def source(self) -> Any:
        return MappingSource(self._mapping, "c/0/0")


class FileVersions:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "c/0/0"

    def put(self, data: bytes) -> None:
        FileSink(self._path).set(data)

    def source(self) -> Any:
        return FileSource(self._path)
