"""Several writers of one shard: threads, event loops, store objects, cancellation, forks. And readers beside them.

A shard is read, changed and written back by each of them, so whoever is not serialised loses what another one
wrote in between, and no error is raised.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore, MemoryStore, WrapperStore

from tests.support.pipelines import Pipeline
from tests.support.processes import run_python
from tests.support.stores import Gate

WRITERS = 16
LENGTH = 64


class Driven(WrapperStore):
    """No longer exactly a store of zarr's, so it is driven asynchronously."""


def _create(store: Any) -> None:
    zarr.create_array(store, shape=(WRITERS * LENGTH,), chunks=(LENGTH,), shards=(WRITERS * LENGTH,), dtype="i4")


def _place(writer: int) -> slice:
    return slice(writer * LENGTH, (writer + 1) * LENGTH)


def _assert_nothing_lost(store: Any) -> None:
    found = zarr.open_array(store, mode="r")[...].reshape(WRITERS, LENGTH)
    assert found.tolist() == [[writer + 1] * LENGTH for writer in range(WRITERS)]


def _in_threads(jobs: Iterable[Callable[[], Any]]) -> None:
    """Start all at once, wait for all, and raise what any of them raised."""
    todo = list(jobs)
    gate = threading.Barrier(len(todo))
    errors: list[BaseException] = []

    def run(job: Callable[[], Any]) -> None:
        try:
            gate.wait()
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in todo]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error


def _write_in_threads(stores: list[Any]) -> None:
    arrays = [zarr.open_array(store, mode="r+") for store in stores]

    def job(writer: int) -> Callable[[], None]:
        return lambda: arrays[writer % len(arrays)].__setitem__(_place(writer), writer + 1)

    _in_threads(job(writer) for writer in range(WRITERS))


