"""Writes that several threads share: each reads, encodes and stores some chunks."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunkwright import ChecksumError
from chunkwright_store import (
    LOCKS,
    FileSink,
    FileSource,
    FunctionSource,
    Limits,
    MappingSink,
    MappingSource,
    Stop,
    WriteJob,
    drive_sync,
    write_sync,
)
from chunkwright_store._share import take_turns
from tests.store_bridge.volumes import BOXES, CHAINS, Volume, decoded, volume

FOUR = Limits(max_workers=4)


@pytest.fixture(autouse=True)
def _little_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """One chunk for each turn."""
    monkeypatch.setattr(drive_sync, "TURN_BYTES", 1)


def write_job(made: Volume, box: Any, source: Callable[[str], Any], sink: Callable[[str], Any]) -> WriteJob:
    entries, keys = made.entries(box)
    return WriteJob(
        plan=made.prepared.plan_write(entries),
        sources=[source(key) for key in keys],
        sinks=[sink(key) for key in keys],
        keys=keys,
        lock_keys=keys,
        side_by_side=True,
    )


def in_memory(made: Volume, box: Any, stored: dict[str, Any], sink: type[MappingSink] = MappingSink) -> WriteJob:
    return write_job(made, box, lambda key: MappingSource(stored, key), lambda key: sink(stored, key))


@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
@pytest.mark.parametrize("layout", list(CHAINS))
def test_any_box_of_any_layout_is_written(layout: str, box: Any, tmp_path: Path) -> None:
    made, new = volume(layout), np.zeros((30, 26), "u2")
    for key, data in made.stored.items():
        FileSink(tmp_path / key).set(data)
    place = tuple(slice(*ends) for ends in box)
    new[...] = made.data
    new[place] += 1000
    job = write_job(made, box, lambda key: FileSource(tmp_path / key), lambda key: FileSink(tmp_path / key))
    write_sync([job], new[place], FOUR)
    stored = {key: (tmp_path / key).read_bytes() for key in made.stored}
    np.testing.assert_array_equal(decoded(made, stored), new)
    assert {file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file()} == set(stored)
    assert len(LOCKS) == 0


def test_threads_are_at_it_at_the_same_time() -> None:
    made, stored, meeting = volume("chunks"), dict[str, Any](), threading.Barrier(3, timeout=20)
    first = threading.Semaphore(3)

    class Meeting(MappingSink):
        def set(self, data: Any) -> None:
            if first.acquire(blocking=False):
                meeting.wait()
            super().set(data)

    write_sync([in_memory(made, BOXES["everything"], stored, Meeting)], made.data, Limits(max_workers=3))
    np.testing.assert_array_equal(decoded(made, stored), made.data)


def test_chunks_of_which_something_is_kept_are_read_and_the_others_are_not() -> None:
    made, asked = volume("chunks"), list[str]()

    def source(key: str) -> FunctionSource:
        def fetch(wanted: Any) -> bytes:
            asked.append(key)
            return made.stored[key]

        return FunctionSource(fetch)

    job = write_job(made, ((0, 24), (0, 20)), source, lambda key: MappingSink(made.stored, key))
    write_sync([job], made.data[:24, :20] + 1, FOUR)
    assert sorted(asked) == ["c/0/1", "c/1/1"]
    assert (decoded(made, made.stored) - made.data == np.pad(np.ones((24, 20)), ((0, 6), (0, 6)))).all()


def test_an_error_names_the_chunk_and_leaves_it_and_every_other_one_whole() -> None:
    made = volume("chunks")
    made.stored["c/2/2"] = b"\0" * len(made.stored["c/2/2"])
    before = dict(made.stored)
    box = ((1, 29), (1, 25))
    with pytest.raises(ChecksumError, match="'c/2/2'"):
        write_sync([in_memory(made, box, made.stored)], made.expected(box) + 1000, FOUR)
    assert made.stored.pop("c/2/2") == before["c/2/2"]
    difference = decoded(made, made.stored) - made.data
    assert set(np.unique(difference[:24]).tolist()) <= {0, 1000}
    for key, data in made.stored.items():
        row, column = (int(part) for part in key.split("/")[1:])
        inside = difference[max(12 * row, 1) : min(12 * row + 12, 29), max(12 * column, 1) : min(12 * column + 12, 25)]
        assert data == before[key] or (inside == 1000).all()
    assert len(LOCKS) == 0


def test_a_failed_set_ends_the_write_and_no_thread_goes_on_afterwards() -> None:
    made, stored, at_work = volume("chunks"), dict[str, Any](), list[str]()

    class Full(MappingSink):
        def set(self, data: Any) -> None:
            at_work.append("set")
            try:
                if len(stored) == 2:
                    raise OSError("disk full")
                super().set(data)
            finally:
                at_work.pop()

    with pytest.raises(OSError, match="disk full"):
        write_sync([in_memory(made, BOXES["everything"], stored, Full)], made.data, FOUR)
    assert not at_work
    assert 2 <= len(stored) < 9
    assert len(LOCKS) == 0


def test_a_write_that_is_told_to_stop_ends_early() -> None:
    made, stored, stop = volume("chunks"), dict[str, Any](), Stop()

    class Stopping(MappingSink):
        def set(self, data: Any) -> None:
            stop.set()
            super().set(data)

    write_sync([in_memory(made, BOXES["everything"], stored, Stopping)], made.data, FOUR, stop=stop)
    assert 1 <= len(stored) <= 4


def test_a_few_chunks_are_left_to_one_thread() -> None:
    made, stored, threads = volume("chunks"), dict[str, Any](), set[int]()

    class Noting(MappingSink):
        def set(self, data: Any) -> None:
            threads.add(threading.get_ident())
            super().set(data)

    write_sync([in_memory(made, ((0, 12), (0, 26)), stored, Noting)], made.data[:12], Limits(max_workers=1))
    assert threads == {threading.get_ident()}
    assert len(stored) == 3


def test_turns_are_taken_until_nothing_is_left() -> None:
    left, done, mutex = list(range(1000)), list[int](), threading.Lock()

    def turn() -> bool:
        with mutex:
            if left:
                done.append(left.pop())
            return bool(left)

    take_turns(turn, 4)
    assert sorted(done) == list(range(1000))


def test_the_error_of_a_turn_is_raised_when_the_others_have_ended() -> None:
    begun, failed, ended = threading.Event(), threading.Event(), list[str]()

    def turn() -> bool:
        if threading.current_thread() is not threading.main_thread():
            begun.set()
            assert failed.wait(20)
            ended.append("helper")
            return True
        assert begun.wait(20)
        failed.set()
        raise KeyError("first")

    with pytest.raises(KeyError, match="first"):
        take_turns(turn, 2)
    assert ended == ["helper"]


def test_nobody_waits_for_helpers_that_are_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    late: list[Callable[[], object]] = []

    class Busy:
        def submit(self, function: Callable[[], object]) -> None:
            late.append(function)

    monkeypatch.setattr("chunkwright_store._share.HELPERS", Busy())
    left = [1, 2, 3]

    def turn() -> bool:
        left.pop()
        return bool(left)

    take_turns(turn, 3)
    assert not left
    gone = weakref.ref(turn)
    del turn
    gc.collect()
    assert gone() is None  # though those who are late are still in the queue
    for function in late:
        function()  # too late: there is nothing to do, and nothing is done
