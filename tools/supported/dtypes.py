"""Try each data type that zarr-python registers, with each backend, against zarr-python's default pipeline.

An array is written under both pipelines, with a chunk that is written in part and one that is missing, and read under
both: reading must give the same elements and writing the same stored objects. What zarr-python does not know, the core
is tried with, against the bytes that NumPy has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import ml_dtypes
import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.core.dtype import VariableLengthBytes, data_type_registry, get_data_type_from_json
from zarr.core.dtype.npy.common import DATETIME_UNIT
from zarr.storage import MemoryStore

from chunkwright import Backend, CodecChain, ConfigurationError, PreparedChain, from_array_metadata
from chunkwright_zarr import explain
from tools.supported.codecs import DEFAULT, WRONG, same
from tools.supported.samples import NUMCODECS, elements

__all__ = ("embedder_rows", "zarr_rows")

WRITTEN, LENGTH, CHUNK = 6, 12, 4
SUPPORTED = "read, write"
RECORD = [("a", "<i4"), ("b", "<f8"), ("c", "S3"), ("d", [("e", "?"), ("f", ">U2")])]
# Without the letter that is not in ASCII and means the same as `us`.
UNITS = [unit for unit in DATETIME_UNIT if unit != "generic" and unit.isascii()]


@attrs.frozen
class Sample:
    """What a data type of zarr-python's is tried as.

    Parameters
    ----------
    told
        What the table says that it is tried as.
    dtypes
        Each is what ``zarr.create_array`` takes, and what :func:`elements` takes.
    """

    told: str
    dtypes: tuple[tuple[Any, Any], ...]


def _numpy(told: str, *dtypes: Any) -> Sample:
    return Sample(told, tuple((np.dtype(dtype), np.dtype(dtype)) for dtype in dtypes))


def _times(letter: str) -> Sample:
    dtypes = [f"{order}{letter}8[{count}{unit}]" for order in "<>" for count in ("", "10") for unit in UNITS]
    return _numpy(f"`<` and `>`, `{letter}8[…]` and `{letter}8[10…]` of {', '.join(UNITS)}; no unit", *dtypes, letter)


# Where the name of Zarr v3 is not one of NumPy's, or says too little.
ZARR: dict[str, Sample] = {
    "fixed_length_utf32": _numpy("`<U5`, `>U5`", "<U5", ">U5"),
    "null_terminated_bytes": _numpy("`S5`", "S5"),
    "numpy.datetime64": _times("M"),
    "numpy.timedelta64": _times("m"),
    "raw_bytes": _numpy("`V3`, `V16`", "V3", "V16"),
    "string": Sample("text of any length", (("string", "string"),)),
    "struct": _numpy("fields of both byte orders, text, a record", RECORD),
    "variable_length_bytes": Sample("bytes of any length", ((VariableLengthBytes(), "bytes"),)),
}


def zarr_rows(backends: list[Backend]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each data type that zarr-python registers."""
    zarr.zeros((1,), store={})  # registers those of entry points
    for name in sorted(data_type_registry.contents):
        sample = ZARR.get(name) or _both_orders(name)
        answers = [
            _joined({str(kind): _through_zarr(backend, dtype, kind, version) for dtype, kind in sample.dtypes})
            for version in (2, 3)
            for backend in backends
        ]
        yield f"`{name}`", sample.told, *answers
    for name in sorted(name for name, sample in NUMCODECS.items() if sample.dtype in ("objects", "arrays")):
        only_v2 = ["no: Zarr v2 alone has objects"] * len(backends)
        yield f"objects by `{name}`", "Python objects", *[_object_type(name)] * len(backends), *only_v2


def _object_type(codec: str) -> str:
    try:
        get_data_type_from_json({"name": "|O", "object_codec_id": codec}, zarr_format=2)
    except ValueError:
        return "no: zarr-python has no such data type"
    return f"{WRONG} are possible: objects are not tried"


def _both_orders(name: str) -> Sample:
    dtype = np.dtype(name)
    orders = [dtype] if dtype.itemsize == 1 else [dtype.newbyteorder("<"), dtype.newbyteorder(">")]
    return _numpy(", ".join(f"`{each.str}`" for each in orders), *orders)


