"""Chunks that are files of the local file system.

Reading keeps one descriptor open from the first range to ``close``, so that the index and the inner chunks of
a shard come from one file even when a writer replaces it in between. A range is never longer than the
file, whatever a damaged index claims. A path that leads nowhere, a directory, or a file where a directory
should be is a missing chunk, as in zarr.

Writing goes to a temporary name in the same directory and is then renamed, so that no reader ever sees half
a chunk. Nothing is flushed to the disk: after a power cut the last chunks may be missing or old.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import uuid
from collections.abc import Buffer, Sequence
from typing import Final

from chunkwright_store.sources import ByteRange, ByteSuffix

__all__ = ("FileSink", "FileSource")

MISSING: Final = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
BINARY: Final = getattr(os, "O_BINARY", 0)
OLD: Final = os.O_RDONLY | BINARY
NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY


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
    >>> source.get_ranges([(0, 2), ByteSuffix(1)])
    [b'ab', b'f']
    >>> source.close()
    """

    __slots__ = ("_file", "_missing", "_path", "_size")

    max_gap = 64 << 10
    """To read more than this for nothing takes longer than another call of the system."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._file = -1
        self._size = 0
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
        try:
            file = os.open(self._path, OLD)
        except MISSING:
            self._missing = True
            return False
        status = os.fstat(file)
        if stat.S_ISDIR(status.st_mode):
            os.close(file)
            self._missing = True
            return False
        self._file, self._size = file, status.st_size
        return True

    def _read(self, wanted: ByteRange) -> bytes:
        if wanted is None:
            start, stop = 0, self._size
        elif isinstance(wanted, ByteSuffix):
            start, stop = max(0, self._size - wanted.length), self._size
        else:
            start, stop = wanted[0], min(wanted[1], self._size)
        if start >= stop:
            return b""
        data = _read_at(self._file, stop - start, start)
        if len(data) == stop - start:
            return data
        return _read_on(self._file, data, stop, start)


def _read_on(file: int, data: bytes, stop: int, start: int) -> bytes:
    """Read what one call of the system left out: it returns no more than 2 GiB at a time."""
    parts = [data]
    start += len(data)
    while start < stop and parts[-1]:
        parts.append(_read_at(file, stop - start, start))
        start += len(parts[-1])
    return b"".join(parts)


if hasattr(os, "pread"):
    _read_at = os.pread
else:

    def _read_at(file: int, length: int, start: int) -> bytes:
        os.lseek(file, start, os.SEEK_SET)
        return os.read(file, length)


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
            file = os.open(temporary, NEW)
        except FileNotFoundError:
            os.makedirs(folder, exist_ok=True)
            file = os.open(temporary, NEW)
        try:
            try:
                _write_all(file, memoryview(data).cast("B"))
            finally:
                os.close(file)
            os.replace(temporary, self._path)
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
