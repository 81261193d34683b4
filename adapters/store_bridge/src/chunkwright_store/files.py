"""Chunks that are files of the local file system.

Reading keeps one descriptor open from the first range to ``close``, so that the index and the inner chunks of
a shard come from one file even when a writer replaces it in between. A range is never longer than the
file, whatever a damaged index claims. A path that leads nowhere, a directory, or a file where a directory
should be is a missing chunk, as in zarr.

Writing goes to a temporary name in the same directory, which then becomes that of the chunk, so that no reader ever
sees half a chunk. Nothing is flushed to the disk: after a power cut the last chunks may be missing, old or incomplete.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import uuid
from collections.abc import Buffer, Hashable, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import MISSING as MISSING_ROW
from chunkwright.buffers import Buffers
from chunkwright_store._exchange import put_in_place
from chunkwright_store._memory import MEMORY, SMALLEST
from chunkwright_store.index_cache import INDEXES, file_version
from chunkwright_store.sources import ByteRange, ByteSuffix

__all__ = ("FileSink", "FileSource", "OpenFiles", "WholeFiles", "read_at", "span")

MISSING: Final = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
BINARY: Final = getattr(os, "O_BINARY", 0)
OLD: Final = os.O_RDONLY | BINARY
NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY
MODE: Final = 0o666
"""What may be done with a new file, as far as the process allows."""


class FileSource:
    """One chunk that is a file, pinned from the first read to ``close``.

    Parameters
    ----------
    path
        Path of the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "0")
    >>> path.write_bytes(b"abcdef")
    6
    >>> source = FileSource(path)
    >>> [bytes(data) for data in source.get_ranges([(0, 2), ByteSuffix(1)])]
    [b'ab', b'f']
    >>> source.close()
    """

    __slots__ = ("_file", "_missing", "_path", "_size", "_status")

    is_scratch = True
    """Nobody else needs the bytes that were read."""

    max_gap = 64 << 10
    """To read more than this for nothing takes longer than another call of the system."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._file = -1
        self._size = 0
        self._status: os.stat_result | None = None
        self._missing = False

    def get_ranges(self, ranges: Sequence[ByteRange], /) -> list[Buffer | None]:
        """Read ranges of the file.

        Parameters
        ----------
        ranges
            What to read.

        Returns
        -------
        list of Buffer or None
            One per range; all of them None when there is no such file.
        """
        if not self._open():
            return [None] * len(ranges)
        return [self._read(wanted) for wanted in ranges]

    def size(self) -> int | None:
        """Open the file and say how many bytes it has.

        Returns
        -------
        int or None
            None when there is no such file.
        """
        return self._size if self._open() else None

    def version(self) -> Hashable | None:
        """Open the file and say which version of it is open.

        Returns
        -------
        Hashable or None
            None when there is no such file, or another change of it might not show.
        """
        return file_version(self._status) if self._open() and self._status is not None else None

    def close(self) -> None:
        """Let go of the file; a later read opens the path anew."""
        file, self._file, self._missing = self._file, -1, False
        if file >= 0:
            os.close(file)

    def __del__(self) -> None:
        self.close()

    def _open(self) -> bool:
        if self._file >= 0:
            return True
        if self._missing:
            return False
        opened = _opened(self._path)
        if opened is None:
            self._missing = True
            return False
        self._file, self._status = opened
        self._size = self._status.st_size
        return True

    def _read(self, wanted: ByteRange) -> Buffer:
        start, stop = span(wanted, self._size)
        return read_at(self._file, stop - start, start)


def _opened(path: str | os.PathLike[str]) -> tuple[int, os.stat_result] | None:
    """Descriptor and status of a file; None when there is none."""
    try:
        file = os.open(path, OLD)
    except MISSING:
        return None
    status = os.fstat(file)
    if stat.S_ISDIR(status.st_mode):
        os.close(file)
        return None
    return file, status


def span(wanted: ByteRange, size: int) -> tuple[int, int]:
    """Say where a range of an object of so many bytes starts and stops, as far as the object goes.

    Parameters
    ----------
    wanted
        The range.
    size
        Bytes of the object.

    Returns
    -------
    tuple of int
        First byte, and the one behind the last.

    Examples
    --------
    >>> span(ByteSuffix(2), 5), span((3, 9), 5)
    ((3, 5), (3, 5))
    """
    if wanted is None:
        return 0, size
    if isinstance(wanted, ByteSuffix):
        return max(0, size - wanted.length), size
    return wanted[0], min(wanted[1], size)


def read_at(file: int, length: int, start: int) -> Buffer:
    """Read as many bytes of a file as there are.

    Parameters
    ----------
    file
        A descriptor.
    length
        Bytes that are wanted.
    start
        The first of them.

    Returns
    -------
    Buffer
        No more than is wanted.
    """
    if length <= 0:
        return b""
    read = _read_memory if length >= SMALLEST and hasattr(os, "preadv") else _read_bytes
    return read(file, length, start)


def _read_bytes(file: int, length: int, start: int) -> bytes:
    """Read into new memory, in as many calls of the system as it takes."""
    parts = [_pread(file, length, start)]
    done = len(parts[0])
    while parts[-1] and done < length:
        parts.append(_pread(file, length - done, start + done))
        done += len(parts[-1])
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _read_memory(file: int, length: int, start: int) -> memoryview:
    """Read into memory that was used before."""
    data = memoryview(MEMORY.take(length))
    done = os.preadv(file, [data], start)
    while 0 < done < length and (more := os.preadv(file, [data[done:]], start + done)):
        done += more
    return data[:done]


if hasattr(os, "pread"):
    _pread = os.pread
else:

    def _pread(file: int, length: int, start: int) -> bytes:
        os.lseek(file, start, os.SEEK_SET)
        return os.read(file, length)


