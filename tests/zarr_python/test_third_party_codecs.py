"""Codecs of other packages work by name: the same bytes and values as under zarr-python's default pipeline.

imagecodecs brings codecs for Zarr v2 (through numcodecs' registry) and for v3; pcodec, zfpy and msgpack are extras of
numcodecs. Each is used by an array of its own, in v3 inside shards as well; the array is opened again by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import imagecodecs.numcodecs
import imagecodecs.zarr
import numcodecs
import numpy as np
import pytest
import zarr
import zarr.codecs.numcodecs as zn
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec
from zarr.storage import MemoryStore

from chunkwright_zarr import explain
from tests.support.arrays import assert_same
from tests.support.pipelines import DEFAULT, Pipeline, pipeline

__all__ = ("pipeline",)

pytestmark = [
    pytest.mark.usefixtures("pipeline", "registered"),
    pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3 specification:UserWarning"),
    pytest.mark.filterwarnings("ignore:The data type .* does not have a Zarr V3 specification"),
]

VALUES = np.arange(256).reshape(16, 16) % 97
SHAPES: dict[str, Any] = {"shape": (16, 16), "chunks": (8, 8), "fill_value": 0}


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both registries know imagecodecs; numcodecs' forgets them again, as other tests look at what is in it."""
    monkeypatch.setattr(numcodecs.registry, "codec_registry", dict(numcodecs.registry.codec_registry))
    imagecodecs.numcodecs.register_codecs(verbose=False)
    imagecodecs.zarr.register_codecs(verbose=False)


@attrs.frozen
class Stored:
    """What an array holds, and what is stored of it."""

    array: Any
    objects: Mapping[str, bytes]

    @classmethod
    def of(cls, values: Any, *, reopen: bool, **options: Any) -> Stored:
        """Write an array, change a part of it, and open it again by the names in its metadata."""
        store = MemoryStore()
        array = zarr.create_array(store, **options)
        array[...] = values
        array[3:6, 7:10] = values[:3, :3]
        objects = {key: value.to_bytes() for key, value in store._store_dict.items()}
        return cls(zarr.open_array(store) if reopen else array, objects)


def assert_same_as_zarr(values: Any, *, reopen: bool = True, **options: Any) -> Stored:
    """Compare with zarr's default pipeline: objects, all of the array, and a part of it."""
    ours = Stored.of(values, reopen=reopen, **options)
    with Pipeline(DEFAULT).use():
        theirs = Stored.of(values, reopen=reopen, **options)
    assert ours.objects == theirs.objects
    assert any(key.rpartition("/")[2] not in (".zarray", ".zattrs", "zarr.json") for key in ours.objects)
    assert_same(ours.array[...], theirs.array[...])
    assert_same(ours.array[5:13, 2:11], theirs.array[5:13, 2:11])
    return ours


V2 = {
    "bitshuffle": "u2", "blosc2": "f4", "brotli": "u1", "bz2": "u2", "deflate": "u2", "float24": "f4", "jpeg2k": "u1",
    "jpegls": "u1", "jpegxl": "u1", "lerc": "f4", "lz4f": "u2", "lzw": "u1", "png": "u2", "snappy": "u1", "tiff": "u1",
    "zfp": "f4", "zlibng": "u1", "zstd": "f4",
}  # fmt: skip


@pytest.mark.parametrize("name", V2)
@pytest.mark.parametrize("place", ["compressors", "filters"])
def test_imagecodecs_encode_v2_chunks(name: str, place: str) -> None:
    codec = numcodecs.get_codec({"id": f"imagecodecs_{name}"})
    given: dict[str, Any] = {"compressors": None, "filters": None} | {place: [codec]}
    stored = assert_same_as_zarr(VALUES.astype(V2[name]), **SHAPES, dtype=V2[name], zarr_format=2, **given)
    assert f'"imagecodecs_{name}"' in stored.objects[".zarray"].decode()


V3 = {
    "Aec": "u2", "Apng": "u1", "B2nd": "f4", "Bfloat16": "f4", "Bitorder": "u1", "Bitshuffle": "u2", "Blosc2": "f4",
    "Brotli": "u1", "Deflate": "u2", "Delta": "u2", "Jpeg2k": "u1", "Jpegls": "u1", "Jpegxl": "u1", "Lerc": "f4",
    "Lz4f": "u2", "Lzw": "u1", "Png": "u2", "Snappy": "u1", "Tiff": "u1", "Xor": "u2", "Zfp": "f4", "Zstd": "f4",
}  # fmt: skip


def _place(codec: Any) -> dict[str, Any]:
    """The argument of ``create_array`` that takes codecs of this kind."""
    if isinstance(codec, ArrayArrayCodec):
        return {"filters": [codec], "compressors": None}
    if isinstance(codec, ArrayBytesCodec):
        return {"serializer": codec, "compressors": None}
    return {"compressors": [codec]}


@pytest.mark.parametrize("shards", [None, (16, 16)], ids=["alone", "in shards"])
@pytest.mark.parametrize("name", V3)
def test_imagecodecs_encode_v3_chunks(name: str, shards: Any) -> None:
    codec = getattr(imagecodecs.zarr, name)()
    options = {**SHAPES, "dtype": V3[name], "shards": shards, **_place(codec)}
    stored = assert_same_as_zarr(VALUES.astype(V3[name]), **options)
    assert f'"imagecodecs_{name.lower()}"' in stored.objects["zarr.json"].decode()
    level = "chunk" if shards is None else "shard: inner chunk"
    foreign = {name for run in explain(stored.array).runs if run.backend == "foreign" for name in run.codecs}
    assert foreign == {f"imagecodecs_{name.lower()}"}
    assert {run.level for run in explain(stored.array).runs if run.backend == "foreign"} == {level}


EXTRAS: dict[str, tuple[Any, Any, str]] = {
    "pcodec": (numcodecs.PCodec(level=3), zn.PCodec(level=3), "f4"),
    "zfpy": (numcodecs.ZFPY(mode=4, tolerance=0.5), zn.ZFPY(mode=4, tolerance=0.5), "f8"),
}


@pytest.mark.parametrize("name", EXTRAS)
def test_extras_of_numcodecs_encode_v2_chunks(name: str) -> None:
    codec, _, dtype = EXTRAS[name]
    options = {**SHAPES, "dtype": dtype, "zarr_format": 2, "filters": [codec], "compressors": numcodecs.Zstd(1)}
    assert_same_as_zarr(VALUES.astype(dtype), **options)


@pytest.mark.parametrize("shards", [None, (16, 16)], ids=["alone", "in shards"])
@pytest.mark.parametrize("name", EXTRAS)
def test_extras_of_numcodecs_encode_v3_chunks(name: str, shards: Any) -> None:
    _, codec, dtype = EXTRAS[name]
    options = {**SHAPES, "dtype": dtype, "shards": shards, "serializer": codec, "compressors": None}
    assert_same_as_zarr(VALUES.astype(dtype), **options)


@pytest.mark.parametrize("dtype", ["<U4", "<f8"])
def test_msgpack_encodes_v2_chunks(dtype: str) -> None:
    """zarr-python 3.4.2 can create such an array but finds no data type for its metadata when it opens one."""
    options = {**SHAPES, "fill_value": None, "zarr_format": 2, "filters": [numcodecs.MsgPack()], "compressors": None}
    assert_same_as_zarr(VALUES.astype(dtype), reopen=False, **options, dtype=dtype)
