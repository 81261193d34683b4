"""The sharding codec of a prepared chain: how shards are cut, and who reads and writes them."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.errors import ConfigurationError
from chunkwright.shard_format import Layout, inner_chunk_order
from chunkwright.shard_ports import ReadsShards, ShardReader, ShardWriter, WritesShards, shard_backend_of
from chunkwright.spec import ChunkSpec

if TYPE_CHECKING:
    from chunkwright.prepared import PreparedChain

__all__ = ("Shard",)


@attrs.frozen(eq=False, kw_only=True)
class Shard:
    """The sharding codec of a prepared chain.

    Parameters
    ----------
    spec
        The array that the sharding codec is given.
    inner
        The prepared chain of the inner chunks.
    index
        The prepared chain of the index.
    grid
        Inner chunks along each axis.
    layout
        Where index and inner chunks lie.
    order
        Name of the order in which inner chunks are written.
    """

    spec: ChunkSpec
    inner: PreparedChain
    index: PreparedChain
    grid: tuple[int, ...]
    layout: Layout
    order: str

    @property
    def cells(self) -> int:
        """How many inner chunks a shard has."""
        return math.prod(self.grid)

    @cached_property
    def write_order(self) -> NDArray[np.int64]:
        """int64: flat positions of the inner chunks in the order in which they are written.

        Made when something is written: of the many inner chunks that metadata may claim, it takes gigabytes.
        """
        try:
            return inner_chunk_order(self.grid, self.order)
        except MemoryError:
            raise ConfigurationError(
                "too many inner chunks in a shard for the memory there is", codec="sharding_indexed", found=self.cells
            ) from None

    @cached_property
    def reader(self) -> ShardReader | None:
        """What decodes parts of shards without the core, if a backend does that."""
        found = shard_backend_of(self.inner.runs, self.index.runs)
        if found is None or not isinstance(found[0], ReadsShards):
            return None
        return found[0].shard_reader(*found[1], self.grid, self.layout)

    @cached_property
    def writer(self) -> ShardWriter | None:
        """What encodes shards without the core, likewise."""
        found = shard_backend_of(self.inner.runs, self.index.runs)
        if found is None or not isinstance(found[0], WritesShards):
            return None
        return found[0].shard_writer(*found[1], self.grid, self.layout, self.write_order)
