"""The ports for backends that read and write shards as a whole.

The core cuts selections along inner chunks, reads shard indexes and checks them, and puts shards together, for every
backend. One that can do so natively, for all shards of a call at once, has a method ``shard_reader`` or
``shard_writer``, and is asked when something is read or written for the first time; threads that are first together
may ask twice. What its reader or writer does not take is done by the core, with the same result: the same elements,
bytes and errors.
"""

from __future__ import annotations

from collections.abc import Buffer, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.entries import Entries
from chunkwright.ports import Backend, ForeignRun, Run
from chunkwright.shard_format import Layout

__all__ = ("ReadsShards", "ShardReader", "ShardWriter", "WritesShards", "shard_backend_of")


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


class ShardWriter(Protocol):
    """Encodes shards of one form."""

    def takes(self, entries: Entries, /) -> bool:
        """Say whether the writer can do this.

        Parameters
        ----------
        entries
            Selections of shards.

        Returns
        -------
        bool
            False leaves it to the core.
        """

    def encode_from(
        self,
        source: NDArray[Any],
        entries: Entries,
        existing: Buffers,
        /,
        *,
        keep_empty: bool,
        max_workers: int | None = None,
    ) -> list[Buffer | None]:
        """Gather inner chunks from the caller's array, encode them, and put them into shards.

        Parameters
        ----------
        source
            The caller's array.
        entries
            Selections of the array that the sharding codec is given, ordered by chunk.
        existing
            One row per shard: its encoded bytes so far. Inner chunks that no entry touches are kept verbatim, those
            that are partly written are decoded first.
        keep_empty
            Whether inner chunks of nothing but the fill value are encoded.
        max_workers
            Limit of threads.

        Returns
        -------
        list of Buffer or None
            One per row of ``existing``; None when nothing is left of a shard.

        Raises
        ------
        ShardIndexError
            When an index says what cannot be; ``position`` is the shard's.
        CodecError
            When bytes do not decode, or elements do not encode; ``position`` is the shard's.
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


@runtime_checkable
class WritesShards(Protocol):
    """A backend that has shard writers."""

    def shard_writer(
        self, inner: Run, index: Run, grid: tuple[int, ...], layout: Layout, write_order: NDArray[np.int64], /
    ) -> ShardWriter | None:
        """Make a writer.

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
        write_order
            int64: flat positions of the inner chunks in the order in which they are written.

        Returns
        -------
        ShardWriter or None
            None when the core is to do it.
        """


def shard_backend_of(
    inner: Sequence[Run | ForeignRun], index: Sequence[Run | ForeignRun]
) -> tuple[Backend, tuple[Run, Run]] | None:
    """Find the one backend that does all that is done to inner chunks and index.

    Parameters
    ----------
    inner, index
        The runs of both chains.

    Returns
    -------
    tuple or None
        The backend, and the only run of each chain; None when there are several, or foreign codecs.
    """
    if len(inner) != 1 or len(index) != 1:
        return None
    of_inner, of_index = inner[0], index[0]
    if not isinstance(of_inner, Run) or not isinstance(of_index, Run) or of_inner.backend is not of_index.backend:
        return None
    return of_inner.backend, (of_inner, of_index)
