"""numcodecs' own classes by id, and objects made of them.

The classes are taken from numcodecs' modules, never from its registry: what a host registers there under a name
of numcodecs' is another codec. A few modules need libraries that numcodecs does not bring along.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from chunkwright.codecs import Codec
from chunkwright.errors import CorruptChunkError

__all__ = ("library_class", "library_object", "panics_as_errors")

PREFIX = "numcodecs."

# id: module and class; the module's own requirement is what an ImportError is about.
_CLASSES = {
    "adler32": ("checksum32", "Adler32"),
    "astype": ("astype", "AsType"),
    "base64": ("base64", "Base64"),
    "bitround": ("bitround", "BitRound"),
    "blosc": ("blosc", "Blosc"),
    "bz2": ("bz2", "BZ2"),
    "categorize": ("categorize", "Categorize"),
    "crc32": ("checksum32", "CRC32"),
    "crc32c": ("checksum32", "CRC32C"),
    "delta": ("delta", "Delta"),
    "fixedscaleoffset": ("fixedscaleoffset", "FixedScaleOffset"),
    "fletcher32": ("fletcher32", "Fletcher32"),
    "gzip": ("gzip", "GZip"),
    "jenkins_lookup3": ("checksum32", "JenkinsLookup3"),
    "json2": ("json", "JSON"),
    "lz4": ("lz4", "LZ4"),
    "lzma": ("lzma", "LZMA"),
    "msgpack2": ("msgpacks", "MsgPack"),
    "packbits": ("packbits", "PackBits"),
    "pcodec": ("pcodec", "PCodec"),
    "pickle": ("pickles", "Pickle"),
    "quantize": ("quantize", "Quantize"),
    "shuffle": ("shuffle", "Shuffle"),
    "vlen-array": ("vlen", "VLenArray"),
    "vlen-bytes": ("vlen", "VLenBytes"),
    "vlen-utf8": ("vlen", "VLenUTF8"),
    "zfpy": ("zfpy", "ZFPY"),
    "zlib": ("zlib", "Zlib"),
    "zstd": ("zstd", "Zstd"),
}


def library_class(codec_id: str) -> type[Any]:
    """Return numcodecs' class of an id.

    Parameters
    ----------
    codec_id
        The id, as in Zarr v2 metadata.

    Returns
    -------
    type
        The class.

    Raises
    ------
    ImportError
        When a library that the class needs is not installed.
    """
    module, name = _CLASSES[codec_id]
    found: type[Any] | None = getattr(import_module(f"numcodecs.{module}"), name, None)
    if found is None:
        raise ImportError(f"numcodecs has no {name} here, a library that it needs is missing")
    return found


def library_object(codec: Codec) -> Any:
    """Make numcodecs' object for a codec whose configuration is numcodecs' own.

    Parameters
    ----------
    codec
        A codec of the name ``numcodecs.<id>``, ``vlen-utf8`` or ``vlen-bytes``.

    Returns
    -------
    Codec
        Of numcodecs' class.
    """
    return library_class(codec.name.removeprefix(PREFIX))(**codec.configuration())


@contextmanager
def panics_as_errors(codec: str) -> Iterator[None]:
    """Turn a panic of a library that is written in Rust into an error about the chunk.

    Parameters
    ----------
    codec
        Name of the codec.

    Yields
    ------
    None
        Around the library's call.

    Raises
    ------
    CorruptChunkError
        For a panic, which is no ``Exception``; whatever else is raised passes.
    """
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise CorruptChunkError(f"cannot be decoded ({error})", codec=codec) from error
