"""A few plain selections of chunks in memory or in files, read by the backend with next to nothing done in Python.

That is what crops, planes, orthogonal lists and single elements are: rows of a batch of zarr's, or one selection of an
array, which the backend cuts itself. Everything else (many chunks, points, dtypes that NumPy has to convert, several
specs, backends without a box reader) is left to :mod:`chunkwright_zarr.reads`, with the same result.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import attrs
from numpy.typing import NDArray
from zarr.storage import StorePath, ZipStore

from chunkwright.errors import CodecError
from chunkwright_store import Boxes, run_off_loop
from chunkwright_store.held import content
from chunkwright_store.jobs import name_chunk
from chunkwright_store.packed import Packed
from chunkwright_store.roots import root_of
from chunkwright_store.zarr import Kind, classify
from chunkwright_zarr.config import max_workers, shard_index_cache
from chunkwright_zarr.counters import count
from chunkwright_zarr.driving import Keys, packed_shards
from chunkwright_zarr.grid_array import GridArray
from chunkwright_zarr.inline import is_brief, on_private_loop
from chunkwright_zarr.ready import Ready
from chunkwright_zarr.selections import Row
from chunkwright_zarr.specs import same_spec

__all__ = ("MAX_FEW", "MAX_FEW_NBYTES", "FewBoxes", "drive_few", "few_boxes", "region_boxes")

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
    places
        Where the chunks are.
    boxes
        What the backend made of their selections.
    kind
        How the batch is driven.
    root
        The folder of a local store; None for other chunks.
    packed
        Where chunks are in one file; None for other chunks.
    max_workers
        Limit of threads.
    index_cache
        Most bytes of indexes of shards that are kept between calls.
    """

    ready: Ready
    places: Sequence[Any]
    boxes: Boxes
    kind: Kind
    root: str | None
    packed: Packed | None
    max_workers: int | None
    index_cache: int

    @property
    def is_brief(self) -> bool:
        """Whether this is so soon over that it may be done on zarr's loop."""
        is_at_hand = self.packed is None or self.packed.is_sound
        return is_at_hand and is_brief(self.ready, (self.boxes.chunks, self.boxes.nbytes))

    def run(self) -> Sequence[bool]:
        """Do it.

        Returns
        -------
        sequence of bool
            One per chunk: whether it was there.

        Raises
        ------
        CodecError
            With the key of the chunk.
        """
        started = time.perf_counter()
        try:
            present = self._read()
        except CodecError as error:
            name_chunk(error, Keys(self.places))
            raise
        self.ready.pace.record(self.boxes.nbytes, time.perf_counter() - started)
        return present

    def _read(self) -> Sequence[bool]:
        if self.root is not None:
            return self._files(self.root)
        return self._memory() if self.packed is None else self._packed(self.packed)

    def _packed(self, packed: Packed) -> Sequence[bool]:
        rows = (packed.offset, packed.length)
        self.boxes.read_packed(packed.descriptor(), packed.path, rows, self.max_workers, self.index_cache)
        return [offset >= 0 for offset in packed.offset]

    def _files(self, root: str) -> Sequence[bool]:
        return self.boxes.read_files(root, self.max_workers, self.index_cache)

    def _memory(self) -> Sequence[bool]:
        prototype = self.ready.spec.prototype
        if self.kind == "memory":
            stored = [content(at, prototype) for at in self.places]
        else:
            taken = [at.get_sync(prototype=prototype) for at in self.places]
            stored = [None if data is None else data.as_numpy_array() for data in taken]
        self.boxes.decode(stored, self.max_workers)
        return [data is not None for data in stored]


def few_boxes(ready: Ready, rows: list[Row], out: NDArray[Any], drop_axes: tuple[int, ...]) -> FewBoxes | None:
    """Look whether a read is one of a few plain boxes.

    Parameters
    ----------
    ready
        The chain of the first chunk.
    rows
        The rows of the batch.
    out
        The array that is read into.
    drop_axes
        Axes of the chunks that ``out`` has not.

    Returns
    -------
    FewBoxes or None
        None when it is anything else.
    """
    if ready.box_reader is None or ready.is_async or len(rows) > MAX_FEW:
        return None
    if rows[-1][1] is not rows[0][1]:
        rows = _of_one_spec(rows)
    first = rows[0][0]
    store = first.store if type(first) is StorePath else None
    # Of places in one store the reader sees to it that they are all there.
    kind = classify((first,) if store is not None else (row[0] for row in rows), reading=True)
    places = [row[0] for row in rows]
    packed = packed_shards(ready, places) if kind == "async" else None
    if kind == "async" and packed is None:
        return None
    boxes = ready.box_reader.boxes(rows, store, out, drop_axes)
    if boxes is None or boxes.nbytes > MAX_FEW_NBYTES:
        return None
    return _few(ready, places, boxes, (kind, store, packed))


def region_boxes(array: GridArray, selection: tuple[Any, ...], *, out: NDArray[Any]) -> FewBoxes | None:
    """Look whether one selection of an array is one of a few plain boxes, of any number of bytes.

    Parameters
    ----------
    array
        The array.
    selection
        For each axis an integer, a slice of which nothing is left out, or indices that ascend; none is negative.
    out
        The array that is read into.

    Returns
    -------
    FewBoxes or None
        None when it is anything else.
    """
    ready, store = array.ready, array.at.store
    kind = classify((array.at,), reading=True)
    if ready.box_reader is None or ready.is_async or (kind == "async" and not isinstance(store, ZipStore)):
        return None
    boxes = ready.box_reader.region(selection, (array.keys.prefix, array.keys.separator), MAX_FEW, out)
    if boxes is None:
        return None
    places = _Places(store, boxes)
    packed = packed_shards(ready, places) if kind == "async" else None
    return None if kind == "async" and packed is None else _few(ready, places, boxes, (kind, store, packed))


class _Places(Sequence[StorePath]):
    """Where the chunks of a region are, said when somebody asks for it."""

    def __init__(self, store: Any, boxes: Boxes) -> None:
        self._store, self._boxes = store, boxes

    @cached_property
    def _keys(self) -> Sequence[str]:
        return self._boxes.keys

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, number: Any) -> Any:
        return StorePath(self._store, self._keys[number])


def _few(ready: Ready, places: Sequence[Any], boxes: Boxes, reached: tuple[Kind, Any, Packed | None]) -> FewBoxes:
    kind, store, packed = reached
    root = root_of(store) if kind == "local" else None
    return FewBoxes(ready, places, boxes, kind, root, packed, max_workers(), shard_index_cache())


def _of_one_spec(rows: list[Row]) -> list[Row]:
    """Irregular grids make a spec for each chunk: let those that are equal be one, as the reader wants it."""
    spec = rows[0][1]
    return [(at, spec if same_spec(spec, own) else own, *rest) for at, own, *rest in rows]


async def drive_few(few: FewBoxes) -> Sequence[bool]:
    """Read, here if that is soon over.

    Parameters
    ----------
    few
        What is read.

    Returns
    -------
    sequence of bool
        One per row: whether the chunk was there.

    Raises
    ------
    CodecError
        With the key of the chunk.
    """
    if on_private_loop() and few.is_brief:
        count("read", "inline")
        return few.run()
    count("read", "sync")
    return await run_off_loop(few.run)
