"""zarr's stores as sources and sinks."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import numpy as np
import pytest
import zarr
from obstore.store import MemoryStore as ObjectMemory
from zarr.abc.store import RangeByteRequest, Store, SuffixByteRequest
from zarr.codecs.sharding import _ShardingByteSetter
from zarr.core.buffer import BufferPrototype, cpu, default_buffer_prototype
from zarr.storage import (
    FsspecStore,
    LocalStore,
    LoggingStore,
    ManagedMemoryStore,
    MemoryStore,
    ObjectStore,
    StorePath,
    WrapperStore,
    ZipStore,
)
from zarr.testing.buffer import NDBufferUsingTestNDArrayLike, StoreExpectingTestBuffer, TestBuffer

from chunkwright_store import (
    LOCKS,
    Limits,
    ReadJob,
    WriteJob,
    read_async,
    read_sync,
    write_async,
    write_hop,
    write_sync,
)
from chunkwright_store._identity import IDENTITIES
from chunkwright_store.zarr import (
    classify,
    is_cpu,
    key_of,
    lock_keys,
    sinks_of,
    sources_of,
    store_identity,
)
from tests.store_bridge.volumes import BOXES, Volume, decoded, volume

PROTOTYPE = default_buffer_prototype()


class Patched(WrapperStore[Any]):
    """Overrides ``get`` alone, as many wrappers do: chunks are kept with their bytes inverted."""

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        found = await self._store.get(key, prototype, byte_range)
        return None if found is None else type(found).from_bytes(bytes(255 - byte for byte in found.to_bytes()))


class Relative(MemoryStore):
    """A subclass of a store that is read synchronously when it is exact."""


class OnlyGet:
    """A byte getter with nothing but ``get``."""

    def __init__(self, data: bytes | None) -> None:
        self._data = data
        self.requests: list[Any] = []

    async def get(self, prototype: BufferPrototype, byte_range: Any = None) -> Any:
        self.requests.append(byte_range)
        if self._data is None:
            return None
        data = self._data
        if isinstance(byte_range, RangeByteRequest):
            data = data[byte_range.start : byte_range.end]
        elif isinstance(byte_range, SuffixByteRequest):
            data = data[-byte_range.suffix :]
        return prototype.buffer.from_bytes(data)


def fill(store: Store, stored: dict[str, bytes]) -> Store:
    async def main() -> None:
        await store._ensure_open()
        for key, data in stored.items():
            await store.set(key, cpu.Buffer.from_bytes(data))

    asyncio.run(main())
    return store


def content(store: Store, keys: Sequence[str]) -> dict[str, bytes]:
    async def main() -> dict[str, bytes]:
        found = {key: await store.get(key, PROTOTYPE) for key in keys}
        return {key: buffer.to_bytes() for key, buffer in found.items() if buffer is not None}

    return asyncio.run(main())


def jobs(made: Volume, box: Any, store: Store, prototype: Any = PROTOTYPE, limits: Limits | None = None) -> Any:
    """A read and a write job of a box, and their kind."""
    entries, keys = made.entries(box)
    getters = [StorePath(store, key) for key in keys]
    kind = classify(getters)
    sources = sources_of(getters, kind, prototype, limits or Limits())
    reading = ReadJob(plan=made.prepared.plan_read(entries), sources=sources, keys=keys)
    writing = WriteJob(
        plan=made.prepared.plan_write(entries),
        sources=sources_of(getters, kind, prototype, limits or Limits()),
        sinks=sinks_of(getters, kind, prototype),
        keys=keys,
        lock_keys=lock_keys(getters),
    )
    return kind, reading, writing


def read(made: Volume, box: Any, store: Store, prototype: Any = PROTOTYPE, limits: Limits | None = None) -> Any:
    kind, job, _ = jobs(made, box, store, prototype, limits)
    out = np.zeros([stop - start for start, stop in box], made.data.dtype)
    if kind == "async":
        asyncio.run(read_async([job], out, limits))
    else:
        read_sync([job], out, limits)
    return out


def write(made: Volume, box: Any, store: Store, prototype: Any = PROTOTYPE) -> None:
    kind, _, job = jobs(made, box, store, prototype)
    if kind == "async":
        asyncio.run(write_async([job], made.expected(box)))
    else:
        write_sync([job], made.expected(box))


STORES: dict[str, tuple[str, Callable[[Path], Store]]] = {
    "memory": ("memory", lambda path: MemoryStore()),
    "managed memory": ("memory", lambda path: ManagedMemoryStore(path=f"{path.name}/deep")),
    "local": ("local", lambda path: LocalStore(path)),
    "zip": ("async", lambda path: ZipStore(path / "store.zip", mode="a")),
    "fsspec": ("async", lambda path: FsspecStore.from_url(f"memory://{path.name}")),
    "obstore": ("async", lambda path: ObjectStore(ObjectMemory())),
    "wrapper": ("async", lambda path: WrapperStore(LocalStore(path))),
    "logging": ("async", lambda path: LoggingStore(MemoryStore(), log_level="ERROR")),
    "subclass": ("async", lambda path: Relative()),
    "a wrapper of a wrapper": ("async", lambda path: WrapperStore(WrapperStore(MemoryStore()))),
}


@pytest.fixture(params=STORES)
def kind_and_store(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Store]:
    kind, make = STORES[request.param]
    return kind, make(tmp_path)


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
@pytest.mark.parametrize("layout", ["chunks", "shards", "shards with the index first", "nested shards"])
def test_every_kind_of_store_is_read_and_written(layout: str, kind_and_store: tuple[str, Store]) -> None:
    kind, store = kind_and_store
    made = volume(layout)
    fill(store, made.stored)
    assert classify([StorePath(store, "c/0/0")]) == kind
    for box in BOXES.values():
        np.testing.assert_array_equal(read(made, box, store), made.expected(box))
    for box in BOXES.values() if not isinstance(store, ZipStore) else [BOXES["a corner"]]:
        made.expected(box)[...] += 1000
        write(made, box, store)
        np.testing.assert_array_equal(decoded(made, content(store, list(made.stored))), made.data)
    assert len(LOCKS) == 0


def test_missing_chunks_are_missing_in_every_kind_of_store(kind_and_store: tuple[str, Store]) -> None:
    _, store = kind_and_store
    fill(store, {"elsewhere": b"something"})
    for layout in ("chunks", "shards"):
        assert not read(volume(layout), BOXES["a corner"], store).any()


def test_zarr_reads_what_was_written_and_the_other_way_round(kind_and_store: tuple[str, Store]) -> None:
    _, store = kind_and_store
    made = volume("shards")
    options: dict[str, Any] = {"shape": (30, 26), "chunks": (4, 4), "shards": (12, 12), "dtype": "uint16"}
    array = zarr.create_array(store, **options, compressors=[zarr.codecs.Crc32cCodec()], fill_value=0)
    write(made, BOXES["everything"], store)
    np.testing.assert_array_equal(array[:], made.data)
    if not isinstance(store, ZipStore):
        array[3:20, 5:22] = 7
        made.data[3:20, 5:22] = 7
    np.testing.assert_array_equal(read(made, BOXES["everything"], store), made.data)


@pytest.mark.parametrize(
    ("getters", "kind"),
    [
        ([StorePath(MemoryStore(), "a"), StorePath(MemoryStore(), "b")], "memory"),
        ([StorePath(MemoryStore(), "a"), StorePath(LocalStore("x"), "b")], "async"),
        ([StorePath(Patched(MemoryStore()), "a")], "async"),
        ([StorePath(AsyncMock(spec=MemoryStore), "a")], "async"),
        ([OnlyGet(b"")], "async"),
        ([_ShardingByteSetter({}, (0,))], "sync"),
        ([_ShardingByteSetter({}, (0,)), OnlyGet(b"")], "async"),
        ([], "async"),
    ],
)
def test_only_what_is_known_exactly_is_driven_synchronously(getters: Any, kind: str) -> None:
    assert classify(getters) == kind


@pytest.mark.parametrize("store", [MemoryStore(), LocalStore("x")])
def test_an_object_with_a_method_of_its_own_is_driven_through_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "get", AsyncMock())
    assert classify([StorePath(store, "a")]) == "async"


def test_a_subclass_of_store_path_is_not_taken_for_one() -> None:
    class Mapped(StorePath):
        async def get(self, prototype: Any = None, byte_range: Any = None) -> Any:
            return cpu.Buffer.from_bytes(b"other")

    getter = Mapped(MemoryStore(), "a")
    assert classify([getter]) == "async"
    [source] = sources_of([getter], "async", PROTOTYPE, Limits())
    assert not hasattr(source, "stream_ranges")
    assert [bytes(data) for data in asyncio.run(source.get_ranges([None]))] == [b"other"]


@pytest.mark.parametrize("layout", ["chunks", "shards", "nested shards"])
@pytest.mark.parametrize("wrap", [lambda store: store, WrapperStore], ids=["itself", "wrapped again"])
def test_a_wrapper_that_overrides_only_get_is_honoured(layout: str, wrap: Any) -> None:
    made = volume(layout)
    inverted = {key: bytes(255 - byte for byte in data) for key, data in made.stored.items()}
    store = wrap(Patched(fill(MemoryStore(), inverted)))
    for box in BOXES.values():
        np.testing.assert_array_equal(read(made, box, store), made.expected(box))


def test_a_store_with_its_own_ranges_is_asked_for_them() -> None:
    made, calls = volume("shards"), []

    class Own(WrapperStore[Any]):
        async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
            calls.append("get")
            return await self._store.get(key, prototype, byte_range)

        async def get_ranges(self, key: str, byte_ranges: Sequence[Any], **options: Any) -> AsyncIterator[Any]:
            calls.append("get_ranges")
            async for group in self._store.get_ranges(key, byte_ranges, **options):
                yield group

    read(made, ((0, 8), (0, 8)), Own(fill(MemoryStore(), made.stored)))
    assert calls == ["get", "get_ranges"]


def test_requests_are_one_for_the_index_and_one_for_the_ranges_of_each_shard() -> None:
    for layout in ("shards", "shards with the index first"):
        made = volume(layout)
        store = fill(MemoryStore(), made.stored)
        mock = AsyncMock(wraps=store, spec=MemoryStore)
        limits = Limits(max_gap=4242, max_size=424242)
        np.testing.assert_array_equal(read(made, ((0, 8), (0, 24)), mock, limits=limits), made.data[:8, :24])
        assert mock.get.call_count == 2
        assert mock.get_ranges.call_count == 2
        for call in mock.get_ranges.call_args_list:
            assert call.kwargs["max_gap_bytes"] == 4242
            assert call.kwargs["max_coalesced_bytes"] == 424242


def test_a_getter_with_nothing_but_get_is_asked_for_merged_ranges() -> None:
    made = volume("shards")
    getters = {key: OnlyGet(data) for key, data in made.stored.items()}
    entries, keys = made.entries(((0, 8), (0, 24)))
    sources = sources_of([getters[key] for key in keys], "async", PROTOTYPE, Limits())
    out = np.zeros((8, 24), "u2")
    asyncio.run(read_async([ReadJob(plan=made.prepared.plan_read(entries), sources=sources, keys=keys)], out))
    np.testing.assert_array_equal(out, made.data[:8, :24])
    assert [len(getters[key].requests) for key in keys] == [2, 2]


class Failing(MemoryStore):
    """Ranges fail as they do in zarr: in groups."""

    errors: tuple[BaseException, ...] = ()

    async def get_ranges(self, key: str, byte_ranges: Sequence[Any], **options: Any) -> AsyncIterator[Any]:
        async for group in super().get_ranges(key, byte_ranges[:1], **options):
            yield group
        raise BaseExceptionGroup("some failed", [BaseExceptionGroup("inner", self.errors)])


def test_a_shard_that_went_away_between_index_and_ranges_is_missing() -> None:
    made, store = volume("shards"), Failing()
    store.errors = (FileNotFoundError("gone"), FileNotFoundError("gone"))
    out = read(made, ((0, 8), (0, 8)), fill(store, made.stored), limits=Limits(max_gap=0, max_size=1))
    assert set(np.unique(out == made.data[:8, :8])) == {True, False}
    assert set(out[out != made.data[:8, :8]]) == {0}


def test_a_single_error_in_a_group_is_raised_as_itself() -> None:
    made, store = volume("shards"), Failing()
    store.errors = (PermissionError("not yours"), FileNotFoundError("gone"))
    with pytest.raises(PermissionError, match="not yours"):
        read(made, ((0, 8), (0, 8)), fill(store, made.stored))


def test_several_errors_stay_a_group() -> None:
    made, store = volume("shards"), Failing()
    store.errors = (PermissionError("a"), PermissionError("b"))
    with pytest.raises(BaseExceptionGroup) as caught:
        read(made, ((0, 8), (0, 8)), fill(store, made.stored))
    assert caught.group_contains(PermissionError)


def test_buffers_have_the_class_that_the_prototype_asks_for() -> None:
    prototype = BufferPrototype(buffer=TestBuffer, nd_buffer=NDBufferUsingTestNDArrayLike)
    assert is_cpu(prototype)
    made, store = volume("shards"), StoreExpectingTestBuffer()
    write(made, BOXES["everything"], store, prototype)
    assert all(type(store._store_dict[key]) is TestBuffer for key in made.stored)
    np.testing.assert_array_equal(read(made, BOXES["a corner"], store, prototype), made.expected(BOXES["a corner"]))


def test_nothing_is_copied_on_the_way_out_of_a_memory_store() -> None:
    store = fill(MemoryStore(), {"a": b"abc"})
    [source] = sources_of([StorePath(store, "a")], "memory", PROTOTYPE, Limits())
    assert isinstance(store, MemoryStore)
    assert np.shares_memory(np.frombuffer(source.whole(), "u1"), store._store_dict["a"].as_numpy_array())


def test_a_memory_read_is_of_one_version_and_a_local_one_as_well(tmp_path: Path) -> None:
    made = volume("shards")
    for store in (MemoryStore(), LocalStore(tmp_path)):
        fill(store, made.stored)
        kind, job, _ = jobs(made, ((0, 8), (0, 8)), store)
        [source] = job.sources
        needs: Any = job.plan.needs
        [index] = source.get_ranges([None if kind == "memory" else (0, 1)])
        assert index is not None
        fill(store, {"c/0/0": b"\0" * 700})
        out = np.zeros((8, 8), "u2")
        read_sync([job], out)
        np.testing.assert_array_equal(out, made.data[:8, :8])
        assert len(needs) == 1


def test_a_local_store_that_was_not_opened_is_opened_by_its_own_rules(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sources_of([StorePath(LocalStore(tmp_path / "new", read_only=True), "a")], "local", PROTOTYPE, Limits())
    sources_of([StorePath(LocalStore(tmp_path / "new"), "a")], "local", PROTOTYPE, Limits())
    assert (tmp_path / "new").is_dir()


def test_a_read_only_store_refuses_to_be_written(tmp_path: Path) -> None:
    for store in (MemoryStore(read_only=True), LocalStore(tmp_path, read_only=True)):
        with pytest.raises(ValueError, match="read-only"):
            write(volume("chunks"), BOXES["everything"], store)
    assert len(LOCKS) == 0


def test_keys_are_named_as_well_as_a_getter_allows() -> None:
    assert key_of(StorePath(MemoryStore(), "a/c/0")) == "a/c/0"
    assert key_of(_ShardingByteSetter({}, (1, 2))) == "inner chunk (1, 2)"
    assert "OnlyGet" in key_of(OnlyGet(b""))


def test_stores_that_hold_the_same_chunks_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    assert store_identity(LocalStore(tmp_path)) == store_identity(LocalStore(tmp_path / "link"))
    assert store_identity(LocalStore(tmp_path)) != store_identity(LocalStore(tmp_path / "other"))
    shared: dict[str, Any] = {}
    assert store_identity(MemoryStore(shared)) == store_identity(MemoryStore(shared, read_only=True))
    assert store_identity(MemoryStore({})) != store_identity(MemoryStore(shared))
    named = ManagedMemoryStore("same-chunks")
    assert store_identity(named) == store_identity(ManagedMemoryStore("same-chunks", path="a"))


def test_a_bare_wrapper_is_what_it_wraps_and_any_other_itself() -> None:
    store = MemoryStore()
    assert store_identity(WrapperStore(WrapperStore(store))) == store_identity(store)
    patched = Patched(store)
    assert store_identity(patched) == store_identity(patched)
    assert store_identity(patched) == store_identity(WrapperStore(patched))
    assert store_identity(patched) != store_identity(store)
    assert store_identity(Relative()) != store_identity(Relative())


def test_the_identity_of_a_store_ends_with_it() -> None:
    store = Patched(MemoryStore())
    first = store_identity(store)
    number = id(store)
    assert number in IDENTITIES
    del store
    gc.collect()
    assert number not in IDENTITIES
    assert all(store_identity(Patched(MemoryStore())) != first for _ in range(100))


def test_chunks_are_locked_by_where_they_really_are(tmp_path: Path) -> None:
    inner, outer = LocalStore(tmp_path / "a"), LocalStore(tmp_path)
    assert lock_keys([StorePath(inner, "c/0")]) == lock_keys([StorePath(outer, "a/c/0")])
    assert lock_keys([StorePath(inner, "c/0")]) == lock_keys([StorePath(WrapperStore(inner), "c/0")])
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert lock_keys([StorePath(inner, "c/0")]) == lock_keys([StorePath(LocalStore(tmp_path / "link"), "c/0")])
    assert lock_keys([StorePath(inner, "c/0")]) != lock_keys([StorePath(inner, "c/1")])
    assert lock_keys([StorePath(MemoryStore(), "c/0")]) != lock_keys([StorePath(MemoryStore(), "c/0")])


def test_memory_that_nobody_else_can_reach_is_not_locked() -> None:
    assert lock_keys([_ShardingByteSetter({}, (0,))]) == []


def test_a_write_through_the_byte_setters_of_a_shard_reaches_its_dictionary() -> None:
    made = volume("chunks")
    shard: Any = {(0,): None}
    setter = _ShardingByteSetter(shard, (0,))
    entries, keys = made.entries(((0, 12), (0, 12)))
    for value in (made.data[:12, :12], np.zeros((12, 12), "u2")):
        job = WriteJob(
            plan=made.prepared.plan_write(entries),
            sources=sources_of([setter], "sync", PROTOTYPE, Limits()),
            sinks=sinks_of([setter], "sync", PROTOTYPE),
            keys=keys,
        )
        write_sync([job], value)
        assert ((0,) in shard) == bool(value.any())


def test_two_stores_on_one_directory_that_write_one_shard_lose_nothing(tmp_path: Path) -> None:
    made = volume("shards")
    stores = [LocalStore(tmp_path), WrapperStore(LocalStore(tmp_path)), LocalStore(tmp_path / ".")]

    async def main() -> None:
        tasks = []
        for row in range(30):
            kind, _, job = jobs(made, ((row, row + 1), (0, 26)), stores[row % 3])
            value = made.data[row : row + 1]
            tasks.append(write_async([job], value) if kind == "async" else write_hop([job], value))
        await asyncio.gather(*tasks)

    asyncio.run(main())
    np.testing.assert_array_equal(decoded(made, content(stores[0], list(made.stored))), made.data)
    assert len(LOCKS) == 0
