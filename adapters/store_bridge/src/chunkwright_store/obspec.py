"""Chunks of a store that follows obspec, such as obstore's: neither package is imported here.

Of obspec's protocols these are used: ``get``, ``get_ranges``, ``put`` and ``delete``, and their asynchronous
twins. Ranges of one chunk go to the store in one call, which reads them concurrently and merges close ones.

A store says that a key is missing with ``FileNotFoundError``; anything else it raises passes through, also the
error for a range that begins beyond the end. Objects have versions, but ranges cannot be asked for by
version in one call, so a shard that is replaced between the reading of its index and of its inner
chunks may be read from both versions.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Buffer, Sequence
from typing import Any

from chunkwright_store.sources import ByteRange, ByteSuffix

__all__ = ("AsyncObspecSink", "AsyncObspecSource", "ObspecSink", "ObspecSource")


class ObspecSource:
    """One chunk of an obspec store, read synchronously.

    Parameters
    ----------
    store
        Object with ``get`` and ``get_ranges``.
    path
        Which chunk.

    Examples
    --------
    >>> from obstore.store import MemoryStore
    >>> store = MemoryStore()
    >>> _ = store.put("c/0", b"abcdef")
    >>> [bytes(part) for part in ObspecSource(store, "c/0").get_ranges([(0, 2), (4, 6), ByteSuffix(1)])]
    [b'ab', b'ef', b'f']
    """

    __slots__ = ("_path", "_store")

    def __init__(self, store: Any, path: str) -> None:
        self._store = store
        self._path = path

    def get_ranges(self, ranges: Sequence[ByteRange], /) -> list[Buffer | None]:
        """Read ranges with one call, and a suffix or the whole chunk with one call each.

        Parameters
        ----------
        ranges
            What to read.

        Returns
        -------
        list of Buffer or None
            One per range.
        """
        answers: list[Buffer | None] = [None] * len(ranges)
        try:
            for position, options in _alone(ranges):
                answers[position] = self._store.get(self._path, options=options).buffer()
            positions, starts, ends = _columns(ranges)
            if positions:
                parts = self._store.get_ranges(self._path, starts=starts, ends=ends)
                for position, part in zip(positions, parts, strict=True):
                    answers[position] = part
        except FileNotFoundError:
            return [None] * len(ranges)
        return answers


class AsyncObspecSource:
    """One chunk of an obspec store, read on an event loop.

    Parameters
    ----------
    store
        Object with ``get_async`` and ``get_ranges_async``.
    path
        Which chunk.

    Examples
    --------
    >>> import asyncio
    >>> from obstore.store import MemoryStore
    >>> store = MemoryStore()
    >>> _ = store.put("c/0", b"abcdef")
    >>> [bytes(part) for part in asyncio.run(AsyncObspecSource(store, "c/0").get_ranges([(0, 2), None]))]
    [b'ab', b'abcdef']
    """

    __slots__ = ("_path", "_store")

    def __init__(self, store: Any, path: str) -> None:
        self._store = store
        self._path = path

    async def get_ranges(self, ranges: Sequence[ByteRange], /) -> list[Buffer | None]:
        """Read ranges with one call, and a suffix or the whole chunk with one call each.

        Parameters
        ----------
        ranges
            What to read.

        Returns
        -------
        list of Buffer or None
            One per range.
        """
        answers: list[Buffer | None] = [None] * len(ranges)
        try:
            for position, options in _alone(ranges):
                result = await self._store.get_async(self._path, options=options)
                answers[position] = await result.buffer_async()
            positions, starts, ends = _columns(ranges)
            if positions:
                parts = await self._store.get_ranges_async(self._path, starts=starts, ends=ends)
                for position, part in zip(positions, parts, strict=True):
                    answers[position] = part
        except FileNotFoundError:
            return [None] * len(ranges)
        return answers

    async def stream_ranges(self, ranges: Sequence[ByteRange], /) -> AsyncIterator[list[tuple[int, Buffer | None]]]:
        """Read all ranges with one call of the store.

        Parameters
        ----------
        ranges
            What to read.

        Yields
        ------
        list of tuple
            All positions, each with its bytes or None.
        """
        yield list(enumerate(await self.get_ranges(ranges)))


class ObspecSink:
    """One chunk of an obspec store, written synchronously.

    Parameters
    ----------
    store
        Object with ``put`` and ``delete``.
    path
        Which chunk.

    Examples
    --------
    >>> from obstore.store import MemoryStore
    >>> store = MemoryStore()
    >>> ObspecSink(store, "c/0").set(b"abc")
    >>> bytes(store.get("c/0").buffer())
    b'abc'
    """

    __slots__ = ("_path", "_store")

    def __init__(self, store: Any, path: str) -> None:
        self._store = store
        self._path = path

    def set(self, data: Buffer, /) -> None:
        """Put the object.

        Parameters
        ----------
        data
            Encoded bytes.
        """
        self._store.put(self._path, data)

    def delete(self) -> None:
        """Delete the object; some stores raise when it is missing, which is ignored."""
        with contextlib.suppress(FileNotFoundError):
            self._store.delete(self._path)


class AsyncObspecSink:
    """One chunk of an obspec store, written on an event loop.

    Parameters
    ----------
    store
        Object with ``put_async`` and ``delete_async``.
    path
        Which chunk.

    Examples
    --------
    >>> import asyncio
    >>> from obstore.store import MemoryStore
    >>> store = MemoryStore()
    >>> asyncio.run(AsyncObspecSink(store, "c/0").set(b"abc"))
    >>> bytes(store.get("c/0").buffer())
    b'abc'
    """

    __slots__ = ("_path", "_store")

    def __init__(self, store: Any, path: str) -> None:
        self._store = store
        self._path = path

    async def set(self, data: Buffer, /) -> None:
        """Put the object.

        Parameters
        ----------
        data
            Encoded bytes.
        """
        await self._store.put_async(self._path, data)

    async def delete(self) -> None:
        """Delete the object; some stores raise when it is missing, which is ignored."""
        with contextlib.suppress(FileNotFoundError):
            await self._store.delete_async(self._path)


def _alone(ranges: Sequence[ByteRange]) -> list[tuple[int, dict[str, Any] | None]]:
    """Positions that need a call of their own, with the options of that call."""
    alone: list[tuple[int, dict[str, Any] | None]] = []
    for position, wanted in enumerate(ranges):
        if wanted is None:
            alone.append((position, None))
        elif isinstance(wanted, ByteSuffix):
            alone.append((position, {"range": {"suffix": wanted.length}}))
    return alone


def _columns(ranges: Sequence[ByteRange]) -> tuple[list[int], list[int], list[int]]:
    """Positions, starts and ends of the ranges that have both."""
    positions = [position for position, wanted in enumerate(ranges) if isinstance(wanted, tuple)]
    bounds = [wanted for wanted in ranges if isinstance(wanted, tuple)]
    return positions, [start for start, _ in bounds], [stop for _, stop in bounds]
