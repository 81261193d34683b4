"""zarr's own codec objects are translated, everything else is foreign, and the neighbours stay native."""

from __future__ import annotations

import warnings
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
import zarr.codecs as zc
import zarr.codecs.numcodecs as zn
from zarr.codecs._v2 import V2Codec

from chunkwright.chain import CodecChain
from chunkwright.codecs import Foreign, ShardingIndexed
from chunkwright_zarr import use
from chunkwright_zarr.codecs import NATIVE, chain_of
from chunkwright_zarr.specs import chunk_spec
from tests.support.codecs import AddOne, Invert
from tests.zarr_python.specs import spec_of

SPEC = spec_of((4, 6))


class OwnZstd(zc.ZstdCodec):
    """A user's subclass may do anything."""


def names(chain: CodecChain) -> list[str]:
    """Names of the codecs, foreign ones in brackets."""
    return [f"[{codec.name}]" if isinstance(codec, Foreign) else codec.name for codec in chain.codecs]


CODECS: dict[str, Any] = {
    "bytes": zc.BytesCodec(endian="big"),
    "transpose": zc.TransposeCodec(order=(1, 0)),
    "gzip": zc.GzipCodec(level=3),
    "zstd": zc.ZstdCodec(level=7, checksum=True),
    "blosc": zc.BloscCodec(typesize=2, cname="lz4", clevel=3, shuffle="bitshuffle"),
    "crc32c": zc.Crc32cCodec(),
    "vlen-utf8": zc.VLenUTF8Codec(),
    "vlen-bytes": zc.VLenBytesCodec(),
    "scale_offset": zc.ScaleOffset(offset=3, scale=2),
    "cast_value": zc.CastValue(data_type="uint8", rounding="towards-zero", out_of_range="clamp"),
}


@pytest.mark.parametrize("name", CODECS)
def test_configurations_survive(name: str) -> None:
    codec = CODECS[name]
    codecs = [codec] if name in ("bytes", "vlen-utf8", "vlen-bytes") else [codec, zc.BytesCodec()]
    if name in ("gzip", "zstd", "blosc", "crc32c"):
        codecs.reverse()
    chain = chain_of(codecs, SPEC)
    (translated,) = (found for found in chain.codecs if found.name == name)
    expected = CodecChain.from_json([item.to_dict() for item in codecs])
    assert translated in expected.codecs


def test_every_codec_class_of_zarrs_own_is_known() -> None:
    public = {getattr(zc, name) for name in zc.__all__} | {getattr(zn, name) for name in zn.__all__ if name[0] != "_"}
    codecs = {item for item in public if hasattr(item, "to_dict")}
    assert codecs - NATIVE == {zc.ShardingCodec}


@pytest.mark.parametrize(
    "cls", sorted(NATIVE & {getattr(zn, name) for name in zn.__all__}, key=lambda cls: cls.__name__)
)
def test_every_numcodecs_name_is_known_to_the_core(cls: Any) -> None:
    configurations = {
        "numcodecs.astype": {"encode_dtype": "int32", "decode_dtype": "int16"},
        "numcodecs.delta": {"dtype": "int16"},
        "numcodecs.fixedscaleoffset": {"scale": 10, "offset": 0, "dtype": "int16", "astype": "int16"},
        "numcodecs.quantize": {"digits": 2, "dtype": "float32"},
        "numcodecs.bitround": {"keepbits": 3},
        "numcodecs.shuffle": {"elementsize": 2},
    }
    codec = cls(**configurations.get(cls.codec_name, {}))
    chains = ([codec], [codec, zc.BytesCodec()], [zc.BytesCodec(), codec])
    kinds = {"ArrayBytes": chains[0], "ArrayArray": chains[1], "BytesBytes": chains[2]}
    codecs = next(chain for kind, chain in kinds.items() if any(kind in base.__name__ for base in cls.__mro__))
    shape = (4,) if cls is zn.PackBits else (4, 6)
    spec = spec_of(shape, "bool" if cls is zn.PackBits else "int16")
    assert cls.codec_name in names(chain_of(codecs, spec))


def test_a_subclass_of_a_codec_of_zarrs_is_foreign() -> None:
    assert names(chain_of([zc.BytesCodec(), OwnZstd(), zc.Crc32cCodec()], SPEC)) == ["bytes", "[zstd]", "crc32c"]


def test_a_foreign_codec_inside_a_shard_leaves_the_shard_native() -> None:
    sharding = zc.ShardingCodec(chunk_shape=(2, 2), codecs=[AddOne(), zc.BytesCodec(), Invert()])
    (shard,) = chain_of([sharding], SPEC).codecs
    assert isinstance(shard, ShardingIndexed)
    assert names(shard.codecs) == ["[tests.add_one]", "bytes", "[tests.invert]"]


def test_a_foreign_codec_in_the_index_makes_the_shard_foreign() -> None:
    sharding = zc.ShardingCodec(chunk_shape=(2, 2), index_codecs=[zc.BytesCodec(), Invert()])
    assert names(chain_of([sharding], SPEC)) == ["[sharding_indexed]"]


