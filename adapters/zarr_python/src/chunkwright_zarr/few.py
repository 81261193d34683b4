"""A few plain selections of chunks in memory or in files, read by the backend with next to nothing done in Python.

That is what crops, planes, orthogonal lists and single elements are. Everything else (many chunks, points, dtypes that
NumPy has to convert, several specs, backends without a box reader) is left to :mod:`chunkwright_zarr.reads`, with the
same result.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import attrs
from numpy.typing import NDArray

from chunkwright.errors import CodecError
from chunkwright_store import Boxes, Limits
from chunkwright_store.held import content
from chunkwright_store.jobs import name_chunk
from chunkwright_store.packed import Packed
from chunkwright_store.roots import local_root
from chunkwright_store.zarr import Kind
from chunkwright_zarr.driving import Keys, packed_shards
from chunkwright_zarr.ready import Ready
from chunkwright_zarr.selections import Group, Row

__all__ = ("FewBoxes", "few_boxes")

MAX_FEW = 8192
"""Most chunks; zarr takes five microseconds for each of them on its loop, and what is done here a third of one."""

MAX_FEW_NBYTES = 64 << 20
"""Most decoded bytes; more is read in steps, between which a call can be cancelled and memory is given back."""


@attrs.frozen(eq=False)
class FewBoxes:
    """A read that is ready to be done.

    Parameters
    ----------
    ready
        The chain of the chunks.
    rows
        The rows of the batch.
    boxes
        What the backend made of them.
    kind
        How the batch is driven.
    root
        The folder of a local store; None for other chunks.
    packed
        Where chunks are in one file; None for other chunks.
    limits
        Of the call.
    """

    ready: Ready
    rows: Sequence[Row]
    boxes: Boxes
    kind: Kind
    root: str | None
    packed: Packed | None
    limits: Limits

    @property
    def work(self) -> tuple[int, int]:
        """Inner chunks to be decoded, and their bytes."""
        return self.boxes.chunks, self.boxes.nbytes

    @property
    def is_at_hand(self) -> bool:
        """Whether nothing has to be looked at first that may take its time."""
        return self.packed is None or self.packed.is_sound

    def run(self) -> Sequence[bool]:
        """Do it.

        Returns
        -------
        sequence of bool
            One per row: whether the chunk was there.

        Raises
        ------
        CodecError
            With the key of the chunk.
        """
        started = time.perf_counter()
        try:
            present = self._read()
        except CodecError as error:
            name_chunk(error, Keys([row[0] for row in self.rows]))
            raise
        self.ready.pace.record(self.boxes.nbytes, time.perf_counter() - started)
        return present

    def _read(self) -> Sequence[bool]:
        if self.root is not None:
            return self._files(self.root)
        return self._memory() if self.packed is None else self._packed(self.packed)

    def _packed(self, packed: Packed) -> Sequence[bool]:
        rows, limits = (packed.offset, packed.length), self.limits
        self.boxes.read_packed(packed.descriptor(), packed.path, rows, limits.max_workers, limits.shard_index_cache)
        return [offset >= 0 for offset in packed.offset]

    def _files(self, root: str) -> Sequence[bool]:
        limits = self.limits
        keys = [row[0].path for row in self.rows]
        return self.boxes.read_files(root, keys, limits.max_workers, limits.shard_index_cache)

    def _memory(self) -> Sequence[bool]:
        prototype = self.ready.spec.prototype
        if self.kind == "memory":
            stored = [content(row[0], prototype) for row in self.rows]
        else:
            taken = [row[0].get_sync(prototype=prototype) for row in self.rows]
            stored = [None if data is None else data.as_numpy_array() for data in taken]
        self.boxes.decode(stored, self.limits.max_workers)
        return [data is not None for data in stored]


def few_boxes(
    groups: Sequence[Group],
    readies: Sequence[Ready],
    out: NDArray[Any],
    drop_axes: tuple[int, ...],
    kind: Kind,
    limits: Limits,
) -> FewBoxes | None:
    """Look whether a read is one of a few plain boxes.

    Parameters
    ----------
    groups
        The rows of the batch, by spec.
    readies
        The chain of each group.
    out
        The array that is read into.
    drop_axes
        Axes of the chunks that ``out`` has not.
    kind
        How the batch would be driven.
    limits
        Of the call.

    Returns
    -------
    FewBoxes or None
        None when it is anything else.
    """
    ready, rows = readies[0], groups[0].rows
    if ready.box_reader is None or len(groups) > 1 or len(rows) > MAX_FEW:
        return None
    root = local_root(row[0] for row in rows) if kind == "local" else None
    packed = packed_shards(ready, [row[0] for row in rows]) if kind == "async" else None
    if (kind == "local" and root is None) or (kind == "async" and packed is None):
        return None
    boxes = ready.box_reader.boxes([row[2] for row in rows], [row[3] for row in rows], out, drop_axes)
    if boxes is None or boxes.nbytes > MAX_FEW_NBYTES:
        return None
    return FewBoxes(ready, rows, boxes, kind, root, packed, limits)
