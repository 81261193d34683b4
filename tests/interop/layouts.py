"""Layouts that several implementations share: what zarr's ``create_array`` is given, besides shape and dtype."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numcodecs
import numpy as np
import zarr
import zarr.codecs.numcodecs as zn
from numpy.typing import NDArray
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

CHECKED = (BytesCodec(), Crc32cCodec())
BARE = (BytesCodec(),)


@attrs.frozen(eq=False)
class Layout:
    """How an array of shape (13, 22) is chunked and encoded."""

    name: str
    options: Mapping[str, Any]
    dtype: str = "u2"

    shape = (13, 22)

    @property
    def zarr_format(self) -> int:
        return int(self.options.get("zarr_format", 3))

    def create(self, store: Any) -> Any:
        """Create the array under the pipeline in use."""
        return zarr.create_array(store, shape=self.shape, dtype=self.dtype, fill_value=3, **self.options)

    def data(self) -> NDArray[Any]:
        """Values of which some inner chunks and some chunks are nothing but the fill value."""
        values = np.arange(np.prod(self.shape)).reshape(self.shape) % 251
        values[4:8, 8:18] = 3
        values[8:, :12] = 3
        return values.astype(self.dtype)

    def __str__(self) -> str:
        return self.name


def _plain(name: str, dtype: str = "u2", **options: Any) -> Layout:
    return Layout(name, {"chunks": (5, 8), "compressors": None, **options}, dtype)


def _shards(name: str, codecs: Any = BARE, dtype: str = "u2", filters: Any = "auto", **options: Any) -> Layout:
    compressors = options.pop("compressors", None)
    sharding = ShardingCodec(chunk_shape=options.pop("inner", (2, 4)), codecs=codecs, **options)
    given = {"serializer": sharding, "compressors": compressors, "filters": filters}
    return Layout(name, {"chunks": (4, 8), **given}, dtype)


def _v2(name: str, dtype: str = "<u2", **options: Any) -> Layout:
    return Layout(name, {"chunks": (5, 8), "zarr_format": 2, "compressors": None, "filters": None, **options}, dtype)


PLAIN = [
    _plain("little"),
    _plain("big", serializer=BytesCodec(endian="big")),
    *(_plain(f"little {dtype}", dtype) for dtype in ("bool", "i1", "i8", "f4", "f8", "c16", "f2")),
    _plain("big c8", "c8", serializer=BytesCodec(endian="big")),
    _plain("transpose", filters=[TransposeCodec(order=(1, 0))]),
    _plain("gzip", compressors=[GzipCodec(level=5)]),
    _plain("zstd", compressors=[ZstdCodec(level=3)]),
    _plain("zstd with checksum", compressors=[ZstdCodec(level=1, checksum=True)]),
    *(
        _plain(f"blosc {cname} {shuffle}", compressors=[BloscCodec(cname=cname, clevel=5, shuffle=shuffle)])
        for cname in ("lz4", "lz4hc", "blosclz", "zstd", "zlib")
        for shuffle in ("noshuffle", "shuffle", "bitshuffle")
    ),
    _plain("crc32c", compressors=[Crc32cCodec()]),
    _plain(
        "transpose big gzip crc32c",
        filters=[TransposeCodec(order=(1, 0))],
        serializer=BytesCodec(endian="big"),
        compressors=[GzipCodec(level=1), Crc32cCodec()],
    ),
]

SHARDED = [
    *(
        _shards(f"index at the {place}, {'no ' * (index is BARE)}checksum", index_codecs=index, index_location=place)
        for place in ("start", "end")
        for index in (BARE, CHECKED)
    ),
    _shards("inner zstd", (BytesCodec(), ZstdCodec(level=3))),
    _shards("inner gzip", (BytesCodec(), GzipCodec(level=5)), "f8"),
    _shards("inner blosc", (BytesCodec(), BloscCodec(cname="lz4", shuffle="shuffle")), "i4"),
    _shards("inner big crc32c", (BytesCodec(endian="big"), Crc32cCodec()), "i4"),
    _shards("inner transpose zstd", (TransposeCodec(order=(1, 0)), BytesCodec(), ZstdCodec())),
    _shards("nested", (ShardingCodec(chunk_shape=(1, 2), codecs=[BytesCodec(), ZstdCodec()], index_codecs=CHECKED),)),
    _shards("big index", index_codecs=(BytesCodec(endian="big"), Crc32cCodec())),
    _shards("transpose before shards", inner=(4, 2), filters=[TransposeCodec(order=(1, 0))]),
    _shards("one inner chunk", inner=(4, 8)),
]

#: Other codecs on both sides of the sharding codec.
AROUND = [
    _shards("transpose, big", inner=(4, 2), filters=[TransposeCodec(order=(1, 0))], index_location="start"),
    _shards("zstd around shards", compressors=[ZstdCodec(level=1)]),
    _shards("transpose and crc32c", inner=(4, 2), filters=[TransposeCodec(order=(1, 0))], compressors=[Crc32cCodec()]),
    _shards("transpose inside", (TransposeCodec(order=(1, 0)), ShardingCodec(chunk_shape=(2, 1), codecs=BARE))),
]

#: Codecs of numcodecs that other implementations know by the same name.
NUMCODECS = [
    _plain("numcodecs zlib", compressors=[zn.Zlib(level=1)]),
    _plain("numcodecs bz2", compressors=[zn.BZ2(level=1)]),
    _plain("numcodecs shuffle zlib", "i4", compressors=[zn.Shuffle(elementsize=4), zn.Zlib(level=1)]),
    _plain("numcodecs pcodec", "f4", serializer=zn.PCodec(level=3)),
]

V2 = [
    _v2("v2 raw"),
    _v2("v2 raw big", ">i4"),
    _v2("v2 order F", "<f8", order="F"),
    _v2("v2 order F zlib", order="F", compressors=numcodecs.Zlib(1)),
    _v2("v2 gzip", compressors=numcodecs.GZip(1)),
    _v2("v2 zstd", compressors=numcodecs.Zstd(1)),
    _v2("v2 bz2", compressors=numcodecs.BZ2(1)),
    _v2("v2 blosc", ">f4", compressors=numcodecs.Blosc("lz4", shuffle=1)),
]

LAYOUTS = [*PLAIN, *SHARDED, *AROUND, *NUMCODECS, *V2]
