"""Try each codec that zarr-python and numcodecs register, with each backend, against the library's own codec.

The library encodes; the backend decodes that, and encodes the same elements. Other bytes than the library's are given
to the library to decode. For Zarr v3 the library is zarr-python's default pipeline, for Zarr v2 the codec of numcodecs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs
import numcodecs.pickles
import numcodecs.registry
import numpy as np
import zarr
import zarr.registry
from numcodecs.errors import UnsafeDecodeError
from numpy.typing import NDArray
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.buffer.cpu import Buffer
from zarr.core.sync import sync
from zarr.storage import MemoryStore

from chunkwright import Backend, PreparedChain, UnsupportedCodecError, from_array_metadata
from chunkwright.codecs.numcodecs_codecs import KNOWN
from tools.supported.samples import NUMCODECS, ZARR, Sample, check_samples, elements

__all__ = ("DEFAULT", "WRONG", "Tried", "run_by", "same", "v2_rows", "v3_rows")

SHAPE = (64, 40)
TIME = slice(4, 8)
WRONG = "WRONG VALUES"
SAME_VALUES, SAME_BYTES, OTHER_BYTES = "same values", "same bytes", "other bytes, same values"
PREFIX = "numcodecs."
DEFAULT = {"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}


@attrs.frozen
class Stored:
    """One chunk as a library stores it.

    Parameters
    ----------
    metadata
        Of the array.
    chunk
        The bytes.
    decode
        Decodes bytes as the library does.
    """

    metadata: Mapping[str, Any]
    chunk: bytes
    decode: Callable[[bytes], NDArray[Any]]


@attrs.frozen
class Tried:
    """What came of a codec with a backend: three cells of a row.

    Parameters
    ----------
    kernel
        What runs it, or why nothing does.
    decode, encode
        How the results compare.
    """

    kernel: str
    decode: str
    encode: str

    @property
    def cells(self) -> tuple[str, str, str]:
        """The cells in order."""
        return self.kernel, self.decode, self.encode


def v3_rows(backends: list[Backend]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each codec that zarr-python registers."""
    names = sorted(zarr.registry._codec_registries)
    samples = {**ZARR, **{PREFIX + name: NUMCODECS[name] for name in NUMCODECS if PREFIX + name in names}}
    check_samples("zarr-python", names, samples)
    for name in names:
        values = elements(samples[name].dtype, SHAPE[0] * SHAPE[1]).reshape(SHAPE)
        yield _row(name, samples[name], values, _by_zarr(name, samples[name], values), backends)


def run_by(backend: Backend) -> Iterator[str]:
    """Yield the codecs that zarr-python registers and a backend runs, with the same results.

    Parameters
    ----------
    backend
        The backend.
    """
    for row in v3_rows([backend]):
        if row[-2] == SAME_VALUES and row[-1] == SAME_BYTES:
            yield row[0]


