"""The ``sharding_indexed`` codec: many inner chunks and an index in one.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed/. Name:
``sharding_indexed``. Configuration: ``{"chunk_shape": [32, 32], "codecs": [...], "index_codecs": [...],
"index_location": "end"}``.

What is here is metadata only: two chains, a shape, and where the index lies. The bytes are in
:mod:`chunkwright.shard_format`, the work in plans. ``order`` is how a writer lays inner chunks out; it is no part
of the metadata, because readers follow the index.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, Self

import attrs
import numpy as np

from chunkwright.codecs._base import ArrayBytesCodec, below, setting
from chunkwright.codecs._base import Foreign as ForeignFactories
from chunkwright.codecs._rules import choice, positive_integers
from chunkwright.errors import ConfigurationError, Problem
from chunkwright.spec import ChunkSpec, DataType, FillValue, FixedSize

if TYPE_CHECKING:
    from chunkwright.chain import BoundChain, CodecChain

__all__ = ("ShardingIndexed",)

type Order = Literal["morton", "lexicographic", "colexicographic", "unordered"]

INDEX_DTYPE = DataType(np.dtype("<u8"))
"""Data type of offsets and lengths."""

ABSENT = FillValue.of(INDEX_DTYPE, 2**64 - 1)
"""Offset and length of a missing inner chunk."""


def _chain(value: Any, foreign: ForeignFactories) -> CodecChain:
    from chunkwright.chain import CodecChain  # the table of names, which chains need, has this module in it

    return value if isinstance(value, CodecChain) else CodecChain.from_json(value, foreign=foreign, location=())


def _default_codecs() -> Any:
    return [{"name": "bytes", "configuration": {"endian": "little"}}]


def _default_index_codecs() -> Any:
    return [*_default_codecs(), {"name": "crc32c"}]


def _check_order(instance: Any, attribute: Any, value: str) -> None:
    try:
        choice("morton", "lexicographic", "colexicographic", "unordered")(value, {})
    except ValueError as error:
        raise ConfigurationError(f"order {error}", codec="sharding_indexed") from None


@attrs.frozen(kw_only=True)
class ShardingIndexed(ArrayBytesCodec):
    """Store a chunk as inner chunks with an index.

    Parameters
    ----------
    chunk_shape
        Shape of an inner chunk.
    codecs
        Chain of the inner chunks.
    index_codecs
        Chain of the index, of fixed size.
    index_location
        Where the index lies.
    order
        In which order inner chunks are written; not in the metadata.

    Examples
    --------
    >>> codec = ShardingIndexed(chunk_shape=(2, 2))
    >>> codec.index_location, [inner.name for inner in codec.index_codecs.codecs]
    ('end', ['bytes', 'crc32c'])
    >>> codec.grid((4, 8))
    (2, 4)
    """

    chunk_shape: tuple[int, ...] = attrs.field(metadata=setting(positive_integers))
    codecs: CodecChain = attrs.field(factory=_default_codecs, metadata=setting(_chain))
    index_codecs: CodecChain = attrs.field(factory=_default_index_codecs, metadata=setting(_chain))
    index_location: Literal["start", "end"] = attrs.field(default="end", metadata=setting(choice("start", "end")))
    order: Order = attrs.field(default="morton", validator=_check_order)

    @property
    def name(self) -> str:
        """Name in Zarr v3 metadata."""
        return "sharding_indexed"

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the configuration as a whole.

        Yields
        ------
        Problem
            Located below ``configuration``.
        """
        # The index is found by its size, so readers must know it before they have read anything.
        try:
            size = self.index_chain().encoded_size((1,) * len(self.chunk_shape) + (2,))
        except ConfigurationError as error:
            yield Problem(("configuration", "index_codecs"), str(error))
        else:
            if not isinstance(size, FixedSize):
                yield Problem(("configuration", "index_codecs"), "the encoded index must have a fixed size")

    def index_chain(self) -> BoundChain:
        """Return the bound chain of the index, whose array has shape ``(*grid, 2)``.

        Returns
        -------
        BoundChain
            For little-endian uint64.
        """
        return self.index_codecs.bind(INDEX_DTYPE, ABSENT)

    def inner_chain(self, dtype: DataType, fill_value: FillValue) -> BoundChain:
        """Return the bound chain of the inner chunks.

        Parameters
        ----------
        dtype, fill_value
            What the sharding codec is given to encode.

        Returns
        -------
        BoundChain
            For the same data type and fill value.

        Raises
        ------
        ConfigurationError
            When a codec cannot encode this data type.
        """
        return self.codecs.bind(dtype, fill_value, ndim=len(self.chunk_shape))

    def grid(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the number of inner chunks along each axis.

        Parameters
        ----------
        shape
            Shape of the shard.

        Returns
        -------
        tuple of int
            One per axis.

        Raises
        ------
        ConfigurationError
            When inner chunks do not tile the shard.
        """
        tiles = len(shape) == len(self.chunk_shape) and not any(
            extent % inner for extent, inner in zip(shape, self.chunk_shape, strict=True)
        )
        if not tiles:
            raise ConfigurationError(
                "chunk_shape does not divide the shape of the shard",
                codec=self.name,
                expected=shape,
                found=self.chunk_shape,
            )
        return tuple(extent // inner for extent, inner in zip(shape, self.chunk_shape, strict=True))

    def bind(self, dtype: DataType, fill_value: FillValue) -> Self:
        """Bind the chain of the inner chunks.

        Parameters
        ----------
        dtype, fill_value
            What the codec is given to encode.

        Returns
        -------
        Self
            With bound codecs in both chains.

        Raises
        ------
        ConfigurationError
            When a codec cannot encode this data type.
        """
        try:
            inner = self.inner_chain(dtype, fill_value)
        except ConfigurationError as error:
            raise ConfigurationError(problems=tuple(below(("configuration",), error)), codec=error.codec) from None
        return attrs.evolve(self, codecs=inner.unbound(), index_codecs=self.index_chain().unbound())

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """Check that inner chunks tile the shard.

        Parameters
        ----------
        spec
            What this codec is given.

        Returns
        -------
        ChunkSpec
            The same.

        Raises
        ------
        ConfigurationError
            When they do not.
        """
        self.grid(spec.shape)
        return spec
