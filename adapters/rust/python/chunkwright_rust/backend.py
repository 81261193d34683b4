"""The Rust backend: chains compiled to native programs that run a whole batch in one call, without the GIL.

What decoding allocates is bounded by the chain, or, where a chain sets no bound, by its ``max_chunk_bytes``. Threads
are those of one pool per process, which is made anew after a fork; a small batch is done by the calling thread.
"""

from __future__ import annotations

from collections.abc import Buffer, Sequence
from importlib.metadata import version
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.codecs import Codec
from chunkwright.entries import Entries
from chunkwright.ports import Run, Step, Supported, Unsupported
from chunkwright.prepared import PreparedChain
from chunkwright.shard_format import Layout
from chunkwright.spec import ChunkSpec
from chunkwright_rust._box_reader import NativeBoxReader, make_box_reader
from chunkwright_rust._file_io import LocalFiles
from chunkwright_rust._kernels import find
from chunkwright_rust._runs import FILES, FixedRun, compile_run
from chunkwright_rust._shards import NativeShardReader, NativeShardWriter, make_reader, make_writer

__all__ = ("RustBackend",)


@attrs.frozen
class RustBackend:
    """Computes in Rust, on a pool of threads of its own.

    Backends of this class are all equal, hold nothing and can be pickled.

    Examples
    --------
    >>> import numpy as np
    >>> from chunkwright import CodecChain
    >>> codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {}}]
    >>> chain = CodecChain.from_json(codecs).bind("int16", 0).prepare((2, 2), backends=[RustBackend()])
    >>> chain.decode(chain.encode(np.array([[1, 2], [3, 4]], "i2"))).tolist()
    [[1, 2], [3, 4]]
    """

    name = "rust"
    version = version("chunkwright-rust")

    file_io = None if FILES is None else LocalFiles()
    """Reads and writes files of the local file system; None where they cannot be read at a position."""

    def supports(self, codec: Codec, spec: ChunkSpec) -> Supported | Unsupported:
        """Say whether there is a kernel for a bound codec; see :class:`~chunkwright.ports.Backend`.

        Parameters
        ----------
        codec
            The bound codec.
        spec
            The array on its decoded side.

        Returns
        -------
        Supported or Unsupported
            With the library that does the work, or with the reason.
        """
        if codec.name == "transpose":
            return Supported("strides")
        if codec.name == "bytes":
            return _supports_bytes(spec)
        if codec.name in ("vlen-utf8", "vlen-bytes"):
            return Supported("own, then Python objects")
        found = find(codec, spec)
        return Unsupported(found) if isinstance(found, str) else Supported(found.library)

    def compile(self, steps: Sequence[Step]) -> Any:
        """Compile a run.

        Parameters
        ----------
        steps
            In order of encoding, all of them supported.

        Returns
        -------
        Any
            One of the classes of :mod:`chunkwright_rust._runs`.
        """
        return compile_run(steps)

    def shard_reader(self, inner: Run, index: Run, grid: tuple[int, ...], layout: Layout) -> NativeShardReader | None:
        """Make what decodes parts of shards; see :class:`~chunkwright.shard_ports.ReadsShards`.

        Parameters
        ----------
        inner
            All that is done to an inner chunk.
        index
            All that is done to the index.
        grid
            Inner chunks along each axis.
        layout
            Where the index and the inner chunks lie.

        Returns
        -------
        NativeShardReader or None
            None for elements of variable length.
        """
        return make_reader(inner, index, grid, layout)

    def shard_writer(
        self, inner: Run, index: Run, grid: tuple[int, ...], layout: Layout, write_order: NDArray[np.int64]
    ) -> NativeShardWriter | None:
        """Make what encodes shards; see :class:`~chunkwright.shard_ports.WritesShards`.

        Parameters
        ----------
        inner
            All that is done to an inner chunk.
        index
            All that is done to the index.
        grid
            Inner chunks along each axis.
        layout
            Where the index and the inner chunks lie.
        write_order
            int64: flat positions of the inner chunks in the order in which they are written.

        Returns
        -------
        NativeShardWriter or None
            None for elements of variable length.
        """
        return make_writer(inner, index, grid, layout, write_order)

    def box_reader(self, prepared: PreparedChain) -> NativeBoxReader | None:
        """Make what reads a few boxes of chunks; see :class:`~chunkwright_store.box_reader.BoxReader`.

        Parameters
        ----------
        prepared
            The chain of the chunks.

        Returns
        -------
        NativeBoxReader or None
            None when elements vary in length, or another backend has a part in the chain.
        """
        return make_box_reader(prepared)

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
        run.compiled.decode_into(buffers, entries, out, max_workers)

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
        encoded: list[Buffer | None] = run.compiled.encode_from(source, entries, base, keep_empty, max_workers)
        return encoded

    def rewrite_from(
        self,
        run: Run,
        source: NDArray[Any],
        entries: Entries,
        *,
        existing: Buffers,
        keep_empty: bool,
        max_workers: int | None = None,
    ) -> list[Buffer | None] | None:
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
            One per row of ``existing``; None in place of the list for elements of variable length.
        """
        compiled = run.compiled
        if not isinstance(compiled, FixedRun):
            return None
        return compiled.rewrite_from(source, entries, existing, keep_empty, max_workers)

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
        arrays: list[NDArray[Any] | None] = run.compiled.decode_arrays(items, max_workers)
        return arrays

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
        encoded: list[Any | None] = run.compiled.encode_arrays(items, max_workers)
        return encoded

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
        decoded: list[Buffer | None] = run.compiled.decode_bytes(buffers, max_workers)
        return decoded

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
        encoded: list[Buffer | None] = run.compiled.encode_bytes(items, max_workers)
        return encoded


def _supports_bytes(spec: ChunkSpec) -> Supported | Unsupported:
    dtype = spec.dtype.numpy
    if spec.dtype.variable or dtype.hasobject:
        return Unsupported("elements of variable length have no bytes of their own")
    return Supported("own") if dtype.itemsize else Unsupported("elements have no bytes")
