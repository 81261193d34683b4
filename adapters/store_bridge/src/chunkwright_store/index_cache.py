"""Indexes of shards, kept from one call to the next where it is known that they are still the same.

A source that can say of which version its bytes are has a method ``version()``; what it returns can be compared and
hashed, and is None where nobody knows. The first range of a chunk that is asked for is the index of a shard, and its
encoded bytes are kept under version and range, so what is found is what the source would have returned. What the
index says is checked as ever when it is used.

There are two generations: what is used moves to the young one, and when that holds half of what may be kept, the old
one is dropped and the young one takes its place. Nobody waits for the lock, which is held for a moment only, and which
a forked child may find taken by a thread that it does not have: whoever finds it taken asks the source.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Buffer, Hashable
from typing import Any, Final

from chunkwright_store.sources import ByteRange

__all__ = ("INDEXES", "IndexCache", "file_version")

COARSE: Final = 2_000_000_000
"""Nanoseconds that times of files may be apart and look the same."""

OVERHEAD: Final = 400
"""Bytes that what is kept takes besides the bytes themselves, about."""


class IndexCache:
    """Encoded indexes by version and range.

    Examples
    --------
    >>> from chunkwright_store import ByteSuffix
    >>> class Versioned:
    ...     def version(self):
    ...         return "v1"
    >>> cache, source = IndexCache(), Versioned()
    >>> key = cache.key(source, ByteSuffix(4), 1 << 20)
    >>> cache.find(key, 1 << 20) is None
    True
    >>> cache.keep(key, b"abcd", 1 << 20)
    >>> cache.find(key, 1 << 20)
    b'abcd'
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._young: dict[Hashable, bytes] = {}
        self._old: dict[Hashable, bytes] = {}
        self._young_nbytes = 0
        self._old_nbytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes that are kept, about."""
        return self._young_nbytes + self._old_nbytes

    def key(self, source: Any, wanted: ByteRange, limit: int) -> Hashable | None:
        """Say under what the index of a shard is kept. To be asked before the bytes are.

        Parameters
        ----------
        source
            Where the shard is.
        wanted
            The bytes of its index.
        limit
            Most bytes to be kept; 0 drops all that are.

        Returns
        -------
        Hashable or None
            None when it is not kept.
        """
        if limit <= 0:
            if self.nbytes:
                self.clear()
            return None
        version = getattr(source, "version", None)
        found = None if version is None or wanted is None else version()
        return None if found is None else (found, wanted)

    def find(self, key: Hashable | None, limit: int) -> bytes | None:
        """Return what is kept.

        Parameters
        ----------
        key
            What :meth:`key` returned.
        limit
            Most bytes to be kept.

        Returns
        -------
        bytes or None
            None when there is nothing.
        """
        if key is None or not self._lock.acquire(blocking=False):
            return None
        try:
            data = self._young.get(key)
            if data is None and (data := self._old.pop(key, None)) is not None:
                self._old_nbytes -= len(data) + OVERHEAD
                self._put(key, data, limit)
            return data
        finally:
            self._lock.release()

    def keep(self, key: Hashable | None, data: Buffer | None, limit: int) -> None:
        """Keep a copy of an index.

        Parameters
        ----------
        key
            What :meth:`key` returned before the bytes were read.
        data
            The bytes; None when there is no such shard.
        limit
            Most bytes to be kept.
        """
        if key is None or data is None or not self._lock.acquire(blocking=False):
            return
        try:
            if key not in self._young:
                self._put(key, bytes(data), limit)
        finally:
            self._lock.release()

    def clear(self) -> None:
        """Drop all that is kept."""
        if self._lock.acquire(blocking=False):
            try:
                self._young, self._old, self._young_nbytes, self._old_nbytes = {}, {}, 0, 0
            finally:
                self._lock.release()

    def _put(self, key: Hashable, data: bytes, limit: int) -> None:
        nbytes, half = len(data) + OVERHEAD, limit // 2
        if self._young_nbytes + nbytes > half:
            self._old, self._old_nbytes = self._young, self._young_nbytes
            self._young, self._young_nbytes = {}, 0
        if self._old_nbytes > half:
            # The limit was larger before.
            self._old, self._old_nbytes = {}, 0
        if nbytes <= half:
            self._young[key] = data
            self._young_nbytes += nbytes


INDEXES: Final = IndexCache()
"""Those of this process."""


def file_version(status: os.stat_result) -> Hashable | None:
    """Say what tells a file, as it is, from what it was or will be.

    Parameters
    ----------
    status
        What the system said of the file, before its bytes are read.

    Returns
    -------
    Hashable or None
        None when it was changed so recently that another change might not show.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     file_version(os.fstat(file.fileno())) is None
    True
    """
    if os.name != "posix":
        # What other systems say of files is not known to be enough.
        return None
    if max(status.st_mtime_ns, status.st_ctime_ns) + COARSE > time.time_ns():
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
