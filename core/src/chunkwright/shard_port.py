"""What a backend may offer for shards as a whole.

Without it the core cuts entries along the grid of inner chunks, decodes and encodes indexes, and puts shards together,
with one call of the backend for all inner chunks of a batch (:mod:`chunkwright.execute`). A backend that runs every
codec of the inner chunks and of the index may do all of that in one call of its own, which saves the columns and
objects of each inner chunk. What it makes is the same, byte for byte, and so are its errors; ``position`` is the row of
the shard.
"""

from __future__ import annotations

from collections.abc import Buffer
from typing import Any, Protocol, runtime_checkable

import attrs
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.entries import Entries
from chunkwright.ports import Run
from chunkwright.shard_format import Layout

__all__ = ("ShardBackend", "ShardRun", "ShardSteps")


@attrs.frozen(eq=False, kw_only=True)
class ShardSteps:
    """A sharding codec all of whose codecs one backend runs.

    Parameters
    ----------
    inner
        The only run of the inner chunks.
    index
        The only run of the index, whose decoded form is uint64 of shape ``(*grid, 2)``.
    grid
        Inner chunks along each axis.
    layout
        Where index and inner chunks may lie.
    write_order
        int64: flat positions of the inner chunks in the order in which they are written.

    Examples
    --------
    >>> steps = ShardSteps(inner=None, index=None, grid=(2, 2), layout=None, write_order=None)
    >>> steps.grid
    (2, 2)
    """

    inner: Run
    index: Run
    grid: tuple[int, ...]
    layout: Layout
    write_order: NDArray[Any]


@attrs.frozen(eq=False)
class ShardRun:
    """A sharding codec that one backend executes in one call.

    Parameters
    ----------
    backend
        Who executes it.
    compiled
        What its ``compile_shards`` made.

    Examples
    --------
    >>> ShardRun(backend=None, compiled="anything").compiled
    'anything'
    """

    backend: ShardBackend
    compiled: Any


@runtime_checkable
class ShardBackend(Protocol):
    """A backend that can take shards as a whole; see :class:`~chunkwright.ports.Backend` for the rules of calls."""

    def compile_shards(self, steps: ShardSteps) -> Any | None:
        """Make whatever the backend wants at hand for every batch of shards.

        Parameters
        ----------
        steps
            The sharding codec.

        Returns
        -------
        Any or None
            Kept as ``run.compiled``; None to leave these shards to the core.
        """

    def decode_shards(
        self, run: ShardRun, buffers: Buffers, entries: Entries, out: NDArray[Any], *, max_workers: int | None = None
    ) -> bool:
        """Decode parts of shards and put the entries' elements into the caller's array.

        Parameters
        ----------
        run
            The sharding codec.
        buffers
            One row per shard.
        entries
            Selections of the array that the sharding codec is given, ordered by shard.
        out
            The caller's array.
        max_workers
            Limit of threads.

        Returns
        -------
        bool
            False when nothing was done, because the core has to do it.
        """

    def encode_shards(
        self,
        run: ShardRun,
        source: NDArray[Any],
        entries: Entries,
        *,
        existing: Buffers,
        keep_empty: bool,
        max_workers: int | None = None,
    ) -> list[Buffer | None] | None:
        """Gather inner chunks from the caller's array, encode them, and put them into shards.

        Parameters
        ----------
        run
            The sharding codec.
        source
            The caller's array.
        entries
            Selections of the array that the sharding codec is given, ordered by shard.
        existing
            One row per shard: its encoded bytes so far. Inner chunks that no entry touches are kept verbatim.
        keep_empty
            Whether inner chunks of nothing but the fill value are encoded.
        max_workers
            Limit of threads.

        Returns
        -------
        list of Buffer or None
            One per row of ``existing``, None when nothing is left of a shard; None instead of a list when nothing was
            done, because the core has to do it.
        """
