"""Read many crops of one shape from an array in one call, as training on random crops wants them.

Reading crops one by one reads and decodes what they share once for each of them, and pays for a call each. Here
they are one read, in which each (inner) chunk is fetched and decoded once:

1. The crops are cut at the edges of the array's chunks (:mod:`chunkwright_zarr.crops`); the pieces become plans,
   one per shape of chunks, and the store bridge drives those. Bytes in flight are bounded by its limits.
2. Where crops overlap a lot, what they touch is read into a stage first, and copied from there
   (:mod:`chunkwright_zarr.stage`). The array is then read region by region, so that no stage is large.

How plans are driven depends on the store, as in the pipeline; synchronous ones on the calling thread, without an
event loop. The array may have been opened with any pipeline: ours is made of its metadata. What ours cannot do,
zarr does crop by crop; that is counted, and an error in strict mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import index
from typing import Any

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray
from zarr.core.common import concurrent_map
from zarr.core.sync import sync
from zarr.errors import ChunkNotFoundError
from zarr.storage import StorePath

from chunkwright.errors import SelectionError
from chunkwright_store import Limits, ReadJob, Stop, read_async, read_sync, run_off_loop
from chunkwright_store.roots import local_root
from chunkwright_store.zarr import Kind, classify, sources_of
from chunkwright_zarr.arrays import AnyArray, async_array_of
from chunkwright_zarr.counters import Path, count
from chunkwright_zarr.crops import Boxes, ChunkPieces, Region, cut, regions, touched
from chunkwright_zarr.driving import Keys, limits_for, prepared_chain, read_files, whole_fraction, whole_nbytes
from chunkwright_zarr.edges import Edges
from chunkwright_zarr.few import MAX_FEW_NBYTES, FewBoxes, region_boxes
from chunkwright_zarr.grid_array import GridArray
from chunkwright_zarr.inline import granule
from chunkwright_zarr.known import chunks_of, pipeline_of
from chunkwright_zarr.ready import Ready
from chunkwright_zarr.specs import copyable
from chunkwright_zarr.stage import copy_boxes

__all__ = ("read_boxes", "read_boxes_async")

STAGE_NBYTES = 16 << 20, 256 << 20
"""A stage has a tenth of the result's bytes, but may have as many as the first number, and no more than the other."""


