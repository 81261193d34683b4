"""Chunks that are files of the local file system: read and decoded by the same native task, written side by side.

Chunks without shards are files that are opened, read whole, decoded and closed one by one. Of shards, a window at a
time is held open: index and inner chunks come from one version of the file, and inner chunks are read where they
lie, neighbours together. What the native module does not do in one go is opened first and goes through the core,
which has to know sizes and looks at shard indexes. What the chain cannot decode straight into the caller's array
takes the way through arrays, with bytes that are read natively all the same.

Keys are text and stay below the root; a directory, or nothing, in the place of a file is a missing chunk. Errors of
the system are ``OSError`` with the path.
"""

from __future__ import annotations

import os
from collections.abc import Buffer, Sequence
from typing import Any, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import MISSING, Buffers
from chunkwright.entries import Entries
from chunkwright.execute import positions, workers
from chunkwright.ports import Run
from chunkwright.prepared import PreparedChain
from chunkwright.read_plan import in_order
from chunkwright_rust import _native
from chunkwright_rust._layout import columns_of
from chunkwright_rust._runs import FixedRun
from chunkwright_rust._shards import NativeShardWriter

__all__ = ("LocalFiles",)

MAX_OPEN = 128
"""Files that one call holds open at a time."""

WINDOW_NBYTES = 64 << 20
"""Decoded bytes of chunks between two looks at whether to stop, about."""

type Root = str | os.PathLike[str]


class _Stop(Protocol):
    def __bool__(self) -> bool: ...


class _Packed(Protocol):
    """Chunks that lie in one file: their first bytes, negative for missing ones, and how many they are."""

    @property
    def offset(self) -> Sequence[int]: ...
    @property
    def length(self) -> Sequence[int]: ...
    @property
    def path(self) -> str: ...
    def descriptor(self) -> int: ...


