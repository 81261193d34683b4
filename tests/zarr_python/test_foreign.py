"""Codecs of the user's own run in Python between the runs of a backend, and behave as under zarr's pipeline."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
import zarr
import zarr.codecs as zc
from zarr.abc.codec import ArrayArrayCodec, BytesBytesCodec
from zarr.registry import register_codec

from chunkwright import CorruptChunkError
from chunkwright_zarr.foreign import ZarrCodec, kind_of, name_of
from chunkwright_zarr.specs import chunk_spec
from tests.support.codecs import AddOne, Invert, RawPartial
from tests.support.pipelines import Pipeline, pipeline
from tests.support.processes import ROOT, run_python
from tests.zarr_python.specs import spec_of

__all__ = ("pipeline",)

SPEC = spec_of((2, 3))
CHUNK = chunk_spec(SPEC)
ARRAY = np.arange(6, dtype="i2").reshape(2, 3)


class SyncAddOne(ArrayArrayCodec):
    """Array to array, in both of zarr's forms."""

    def to_dict(self) -> dict[str, Any]:
        return {"name": "tests.sync_add_one"}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls()

    def _decode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return type(chunk_data).from_numpy_array(chunk_data.as_numpy_array() - 1)

    def _encode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return type(chunk_data).from_numpy_array(chunk_data.as_numpy_array() + 1)

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return self._decode_sync(chunk_data, chunk_spec)


register_codec("tests.sync_add_one", SyncAddOne)


class Nameless(BytesBytesCodec):
    """Has no metadata."""


class Forgetful(BytesBytesCodec):
    """Says of every chunk that it is not to be stored."""

    def to_dict(self) -> dict[str, Any]:
        return {"name": "tests.forgetful"}

    def _decode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return chunk_data

    def _encode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return None


def test_kinds_and_names_are_those_of_zarr() -> None:
    assert [kind_of(codec) for codec in (AddOne(), RawPartial(), Invert())] == [
        "array->array",
        "array->bytes",
        "bytes->bytes",
    ]
    assert name_of(Invert()) == "tests.invert"
    assert name_of(Nameless()) == "Nameless"


def test_synchronous_codecs_are_called_item_by_item() -> None:
    codec = ZarrCodec(SyncAddOne(), SPEC)
    assert not codec.is_async
    encoded: Any = codec.encode_batch([ARRAY, None], CHUNK)
    np.testing.assert_array_equal(encoded[0], ARRAY + 1)
    assert encoded[1] is None
    decoded: Any = codec.decode_batch([encoded[0], None], CHUNK)
    np.testing.assert_array_equal(decoded[0], ARRAY)


async def test_codecs_that_can_only_be_awaited_are_awaited() -> None:
    codec = ZarrCodec(Invert(), SPEC)
    assert codec.is_async
    encoded = await codec.encode_batch([b"\x00\x01", None], CHUNK)  # type: ignore[misc]
    assert [bytes(encoded[0]), encoded[1]] == [b"\xff\xfe", None]
    decoded = await codec.decode_batch(encoded, CHUNK)  # type: ignore[misc]
    assert bytes(decoded[0]) == b"\x00\x01"


def test_decoded_arrays_may_be_changed() -> None:
    stored = bytes(ARRAY.tobytes())
    (decoded,) = ZarrCodec(zc.BytesCodec(), SPEC).decode_batch([stored], CHUNK)  # type: ignore[misc]
    assert decoded.flags.owndata
    decoded[...] = 9
    assert stored == ARRAY.tobytes()


def test_a_decoded_chunk_of_the_wrong_shape_is_corrupt() -> None:
    class Flat(SyncAddOne):
        def _decode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
            return type(chunk_data).from_numpy_array(chunk_data.as_numpy_array().ravel())

    with pytest.raises(CorruptChunkError, match="wrong decoded shape"):
        ZarrCodec(Flat(), SPEC).decode_batch([ARRAY], CHUNK)


def test_integers_in_place_of_floats_keep_their_bits() -> None:
    class Bits(SyncAddOne):
        """As bitround does: integers of the same size, which the metadata does not mention."""

        def _encode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
            return type(chunk_data).from_numpy_array(chunk_data.as_numpy_array().view("i4"))

    spec = spec_of((2,), "f4")
    (encoded,) = ZarrCodec(Bits(), spec).encode_batch([np.array([1.5, -0.0], "f4")], chunk_spec(spec))  # type: ignore[misc]
    assert encoded.dtype == np.dtype("f4")
    assert encoded.tolist() == [1.5, -0.0]


