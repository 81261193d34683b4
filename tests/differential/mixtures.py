"""Random chains of less common codecs, among them codecs that only Python knows, at every place of a chain.

The values are small whole numbers, which all of the codecs here keep exactly.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    CastValue,
    Crc32cCodec,
    GzipCodec,
    ScaleOffset,
    ShardingCodec,
    TransposeCodec,
    ZstdCodec,
)
from zarr.codecs import numcodecs as named

from tests.differential.dtypes import DType, Rng
from tests.differential.layouts import Layout
from tests.support.codecs import AddOne, Invert, RawPartial

type Draw = st.DrawFn


def _small(name: str) -> DType:
    dtype = np.dtype(name)

    def draw(random: Rng, count: int) -> Any:
        return random.integers(0, 2 if dtype.kind == "b" else 100, count).astype(dtype)

    return DType(name, dtype, dtype, draw)


SMALL = [_small(name) for name in ("i2", "u4", "i8", "f4", "f8", "bool")]

BYTES_BYTES = [
    Invert(),
    Crc32cCodec(),
    GzipCodec(level=1),
    ZstdCodec(level=1, checksum=True),
    BloscCodec(cname="zstd", clevel=1, shuffle="shuffle", typesize=4),
    named.Zlib(level=1),
    named.BZ2(level=1),
    named.LZMA(preset=0),
    named.LZ4(),
    named.Zstd(level=1),
    named.GZip(level=1),
    named.Blosc(cname="lz4", shuffle=1),
    named.Shuffle(elementsize=1),
    named.CRC32(),
    named.CRC32C(),
    named.Adler32(),
    named.Fletcher32(),
]


@st.composite
def mixtures(draw: Draw) -> Layout:
    """Draw a layout."""
    dtype = draw(st.sampled_from(SMALL))
    ndim = draw(st.integers(1, 3))
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=ndim, max_size=ndim)))
    inner = tuple(draw(st.lists(st.integers(1, 4), min_size=ndim, max_size=ndim)))
    sharded = draw(st.booleans())
    compressors = _compressors(draw)
    # zarr's own pipelines cannot cast what is not aligned in memory: inner chunks, or what follows a checksum.
    aligned = not sharded and not any(isinstance(codec, named.Adler32 | named.CRC32) for codec in compressors)
    filters = _filters(draw, dtype, inner, aligned=aligned)
    serializer = draw(st.sampled_from([BytesCodec(), BytesCodec(endian="big"), RawPartial()]))
    chunks = inner
    if sharded:
        chunks = tuple(extent * draw(st.integers(1, 3)) for extent in inner)
        index = [BytesCodec(), *([Invert()] if draw(st.integers(0, 3)) == 3 else [Crc32cCodec()])]
        serializer = ShardingCodec(chunk_shape=inner, codecs=[*filters, serializer, *compressors], index_codecs=index)
        filters, compressors = [], draw(st.sampled_from([[], [], [Invert()]]))
    options = {
        "chunks": chunks,
        "filters": filters or None,
        "serializer": serializer,
        "compressors": compressors or None,
        "config": {"write_empty_chunks": draw(st.booleans())},
    }
    return Layout(dtype, shape, chunks, options)


def _compressors(draw: Draw) -> list[Any]:
    return draw(st.lists(st.sampled_from(BYTES_BYTES), max_size=3))


def _filters(draw: Draw, dtype: DType, shape: tuple[int, ...], *, aligned: bool) -> list[Any]:
    """At most one codec that changes the data type, with others before and after it."""
    filters: list[Any] = []
    if draw(st.booleans()):
        filters.append(TransposeCodec(order=tuple(draw(st.permutations(range(len(shape)))))))
    kind, name = dtype.numpy.kind, dtype.numpy.str
    if kind == "b":
        return [*filters, named.PackBits()] if draw(st.booleans()) else filters
    if draw(st.booleans()):
        filters.append(AddOne())
    choices: list[Any] = [[]]
    if kind in "iu":
        choices += [[named.Delta(dtype=name)], [named.AsType(encode_dtype="<i8", decode_dtype=name)]]
    else:
        choices += [[ScaleOffset(offset=2.0, scale=4.0)], [named.BitRound(keepbits=10)]]
        choices += [[named.Quantize(digits=3, dtype=name)]]
        choices += [[named.FixedScaleOffset(offset=0, scale=10, dtype=name, astype="<i4")]]
    if aligned:
        choices += [[CastValue(data_type="float64" if kind in "iu" else "int32")]]
    return [*filters, *draw(st.sampled_from(choices))]
