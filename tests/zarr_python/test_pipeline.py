"""The pipeline as zarr sees it: made, compared, pickled, nested; what strict mode refuses."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
import zarr.codecs as zc
from zarr.core.buffer import BufferPrototype, cpu, default_buffer_prototype
from zarr.storage import LocalStore, MemoryStore
from zarr.testing.buffer import NDBufferUsingTestNDArrayLike, TestBuffer

from chunkwright import CorruptChunkError, Unsupported, UnsupportedCodecError
from chunkwright_zarr import CodecPipeline, config, explain, use
from chunkwright_zarr.config import Settings, backends_for
from tests.support.codecs import Invert, RawPartial
from tests.zarr_python.ours import Elsewhere, Paths, made, pipeline_of
from tests.zarr_python.specs import spec_of

pytestmark = pytest.mark.usefixtures("ours")


def test_zarr_finds_the_pipeline_by_its_public_name() -> None:
    assert zarr.registry.get_pipeline_class() is CodecPipeline
    assert f"{CodecPipeline.__module__}.{CodecPipeline.__qualname__}" == "chunkwright_zarr.CodecPipeline"


def test_pipelines_are_equal_by_codecs_and_settings() -> None:
    assert made() == made()
    assert hash(made()) == hash(made())
    assert made() != made(zc.BytesCodec())
    assert made() != CodecPipeline(made().codecs, Settings("auto"))
    assert made() != "a pipeline"


def test_pipelines_list_their_codecs() -> None:
    codecs = (zc.TransposeCodec(order=(1, 0)), zc.BytesCodec(), zc.ZstdCodec(), zc.Crc32cCodec())
    pipeline = made(*codecs)
    assert tuple(pipeline) == codecs
    assert pipeline.array_array_codecs == codecs[:1]
    assert pipeline.array_bytes_codec == codecs[1]
    assert pipeline.bytes_bytes_codecs == codecs[2:]
    assert "ZstdCodec" in repr(pipeline)


def test_pipelines_and_arrays_survive_pickling() -> None:
    assert pickle.loads(pickle.dumps(made())) == made()
    array = zarr.create_array(MemoryStore(), shape=(8,), chunks=(2,), shards=(4,), dtype="i4")
    array[...] = np.arange(8)
    with zarr.config.set({"codec_pipeline.backend": "auto", "codec_pipeline.strict": True}):
        again = pickle.loads(pickle.dumps(array))
    assert pipeline_of(again) == pipeline_of(array)
    assert pipeline_of(again).settings == Settings("numcodecs")


def test_evolving_fills_in_what_codecs_leave_open() -> None:
    evolved = made(zc.BytesCodec(), zc.BloscCodec()).evolve_from_array_spec(spec_of((4,), "i2"))
    assert evolved.codecs[1].to_dict()["configuration"]["typesize"] == 2  # type: ignore[index,call-overload]


def test_encoded_sizes_are_what_the_codecs_say() -> None:
    pipeline = made(zc.BytesCodec(), zc.Crc32cCodec())
    assert pipeline.compute_encoded_size(16, spec_of((4,), "i4")) == 20
    with pytest.raises(NotImplementedError):
        made().compute_encoded_size(16, spec_of((4,), "i4"))


def test_codecs_validate_the_metadata() -> None:
    with pytest.raises(ValueError, match="order"):
        zarr.create_array({}, shape=(4,), chunks=(2,), dtype="i4", filters=[zc.TransposeCodec(order=(0, 1))])


@pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec:UserWarning")
@pytest.mark.parametrize(("after", "is_partial"), [((), True), ((zc.ZstdCodec(),), False)])
def test_partial_support_is_what_zarr_says_of_the_codecs(after: tuple[Any, ...], is_partial: bool) -> None:
    pipeline = made(zc.ShardingCodec(chunk_shape=(2,)), *after)
    assert pipeline.supports_partial_decode is is_partial
    assert pipeline.supports_partial_encode is is_partial


def test_zarrs_advice_on_codecs_is_given_once() -> None:
    with pytest.warns(UserWarning, match="sharding_indexed") as caught:
        zarr.create_array({}, shape=(4,), dtype="i4", serializer=zc.ShardingCodec(chunk_shape=(2,)))
    assert len(caught) == 1


async def test_whole_chunks_are_encoded_and_decoded_without_a_store() -> None:
    spec, other = spec_of((2, 3), "i2"), spec_of((4,), "f8")
    arrays = [np.arange(6, dtype="i2").reshape(2, 3), None, np.linspace(0, 1, 4)]
    specs = [spec, spec, other]
    make = default_buffer_prototype().nd_buffer.from_numpy_array
    pipeline = made()
    encoded = list(
        await pipeline.encode([(None if a is None else make(a), s) for a, s in zip(arrays, specs, strict=True)])
    )
    assert encoded[1] is None
    decoded = list(await pipeline.decode(list(zip(encoded, specs, strict=True))))
    for found, expected in zip(decoded, arrays, strict=True):
        if expected is None:
            assert found is None
        else:
            assert found is not None
            np.testing.assert_array_equal(found.as_numpy_array(), expected)


async def test_whole_chunks_of_fill_value_are_encoded_when_a_codec_asks() -> None:
    chunk = default_buffer_prototype().nd_buffer.from_numpy_array(np.zeros(4, "i2"))
    (encoded,) = await made(zc.BytesCodec()).encode([(chunk, spec_of((4,), "i2"))])
    assert encoded is not None
    assert encoded.to_bytes() == bytes(8)


async def test_whole_chunks_pass_through_codecs_that_must_be_awaited() -> None:
    pipeline, spec = made(zc.BytesCodec(), Invert()), spec_of((2,), "u1")
    chunk = default_buffer_prototype().nd_buffer.from_numpy_array(np.array([1, 2], "u1"))
    (encoded,) = await pipeline.encode([(chunk, spec)])
    assert encoded is not None
    assert encoded.to_bytes() == b"\xfe\xfd"
    (decoded,) = await pipeline.decode([(encoded, spec)])
    assert decoded is not None
    assert decoded.as_numpy_array().tolist() == [1, 2]


def test_subclasses_of_the_cpu_buffers_are_honoured() -> None:
    class Checking(MemoryStore):
        async def set(self, key: str, value: Any, byte_range: Any = None) -> None:
            assert not key.startswith("c/") or isinstance(value, TestBuffer)
            await super().set(key, value, byte_range)

    array = zarr.create_array(Checking(), shape=(8,), chunks=(2,), shards=(4,), dtype="i4")
    prototype = BufferPrototype(TestBuffer, NDBufferUsingTestNDArrayLike)
    array.set_basic_selection(slice(1, 7), np.arange(6, dtype="i4"), prototype=prototype)
    found = array.get_basic_selection(slice(0, 8), prototype=prototype)
    assert type(found).__name__ == "TestNDArrayLike"
    assert found.tolist() == [0, 0, 1, 2, 3, 4, 5, 0]


def test_errors_name_the_key_of_the_chunk() -> None:
    store = MemoryStore()
    array = zarr.create_array(store, name="a", shape=(8,), chunks=(2,), dtype="i4", compressors=[zc.GzipCodec()])
    array[...] = np.arange(8)
    store._store_dict["a/c/2"] = cpu.Buffer.from_bytes(b"no gzip")
    with pytest.raises(CorruptChunkError, match="'a/c/2'") as caught:
        array[...]
    assert (caught.value.codec, caught.value.key) == ("gzip", "a/c/2")
    with pytest.raises(CorruptChunkError, match="'a/c/2'"):
        array[5] = 1
    assert array[:4].tolist() == [0, 1, 2, 3]


def test_missing_chunks_are_reported_in_the_order_of_the_batch() -> None:
    with zarr.config.set({"array.read_missing_chunks": False}):
        array = zarr.create_array(MemoryStore(), shape=(6,), chunks=(2,), dtype="i4", fill_value=1)
        array[2:4] = 5
        with pytest.raises(zarr.errors.ChunkNotFoundError) as caught:
            array[...]
    assert "c/0" in str(caught.value)
    assert "c/1" not in str(caught.value)
    assert "c/2" in str(caught.value)


def test_uneven_chunks_are_read_and_written_in_one_call() -> None:
    with zarr.config.set({"array.rectilinear_chunks": True}):
        store = MemoryStore()
        array = zarr.create_array(store, shape=(60, 7), chunks=[[10, 20, 30], [3, 4]], dtype="i4")
        expected = np.zeros((60, 7), "i4")
        paths = Paths()
        array[5:50, 2] = np.arange(45)
        expected[5:50, 2] = np.arange(45)
        np.testing.assert_array_equal(array[...], expected)
        assert sum(paths().values()) == 2
        array.vindex[[59, 0, 30], [6, 0, 3]] = -1
        expected[[59, 0, 30], [6, 0, 3]] = -1
        np.testing.assert_array_equal(array.oindex[[59, 0, 30], :], expected[[59, 0, 30]])


@pytest.mark.parametrize("options", [{"compressors": [Invert()]}, {"serializer": RawPartial(), "compressors": None}])
def test_strict_mode_refuses_foreign_codecs_when_the_pipeline_is_made(options: dict[str, Any]) -> None:
    with use(strict=True), pytest.raises(UnsupportedCodecError):
        zarr.create_array({}, shape=(4,), dtype="i4", **options)


def test_strict_mode_takes_what_the_first_backend_runs() -> None:
    with use(strict=True):
        array = zarr.create_array({}, shape=(8, 8), chunks=(2, 2), shards=(4, 8), dtype="i4")
        array[1:5] = 3
        assert int(array[...].sum()) == 4 * 8 * 3


def test_strict_mode_does_not_judge_by_a_placeholder() -> None:
    with zarr.config.set({"array.rectilinear_chunks": True}), use(strict=True):
        sharding = zc.ShardingCodec(chunk_shape=(5,))
        array = zarr.create_array(
            {}, shape=(60,), chunks=[[10, 20, 30]], dtype="i4", serializer=sharding, compressors=None
        )
        array[3:40] = 1
        assert int(array[...].sum()) == 37


def test_strict_mode_refuses_zarrs_own_pipeline_at_the_call() -> None:
    with use(strict=True):
        array = zarr.create_array(MemoryStore(), shape=(4, 4), chunks=(4, 4), dtype="i4")
    out = default_buffer_prototype().nd_buffer.create(shape=(2,), dtype=np.dtype("i4"))
    row = (array.store_path / "c/0/0", spec_of((4, 4), "i4"), (2, np.array([3, 1])), (slice(0, 2),), False)
    with pytest.raises(UnsupportedCodecError, match="strict"):
        asyncio.run(pipeline_of(array).read([row], out))


def test_pickle_is_asked_for_at_every_call() -> None:
    array = zarr.create_array(
        MemoryStore(),
        shape=(4,),
        chunks=(2,),
        dtype="i4",
        zarr_format=2,
        filters=[numcodecs.Pickle()],
        compressors=None,
    )
    array[...] = np.arange(4)
    with pytest.raises(zarr.errors.PickleCodecDisabledError):
        array[...]


@pytest.mark.parametrize("order", ["C", "F"])
def test_v2_arrays_of_either_order_share_a_pipeline_and_keep_apart(order: Any) -> None:
    expected = np.arange(35.0).reshape(7, 5)
    array = zarr.create_array(MemoryStore(), shape=(7, 5), chunks=(3, 2), dtype="f8", zarr_format=2, order=order)
    array[...] = expected
    np.testing.assert_array_equal(array[...], expected)
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        np.testing.assert_array_equal(zarr.open_array(array.store)[...], expected)


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
@pytest.mark.filterwarnings("ignore:The 'generic' unit for NumPy timedelta is deprecated:DeprecationWarning")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", ["<M8", ">M8", ">m8"])
def test_dates_without_a_unit_are_read_and_written_in_any_byte_order(dtype: str, zarr_format: Any) -> None:
    """NumPy miscopies them when they are big-endian; integers of the same bits show what is there."""
    integers = f"{dtype[0]}i8"
    counts = np.array([0, 1, -2, 100, 7], integers)
    array = zarr.create_array(
        MemoryStore(), data=counts.view(dtype), chunks=(2,), zarr_format=zarr_format, compressors=None, filters=None
    )
    array[1:3] = counts[3:].view(dtype)
    array.resize((6,))
    assert np.asarray(array[...]).view(integers).tolist() == [0, 100, 7, 100, 7, np.iinfo("i8").min]
    stored = np.dtype("<i8" if zarr_format == 3 else integers)
    first = array.store._store_dict["c/0" if zarr_format == 3 else "0"].to_bytes()
    assert np.frombuffer(first, stored).tolist() == [0, 100]


@pytest.mark.filterwarnings("ignore:The 'generic' unit for NumPy timedelta is deprecated:DeprecationWarning")
async def test_whole_chunks_of_dates_without_a_unit_survive() -> None:
    spec = spec_of((2,), ">M8", None)
    chunk = default_buffer_prototype().nd_buffer.from_numpy_array(np.array([1, -2], ">i8").view(">M8"))
    (encoded,) = await made(zc.BytesCodec(endian="little")).encode([(chunk, spec)])
    assert encoded is not None
    assert np.frombuffer(encoded.to_bytes(), "<i8").tolist() == [1, -2]
    (decoded,) = await made(zc.BytesCodec(endian="little")).decode([(encoded, spec)])
    assert decoded is not None
    assert decoded.dtype == np.dtype(">M8")
    assert decoded.as_numpy_array().view(">i8").tolist() == [1, -2]


@pytest.mark.parametrize("options", [{"chunks": (3, 4)}, {"chunks": (2, 2), "shards": (4, 6)}])
@pytest.mark.parametrize(
    "out",
    [
        np.empty((8, 10), "i2", order="F"),
        np.empty((16, 30), "i2")[::2, ::3],
        np.empty((8, 10), "i2")[::-1, ::-1],
        np.empty((8, 10), ">i2"),
        np.empty((8, 10), "f8"),
        np.empty((10, 8), "i4").T,
    ],
    ids=["order F", "strided", "backwards", "big-endian", "float64", "transposed int32"],
)
def test_any_array_can_be_read_into(options: dict[str, Any], out: Any) -> None:
    expected = np.arange(80, dtype="i2").reshape(8, 10)
    array = zarr.create_array(MemoryStore(), data=expected, **options)
    out[...] = -1
    buffer = default_buffer_prototype().nd_buffer.from_ndarray_like(out)
    array.get_basic_selection(slice(None), out=buffer)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("limit", [0, 4 << 20], ids=["planned", "whole"])
@pytest.mark.parametrize("kind", ["memory", "local"])
def test_parts_of_shards_are_the_same_however_they_are_read(
    kind: str, limit: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chunkwright_zarr.reads.UNPLANNED_NBYTES", limit)
    monkeypatch.setattr("chunkwright_zarr.driving.WHOLE_NBYTES", limit)
    store = MemoryStore() if kind == "memory" else LocalStore(tmp_path)
    expected = np.arange(40 * 30, dtype="i2").reshape(40, 30)
    with zarr.config.set({"array.read_missing_chunks": False}):
        array = zarr.create_array(store, shape=(40, 30), chunks=(2, 3), shards=(20, 30), dtype="i2", fill_value=-7)
    array[:20] = expected[:20]
    np.testing.assert_array_equal(array[3:17, 4:29], expected[3:17, 4:29])
    np.testing.assert_array_equal(array[5], expected[5])
    assert array[19, 29] == expected[19, 29]
    with pytest.raises(zarr.errors.ChunkNotFoundError):
        array[15:25]
    shard = array.store_path / "c/0/0"
    damaged = bytearray(zarr.core.sync.sync(shard.get(default_buffer_prototype())).to_bytes())
    damaged[-1] ^= 0xFF
    zarr.core.sync.sync(shard.set(cpu.Buffer.from_bytes(bytes(damaged))))
    with pytest.raises(CorruptChunkError, match="'c/0/0'"):
        array[5]


def test_pipelines_that_zarr_nests_in_a_users_sharding_codec_do_small_work_at_once() -> None:
    class OwnSharding(zc.ShardingCodec):
        """A subclass, so zarr's own code runs it, with our pipelines inside."""

    sharding = OwnSharding(chunk_shape=(2,))
    array = zarr.create_array(MemoryStore(), shape=(8,), chunks=(4,), dtype="i4", serializer=sharding, compressors=None)
    paths = Paths()
    array[1:7] = np.arange(6)
    assert array[...].tolist() == [0, 0, 1, 2, 3, 4, 5, 0]
    taken = paths()
    assert {"read.inline", "write.inline"} <= taken.keys()
    assert not any(".async" in path for path in taken)


