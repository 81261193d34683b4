"""Random codec chains for the core alone: metadata, bound and prepared for one chunk shape and one backend."""

from __future__ import annotations

import functools
import math
from typing import Any

import attrs
import hypothesis.strategies as st
import numpy as np
from hypothesis import reject
from numpy.typing import NDArray

from chunkwright import (
    Backend,
    CodecChain,
    ConfigurationError,
    DataType,
    PreparedChain,
    UnsupportedCodecError,
    from_array_metadata,
)
from tests.differential.dtypes import BLOBS, DTYPES, STRINGS, DType, Rng, Values, choice

type Draw = st.DrawFn
type Json = dict[str, Any]

LITTLE: Json = {"name": "bytes", "configuration": {"endian": "little"}}
BIG: Json = {"name": "bytes", "configuration": {"endian": "big"}}
CRC32C: Json = {"name": "crc32c"}

BYTES_BYTES: list[Json] = [
    CRC32C,
    {"name": "gzip", "configuration": {"level": 1}},
    {"name": "zstd", "configuration": {"level": 1, "checksum": False}},
    {"name": "zstd", "configuration": {"level": 1, "checksum": True}},
    *(
        {
            "name": "blosc",
            "configuration": {"cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": 2, "blocksize": 0},
        }
        for cname, shuffle in (("lz4", "shuffle"), ("zstd", "bitshuffle"), ("blosclz", "noshuffle"))
    ),
    *(
        {"name": f"numcodecs.{name}", "configuration": {}}
        for name in (
            "adler32",
            "blosc",
            "bz2",
            "crc32",
            "crc32c",
            "fletcher32",
            "gzip",
            "jenkins_lookup3",
            "lz4",
            "lzma",
            "zlib",
            "zstd",
        )
    ),
    {"name": "numcodecs.shuffle", "configuration": {"elementsize": 1}},
]

PACKBITS: Json = {"name": "numcodecs.packbits"}
DELTA: Json = {"name": "numcodecs.delta", "configuration": {"dtype": "|u1"}}
V2_COMPRESSORS: list[Json | None] = [
    None,
    {"id": "zlib", "level": 1},
    {"id": "zstd", "level": 1},
    {"id": "blosc", "cname": "lz4", "clevel": 1, "shuffle": 1},
    {"id": "lz4"},
    {"id": "bz2", "level": 1},
    {"id": "lzma"},
    {"id": "base64"},
]


def _arrays(random: Rng, count: int) -> list[Any]:
    return [np.arange(number, dtype="<i4") for number in random.integers(0, 4, count)]


def _objects(name: str, values: Values) -> DType:
    return DType(name, "object", np.dtype(object), values, variable=True)


TEXTS = attrs.evolve(_objects("text", STRINGS), numpy=np.dtypes.StringDType())
MIXED = _objects("mixed", choice("", "a", "日本語", 1, 2.5, None, True))
LABELS = DType("labels", "<U1", np.dtype("<U1"), choice("a", "b", "ß", ""))
V2_FILTERS: list[tuple[DType, list[Json]]] = [
    (TEXTS, [{"id": "vlen-utf8"}]),
    (_objects("bytes", BLOBS), [{"id": "vlen-bytes"}]),
    (MIXED, [{"id": "json2"}]),
    (MIXED, [{"id": "msgpack2"}]),
    (_objects("arrays", _arrays), [{"id": "vlen-array", "dtype": "<i4"}]),
    (LABELS, [{"id": "categorize", "labels": ["a", "b", "ß"], "dtype": "<U1"}]),
    *((dtype, []) for dtype in DTYPES if not dtype.variable),
]

VLEN: list[Json] = [{"name": "vlen-utf8"}, {"name": "vlen-bytes"}]


def _runs(backend: Backend, metadata: list[Json], dtype: Any = "uint8") -> bool:
    """Whether a backend runs a chain."""
    try:
        CodecChain.from_json(metadata).bind(dtype, None).prepare((4,), backends=[backend])
    except UnsupportedCodecError:
        return False
    return True


@functools.cache
def supported(backend: Backend) -> tuple[list[Json], list[DType]]:
    """The bytes->bytes codecs that a backend runs, and the data types."""
    codecs = [codec for codec in BYTES_BYTES if _runs(backend, [LITTLE, codec])]
    strings = _runs(backend, [VLEN[0]], "string")
    return codecs, [dtype for dtype in DTYPES if strings or not dtype.variable]


