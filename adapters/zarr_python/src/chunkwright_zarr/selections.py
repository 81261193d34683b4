"""zarr's batches as entries, and the values of a write as one array that entries can point into.

A batch has one row per chunk: where its bytes are, its spec, what is selected of it, where that goes, and
whether the chunk is complete. Rows of one spec become one set of entries (rectilinear grids have several
specs). What the selections mean is settled in :mod:`chunkwright.selection`.

On a write NumPy's rules for assignment hold between the value and each chunk. Nearly always the value has
the shape of the whole selection and entries point straight into it; a scalar is broadcast without a
copy; anything else is first assigned to an array of the selection's shape, row by row, so that it
broadcasts, or fails, exactly as NumPy would.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray
from zarr.core.array_spec import ArraySpec

from chunkwright.entries import Entries
from chunkwright.errors import SelectionError
from chunkwright.selection import entries_of_pairs, out_extents
from chunkwright_zarr.specs import same_spec

__all__ = ("Group", "Row", "grouped", "read_entries", "write_entries")


type Row = tuple[Any, ArraySpec, Any, Any, bool]
"""Where a chunk's bytes are, its spec, its selection, the place in the caller's array, whether it is complete."""


@attrs.frozen(eq=False)
class Group:
    """The rows of a batch that have one spec.

    Parameters
    ----------
    spec
        Their spec.
    rows
        The rows, in the order of the batch.
    positions
        Where they are in the batch; None when they are the batch.
    """

    spec: ArraySpec
    rows: Sequence[Row]
    positions: Sequence[int] | None = None


def grouped(batch: Sequence[Row]) -> list[Group]:
    """Group the rows of a batch by spec.

    Parameters
    ----------
    batch
        At least one row.

    Returns
    -------
    list of Group
        In order of first appearance.
    """
    first = batch[0][1]
    if all(row[1] is first for row in batch):
        return [Group(first, batch)]
    groups: list[tuple[ArraySpec, list[int]]] = []
    by_id: dict[int, list[int]] = {}
    for position, row in enumerate(batch):
        spec = row[1]
        members = by_id.get(id(spec))
        if members is None:
            members = next((found for known, found in groups if same_spec(known, spec)), None)
            if members is None:
                members = []
                groups.append((spec, members))
            by_id[id(spec)] = members
        members.append(position)
    if len(groups) == 1:
        return [Group(first, batch)]
    return [Group(spec, [batch[position] for position in members], members) for spec, members in groups]


def read_entries(group: Group, out_shape: tuple[int, ...] | None, drop_axes: tuple[int, ...]) -> Entries:
    """Turn the selections of rows into entries.

    Parameters
    ----------
    group
        Rows of one spec.
    out_shape
        Shape of the caller's array; None when it is as large as need be.
    drop_axes
        Axes of the chunks that the array has not.

    Returns
    -------
    Entries
        Entry and chunk ``i`` are of row ``i``.

    Raises
    ------
    SelectionError
        When a selection cannot be expressed, or reaches outside.
    """
    selections, places = [row[2] for row in group.rows], [row[3] for row in group.rows]
    return entries_of_pairs(selections, places, shape=group.spec.shape, out_shape=out_shape, drop_axes=drop_axes)


def write_entries(
    groups: Sequence[Group], value: NDArray[Any], drop_axes: tuple[int, ...]
) -> tuple[list[Entries], NDArray[Any]]:
    """Turn the selections of a write into entries, and its value into an array that they fit.

    Parameters
    ----------
    groups
        Rows, by spec.
    value
        What is written.
    drop_axes
        Axes of the chunks that the value has not.

    Returns
    -------
    tuple of list of Entries and NDArray
        Entries per group, and the array into which they point.

    Raises
    ------
    SelectionError
        When a selection cannot be expressed.
    ValueError, IndexError
        When NumPy would not broadcast the value.
    """
    if value.ndim:
        try:
            return [read_entries(group, value.shape, drop_axes) for group in groups], value
        except SelectionError:
            # It may have to be broadcast.
            pass
    entries = [read_entries(group, None, drop_axes) for group in groups]
    extents = out_extents(entries[0])
    for more in entries[1:]:
        extents = tuple(map(max, extents, out_extents(more)))
    if value.ndim == 0:
        return entries, np.broadcast_to(value, extents)
    places = [row[3] for group in groups for row in group.rows]
    return entries, _assigned(value, places, extents)


def _assigned(value: NDArray[Any], places: Sequence[Any], extents: tuple[int, ...]) -> NDArray[Any]:
    source = np.empty(extents, value.dtype)
    for place in places:
        source[place] = value[place]
    return source