@pytest.mark.parametrize(("elements", "path"), [(4, "inline"), (1 << 20, "sync")])
def test_whole_chunks_are_decoded_at_once_on_zarrs_own_loop_when_that_is_small_work(elements: int, path: str) -> None:
    pipeline, spec = made(zc.BytesCodec()), spec_of((elements,), "i2")
    chunk = default_buffer_prototype().nd_buffer.from_numpy_array(np.ones(elements, "i2"))
    paths = Paths()
    (encoded,) = zarr.core.sync.sync(pipeline.encode([(chunk, spec)]))
    (decoded,) = zarr.core.sync.sync(pipeline.decode([(encoded, spec)]))
    assert decoded is not None
    assert (decoded.as_numpy_array() == 1).all()
    assert paths() == {f"encode.{path}": 1, f"decode.{path}": 1}


@pytest.mark.parametrize("strict", [False, True])
async def test_whole_chunks_outside_main_memory_are_left_to_zarr_or_refused(strict: bool) -> None:
    with use(strict=strict):
        pipeline = made(zc.BytesCodec())
    spec = spec_of((2,), "i2", prototype=BufferPrototype(cpu.Buffer, Elsewhere))
    chunk = Elsewhere.from_numpy_array(np.array([1, 2], "i2"))
    if strict:
        with pytest.raises(UnsupportedCodecError):
            await pipeline.encode([(chunk, spec)])
        return
    paths = Paths()
    (encoded,) = await pipeline.encode([(chunk, spec)])
    (decoded,) = await pipeline.decode([(encoded, spec)])
    assert decoded is not None
    assert decoded.as_numpy_array().tolist() == [1, 2]
    reason = "buffers outside main memory"
    assert paths() == {f"encode.default: {reason}": 1, f"decode.default: {reason}": 1}


def test_a_codec_of_zarrs_that_no_backend_runs_is_run_by_zarr(monkeypatch: pytest.MonkeyPatch) -> None:
    (backend,) = backends_for("numcodecs")
    monkeypatch.setattr(config, "_loaded", {"numcodecs": Without(backend, "zstd")})
    array = zarr.create_array(MemoryStore(), shape=(4,), chunks=(2,), dtype="i4", compressors=[zc.ZstdCodec()])
    array[...] = np.arange(4)
    assert array[...].tolist() == [0, 1, 2, 3]
    runs = explain(array).runs
    assert [(run.codecs, run.backend) for run in runs] == [(("bytes",), "numcodecs"), (("zstd",), "foreign")]
    assert "not today" in runs[1].reason
    with use(strict=True), pytest.raises(UnsupportedCodecError, match="not today"):
        zarr.create_array({}, shape=(4,), dtype="i4", compressors=[zc.ZstdCodec()])


class Without:
    """A backend that does not run one codec."""

    def __init__(self, backend: Any, codec: str) -> None:
        self._backend, self._codec = backend, codec

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def supports(self, codec: Any, spec: Any) -> Any:
        return Unsupported("not today") if codec.name == self._codec else self._backend.supports(codec, spec)
