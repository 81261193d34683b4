"""Writes of the limit, planned: gather, encode, replace the object.

Where part of a shard is written, the other cells stay as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benches.operations import Call
from benches.places import Place
from benches.rivals.geometry import Piece, pieces
from benches.rivals.limit_codecs import Coder
from benches.rivals.limit_reads import SMALL, TASK, Runner
from benches.rivals.objects import opened_object, replace_object
from benches.rivals.stored_format import StoredFormat, key_of, shard_pieces

__all__ = ("WritePlan",)

type Cell = tuple[int, ...]
# Pieces of a chunk, and the number in the chunk of each.
type Job = tuple[str, list[Piece], list[int]]


class WritePlan:
    """One call."""

    def __init__(self, place: Place, form: StoredFormat, call: Call) -> None:
        self.place, self.form, self.coder = place, form, Coder(form)
        counts = form.cells_per_chunk
        by_chunk: dict[Cell, list[Piece]] = defaultdict(list)
        for piece in pieces(call, form.shape, form.cell):
            by_chunk[tuple(at // count for at, count in zip(piece.cell, counts, strict=True))].append(piece)
        jobs: list[Job] = [
            (key_of(chunk), found, [form.number_in_chunk(piece.cell) for piece in found])
            for chunk, found in by_chunk.items()
        ]
        together = 1 if form.is_sharded or form.cell_nbytes > SMALL else TASK // form.cell_nbytes
        self.batches = [jobs[first : first + together] for first in range(0, len(jobs), together)]

    def run(self, values: NDArray[Any], runner: Runner) -> None:
        """Write values."""
        action: Callable[[list[Job], NDArray[Any]], None] = self._shard if self.form.is_sharded else self._chunks
        runner([partial(action, batch, values) for batch in self.batches])

    def _chunks(self, jobs: list[Job], values: NDArray[Any]) -> None:
        found = [piece for _, (piece,), _ in jobs]
        old = [] if all(piece.is_whole for piece in found) else [self._object(key) for key, _, _ in jobs]
        encoded = self.coder.encode_many(self._changed(found, old, values))
        for (key, _, _), content in zip(jobs, encoded, strict=True):
            replace_object(self.place, key, [content])

    def _shard(self, jobs: list[Job], values: NDArray[Any]) -> None:
        ((key, found, numbers),) = jobs
        total = prod(self.form.cells_per_chunk)
        cells: list[Any] = [None] * total
        if not (len(found) == total and all(piece.is_whole for piece in found)):
            shard = memoryview(self._object(key))
            index = self.form.index(shard[-self.form.index_nbytes :]).tolist()
            cells = [shard[start : start + length] for start, length in index]
        encoded = self.coder.encode_many(self._changed(found, [cells[number] for number in numbers], values))
        for number, content in zip(numbers, encoded, strict=True):
            cells[number] = content
        replace_object(self.place, key, shard_pieces(cells))

    def _object(self, key: str) -> Any:
        with opened_object(self.place, key) as reader:
            assert reader is not None
            return reader.read(0, reader.length)

    def _changed(self, found: Sequence[Piece], old: Sequence[Any], values: NDArray[Any]) -> NDArray[Any]:
        """Return new cells: what is new of them over what was there."""
        cells = np.empty((len(found), *self.form.cell), self.form.dtype)
        if not all(piece.is_whole for piece in found):
            self._decode_into(cells, old)
        self._assign(cells, found, values)
        return cells

    def _decode_into(self, cells: NDArray[Any], old: Sequence[Any]) -> None:
        if self.form.cell_nbytes > SMALL:
            for cell, encoded in zip(cells, old, strict=True):
                cell[...] = self.coder.decode_one(encoded)
            return
        lengths = np.array([len(encoded) for encoded in old], "<u8")
        segments = np.stack([np.cumsum(lengths, dtype="<u8") - lengths, lengths], axis=1)
        cells[...] = self.coder.decode_many(b"".join(old), segments)

    def _assign(self, cells: NDArray[Any], found: Sequence[Piece], values: NDArray[Any]) -> None:
        """Copy from the values, small cells in one go when they are cut evenly."""
        if self.form.cell_nbytes > SMALL:
            for cell, piece in zip(cells, found, strict=True):
                cell[piece.inner] = values[piece.out]
            return
        edges = [item.stop - item.start for item in found[0].out]
        grid = values.reshape(
            [part for extent, edge in zip(values.shape, edges, strict=True) for part in (extent // edge, edge)]
        )
        ndim = len(edges)
        grid = grid.transpose(*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2))
        where = tuple(
            np.array([[item.start // edge for item, edge in zip(piece.out, edges, strict=True)] for piece in found]).T
        )
        cells[(slice(None), *found[0].inner)] = grid[where]
