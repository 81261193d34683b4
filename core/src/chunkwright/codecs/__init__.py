"""Codec metadata, one module a codec, and the table of names.

:func:`find_codec` answers what a name in Zarr v3 metadata stands for. The table is fixed: what is not in it comes
from the host as a foreign codec.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chunkwright.codecs._base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, Codec, Kind
from chunkwright.codecs.blosc import Blosc
from chunkwright.codecs.bytes_ import Bytes
from chunkwright.codecs.cast_value import CastValue, ScalarMap
from chunkwright.codecs.crc32c import Crc32c
from chunkwright.codecs.foreign import (
    Foreign,
    ForeignArrayArray,
    ForeignArrayBytes,
    ForeignBytesBytes,
    foreign_codec,
)
from chunkwright.codecs.gzip import Gzip
from chunkwright.codecs.numcodecs_codecs import (
    KNOWN,
    PREFIX,
    NumcodecsArrayArray,
    NumcodecsArrayBytes,
    NumcodecsBytesBytes,
    numcodecs_codec,
)
from chunkwright.codecs.scale_offset import ScaleOffset
from chunkwright.codecs.sharding_indexed import ShardingIndexed
from chunkwright.codecs.transpose import Transpose
from chunkwright.codecs.vlen_bytes import VLenBytes
from chunkwright.codecs.vlen_utf8 import VLenUTF8
from chunkwright.codecs.zstd import Zstd

__all__ = (
    "CODECS",
    "ArrayArrayCodec",
    "ArrayBytesCodec",
    "Blosc",
    "Bytes",
    "BytesBytesCodec",
    "CastValue",
    "Codec",
    "Crc32c",
    "Foreign",
    "ForeignArrayArray",
    "ForeignArrayBytes",
    "ForeignBytesBytes",
    "Gzip",
    "Kind",
    "NumcodecsArrayArray",
    "NumcodecsArrayBytes",
    "NumcodecsBytesBytes",
    "ScalarMap",
    "ScaleOffset",
    "ShardingIndexed",
    "Transpose",
    "VLenBytes",
    "VLenUTF8",
    "Zstd",
    "find_codec",
    "foreign_codec",
    "numcodecs_codec",
)

CODECS: Mapping[str, type[Codec]] = {
    "blosc": Blosc,
    "bytes": Bytes,
    "cast_value": CastValue,
    "crc32c": Crc32c,
    "endian": Bytes,
    "gzip": Gzip,
    "scale_offset": ScaleOffset,
    "sharding_indexed": ShardingIndexed,
    "transpose": Transpose,
    "vlen-bytes": VLenBytes,
    "vlen-utf8": VLenUTF8,
    "zstd": Zstd,
}
"""Codec classes by name in Zarr v3 metadata. The ``numcodecs.*`` names are in :data:`KNOWN`, by id."""


def find_codec(name: str) -> tuple[Kind, Callable[..., Codec]] | None:
    """Return the kind of a codec and what makes it of its configuration.

    Parameters
    ----------
    name
        Name in Zarr v3 metadata.

    Returns
    -------
    tuple or None
        The kind, and a callable of the configuration (keyword ``foreign``: factories of foreign codecs);
        None for a name that is not known.

    Examples
    --------
    >>> kind, make = find_codec("gzip")
    >>> kind, make({"level": 1})
    ('bytes->bytes', Gzip(level=1))
    """
    if name in CODECS:
        return CODECS[name].kind, CODECS[name].from_configuration
    codec_name = name.removeprefix(PREFIX)
    known = KNOWN.get(codec_name)
    if codec_name == name or known is None or not known.in_v3:
        return None

    def make(configuration: Mapping[str, Any], **context: Any) -> Codec:
        options = {option: value for option, value in configuration.items() if option != "id"}
        return numcodecs_codec(codec_name, options, **context)

    return known.kind, make
