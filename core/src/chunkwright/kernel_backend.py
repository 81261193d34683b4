"""Build a backend from kernels: everything around one codec's work on one chunk, written once.

:class:`KernelBackend` implements the backend protocol (:mod:`chunkwright.ports`) for backends that compile
each step to a :class:`~chunkwright.kernels.Kernel`. A run becomes a :class:`~chunkwright.program.Program`; a batch is
handed to :meth:`KernelBackend._map` as ranges of chunks, which a backend with threads overrides.
"""

from __future__ import annotations

from collections.abc import Buffer, Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from chunkwright._batches import Reader, Rewriter, Writer
from chunkwright.buffers import Buffers
from chunkwright.codecs._base import Codec
from chunkwright.entries import Entries
from chunkwright.errors import CodecError
from chunkwright.kernels import Kernel, shared_kernel
from chunkwright.ports import Run, Step, Supported, Unsupported
from chunkwright.program import Program
from chunkwright.spec import ChunkSpec

__all__ = ("KernelBackend",)


class KernelBackend:
    """A backend made of kernels.

    Subclasses set ``name`` and ``version`` and implement :meth:`offer` and :meth:`kernel`; one with threads
    overrides :meth:`_map`.

    Examples
    --------
    >>> class Plain(KernelBackend):
    ...     name, version = "plain", "1"
    ...
    ...     def offer(self, codec, spec):
    ...         return Supported("python") if codec.name == "numcodecs.base64" else Unsupported("no kernel")
    ...
    ...     def kernel(self, step):
    ...         return Kernel(codec=step.codec.name, decode=b64decode, encode=b64encode)
    >>> import numpy as np
    >>> from base64 import b64decode, b64encode
    >>> from chunkwright import from_array_metadata
    >>> bound, shape = from_array_metadata({
    ...     "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "|u1", "order": "C", "fill_value": 0,
    ...     "filters": None, "compressor": {"id": "base64"},
    ... })
    >>> bytes(bound.prepare(shape, backends=[Plain()]).encode(np.array([1, 2], "u1")))
    b'AQI='
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
        reader = Reader(run.compiled, buffers, entries, out)
        cost = run.compiled.reading_cost(entries, buffers)
        self._map(reader.work, len(buffers), cost=cost, max_workers=max_workers)

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
        writer = Writer(run.compiled, source, entries, base, keep_empty)
        self._map(writer.work, len(base), cost=run.compiled.cost, max_workers=max_workers)
        return writer.results

    def rewrite_from(
        self,
        run: Run,
        source: NDArray[Any],
        entries: Entries,
        *,
        existing: Buffers,
        keep_empty: bool,
        max_workers: int | None = None,
    ) -> list[Buffer | None]:
        """Gather chunks and encode them over old ones; see :class:`~chunkwright.rewriting.Rewrites`.

        Parameters
        ----------
        run
            A run with the chain's first codec and its array->bytes codec.
        source
            The caller's array.
        entries
            Selections, ordered by chunk.
        existing
            One row per chunk: what it held before.
        keep_empty
            Whether chunks of nothing but the fill value are encoded.
        max_workers
            Limit of threads.

        Returns
        -------
        list of Buffer or None
            One per row of ``existing``.
        """
        writer = Rewriter(run.compiled, source, entries, existing, keep_empty)
        self._map(writer.work, len(existing), cost=run.compiled.cost, max_workers=max_workers)
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
