"""Cut entries along a regular grid of inner chunks, all entries at once.

A selection is a product of its axes, so each axis is cut by itself into *segments* (the part of an entry
that lies in one grid cell along that axis), and the segments of the axes are then multiplied out with
index arithmetic. Axes that advance together (points) form one group and are cut into one segment per
touched cell. Nothing here loops over entries or inner chunks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright._few import cut_few
from chunkwright.entries import Entries, IndexList, offsets_of, ragged_positions

__all__ = ("Split", "split", "split_columns")


@attrs.frozen(eq=False)
class Split:
    """Entries after they were cut along a grid.

    Parameters
    ----------
    chunk
        int64, shape ``(m,)``: for each touched inner chunk the chunk that holds it, ascending.
    cell
        int64, shape ``(m,)``: its flat position in that chunk's grid, C order, ascending within a chunk.
    entries
        The cut selections; their ``chunk`` counts the rows above and is ascending.

    Examples
    --------
    >>> entries = Entries.boxes(chunk=np.array([0]), start=np.array([[1]]), count=np.array([[5]]),
    ...                         out_start=np.array([[0]]))
    >>> parts = split(entries, (4,), (3,))
    >>> parts.chunk.tolist(), parts.cell.tolist()
    ([0, 0], [0, 1])
    """

    chunk: NDArray[np.int64]
    cell: NDArray[np.int64]
    entries: Entries


class _Listed(NamedTuple):
    """Values within their cells, one column per axis of the group, and their positions in their entry."""

    values: NDArray[np.int64]
    positions: NDArray[np.int64]


class _Segments(NamedTuple):
    """Segments of one group of axes, ordered by entry.

    ``cells`` has one column per axis of the group. A box segment takes the ``within`` positions of its entry
    from ``first`` on and begins at ``local`` in its cell; a list segment takes as many rows of ``listed``.
    """

    per_entry: NDArray[np.int64]
    cells: NDArray[np.int64]
    first: NDArray[np.int64]
    within: NDArray[np.int64]
    local: NDArray[np.int64]
    listed: _Listed | None = None


def split(entries: Entries, inner: tuple[int, ...], grid: tuple[int, ...]) -> Split:
    """Cut entries along a grid of inner chunks.

    Parameters
    ----------
    entries
        Selections of chunks, each of shape ``grid * inner``.
    inner
        Shape of an inner chunk.
    grid
        Inner chunks along each axis.

    Returns
    -------
    Split
        The touched inner chunks and the selections of each.

    Examples
    --------
    >>> entries = Entries.boxes(chunk=np.array([0]), start=np.array([[1]]), count=np.array([[5]]),
    ...                         out_start=np.array([[0]]))
    >>> parts = split(entries, (4,), (3,))
    >>> parts.cell.tolist(), parts.entries.start.ravel().tolist(), parts.entries.out_start.ravel().tolist()
    ([0, 1], [1, 0], [0, 3])
    """
    few = cut_few(entries, inner, grid)
    return split_columns(entries, inner, grid) if few is None else Split(*few)


def split_columns(entries: Entries, inner: tuple[int, ...], grid: tuple[int, ...]) -> Split:
    """Cut entries of any form and number; see :func:`split`.

    Parameters
    ----------
    entries, inner, grid
        As for :func:`split`.

    Returns
    -------
    Split
        The touched inner chunks and the selections of each.
    """
    groups = _groups(entries)
    segments = [
        _cut_lists(entries, axes, inner) if _has_list(entries, axes) else _cut_box(entries, axes[0], inner[axes[0]])
        for axes in groups
    ]
    rows, picks = _multiply([part.per_entry for part in segments], len(entries))
    cell = _flat_cells(groups, segments, picks, grid, len(rows))
    parts = _assemble(entries, groups, segments, rows, picks)
    return _group_by_cell(parts, entries.chunk[rows], cell, math.prod(grid))


def _groups(entries: Entries) -> list[tuple[int, ...]]:
    """Axes that are cut together: the point axes as one group, every other axis alone."""
    together = tuple(axis for axis, runs in enumerate(entries.lists) if runs is not None) if entries.points else ()
    alone: list[tuple[int, ...]] = [(axis,) for axis in range(entries.ndim) if axis not in together]
    return [together, *alone] if together else alone


def _has_list(entries: Entries, axes: tuple[int, ...]) -> bool:
    return entries.lists[axes[0]] is not None


def _cut_box(entries: Entries, axis: int, size: int) -> _Segments:
    start, count, step = entries.start[:, axis], entries.count[:, axis], entries.step[:, axis]
    first_cell = start // size
    last_cell = (start + (count - 1) * step) // size
    cells_per_entry = np.where(count > 0, last_cell - first_cell + 1, 0)
    cell = ragged_positions(first_cell, cells_per_entry)
    entry = np.repeat(np.arange(len(entries), dtype=np.int64), cells_per_entry)
    start, step = start[entry], step[entry]
    first = np.maximum(-((start - cell * size) // step), 0)
    last = np.minimum(((cell + 1) * size - 1 - start) // step, count[entry] - 1)
    within = last - first + 1
    # A step longer than a cell jumps over cells: they have no element.
    keep = within > 0
    if not keep.all():
        entry, cell, first, within, start, step = (column[keep] for column in (entry, cell, first, within, start, step))
    per_entry = np.bincount(entry, minlength=len(entries)).astype(np.int64)
    return _Segments(per_entry, cell[:, None], first, within, start + first * step - cell * size)


def _cut_lists(entries: Entries, axes: tuple[int, ...], inner: tuple[int, ...]) -> _Segments:
    runs = [entries.lists[axis] for axis in axes]
    columns = np.stack([run.values for run in runs if run is not None], axis=1)
    lead = runs[0]
    assert lead is not None
    sizes = np.array([inner[axis] for axis in axes], np.int64)
    cells = columns // sizes
    entry = np.repeat(np.arange(len(entries), dtype=np.int64), lead.counts)
    position = np.arange(len(columns), dtype=np.int64) - np.repeat(lead.offsets[:-1], lead.counts)
    keys = np.concatenate([entry[:, None], cells], axis=1)
    changes = (keys[1:] != keys[:-1]).any(axis=1)
    if len(keys) and not _ascending(keys):
        # Stable, so that of two writes to one element the later one wins, as in NumPy.
        order = np.lexsort(keys.T[::-1])
        columns, cells, entry, position, keys = (column[order] for column in (columns, cells, entry, position, keys))
        changes = (keys[1:] != keys[:-1]).any(axis=1)
    heads = np.concatenate([np.zeros(min(len(keys), 1), np.int64), np.flatnonzero(changes) + 1])
    count = np.diff(np.append(heads, len(keys)))
    per_entry = np.bincount(entry[heads], minlength=len(entries)).astype(np.int64)
    local = columns - cells * sizes
    return _Segments(per_entry, cells[heads], heads, count, heads, _Listed(local, position))


def _ascending(keys: NDArray[np.int64]) -> bool:
    """Whether rows are in lexicographic order."""
    differs = keys[1:] != keys[:-1]
    lead = differs.argmax(axis=1)
    rows = np.arange(len(lead))
    return bool((~differs.any(axis=1) | (keys[1:][rows, lead] > keys[:-1][rows, lead])).all())


def _multiply(per_entry: list[NDArray[np.int64]], entries: int) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """Enumerate, entry by entry and in C order, every combination of one segment per group."""
    total = np.ones(entries, np.int64)
    for counts in per_entry:
        total *= counts
    rows = np.repeat(np.arange(entries, dtype=np.int64), total)
    rest = ragged_positions(np.zeros(entries, np.int64), total)
    picks: list[NDArray[np.int64]] = []
    for counts in reversed(per_entry):
        per_row = counts[rows]
        picks.append(offsets_of(counts)[rows] + rest % per_row)
        rest = rest // per_row
    return rows, picks[::-1]


def _flat_cells(
    groups: list[tuple[int, ...]],
    segments: list[_Segments],
    picks: list[NDArray[np.int64]],
    grid: tuple[int, ...],
    rows: int,
) -> NDArray[np.int64]:
    flat = np.zeros(rows, np.int64)
    strides = [math.prod(grid[axis + 1 :]) for axis in range(len(grid))]
    for axes, part, pick in zip(groups, segments, picks, strict=True):
        for column, axis in enumerate(axes):
            flat += part.cells[pick, column] * strides[axis]
    return flat


@attrs.define(eq=False)
class _Parts:
    """The columns of the cut entries while they are put together, group by group of axes."""

    entries: Entries
    rows: NDArray[np.int64]
    start: NDArray[np.int64]
    count: NDArray[np.int64]
    out_start: NDArray[np.int64]
    lists: list[IndexList | None]
    out_lists: list[IndexList | None]

    def place_box(self, axis: int, part: _Segments, pick: NDArray[np.int64]) -> None:
        self.start[:, axis], self.count[:, axis] = part.local[pick], part.within[pick]
        out = self.entries.axes[axis]
        if out < 0:
            return
        if self.entries.out_lists[out] is None:
            self.out_start[:, out] += part.first[pick] * self.entries.out_step[self.rows, out]
        else:
            self._place_out(out, part.within[pick], ragged_positions(part.first[pick], part.within[pick]))

    def place_lists(self, axes: tuple[int, ...], part: _Segments, listed: _Listed, pick: NDArray[np.int64]) -> None:
        counts = part.within[pick]
        ragged = ragged_positions(part.first[pick], counts)
        offsets = offsets_of(counts)
        for column, axis in enumerate(axes):
            self.lists[axis] = IndexList(listed.values[ragged, column], offsets)
            self.count[:, axis] = counts
        if self.entries.axes[axes[0]] >= 0:
            self._place_out(self.entries.axes[axes[0]], counts, listed.positions[ragged])

    def _place_out(self, out: int, counts: NDArray[np.int64], where: NDArray[np.int64]) -> None:
        """Name the places along an out axis of the elements at positions ``where`` of each row's selection."""
        entries, per_value = self.entries, np.repeat(self.rows, counts)
        runs = entries.out_lists[out]
        if runs is None:
            values = entries.out_start[per_value, out] + where * entries.out_step[per_value, out]
        else:
            values = runs.values[runs.offsets[per_value] + where]
        self.out_lists[out] = IndexList(values, offsets_of(counts))


