"""Array metadata of both Zarr versions, turned into a bound chain and a chunk shape.

Zarr v3 says what the chain is. In Zarr v2 it is spread over ``order``, ``filters``, ``dtype`` and ``compressor``;
:func:`v2_chain` lays it out as a chain: a transpose for order F, then the filters and the compressor as numcodecs'
codecs, with ``bytes`` put in where arrays become bytes. That is possible only where each codec gets what it would
get in Zarr v2, where anything goes; the answer is None otherwise.

Attributes, dimension names and chunk keys are the business of whoever reads arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from chunkwright.chain import BoundChain, CodecChain
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
from chunkwright.codecs._base import Foreign, below
from chunkwright.codecs._rules import positive_integers
from chunkwright.dtype_json import dtype_from_json, fill_value_from_json
from chunkwright.errors import ConfigurationError, Problem
from chunkwright.spec import ChunkSpec, DataType, FillValue

__all__ = ("from_array_metadata", "v2_chain")

_OBJECT_CODECS = ("vlen-utf8", "vlen-bytes", "vlen-array", "pickle", "json2", "msgpack2")

# These store the shape of the array, which is not that of a transposed chunk (order F), nor that of a chunk without
# axes, which codecs are given as one element.
_STORES_SHAPE = ("json2", "msgpack2", "pickle", "zfpy")

_AUTO_SHUFFLE, _BYTE_SHUFFLE, _BIT_SHUFFLE = -1, 1, 2


def from_array_metadata(
    document: Mapping[str, Any], *, foreign: Foreign | None = None
) -> tuple[BoundChain, tuple[int, ...] | None]:
    """Read what decoding needs from array metadata.

    Parameters
    ----------
    document
        Content of ``zarr.json`` or ``.zarray``.
    foreign
        Codecs of the host's own, as in :meth:`CodecChain.from_json`; Zarr v3 only.

    Returns
    -------
    tuple of BoundChain and tuple of int
        The chain and the chunk shape; None instead of a shape when chunks differ in shape.

    Raises
    ------
    ConfigurationError
        With every problem that was found.

    Examples
    --------
    >>> chain, shape = from_array_metadata({
    ...     "zarr_format": 2, "shape": [8, 8], "chunks": [4, 8], "dtype": "<i4", "order": "C", "fill_value": None,
    ...     "filters": [{"id": "delta", "dtype": "<i4"}], "compressor": {"id": "zlib", "level": 1},
    ... })
    >>> [codec.name for codec in chain.codecs], shape
    (['numcodecs.delta', 'bytes', 'numcodecs.zlib'], (4, 8))
    """
    match document.get("zarr_format"):
        case 3:
            return _from_v3(document, foreign)
        case 2:
            return _from_v2(document)
        case other:
            raise ConfigurationError(problems=(Problem(("zarr_format",), f"must be 2 or 3, not {other!r}"),))


class _Document:
    """Array metadata while it is read."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self.members = members
        self.problems: list[Problem] = []

    def read[T](self, member: str, reader: Callable[[Any], T]) -> T | None:
        """Read one member; a problem is kept and the answer is None."""
        if member not in self.members:
            self.problems.append(Problem((member,), "is missing"))
            return None
        return self.attempt((member,), lambda: reader(self.members[member]))

    def attempt[T](self, location: tuple[str, ...], reader: Callable[[], T]) -> T | None:
        try:
            return reader()
        except ConfigurationError as error:
            self.problems += below(location, error)
        except ValueError as error:
            self.problems.append(Problem(location, str(error)))
        return None

    def finish(self) -> None:
        if self.problems:
            raise ConfigurationError(problems=tuple(self.problems))


def _from_v3(members: Mapping[str, Any], foreign: Foreign | None) -> tuple[BoundChain, tuple[int, ...] | None]:
    document = _Document(members)
    dtype = document.read("data_type", dtype_from_json)
    fill = document.read("fill_value", lambda value: None if dtype is None else fill_value_from_json(value, dtype))
    chain = document.read("codecs", lambda value: CodecChain.from_json(value, foreign=foreign, location=()))
    shape = document.read("chunk_grid", _chunk_shape)
    if any(_must_understand(item) for item in members.get("storage_transformers") or ()):
        document.problems.append(Problem(("storage_transformers",), "are not supported"))
    document.finish()
    assert chain is not None
    assert dtype is not None
    return chain.bind(dtype, fill, ndim=None if shape is None else len(shape)), shape


def _must_understand(item: Any) -> bool:
    return not isinstance(item, Mapping) or item.get("must_understand", True) is not False


def _chunk_shape(grid: Any) -> tuple[int, ...] | None:
    name = grid.get("name") if isinstance(grid, Mapping) else grid
    if name == "rectilinear":
        return None
    configuration = grid.get("configuration") if isinstance(grid, Mapping) else None
    if name != "regular" or not isinstance(configuration, Mapping):
        raise ValueError(f"must be a regular or rectilinear grid, not {grid!r}")
    return positive_integers(configuration.get("chunk_shape"), {})


def _from_v2(members: Mapping[str, Any]) -> tuple[BoundChain, tuple[int, ...]]:
    document = _Document(members)
    filters = members.get("filters") or ()
    compressor = members.get("compressor")
    object_codec = next((item["id"] for item in (*filters, compressor) if _id(item) in _OBJECT_CODECS), None)
    dtype = document.read("dtype", lambda value: dtype_from_json(value, zarr_format=2, object_codec=object_codec))
    shape = document.read("chunks", lambda value: positive_integers(value, {}))
    fill = document.attempt(("fill_value",), lambda: _v2_fill(members.get("fill_value"), dtype))
    order = members.get("order", "C")
    if order not in ("C", "F"):
        document.problems.append(Problem(("order",), f"must be 'C' or 'F', not {order!r}"))
    document.finish()
    assert dtype is not None
    assert shape is not None
    chain = v2_chain(filters, compressor, order=order, ndim=len(shape), dtype=dtype)
    if chain is None:
        names = [_id(item) for item in (*filters, *([compressor] if compressor else []))]
        raise ConfigurationError(problems=(Problem(("filters",), f"no codec chain does what {names} do"),))
    return chain.bind(dtype, fill), shape


def _v2_fill(value: Any, dtype: DataType | None) -> FillValue | None:
    return None if dtype is None else fill_value_from_json(value, dtype, zarr_format=2)


def _id(config: Any) -> str | None:
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
    name = _id(config)
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
