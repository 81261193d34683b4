"""Which codecs have a kernel in Rust, and how their configuration is handed over.

A codec is taken only when what it decodes is what numcodecs decodes, bit for bit, and what it encodes can be decoded
everywhere. Codecs whose encoded bytes are up to the library (``gzip``, ``zlib``: libdeflate instead of zlib) may
encode to other bytes than numcodecs does. Everything else is left to another backend, and :func:`find` says why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from chunkwright.codecs import Codec
from chunkwright.spec import ChunkSpec

__all__ = ("Found", "find")

_COMPRESSORS = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
_SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}
_MOST_BLOSC = 2**31 - 17
_MOST_LZ4 = 0x7E000000

_REASONS = {
    "cast_value": "its arithmetic is that of cast-value-rs",
    "scale_offset": "its arithmetic is NumPy's",
    "numcodecs.astype": "its conversions are NumPy's",
    "numcodecs.delta": "its sums are NumPy's",
    "numcodecs.fixedscaleoffset": "its rounding is NumPy's",
    "numcodecs.quantize": "its rounding is NumPy's",
}


@attrs.frozen
class Found:
    """The kernel of a codec.

    Parameters
    ----------
    kernel
        Its name in the native module.
    options
        Its configuration, in numbers.
    library
        What does the work, for ``explain()``.
    text
        What cannot be said in numbers.

    Examples
    --------
    >>> Found("zstd", {"level": 3, "checksum": 0}, "libzstd").options["level"]
    3
    """

    kernel: str
    options: Mapping[str, int]
    library: str
    text: str = ""


type _Finder = Callable[[Mapping[str, Any], ChunkSpec], Found | str]


def _zstd(options: Mapping[str, Any], spec: ChunkSpec) -> Found | str:
    numbers = {"level": options.get("level", 0), "checksum": options.get("checksum", False)}
    return Found("zstd", numbers, "libzstd")


def _deflate(kernel: str) -> _Finder:
    def finder(options: Mapping[str, Any], spec: ChunkSpec) -> Found | str:
        level = options.get("level", 1)
        if level not in range(-1, 10):
            return f"zlib has no level {level}"
        return Found(kernel, {"level": level}, "libdeflate")

    return finder


def _checksum(kernel: str, location: str) -> _Finder:
    def finder(options: Mapping[str, Any], spec: ChunkSpec) -> Found | str:
        place = options.get("location") or location
        if place not in ("start", "end"):
            return f"there is no location {place!r}"
        return Found(kernel, {"start": place == "start"}, kernel)

    return finder


def _blosc(options: Mapping[str, Any], spec: ChunkSpec) -> Found | str:
    if _nbytes(spec) > _MOST_BLOSC:
        return f"a chunk has more than {_MOST_BLOSC} bytes"
    typesize = options.get("typesize") or 1
    shuffle = options.get("shuffle", 1)
    shuffle = _SHUFFLES.get(shuffle, shuffle)
    if shuffle == -1:
        shuffle = 2 if typesize == 1 else 1
    cname = options.get("cname", "lz4")
    if cname not in _COMPRESSORS or shuffle not in (0, 1, 2):
        return f"there is no compressor {cname!r} with shuffle {shuffle!r}"
    numbers = {
        "compressor": _COMPRESSORS.index(cname),
        "clevel": options.get("clevel", 5),
        "shuffle": shuffle,
        "typesize": typesize,
        "blocksize": options.get("blocksize", 0),
    }
    if not all(0 <= number < 2**31 for number in numbers.values()):
        return "a number in its configuration is out of range"
    return Found("blosc", numbers, "c-blosc")


def _lz4(options: Mapping[str, Any], spec: ChunkSpec) -> Found | str:
    if _nbytes(spec) > _MOST_LZ4:
        return f"a chunk has more than {_MOST_LZ4} bytes"
    return Found("lz4", {"acceleration": options.get("acceleration", 1)}, "liblz4")


def _bz2(options: Mapping[str, Any], spec: ChunkSpec) -> Found | str:
    level = options.get("level", 1)
    return Found("bz2", {"level": level}, "libbz2-rs") if level in range(1, 10) else f"bzip2 has no level {level}"


def _shuffle(options: Mapping[str, Any], spec: ChunkSpec) -> Found | str:
    return Found("shuffle", {"elementsize": options.get("elementsize", 4)}, "own")


def _bitround(options: Mapping[str, Any], spec: ChunkSpec) -> Found | str:
    dtype, keepbits = spec.dtype.numpy, options.get("keepbits")
    mantissa = {2: 10, 4: 23, 8: 52}.get(dtype.itemsize, -1) if dtype.kind == "f" else -1
    if not isinstance(keepbits, int) or keepbits not in range(mantissa + 1):
        return f"{dtype} has no mantissa of {keepbits} bits"
    return Found("bitround", {"size": dtype.itemsize, "keepbits": keepbits, "swapped": not dtype.isnative}, "own")


_DELTAS = ("auto", "none", "no_op", "try_consecutive", "try_lookback")


def _pcodec(options: Mapping[str, Any], spec: ChunkSpec) -> Found | str:
    dtype = spec.dtype.numpy
    if dtype.kind not in "iuf" or dtype.itemsize not in (2, 4, 8) or not spec.elements:
        return f"the library has no numbers of {dtype}"
    order = options.get("delta_encoding_order")
    delta = options.get("delta_spec", "auto")
    if order is not None and delta == "auto":
        delta = "try_consecutive"
    if delta not in _DELTAS or (order in range(8)) != (delta == "try_consecutive"):
        return f"delta_spec {delta!r} with delta_encoding_order {order!r} is not known"
    configuration = {
        "level": options.get("level", 8),
        "mode_spec": options.get("mode_spec", "auto"),
        "delta_spec": "none" if delta == "no_op" else delta,
        "delta_encoding_order": order,
        "paging_spec": options.get("paging_spec", "equal_pages_up_to"),
        "equal_pages_up_to": options.get("equal_pages_up_to", 262144),
    }
    if configuration["level"] not in range(13) or configuration["mode_spec"] not in ("auto", "classic"):
        return "its configuration is not known"
    metadata = json.dumps({"name": "numcodecs.pcodec", "configuration": configuration})
    return Found("pcodec", {}, "zarrs, and pco to decode", f"{metadata}\n{dtype.newbyteorder('=').name}")


_FINDERS: dict[str, _Finder] = {
    "blosc": _blosc,
    "crc32c": _checksum("crc32c", "end"),
    "gzip": _deflate("gzip"),
    "zstd": _zstd,
    "numcodecs.adler32": _checksum("adler32", "start"),
    "numcodecs.bitround": _bitround,
    "numcodecs.blosc": _blosc,
    "numcodecs.bz2": _bz2,
    "numcodecs.crc32": _checksum("crc32", "start"),
    "numcodecs.crc32c": _checksum("crc32c", "end"),
    "numcodecs.fletcher32": _checksum("fletcher32", "end"),
    "numcodecs.gzip": _deflate("gzip"),
    "numcodecs.lz4": _lz4,
    "numcodecs.pcodec": _pcodec,
    "numcodecs.shuffle": _shuffle,
    "numcodecs.zlib": _deflate("zlib"),
    "numcodecs.zstd": _zstd,
}


_NUMBERS = {"acceleration", "blocksize", "checksum", "clevel", "elementsize", "level", "typesize"}


def _nbytes(spec: ChunkSpec) -> int:
    return spec.elements * spec.dtype.numpy.itemsize


def find(codec: Codec, spec: ChunkSpec) -> Found | str:
    """Find the kernel of a codec other than ``bytes``, ``transpose`` and those of variable length.

    Parameters
    ----------
    codec
        The bound codec.
    spec
        The array on its decoded side; for a bytes->bytes codec that of the chain's array->bytes codec.

    Returns
    -------
    Found or str
        The kernel, or why there is none.
    """
    finder = _FINDERS.get(codec.name)
    if finder is None:
        return _REASONS.get(codec.name, "there is no kernel for it")
    options = codec.configuration()
    # numcodecs takes what Python takes for a number or for true: GDAL writes "checksum": "NO".
    strange = [name for name in _NUMBERS & options.keys() if not isinstance(options[name], int)]
    if any(options[name] is not None or name != "typesize" for name in strange):
        return f"{strange[0]} is not a number"
    return finder(options, spec)
