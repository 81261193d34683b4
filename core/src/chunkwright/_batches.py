"""Batches of entries on their way through a program: decode and scatter, gather and encode.

Bytes that are still in storage are read a little at a time by the threads that decode them.

Reading, each chunk is decoded once and all of its entries are scattered from the one array; a chunk whose place in
the caller's array is contiguous memory of the stored layout is decoded straight into it. Writing, a chunk that one
entry covers is encoded from a view of the caller's array; others are gathered. Errors get the row of their chunk as
position. A batch belongs to one call; its ranges of chunks may be worked on by several threads.
"""

from __future__ import annotations

from collections.abc import Buffer, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.entries import Entries
from chunkwright.errors import CodecError
from chunkwright.program import Program
from chunkwright.scatter import Copier

__all__ = ("Reader", "Rewriter", "Writer")

# Bytes that are read from storage at a time: so few that they are in the processor's caches when they are decoded.
_LOADED = 256 << 10

# Chunks whose entries are turned into indexes at a time: bounds what a huge batch needs beside its result.
_BLOCK = 1024


class _Batch:
    """Entries of a batch, cut into blocks of chunks, each with its own index tuples."""

    def __init__(self, entries: Entries, chunks: int) -> None:
        self._entries = entries
        self._heads = np.searchsorted(entries.chunk, np.arange(chunks + 1))
        self._bounds: list[int] = self._heads.tolist()
        self._copier = Copier(entries) if len(entries) <= _BLOCK else None

    def work(self, first: int, last: int) -> None:
        """Do chunks ``first`` to ``last``; called from any thread."""
        number = first
        try:
            for begin in range(first, last, _BLOCK):
                end = min(begin + _BLOCK, last)
                copier, shift = self._block(self._bounds[begin], self._bounds[end])
                for number in range(begin, end):
                    rows = range(self._bounds[number] - shift, self._bounds[number + 1] - shift)
                    self._chunk(number, rows, copier)
        except CodecError as error:
            error.at(number)
            raise

    def _chunk(self, number: int, rows: range, copier: Copier) -> None:
        raise NotImplementedError

    def _block(self, first: int, last: int) -> tuple[Copier, int]:
        """A copier for some entries, and the number of its first one."""
        if self._copier is not None:
            return self._copier, 0
        return Copier(self._entries.take(np.arange(first, last))), first

    def _single_boxes(self, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Chunks that have one entry, which is a box that covers them."""
        single: NDArray[np.bool_] = np.diff(self._heads) == 1
        if not self._entries.is_boxes:
            return np.zeros(len(single), bool)
        single[single] = self._entries.covers(shape)[self._heads[:-1][single]]
        return single


class Reader(_Batch):
    def __init__(self, program: Program, buffers: Buffers, entries: Entries, out: NDArray[Any]) -> None:
        super().__init__(entries, len(buffers))
        self._program = program
        self._buffers = buffers
        self._views: list[memoryview | None] = [None] * len(buffers) if buffers.is_stored else list(buffers.views())
        self._out = out
        self._straight = self._decoded_straight()

    def work(self, first: int, last: int) -> None:
        if not self._buffers.is_stored:
            super().work(first, last)
            return
        for begin, end in self._loads(first, last):
            self._views[begin:end] = self._buffers.load(begin, end)
            super().work(begin, end)
            # Memory for the next ones.
            self._views[begin:end] = [None] * (end - begin)

    def _loads(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Ranges of chunks that are read at once."""
        begin, loaded = first, 0
        for number, length in enumerate(self._buffers.length[first:last].tolist(), first):
            if loaded >= _LOADED:
                yield begin, number
                begin, loaded = number, 0
            # Whole objects whose size nobody knows have a negative one.
            loaded += length if length >= 0 else _LOADED
        yield begin, last

    def _chunk(self, number: int, rows: range, copier: Copier) -> None:
        view, out, program = self._views[number], self._out, self._program
        if view is None:
            for row in rows:
                copier.fill(row, program.fill, out)
        elif self._straight is not None and self._straight[number]:
            target = program.target(copier.selected(rows[0], out).reshape(program.spec.shape))
            assert target is not None
            program.decode_to(view, target)
        elif rows:
            array = program.decode(view)
            for row in rows:
                copier.scatter(row, array, out)

    def _decoded_straight(self) -> list[bool] | None:
        """Which chunks are decoded straight into ``out``: boxes of one shape have one layout, so one is looked at."""
        if not self._program.decodes_to(self._out.dtype):
            return None
        shape = self._program.spec.shape
        single = self._single_boxes(shape)
        rows = self._heads[:-1][single]
        if not len(rows) or not (self._entries.out_step[rows] == 1).all():
            return None
        copier, shift = self._block(rows[0], rows[0] + 1)
        place = copier.selected(rows[0] - shift, self._out)
        return None if self._program.target(place.reshape(shape)) is None else single.tolist()


class Writer(_Batch):
    def __init__(
        self,
        program: Program,
        source: NDArray[Any],
        entries: Entries,
        base: Sequence[NDArray[Any] | None],
        keep_empty: bool,
    ) -> None:
        super().__init__(entries, len(base))
        self._program = program
        self._source = source
        self._base = base
        self._keep_empty = keep_empty
        self._single: list[bool] = self._single_boxes(program.spec.shape).tolist()
        self.results: list[Buffer | None] = [None] * len(base)

    def _chunk(self, number: int, rows: range, copier: Copier) -> None:
        spec = self._program.spec
        if self._single[number]:
            array = copier.selected(rows[0], self._source).reshape(spec.shape)
            owned = array.dtype != spec.dtype.numpy
            array = array.astype(spec.dtype.numpy, copy=False)
        else:
            base = self._held(number)
            array, owned = spec.full() if base is None else base, True
            for row in rows:
                copier.gather(row, self._source, array)
        if self._keep_empty or not spec.fill_value.fills(array):
            self.results[number] = self._program.encode(array, owned=owned)

    def _held(self, number: int) -> NDArray[Any] | None:
        """What a chunk held before, which may be changed."""
        return self._base[number]


class Rewriter(Writer):
    """A writer over encoded chunks, each decoded when its turn comes."""

    def __init__(
        self, program: Program, source: NDArray[Any], entries: Entries, existing: Buffers, keep_empty: bool
    ) -> None:
        super().__init__(program, source, entries, [None] * len(existing), keep_empty)
        self._views = list(existing.views())
        self._is_scratch = existing.is_scratch

    def _held(self, number: int) -> NDArray[Any] | None:
        view = self._views[number]
        return None if view is None else self._program.decode_owned(view, is_scratch=self._is_scratch)
