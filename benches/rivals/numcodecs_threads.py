"""What one writes in an afternoon: numcodecs' codecs on a thread pool, one task for each object of the store."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from math import prod
from typing import Any

import numcodecs.blosc
import numpy as np
from numpy.typing import NDArray

from benches.operations import Call
from benches.places import LocalPlace, MemoryPlace, Place, ZipPlace
from benches.rivals.base import CannotDoError, Contender, Opened
from benches.rivals.geometry import Piece, out_shape, pieces
from benches.rivals.objects import Reader, opened_object, replace_object
from benches.rivals.stored_format import MISSING, StoredFormat, key_of, shard_pieces

__all__ = ("NumcodecsThreads",)


class NumcodecsArray(Opened):
    """An array read and written by hand."""

    def __init__(self, place: Place, form: StoredFormat) -> None:
        self.place, self.form = place, form
        self.pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)))

    def close(self) -> None:
        self.pool.shutdown()

    def read(self, call: Call) -> NDArray[Any]:
        out = np.empty(out_shape(call, self.form.shape), self.form.dtype)

        def read_object(key: str, wanted: Sequence[Piece]) -> None:
            with opened_object(self.place, key) as reader:
                cells = self._cells(reader)
                for piece in wanted:
                    out[piece.out] = self._decoded(cells(piece.cell))[piece.inner]

        self._each_object(call, read_object)
        return out

    def write(self, call: Call, values: NDArray[Any]) -> None:
        def write_object(key: str, wanted: Sequence[Piece]) -> None:
            with opened_object(self.place, key) as reader:
                cells = self._cells(reader)
                encoded = {piece.cell: self._changed(piece, cells, values) for piece in wanted}
                content = self._content(wanted[0].cell, encoded, cells)
            replace_object(self.place, key, content)

        self._each_object(call, write_object)

    def _each_object(self, call: Call, action: Callable[[str, Sequence[Piece]], None]) -> None:
        """Call an action for each object that a call touches, on the pool."""
        counts = self.form.cells_per_chunk
        objects: dict[str, list[Piece]] = defaultdict(list)
        for piece in pieces(call, self.form.shape, self.form.cell):
            objects[key_of(tuple(at // count for at, count in zip(piece.cell, counts, strict=True)))].append(piece)
        for _ in self.pool.map(action, objects.keys(), objects.values()):
            pass

    def _cells(self, reader: Reader | None) -> Callable[[tuple[int, ...]], Any]:
        """Return what gives the encoded cells of an object, None for one that is missing."""
        if reader is None:
            return lambda _: None
        if not self.form.is_sharded:
            return lambda _: reader.read(0, reader.length)
        index = self.form.index(reader.read(reader.length - self.form.index_nbytes, reader.length)).tolist()

        def read(cell: tuple[int, ...]) -> Any:
            start, length = index[self.form.number_in_chunk(cell)]
            return None if start == MISSING else reader.read(start, start + length)

        return read

    def _decoded(self, encoded: Any) -> NDArray[Any]:
        if encoded is None:
            return np.zeros(self.form.cell, self.form.dtype)
        data = encoded if self.form.codec is None else self.form.codec.decode(encoded)
        return np.frombuffer(data, self.form.dtype).reshape(self.form.cell)

    def _changed(self, piece: Piece, cells: Callable[[tuple[int, ...]], Any], values: NDArray[Any]) -> Any:
        """Encode a cell of which a piece has new values; None when a shard may leave it out."""
        cell = self._decoded(None if piece.is_whole else cells(piece.cell)).copy()
        cell[piece.inner] = values[piece.out]
        if self.form.is_sharded and not cell.any():
            return None
        return cell.tobytes() if self.form.codec is None else bytes(self.form.codec.encode(cell))

    def _content(
        self, some: tuple[int, ...], encoded: dict[tuple[int, ...], Any], cells: Callable[..., Any]
    ) -> list[Any]:
        """Return the pieces of an object: the new cells, and for a shard also the old ones and the index."""
        if not self.form.is_sharded:
            return [encoded[some]]
        counts = self.form.cells_per_chunk
        origin = [at // count * count for at, count in zip(some, counts, strict=True)]
        inside = [tuple(int(i) for i in np.unravel_index(number, counts)) for number in range(prod(counts))]
        all_cells = [tuple(o + i for o, i in zip(origin, place, strict=True)) for place in inside]
        return shard_pieces([encoded[cell] if cell in encoded else cells(cell) for cell in all_cells])


class NumcodecsThreads(Contender):
    """numcodecs on threads, without zarr-python."""

    name = "numcodecs"
    role = "rival"

    def version(self) -> str:
        return version("numcodecs")

    def open(self, place: Place) -> Opened:
        if type(place) not in (LocalPlace, MemoryPlace, ZipPlace):
            raise CannotDoError(f"what is written by hand has no access to zarr's stores ({place.kind})")
        numcodecs.blosc.use_threads = False  # the threads are ours
        with opened_object(place, "zarr.json") as reader:
            if reader is None:
                raise CannotDoError("there is no array")
            form = StoredFormat.from_metadata(reader.read(0, reader.length))
        return NumcodecsArray(place, form)
