"""An array written into one selection of an array of zarr's, on the calling thread.

The selection is cut along the chunks in columns instead of chunk by chunk, and what comes of that is a write like any
other: planned, under the locks of its chunks, with whatever backend. What zarr would convert or broadcast first, and
what has to be awaited, is left to zarr.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray
from zarr.storage import StorePath

from chunkwright.grid import Split, split
from chunkwright.selection import entries_of
from chunkwright_store import write_sync
from chunkwright_store.zarr import classify
from chunkwright_zarr.counters import count
from chunkwright_zarr.driving import limits_for
from chunkwright_zarr.ready import Ready
from chunkwright_zarr.regions import Plain
from chunkwright_zarr.selections import Group
from chunkwright_zarr.specs import copyable
from chunkwright_zarr.writes import write_job

__all__ = ("write_region",)

MAX_CELLS = 1 << 62
"""Grids of more chunks have no number for each."""


def write_region(
    ready: Ready,
    at: StorePath,
    extents: Sequence[int],
    plain: Plain,
    names: tuple[str, str],
    value: NDArray[np.generic],
) -> bool:
    """Write an array into a selection, if that can be done here.

    Parameters
    ----------
    ready
        The chain of the chunks, which lie on a regular grid.
    at
        Where the array is.
    extents
        Shape of the array.
    plain
        Integers and slices.
    names
        What keys begin with, and what stands between the numbers in them.
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
    spec = ready.spec
    grid = tuple(-(-extent // size) for extent, size in zip(extents, spec.shape, strict=True))
    kind = classify((at,))
    if kind == "async" or ready.is_async or ready.prepared is None or prod(grid) > MAX_CELLS:
        return False
    parts = split(entries_of(plain.axes, tuple(extents))[0], spec.shape, grid)
    cells = np.stack(np.unravel_index(parts.cell, grid), axis=1)
    head, separator = names
    keys = (head + separator.join(map(str, cell)) for cell in cells.tolist())
    complete = _complete(parts, cells, extents, spec.shape).tolist()
    rows = [(StorePath(at.store, key), spec, None, None, whole) for key, whole in zip(keys, complete, strict=True)]
    limits = limits_for(spec)
    count("write", "sync")
    write_sync([write_job(Group(spec, rows), ready, parts.entries, kind, limits)], copyable(value), limits)
    return True


def _complete(
    parts: Split, cells: NDArray[np.int64], extents: Sequence[int], sizes: Sequence[int]
) -> NDArray[np.bool_]:
    """Of which chunks all that lies within the array is written."""
    entries = parts.entries
    there = np.minimum(sizes, np.array(extents, np.int64) - cells * np.array(sizes, np.int64))
    is_all = (entries.start == 0) & (entries.count == there) & ((entries.step == 1) | (there == 1))
    complete: NDArray[np.bool_] = is_all.all(axis=1)
    return complete
