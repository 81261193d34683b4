"""The port for backends that find and decode the inner chunks of shards by themselves.

The core cuts selections along inner chunks, reads shard indexes and checks them for every backend. One that can do so
natively, for all shards of a call at once, has a method ``shard_reader``, and is asked once, when a chain is prepared.
What its reader does not take is done by the core, with the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.entries import Entries
from chunkwright.ports import ForeignRun, Run
from chunkwright.shard_format import Layout

__all__ = ("ReadsShards", "ShardReader", "shard_reader_of")


class ShardReader(Protocol):
    """Decodes parts of shards of one form."""

    def takes(self, entries: Entries, dtype: np.dtype[Any], /) -> bool:
        """Say whether the reader can do this.

        Parameters
        ----------
        entries
            Selections of shards.
        dtype
            The dtype of the caller's array.

        Returns
        -------
        bool
            False leaves it to the core.
        """

    def decode_into(
        self, buffers: Buffers, entries: Entries, out: NDArray[Any], /, *, max_workers: int | None = None
    ) -> None:
        """Decode parts of shards and put them into the caller's array.

        Parameters
        ----------
        buffers
            One row per shard. Where owners are in storage, a length of -1 is up to the end.
        entries
            Selections of the array that the sharding codec is given, ordered by chunk.
        out
            The caller's array.
        max_workers
            Limit of threads.

        Raises
        ------
        ShardIndexError
            When an index says what cannot be; ``position`` is the shard's.
        CorruptChunkError
            When bytes do not decode; ``position`` is the shard's.
        """


@runtime_checkable
class ReadsShards(Protocol):
    """A backend that has shard readers."""

    def shard_reader(self, inner: Run, index: Run, grid: tuple[int, ...], layout: Layout, /) -> ShardReader | None:
        """Make a reader.

        Parameters
        ----------
        inner
            All that is done to an inner chunk, a run of this backend's.
        index
            All that is done to the index, a run of this backend's.
        grid
            Inner chunks along each axis.
        layout
            Where the index and the inner chunks lie.

        Returns
        -------
        ShardReader or None
            None when the core is to do it.
        """


def shard_reader_of(
    inner: Sequence[Run | ForeignRun], index: Sequence[Run | ForeignRun], grid: tuple[int, ...], layout: Layout
) -> ShardReader | None:
    """Ask for a reader, if one backend does all that is done to inner chunks and index.

    Parameters
    ----------
    inner, index
        The runs of both chains.
    grid
        Inner chunks along each axis.
    layout
        Where the index and the inner chunks lie.

    Returns
    -------
    ShardReader or None
        None when the core is to do it.
    """
    if len(inner) != 1 or len(index) != 1:
        return None
    of_inner, of_index = inner[0], index[0]
    if not isinstance(of_inner, Run) or not isinstance(of_index, Run) or of_inner.backend is not of_index.backend:
        return None
    backend = of_inner.backend
    return backend.shard_reader(of_inner, of_index, grid, layout) if isinstance(backend, ReadsShards) else None