def v2_rows(backends: list[Backend]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each filter and compressor that numcodecs registers."""
    names = sorted({*numcodecs.registry.codec_registry, *numcodecs.registry.entries})
    check_samples("numcodecs", names, NUMCODECS)
    for name in names:
        values = elements(NUMCODECS[name].dtype, SHAPE[0] * SHAPE[1]).reshape(SHAPE)
        yield _row(name, NUMCODECS[name], values, _by_numcodecs(name, NUMCODECS[name], values), backends)


def _row(name: str, sample: Sample, values: NDArray[Any], stored: Stored, backends: list[Backend]) -> tuple[str, ...]:
    bound, _ = from_array_metadata(stored.metadata)
    written = sample.alias_of or name
    codec = next(codec for codec in bound.codecs if codec.name in (written, PREFIX + name))
    cells = [cell for backend in backends for cell in _try(codec.name, values, stored, backend).cells]
    return f"`{name}`", codec.kind, f"`{sample.dtype}`", *cells


def _try(name: str, values: NDArray[Any], stored: Stored, backend: Backend) -> Tried:
    bound, shape = from_array_metadata(stored.metadata)
    assert shape is not None
    try:
        prepared = bound.prepare(shape, backends=[backend])
    except UnsupportedCodecError as error:
        reason = error.message.removeprefix(f"no backend runs it ({backend.name}: ").removesuffix(")")
        return Tried(f"no: {reason}", "no", "no")
    with _pickles_allowed():
        expected = stored.decode(stored.chunk)
    decode = _decoded(prepared, stored, expected)
    encode = _encoded(name, bytes(prepared.encode(values, keep_empty=True) or b""), stored, expected)
    run = next(run for run in prepared.explain().runs if name in run.codecs)
    kernel = "core" if run.backend == "core" else run.kernels[run.codecs.index(name)]
    return Tried(kernel, decode, encode)


@contextmanager
def _pickles_allowed() -> Iterator[None]:
    numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE = True
    try:
        yield
    finally:
        numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE = False


def _decoded(prepared: PreparedChain, stored: Stored, expected: NDArray[Any]) -> str:
    told = SAME_VALUES
    try:
        found = prepared.decode(stored.chunk)
    except UnsafeDecodeError:
        told = f"{SAME_VALUES}, if the process allows pickles"
        with _pickles_allowed():
            found = prepared.decode(stored.chunk)
    return told if same(found, expected) else WRONG


def _encoded(name: str, found: bytes, stored: Stored, expected: NDArray[Any]) -> str:
    with _pickles_allowed():
        if not same(stored.decode(found), expected):
            return WRONG
    if name.removeprefix(PREFIX) == "gzip":
        # A gzip header may tell the time, which must not decide what the page says.
        timeless = [data[: TIME.start] + data[TIME.stop :] for data in (found, stored.chunk)]
        return f"{SAME_BYTES} but for the time" if timeless[0] == timeless[1] else OTHER_BYTES
    return SAME_BYTES if found == stored.chunk else OTHER_BYTES


def same(found: Any, expected: Any) -> bool:
    """Whether two arrays have the same data type, shape and bits (values, for elements of variable length).

    Parameters
    ----------
    found, expected
        The arrays.
    """
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind in "OT":
        return all(np.array_equal(a, b) for a, b in zip(found.flat, expected.flat, strict=True))
    return bool(found.dtype == expected.dtype) and found.tobytes() == expected.tobytes()


def _by_zarr(name: str, sample: Sample, values: NDArray[Any]) -> Stored:
    document: dict[str, Any] = {"name": sample.alias_of or name, "configuration": dict(sample.configuration)}
    codec = zarr.registry.get_codec_class(name).from_dict(document)
    chain: dict[str, Any] = {"filters": (), "serializer": "auto", "compressors": ()}
    if isinstance(codec, ArrayBytesCodec):
        chain["serializer"] = codec
    else:
        chain["filters" if isinstance(codec, ArrayArrayCodec) else "compressors"] = (codec,)
    store = MemoryStore()
    dtype = {"string": "string", "bytes": "variable_length_bytes"}.get(sample.dtype, sample.dtype)
    with zarr.config.set(DEFAULT):
        array: Any = zarr.create_array(
            store, shape=SHAPE, chunks=SHAPE, dtype=dtype, config={"write_empty_chunks": True}, **chain
        )
        array[...] = values
    key = array.metadata.encode_chunk_key((0, 0))

    def decode(chunk: bytes) -> NDArray[Any]:
        sync(store.set(key, Buffer.from_bytes(chunk)))
        read: NDArray[Any] = array[...]
        return read

    return Stored(_metadata(store, name, sample), _content(store, key), decode)


def _metadata(store: MemoryStore, name: str, sample: Sample) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_content(store, "zarr.json"))
    for codec in document["codecs"]:
        if codec["name"] == sample.alias_of:
            codec["name"] = name
    return document


def _content(store: MemoryStore, key: str) -> bytes:
    found = sync(store.get(key, default_buffer_prototype()))
    assert found is not None
    return found.to_bytes()


def _by_numcodecs(name: str, sample: Sample, values: NDArray[Any]) -> Stored:
    document = {"id": name, **sample.configuration}
    codec = numcodecs.get_codec(dict(document))
    compresses = name in KNOWN and KNOWN[name].kind == "bytes->bytes"
    metadata = {
        "zarr_format": 2,
        "shape": list(SHAPE),
        "chunks": list(SHAPE),
        "dtype": values.dtype.str,
        "order": "C",
        "fill_value": None,
        "filters": None if compresses else [document],
        "compressor": document if compresses else None,
    }

    def decode(chunk: bytes) -> NDArray[Any]:
        decoded = codec.decode(chunk)
        if values.dtype.hasobject:
            return np.asarray(decoded).reshape(SHAPE)
        return np.frombuffer(np.ascontiguousarray(decoded).tobytes(), values.dtype).reshape(SHAPE)

    encoded = codec.encode(values)
    return Stored(metadata, encoded if isinstance(encoded, bytes) else np.asarray(encoded).tobytes(), decode)
