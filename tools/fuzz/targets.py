"""Chains to feed: every codec that a backend runs, alone, behind others, and inside shards of several forms.

Each comes with encoded chunks to damage: of the right size, of other sizes, and of 8 MiB of zeros, which compress to a
bomb.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright import Backend, BoundChain, CodecChain, CodecError, PreparedChain, from_array_metadata
from chunkwright.testing.cases import BYTES_CODECS
from tools.fuzz.forms import Form, Layers, Plain, Shard

__all__ = ("Target", "targets")

MIB = 1 << 20
MOST_OF_UNBOUNDED = 1 << 16
ALLOWANCE = 4 * MIB

# What the documentation of the numcodecs backend says about memory that the chain does not bound, and what bzip2
# takes for its blocks, in each of several threads.
MORE_MEMORY = {
    "numcodecs.bz2": 12 * MIB,
    "numcodecs.lzma": 300 * MIB,
    "numcodecs.msgpack2": 64 * MIB,
    "numcodecs.pcodec": 64 * MIB,
    "numcodecs.zfpy": 64 * MIB,
}
WINDOW_OF_UNBOUNDED_ZSTD = 144 * MIB


def _named(name: str, **configuration: Any) -> dict[str, Any]:
    return {"name": name, "configuration": configuration}


LITTLE = _named("bytes", endian="little")
CRC32C = _named("crc32c")
ZSTD = _named("zstd", level=1, checksum=False)

# Array->array codecs and array->bytes codecs of numbers: the data type, and the codecs.
OF_NUMBERS: list[tuple[str, list[Any]]] = [
    ("int32", [LITTLE]),
    ("bool", [_named("numcodecs.packbits"), LITTLE]),
    ("float32", [_named("numcodecs.bitround", keepbits=10), LITTLE, ZSTD]),
    ("int32", [_named("numcodecs.delta", dtype="<i4"), LITTLE, ZSTD]),
    ("float64", [_named("numcodecs.quantize", digits=2, dtype="<f8"), LITTLE]),
    ("float64", [_named("numcodecs.fixedscaleoffset", offset=0, scale=10, dtype="<f8", astype="<i4"), LITTLE]),
    ("float64", [_named("numcodecs.astype", encode_dtype="<f4", decode_dtype="<f8"), LITTLE]),
    ("int32", [_named("scale_offset", scale=3, offset=2), LITTLE]),
    ("float64", [_named("cast_value", data_type="int32"), LITTLE]),
    ("int32", [_named("cast_value", data_type="float64"), LITTLE]),
    ("int32", [_named("numcodecs.pcodec")]),
    ("float64", [_named("numcodecs.pcodec"), CRC32C]),
    ("float64", [_named("numcodecs.zfpy", mode=4, tolerance=0.01)]),
]

# Codecs that only Zarr v2 has: the data type, the filter or the compressor, and elements.
OF_VERSION_2: list[tuple[str, dict[str, Any], dict[str, Any] | None, list[Any]]] = [
    ("|O", {"id": "json2"}, None, ["", "chunk", 5]),
    ("|O", {"id": "msgpack2"}, None, ["", "chunk", 5]),
    ("|O", {"id": "vlen-array", "dtype": "<i4"}, None, [np.arange(3, dtype="<i4")]),
    ("<U1", {"id": "categorize", "labels": ["a", "b"], "dtype": "<U1"}, None, ["a", "b"]),
    ("<i4", {"id": "delta", "dtype": "<i4"}, {"id": "base64"}, [3, 4]),
]

SHAPE = (6, 7)
LARGE = (16, 32, 72)

# What does not compress would be no bomb, and slow to hand around.
LARGEST_EXAMPLE = 1 << 20


@attrs.frozen(eq=False)
class Target:
    """A prepared chain, a good chunk, and what makes bad ones."""

    name: str
    prepared: PreparedChain
    array: NDArray[Any]
    encoded: bytes
    form: Form
    allowance: int = ALLOWANCE


def targets(backend: Backend) -> list[Target]:
    """Make every target that a backend runs by itself."""
    made = [*_of_bytes_codecs(backend), *_of_numbers(backend), *_of_text(backend), *_of_version_2(backend)]
    return [target for target in (*made, *_shards(backend)) if target is not None]


def _of_bytes_codecs(backend: Backend) -> Iterator[Target | None]:
    for codec in BYTES_CODECS:
        for shape in (SHAPE, LARGE):
            yield _target(backend, "int32", [LITTLE, codec], shape)
        yield _target(backend, "int32", [LITTLE, codec, CRC32C], SHAPE)
        yield _target(backend, "int32", [LITTLE, CRC32C, codec], SHAPE)
    several = [_named("numcodecs.shuffle", elementsize=4), ZSTD, _named("gzip", level=1), CRC32C]
    yield _target(backend, "int32", [_named("transpose", order=[1, 0]), LITTLE, *several], SHAPE)


def _of_numbers(backend: Backend) -> Iterator[Target | None]:
    for dtype, codecs in OF_NUMBERS:
        if codecs[0]["name"] != "numcodecs.zfpy" or importlib.util.find_spec("zfpy"):
            yield _target(backend, dtype, codecs, SHAPE)


def _of_text(backend: Backend) -> Iterator[Target | None]:
    for dtype, name in (("string", "vlen-utf8"), ("variable_length_bytes", "vlen-bytes")):
        yield _target(backend, dtype, [_named(name)], SHAPE)
        yield _target(backend, dtype, [_named(name), CRC32C], SHAPE)
    for codec in BYTES_CODECS:
        # Shuffled bytes have to be a multiple of the element's size.
        if codec["name"] != "numcodecs.shuffle":
            yield _target(backend, "string", [_named("vlen-utf8"), codec], SHAPE)


def _of_version_2(backend: Backend) -> Iterator[Target | None]:
    for dtype, codec, compressor, pool in OF_VERSION_2:
        if codec["id"] == "msgpack2" and not importlib.util.find_spec("msgpack"):
            continue
        metadata = {
            "zarr_format": 2, "shape": SHAPE, "chunks": SHAPE, "dtype": dtype, "order": "C",
            "fill_value": None if dtype == "|O" else np.zeros(1, dtype)[0].item(), "filters": [codec],
            "compressor": compressor,
        }  # fmt: skip
        array = np.empty(42, dtype)
        array[:] = [pool[at % len(pool)] for at in range(42)]
        bound, shape = from_array_metadata(metadata)
        yield _made(f"numcodecs.{codec['id']}", backend, bound, array.reshape(shape))


def _shards(backend: Backend) -> Iterator[Target | None]:
    for at_start in (False, True):
        for index in ([LITTLE, CRC32C], [LITTLE]):
            for inner in ([LITTLE], [LITTLE, ZSTD], [LITTLE, _named("gzip", level=1), CRC32C], [_named("vlen-utf8")]):
                yield _shard(backend, inner, index, at_start)
    nested = _sharding([2, 2], [LITTLE, CRC32C], [LITTLE, CRC32C], False)
    yield _shard(backend, [nested], [LITTLE, CRC32C], False)


def _sharding(chunk: Sequence[int], codecs: list[Any], index: list[Any], at_start: bool) -> dict[str, Any]:
    location = "start" if at_start else "end"
    return _named(
        "sharding_indexed", chunk_shape=list(chunk), codecs=codecs, index_codecs=index, index_location=location
    )


def _shard(backend: Backend, inner: list[Any], index: list[Any], at_start: bool) -> Target | None:
    dtype = "string" if inner[0]["name"] == "vlen-utf8" else "int32"
    return _target(backend, dtype, [_sharding([4, 4], inner, index, at_start)], (8, 12))


def _target(backend: Backend, dtype: str, codecs: list[Any], shape: tuple[int, ...]) -> Target | None:
    name = f"{', '.join(_names(codecs))} of {dtype} {shape}"
    fill: Any = {"string": "", "variable_length_bytes": ""}.get(dtype, 0)
    bound = CodecChain.from_json(codecs).bind(dtype, fill)
    return _made(name, backend, bound, _values(dtype, shape), codecs)


def _names(codecs: Sequence[Any]) -> Iterator[str]:
    for codec in codecs:
        name, options = codec["name"], codec["configuration"]
        if name == "sharding_indexed":
            inner, index = (", ".join(_names(options[key])) for key in ("codecs", "index_codecs"))
            yield f"sharding_indexed({inner}; index at {options['index_location']}: {index})"
        else:
            yield " ".join([name, *(options[key] for key in ("cname", "location") if key in options)])


def _values(dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    count = int(np.prod(shape))
    if dtype in ("string", "variable_length_bytes"):
        texts = [("", "a", "äöü", "\U0001f40d" * 3, "z" * 70)[at % 5] for at in range(count)]
        array = np.empty(count, object)
        array[:] = texts if dtype == "string" else [text.encode() for text in texts]
        return array.reshape(shape)
    return (np.arange(count) * 6 % 11).astype(dtype).reshape(shape)


def _made(
    name: str, backend: Backend, bound: BoundChain, array: NDArray[Any], codecs: Sequence[Any] = ()
) -> Target | None:
    try:
        prepared = bound.prepare(array.shape, backends=[backend], max_chunk_bytes=MOST_OF_UNBOUNDED)
    except CodecError:
        # Not for this backend, or not for this data type.
        return None
    encoded = _encoded(prepared, array)
    names = {codec["name"] for codec in codecs} | {name}
    allowance = max([ALLOWANCE, *(MORE_MEMORY.get(each, 0) for each in names)])
    if array.dtype == object and any("zstd" in each for each in names):
        allowance = max(allowance, WINDOW_OF_UNBOUNDED_ZSTD)
    return Target(name, prepared, array, encoded, _form(backend, prepared, array, codecs), allowance)


def _encoded(prepared: PreparedChain, array: NDArray[Any]) -> bytes:
    encoded = prepared.encode(array, keep_empty=True)
    assert encoded is not None
    return bytes(encoded)


def _form(backend: Backend, prepared: PreparedChain, array: NDArray[Any], codecs: Sequence[Any]) -> Form:
    if prepared.shard is not None:
        return _shard_form(backend, prepared, array, codecs[-1]["configuration"])
    wrapping = _wrapping(codecs)
    outermost = _plain(backend, prepared, array, codecs)
    if len(wrapping) < 2:
        return outermost
    inner = []
    for number in range(1, len(wrapping)):
        front = list(codecs[: len(codecs) - number])
        part = _prepared(backend, front, prepared, array.shape)
        inner.append((_plain(backend, part, array, front), partial(_wrap, backend, codecs[len(codecs) - number :])))
    return Layers(outermost, inner)


def _wrapping(codecs: Sequence[Any]) -> list[Any]:
    """The bytes->bytes codecs."""
    known = {codec["name"] for codec in BYTES_CODECS}
    return [codec for codec in codecs if codec["name"] in known]


def _prepared(backend: Backend, codecs: list[Any], like: PreparedChain, shape: tuple[int, ...]) -> PreparedChain:
    bound = CodecChain.from_json(codecs).bind(like.spec.dtype, like.spec.fill_value)
    return bound.prepare(shape, backends=[backend], max_chunk_bytes=1 << 30)


def _wrap(backend: Backend, codecs: Sequence[Any], data: bytes) -> bytes:
    """Encode bytes as the last codecs of a chain do; not all of them can encode nothing."""
    if not data:
        return data
    bound = CodecChain.from_json([LITTLE, *codecs]).bind("uint8", 0)
    return _encoded(bound.prepare((len(data),), backends=[backend]), np.frombuffer(data, np.uint8))


def _plain(backend: Backend, prepared: PreparedChain, array: NDArray[Any], codecs: Sequence[Any]) -> Plain:
    encoded = _encoded(prepared, array)
    examples = [encoded]
    if codecs and array.ndim == len(SHAPE):
        # A bomb takes a while to make, so not every combination gets one.
        bombs = [(1024, 2048)] if len(codecs) == 2 and array.dtype != object else []
        for shape in ((3, 7), (6, 8), *bombs):
            other = _prepared(backend, list(codecs), prepared, shape)
            examples.append(_encoded(other, other.spec.full()))
    sizes = [array.nbytes, array.size, len(encoded)]
    return Plain([example for example in examples if len(example) < LARGEST_EXAMPLE], sizes)


def _shard_form(backend: Backend, prepared: PreparedChain, array: NDArray[Any], configuration: dict[str, Any]) -> Shard:
    shard = prepared.shard
    assert shard is not None
    chunk = shard.inner.spec.shape
    grid = [extent // length for extent, length in zip(array.shape, chunk, strict=True)]
    examples: list[bytes | None] = []
    for cell in np.ndindex(*grid):
        box = tuple(slice(at * length, (at + 1) * length) for at, length in zip(cell, chunk, strict=True))
        examples.append(_encoded(shard.inner, array[box]))
    examples[1] = None
    first = array[tuple(slice(0, length) for length in chunk)]
    inner = _form(backend, shard.inner, first, configuration["codecs"])
    whole = Plain([_encoded(prepared, array)], [array.nbytes, len(examples)])
    return Shard(whole, shard.index, configuration["index_location"] == "start", inner, examples)