def test_the_order_of_inner_chunks_is_taken_from_the_object_at_every_level() -> None:
    inner = zc.ShardingCodec(chunk_shape=(1, 3), subchunk_write_order="colexicographic")
    outer = zc.ShardingCodec(
        chunk_shape=(2, 6), codecs=[inner], subchunk_write_order="lexicographic", index_location="start"
    )
    (shard,) = chain_of([outer], SPEC).codecs
    assert isinstance(shard, ShardingIndexed)
    assert (shard.order, shard.index_location) == ("lexicographic", "start")
    (nested,) = shard.codecs.codecs
    assert isinstance(nested, ShardingIndexed)
    assert (nested.order, nested.index_location) == ("colexicographic", "end")


def test_a_codec_that_no_backend_runs_is_foreign_and_says_why() -> None:
    chain = chain_of([zc.BytesCodec(), zc.ZstdCodec()], SPEC, refused={"zstd": "no library"})
    assert names(chain) == ["bytes", "[zstd]"]
    codec = chain.codecs[1]
    assert isinstance(codec, Foreign)
    assert codec.foreign.reason == "no library"  # type: ignore[attr-defined]


def test_a_configuration_that_means_nothing_to_us_is_left_to_zarr() -> None:
    class Strange(dict[str, Any]):
        """Configuration that no rule reads."""

    codec = zc.GzipCodec(level=3)
    object.__setattr__(codec, "level", Strange())
    assert names(chain_of([zc.BytesCodec(), codec], SPEC)) == ["bytes", "[gzip]"]


@pytest.mark.parametrize(
    ("filters", "compressor", "order", "expected"),
    [
        (None, None, "C", ["bytes"]),
        (None, numcodecs.Blosc(typesize=4), "C", ["bytes", "numcodecs.blosc"]),
        (None, numcodecs.Zstd(3), "F", ["transpose", "bytes", "numcodecs.zstd"]),
        ((numcodecs.Delta("<i2"),), numcodecs.Blosc(), "C", ["numcodecs.delta", "bytes", "numcodecs.blosc"]),
        ((numcodecs.Pickle(),), None, "C", ["[V2Codec]"]),
    ],
)
def test_v2_codecs_are_a_chain_where_every_object_is_numcodecs_own(
    filters: Any, compressor: Any, order: str, expected: list[str]
) -> None:
    chain = chain_of([V2Codec(filters=filters, compressor=compressor)], spec_of((4, 6), order=order))
    assert names(chain) == expected


def test_a_users_numcodecs_codec_makes_a_v2_array_foreign() -> None:
    class OwnZlib(numcodecs.Zlib):
        codec_id = "zlib"

    chain = chain_of([V2Codec(filters=None, compressor=OwnZlib())], SPEC)
    assert names(chain) == ["[V2Codec]"]


def test_translating_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        codecs = [zc.TransposeCodec(order=(1, 0)), zc.ShardingCodec(chunk_shape=(3, 2)), zc.ZstdCodec()]
        assert names(chain_of(codecs, SPEC)) == ["transpose", "sharding_indexed", "zstd"]


def test_codecs_after_a_foreign_one_are_given_what_it_makes() -> None:
    class Widen(AddOne):
        """Makes int32, and says so."""

        def resolve_metadata(self, chunk_spec: Any) -> Any:
            return spec_of(chunk_spec.shape, "int32")

    chain = chain_of([Widen(), zc.BytesCodec()], SPEC)
    codec = chain.codecs[0]
    assert isinstance(codec, Foreign)
    bound = chain.bind(np.dtype("int16"), 0, ndim=2)
    given = chunk_spec(SPEC)
    assert given is not None
    assert bound.codecs[0].encoded_spec(given).dtype.numpy == np.dtype("int32")


@pytest.mark.parametrize("backend", ["numcodecs", "rust"])
@pytest.mark.parametrize("typesize", [None, 1, 2, 8])
def test_the_size_of_elements_that_blosc_keeps_to_itself_is_heeded(backend: str, typesize: int | None) -> None:
    compressor = numcodecs.Blosc(typesize=typesize)
    values = np.arange(500, dtype="<i4")
    with use(backend=backend):
        array = zarr.create_array({}, data=values, zarr_format=2, chunks=(500,), compressors=compressor)
    assert array.store._store_dict["0"].to_bytes() == bytes(compressor.encode(values))
    assert (array[...] == values).all()


@pytest.mark.parametrize("backend", ["numcodecs", "rust"])
@pytest.mark.parametrize("value", ["NO", "", None])
def test_what_python_takes_for_true_is_left_to_numcodecs(backend: str, value: Any) -> None:
    """GDAL writes the checksum of zstd as text into v2 metadata."""
    compressor, values = numcodecs.get_codec({"id": "zstd", "level": 3, "checksum": value}), np.arange(500, dtype="<i4")
    with use(backend=backend):
        array = zarr.create_array({}, data=values, zarr_format=2, chunks=(500,), compressors=compressor)
    assert array.store._store_dict["0"].to_bytes() == bytes(compressor.encode(values))
    assert (array[...] == values).all()
