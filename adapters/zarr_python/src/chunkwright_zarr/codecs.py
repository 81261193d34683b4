"""zarr's codec objects as a chunkwright chain.

The exact class decides: a codec is run natively when it is an instance of zarr's own class and of nothing
more, because a user's subclass, or a user's class under a standard name, may do anything. Whatever is not
native becomes a foreign codec at its place, also inside a shard, and the rest of the chain stays native.

Configuration comes from ``to_dict()``. The order in which a shard's inner chunks are written is not in there
and is read from the object, at every level. A sharding codec whose index is not all native is foreign as a
whole (the index is read before anything else can be), and so is a Zarr v2 codec that has no counterpart as a
chain or that unpickles (zarr asks for permission at each call). A native codec that no backend runs is
foreign in the next attempt: ``refused`` has its name and the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

import zarr.codecs as zc
import zarr.codecs.numcodecs as zn
from zarr.abc.codec import Codec as AnyZarrCodec
from zarr.codecs._v2 import V2Codec
from zarr.core.array_spec import ArraySpec

from chunkwright.array_metadata import v2_chain
from chunkwright.chain import CodecChain
from chunkwright.codecs import Codec, ShardingIndexed, find_codec
from chunkwright.errors import ConfigurationError
from chunkwright_zarr.foreign import foreign, name_of
from chunkwright_zarr.specs import chunk_spec

__all__ = ("chain_of",)

NATIVE: frozenset[type] = frozenset(
    {
        zc.BloscCodec,
        zc.BytesCodec,
        zc.CastValue,
        zc.Crc32cCodec,
        zc.GzipCodec,
        zc.ScaleOffset,
        zc.TransposeCodec,
        zc.VLenBytesCodec,
        zc.VLenUTF8Codec,
        zc.ZstdCodec,
        *(getattr(zn, name) for name in zn.__all__ if not name.startswith("_")),
    }
)
"""zarr's own codec classes, all but the sharding codec and the one of Zarr v2."""

UNSAFE = "pickle"

type Refused = Mapping[str, str]
"""Codecs by name that no backend runs, and why."""


def chain_of(
    codecs: Sequence[AnyZarrCodec], spec: ArraySpec, *, refused: Mapping[str, str] = MappingProxyType({})
) -> CodecChain:
    """Translate the codecs of an array for chunks of one spec.

    Parameters
    ----------
    codecs
        In order of encoding.
    spec
        What zarr says of the chunk.
    refused
        Codecs by name that no backend runs, and why.

    Returns
    -------
    CodecChain
        Not bound yet.

    Raises
    ------
    ConfigurationError
        When the codecs do not make a chain.

    Examples
    --------
    >>> import zarr
    >>> from zarr.core.array_spec import ArrayConfig, ArraySpec
    >>> from zarr.core.buffer import default_buffer_prototype
    >>> spec = ArraySpec((4,), zarr.dtype.Int16(), 0, ArrayConfig("C", False), default_buffer_prototype())
    >>> [codec.name for codec in chain_of([zarr.codecs.BytesCodec(), zarr.codecs.ZstdCodec()], spec).codecs]
    ['bytes', 'zstd']
    """
    if len(codecs) == 1 and type(codecs[0]) is V2Codec:
        chain = _v2(codecs[0], spec, refused)
        if chain is not None:
            return chain
    translated: list[Codec] = []
    for codec in codecs:
        translated.append(_translated(codec, spec, refused))
        spec = codec.resolve_metadata(spec)
    return CodecChain.from_codecs(translated)


def _translated(codec: AnyZarrCodec, spec: ArraySpec, refused: Refused) -> Codec:
    native: Codec | None = None
    if type(codec) is zc.ShardingCodec:
        native = _sharding(codec, spec, refused)
    elif _is_native(codec, refused):
        native = _native(codec)
    return native or foreign(codec, spec, reason=_why(codec, refused))


def _is_native(codec: AnyZarrCodec, refused: Refused) -> bool:
    return type(codec) in NATIVE and name_of(codec) not in refused


def _why(codec: AnyZarrCodec, refused: Refused) -> str:
    """Why a codec is foreign."""
    if type(codec) is V2Codec:
        return "its filters and compressor make no chain that a backend runs"
    if type(codec) is zc.ShardingCodec:
        return "its index or inner codecs make no chain"
    if type(codec) in NATIVE:
        return refused.get(name_of(codec), "its configuration is unknown")
    return "not one of zarr's own codecs"


def _native(codec: AnyZarrCodec) -> Codec | None:
    """A codec of zarr's own, or None when its configuration means nothing to us; then zarr runs it."""
    data = cast("dict[str, Any]", codec.to_dict())
    found = find_codec(data["name"])
    if found is None:
        return None
    _, make = found
    try:
        return make(data.get("configuration", {}))
    except ConfigurationError:
        return None


def _sharding(codec: zc.ShardingCodec, spec: ArraySpec, refused: Refused) -> ShardingIndexed | None:
    index_codecs = [_native(index) for index in codec.index_codecs if _is_native(index, refused)]
    native = [index for index in index_codecs if index is not None]
    if len(native) < len(codec.index_codecs):
        return None
    try:
        return ShardingIndexed(
            chunk_shape=codec.chunk_shape,
            codecs=chain_of(codec.codecs, replace(spec, shape=codec.chunk_shape), refused=refused),
            index_codecs=CodecChain.from_codecs(native),
            index_location=codec.index_location,
            order=codec.subchunk_write_order,
        )
    except ConfigurationError:
        return None


def _v2(codec: V2Codec, spec: ArraySpec, refused: Refused) -> CodecChain | None:
    """The chain of a Zarr v2 codec, or None when zarr has to run it."""
    objects = [*(codec.filters or ()), *([] if codec.compressor is None else [codec.compressor])]
    if not all(_is_numcodecs_own(item, refused) for item in objects):
        return None
    translated = chunk_spec(spec)
    if translated is None:
        return None
    filters = [_config(item) for item in codec.filters or ()]
    compressor = None if codec.compressor is None else _config(codec.compressor)
    return v2_chain(filters, compressor, order=spec.order, ndim=len(spec.shape), dtype=translated.dtype)


def _config(item: Any) -> dict[str, Any]:
    """What an object of numcodecs' does; Blosc keeps the size of the elements out of its metadata."""
    config: dict[str, Any] = item.get_config()
    typesize = getattr(item, "_typesize", None) if config["id"] == "blosc" else None
    return config if typesize is None else {**config, "typesize": typesize}


def _is_numcodecs_own(item: Any, refused: Refused) -> bool:
    known = type(item).__module__.partition(".")[0] == "numcodecs"
    return known and item.codec_id != UNSAFE and f"numcodecs.{item.codec_id}" not in refused