@attrs.frozen(eq=False)
class Chain:
    """A prepared chain and how to fill chunks of it."""

    dtype: DType
    fill_value: Any
    metadata: list[Json]
    prepared: PreparedChain

    def chunk(self, random: np.random.Generator) -> NDArray[Any]:
        """A chunk; now and then boxes of it hold nothing but the fill value."""
        values = self.dtype.values(random, self.prepared.spec.shape)
        if random.random() < 0.6 and not isinstance(self.fill_value, np.ndarray):
            box = tuple(slice(random.integers(extent + 1), None) for extent in values.shape)
            values[box] = self.fill_value
        return values

    def __repr__(self) -> str:
        return f"Chain({self.dtype}, shape={self.prepared.spec.shape}, codecs={self.metadata})"


@st.composite
def chains(draw: Draw, backend: Backend) -> Chain:
    """Draw a chain that this backend runs."""
    codecs, dtypes = supported(backend)
    compressors = st.lists(st.sampled_from(codecs), max_size=2)
    dtype = draw(st.sampled_from(dtypes))
    ndim = draw(st.sampled_from([1, 2, 3, 0]))
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=ndim, max_size=ndim)))
    metadata = [*_filters(draw, backend, dtype, ndim), _array_bytes(draw, dtype), *draw(compressors)]
    for _ in range(draw(st.integers(0, 2))):
        sharding = _sharding(draw, shape, metadata)
        before = _transposes(draw, ndim)
        if before:
            shape = (math.lcm(*shape) * draw(st.integers(1, 2)),) * ndim
        else:
            shape = tuple(extent * draw(st.integers(1, 3)) for extent in shape)
        after = draw(compressors) if draw(st.integers(0, 4)) == 4 else []
        metadata = [*before, sharding, *after]
    fill_value = dtype.scalar(np.random.default_rng(draw(st.integers(0, 99))))
    data_type: Any = (
        DataType(dtype.numpy, "string" if dtype.name == "string" else "bytes") if dtype.variable else dtype.numpy
    )
    bound = CodecChain.from_json(metadata).bind(data_type, fill_value)
    return Chain(dtype, fill_value, metadata, bound.prepare(shape, backends=[backend]))


@st.composite
def v2_chains(draw: Draw, backend: Backend) -> Chain:
    """Draw a chain of Zarr v2 metadata."""
    dtype, filters = draw(st.sampled_from(V2_FILTERS))
    ndim = draw(st.integers(0, 3))
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=ndim, max_size=ndim)))
    metadata = {
        "zarr_format": 2,
        "shape": list(shape),
        "chunks": list(shape),
        "dtype": "|O" if dtype.variable else dtype.numpy.descr if dtype.numpy.names else dtype.numpy.str,
        "fill_value": None,
        "order": draw(st.sampled_from("CF")),
        "filters": filters or None,
        "compressor": draw(st.sampled_from(V2_COMPRESSORS)),
    }
    try:
        bound, _ = from_array_metadata(metadata)
        prepared = bound.prepare(shape, backends=[backend])
    except ConfigurationError:  # json2 and its like have no room for order F; the reference backend has no lz4
        reject()
    return Chain(dtype, dtype.scalar(np.random.default_rng(0)), [metadata], prepared)


def _array_bytes(draw: Draw, dtype: DType) -> Json:
    if dtype.variable:
        return {"name": "vlen-utf8" if dtype.name == "string" else "vlen-bytes"}
    return draw(st.sampled_from([LITTLE, BIG]))


def _transposes(draw: Draw, ndim: int) -> list[Json]:
    if not ndim or draw(st.integers(0, 2)):
        return []
    return [{"name": "transpose", "configuration": {"order": list(draw(st.permutations(range(ndim))))}}]


def _filters(draw: Draw, backend: Backend, dtype: DType, ndim: int) -> list[Json]:
    """Array->array codecs that keep every value of the data type."""
    filters = _transposes(draw, ndim)
    if dtype.numpy.kind in "iu" and draw(st.booleans()) and _runs(backend, [DELTA, LITTLE]):
        filters.append({"name": "numcodecs.delta", "configuration": {"dtype": dtype.numpy.str}})
    if dtype.numpy.kind == "b" and draw(st.booleans()) and _runs(backend, [PACKBITS, LITTLE], "bool"):
        filters.append(PACKBITS)
    return filters


def _sharding(draw: Draw, inner: tuple[int, ...], codecs: list[Json]) -> Json:
    return {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": list(inner),
            "codecs": codecs,
            "index_codecs": draw(st.sampled_from([[LITTLE, CRC32C], [LITTLE], [BIG, CRC32C]])),
            "index_location": draw(st.sampled_from(["start", "end"])),
        },
    }