@attrs.frozen
class LocalFiles:
    """Reads and writes chunks below a root folder, in Rust and without the GIL.

    Examples
    --------
    >>> import tempfile
    >>> from chunkwright import CodecChain
    >>> from chunkwright_rust import RustBackend
    >>> chain = CodecChain.from_json(["bytes"]).bind("uint8", 0)
    >>> prepared, files = chain.prepare((2,), backends=[RustBackend()]), RustBackend.file_io
    >>> root = tempfile.mkdtemp()
    >>> files.write(root, ["c/0"], [bytes([7, 8])])
    >>> out = np.ones(4, "u1")
    >>> edges = np.array([[0], [2]])
    >>> entries = Entries.boxes(chunk=np.arange(2), start=edges * 0, count=edges * 0 + 2, out_start=edges)
    >>> files.read_into(prepared, root, ["c/0", "c/1"], entries, out).tolist(), out.tolist()
    ([True, False], [7, 8, 0, 0])
    """

    def serves(self, prepared: PreparedChain) -> bool:
        """Say whether this is the way to read chunks of a chain.

        Parameters
        ----------
        prepared
            The prepared chain.

        Returns
        -------
        bool
            Whether every codec is run in Rust.
        """
        return all(run.backend in ("rust", "core") for run in prepared.explain().runs)

    def read_into(
        self,
        prepared: PreparedChain,
        root: Root,
        keys: Sequence[str],
        entries: Entries,
        out: NDArray[Any],
        *,
        max_workers: int | None = None,
        shard_index_cache: int = 0,
        stop: _Stop | None = None,
    ) -> NDArray[np.bool_]:
        """Read parts of chunks into an array.

        Parameters
        ----------
        prepared
            The chain of the chunks.
        root
            The folder that keys are relative to.
        keys
            Where each chunk is.
        entries
            Selections of the chunks, numbered as the keys are.
        out
            The caller's array.
        max_workers
            Limit of threads that compute.
        shard_index_cache
            Bytes of shard indexes that are kept from call to call, in the whole process; 0 drops those that are.
        stop
            Looked at now and then; when it is true, the rest of ``out`` stays as it is.

        Returns
        -------
        NDArray
            bool, one per key: whether the chunk was there.

        Raises
        ------
        CorruptChunkError
            When bytes do not decode; ``position`` is the number of the key.
        OSError
            When a file cannot be read.
        ValueError
            When a key leads out of the root.
        """
        entries = in_order(entries)
        plain = _is_plain(prepared, entries, out.dtype)
        present = np.ones(len(keys), bool)
        for first, last, part in entries.windows(len(keys), _window(prepared, plain)):
            if stop:
                break
            files = _native.Files(root, keys[first:last], shard_index_cache)
            try:
                with positions(range(first, last)):
                    rows = _whole(files) if plain else _opened(files)
                    prepared.decode_many_into(rows, part, out, max_workers=max_workers)
                present[first:last] = np.logical_not(files.missing())
            finally:
                files.close()
        return present

    def read_packed_into(
        self,
        prepared: PreparedChain,
        packed: _Packed,
        entries: Entries,
        out: NDArray[Any],
        *,
        max_workers: int | None = None,
        shard_index_cache: int = 0,
        stop: _Stop | None = None,
    ) -> NDArray[np.bool_]:
        """Read parts of chunks that lie in one file into an array.

        Parameters
        ----------
        prepared
            The chain of the chunks.
        packed
            Where they are.
        entries
            Selections of the chunks, numbered as they are there.
        out
            The caller's array.
        max_workers
            Limit of threads that compute.
        shard_index_cache
            Bytes of shard indexes that are kept from call to call, of other files; 0 drops those that are.
        stop
            Looked at now and then; when it is true, the rest of ``out`` stays as it is.

        Returns
        -------
        NDArray
            bool, one per chunk: whether it was there.

        Raises
        ------
        CorruptChunkError
            When bytes do not decode; ``position`` is the number of the chunk.
        OSError
            When the file cannot be read.
        """
        entries = in_order(entries)
        offset, length = np.array(packed.offset, np.int64), np.array(packed.length, np.int64)
        files = _native.Files.packed(packed.descriptor(), packed.path, shard_index_cache)
        try:
            for first, last, part in entries.windows(len(offset), _window(prepared, True)):
                if stop:
                    break
                rows = Buffers(files, np.zeros(last - first, np.int64), offset[first:last], length[first:last])
                with positions(range(first, last)):
                    prepared.decode_many_into(rows, part, out, max_workers=max_workers)
        finally:
            files.close()
        return offset >= 0

    def load(self, root: Root, keys: Sequence[str]) -> list[Buffer | None]:
        """Read whole chunks.

        Parameters
        ----------
        root
            The folder that keys are relative to.
        keys
            Where each chunk is.

        Returns
        -------
        list of Buffer or None
            One per key; None when the chunk is missing.

        Raises
        ------
        OSError
            When a file cannot be read.
        ValueError
            When a key leads out of the root.
        """
        files = _native.Files(root, keys)
        rows = _whole(files)
        try:
            return files.load(rows.source, rows.offset, rows.length)
        finally:
            files.close()

    def write(
        self, root: Root, keys: Sequence[str], contents: Sequence[Buffer | None], *, max_workers: int | None = None
    ) -> None:
        """Replace chunks, each entirely or not at all.

        Nothing is flushed to the device. Where the file system can, an old file changes names with the new one and
        is then removed, so that replacing many small files does not wait for the device; after a power cut a
        chunk may be missing, old or incomplete.

        Parameters
        ----------
        root
            The folder that keys are relative to.
        keys
            Where each chunk goes; folders are made.
        contents
            One per key; None removes the chunk, which may be missing.
        max_workers
            Limit of threads.

        Raises
        ------
        OSError
            When a file cannot be written. It is as it was; others may have been written.
        ValueError
            When a key leads out of the root.
        """
        _native.Files(root, keys).write(contents, workers(max_workers))

    def rewrite(
        self,
        prepared: PreparedChain,
        root: Root,
        keys: Sequence[str],
        source: NDArray[Any],
        entries: Entries,
        kept: NDArray[np.int64],
        *,
        keep_empty: bool,
        max_workers: int | None = None,
    ) -> bool:
        """Encode chunks from an array over what they hold, and replace them, each entirely or not at all.

        Parameters
        ----------
        prepared
            The chain of the chunks.
        root
            The folder that keys are relative to.
        keys
            Where each chunk is; folders are made.
        source
            The caller's array.
        entries
            Selections of the chunks, numbered as the keys are, in order.
        kept
            int64, one per key: negative where nothing of what the chunk holds matters.
        keep_empty
            Whether chunks of nothing but the fill value are stored.
        max_workers
            Limit of threads that compute.

        Returns
        -------
        bool
            False when this cannot be done in one go; nothing was done then.

        Raises
        ------
        CorruptChunkError
            When old bytes do not decode; ``position`` is the number of the key.
        OSError
            When a file cannot be read or written. It is as it was; others may have been written.
        ValueError
            When a key leads out of the root.
        """
        files = _native.Files(root, keys)
        try:
            return _rewritten(files, prepared, source, entries, kept, keep_empty, workers(max_workers))
        finally:
            files.close()