def _joined(answers: dict[str, str]) -> str:
    if len(set(answers.values())) == 1:
        return next(iter(answers.values()))
    return "; ".join(f"{name}: {answer}" for name, answer in answers.items())


def _through_zarr(backend: Backend, dtype: Any, kind: Any, zarr_format: Any) -> str:
    ours = {"codec_pipeline.path": "chunkwright_zarr.CodecPipeline", "codec_pipeline.backend": backend.name}
    values = _with_oddities(elements(kind, WRITTEN))
    with zarr.config.set(DEFAULT):
        expected = _write(dtype, values, zarr_format)
        read = zarr.open_array(expected, mode="r")[...]
    with zarr.config.set(ours):
        array: Any = zarr.open_array(expected, mode="r")
        explained = explain(array)
        if explained.read.path == "default":
            return f"no: {explained.read.reason}"
        others = sorted({run.backend for run in explained.runs} - {backend.name, "core"})
        if others:
            return f"no: by {', '.join(others)}"
        if not same(array[...], read):
            return WRONG
        written = _write(dtype, values, zarr_format)
    return SUPPORTED if _content(written) == _content(expected) else f"read; {WRONG} written"


def _with_oddities(values: NDArray[Any]) -> NDArray[Any]:
    """Put in what equals nothing, and the zero that equals another one."""
    if values.dtype.kind in "mM":
        values[0] = "NaT"
    elif values.dtype.kind in "fc":
        values[:2] = np.nan, -0.0
    return values


def _write(dtype: Any, values: NDArray[Any], zarr_format: Any) -> MemoryStore:
    store = MemoryStore()
    array: Any = zarr.create_array(store, shape=(LENGTH,), chunks=(CHUNK,), dtype=dtype, zarr_format=zarr_format)
    array[:WRITTEN] = values
    return store


def _content(store: MemoryStore) -> dict[str, bytes]:
    return {key: value.to_bytes() for key, value in store._store_dict.items()}


def embedder_rows(backends: list[Backend]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each data type that zarr-python does not know and the core does."""
    for bits in (8, 24, 40, 128):
        yield f"`r{bits}`", "`data_type` of Zarr v3", *(_raw_bits(bits, backend) for backend in backends)
    for name in ml_dtypes.__all__:
        scalar = getattr(ml_dtypes, name)
        if isinstance(scalar, type) and issubclass(scalar, np.generic):
            yield f"`{name}`", "a NumPy data type of ml_dtypes", *(_bound(scalar, backend) for backend in backends)


def _raw_bits(bits: int, backend: Backend) -> str:
    values = elements(f"V{bits // 8}", WRITTEN)
    document = {
        "zarr_format": 3,
        "shape": [WRITTEN],
        "data_type": f"r{bits}",
        "fill_value": [0] * (bits // 8),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [WRITTEN]}},
        "codecs": [{"name": "bytes"}],
    }
    prepared = from_array_metadata(document)[0].prepare((WRITTEN,), backends=[backend])
    return _encoded(prepared, values, values.tobytes())


def _bound(scalar: type[np.generic], backend: Backend) -> str:
    dtype = np.dtype(scalar)
    values = (np.arange(WRITTEN) % 2).astype(dtype)
    number = dtype.itemsize // (2 if "complex" in dtype.name else 1)
    swapped = np.frombuffer(values.tobytes(), "u1").reshape(-1, number)[:, ::-1].tobytes()
    answers = {}
    for endian, expected in (("little", values.tobytes()), ("big", swapped)):
        chain = CodecChain.from_json([{"name": "bytes", "configuration": {"endian": endian}}])
        try:
            prepared = chain.bind(dtype, np.zeros((), dtype)).prepare((WRITTEN,), backends=[backend])
        except ConfigurationError as error:
            answers[f"{endian} endian"] = f"no: {error.problems[0].message}"
        else:
            answers[f"{endian} endian"] = _encoded(prepared, values, expected)
    return _joined(answers)


def _encoded(prepared: PreparedChain, values: NDArray[Any], expected: bytes) -> str:
    if not same(prepared.decode(expected), values):
        return WRONG
    encoded = bytes(prepared.encode(values, keep_empty=True) or b"")
    return SUPPORTED if encoded == expected else f"read; {WRONG} written"
