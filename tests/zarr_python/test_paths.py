"""Which path a call takes: at once, in a thread, on the event loop, or zarr's own pipeline."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest
import zarr
import zarr.codecs as zc
from zarr.abc.codec import ArrayBytesCodecPartialEncodeMixin
from zarr.core.buffer import BufferPrototype, cpu, default_buffer_prototype
from zarr.storage import LocalStore, MemoryStore, WrapperStore

from tests.support.codecs import RawPartial
from tests.zarr_python.ours import Elsewhere, Paths, pipeline_of
from tests.zarr_python.specs import spec_of

pytestmark = pytest.mark.usefixtures("ours")


def test_small_work_on_zarrs_own_loop_is_done_at_once() -> None:
    array = zarr.create_array(MemoryStore(), shape=(640,), chunks=(8,), dtype="i4")
    paths = Paths()
    array[3] = 1
    assert array[3] == 1
    assert paths() == {"write.inline": 1, "read.inline": 1}


def test_large_work_on_zarrs_own_loop_goes_to_a_thread() -> None:
    array = zarr.create_array(MemoryStore(), shape=(640,), chunks=(8,), dtype="i4")
    paths = Paths()
    array[...] = 1
    assert (array[...] == 1).all()
    assert paths() == {"write.sync": 1, "read.sync": 1}


async def test_any_work_on_another_loop_goes_to_a_thread() -> None:
    array = await zarr.api.asynchronous.create_array(MemoryStore(), shape=(640,), chunks=(8,), dtype="i4")
    paths = Paths()
    await array.setitem(3, 1)
    assert await array.getitem(3) == 1
    assert paths() == {"write.sync": 1, "read.sync": 1}


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_zarrs_own_stores_are_driven_synchronously(kind: str, tmp_path: Any) -> None:
    store = MemoryStore() if kind == "memory" else LocalStore(tmp_path)
    array = zarr.create_array(store, shape=(640,), chunks=(8,), dtype="i4")
    paths = Paths()
    array[...] = np.arange(640)
    np.testing.assert_array_equal(array[...], np.arange(640))
    assert paths() == {"write.sync": 1, "read.sync": 1}


def test_small_writes_to_files_go_to_a_thread(tmp_path: Any) -> None:
    array = zarr.create_array(LocalStore(tmp_path), shape=(640,), chunks=(8,), dtype="i4")
    paths = Paths()
    array[3] = 1
    assert array[3] == 1
    assert paths() == {"write.sync": 1, "read.inline": 1}


def test_foreign_codecs_are_never_run_on_zarrs_own_loop() -> None:
    threads: set[str] = set()

    class Watching(zc.Crc32cCodec):
        """A subclass, so it is foreign."""

        def _decode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
            threads.add(threading.current_thread().name)
            return super()._decode_sync(chunk_bytes, chunk_spec)

        def _encode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
            threads.add(threading.current_thread().name)
            return super()._encode_sync(chunk_bytes, chunk_spec)

    array = zarr.create_array(MemoryStore(), shape=(4,), chunks=(2,), dtype="i4", compressors=[Watching()])
    paths = Paths()
    array[0] = 1
    assert array[0] == 1
    assert paths() == {"write.sync": 1, "read.sync": 1}
    assert zarr.core.sync.iothread[0] is not None
    assert threads
    assert zarr.core.sync.iothread[0].name not in threads


@pytest.mark.parametrize("shape", [(4,), (4096,)])
def test_what_is_written_and_what_is_read_share_no_memory_with_the_store(shape: tuple[int, ...]) -> None:
    array = zarr.create_array(MemoryStore(), shape=shape, chunks=shape, dtype="i4", compressors=None)
    value = np.ones(shape, "i4")
    array[...] = value
    value[...] = 2
    found = array[...]
    assert (found == 1).all()
    found[...] = 3
    assert (array[...] == 1).all()


def test_a_codec_that_does_its_own_io_loses_nothing_to_other_writers() -> None:
    class OwnIO(RawPartial, ArrayBytesCodecPartialEncodeMixin):
        """Reads, gives way, and writes, as any codec that merges must."""

        async def _encode_partial_single(
            self, byte_setter: Any, chunk_array: Any, selection: Any, chunk_spec: Any
        ) -> None:
            stored = await byte_setter.get(prototype=chunk_spec.prototype)
            await asyncio.sleep(0)
            old = np.zeros(chunk_spec.shape, "i4") if stored is None else np.frombuffer(stored.to_bytes(), "i4").copy()
            old[selection] = chunk_array.as_numpy_array()
            await byte_setter.set(chunk_spec.prototype.buffer.from_bytes(old.tobytes()))

    array = zarr.create_array(
        MemoryStore(), shape=(64,), chunks=(64,), dtype="i4", serializer=OwnIO(), compressors=None
    )

    async def write_all() -> None:
        await asyncio.gather(*(array.async_array.setitem(slice(n, n + 1), n + 1) for n in range(64)))

    asyncio.run(write_all())
    assert array[...].tolist() == list(range(1, 65))


def test_wrappers_and_subclasses_are_driven_asynchronously() -> None:
    class Mine(MemoryStore):
        """Might do anything."""

    for store in (WrapperStore(MemoryStore()), Mine()):
        array = zarr.create_array(store, shape=(640,), chunks=(8,), dtype="i4")
        paths = Paths()
        array[...] = np.arange(640)
        np.testing.assert_array_equal(array[...], np.arange(640))
        assert paths() == {"write.async": 1, "read.async": 1}


def test_a_codec_that_does_its_own_io_is_left_to_zarr() -> None:
    array = zarr.create_array({}, shape=(8,), chunks=(4,), dtype="i4", serializer=RawPartial(), compressors=None)
    paths = Paths()
    array[1:6] = 3
    assert array[:].tolist() == [0, 3, 3, 3, 3, 3, 0, 0]
    reason = "tests.raw_partial reads and writes parts of chunks itself"
    assert paths() == {f"write.default: {reason}": 1, f"read.default: {reason}": 1}


async def test_a_selection_that_no_indexer_makes_is_left_to_zarr() -> None:
    array = zarr.create_array(MemoryStore(), shape=(4, 4), chunks=(4, 4), dtype="i4", compressors=None)
    array[...] = np.arange(16).reshape(4, 4)
    pipeline, spec = pipeline_of(array), spec_of((4, 4), "i4")
    out = default_buffer_prototype().nd_buffer.create(shape=(2,), dtype=np.dtype("i4"))
    place = array.store_path / "c/0/0"
    paths = Paths()
    statuses = await pipeline.read([(place, spec, (2, np.array([3, 1])), (slice(0, 2),), False)], out)
    assert out.as_numpy_array().tolist() == [11, 9]
    assert statuses == ({"status": "present"},)
    value = default_buffer_prototype().nd_buffer.from_numpy_array(np.array([-1, -2], "i4"))
    await pipeline.write([(place, spec, (2, np.array([3, 1])), (slice(0, 2),), False)], value)
    assert array[2].tolist() == [8, -2, 10, -1]
    reason = "a selection of an unknown form"
    assert paths()[f"read.default: {reason}"] == paths()[f"write.default: {reason}"] == 1


def test_buffers_outside_main_memory_are_left_to_zarr() -> None:
    array = zarr.create_array(MemoryStore(), shape=(4,), chunks=(2,), dtype="i4", compressors=None)
    prototype = BufferPrototype(cpu.Buffer, Elsewhere)
    paths = Paths()
    array.set_basic_selection(slice(0, 4), np.arange(4, dtype="i4"), prototype=prototype)
    assert array.get_basic_selection(slice(0, 4), prototype=prototype).tolist() == [0, 1, 2, 3]
    reason = "buffers outside main memory"
    assert paths() == {f"read.default: {reason}": 1, f"write.default: {reason}": 1}
