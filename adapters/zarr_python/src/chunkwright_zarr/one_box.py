"""A single box, as loaders read it that take one crop at a time.

For these the plans of many boxes would take several times as long as reading does. So the rows of a batch are made
as zarr makes them, of chunks of equal length, without its event loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from zarr.core.array import AsyncArray
from zarr.core.array_spec import ArraySpec
from zarr.storage import StorePath

from chunkwright_zarr.edges import Edges
from chunkwright_zarr.selections import Row

__all__ = ("rows_of_box",)

MAX_CHUNKS = 64
"""Most chunks of a box; more are worth a plan."""


def rows_of_box(
    array: AsyncArray[Any], spec: ArraySpec, edges: Sequence[Edges], start: Sequence[int], shape: Sequence[int]
) -> list[Row] | None:
    """Make the rows of a batch that reads one box.

    Parameters
    ----------
    array
        The array.
    spec
        What zarr says of its chunks.
    edges
        Where chunks begin and end, along each axis.
    start
        The first element of the box, which lies within the array.
    shape
        Shape of the box.

    Returns
    -------
    list of Row or None
        One per chunk, none for a box of no elements; None for many chunks, and for chunks that differ in length.

    Examples
    --------
    >>> import zarr
    >>> array = zarr.create_array({}, shape=(9,), chunks=(4,), dtype="i2").async_array
    >>> rows = rows_of_box(array, None, [Edges(4)], [3], [2])
    >>> [(row[0].path, row[2], row[3]) for row in rows]
    [('c/0', (slice(3, 4, 1),), (slice(0, 1, 1),)), ('c/1', (slice(0, 1, 1),), (slice(1, 2, 1),))]
    """
    if any(along.bounds is not None for along in edges):
        return None
    axes = [_along(along.size, *ends) for along, *ends in zip(edges, start, shape, strict=True)]
    if prod(map(len, axes)) > MAX_CHUNKS:
        return None
    store, folder, encode = array.store_path.store, array.store_path.path, array.metadata.encode_chunk_key
    rows: list[Row] = []
    for pieces in product(*axes):
        cells, selection, place = zip(*pieces, strict=True) if pieces else ((), (), ())
        key = encode(cells)
        rows.append((StorePath(store, f"{folder}/{key}" if folder else key), spec, selection, place, False))
    return rows


def _along(size: int, start: int, length: int) -> list[tuple[int, slice, slice]]:
    """Each chunk along one axis, what is taken of it, and where that goes."""
    pieces = []
    for cell in range(start // size, -(-(start + length) // size) if length else 0):
        begin = cell * size
        first, last = max(start, begin), min(start + length, begin + size)
        pieces.append((cell, slice(first - begin, last - begin, 1), slice(first - start, last - start, 1)))
    return pieces