class OpenFiles:
    """Chunks that are files and stay where they are: their bytes are read when they are decoded.

    All descriptors are open from the start to ``close``.

    Parameters
    ----------
    paths
        Path of each file.
    shard_index_cache
        Bytes of shard indexes that are kept from call to call.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "0")
    >>> path.write_bytes(b"abcdef")
    6
    >>> files = OpenFiles([path, path.with_name("1")])
    >>> rows = files.rows()
    >>> rows.length.tolist(), rows.missing.tolist(), bytes(rows.view(0))
    ([6, 0], [False, True], b'abcdef')
    >>> files.close()
    """

    def __init__(self, paths: Iterable[str | os.PathLike[str]], shard_index_cache: int = 0) -> None:
        self._sources = [FileSource(path) for path in paths]
        self._shard_index_cache = shard_index_cache
        self._begun: set[int] = set()
        self._sizes = [source.size() for source in self._sources]

    def __len__(self) -> int:
        return len(self._sources)

    def rows(self) -> Buffers:
        """Return all bytes of all files.

        Returns
        -------
        Buffers
            One row per file; rows of files that are not there are missing.
        """
        offset = np.array([MISSING_ROW if size is None else 0 for size in self._sizes], np.int64)
        length = np.array([size or 0 for size in self._sizes], np.int64)
        return Buffers(self, np.arange(len(self), dtype=np.int64), offset, length)

    def load(
        self, source: NDArray[np.int64], offset: NDArray[np.int64], length: NDArray[np.int64]
    ) -> list[Buffer | None]:
        """Read rows; see :class:`~chunkwright.buffers.Stored`.

        Parameters
        ----------
        source, offset, length
            Columns of a :class:`~chunkwright.buffers.Buffers`.

        Returns
        -------
        list of Buffer or None
            One per row.
        """
        loaded: list[Buffer | None] = []
        for number, begin, size in zip(source.tolist(), offset.tolist(), length.tolist(), strict=True):
            loaded.append(None if begin < 0 else self._load(number, begin, begin + size))
        return loaded

    def _load(self, number: int, begin: int, end: int) -> Buffer | None:
        source, wanted = self._sources[number], (begin, end)
        # Of a shard the index comes first, unless all of it is read at once.
        is_index = number not in self._begun and end - begin != self._sizes[number]
        if not is_index:
            [data] = source.get_ranges([wanted])
            return data
        self._begun.add(number)
        key = INDEXES.key(source, wanted, self._shard_index_cache)
        found: Buffer | None = INDEXES.find(key, self._shard_index_cache)
        if found is None:
            [found] = source.get_ranges([wanted])
            INDEXES.keep(key, found, self._shard_index_cache)
        return found

    def close(self) -> None:
        """Let go of the files."""
        for source in self._sources:
            source.close()


class WholeFiles:
    """Chunks that are files and are read whole, each when it is decoded; none is open for longer than that.

    Parameters
    ----------
    paths
        Path of each file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "0")
    >>> path.write_bytes(b"abcdef")
    6
    >>> files = WholeFiles([path, path.with_name("1")])
    >>> [None if view is None else bytes(view) for view in files.rows().views()]
    [b'abcdef', None]
    >>> files.present
    [True, False]
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]]) -> None:
        self._paths = paths
        self.present = [True] * len(paths)

    def __len__(self) -> int:
        return len(self._paths)

    def rows(self) -> Buffers:
        """Return all bytes of all files.

        Returns
        -------
        Buffers
            One row per file, of unknown length.
        """
        count = len(self)
        return Buffers(self, np.arange(count), np.zeros(count, np.int64), np.full(count, -1))

    def load(
        self, source: NDArray[np.int64], offset: NDArray[np.int64], length: NDArray[np.int64]
    ) -> list[Buffer | None]:
        """Read files; see :class:`~chunkwright.buffers.Stored`.

        Parameters
        ----------
        source, offset, length
            Columns of a :class:`~chunkwright.buffers.Buffers`.

        Returns
        -------
        list of Buffer or None
            One per row; None for a file that is not there.
        """
        return [self._load(number) for number in source.tolist()]

    def _load(self, number: int) -> Buffer | None:
        opened = _opened(self._paths[number])
        if opened is None:
            self.present[number] = False
            return None
        file, status = opened
        try:
            return read_at(file, status.st_size, 0)
        finally:
            os.close(file)


class FileSink:
    """One chunk that is a file, replaced by rename.

    Parameters
    ----------
    path
        Path of the file; its directory is made when it does not exist.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "c", "0")
    >>> FileSink(path).set(b"abc")
    >>> path.read_bytes()
    b'abc'
    """

    __slots__ = ("_path",)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)

    def set(self, data: Buffer, /) -> None:
        """Write a new file beside the old one and rename it.

        Parameters
        ----------
        data
            Encoded bytes.
        """
        folder, name = os.path.split(self._path)
        temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex}.partial")
        try:
            file = os.open(temporary, NEW, MODE)
        except FileNotFoundError:
            os.makedirs(folder, exist_ok=True)
            file = os.open(temporary, NEW, MODE)
        try:
            try:
                _write_all(file, memoryview(data).cast("B"))
            finally:
                os.close(file)
            put_in_place(temporary, self._path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def delete(self) -> None:
        """Remove the file, or the directory that is in its place; it may be missing."""
        with contextlib.suppress(FileNotFoundError):
            try:
                os.unlink(self._path)
            except (IsADirectoryError, PermissionError):
                # Some systems say "not permitted" for a directory.
                if not os.path.isdir(self._path):
                    raise
                shutil.rmtree(self._path)


def _write_all(file: int, view: memoryview) -> None:
    while view:
        view = view[os.write(file, view) :]
