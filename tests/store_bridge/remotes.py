"""Stores that are read on an event loop, and jobs about them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from obstore.store import MemoryStore

from chunkwright_store import AsyncObspecSink, AsyncObspecSource, ByteRange, ReadJob, WriteJob
from chunkwright_store.sources import cut
from tests.store_bridge.volumes import Volume

type Hook = Callable[[str, ByteRange], Awaitable[None]]


async def nothing(key: str, wanted: ByteRange) -> None:
    """What a store does before it answers, by default."""
    await asyncio.sleep(0)


class Remote:
    """A store that answers one range at a time, after awaiting a hook, and keeps count."""

    def __init__(self, stored: dict[str, Any], *, hook: Hook = nothing, streams: bool = False) -> None:
        self.stored = dict(stored)
        self.hook = hook
        self.streams = streams
        self.requests: list[tuple[str, ByteRange]] = []
        self.calls: list[tuple[str, int]] = []
        self.under_way = 0
        self.most = 0
        self.cancelled = 0

    async def answer(self, key: str, wanted: ByteRange) -> Any:
        self.requests.append((key, wanted))
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await self.hook(key, wanted)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.under_way -= 1
        data = self.stored.get(key)
        return None if data is None else cut(data, wanted)

    def source(self, key: str) -> Any:
        return StreamingSource(self, key) if self.streams else RemoteSource(self, key)

    def sink(self, key: str) -> Any:
        return RemoteSink(self, key)


class RemoteSource:
    def __init__(self, remote: Remote, key: str) -> None:
        self._remote, self._key = remote, key

    async def get_ranges(self, ranges: Sequence[ByteRange]) -> list[Any]:
        self._remote.calls.append((self._key, len(ranges)))
        return [await self._remote.answer(self._key, wanted) for wanted in ranges]


class StreamingSource(RemoteSource):
    async def stream_ranges(self, ranges: Sequence[ByteRange]) -> AsyncIterator[list[tuple[int, Any]]]:
        """Answers the last range first."""
        self._remote.calls.append((self._key, len(ranges)))
        for at in reversed(range(len(ranges))):
            yield [(at, await self._remote.answer(self._key, ranges[at]))]


class RemoteSink:
    def __init__(self, remote: Remote, key: str) -> None:
        self._remote, self._key = remote, key

    async def set(self, data: Any) -> None:
        await self._remote.answer(self._key, None)
        self._remote.stored[self._key] = data

    async def delete(self) -> None:
        await self._remote.answer(self._key, None)
        self._remote.stored.pop(self._key, None)


class Objects:
    """An obspec store."""

    def __init__(self, stored: dict[str, Any]) -> None:
        self.store = MemoryStore()
        for key, data in stored.items():
            self.store.put(key, data)

    def source(self, key: str) -> Any:
        return AsyncObspecSource(self.store, key)

    def sink(self, key: str) -> Any:
        return AsyncObspecSink(self.store, key)

    @property
    def stored(self) -> dict[str, Any]:
        keys = [item["path"] for item in self.store.list().collect()]
        return {key: self.store.get(key).buffer() for key in keys}


def read_job(made: Volume, box: Any, held: Any, **options: Any) -> ReadJob:
    entries, keys = made.entries(box)
    plan = made.prepared.plan_read(entries)
    return ReadJob(plan=plan, sources=[held.source(key) for key in keys], keys=keys, **options)


def write_job(made: Volume, box: Any, held: Any, **options: Any) -> WriteJob:
    entries, keys = made.entries(box)
    plan = made.prepared.plan_write(entries)
    sources, sinks = [held.source(key) for key in keys], [held.sink(key) for key in keys]
    return WriteJob(plan=plan, sources=sources, sinks=sinks, keys=keys, lock_keys=keys, **options)