@pytest.fixture(params=["local", "memory", "driven"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """One store of each kind that is driven in a way of its own."""
    return {
        "local": lambda: LocalStore(tmp_path / "a"),
        "memory": MemoryStore,
        "driven": lambda: Driven(MemoryStore()),
    }[request.param]()


@pytest.mark.usefixtures("thresholds")
def test_threads_that_write_one_shard_lose_nothing(pipeline: Pipeline, store: Any) -> None:
    """zarr-python#3682 and #3514, xarray#10831, dask#12583: a third to a half of the data went missing."""
    _create(store)
    _write_in_threads([store])
    _assert_nothing_lost(store)


def test_store_objects_on_one_directory_are_one_store(pipeline: Pipeline, tmp_path: Path) -> None:
    """dask#12583: each worker opens the store for itself, perhaps under another name."""
    _create(LocalStore(tmp_path / "a"))
    (tmp_path / "link").symlink_to(tmp_path / "a")
    paths = [tmp_path / "a", tmp_path / "link", tmp_path / "x" / ".." / "a"]
    (tmp_path / "x").mkdir()
    _write_in_threads([LocalStore(path) for path in paths])
    _assert_nothing_lost(LocalStore(tmp_path / "a"))


def test_store_objects_on_one_dictionary_are_one_store(pipeline: Pipeline) -> None:
    """The same for memory, and for zarr's bare wrapper around a store."""
    shared = MemoryStore()
    _create(shared)
    _write_in_threads([shared, MemoryStore(shared._store_dict), WrapperStore(shared)])
    _assert_nothing_lost(shared)


@pytest.mark.usefixtures("thresholds")
def test_event_loops_in_two_threads_lose_nothing(pipeline: Pipeline, store: Any) -> None:
    """zarr-python#3682: the writers of one shard are tasks of two loops, and plain threads besides."""
    _create(store)
    array = zarr.open_array(store, mode="r+")

    def on_a_loop(writers: range) -> None:
        async def write_all() -> None:
            await asyncio.gather(*(array.async_array.setitem(_place(writer), writer + 1) for writer in writers))

        asyncio.run(write_all())

    def in_this_thread(writers: range) -> None:
        for writer in writers:
            array[_place(writer)] = writer + 1

    _in_threads(
        [
            lambda: on_a_loop(range(6)),
            lambda: on_a_loop(range(6, 12)),
            lambda: in_this_thread(range(12, WRITERS)),
        ]
    )
    _assert_nothing_lost(store)


def test_a_deletion_and_writes_of_one_shard_are_serialised(pipeline: Pipeline, store: Any) -> None:
    """A writer that leaves nothing but the fill value behind deletes the shard; nobody's data go with it."""
    _create(store)
    array = zarr.open_array(store, mode="r+")
    array[_place(0)] = 5

    def other(writer: int) -> Callable[[], None]:
        return lambda: array.__setitem__(_place(writer), writer + 1)

    _in_threads([lambda: array.__setitem__(_place(0), 0), *(other(writer) for writer in range(1, WRITERS))])
    array[_place(0)] = 1
    _assert_nothing_lost(store)


@pytest.mark.parametrize("cancelled", ["holder", "waiter"])
def test_a_cancelled_writer_gives_up_its_place(pipeline: Pipeline, cancelled: str) -> None:
    """Cancelled while it holds the shard, or while it waits for it: the others go on, and lose nothing."""
    store = Gate(MemoryStore())
    _create(store)
    array = zarr.open_array(store, mode="r+").async_array

    async def scenario() -> None:
        store.arm()
        first = asyncio.create_task(array.setitem(_place(0), 1))
        await asyncio.get_running_loop().run_in_executor(None, store.held.wait)
        second, third = (asyncio.create_task(array.setitem(_place(writer), writer + 1)) for writer in (1, 2))
        await asyncio.sleep(0)
        victim = first if cancelled == "holder" else second
        victim.cancel()
        await asyncio.sleep(0)
        store.release.set()
        outcomes = await asyncio.gather(first, second, third, return_exceptions=True)
        assert [isinstance(outcome, asyncio.CancelledError) for outcome in outcomes] == [
            task is victim for task in (first, second, third)
        ]
        await asyncio.gather(*(array.setitem(_place(writer), writer + 1) for writer in range(3, WRITERS)))
        await array.setitem(_place(0 if victim is first else 1), 1 if victim is first else 2)

    asyncio.run(scenario())
    _assert_nothing_lost(store)


def test_a_fork_while_another_thread_holds_the_shard_does_not_hang_the_child(pipeline: Pipeline) -> None:
    """zarrs-python#171, iohub#416: the lock's holder does not exist in the child."""
    printed = run_python(
        """
        import os, threading
        import zarr
        from zarr.storage import MemoryStore
        from tests.support.stores import Gate

        store = Gate(MemoryStore())
        array = zarr.create_array(store, shape=(8,), chunks=(2,), shards=(8,), dtype="i4")
        array[0:2] = 1
        store.arm()
        writer = threading.Thread(target=array.__setitem__, args=(slice(2, 4), 2))
        writer.start()
        store.held.wait()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                array[4:6] = 3
                status = 0 if array[...].tolist() == [1, 1, 0, 0, 3, 3, 0, 0] else 2
            finally:
                os._exit(status)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        store.release.set()
        writer.join()
        print(array[...].tolist())
        """,
        pipeline,
    )
    assert printed.splitlines() == ["0", "[1, 1, 2, 2, 0, 0, 0, 0]"]


@pytest.mark.usefixtures("thresholds")
@pytest.mark.parametrize("kind", ["local", "memory"])
def test_a_reader_beside_a_writer_sees_one_version_of_a_shard(pipeline: Pipeline, tmp_path: Path, kind: str) -> None:
    """Index and inner chunks are of one version; zarr's own pipelines mix two and say nothing."""
    store = LocalStore(tmp_path / "a") if kind == "local" else MemoryStore()
    # The inner chunks that are read lie apart and are fetched one by one.
    config = {"sharding_coalesce_max_gap_bytes": 0}
    array = zarr.create_array(
        store, shape=(512,), chunks=(8,), shards=(512,), dtype="i4", compressors=None, config=config
    )
    array[...] = 1
    halves = np.arange(512) % 128 < 64
    done = threading.Event()
    seen: list[int] = []

    def write() -> None:
        try:
            for version in range(2, 80):
                # Every other version lacks half of the inner chunks, so that the rest lies elsewhere.
                array[...] = version if version % 2 else np.where(halves, version, 0)
        finally:
            done.set()

    def read() -> None:
        while not done.is_set():
            part = array.oindex[[0, 130, 260, 390]]
            assert (part == part[0]).all(), "two versions in one read"
            seen.append(int(part[0]))

    _in_threads([write, read, read])
    assert seen
