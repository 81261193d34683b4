"""Reads of the limit, planned."""

from __future__ import annotations

import mmap
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from benches.operations import Call
from benches.places import Located, Place
from benches.rivals.geometry import Piece, out_shape, pieces
from benches.rivals.limit_codecs import Coder
from benches.rivals.stored_format import StoredFormat, key_of

__all__ = ("Fetch", "ReadPlan", "cell_spans")

type Runner = Callable[[Sequence[Callable[[], None]]], None]
type Cell = tuple[int, ...]

# Cells up to this size are decoded many at a time.
SMALL = 1 << 14
# How much one task decodes, so that its memory stays in cache and tasks are shared out evenly.
TASK = 1 << 19


@attrs.frozen
class Fetch:
    """Byte ranges of one object, fetched with one descriptor."""

    source: Path | memoryview
    ranges: tuple[tuple[int, int], ...]

    def read(self) -> list[Any]:
        """Return the bytes of each range."""
        if isinstance(self.source, memoryview):
            return [self.source[start:stop] for start, stop in self.ranges]
        file = os.open(self.source, os.O_RDONLY)
        try:
            return [os.pread(file, stop - start, start) for start, stop in self.ranges]
        finally:
            os.close(file)

    def mapped(self) -> Any:
        """Return the first range without reading what is not looked at."""
        if isinstance(self.source, memoryview):
            return self.read()[0]
        start, stop = self.ranges[0]
        file = os.open(self.source, os.O_RDONLY)
        try:
            return memoryview(mmap.mmap(file, stop, prot=mmap.PROT_READ))[start:stop]
        finally:
            os.close(file)


def cell_spans(
    place: Place, form: StoredFormat, chunk: Cell
) -> tuple[Path | memoryview, list[tuple[int, int]], tuple[int, int]]:
    """Return where a chunk is, where each of its cells lies in it, and where its index lies."""
    located = place.locate(key_of(chunk))
    start, length = (located.start, located.length) if isinstance(located, Located) else (0, len(located))
    source = located.path if isinstance(located, Located) else located
    if not form.is_sharded:
        return source, [(start, start + length)], (start, start)
    index = (start + length - form.index_nbytes, start + length)
    (tail,) = Fetch(source, (index,)).read()
    spans = [(start + first, start + first + size) for first, size in form.index(tail).tolist()]
    return source, spans, index


