"""Parts of shards, cut, found and decoded in one native call, wherever the shards are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.entries import Entries
from chunkwright.ports import Run
from chunkwright.shard_format import Layout
from chunkwright.spec import BoundedSize, FixedSize
from chunkwright_rust import _native
from chunkwright_rust._layout import ranges_of, rows_of
from chunkwright_rust._runs import FILES, FixedRun

__all__ = ("NativeShardReader", "make_reader")


class NativeShardReader:
    """Decodes boxes of shards whose inner chunks have elements of a fixed number of bytes.

    Parameters
    ----------
    inner, index
        What is done to inner chunks and to the index.
    grid
        Inner chunks along each axis.
    layout
        Where the index and the inner chunks lie.
    """

    def __init__(self, inner: FixedRun, index: FixedRun, grid: tuple[int, ...], layout: Layout) -> None:
        size = layout.inner_size
        least = size.nbytes if isinstance(size, FixedSize) else 0
        most = size.nbytes if isinstance(size, FixedSize | BoundedSize) else None
        big_endian = index.stored == np.dtype(">u8")
        self._inner = inner
        self.native = _native.Shards(
            inner.program, index.program, grid, layout.index_size, layout.at_start, big_endian, (least, most)
        )

    def takes(self, entries: Entries, dtype: np.dtype[Any]) -> bool:
        """Say whether the reader can do this; see :class:`~chunkwright.shard_ports.ShardReader`."""
        return entries.is_boxes and self._inner.takes(dtype)

    def decode_into(
        self, buffers: Buffers, entries: Entries, out: NDArray[Any], *, max_workers: int | None = None
    ) -> None:
        """Decode parts of shards; see :class:`~chunkwright.shard_ports.ShardReader`."""
        target = self._inner.target(entries, out, max_workers)
        if FILES is not None and isinstance(buffers.owners, FILES):
            buffers.owners.decode_shards_into(self.native, ranges_of(buffers), *target)
        else:
            self.native.decode_into(rows_of(buffers), *target)


def make_reader(inner: Run, index: Run, grid: tuple[int, ...], layout: Layout) -> NativeShardReader | None:
    """Make a reader; see :class:`~chunkwright.shard_ports.ReadsShards`."""
    of_inner, of_index = inner.compiled, index.compiled
    if not isinstance(of_inner, FixedRun) or not isinstance(of_index, FixedRun) or not of_index.keeps_order:
        return None
    return NativeShardReader(of_inner, of_index, grid, layout)
