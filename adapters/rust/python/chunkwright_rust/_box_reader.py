"""A few boxes of chunks, read without columns of entries: the native module takes selections as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.ports import Run
from chunkwright.prepared import PreparedChain
from chunkwright_rust import _native
from chunkwright_rust._layout import opaque
from chunkwright_rust._runs import FixedRun
from chunkwright_rust._shards import NativeShardReader

__all__ = ("NativeBoxReader", "make_box_reader")


class NativeBoxReader:
    """Reads boxes of chunks of one prepared chain.

    Parameters
    ----------
    run
        What is done to chunks, or to inner chunks.
    shards
        What reads shards, if the chunks are shards.
    shape
        Shape of a chunk.
    order
        The permutation that the array of the sharding codec is of the chunk.
    """

    def __init__(
        self, run: FixedRun, shards: NativeShardReader | None, shape: tuple[int, ...], order: tuple[int, ...]
    ) -> None:
        self._run = run
        self._native = _native.BoxReader(run.program, None if shards is None else shards.native, shape, order)
        self._known: dict[np.dtype[Any], tuple[int, bytes]] = {}

    def boxes(
        self, rows: list[tuple[Any, ...]], store: Any, out: NDArray[Any], drop_axes: Sequence[int] = ()
    ) -> _native.Boxes | None:
        """Read selections; see :class:`~chunkwright_store.box_reader.BoxReader`."""
        target = self._target(out)
        return None if target is None else self._native.boxes(rows, store, drop_axes, target)

    def region(
        self, selection: tuple[Any, ...], key_format: tuple[str, str], max_chunks: int, out: NDArray[Any]
    ) -> _native.Boxes | None:
        """Read one selection of an array; see :class:`~chunkwright_store.box_reader.BoxReader`."""
        target = self._target(out)
        return None if target is None else self._native.region(selection, key_format, max_chunks, target)

    def _target(self, out: NDArray[Any]) -> tuple[NDArray[Any], int, int, bytes] | None:
        """What the native module is told of an array; None when elements need to be converted."""
        known = self._known.get(out.dtype)
        if known is None:
            if not self._run.takes(out.dtype):
                return None
            known = self._known[out.dtype] = self._run.element(out.dtype)
        # Those that Python's buffers know need no view of other elements.
        return (out if out.ndim and out.dtype.kind in "biufc" else opaque(out), out.ndim, *known)


def make_box_reader(prepared: PreparedChain) -> NativeBoxReader | None:
    """Make what reads boxes of chunks; None when more than one run of this backend's does that."""
    identity = tuple(range(prepared.spec.ndim))
    shard = prepared.shard
    if shard is None:
        return _of_run(prepared.runs, None, prepared.spec.shape, identity)
    if not prepared.is_partial or not isinstance(shard.reader, NativeShardReader):
        return None
    return _of_run(shard.inner.runs, shard.reader, prepared.spec.shape, prepared.order or identity)


def _of_run(
    runs: Sequence[Any], shards: NativeShardReader | None, shape: tuple[int, ...], order: tuple[int, ...]
) -> NativeBoxReader | None:
    run = runs[0]
    if len(runs) != 1 or not isinstance(run, Run) or not isinstance(run.compiled, FixedRun):
        return None
    return NativeBoxReader(run.compiled, shards, shape, order)
