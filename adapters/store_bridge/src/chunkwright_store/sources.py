"""Where encoded bytes come from and go to: two small protocols, each synchronous and asynchronous.

A *source* is one chunk of a store, seen by one read: the driver makes no promise to any other read, and a
source need not be safe to share. A *sink* is the same chunk, seen by one write. Everything that a driver
wants from a store is ``get_ranges``; the rest is optional and looked for by name:

``whole()``
    The source has all bytes in memory already and returns the same object every time. The driver then cuts
    ranges itself, without an object per range, and a read never mixes two versions of a shard.
``close()``
    The source holds something between calls (a file descriptor), so that index and inner chunks of a
    shard come from one version of it. The driver closes it when the chunk needs nothing more.
``max_gap``
    Ranges further apart than so many bytes are not worth merging for this synchronous source.
``is_scratch``
    True says that nobody else needs the bytes that a source returned, so that a write may change them.
``version()``
    Says of which version the bytes are, so that the index of a shard need not be read again; anything that can be
    compared and hashed, None when nobody knows.
``stream_ranges(ranges)``
    An asynchronous source that would rather be asked for all ranges of a chunk at once.

A range is ``(start, stop)`` with the end excluded, :class:`ByteSuffix`, or None for all bytes. Answers may be
shorter than what was asked for (the plan notices) and are None when the chunk is missing. Errors of a store
are its own and pass through every driver unwrapped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Buffer, Callable, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, runtime_checkable

import attrs
from numpy.typing import NDArray

__all__ = (
    "AsyncByteSink",
    "AsyncByteSource",
    "AsyncFunctionSource",
    "Batch",
    "ByteRange",
    "ByteSuffix",
    "FunctionSource",
    "MappingSink",
    "MappingSource",
    "StreamingByteSource",
    "SyncByteSink",
    "SyncByteSource",
    "closing",
    "cut",
)


@attrs.frozen
class ByteSuffix:
    """The last bytes of a chunk.

    Parameters
    ----------
    length
        How many bytes.

    Examples
    --------
    >>> cut(b"abcdef", ByteSuffix(2)).tobytes()
    b'ef'
    """

    length: int


type ByteRange = tuple[int, int] | ByteSuffix | None


def cut(data: Buffer, wanted: ByteRange) -> memoryview:
    """Return a range of bytes that are in memory, without a copy.

    Parameters
    ----------
    data
        C-contiguous bytes.
    wanted
        The range; what lies beyond the end is left out.

    Returns
    -------
    memoryview
        Of format ``B``.

    Examples
    --------
    >>> cut(b"abcdef", (4, 9)).tobytes()
    b'ef'
    """
    view = memoryview(data).cast("B")
    if wanted is None:
        return view
    if isinstance(wanted, ByteSuffix):
        return view[max(0, len(view) - wanted.length) :]
    return view[wanted[0] : wanted[1]]


@asynccontextmanager
async def closing(answers: AsyncIterator[Any]) -> AsyncIterator[None]:
    """Close an asynchronous iterator at the end, if it can be closed: its requests would go on otherwise.

    Parameters
    ----------
    answers
        For instance what ``stream_ranges`` returned.

    Yields
    ------
    None
        While the iterator is in use.
    """
    try:
        yield
    finally:
        close = getattr(answers, "aclose", None)
        if close is not None:
            await close()


@runtime_checkable
class SyncByteSource(Protocol):
    """One chunk that can be read without an event loop."""

    def get_ranges(self, ranges: Sequence[ByteRange], /) -> Sequence[Buffer | None]:
        """Read ranges of the chunk.

        Parameters
        ----------
        ranges
            What to read.

        Returns
        -------
        sequence of Buffer or None
            One per range, in order; None when the chunk is missing.
        """


@runtime_checkable
class AsyncByteSource(Protocol):
    """One chunk that is read on an event loop."""

    async def get_ranges(self, ranges: Sequence[ByteRange], /) -> Sequence[Buffer | None]:
        """Read ranges of the chunk.

        Parameters
        ----------
        ranges
            What to read.

        Returns
        -------
        sequence of Buffer or None
            One per range, in order; None when the chunk is missing.
        """


@runtime_checkable
class StreamingByteSource(AsyncByteSource, Protocol):
    """One chunk of a store that merges ranges, or reads them concurrently, by itself."""

    def stream_ranges(self, ranges: Sequence[ByteRange], /) -> AsyncIterator[Sequence[tuple[int, Buffer | None]]]:
        """Read ranges of the chunk, in whatever order the store answers.

        Parameters
        ----------
        ranges
            What to read.

        Yields
        ------
        sequence of tuple
            Positions in ``ranges``, each with its bytes or None; every position comes once.
        """


@runtime_checkable
class SyncByteSink(Protocol):
    """One chunk that can be written without an event loop."""

    def set(self, data: Buffer, /) -> None:
        """Replace the chunk, entirely or not at all.

        Parameters
        ----------
        data
            Encoded bytes, which the store may keep.
        """

    def delete(self) -> None:
        """Remove the chunk; it may be missing."""


class Batch(Protocol):
    """All chunks of a write at once, where that is better than one after the other; without an event loop."""

    def rewrite(self, work: Any, value: NDArray[Any], /) -> None:
        """Encode chunks over what they hold, and replace them, each entirely or not at all.

        Parameters
        ----------
        work
            A :class:`~chunkwright.write_plan.WriteWork`, whose existing bytes are not there yet: of rows that are not
            missing they have to be read first, if there are any.
        value
            The caller's array.
        """


@runtime_checkable
class AsyncByteSink(Protocol):
    """One chunk that is written on an event loop."""

    async def set(self, data: Buffer, /) -> None:
        """Replace the chunk, entirely or not at all.

        Parameters
        ----------
        data
            Encoded bytes, which the store may keep.
        """

    async def delete(self) -> None:
        """Remove the chunk; it may be missing."""


class MappingSource:
    """One chunk of a mapping from keys to bytes.

    The bytes are taken from the mapping once, so all ranges are of one version, as long as the mapping
    replaces values rather than changing them.

    Parameters
    ----------
    mapping
        Keys to bytes-like objects.
    key
        Which chunk.

    Examples
    --------
    >>> source = MappingSource({"c/0": b"abcdef"}, "c/0")
    >>> [bytes(part) for part in source.get_ranges([(0, 2), ByteSuffix(1)])]
    [b'ab', b'f']
    """

    __slots__ = ("_content", "_key", "_mapping")

    def __init__(self, mapping: Mapping[str, Buffer], key: str) -> None:
        self._mapping: Mapping[str, Buffer] | None = mapping
        self._key = key
        self._content: Buffer | None = None

    def whole(self) -> Buffer | None:
        """Return all bytes, the same object at every call.

        Returns
        -------
        Buffer or None
            None when the key is missing.
        """
        if self._mapping is not None:
            self._content = self._mapping.get(self._key)
            self._mapping = None
        return self._content

    def get_ranges(self, ranges: Sequence[ByteRange], /) -> list[Buffer | None]:
        """Cut ranges without a copy.

        Parameters
        ----------
        ranges
            What to read.

        Returns
        -------
        list of Buffer or None
            One per range.
        """
        content = self.whole()
        return [None if content is None else cut(content, wanted) for wanted in ranges]


class MappingSink:
    """One chunk of a mutable mapping from keys to bytes.

    Parameters
    ----------
    mapping
        Keys to bytes-like objects.
    key
        Which chunk.

    Examples
    --------
    >>> stored = {}
    >>> MappingSink(stored, "c/0").set(b"abc")
    >>> stored
    {'c/0': b'abc'}
    """

    __slots__ = ("_key", "_mapping")

    def __init__(self, mapping: MutableMapping[str, Buffer], key: str) -> None:
        self._mapping = mapping
        self._key = key

    def set(self, data: Buffer, /) -> None:
        """Put the bytes into the mapping, without a copy.

        Parameters
        ----------
        data
            Encoded bytes.
        """
        self._mapping[self._key] = data

    def delete(self) -> None:
        """Remove the key if it is there."""
        self._mapping.pop(self._key, None)


class FunctionSource:
    """One chunk that a function of one's own reads.

    Parameters
    ----------
    read
        Called with a range; returns its bytes, or None when the chunk is missing.

    Examples
    --------
    >>> source = FunctionSource(lambda wanted: cut(b"abcdef", wanted))
    >>> bytes(source.get_ranges([(1, 3)])[0])
    b'bc'
    """

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[ByteRange], Buffer | None]) -> None:
        self._read = read

    def get_ranges(self, ranges: Sequence[ByteRange], /) -> list[Buffer | None]:
        """Call the function for each range.

        Parameters
        ----------
        ranges
            What to read.

        Returns
        -------
        list of Buffer or None
            One per range.
        """
        return [self._read(wanted) for wanted in ranges]


class AsyncFunctionSource:
    """One chunk that an asynchronous function of one's own reads.

    Parameters
    ----------
    read
        Awaited with a range; returns its bytes, or None when the chunk is missing.

    Examples
    --------
    >>> import asyncio
    >>> async def read(wanted):
    ...     return cut(b"abcdef", wanted)
    >>> bytes(asyncio.run(AsyncFunctionSource(read).get_ranges([(1, 3)]))[0])
    b'bc'
    """

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[ByteRange], Awaitable[Buffer | None]]) -> None:
        self._read = read

    async def get_ranges(self, ranges: Sequence[ByteRange], /) -> list[Buffer | None]:
        """Await the function for each range, one after the other.

        The driver asks for one range a call, so ranges are read concurrently all the same.

        Parameters
        ----------
        ranges
            What to read.

        Returns
        -------
        list of Buffer or None
            One per range.
        """
        return [await self._read(wanted) for wanted in ranges]
