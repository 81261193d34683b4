"""A store that answers each request late, as one across a network does, and counts what it was asked.

Only the asynchronous methods exist, so no pipeline takes a path around the latency. Requests are kept by call and by
kind, because the rounds of dependent requests that a call needs are those of the first kind (a whole object, or
the end of a shard), then those of ranges, then those of writes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from math import ceil
from typing import Any

from zarr.abc.store import RangeByteRequest, Store, SuffixByteRequest

__all__ = ("LatencyStore",)

FIRST, RANGE, CHANGE = "first", "range", "change"


class LatencyStore(Store):
    """Objects in a dict, each request for a chunk answered after ``latency`` seconds.

    Metadata is answered at once and not counted: every contender opens the array beforehand.
    """

    def __init__(self, objects: dict[str, Any], latency: float) -> None:
        super().__init__(read_only=False)
        self.objects = objects
        self.latency = latency
        self.forget()

    def forget(self) -> None:
        """Start counting anew."""
        self.calls: list[Counter[str]] = [Counter()]
        self.nbytes = 0

    def next_call(self) -> None:
        """Count the requests that follow as another call's."""
        self.calls.append(Counter())

    @property
    def requests(self) -> int:
        """How many requests there were."""
        return sum(call.total() for call in self.calls)

    def rounds(self, concurrency: int) -> int:
        """Return how many times the latency must pass when ``concurrency`` requests are under way at a time."""
        return sum(ceil(count / concurrency) for call in self.calls for count in call.values())

    async def _request(self, key: str, kind: str) -> None:
        if key.endswith("zarr.json"):
            return
        self.calls[-1][kind] += 1
        await asyncio.sleep(self.latency)

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        await self._request(key, RANGE if isinstance(byte_range, RangeByteRequest) else FIRST)
        found = self.objects.get(key)
        if found is None:
            return None
        buffer = found[_slice(byte_range, len(found))]
        if not key.endswith("zarr.json"):
            self.nbytes += len(buffer)
        # A view, as from a store in memory: what is measured is how long an answer takes, not how long a copy does.
        return prototype.buffer.from_buffer(buffer)

    async def get_partial_values(self, prototype: Any, key_ranges: Iterable[tuple[str, Any]]) -> list[Any]:
        return list(await asyncio.gather(*(self.get(key, prototype, wanted) for key, wanted in key_ranges)))

    async def set(self, key: str, value: Any) -> None:
        await self._request(key, CHANGE)
        self.objects[key] = value

    async def delete(self, key: str) -> None:
        await self._request(key, CHANGE)
        self.objects.pop(key, None)

    async def exists(self, key: str) -> bool:
        return key in self.objects

    async def list(self) -> AsyncIterator[str]:
        for key in tuple(self.objects):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for key in tuple(self.objects):
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        below = f"{prefix}/" if prefix else ""
        for name in {key[len(below) :].split("/", 1)[0] for key in tuple(self.objects) if key.startswith(below)}:
            yield name

    @property
    def supports_writes(self) -> bool:
        return True

    @property
    def supports_deletes(self) -> bool:
        return True

    @property
    def supports_listing(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]  # as zarr's own stores


def _slice(byte_range: Any, length: int) -> slice:
    """The part of an object that a request asks for."""
    if byte_range is None:
        return slice(None)
    if isinstance(byte_range, SuffixByteRequest):
        return slice(max(length - byte_range.suffix, 0), None)
    if isinstance(byte_range, RangeByteRequest):
        return slice(byte_range.start, byte_range.end)
    return slice(byte_range.offset, None)
