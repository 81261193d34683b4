"""Files that a backend reads and writes by itself, without their bytes passing through Python.

A backend that can do so has an attribute ``file_io``; :func:`file_io_of` finds it. It is used where the bytes are
known to be plain files below one folder. Reading needs no plan then: the backend finds, reads, decodes and
places in one go. Writing is planned as ever, but for the bytes: a :class:`FilesBatch` lets the backend read what chunks
hold, encode, and replace them in one go too, and only what it cannot do so is loaded, encoded and written in turn.
"""

from __future__ import annotations

import os
from collections.abc import Buffer, Iterable, Sequence
from typing import Any, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.entries import Entries
from chunkwright.execute import positions
from chunkwright.prepared import PreparedChain
from chunkwright.write_plan import WriteWork
from chunkwright_store.drive_sync import Stop
from chunkwright_store.files import OpenFiles, WholeFiles
from chunkwright_store.packed import Packed
from chunkwright_store.roots import path_below

__all__ = (
    "FileIO",
    "FilesBatch",
    "file_io_of",
    "open_files",
    "whole_files",
)


class FileIO(Protocol):
    """What a backend offers for files of the local file system."""

    def serves(self, prepared: PreparedChain, /) -> bool:
        """Say whether this is the way to read chunks of a chain.

        Parameters
        ----------
        prepared
            The prepared chain.

        Returns
        -------
        bool
            False when other backends have a part in it.
        """

    def read_into(
        self,
        prepared: PreparedChain,
        root: str | os.PathLike[str],
        keys: Sequence[str],
        entries: Entries,
        out: NDArray[Any],
        /,
        *,
        max_workers: int | None = None,
        shard_index_cache: int = 0,
        stop: Stop | None = None,
    ) -> NDArray[np.bool_]:
        """Read parts of chunks into an array.

        Parameters
        ----------
        prepared
            The chain of the chunks.
        root
            The folder that keys are relative to.
        keys
            Where each chunk is; none leads out of the root.
        entries
            Selections of the chunks, numbered as the keys are.
        out
            The caller's array.
        max_workers
            Limit of threads that compute.
        shard_index_cache
            Bytes of shard indexes that may be kept from call to call; 0 drops those that are.
        stop
            Looked at now and then.

        Returns
        -------
        NDArray
            bool, one per key: whether the chunk was there.
        """

    def read_packed_into(
        self,
        prepared: PreparedChain,
        packed: Packed,
        entries: Entries,
        out: NDArray[Any],
        /,
        *,
        max_workers: int | None = None,
        shard_index_cache: int = 0,
        stop: Stop | None = None,
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
            Bytes of shard indexes that may be kept from call to call.
        stop
            Looked at now and then.

        Returns
        -------
        NDArray
            bool, one per chunk: whether it was there.
        """

    def load(self, root: str | os.PathLike[str], keys: Sequence[str], /) -> Sequence[Buffer | None]:
        """Read whole chunks.

        Parameters
        ----------
        root
            The folder that keys are relative to.
        keys
            Where each chunk is; none leads out of the root.

        Returns
        -------
        sequence of Buffer or None
            One per key; None when the chunk is missing.
        """

    def write(
        self,
        root: str | os.PathLike[str],
        keys: Sequence[str],
        contents: Sequence[Buffer | None],
        /,
        *,
        max_workers: int | None = None,
    ) -> None:
        """Replace chunks, each entirely or not at all.

        Parameters
        ----------
        root
            The folder that keys are relative to.
        keys
            Where each chunk goes.
        contents
            One per key; None removes the chunk.
        max_workers
            Limit of threads.
        """

    def rewrite(
        self,
        prepared: PreparedChain,
        root: str | os.PathLike[str],
        keys: Sequence[str],
        source: NDArray[Any],
        entries: Entries,
        kept: NDArray[np.int64],
        /,
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
            Where each chunk is; none leads out of the root.
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
        """


def file_io_of(prepared: PreparedChain) -> FileIO | None:
    """Find what reads and writes files for a chain.

    Parameters
    ----------
    prepared
        The prepared chain.

    Returns
    -------
    FileIO or None
        That of the first backend, if it serves the chain.

    Examples
    --------
    >>> from chunkwright import CodecChain, ReferenceBackend
    >>> chain = CodecChain.from_json(["bytes"]).bind("uint8", 0)
    >>> file_io_of(chain.prepare((4,), backends=[ReferenceBackend()])) is None
    True
    """
    found: FileIO | None = getattr(prepared.backends[0], "file_io", None) if prepared.backends else None
    return found if found is not None and found.serves(prepared) else None


@attrs.frozen(eq=False)
class FilesBatch:
    """All chunks of a write, when they are files that a backend reads and writes.

    Parameters
    ----------
    file_io
        The backend's.
    root
        The folder that keys are relative to.
    keys
        Key of each chunk.
    max_workers
        Limit of threads.

    Examples
    --------
    >>> FilesBatch(None, "/data", ["c/0", "c/1"]).keys[1]
    'c/1'
    """

    file_io: FileIO
    root: str | os.PathLike[str]
    keys: Sequence[str]
    max_workers: int | None = None

    def rewrite(self, work: WriteWork, value: NDArray[Any], /) -> None:
        """Encode chunks over what they hold, and replace them; see :class:`~chunkwright_store.sources.Batch`.

        Parameters
        ----------
        work
            Which chunks, and what is written.
        value
            The caller's array.

        Raises
        ------
        CodecError
            When old bytes do not decode or values do not encode; ``position`` is the chunk's number.
        OSError
            When a file cannot be read or written.
        """
        keys = [self.keys[chunk] for chunk in work.chunk.tolist()]
        kept, workers = work.existing.offset, self.max_workers
        with positions(work.chunk):
            done = self.file_io.rewrite(
                work.chain, self.root, keys, value, work.entries, kept, keep_empty=work.keep_empty, max_workers=workers
            )
        if not done:
            work = attrs.evolve(work, existing=self._load(keys, kept))
            contents = [content for _, content in work.run(value, max_workers=workers)]
            self.file_io.write(self.root, keys, contents, max_workers=workers)

    def _load(self, keys: Sequence[str], kept: NDArray[np.int64]) -> Buffers:
        existing: list[Buffer | None] = [None] * len(keys)
        rows = np.flatnonzero(kept >= 0).tolist()
        for row, content in zip(rows, self.file_io.load(self.root, [keys[row] for row in rows]), strict=True):
            existing[row] = content
        return Buffers.of(existing)


def open_files(root: str | os.PathLike[str], keys: Iterable[str], shard_index_cache: int = 0) -> OpenFiles:
    """Open chunks that are files, to be read when they are decoded.

    Parameters
    ----------
    root
        The folder that keys are relative to.
    keys
        Where each chunk is.
    shard_index_cache
        Bytes of shard indexes that are kept from call to call.

    Returns
    -------
    OpenFiles
        To be closed.

    Raises
    ------
    ValueError
        When a key leads out of the root.

    Examples
    --------
    >>> import tempfile
    >>> len(open_files(tempfile.mkdtemp(), ["c/0"]))
    1
    """
    return OpenFiles([path_below(root, key) for key in keys], shard_index_cache)


def whole_files(root: str | os.PathLike[str], keys: Iterable[str]) -> WholeFiles:
    """Name chunks that are files, to be read whole when they are decoded.

    Parameters
    ----------
    root
        The folder that keys are relative to.
    keys
        Where each chunk is.

    Returns
    -------
    WholeFiles
        None of them is open.

    Raises
    ------
    ValueError
        When a key leads out of the root.

    Examples
    --------
    >>> import tempfile
    >>> len(whole_files(tempfile.mkdtemp(), ["c/0"]))
    1
    """
    return WholeFiles([path_below(root, key) for key in keys])