def read_boxes(
    array: AnyArray, starts: ArrayLike, shape: Sequence[int], out: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Read boxes of one shape, for instance random crops for training.

    The result is that of ``numpy.stack`` of one zarr read per box, but what the boxes share is fetched and
    decoded once. Boxes may overlap and repeat, in any order.

    Parameters
    ----------
    array
        A zarr array, opened with any codec pipeline.
    starts
        Integers of shape ``(n, array.ndim)``: the first element of each box. None are negative.
    shape
        Shape of every box, one length per axis of the array.
    out
        Array of shape ``(n, *shape)`` to read into, of any strides, and of any dtype that NumPy can assign the
        array's dtype to; a new C-contiguous one by default.

    Returns
    -------
    NDArray
        ``out``, or the new array.

    Raises
    ------
    SelectionError
        When a box does not lie within the array; its ``position`` is the row of ``starts``. It is an IndexError.
    CorruptChunkError
        When stored bytes do not decode; it names the chunk's key.
    ChunkNotFoundError
        When a chunk is missing and the array's configuration has ``read_missing_chunks=False``.
    TypeError
        When what is given is no zarr array.

    Examples
    --------
    >>> import numpy as np, zarr
    >>> array = zarr.create_array({}, shape=(4, 6), chunks=(2, 2), dtype="i2")
    >>> array[:] = np.arange(24).reshape(4, 6)
    >>> read_boxes(array, [[0, 1], [2, 4]], (2, 2)).tolist()
    [[[1, 2], [7, 8]], [[16, 17], [22, 23]]]
    """
    call = _Call(array, starts, shape, out)
    try:
        one = call.only_box()
        if one is not None:
            call.read_only_box(one)
        else:
            call.read_here()
    except _UnfitError as unfit:
        sync(call.read_by_zarr(str(unfit)))
    call.check()
    return call.out


async def read_boxes_async(
    array: AnyArray, starts: ArrayLike, shape: Sequence[int], out: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Read boxes of one shape on an event loop; see :func:`read_boxes`.

    Parameters
    ----------
    array
        A zarr array, asynchronous or not.
    starts
        Integers of shape ``(n, array.ndim)``: the first element of each box.
    shape
        Shape of every box.
    out
        Array of shape ``(n, *shape)`` to read into.

    Returns
    -------
    NDArray
        ``out``, or a new array.

    Raises
    ------
    SelectionError
        When a box does not lie within the array.
    CorruptChunkError
        When stored bytes do not decode.
    ChunkNotFoundError
        When a chunk is missing and the array's configuration has ``read_missing_chunks=False``.
    TypeError
        When what is given is no zarr array.

    Examples
    --------
    >>> import asyncio, zarr
    >>> array = zarr.create_array({}, shape=(9,), chunks=(4,), dtype="i2", fill_value=7)
    >>> asyncio.run(read_boxes_async(array, [[3], [0]], (2,))).tolist()
    [[7, 7], [7, 7]]
    """
    call = _Call(array, starts, shape, out)
    try:
        one = call.only_box()
        if one is not None:
            await run_off_loop(partial(call.read_only_box, one))
        else:
            await call.read()
    except _UnfitError as unfit:
        await call.read_by_zarr(str(unfit))
    call.check()
    return call.out


class _UnfitError(Exception):
    """Our pipeline cannot do it; the message is the reason."""


@attrs.frozen(eq=False)
class _Part:
    """The chunks of a region, by shape, and how they are read."""

    region: Region
    kind: Kind
    is_async: bool
    reads: Sequence[_Planned | _Native]


@attrs.frozen(eq=False)
class _Planned:
    """Chunks of one shape that are read by a plan."""

    pieces: ChunkPieces
    job: ReadJob

    @property
    def gone(self) -> NDArray[np.int64]:
        """The chunks that were missing, once they are read."""
        present: NDArray[np.bool_] = self.job.plan.statuses  # type: ignore[attr-defined]  # a plan of ours
        return np.unique(self.pieces.entries.chunk[~present])


@attrs.define(eq=False)
class _Native:
    """Chunks of one shape in local files, which the backend reads by itself."""

    ready: Ready
    pieces: ChunkPieces
    root: str
    keys: Sequence[str]
    gone: NDArray[np.int64] = attrs.field(factory=lambda: np.empty(0, np.int64), init=False)

    def run(self, out: NDArray[Any], limits: Limits, stop: Stop | None = None) -> None:
        """Read them."""
        present = read_files(self.ready, self.root, self.keys, self.pieces.entries, out, limits, stop)
        self.gone = np.flatnonzero(~present)


class _Call:
    """One call: what is read of which array, and into what."""

    def __init__(self, array: AnyArray, starts: ArrayLike, shape: Sequence[int], out: NDArray[Any] | None) -> None:
        self._array = async_array_of(array)
        metadata = self._array.metadata
        self._shape = _box_shape(shape, metadata.shape)
        self._starts = _box_starts(starts, self._shape, metadata.shape)
        self._dtype = metadata.dtype.to_native_dtype()
        self.out = _target(out, (len(self._starts), *self._shape), self._dtype)
        chunks = chunks_of(self._array)
        self._edges, self._spec, self._keys = chunks.edges, chunks.spec, chunks.keys
        self._pipeline = pipeline_of(self._array, self._spec)
        self._missing: list[str] = []
        self._paths: set[Path] = set()
        self._limits: Limits = limits_for(self._spec)

    def only_box(self) -> FewBoxes | None:
        """The box, when there is one, of a few chunks that the backend reads without a plan."""
        if len(self._starts) != 1:
            return None
        ready = self._ready(self._spec.shape)
        if self._keys is None or 0 in self._shape:
            return None
        ends = zip(self._starts[0].tolist(), self._shape, strict=True)
        box = tuple(slice(start, start + length, 1) for start, length in ends)
        array = GridArray(ready, self._array.store_path, self._keys, self._array.metadata.shape)
        few = region_boxes(array, box, out=copyable(self.out[0, ...]))
        return few if few is not None and few.boxes.nbytes <= MAX_FEW_NBYTES else None

    def read_only_box(self, box: FewBoxes) -> None:
        """Read it."""
        self._count("sync")
        present = box.run()
        if not self._spec.config.read_missing_chunks:
            within = len(self._array.store_path.path) + 1 if self._array.store_path.path else 0
            self._missing += [at.path[within:] for at, here in zip(box.places, present, strict=True) if not here]

    def read_here(self) -> None:
        """Read all boxes on this thread, or on zarr's event loop."""
        for part in self._parts():
            if part.kind == "async":
                sync(self._read_part(part))
            else:
                self._read_part_here(part)

    async def read(self) -> None:
        """Read all boxes from an event loop."""
        parts = self._parts()
        while (part := await run_off_loop(partial(next, parts, None))) is not None:
            await self._read_part(part)

    def _parts(self) -> Iterator[_Part]:
        """Plan the call, region by region; mostly there is one."""
        boxes = Boxes.of(self._starts, self._shape)
        if not len(boxes):
            return
        chain = prepared_chain(self._ready(self._spec.shape))
        leaves = tuple(map(Edges, granule(chain))) if chain.is_partial else self._edges
        least, most = STAGE_NBYTES
        max_stage = min(max(least, self.out.nbytes // 10), most) // max(self.out.itemsize, 1)
        for region in regions(boxes, self._edges, leaves, max_stage):
            yield self._part(region, leaves)

    def _ready(self, shape: tuple[int, ...]) -> Ready:
        spec = self._spec if shape == self._spec.shape else replace(self._spec, shape=shape)
        ready = self._pipeline.ready_for(spec)
        if ready.prepared is None:
            raise _UnfitError(ready.reason)
        return ready

    def _part(self, region: Region, leaves: Sequence[Edges]) -> _Part:
        pieces = cut(touched(region.boxes, leaves) if region.is_staged else region.boxes, self._edges)
        readies = [self._ready(some.shape) for some in pieces]
        is_async = any(ready.is_async for ready in readies)
        kind: Kind = "async" if is_async else classify([self._array.store_path], reading=True)
        self._count("async" if kind == "async" else "sync")
        read = self._native if kind == "local" and all(ready.file_io for ready in readies) else self._planned
        reads = [read(some, ready, kind) for some, ready in zip(pieces, readies, strict=True)]
        return _Part(region, kind, is_async, reads)

    def _count(self, path: Path, reason: str = "") -> None:
        """Count a path once, however many regions take it."""
        if path not in self._paths:
            self._paths.add(path)
            count("read", path, reason)

    def _getters(self, pieces: ChunkPieces) -> list[StorePath]:
        root, encode = self._array.store_path, self._array.metadata.encode_chunk_key
        return [root / encode(tuple(cell)) for cell in pieces.cells.tolist()]

    def _planned(self, pieces: ChunkPieces, ready: Ready, kind: Kind) -> _Planned:
        chain, getters = prepared_chain(ready), self._getters(pieces)
        job = ReadJob(
            plan=chain.plan_read(pieces.entries, whole_fraction=whole_fraction(chain, kind)),
            sources=sources_of(getters, kind, self._spec.prototype, self._limits),
            keys=Keys(getters),
            whole_nbytes=whole_nbytes(chain),
        )
        return _Planned(pieces, job)

    def _native(self, pieces: ChunkPieces, ready: Ready, _kind: Kind) -> _Native:
        getters = self._getters(pieces)
        root = local_root(getters)
        assert root is not None
        return _Native(ready, pieces, root, [getter.path for getter in getters])

    def _read_part_here(self, part: _Part, stop: Stop | None = None) -> None:
        """Read a part of synchronous sources on this thread."""
        target = self._target_of(part)
        for read in part.reads:
            if isinstance(read, _Native):
                read.run(target, self._limits, stop)
            else:
                read_sync([read.job], target, self._limits, stop=stop)
        self._finish(part, target)

    async def _read_part(self, part: _Part) -> None:
        """Read a part from an event loop."""
        if part.kind != "async":
            stop = Stop()
            await run_off_loop(partial(self._read_part_here, part, stop), on_cancel=stop.set)
            return
        target = self._target_of(part)
        jobs = [read.job for read in part.reads if isinstance(read, _Planned)]
        await read_async(jobs, target, self._limits, is_async=part.is_async)
        await run_off_loop(partial(self._finish, part, target))

    def _target_of(self, part: _Part) -> NDArray[Any]:
        """What a part is read into: the caller's array, or a stage of its own."""
        if not part.region.is_staged:
            return self.out
        return np.empty((1, *part.region.boxes.bounds[1].tolist()), self._dtype)

    def _finish(self, part: _Part, target: NDArray[Any]) -> None:
        """Copy from the stage, if there is one, and remember which chunks were missing, if that matters."""
        if part.region.is_staged:
            copy_boxes(part.region.boxes, target[0, ...], self.out, self._limits.max_workers)
        if self._spec.config.read_missing_chunks:
            return
        encode = self._array.metadata.encode_chunk_key
        for read in part.reads:
            self._missing += [encode(tuple(cell)) for cell in read.pieces.cells[read.gone].tolist()]

    async def read_by_zarr(self, reason: str) -> None:
        """Read crop by crop with the array's own methods."""
        self._pipeline.refuse_if_strict(reason)
        self._count("default", reason)

        async def read(number: int, start: Sequence[int]) -> None:
            box = tuple(slice(first, first + length) for first, length in zip(start, self._shape, strict=True))
            self.out[number] = await self._array.getitem(box, prototype=self._spec.prototype)

        await concurrent_map(enumerate(self._starts.tolist()), read, self._limits.concurrency)

    def check(self) -> None:
        """Raise when chunks are missing that must not be."""
        if self._missing:
            keys = self._missing
            named = ", ".join(map(repr, keys[:8])) + (" and others" if len(keys) > 8 else "")
            raise ChunkNotFoundError(f"{len(keys)} missing chunks in {self._array.store_path}: {named}")


def _box_shape(shape: Sequence[int], extents: tuple[int, ...]) -> tuple[int, ...]:
    lengths = tuple(map(index, shape))
    if len(lengths) != len(extents):
        raise SelectionError("a shape has another number of axes", expected=len(extents), found=len(lengths))
    if any(length < 0 for length in lengths):
        raise SelectionError("a length is negative", expected="lengths from 0 on", found=lengths)
    return lengths


def _box_starts(starts: ArrayLike, shape: tuple[int, ...], extents: tuple[int, ...]) -> NDArray[np.int64]:
    given = np.asarray(starts)
    if given.shape == (0,):
        given = given.reshape(0, len(shape))
    if given.ndim != 2 or given.shape[1] != len(shape):
        raise SelectionError("starts have another shape", expected=f"(n, {len(shape)})", found=given.shape)
    if given.size and given.dtype.kind not in "iu":
        raise SelectionError("starts have another dtype", expected="integers", found=given.dtype)
    greatest = np.array(extents, np.int64) - np.array(shape, np.int64)
    numbers = given.astype(np.int64)
    if given.dtype == np.uint64:
        # What does not fit is beyond every array.
        numbers[given > np.iinfo(np.int64).max] = np.iinfo(np.int64).max
    outside = ((numbers < 0) | (numbers > greatest)).any(axis=1)
    if outside.any():
        row = int(outside.argmax())
        raise SelectionError(
            f"box {row} does not lie within the array",
            position=row,
            expected=f"{shape} elements of {extents}",
            found=f"start {tuple(given[row].tolist())}",
        )
    return numbers


def _target(out: NDArray[Any] | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    if out is None:
        return np.empty(shape, dtype)
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be a NumPy array, not {type(out).__name__}")
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, the boxes have {shape}")
    if not out.flags.writeable:
        raise ValueError("out is read-only")
    return out
