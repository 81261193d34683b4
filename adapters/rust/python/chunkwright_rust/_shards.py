"""Shards as a whole, wherever they are: cut, found and decoded, or encoded and put together, in one native call."""

from __future__ import annotations

from collections.abc import Buffer
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.entries import Entries
from chunkwright.ports import Run
from chunkwright.shard_format import Layout
from chunkwright.spec import BoundedSize, FixedSize, Size
from chunkwright_rust._layout import columns_of, ranges_of, rows_of
from chunkwright_rust._native import Shards
from chunkwright_rust._runs import FILES, FixedRun

__all__ = ("NativeShardReader", "NativeShardWriter", "make_reader", "make_writer")


@attrs.frozen(eq=False)
class NativeShardReader:
    """Decodes boxes of shards whose inner chunks have elements of a fixed number of bytes.

    Parameters
    ----------
    inner
        What is done to inner chunks.
    native
        The sharding codec.
    """

    inner: FixedRun
    native: Shards

    def takes(self, entries: Entries, dtype: np.dtype[Any]) -> bool:
        """Say whether the reader can do this; see :class:`~chunkwright.shard_ports.ShardReader`."""
        return entries.is_boxes and self.inner.takes(dtype)

    def decode_into(
        self, buffers: Buffers, entries: Entries, out: NDArray[Any], *, max_workers: int | None = None
    ) -> None:
        """Decode parts of shards; see :class:`~chunkwright.shard_ports.ShardReader`."""
        target = self.inner.target(entries, out, max_workers)
        if FILES is not None and isinstance(buffers.owners, FILES):
            buffers.owners.decode_shards_into(self.native, ranges_of(buffers), *target)
        else:
            self.native.decode_into(rows_of(buffers), *target)


@attrs.frozen(eq=False)
class NativeShardWriter:
    """Encodes boxes into shards whose inner chunks have elements of a fixed number of bytes.

    Parameters
    ----------
    inner
        What is done to inner chunks.
    native
        The sharding codec.
    """

    inner: FixedRun
    native: Shards

    def takes(self, entries: Entries) -> bool:
        """Say whether the writer can do this; see :class:`~chunkwright.shard_ports.ShardWriter`."""
        return entries.is_boxes

    def encode_from(
        self,
        source: NDArray[Any],
        entries: Entries,
        existing: Buffers,
        *,
        keep_empty: bool,
        max_workers: int | None = None,
    ) -> list[Buffer | None]:
        """Encode shards; see :class:`~chunkwright.shard_ports.ShardWriter`."""
        array, unit = self.inner.source(source)
        return self.native.encode_from(array, columns_of(entries), rows_of(existing), unit, keep_empty, max_workers)


def make_reader(inner: Run, index: Run, grid: tuple[int, ...], layout: Layout) -> NativeShardReader | None:
    """Make a reader; see :class:`~chunkwright.shard_ports.ReadsShards`."""
    native = _compiled(inner, index, grid, layout, np.empty(0, np.int64))
    return None if native is None else NativeShardReader(inner.compiled, native)


def make_writer(
    inner: Run, index: Run, grid: tuple[int, ...], layout: Layout, write_order: NDArray[np.int64]
) -> NativeShardWriter | None:
    """Make a writer; see :class:`~chunkwright.shard_ports.WritesShards`."""
    native = _compiled(inner, index, grid, layout, np.ascontiguousarray(write_order, np.int64))
    return None if native is None else NativeShardWriter(inner.compiled, native)


def _compiled(inner: Run, index: Run, grid: tuple[int, ...], layout: Layout, order: NDArray[np.int64]) -> Shards | None:
    of_inner, of_index = inner.compiled, index.compiled
    if not isinstance(of_inner, FixedRun) or not isinstance(of_index, FixedRun) or of_index.unit is None:
        return None
    return Shards(
        of_inner.program,
        of_index.program,
        of_index.unit,
        layout.index_size,
        layout.at_start,
        grid,
        order,
        _bounds(layout.inner_size),
    )


def _bounds(size: Size) -> tuple[int | None, int | None]:
    """Bytes of an encoded inner chunk: exactly, and at most."""
    if isinstance(size, FixedSize):
        return size.nbytes, None
    return None, size.nbytes if isinstance(size, BoundedSize) else None