def _rewritten(
    files: _native.Files,
    prepared: PreparedChain,
    source: NDArray[Any],
    entries: Entries,
    kept: NDArray[np.int64],
    keep_empty: bool,
    limit: int | None,
) -> bool:
    if prepared.shard is not None:
        writer, order = prepared.shard.writer, prepared.order
        if not prepared.is_partial or order is None or not isinstance(writer, NativeShardWriter):
            return False
        if (keep_empty and prepared.is_wrapped_shard) or not writer.takes(entries):
            return False
        array, unit = writer.inner.source(source)
        moved = columns_of(entries.permuted(order))
        _native.encode_shard_files(files, writer.native, array, moved, kept, unit, keep_empty, limit)
        return True
    run = _only_run(prepared)
    if run is None:
        return False
    array, unit = run.source(source)
    _native.encode_files(files, run.program, array, columns_of(entries), kept, unit, keep_empty, limit)
    return True


def _only_run(prepared: PreparedChain) -> FixedRun | None:
    """What a chain without shards is done by, when that is one piece of native code."""
    if len(prepared.runs) != 1:
        return None
    run = prepared.runs[0]
    return run.compiled if isinstance(run, Run) and isinstance(run.compiled, FixedRun) else None


def _is_plain(prepared: PreparedChain, entries: Entries, dtype: np.dtype[Any]) -> bool:
    """Whether files go straight into the caller's array, so that nobody else has to know their sizes."""
    if prepared.shard is not None:
        reader = prepared.shard.reader
        return prepared.is_partial and reader is not None and reader.takes(entries, dtype)
    run = _only_run(prepared)
    return run is not None and run.takes(dtype)


def _window(prepared: PreparedChain, plain: bool) -> int:
    """How many files one call is about."""
    nbytes = prepared.spec.elements * (prepared.spec.dtype.itemsize or 32)
    window = WINDOW_NBYTES // max(nbytes, 1)
    if not plain:
        # These are held open.
        window = min(4 * window, MAX_OPEN, _native.descriptors() // 64)
    return max(window, 1)


def _whole(files: _native.Files) -> Buffers:
    """All bytes of files that nobody has looked at: a length of -1 is up to the end."""
    count = len(files)
    return Buffers(files, np.arange(count), np.zeros(count, np.int64), np.full(count, -1))


def _opened(files: _native.Files) -> Buffers:
    """All bytes of files, which are open from now on."""
    size = np.array(files.open(), np.int64)
    return Buffers(files, np.arange(len(files)), np.where(size < 0, MISSING, 0), np.maximum(size, 0))