def _assemble(
    entries: Entries,
    groups: list[tuple[int, ...]],
    segments: list[_Segments],
    rows: NDArray[np.int64],
    picks: list[NDArray[np.int64]],
) -> Entries:
    parts = _Parts(
        entries,
        rows,
        entries.start[rows],
        entries.count[rows],
        entries.out_start[rows],
        [None] * entries.ndim,
        [runs and runs.take(rows) for runs in entries.out_lists],
    )
    for axes, part, pick in zip(groups, segments, picks, strict=True):
        if part.listed is None:
            parts.place_box(axes[0], part, pick)
        else:
            parts.place_lists(axes, part, part.listed, pick)
    return attrs.evolve(
        entries,
        chunk=entries.chunk[rows],
        start=parts.start,
        count=parts.count,
        step=entries.step[rows],
        out_start=parts.out_start,
        out_step=entries.out_step[rows],
        lists=tuple(parts.lists),
        out_lists=tuple(parts.out_lists),
    )


def _group_by_cell(parts: Entries, chunk: NDArray[np.int64], cell: NDArray[np.int64], cells: int) -> Split:
    key = chunk * cells + cell
    if len(key) and (key[1:] < key[:-1]).any():
        order = np.argsort(key, kind="stable")
        key, chunk, cell, parts = key[order], chunk[order], cell[order], parts.take(order)
    heads = np.ones(len(key), bool)
    heads[1:] = key[1:] != key[:-1]
    number = np.cumsum(heads) - 1
    return Split(chunk[heads], cell[heads], parts.with_chunk(number))
