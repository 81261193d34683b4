"""Build a backend from kernels: everything around one codec's work on one chunk, written once.

:class:`KernelBackend` implements the backend protocol (:mod:`chunkwright.ports`) for backends that compile
each step to a :class:`~chunkwright.program.Kernel`:

1. A batch is handed to :meth:`KernelBackend._map` as ranges of chunks; a backend with threads overrides it.
2. Reading, each chunk is decoded once and all of its entries are scattered from the one array; a chunk whose
   place in the caller's array is contiguous memory of the stored layout is decoded straight into it.
3. Writing, a chunk that one entry covers is encoded from a view of the caller's array; others are gathered.
4. Errors get the row of their chunk as position.
"""

from __future__ import annotations

from collections.abc import Buffer, Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.codecs._base import Codec
from chunkwright.entries import Entries
from chunkwright.errors import CodecError
from chunkwright.ports import Run, Step, Supported, Unsupported
from chunkwright.program import Kernel, Program, shared_kernel
from chunkwright.scatter import Copier
from chunkwright.spec import ChunkSpec

__all__ = ("KernelBackend",)

# Chunks whose entries are turned into indexes at a time: bounds what a huge batch needs beside its result.
_BLOCK = 1024


class KernelBackend:
    """A backend made of kernels.

    Subclasses set ``name`` and ``version`` and implement :meth:`offer` and :meth:`kernel`; one with threads
    overrides :meth:`_map`.
    """

    name: str = ""
    version: str = ""

    def offer(self, codec: Codec, spec: ChunkSpec) -> Supported | Unsupported:
        """Say whether there is a kernel for a codec other than ``bytes`` and ``transpose``.

        Parameters
        ----------
        codec
            The bound codec.
        spec
            The array on its decoded side.

        Returns
        -------
        Supported or Unsupported
            With a description of the kernel, or with the reason.
        """
        raise NotImplementedError

    def kernel(self, step: Step) -> Kernel:
        """Compile a step that :meth:`offer` supports.

        Parameters
        ----------
        step
            The step.

        Returns
        -------
        Kernel
            Safe to share between threads.
        """
        raise NotImplementedError

    def supports(self, codec: Codec, spec: ChunkSpec) -> Supported | Unsupported:
        """Say whether a bound codec can be run on a spec; see :class:`~chunkwright.ports.Backend`.

        Parameters
        ----------
        codec
            The bound codec.
        spec
            The array on its decoded side.

        Returns
        -------
        Supported or Unsupported
            With the kernel, or with the reason.
        """
        if codec.name == "transpose":
            return Supported("strides")
        if codec.name == "bytes":
            if spec.dtype.variable:
                return Unsupported("elements of variable length have no bytes of their own")
            return Supported("numpy")
        return self.offer(codec, spec)

    def compile(self, steps: Sequence[Step]) -> Program:
        """Compile a run.

        Parameters
        ----------
        steps
            In order of encoding, all of them supported.

        Returns
        -------
        Program
            Safe to share between threads.
        """
        return Program(steps, [shared_kernel(step) or self.kernel(step) for step in steps])

    def decode_into(
        self, run: Run, buffers: Buffers, entries: Entries, out: NDArray[Any], *, max_workers: int | None = None
    ) -> None:
        """Decode chunks into the caller's array; see :class:`~chunkwright.ports.Backend`.

        Parameters
        ----------
        run
            A run with the chain's first codec and its array->bytes codec.
        buffers
            One row per chunk.
        entries
            Selections, ordered by chunk.
        out
            The caller's array.
        max_workers
            Limit of threads.
        """
        reader = _Reader(run.compiled, list(buffers.views()), entries, out)
        self._map(reader.work, len(buffers), cost=run.compiled.cost, max_workers=max_workers)

    def encode_from(
        self,
        run: Run,
        source: NDArray[Any],
        entries: Entries,
        *,
        base: Sequence[NDArray[Any] | None],
        keep_empty: bool,
        max_workers: int | None = None,
    ) -> list[Buffer | None]:
        """Gather chunks from the caller's array and encode them; see :class:`~chunkwright.ports.Backend`.

        Parameters
        ----------
        run
            A run with the chain's first codec and its array->bytes codec.
        source
            The caller's array.
        entries
            Selections, ordered by chunk.
        base
            What each chunk held before, or None.
        keep_empty
            Whether chunks of nothing but the fill value are encoded.
        max_workers
            Limit of threads.

        Returns
        -------
        list of Buffer or None
            One per chunk of ``base``.
        """
        writer = _Writer(run.compiled, source, entries, base, keep_empty)
        self._map(writer.work, len(base), cost=run.compiled.cost, max_workers=max_workers)
        return writer.results

    def decode_arrays(
        self, run: Run, items: Sequence[Any | None], *, max_workers: int | None = None
    ) -> list[NDArray[Any] | None]:
        """Decode whole chunks to arrays that own their memory; see :class:`~chunkwright.ports.Backend`.

        Parameters
        ----------
        run
            A run with array->array codecs, the array->bytes codec, or both.
        items
            Buffers or arrays; None stays None.
        max_workers
            Limit of threads.

        Returns
        -------
        list of NDArray or None
            One per item.
        """
        return self._each(run.compiled, run.compiled.decode_owned, items, max_workers)

    def encode_arrays(
        self, run: Run, items: Sequence[NDArray[Any] | None], *, max_workers: int | None = None
    ) -> list[Any | None]:
        """Encode whole chunks, without the emptiness rule; see :class:`~chunkwright.ports.Backend`.

        Parameters
        ----------
        run
            A run that starts with an array->array or array->bytes codec.
        items
            Arrays; None stays None.
        max_workers
            Limit of threads.

        Returns
        -------
        list
            Buffers or arrays, one per item.
        """
        return self._each(run.compiled, run.compiled.encode, items, max_workers)

    def decode_bytes(self, run: Run, buffers: Buffers, *, max_workers: int | None = None) -> list[Buffer | None]:
        """Decode through bytes->bytes codecs; see :class:`~chunkwright.ports.Backend`.

        Parameters
        ----------
        run
            A run of bytes->bytes codecs.
        buffers
            One row per chunk.
        max_workers
            Limit of threads.

        Returns
        -------
        list of Buffer or None
            One per row.
        """
        return self._each(run.compiled, run.compiled.decode, list(buffers.views()), max_workers)

    def encode_bytes(
        self, run: Run, items: Sequence[Buffer | None], *, max_workers: int | None = None
    ) -> list[Buffer | None]:
        """Encode through bytes->bytes codecs; see :class:`~chunkwright.ports.Backend`.

        Parameters
        ----------
        run
            A run of bytes->bytes codecs.
        items
            Buffers; None stays None.
        max_workers
            Limit of threads.

        Returns
        -------
        list of Buffer or None
            One per item.
        """
        return self._each(run.compiled, run.compiled.encode, items, max_workers)

    def _each(
        self, program: Program, function: Callable[[Any], Any], items: Sequence[Any | None], max_workers: int | None
    ) -> list[Any]:
        results: list[Any] = [None] * len(items)

        def work(first: int, last: int) -> None:
            number = first
            try:
                for number in range(first, last):
                    item = items[number]
                    if item is not None:
                        results[number] = function(item)
            except CodecError as error:
                error.at(number)
                raise

        self._map(work, len(items), cost=program.cost, max_workers=max_workers)
        return results

    def _map(self, work: Callable[[int, int], None], count: int, *, cost: int, max_workers: int | None) -> None:
        """Do ``work(first, last)`` for ranges that make up ``count`` chunks; ``cost`` is that of each."""
        work(0, count)


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


class _Reader(_Batch):
    def __init__(self, program: Program, views: list[memoryview | None], entries: Entries, out: NDArray[Any]) -> None:
        super().__init__(entries, len(views))
        self._program = program
        self._views = views
        self._out = out
        self._straight = self._decoded_straight()

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


class _Writer(_Batch):
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
            base = self._base[number]
            array, owned = spec.full() if base is None else base, True
            for row in rows:
                copier.gather(row, self._source, array)
        if self._keep_empty or not spec.fill_value.fills(array):
            self.results[number] = self._program.encode(array, owned=owned)