LAYOUTS: dict[str, dict[str, Any]] = {
    "array to array": {"filters": [AddOne()], "compressors": [zc.ZstdCodec()]},
    "array to array, synchronous": {"filters": [SyncAddOne()], "compressors": [zc.ZstdCodec()]},
    "bytes to bytes": {"compressors": [zc.GzipCodec(), Invert(), zc.Crc32cCodec()]},
    "all three": {"filters": [AddOne()], "serializer": RawPartial(), "compressors": [Invert()]},
    "partial": {"serializer": RawPartial(), "compressors": None},
    "in a shard": {
        "serializer": zc.ShardingCodec(chunk_shape=(2, 3), codecs=[AddOne(), zc.BytesCodec(), Invert()]),
        "compressors": None,
    },
    "around a shard": {"serializer": zc.ShardingCodec(chunk_shape=(2, 3)), "compressors": [Invert()]},
    "before a shard": {"filters": [AddOne()], "serializer": zc.ShardingCodec(chunk_shape=(2, 3)), "compressors": None},
    "in a nested shard": {
        "serializer": zc.ShardingCodec(
            chunk_shape=(4, 3), codecs=[zc.ShardingCodec(chunk_shape=(2, 3), codecs=[zc.BytesCodec(), Invert()])]
        ),
        "compressors": None,
    },
    "in an index": {
        "serializer": zc.ShardingCodec(chunk_shape=(2, 3), index_codecs=[zc.BytesCodec(), Invert()]),
        "compressors": None,
    },
}


@pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec:UserWarning")
@pytest.mark.parametrize("name", LAYOUTS)
def test_arrays_with_foreign_codecs_are_read_and_written(pipeline: Pipeline, name: str) -> None:
    expected = np.arange(80, dtype="i4").reshape(8, 10)
    array = zarr.create_array({}, shape=(8, 10), chunks=(4, 6), dtype="i4", fill_value=3, **LAYOUTS[name])
    assert (array[...] == 3).all()
    array[...] = expected
    array[3:6, 5] = -1
    expected[3:6, 5] = -1
    np.testing.assert_array_equal(array[...], expected)
    np.testing.assert_array_equal(array[2:7:2, 1], expected[2:7:2, 1])
    np.testing.assert_array_equal(array.oindex[[7, 0, 3], 2:5], expected[[7, 0, 3], 2:5])
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        np.testing.assert_array_equal(zarr.open_array(array.store)[...], expected)


def test_a_codec_that_a_package_registers_by_entry_point_is_found_by_name(tmp_path: Path, pipeline: Pipeline) -> None:
    (tmp_path / "inverting.py").write_text("from tests.support.codecs import Invert as Codec\n")
    metadata = tmp_path / "inverting-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: inverting\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[zarr.codecs]\ntests.invert = inverting:Codec\n")
    with pipeline.use():
        array = zarr.create_array(
            str(tmp_path / "a"), shape=(8,), chunks=(2,), shards=(4,), dtype="i4", compressors=[Invert()]
        )
    array[...] = np.arange(8)
    printed = run_python(
        f"""
        import sys, zarr, chunkwright_zarr
        assert "tests.support.codecs" not in sys.modules
        array = zarr.open_array({str(tmp_path / "a")!r}, mode="r+")
        array[5:7] = -1
        print(array[...].tolist(), [run.backend for run in chunkwright_zarr.explain(array).runs])
        """,
        pipeline,
        PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
    )
    assert printed.startswith("[0, 1, 2, 3, 4, -1, -1, 7] ['core', ")
    assert "'foreign'" in printed


def test_a_codec_may_say_that_a_chunk_is_not_to_be_stored(pipeline: Pipeline) -> None:
    store = zarr.storage.MemoryStore()
    array = zarr.create_array(store, shape=(4,), chunks=(2,), dtype="i4", compressors=[Forgetful()], fill_value=5)
    array[...] = 7
    assert [key for key in store._store_dict if key.startswith("c/")] == []
    assert array[...].tolist() == [5] * 4


def test_an_exception_of_a_codec_passes_through(pipeline: Pipeline) -> None:
    class Broken(Invert):
        async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
            raise ZeroDivisionError("of the user's own")

    array = zarr.create_array({}, shape=(4,), chunks=(2,), dtype="i4", compressors=[Broken()])
    array[...] = 7
    with pytest.raises(ZeroDivisionError, match="of the user's own"):
        array[...]


def test_reads_that_await_codecs_do_not_block_the_loops_threads(pipeline: Pipeline) -> None:
    """zarr's pool of one thread is taken by each codec call: nothing of ours may wait there for the loop."""

    class Threaded(Invert):
        async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
            return await asyncio.to_thread(self._inverted, chunk_data)

    array = zarr.create_array({}, shape=(64,), chunks=(8,), dtype="i4", compressors=[Threaded()])
    array[...] = np.arange(64)
    results: list[bool] = []

    def read() -> None:
        results.append(array[...].tolist() == list(range(64)))

    with zarr.config.set({"threading.max_workers": 1}):
        threads = [threading.Thread(target=read, daemon=True) for _ in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert results == [True] * 32
