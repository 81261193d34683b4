"""Memory for bytes that are read and soon decoded, used again instead of given back.

The system hands memory out in pages that it clears when they are first touched. For a chunk of some hundred kilobytes
that takes longer than to read it from the page cache, so a few megabytes are kept. A piece comes back by itself when
the last view of it is gone; nobody has to know.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ("MEMORY", "SMALLEST", "Memory")

SMALLEST = 64 << 10
"""The allocator of the interpreter keeps smaller pieces itself."""

LARGEST = 8 << 20
"""Larger pieces are not kept."""


class Memory:
    """Pieces of memory.

    Parameters
    ----------
    most
        Bytes that are kept at most.

    Examples
    --------
    >>> memory = Memory(1 << 20)
    >>> piece = memory.take(100_000)
    >>> piece.dtype, piece.shape
    (dtype('uint8'), (100000,))
    >>> del piece
    >>> memory.kept
    131072
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.forget()

    def forget(self) -> None:
        """Begin anew, as after a fork: another thread may have held the lock."""
        self._lock = threading.Lock()
        self._free: dict[int, list[bytearray]] = {}
        self._lent: dict[int, tuple[Any, bytearray]] = {}
        self.kept = 0

    def take(self, length: int) -> NDArray[np.uint8]:
        """Lend a piece; its contents are whatever was there before.

        Parameters
        ----------
        length
            Bytes.

        Returns
        -------
        NDArray
            uint8, shape ``(length,)``.
        """
        if not SMALLEST <= length <= LARGEST:
            return np.empty(length, np.uint8)
        size = 1 << (length - 1).bit_length()
        with self._lock:
            free = self._free.get(size)
            piece = free.pop() if free else None
            if piece is not None:
                self.kept -= size
        if piece is None:
            piece = bytearray(size)
        owner = np.frombuffer(piece, np.uint8)
        number = id(owner)
        # Views refer to the owner, whichever way they were made.
        self._lent[number] = weakref.ref(owner, lambda _: self._back(number)), piece
        return owner[:length]

    def _back(self, number: int) -> None:
        lent = self._lent.pop(number, None)
        # Called by the garbage collector, wherever it happens to run: this thread may hold the lock.
        if lent is None or not self._lock.acquire(blocking=False):
            return
        try:
            size = len(lent[1])
            if self.kept + size <= self._most:
                self._free.setdefault(size, []).append(lent[1])
                self.kept += size
        finally:
            self._lock.release()


MEMORY = Memory(32 << 20)
"""That of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=MEMORY.forget)
