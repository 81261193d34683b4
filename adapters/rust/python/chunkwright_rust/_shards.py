"""Shards whose inner chunks and index are both runs of codecs that the native module does alone."""

from __future__ import annotations

from collections.abc import Buffer
from typing import Any, Self

from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.entries import Entries
from chunkwright.shard_port import ShardSteps
from chunkwright.spec import BoundedSize, FixedSize, Size
from chunkwright_rust._layout import columns_of, ranges_of, rows_of
from chunkwright_rust._native import Shards
from chunkwright_rust._runs import FILES, FixedRun

__all__ = ("CompiledShards",)


class CompiledShards:
    """A sharding codec.

    Parameters
    ----------
    steps
        Its parts; those of :meth:`of` only.
    inner
        What the run of the inner chunks was compiled to.
    index
        What the run of the index was compiled to.
    """

    def __init__(self, steps: ShardSteps, inner: FixedRun, index: FixedRun) -> None:
        self._inner = inner
        self._native = Shards(
            inner.program,
            index.program,
            index.unit or 1,
            steps.layout.index_size,
            steps.layout.at_start,
            steps.grid,
            steps.write_order.tolist(),
            _bounds(steps.layout.inner_size),
        )

    @classmethod
    def of(cls, steps: ShardSteps) -> Self | None:
        """Compile a sharding codec.

        Parameters
        ----------
        steps
            Its parts.

        Returns
        -------
        CompiledShards or None
            None when inner chunks have elements that only Python knows.
        """
        inner, index = steps.inner.compiled, steps.index.compiled
        if not isinstance(inner, FixedRun) or not isinstance(index, FixedRun) or index.unit is None:
            return None
        return cls(steps, inner, index)

    def decode_into(self, buffers: Buffers, entries: Entries, out: NDArray[Any], max_workers: int | None) -> bool:
        """Decode into the caller's array; see :class:`~chunkwright.shard_port.ShardBackend`."""
        target = self._inner.target(out) if entries.is_boxes else None
        if target is None:
            return False
        if FILES is not None and isinstance(buffers.owners, FILES):
            buffers.owners.decode_shards(self._native, ranges_of(buffers), columns_of(entries), *target, max_workers)
        else:
            self._native.decode_into(rows_of(buffers), columns_of(entries), *target, max_workers)
        return True

    def encode_from(
        self, source: NDArray[Any], entries: Entries, existing: Buffers, keep_empty: bool, max_workers: int | None
    ) -> list[Buffer | None] | None:
        """Gather and encode; see :class:`~chunkwright.shard_port.ShardBackend`."""
        if not entries.is_boxes:
            return None
        array, unit = self._inner.source(source)
        return self._native.encode_from(
            array, columns_of(entries), rows_of(existing), unit, keep_empty, max_workers
        )


def _bounds(size: Size) -> tuple[int | None, int | None]:
    """Bytes of an encoded inner chunk: exactly, and at most."""
    if isinstance(size, FixedSize):
        return size.nbytes, None
    return None, size.nbytes if isinstance(size, BoundedSize) else None
