"""An array written into one selection of an array of zarr's, without its indexers and event loop.

The selection is cut along the chunks in columns instead of chunk by chunk, and what comes of that is a write like any
other: planned, under the locks of its chunks, with whatever backend. What zarr would convert or broadcast first, and
what has to be awaited, is left to zarr.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from zarr.storage import StorePath

from chunkwright.grid import Split, split
from chunkwright.selection import entries_of
from chunkwright_store import write_sync
from chunkwright_store.helper import Helper
from chunkwright_store.pool import Pool
from chunkwright_store.zarr import classify
from chunkwright_zarr.counters import count
from chunkwright_zarr.driving import limits_for
from chunkwright_zarr.grid_array import GridArray
from chunkwright_zarr.regions import MAX_EXTENT, PlainSelection
from chunkwright_zarr.selections import Group
from chunkwright_zarr.specs import copyable
from chunkwright_zarr.writes import write_job

__all__ = ("write_region",)

# Apart from the threads for hops, which may have to wait for the same locks.
WRITERS = Pool(max_threads=16)


def write_region(array: GridArray, plain: PlainSelection, *, value: NDArray[Any]) -> bool:
    """Write an array into a selection, if that can be done here.

    Parameters
    ----------
    array
        The array that is written to.
    plain
        Integers and slices.
    value
        An array of the selection's shape.

    Returns
    -------
    bool
        Whether it was written; False: nothing was done.

    Raises
    ------
    CodecError
        With the key of the chunk. Every chunk is as it was or as it should be.
    ValueError
        When the store is read-only.
    """
    ready, at, extents = array.ready, array.at, array.extents
    sizes = ready.spec.shape
    grid = tuple(-(-extent // size) for extent, size in zip(extents, sizes, strict=True))
    kind = classify((at,))
    # Numbers of chunks are a column of int64.
    if kind == "async" or ready.is_async or ready.prepared is None or prod(grid) > MAX_EXTENT:
        return False
    parts = split(entries_of(plain.axes, extents)[0], sizes, grid)
    cells = np.stack(np.unravel_index(parts.cell, grid), axis=1)
    places = [StorePath(at.store, array.keys.key(cell)) for cell in cells.tolist()]
    complete = _complete(parts, cells, extents, sizes).tolist()
    rows = [(place, ready.spec, None, None, whole) for place, whole in zip(places, complete, strict=True)]
    limits = limits_for(ready.spec)
    count("write", "sync")
    job = write_job(Group(ready.spec, rows), ready, parts.entries, kind, limits)
    _uninterrupted(partial(write_sync, [job], copyable(value), limits))
    return True


def _uninterrupted(write: Callable[[], None]) -> None:
    """Do what Ctrl-C must not stop halfway: another thread does it for the main one, the only one to be interrupted.

    As with zarr, who is interrupted waits no longer, and the write goes on.
    """
    if threading.current_thread() is not threading.main_thread():
        write()
        return
    Helper(WRITERS).start(write)()


def _complete(
    parts: Split, cells: NDArray[np.int64], extents: Sequence[int], sizes: Sequence[int]
) -> NDArray[np.bool_]:
    """Of which chunks all that lies within the array is written."""
    entries = parts.entries
    there = np.minimum(sizes, np.array(extents, np.int64) - cells * np.array(sizes, np.int64))
    is_all = (entries.start == 0) & (entries.count == there) & ((entries.step == 1) | (there == 1))
    complete: NDArray[np.bool_] = is_all.all(axis=1)
    return complete