@attrs.frozen(eq=False)
class _Canvas:
    """The cells that a call touches, next to each other, which small cells are copied to; the result is cut from it."""

    shape: tuple[int, ...]
    taken: tuple[Any, ...]  # what is taken of every cell: an integer where the call has one
    cut: tuple[Any, ...]  # what is cut from the canvas
    origins: tuple[NDArray[np.int64], ...]  # touched cells along each axis that stays

    @classmethod
    def of(cls, call: Call, form: StoredFormat) -> _Canvas:
        shape: list[int] = []
        taken: list[int | slice] = []
        cut: list[Any] = []
        origins: list[NDArray[np.int64]] = []
        for item, extent, edge in zip(call.selection, form.shape, form.cell, strict=True):
            if isinstance(item, int):
                taken.append(item % edge)
                continue
            wanted = np.arange(extent)[item]
            touched, place = np.unique(wanted // edge, return_inverse=True)
            inside = place * edge + wanted % edge
            taken.append(slice(None))
            shape.append(len(touched) * edge)
            cut.append(inside if isinstance(item, np.ndarray) else slice(int(inside[0]), int(inside[-1]) + 1))
            origins.append(touched)
        if call.has_lists:
            cut = list(np.ix_(*(np.arange(size)[item] for size, item in zip(shape, cut, strict=True))))
        return cls(tuple(shape), (slice(None), *taken), tuple(cut), tuple(origins))

    def grid(self, canvas: NDArray[Any]) -> NDArray[Any]:
        """View the canvas with the axes of the grid of cells first, then those of a cell."""
        split = [
            part
            for size, touched in zip(self.shape, self.origins, strict=True)
            for part in (len(touched), size // len(touched))
        ]
        ndim = len(self.shape)
        return canvas.reshape(split).transpose(*range(0, 2 * ndim, 2), *range(1, 2 * ndim, 2))

    def coordinates(self, cells: Sequence[Cell]) -> tuple[NDArray[np.int64], ...]:
        """Return where cells are in the grid."""
        kept = [axis for axis, item in enumerate(self.taken[1:]) if isinstance(item, slice)]
        columns = np.array(cells)[:, kept].T
        return tuple(np.searchsorted(touched, column) for touched, column in zip(self.origins, columns, strict=True))


class ReadPlan:
    """Some calls, all of whose tasks are done at once."""

    def __init__(self, place: Place, form: StoredFormat, calls: Sequence[Call]) -> None:
        self.form, self.coder = form, Coder(form)
        self.small = form.cell_nbytes <= SMALL
        self.canvases = [_Canvas.of(call, form) for call in calls]
        self.shapes = [out_shape(call, form.shape) for call in calls]
        self.results: list[NDArray[Any]] = []
        self.tasks: list[Callable[[], None]] = []
        for number, call in enumerate(calls):
            self._plan(place, number, list(pieces(call, form.shape, form.cell)))

    def run(self, runner: Runner) -> list[NDArray[Any]]:
        """Carry the plan out."""
        shapes = [canvas.shape for canvas in self.canvases] if self.small else self.shapes
        self.results = [np.empty(shape, self.form.dtype) for shape in shapes]
        runner(self.tasks)
        results, self.results = self.results, []
        if self.small:
            results = [result[canvas.cut] for result, canvas in zip(results, self.canvases, strict=True)]
        return results

    def _plan(self, place: Place, number: int, found: list[Piece]) -> None:
        """Group the pieces of a call by object, in the order of their bytes, and cut the groups into tasks."""
        counts = self.form.cells_per_chunk
        by_chunk: dict[Cell, list[Piece]] = defaultdict(list)
        for piece in found:
            by_chunk[tuple(at // count for at, count in zip(piece.cell, counts, strict=True))].append(piece)
        batch: list[tuple[Any, tuple[int, int], Piece]] = []
        for chunk, wanted in by_chunk.items():
            source, spans, index = cell_spans(place, self.form, chunk)
            if self.form.is_sharded:
                self.tasks.append(partial(_ignored, Fetch(source, (index,))))
            spanned = [(spans[self.form.number_in_chunk(piece.cell)], piece) for piece in wanted]
            batch += [(source, span, piece) for span, piece in sorted(spanned, key=lambda item: item[0])]
        size = max(TASK // self.form.cell_nbytes, 1)
        for first in range(0, len(batch), size):
            self._plan_task(number, batch[first : first + size])

    def _plan_task(self, number: int, batch: list[tuple[Any, tuple[int, int], Piece]]) -> None:
        if not self.small:
            for source, span, piece in batch:
                self.tasks.append(partial(self._large, number, Fetch(source, (span,)), piece))
            return
        fetches: list[tuple[Any, list[tuple[int, int]]]] = []
        for source, span, _ in batch:
            if not fetches or fetches[-1][0] is not source:
                fetches.append((source, []))
            ranges = fetches[-1][1]
            if ranges and ranges[-1][1] == span[0]:
                ranges[-1] = (ranges[-1][0], span[1])
            else:
                ranges.append(span)
        lengths = np.array([stop - start for _, (start, stop), _ in batch], "<u8")
        segments = np.stack([np.cumsum(lengths, dtype="<u8") - lengths, lengths], axis=1)
        where = self.canvases[number].coordinates([piece.cell for _, _, piece in batch])
        fetch = [Fetch(source, tuple(ranges)) for source, ranges in fetches]
        if not isinstance(fetch[0].source, memoryview):
            self.tasks.append(partial(self._small, number, fetch, segments, where))
            return
        data = b"".join(part for each in fetch for part in each.read())
        self.tasks.append(partial(self._scatter, number, data, segments, where))

    def _large(self, number: int, fetch: Fetch, piece: Piece) -> None:
        encoded = fetch.mapped() if self.coder.codec is None and not piece.is_whole else fetch.read()[0]
        self.results[number][piece.out] = self.coder.decode_one(encoded)[piece.inner]

    def _small(self, number: int, fetch: list[Fetch], segments: Any, where: Any) -> None:
        parts = [part for each in fetch for part in each.read()]
        self._scatter(number, parts[0] if len(parts) == 1 else b"".join(parts), segments, where)

    def _scatter(self, number: int, data: bytes, segments: Any, where: Any) -> None:
        canvas = self.canvases[number]
        canvas.grid(self.results[number])[where] = self.coder.decode_many(data, segments)[canvas.taken]


def _ignored(fetch: Fetch) -> None:
    """Fetch what was planned with, since a reader must."""
    fetch.read()
