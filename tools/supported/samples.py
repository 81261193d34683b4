"""What each codec and data type is tried with: a configuration, and elements that make a difference.

Elements are many enough that compressors compress (a libdeflate that makes zlib's bytes of twenty numbers makes others
of a thousand), and the same each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

__all__ = ("NUMCODECS", "ZARR", "Sample", "SampleError", "check_samples", "elements")

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
TEXTS = ["", "a", "äöü", "𝄞" * 9, "b", "long " * 50]
VARIABLE = ("string", "bytes", "objects", "arrays")
LABELS = ["red", "green", "blue"]


class SampleError(Exception):
    """Codecs without a sample, or samples without a codec."""


@attrs.frozen
class Sample:
    """What a codec is tried with.

    Parameters
    ----------
    dtype
        NumPy's data type; for elements of variable length ``string``, ``bytes``, ``objects`` or ``arrays``.
    configuration
        Its configuration.
    alias_of
        The name that zarr-python writes instead of this one.
    """

    dtype: str = "<i4"
    configuration: Mapping[str, Any] = attrs.Factory(dict)
    alias_of: str | None = None


# By name in Zarr v3 metadata; `numcodecs.<id>` is tried with what `<id>` is.
ZARR: dict[str, Sample] = {
    "blosc": Sample(
        configuration={"cname": "zstd", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0},
    ),
    "bytes": Sample(configuration={"endian": "big"}),
    "cast_value": Sample("<i8", {"data_type": "int16"}),
    "crc32c": Sample(),
    "endian": Sample(configuration={"endian": "big"}, alias_of="bytes"),
    "gzip": Sample(configuration={"level": 5}),
    "scale_offset": Sample("<f8", {"offset": 0.5, "scale": 4}),
    "sharding_indexed": Sample(
        configuration={
            "chunk_shape": [16, 20],
            "codecs": [LITTLE],
            "index_codecs": [LITTLE, {"name": "crc32c"}],
            "index_location": "end",
        },
    ),
    "transpose": Sample(configuration={"order": [1, 0]}),
    "vlen-bytes": Sample("bytes"),
    "vlen-utf8": Sample("string"),
    "zstd": Sample(configuration={"level": 3, "checksum": True}),
}

# By numcodecs' id.
NUMCODECS: dict[str, Sample] = {
    "adler32": Sample(),
    "astype": Sample("<f8", {"encode_dtype": "<f4", "decode_dtype": "<f8"}),
    "base64": Sample(),
    "bitround": Sample("<f4", {"keepbits": 5}),
    "blosc": Sample(configuration={"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}),
    "bz2": Sample(configuration={"level": 3}),
    "categorize": Sample("<U5", {"labels": LABELS, "dtype": "<U5", "astype": "|u1"}),
    "crc32": Sample(),
    "crc32c": Sample(),
    "delta": Sample("<i4", {"dtype": "<i4", "astype": "<i4"}),
    "fixedscaleoffset": Sample("<f8", {"offset": -3, "scale": 10, "dtype": "<f8", "astype": "<i2"}),
    "fletcher32": Sample(),
    "gzip": Sample(configuration={"level": 5}),
    "jenkins_lookup3": Sample(),
    "json2": Sample("objects"),
    "lz4": Sample(configuration={"acceleration": 1}),
    "lzma": Sample(configuration={"preset": 1}),
    "msgpack2": Sample("objects"),
    "packbits": Sample("|b1"),
    "pcodec": Sample("<f8", {"level": 4}),
    "pickle": Sample("objects"),
    "quantize": Sample("<f8", {"digits": 2, "dtype": "<f8", "astype": "<f8"}),
    "shuffle": Sample(configuration={"elementsize": 4}),
    "vlen-array": Sample("arrays", {"dtype": "<i4"}),
    "vlen-bytes": Sample("bytes"),
    "vlen-utf8": Sample("string"),
    "zfpy": Sample("<f8", {"mode": 4, "tolerance": 0.001}),
    "zlib": Sample(configuration={"level": 5}),
    "zstd": Sample(configuration={"level": 3}),
}


def check_samples(what: str, registered: Iterable[str], samples: Iterable[str]) -> None:
    """Raise :class:`SampleError` unless there is a sample for each registered name, and for no other.

    Parameters
    ----------
    what
        Whose registry.
    registered
        Its names.
    samples
        Names of the samples.
    """
    missing, stale = sorted(set(registered) - set(samples)), sorted(set(samples) - set(registered))
    told = [f"{what} registers {name}, which has no sample" for name in missing]
    told += [f"there is a sample of {name}, which {what} does not register" for name in stale]
    if told:
        raise SampleError("\n".join(told))


def elements(dtype: Any, count: int) -> NDArray[Any]:
    """Make elements of a data type, in one dimension.

    Parameters
    ----------
    dtype
        As in :class:`Sample`, or a NumPy data type.
    count
        How many.
    """
    if isinstance(dtype, str) and dtype in VARIABLE:
        return _objects(dtype, count)
    dtype = np.dtype(dtype)
    numbers = np.random.default_rng(0).integers(0, 100, count)
    if dtype.names is not None:
        made = np.zeros(count, dtype)
        for name in dtype.names:
            made[name] = elements(dtype[name], count)
        return made
    if dtype.kind == "U":
        return np.array([LABELS[number % 3] for number in numbers]).astype(dtype)
    if dtype.kind == "V":
        return np.frombuffer(np.random.default_rng(0).bytes(count * dtype.itemsize), dtype)
    if dtype.kind == "b":
        return numbers > 50
    if dtype.kind in "fc":
        return (numbers / 7 - 3).astype(dtype)
    return numbers.astype(dtype)


def _objects(kind: str, count: int) -> NDArray[Any]:
    made = np.empty(count, object)
    for at in range(count):
        text = TEXTS[at % len(TEXTS)]
        made[at] = {
            "string": text,
            "bytes": text.encode(),
            "objects": [None, at, text, at / 8, [text, at], {"name": text}][at % 6],
            "arrays": np.arange(at % 5, dtype="<i4"),
        }[kind]
    return made
