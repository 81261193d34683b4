"""What the battery encodes: chains, values of every data type, and chunks that other libraries encoded."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.testing._vectors import VECTORS

__all__ = ("BYTES_CODECS", "DTYPES", "SHAPES", "chains", "values", "vectors")

SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (7,), (3, 4, 5))
"""Shapes of chunks: no axis, one element, an odd number, several axes."""

RECORD = [("a", "<i2"), ("b", "<f4"), ("c", "|S3")]
PADDED = {"names": ["a", "b"], "formats": ["|u1", "<i4"], "offsets": [0, 4], "itemsize": 8}

DTYPES: tuple[Any, ...] = (
    *("|b1", "|i1", "<u2", ">i4", "<i8", "<f2", ">f4", "<f8", "<c8", ">c16"),
    *("<M8[s]", "<m8[ns]", "|S3", "<U2", ">U2", "|V5", RECORD, PADDED),
)
"""Data types of a fixed number of bytes."""


def _named(name: str, **configuration: Any) -> dict[str, Any]:
    return {"name": name, "configuration": configuration}


BYTES_CODECS: tuple[dict[str, Any], ...] = (
    _named("zstd", level=3, checksum=True),
    _named("gzip", level=5),
    _named("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=4, blocksize=0),
    _named("blosc", cname="zstd", clevel=3, shuffle="bitshuffle", typesize=2, blocksize=0),
    _named("crc32c"),
    *(_named(f"numcodecs.{name}") for name in ("zlib", "bz2", "lzma", "lz4", "zstd", "gzip", "blosc")),
    *(_named(f"numcodecs.{name}") for name in ("adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3")),
    _named("numcodecs.crc32", location="end"),
    _named("numcodecs.shuffle"),
)
"""Every bytes->bytes codec, some in several configurations."""


def chains(dtype: Any, ndim: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield chains for a data type, each with a name.

    Parameters
    ----------
    dtype
        The data type.
    ndim
        Axes of a chunk.

    Yields
    ------
    tuple of str and list
        The name, and the codecs as JSON.
    """
    little, big = _named("bytes", endian="little"), _named("bytes", endian="big")
    backwards = _named("transpose", order=list(range(ndim))[::-1])
    rolled = _named("transpose", order=[*range(1, ndim), *range(min(ndim, 1))])
    yield "bytes", [little]
    yield "bytes, big", [big]
    yield "transpose, transpose, bytes", [backwards, rolled, big]
    for codec in BYTES_CODECS:
        label = ", ".join([codec["name"], *(str(value) for value in codec["configuration"].values())])
        yield f"bytes, {label}", [little, codec]
    yield "bytes, crc32c, zstd, crc32c", [little, _named("crc32c"), _named("zstd"), _named("crc32c")]
    yield "transpose, bytes, zstd", [rolled, little, _named("zstd")]
    kind = np.dtype(dtype).kind
    if kind in "iuf" and np.dtype(dtype).itemsize > 1:
        yield "numcodecs.pcodec", [rolled, _named("numcodecs.pcodec"), _named("crc32c")]
    if kind == "f" and np.dtype(dtype).isnative:
        yield "numcodecs.bitround", [_named("numcodecs.bitround", keepbits=10), backwards, big]


def values(dtype: Any, shape: tuple[int, ...], seed: int = 0) -> NDArray[Any]:
    """Make elements that compress, and differ in every byte.

    Parameters
    ----------
    dtype
        A data type of a fixed number of bytes.
    shape
        Of the chunk.
    seed
        Other elements for another number.

    Returns
    -------
    NDArray
        Of this shape.
    """
    dtype = np.dtype(dtype)
    rng, count = np.random.default_rng(seed), int(np.prod(shape, dtype=int))
    if dtype.names is not None:
        array = np.zeros(count, dtype)
        for name in dtype.names:
            array[name] = values(dtype[name], (count,), seed + 1)
        return array.reshape(shape)
    if dtype.kind == "U":
        width = dtype.itemsize // 4
        texts = ["".join(map(chr, rng.integers(0x20, 0x2FFF, width))) for _ in range(count)]
        return np.array(texts, dtype).reshape(shape)
    if dtype.kind == "b":
        truths: NDArray[Any] = rng.integers(0, 2, count) == 1
        return truths.reshape(shape)
    raw = rng.integers(33, 60, count * dtype.itemsize, np.uint8)
    return np.frombuffer(raw.tobytes(), dtype).reshape(shape)


def vectors() -> Iterator[tuple[str, list[dict[str, Any]], NDArray[Any], bytes]]:
    """Yield chunks that other libraries encoded.

    Yields
    ------
    tuple
        A name, the codecs as JSON, what the chunk decodes to, and the encoded bytes.
    """
    array = (np.arange(42, dtype="<i4") % 11).reshape(6, 7) * 6
    for codec, text in VECTORS:
        chain = [codec] if codec["name"] == "numcodecs.pcodec" else [_named("bytes", endian="little"), codec]
        yield codec["name"], chain, array, base64.b64decode(text)
