"""Random layouts: shape, grid, shards within shards, transposes, codecs, both formats."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import attrs
import hypothesis.strategies as st
import numcodecs
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

from tests.differential.dtypes import DType

type Draw = st.DrawFn

COMPRESSORS: dict[str, Any] = {
    "crc32c": Crc32cCodec(),
    "zstd": ZstdCodec(level=1),
    "gzip": GzipCodec(level=1),
    "blosc": BloscCodec(cname="lz4", clevel=1),
}
V2_COMPRESSORS: dict[str, Any] = {
    "zlib": numcodecs.Zlib(1),
    "zstd": numcodecs.Zstd(1),
    "blosc": numcodecs.Blosc("lz4", clevel=1),
    "gzip": numcodecs.GZip(1),
    "lz4": numcodecs.LZ4(),
}
INDEX_CODECS = [[BytesCodec(), Crc32cCodec()], [BytesCodec()], [BytesCodec(endian="big"), Crc32cCodec()]]


@attrs.frozen(eq=False)
class Layout:
    """What ``create_array`` is given, and the shape of its outermost chunks (None: they differ in shape)."""

    dtype: DType
    shape: tuple[int, ...]
    chunks: tuple[int, ...] | None
    options: Mapping[str, Any]

    @property
    def is_compressed(self) -> bool:
        """Whether a compressor makes the bytes; libraries and versions of one differ in them."""
        names = ("blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd")
        return self.options.get("compressors", "auto") == "auto" or any(
            name in repr(self.options).lower() for name in names
        )

    def create(self, store: Any, fill_value: Any) -> Any:
        """Create the array under the pipeline in use."""
        return zarr.create_array(store, shape=self.shape, dtype=self.dtype.zarr, fill_value=fill_value, **self.options)


@st.composite
def layouts(draw: Draw, dtype: DType) -> Layout:
    """Draw a layout for a data type."""
    # zarr cannot assign an object to an array without dimensions.
    ndim = draw(st.sampled_from([1, 2, 3, 4] if dtype.numpy.kind == "O" else [1, 2, 3, 0, 4]))
    shape = tuple(draw(st.lists(st.integers(0, 9 if ndim < 4 else 4), min_size=ndim, max_size=ndim)))
    kinds = [
        kind for version, kind in ((3, "chunks"), (3, "shards"), (3, "varied"), (2, "v2")) if version in dtype.formats
    ]
    kind = draw(st.sampled_from(kinds))
    if kind == "v2":
        return _v2(draw, dtype, shape)
    if kind == "varied" and ndim and all(shape):
        return _varied(draw, dtype, shape)
    if kind == "shards":
        return _sharded(draw, dtype, shape)
    chunks = _extents(draw, ndim, 5)
    return Layout(dtype, shape, chunks, {"chunks": chunks, **_v3_codecs(draw, dtype, ndim), **_config(draw)})


def _extents(draw: Draw, ndim: int, most: int) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(1, most), min_size=ndim, max_size=ndim)))


def _config(draw: Draw) -> dict[str, Any]:
    config = {"write_empty_chunks": draw(st.booleans()), "order": draw(st.sampled_from("CF"))}
    return {"config": config}


def _order(draw: Draw, ndim: int) -> tuple[int, ...]:
    return tuple(draw(st.permutations(range(ndim))))


def _serializer(draw: Draw, dtype: DType) -> Any:
    return "auto" if dtype.variable else BytesCodec(endian=draw(st.sampled_from(["little", "big"])))


def _compressors(draw: Draw) -> list[Any]:
    names = draw(st.lists(st.sampled_from(sorted(COMPRESSORS)), max_size=2, unique=True))
    return [COMPRESSORS[name] for name in names]


def _filters(draw: Draw, ndim: int) -> list[Any]:
    return [TransposeCodec(order=_order(draw, ndim)) for _ in range(draw(st.integers(0, 2)))] if ndim else []


def _v3_codecs(draw: Draw, dtype: DType, ndim: int) -> dict[str, Any]:
    return {
        "filters": _filters(draw, ndim) or None,
        "serializer": _serializer(draw, dtype),
        "compressors": _compressors(draw) or None,
    }


def _varied(draw: Draw, dtype: DType, shape: tuple[int, ...]) -> Layout:
    """Chunks whose extents along an axis differ."""
    edges = []
    for extent in shape:
        cuts = draw(st.sets(st.integers(1, max(extent - 1, 1)), max_size=3)) if extent > 1 else set()
        bounds = [0, *sorted(cuts), extent]
        edges.append([stop - start for start, stop in pairwise(bounds)])
    return Layout(dtype, shape, None, {"chunks": edges, **_v3_codecs(draw, dtype, len(shape)), **_config(draw)})


def _sharded(draw: Draw, dtype: DType, shape: tuple[int, ...]) -> Layout:
    """One or two levels of shards, with transposes at any level, and perhaps codecs around all."""
    ndim = len(shape)
    extents = _extents(draw, ndim, 3)
    codecs = [*_filters(draw, ndim), _inner_serializer(draw, dtype), *_compressors(draw)]
    for _ in range(draw(st.integers(1, 2))):
        sharding = _sharding(draw, extents, codecs)
        before = _filters(draw, ndim) if ndim < 4 and draw(st.booleans()) else []
        if before:  # zarr wants the inner shape to divide the shard's before and after the transposes
            extents = (math.lcm(*extents) * draw(st.integers(1, 2)),) * ndim
        else:
            extents = tuple(extent * draw(st.integers(1, 3)) for extent in extents)
        codecs = [*before, sharding]
    around = _compressors(draw) if draw(st.integers(0, 3)) == 3 else []
    options = {
        "chunks": extents,
        "filters": codecs[:-1] or None,
        "serializer": codecs[-1],
        "compressors": around or None,
    }
    return Layout(dtype, shape, extents, {**options, **_config(draw)})


def _sharding(draw: Draw, inner: tuple[int, ...], codecs: list[Any]) -> ShardingCodec:
    return ShardingCodec(
        chunk_shape=inner,
        codecs=codecs,
        index_codecs=draw(st.sampled_from(INDEX_CODECS)),
        index_location=draw(st.sampled_from(["start", "end"])),
        subchunk_write_order=draw(st.sampled_from(["morton", "lexicographic", "colexicographic"])),
    )


def _inner_serializer(draw: Draw, dtype: DType) -> Any:
    if not dtype.variable:
        return _serializer(draw, dtype)
    return zarr.codecs.VLenUTF8Codec() if dtype.name == "string" else zarr.codecs.VLenBytesCodec()


def _v2(draw: Draw, dtype: DType, shape: tuple[int, ...]) -> Layout:
    chunks = _extents(draw, len(shape), 5)
    compressor = draw(st.sampled_from([None, *V2_COMPRESSORS]))
    filters: Any = "auto" if dtype.variable else None
    if dtype.numpy.kind in "iu" and draw(st.booleans()):
        filters = [numcodecs.Delta(dtype=dtype.numpy.str)]
    options = {
        "chunks": chunks,
        "zarr_format": 2,
        "compressors": None if compressor is None else V2_COMPRESSORS[compressor],
        "filters": filters,
        "order": draw(st.sampled_from("CF")),
        "config": {"write_empty_chunks": draw(st.booleans())},
    }
    return Layout(dtype, shape, chunks, options)
