"""Any zarr codec object as a codec of the host's own, run in Python between the runs of a backend.

A codec that zarr can run synchronously is called item by item, on whichever thread the driver chose. One
that can only be awaited is given its whole batch at once, on the event loop, as zarr's own pipeline would.
Arrays and bytes cross as zarr's buffers of the spec's prototype, without a copy on the way in. Exceptions
of the codec pass through as they are.

A codec here belongs to one place in the chain of one array spec: what zarr tells a codec about a chunk
(data type, runtime configuration, prototype) is more than a chunk spec holds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, Codec, _codec_supports_sync
from zarr.core.array_spec import ArraySpec

from chunkwright.codecs import Foreign, Kind, foreign_codec
from chunkwright.errors import ConfigurationError, CorruptChunkError
from chunkwright.spec import ChunkSpec, Size, UnboundedSize
from chunkwright_zarr.specs import chunk_spec

__all__ = ("ZarrCodec", "foreign", "kind_of", "name_of")

type Item = Any
type Batch = Sequence[Item | None]


def name_of(codec: Codec) -> str:
    """Return a codec's name in metadata, or the name of its class when it has none.

    Parameters
    ----------
    codec
        Any zarr codec.

    Returns
    -------
    str
        The name.

    Examples
    --------
    >>> import zarr
    >>> name_of(zarr.codecs.ZstdCodec())
    'zstd'
    """
    try:
        return str(cast("dict[str, Any]", codec.to_dict())["name"])
    except Exception:  # a codec need not have metadata to be able to run
        return type(codec).__name__


class ZarrCodec:
    """A zarr codec at one place of a chain, as chunkwright's port for foreign codecs.

    Parameters
    ----------
    codec
        The zarr codec.
    spec
        What zarr says of the chunk on the codec's decoded side.
    reason
        Why no backend runs it.

    Examples
    --------
    >>> import numpy as np, zarr
    >>> from zarr.core.array_spec import ArrayConfig, ArraySpec
    >>> from zarr.core.buffer import default_buffer_prototype
    >>> dtype = zarr.dtype.Int16()
    >>> spec = ArraySpec((2,), dtype, dtype.cast_scalar(0), ArrayConfig("C", False), default_buffer_prototype())
    >>> codec = ZarrCodec(zarr.codecs.BytesCodec(), spec)
    >>> codec.name, codec.kind, codec.is_async
    ('bytes', 'array->bytes', False)
    >>> encoded = codec.encode_batch([np.array([1, 2], "i2"), None], chunk_spec(spec))
    >>> bytes(encoded[0]), encoded[1]
    (b'\\x01\\x00\\x02\\x00', None)
    """

    def __init__(self, codec: Codec, spec: ArraySpec, reason: str = "not one of zarr's own codecs") -> None:
        self.codec, self.reason, self._spec = codec, reason, spec
        self.name = name_of(codec)
        self.is_async = not _codec_supports_sync(codec)
        self.kind = kind_of(codec)

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        """Return the spec that the next codec is given.

        Parameters
        ----------
        spec
            What this codec is given.

        Returns
        -------
        ChunkSpec
            As the codec's own ``resolve_metadata`` says.

        Raises
        ------
        ConfigurationError
            When the codec makes arrays of objects that are neither text nor bytes.
        """
        if self.kind != "array->array":
            return spec
        resolved = chunk_spec(self.codec.resolve_metadata(self._spec))
        if resolved is None:
            raise ConfigurationError("makes arrays of Python objects", codec=self.name)
        return resolved

    def encoded_size(self, size: Size, spec: ChunkSpec) -> Size:
        """Return how many bytes it makes.

        Parameters
        ----------
        size
            Bytes that it is given.
        spec
            Spec of the array.

        Returns
        -------
        Size
            Unbounded: a codec's own word is not checked by zarr either, so it is not held against its data.
        """
        return UnboundedSize()

    def decode_batch(self, items: Batch, spec: ChunkSpec) -> list[Item | None] | Awaitable[list[Item | None]]:
        """Decode a batch.

        Parameters
        ----------
        items
            Arrays or buffers, None for missing chunks.
        spec
            The array on the codec's decoded side.

        Returns
        -------
        list or awaitable of one
            One per item.
        """
        if self.is_async:
            return self._decode_async(items, spec)
        codec = cast(Any, self.codec)
        given = [self._encoded_in(item) for item in items]
        results = [None if item is None else codec._decode_sync(item, self._spec) for item in given]
        return self._decoded_out(results, spec)

    def encode_batch(self, items: Batch, spec: ChunkSpec) -> list[Item | None] | Awaitable[list[Item | None]]:
        """Encode a batch.

        Parameters
        ----------
        items
            Arrays or buffers, None for chunks that are not stored.
        spec
            The array on the codec's decoded side.

        Returns
        -------
        list or awaitable of one
            One per item; None where the codec says that the chunk is not to be stored.
        """
        if self.is_async:
            return self._encode_async(items)
        codec = cast(Any, self.codec)
        given = [self._decoded_in(item) for item in items]
        results = [None if item is None else codec._encode_sync(item, self._spec) for item in given]
        return self._encoded_out(results)

    async def _decode_async(self, items: Batch, spec: ChunkSpec) -> list[Item | None]:
        codec = cast(Any, self.codec)
        batch = [(self._encoded_in(item), self._spec) for item in items]
        return self._decoded_out(list(await codec.decode(batch)), spec)

    async def _encode_async(self, items: Batch) -> list[Item | None]:
        codec = cast(Any, self.codec)
        batch = [(self._decoded_in(item), self._spec) for item in items]
        return self._encoded_out(list(await codec.encode(batch)))

    def _decoded_in(self, item: Item | None) -> Any:
        if item is None:
            return None
        if self.kind == "bytes->bytes":
            return self._spec.prototype.buffer.from_bytes(item)
        return self._spec.prototype.nd_buffer.from_ndarray_like(item)

    def _encoded_in(self, item: Item | None) -> Any:
        if item is None:
            return None
        if self.kind == "array->array":
            return self._spec.prototype.nd_buffer.from_ndarray_like(item)
        return self._spec.prototype.buffer.from_bytes(item)

    def _decoded_out(self, results: list[Any], spec: ChunkSpec) -> list[Item | None]:
        if self.kind == "bytes->bytes":
            return [None if item is None else _flat(item) for item in results]
        return [None if item is None else self._owned(item.as_numpy_array(), spec) for item in results]

    def _encoded_out(self, results: list[Any]) -> list[Item | None]:
        if self.kind == "array->array":
            return [None if item is None else self._as_declared(item.as_numpy_array()) for item in results]
        return [None if item is None else _flat(item) for item in results]

    def _as_declared(self, array: NDArray[Any]) -> NDArray[Any]:
        """An encoded array with the data type that the codec's metadata promises.

        Codecs such as bitround make integers of the same size and do not say so; zarr stores their bits.
        """
        declared = self._encoded_dtype
        if array.dtype.kind == declared.kind or array.dtype.itemsize != declared.itemsize or array.dtype.hasobject:
            return array
        return array.view(declared.newbyteorder(array.dtype.byteorder))

    @cached_property
    def _encoded_dtype(self) -> np.dtype[Any]:
        native: np.dtype[Any] = self.codec.resolve_metadata(self._spec).dtype.to_native_dtype()
        return native

    def _owned(self, array: NDArray[Any], spec: ChunkSpec) -> NDArray[Any]:
        """Check a decoded array, and make it one that may be changed: writes are merged into it."""
        if array.shape != spec.shape:
            raise CorruptChunkError("wrong decoded shape", codec=self.name, expected=spec.shape, found=array.shape)
        if not (array.flags.owndata and array.flags.writeable) or array.dtype != spec.dtype.numpy:
            return array.astype(spec.dtype.numpy)
        return array


def kind_of(codec: Codec) -> Kind:
    """Return the kind of a zarr codec.

    Parameters
    ----------
    codec
        Any zarr codec.

    Returns
    -------
    str
        As in chunkwright.

    Raises
    ------
    ConfigurationError
        When the object is no codec of zarr's.

    Examples
    --------
    >>> import zarr
    >>> kind_of(zarr.codecs.ZstdCodec())
    'bytes->bytes'
    """
    kinds: dict[type, Kind] = {
        ArrayArrayCodec: "array->array",
        ArrayBytesCodec: "array->bytes",
        BytesBytesCodec: "bytes->bytes",
    }
    for base, kind in kinds.items():
        if isinstance(codec, base):
            return kind
    raise ConfigurationError("not a codec of zarr's", codec=type(codec).__name__)


def foreign(codec: Codec, spec: ArraySpec, *, reason: str) -> Foreign:
    """Put a zarr codec into a chain as it is.

    Parameters
    ----------
    codec
        The zarr codec.
    spec
        What zarr says of the chunk on the codec's decoded side.
    reason
        Why no backend runs it.

    Returns
    -------
    Foreign
        The codec in the chain.
    """
    return foreign_codec(ZarrCodec(codec, spec, reason))


def _flat(buffer: Any) -> memoryview:
    """Bytes of a zarr buffer, without a copy where it is contiguous."""
    return memoryview(np.ascontiguousarray(buffer.as_numpy_array())).cast("B")
