"""Plans driven on an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
import pytest

from chunkwright import ChecksumError, CodecChain, ReferenceBackend
from chunkwright_store import (
    LOCKS,
    AsyncFunctionSource,
    ByteRange,
    ByteSuffix,
    Limits,
    MappingSink,
    MappingSource,
    ReadJob,
    WriteJob,
    read_async,
    read_hop,
    write_async,
    write_hop,
)
from chunkwright_store.sources import cut
from tests.store_bridge.remotes import Objects, Remote, RemoteSink, read_job, write_job
from tests.store_bridge.volumes import BOXES, CHAINS, Volume, decoded, entries_of_box, volume

LAYOUTS = list(CHAINS)
PATIENCE = 30


@pytest.fixture(params=["one by one", "streaming", "obspec"])
def place(request: pytest.FixtureRequest) -> Callable[[Volume], Any]:
    if request.param == "obspec":
        return lambda made: Objects(made.stored)
    return lambda made: Remote(made.stored, streams=request.param == "streaming")


async def read(made: Volume, box: Any, held: Any, limits: Limits | None = None) -> Any:
    out = np.zeros([stop - start for start, stop in box], made.data.dtype)
    await asyncio.wait_for(read_async([read_job(made, box, held)], out, limits), PATIENCE)
    return out


@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
@pytest.mark.parametrize("layout", LAYOUTS)
async def test_any_box_of_any_layout_is_read_from_any_source(layout: str, box: Any, place: Any) -> None:
    made = volume(layout)
    np.testing.assert_array_equal(await read(made, box, place(made)), made.expected(box))


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_a_read_in_the_smallest_steps_gives_the_same(layout: str, place: Any) -> None:
    made = volume(layout)
    limits = Limits(max_gap=0, max_size=1, max_bytes_in_flight=1, concurrency=1, max_workers=1)
    out = await read(made, BOXES["a corner"], place(made), limits)
    np.testing.assert_array_equal(out, made.expected(BOXES["a corner"]))


@pytest.mark.parametrize("box", BOXES.values(), ids=BOXES)
@pytest.mark.parametrize("layout", LAYOUTS)
async def test_any_box_of_any_layout_is_written_to_any_sink(layout: str, box: Any, place: Any) -> None:
    made = volume(layout)
    held = place(made)
    made.expected(box)[...] += 1000
    await asyncio.wait_for(write_async([write_job(made, box, held)], made.expected(box)), PATIENCE)
    np.testing.assert_array_equal(decoded(made, held.stored), made.data)
    assert len(LOCKS) == 0


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_a_write_in_the_smallest_steps_gives_the_same(layout: str, place: Any) -> None:
    made = volume(layout)
    held = place(made)
    made.data[...] += 1000
    limits = Limits(max_bytes_in_flight=1, concurrency=1)
    await asyncio.wait_for(write_async([write_job(made, BOXES["everything"], held)], made.data, limits), PATIENCE)
    np.testing.assert_array_equal(decoded(made, held.stored), made.data)


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_chunks_that_become_the_fill_value_are_deleted(layout: str, place: Any) -> None:
    made = volume(layout)
    held = place(made)
    await write_async([write_job(made, BOXES["everything"], held)], np.zeros((30, 26), "u2"))
    assert held.stored == {}


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_missing_chunks_are_the_fill_value_and_are_told(layout: str, place: Any) -> None:
    made = volume(layout)
    del made.stored["c/1/1"]
    made.data[12:24, 12:24] = 0
    job, out = read_job(made, BOXES["everything"], place(made)), np.ones((30, 26), "u2")
    await read_async([job], out)
    np.testing.assert_array_equal(out, made.data)
    statuses: Any = job.plan
    assert [key for key, present in zip(job.keys, statuses.statuses, strict=True) if not present] == ["c/1/1"]


async def test_nothing_to_do_is_done_at_once() -> None:
    await read_async([], np.empty(0))
    await write_async([], np.empty(0))


async def test_an_empty_selection_needs_no_request() -> None:
    made, remote = volume("shards"), Remote({})
    entries, keys = made.entries(BOXES["one element"])
    empty = attrs.evolve(entries, count=entries.count * 0)
    job = ReadJob(plan=made.prepared.plan_read(empty), sources=[remote.source(key) for key in keys], keys=keys)
    await asyncio.wait_for(read_async([job], np.empty((0, 0), "u2")), PATIENCE)
    assert not remote.requests


async def test_a_shard_that_goes_away_after_its_index_was_read_is_missing_from_there_on(place: Any) -> None:
    made = volume("shards")

    async def vanish(key: str, wanted: ByteRange) -> None:
        if not isinstance(wanted, ByteSuffix):
            remote.stored.clear()

    for streams in (False, True):
        remote = Remote(made.stored, hook=vanish, streams=streams)
        assert not (await read(made, ((0, 8), (0, 8)), remote)).any()


async def test_a_first_request_is_a_plain_one_and_later_ranges_of_a_chunk_are_one_call() -> None:
    made = volume("shards")
    remote = Remote(made.stored, streams=True)
    await read(made, ((0, 8), (0, 24)), remote, Limits(max_gap=0, max_size=36))
    assert sorted(remote.calls) == [("c/0/0", 1), ("c/0/0", 6), ("c/0/1", 1), ("c/0/1", 6)]


async def test_no_more_requests_are_under_way_than_allowed() -> None:
    made, remote = volume("shards"), Remote({})
    remote.stored = dict(made.stored)
    await read(made, BOXES["a corner"], remote, Limits(max_gap=0, max_size=1, concurrency=3))
    assert remote.most == 3
    assert len(remote.requests) > 6


async def test_bytes_in_flight_are_bounded() -> None:
    made, remote = volume("chunks"), Remote({})
    remote.stored = dict(made.stored)
    job = read_job(made, BOXES["everything"], remote, whole_nbytes=300)
    await read_async([job], np.zeros((30, 26), "u2"), Limits(concurrency=9, max_bytes_in_flight=900))
    assert remote.most == 3


async def test_requests_go_out_while_others_are_decoded() -> None:
    """The index of one shard arrives long after everything of another: neither waits for the other."""
    made, late = volume("shards"), asyncio.Event()

    async def hook(key: str, wanted: ByteRange) -> None:
        if key == "c/0/0" and isinstance(wanted, ByteSuffix):
            await late.wait()
        elif key == "c/0/1" and not isinstance(wanted, ByteSuffix):
            late.set()

    out = await read(made, ((0, 8), (0, 24)), Remote(made.stored, hook=hook))
    np.testing.assert_array_equal(out, made.data[:8, :24])


async def test_an_error_names_the_chunk_and_ends_all_requests() -> None:
    made = volume("chunks")
    made.stored["c/1/0"] = b"\0" * len(made.stored["c/1/0"])

    async def hook(key: str, wanted: ByteRange) -> None:
        if key > "c/1/0":
            await asyncio.sleep(PATIENCE * 10)

    remote = Remote(made.stored, hook=hook)
    with pytest.raises(ChecksumError, match="'c/1/0'"):
        await read(made, BOXES["everything"], remote)
    assert remote.cancelled == len([key for key in made.stored if key > "c/1/0"])
    assert remote.under_way == 0


@pytest.mark.parametrize("streams", [False, True])
async def test_errors_of_a_store_pass_through_as_they_are(streams: bool) -> None:
    async def hook(key: str, wanted: ByteRange) -> None:
        if not isinstance(wanted, ByteSuffix):
            raise PermissionError("not yours")

    made = volume("shards")
    with pytest.raises(PermissionError, match="not yours"):
        await read(made, BOXES["a corner"], Remote(made.stored, hook=hook, streams=streams))


async def test_a_store_that_cancels_itself_is_an_error_and_no_hang() -> None:
    async def hook(key: str, wanted: ByteRange) -> None:
        raise asyncio.CancelledError

    made = volume("chunks")
    with pytest.raises(asyncio.CancelledError):
        await read(made, BOXES["everything"], Remote(made.stored, hook=hook))


async def test_a_cancelled_read_waits_for_its_requests_and_its_decoding() -> None:
    entered, go_on, events = threading.Event(), threading.Event(), list[str]()

    class Slow(ReferenceBackend):
        def decode_into(self, *arguments: Any, **options: Any) -> None:
            events.append("begun")
            entered.set()
            assert go_on.wait(PATIENCE)
            super().decode_into(*arguments, **options)
            events.append("ended")

    made = volume("chunks", backend=Slow())
    waiting = asyncio.Event()

    async def hook(key: str, wanted: ByteRange) -> None:
        if key != "c/0/0":
            waiting.set()
            await asyncio.sleep(PATIENCE * 10)

    remote = Remote(made.stored, hook=hook)
    task = asyncio.create_task(read(made, BOXES["everything"], remote))
    await waiting.wait()
    await asyncio.to_thread(entered.wait, PATIENCE)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events == ["begun", "ended"]
    assert remote.under_way == 0


async def test_no_codec_runs_on_the_thread_of_the_loop() -> None:
    threads: set[int] = set()

    class Observed(ReferenceBackend):
        def decode_arrays(self, *arguments: Any, **options: Any) -> Any:
            threads.add(threading.get_ident())
            return super().decode_arrays(*arguments, **options)

        def decode_into(self, *arguments: Any, **options: Any) -> None:
            threads.add(threading.get_ident())
            super().decode_into(*arguments, **options)

        def encode_from(self, *arguments: Any, **options: Any) -> Any:
            threads.add(threading.get_ident())
            return super().encode_from(*arguments, **options)

    made = volume("shards", backend=Observed())
    threads.clear()
    remote = Remote(made.stored)
    await read(made, BOXES["a corner"], remote)
    await write_async([write_job(made, BOXES["a corner"], remote)], made.expected(BOXES["a corner"]))
    assert threads
    assert threading.get_ident() not in threads


async def test_a_failed_write_leaves_every_chunk_old_or_new() -> None:
    made = volume("chunks")
    remote = Remote(made.stored)

    async def hook(key: str, wanted: ByteRange) -> None:
        if key == "c/1/1":
            raise OSError("disk full")

    remote.hook = hook
    with pytest.raises(OSError, match="disk full"):
        await write_async([write_job(made, BOXES["everything"], remote)], made.data + 1000)
    changes = decoded(made, remote.stored) - made.data
    assert set(np.unique(changes).tolist()) <= {0, 1000}
    assert not changes[12:24, 12:24].any()
    assert len(LOCKS) == 0


async def test_when_old_bytes_do_not_decode_nothing_of_their_batch_is_stored() -> None:
    made = volume("chunks")
    made.stored["c/0/1"] = b"\0" * len(made.stored["c/0/1"])
    remote = Remote(made.stored)
    with pytest.raises(ChecksumError, match="'c/0/1'"):
        await write_async([write_job(made, ((1, 29), (1, 25)), remote)], made.data[1:29, 1:25])
    assert remote.stored == {**made.stored, "c/1/1": remote.stored["c/1/1"]}
    assert len(LOCKS) == 0


async def test_a_cancelled_write_waits_for_what_it_has_begun_to_store_and_keeps_the_lock_so_long() -> None:
    made, begun, go_on = volume("chunks"), asyncio.Event(), asyncio.Event()

    async def hook(key: str, wanted: ByteRange) -> None:
        begun.set()
        await go_on.wait()

    remote = Remote({}, hook=hook)
    writing = write_async([write_job(made, ((0, 12), (0, 12)), remote)], made.data[:12, :12])
    task = asyncio.create_task(writing)
    await begun.wait()
    task.cancel()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not task.done()
    assert LOCKS.try_hold(["c/0/0"]) is None
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert remote.stored.keys() == {"c/0/0"}
    assert remote.cancelled == 0
    assert len(LOCKS) == 0


async def test_encoded_bytes_that_wait_to_be_stored_are_bounded() -> None:
    made, unstored, most = volume("chunks"), 0, 0

    class Counting(RemoteSink):
        async def set(self, data: Any) -> None:
            nonlocal unstored
            unstored -= 1
            await super().set(data)

    remote = Remote({})
    remote.sink = lambda key: Counting(remote, key)  # type: ignore[method-assign]

    class Observed(ReferenceBackend):
        def encode_from(self, *arguments: Any, **options: Any) -> Any:
            nonlocal unstored, most
            encoded = super().encode_from(*arguments, **options)
            unstored += len(encoded)
            most = max(most, unstored)
            return encoded

    prepared = CodecChain.from_json(CHAINS["chunks"]).bind("uint16", 0).prepare((12, 12), backends=[Observed()])
    made = attrs.evolve(made, prepared=prepared)
    unstored = most = 0
    job = write_job(made, ((0, 24), (0, 24)), remote)
    await write_async([job], made.data[:24, :24], Limits(max_bytes_in_flight=1, concurrency=1))
    assert len(remote.stored) == 4
    assert most <= 2


@pytest.mark.parametrize("layout", ["chunks", "shards"])
async def test_one_hop_reads_and_writes_what_is_synchronous(layout: str) -> None:
    made = volume(layout)
    stored: dict[str, Any] = dict(made.stored)
    entries, keys = made.entries(BOXES["a corner"])
    sources = [MappingSource(stored, key) for key in keys]
    sinks = [MappingSink(stored, key) for key in keys]
    made.expected(BOXES["a corner"])[...] += 1000
    plan = made.prepared.plan_write(entries)
    await write_hop(
        [WriteJob(plan=plan, sources=sources, sinks=sinks, keys=keys, lock_keys=keys)],
        made.expected(BOXES["a corner"]),
    )
    out = np.zeros((12, 16), "u2")
    sources = [MappingSource(stored, key) for key in keys]
    await read_hop([ReadJob(plan=made.prepared.plan_read(entries), sources=sources, keys=keys)], out)
    np.testing.assert_array_equal(out, made.expected(BOXES["a corner"]))
    np.testing.assert_array_equal(decoded(made, stored), made.data)


async def test_a_hop_that_waits_for_a_lock_keeps_no_thread() -> None:
    made, stored = volume("chunks"), dict[str, Any]()
    held = LOCKS.try_hold(["c/0/0"])
    assert held is not None
    entries, keys = entries_of_box(((0, 12), (0, 12)))
    jobs = [
        WriteJob(
            plan=made.prepared.plan_write(entries),
            sources=[MappingSource(stored, key) for key in keys],
            sinks=[MappingSink(stored, key) for key in keys],
            keys=keys,
            lock_keys=keys,
        )
        for _ in range(100)
    ]
    tasks = [asyncio.create_task(write_hop([job], made.data[:12, :12])) for job in jobs]
    await asyncio.sleep(0)
    # More than the pool has threads are waiting, and a read still finds one.
    job = ReadJob(plan=made.prepared.plan_read(entries), sources=[MappingSource(made.stored, keys[0])], keys=keys)
    await asyncio.wait_for(read_hop([job], np.zeros((12, 12), "u2")), PATIENCE)
    assert not stored
    held.release()
    await asyncio.gather(*tasks)
    assert stored.keys() == {"c/0/0"}


def test_two_loops_that_write_different_inner_chunks_of_one_shard_lose_nothing() -> None:
    made = volume("shards")
    remote = Remote({})

    def loop(rows: Sequence[int]) -> None:
        async def main() -> None:
            await asyncio.gather(
                *(
                    write_async([write_job(made, ((row, row + 1), (0, 26)), remote)], made.data[row : row + 1])
                    for row in rows
                )
            )

        asyncio.run(main())

    threads = [threading.Thread(target=loop, args=(range(first, 30, 2),)) for first in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(decoded(made, remote.stored), made.data)
    assert len(LOCKS) == 0


async def test_functions_of_the_callers_own_are_sources_too() -> None:
    made = volume("shards")
    entries, keys = made.entries(BOXES["a corner"])

    def source(key: str) -> AsyncFunctionSource:
        async def fetch(wanted: ByteRange) -> Any:
            return cut(made.stored[key], wanted)

        return AsyncFunctionSource(fetch)

    out = np.zeros((12, 16), "u2")
    plan = made.prepared.plan_read(entries)
    await read_async([ReadJob(plan=plan, sources=[source(key) for key in keys], keys=keys)], out)
    np.testing.assert_array_equal(out, made.expected(BOXES["a corner"]))
