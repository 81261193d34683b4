"""Lay out the filters and the compressor of a Zarr v2 array as a chain.

In Zarr v2 anything may follow anything: numcodecs reinterprets the bytes that it is given. A chain is made only where
each codec gets what it would get there, so that the bytes are the same; the answer is None otherwise, and whoever
asked runs the codecs in Zarr's own way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from chunkwright.chain import CodecChain
from chunkwright.codecs import (
    Bytes,
    Codec,
    NumcodecsArrayArray,
    NumcodecsArrayBytes,
    NumcodecsBytesBytes,
    Transpose,
    VLenBytes,
    VLenUTF8,
    numcodecs_codec,
)
from chunkwright.errors import ConfigurationError
from chunkwright.spec import ChunkSpec, DataType, FillValue

__all__ = ("config_id", "v2_chain")

# These store the shape of the array, which is not that of a transposed chunk (order F), nor that of a chunk without
# axes, which codecs are given as one element.
_STORES_SHAPE = ("json2", "msgpack2", "pickle", "zfpy")

_AUTO_SHUFFLE, _BYTE_SHUFFLE, _BIT_SHUFFLE = -1, 1, 2


def config_id(config: Any) -> str | None:
    """Return the id of a configuration in Zarr v2 metadata.

    Parameters
    ----------
    config
        JSON.

    Returns
    -------
    str or None
        None when it has none.
    """
    name = config.get("id") if isinstance(config, Mapping) else None
    return name if isinstance(name, str) else None


def v2_chain(
    filters: Sequence[Mapping[str, Any]] | None,
    compressor: Mapping[str, Any] | None,
    *,
    order: str,
    ndim: int,
    dtype: DataType,
) -> CodecChain | None:
    """Lay out the filters and the compressor of a Zarr v2 array as a chain.

    Parameters
    ----------
    filters, compressor
        Configurations with ``id``, as in ``.zarray`` or from ``get_config()``; None for none.
    order
        ``"C"`` or ``"F"``.
    ndim
        Axes of the array.
    dtype
        Its data type.

    Returns
    -------
    CodecChain or None
        None when an id or an option is not known, or when codecs are combined in a way that a chain is not.

    Examples
    --------
    >>> import numpy as np
    >>> chain = v2_chain(None, {"id": "zstd", "level": 1}, order="F", ndim=2, dtype=DataType(np.dtype("<i4")))
    >>> [codec.name for codec in chain.codecs]
    ['transpose', 'bytes', 'numcodecs.zstd']
    """
    layout = _Layout(ChunkSpec((1,) * ndim, dtype, FillValue.of(dtype, None)), order)
    for config in (*(filters or ()), *([] if compressor is None else [compressor])):
        codec = _v2_codec(config)
        if codec is None or not layout.append(codec):
            return None
    return layout.finish()


def _v2_codec(config: Mapping[str, Any]) -> Codec | None:
    name = config_id(config)
    if name is None:
        return None
    options = {option: value for option, value in config.items() if option != "id"}
    if name in ("vlen-utf8", "vlen-bytes"):
        return None if options else VLenUTF8() if name == "vlen-utf8" else VLenBytes()
    if name == "shuffle":
        options.setdefault("elementsize", 4)  # numcodecs' default, where Zarr v3 takes the size of the elements
    try:
        return numcodecs_codec(name, options)
    except ConfigurationError:
        return None


class _Layout:
    """A chain while codecs are added to it, with what the last of them makes."""

    def __init__(self, spec: ChunkSpec, order: str) -> None:
        self._transposed = order == "F" and spec.ndim > 1
        self._codecs: list[Codec] = [Transpose(order=tuple(reversed(range(spec.ndim))))] if self._transposed else []
        self._has_axes = spec.ndim > 0
        self._spec: ChunkSpec | None = spec
        # Blosc looks at the elements of what it is given: those of an array, or single bytes.
        self._element = 1

    def append(self, codec: Codec) -> bool:
        """Add a codec; False when it cannot have its place in a chain."""
        match codec:
            case NumcodecsArrayArray():
                return self._append_array_array(codec)
            case NumcodecsBytesBytes():
                return self._append_bytes_bytes(codec)
            case _:
                return self._append_array_bytes(codec)

    def finish(self) -> CodecChain | None:
        """Return the chain, or None when objects were never encoded."""
        if not self._to_bytes():
            return None
        return CodecChain.from_codecs(self._codecs)

    def _append_array_array(self, codec: NumcodecsArrayArray) -> bool:
        if self._spec is None or not _fits(codec, self._spec):
            return False
        if self._transposed and codec.codec_name == "bitround":
            return False  # numcodecs copies to order C, and Zarr v2 stores just that
        self._codecs.append(codec)
        self._spec = codec.encoded_spec(self._spec)
        return True

    def _append_array_bytes(self, codec: Codec) -> bool:
        if self._spec is None:
            return False
        stores_shape = isinstance(codec, NumcodecsArrayBytes) and codec.codec_name in _STORES_SHAPE
        if stores_shape and (self._transposed or not self._has_axes):
            return False
        holds = {"vlen-utf8": "string", "vlen-bytes": "bytes", "numcodecs.vlen-array": "object"}.get(codec.name)
        if holds is not None and holds != self._spec.dtype.variable:
            return False
        self._codecs.append(codec)
        self._spec = None
        return True

    def _append_bytes_bytes(self, codec: NumcodecsBytesBytes) -> bool:
        if not self._to_bytes():
            return False
        self._codecs.append(_blosc(codec, self._element) if codec.codec_name == "blosc" else codec)
        self._element = 1
        return True

    def _to_bytes(self) -> bool:
        """Turn an array into bytes, when it is one still."""
        if self._spec is None:
            return True
        if self._spec.dtype.variable:
            return False
        self._codecs.append(Bytes(declared=True))
        self._element = self._spec.dtype.numpy.itemsize
        self._spec = None
        return True


def _fits(codec: NumcodecsArrayArray, spec: ChunkSpec) -> bool:
    """Whether a codec takes the array for what it is; numcodecs reinterprets its bytes otherwise."""
    try:
        bound = codec.bind(spec.dtype, spec.fill_value)
    except ConfigurationError:
        return False
    # Zarr v2 leaves nothing out, so what binding had to fill in was broken metadata.
    named = codec.decoded_dtype
    return bound == codec and (named is None or named == spec.dtype.numpy)


def _blosc(codec: NumcodecsBytesBytes, element: int) -> NumcodecsBytesBytes:
    """Write down what Blosc would see of the elements, now that it is given bytes."""
    typesize = codec.options.get("typesize") or element
    shuffle = codec.options.get("shuffle", _BYTE_SHUFFLE)
    if shuffle == _AUTO_SHUFFLE:
        shuffle = _BIT_SHUFFLE if typesize == 1 else _BYTE_SHUFFLE
    return attrs.evolve(codec, options=codec.options.with_value("typesize", typesize).with_value("shuffle", shuffle))
