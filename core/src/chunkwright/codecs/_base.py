"""What every codec of a chain is: a frozen value with a name, a kind, and pure functions over specs.

A codec here is metadata, not compute: it knows its configuration, checks it, fills in what a data type
decides (:meth:`Codec.bind`), says what the next codec will see (:meth:`Codec.encoded_spec`) and how many
bytes it can make (:meth:`Codec.encoded_size`). Backends do the work.

Each codec has a module of its own; :mod:`chunkwright.codecs` has the table of names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import attrs

from chunkwright.errors import Problem
from chunkwright.spec import ChunkSpec, DataType, FillValue, Size, UnboundedSize

__all__ = ("ArrayArrayCodec", "ArrayBytesCodec", "BytesBytesCodec", "Codec", "Kind")

type Kind = Literal["array->array", "array->bytes", "bytes->bytes"]
type JSON = Mapping[str, Any] | list[Any] | str | int | float | bool | None


@attrs.frozen(kw_only=True)
class Codec:
    """A codec's metadata. Only its three subclasses by kind are used."""

    kind: ClassVar[Kind]

    @property
    def name(self) -> str:
        """Name in Zarr v3 metadata."""
        raise NotImplementedError

    def configuration(self) -> dict[str, Any]:
        """Return the configuration as JSON values, only what is set.

        Returns
        -------
        dict
            May be empty.
        """
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """Return the codec as Zarr v3 metadata.

        Returns
        -------
        dict
            ``{"name": ..., "configuration": {...}}``, without an empty configuration.
        """
        configuration = self.configuration()
        return {"name": self.name, "configuration": configuration} if configuration else {"name": self.name}

    def bind(self, dtype: DataType, fill_value: FillValue) -> Self:
        """Fill in what the data type decides, and check the configuration against it.

        Parameters
        ----------
        dtype, fill_value
            What the codec is given to encode.

        Returns
        -------
        Self
            A codec with nothing left open.

        Raises
        ------
        ConfigurationError
            When the codec cannot encode this data type.
        """
        return self

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """Return the spec that the next codec is given.

        The fill value is what the *metadata* says it becomes. Codecs whose arithmetic decides it
        (``encodes_fill_value``) leave it as it is; ``prepare`` lets the backend encode it.

        Parameters
        ----------
        spec
            What this codec is given.

        Returns
        -------
        ChunkSpec
            Unchanged for all but array->array codecs.

        Raises
        ------
        ConfigurationError
            When the codec cannot encode a chunk of this shape.
        """
        return spec

    def encoded_size(self, size: Size, spec: ChunkSpec) -> Size:
        """Return how many bytes this codec makes.

        Parameters
        ----------
        size
            Bytes that it is given.
        spec
            Spec of the array that the array->bytes codec is given.

        Returns
        -------
        Size
            Unbounded unless a codec says otherwise.
        """
        return UnboundedSize()


@attrs.frozen(kw_only=True)
class ArrayArrayCodec(Codec):
    """A codec that turns an array into an array."""

    kind: ClassVar[Kind] = "array->array"
    encodes_fill_value: ClassVar[bool] = False


@attrs.frozen(kw_only=True)
class ArrayBytesCodec(Codec):
    """A codec that turns an array into bytes."""

    kind: ClassVar[Kind] = "array->bytes"


@attrs.frozen(kw_only=True)
class BytesBytesCodec(Codec):
    """A codec that turns bytes into bytes."""

    kind: ClassVar[Kind] = "bytes->bytes"


type Location = tuple[str | int, ...]
type Problems = list[Problem]
