"""Stores that count, and stores that change what is read."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Self

from zarr.storage import WrapperStore


class Counting(WrapperStore):
    """Counts requests for chunks and the bytes that they returned, synchronous or not."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.reset()

    def reset(self) -> None:
        self.requests = 0
        self.nbytes = 0

    def _with_store(self, store: Any) -> Self:
        return type(self)(store)

    def _counted(self, key: str, buffer: Any) -> Any:
        if buffer is not None and not key.endswith(("zarr.json", ".zarray", ".zattrs")):
            self.requests += 1
            self.nbytes += len(buffer)
        return buffer

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        return self._counted(key, await self._store.get(key, prototype, byte_range))

    def get_sync(self, key: str, *, prototype: Any = None, byte_range: Any = None) -> Any:
        return self._counted(key, self._store.get_sync(key, prototype=prototype, byte_range=byte_range))

    async def get_partial_values(self, prototype: Any, key_ranges: Iterable[tuple[str, Any]]) -> list[Any]:
        wanted = list(key_ranges)
        buffers = await self._store.get_partial_values(prototype, wanted)
        return [self._counted(key, buffer) for (key, _), buffer in zip(wanted, buffers, strict=True)]

    async def get_ranges(self, key: str, byte_ranges: Sequence[Any], **options: Any) -> AsyncIterator[Any]:
        """The base class's own, over :meth:`get`, so that what it coalesces is counted as it is requested."""
        async for batch in super(WrapperStore, self).get_ranges(key, byte_ranges, **options):
            yield batch

    def get_ranges_sync(self, key: str, byte_ranges: Sequence[Any], **options: Any) -> Any:
        return super(WrapperStore, self).get_ranges_sync(key, byte_ranges, **options)


class Gate(WrapperStore):
    """Holds up the next writer of a chunk, after it has read what was there, until it is let through.

    ``held`` is set while it waits; ``release`` lets it through. Both are threading events: the writer may be on
    any loop. Only the process that made the store is held up, and only one writer.
    """

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.held, self.release = threading.Event(), threading.Event()
        self._armed_in: int | None = None

    def _with_store(self, store: Any) -> Self:
        return type(self)(store)

    def arm(self) -> None:
        self._armed_in = os.getpid()

    async def set(self, key: str, value: Any) -> None:
        if self._armed_in == os.getpid():
            self._armed_in = None
            self.held.set()
            await asyncio.get_running_loop().run_in_executor(None, self.release.wait)
        await self._store.set(key, value)


class Inverting(WrapperStore):
    """Keeps every chunk with its bytes inverted, and overrides no more than ``get`` and ``set`` to do so."""

    def _with_store(self, store: Any) -> Self:
        return type(self)(store)

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        buffer = await self._store.get(key, prototype, byte_range)
        return buffer if buffer is None or key.endswith(".json") else _inverted(buffer)

    async def set(self, key: str, value: Any) -> None:
        await self._store.set(key, value if key.endswith(".json") else _inverted(value))


def _inverted(buffer: Any) -> Any:
    return type(buffer).from_bytes(bytes(255 - byte for byte in buffer.to_bytes()))
