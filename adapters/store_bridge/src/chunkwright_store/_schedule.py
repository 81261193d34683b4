"""Which of a plan's needs to fetch next.

Depth first: what chunks that were begun still need (the inner chunks of a shard whose index is known) comes
before anything of chunks that were not, so that few chunks are under way at a time, however many there are.
The needs of a plan that nobody has fed are those of chunks not begun; all later ones belong to begun chunks.
"""

from __future__ import annotations

from collections.abc import Buffer, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import MISSING, Buffers
from chunkwright.needs import NEED, RANGE, SUFFIX, WHOLE, Fetches
from chunkwright_store.sources import ByteRange, ByteSuffix, cut

__all__ = ("Schedule", "answers", "from_memory", "range_of")

NOTHING = np.empty(0, NEED)


class Schedule:
    """The needs of one plan, waiting to be fetched. Belongs to the thread that the plan belongs to."""

    def __init__(self, plan: Any, *, whole_nbytes: int) -> None:
        self._plan = plan
        self._whole = whole_nbytes
        self._seen = -1
        self._fresh = NOTHING
        self._begun: list[NDArray[Any]] = []
        self._fresh = self._unseen()
        self._last_fresh = self._seen

    def refresh(self) -> None:
        """Look at what the plan asks for now, after it was fed."""
        needs = self._unseen()
        if len(needs):
            self._begun.append(needs)

    def _unseen(self) -> NDArray[Any]:
        needs: NDArray[Any] = self._plan.needs
        if not len(needs):
            return NOTHING
        ids = needs["id"]
        if self._seen >= 0:
            needs = needs[ids > self._seen]
        self._seen = max(self._seen, int(ids.max()))
        return needs

    @property
    def waiting(self) -> bool:
        """Whether anything is left to fetch."""
        return bool(self._begun) or len(self._fresh) > 0

    def is_first(self, needs: NDArray[Any]) -> bool:
        """Whether these needs, which were returned together, are the first of their chunks."""
        return len(needs) > 0 and bool(needs["id"][0] <= self._last_fresh)

    @property
    def unbegun(self) -> int:
        """Needs of chunks that were not begun."""
        return len(self._fresh)

    @property
    def begun(self) -> NDArray[np.int64]:
        """Chunks that were begun and still need something."""
        if not self._begun:
            return np.empty(0, np.int64)
        return np.concatenate([needs["chunk"] for needs in self._begun])

    def nbytes(self, needs: NDArray[Any]) -> NDArray[np.int64]:
        """Bytes of each need; those of a whole chunk are a guess."""
        return self._nbytes(needs["kind"], needs["start"], needs["stop"])

    def nbytes_of(self, fetches: Fetches) -> NDArray[np.int64]:
        """Bytes of each request; those of a whole chunk are a guess."""
        return self._nbytes(fetches.kind, fetches.start, fetches.stop)

    def _nbytes(self, kind: NDArray[np.int64], start: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(kind == RANGE, stop - start, np.where(kind == SUFFIX, stop, self._whole))

    def next(self, max_bytes: int, max_partial: int | None = None) -> tuple[NDArray[Any], bool]:
        """Return what to fetch now, at least one need if any is left, and whether its chunks are fresh.

        ``max_partial`` is the most chunks to begin of which less than everything is fetched.
        """
        if self._begun:
            needs, rest = self._split(self._begun[0], max_bytes, None)
            if len(rest):
                self._begun[0] = rest
            else:
                del self._begun[0]
            return needs, False
        needs, self._fresh = self._split(self._fresh, max_bytes, max_partial)
        return needs, True

    def _split(self, needs: NDArray[Any], max_bytes: int, max_partial: int | None) -> tuple[NDArray[Any], NDArray[Any]]:
        if len(needs) <= 1:
            return needs, NOTHING
        count = _within(self.nbytes(needs), max_bytes)
        if max_partial is not None:
            count = min(count, _within(needs["kind"] != WHOLE, max_partial))
        return needs[:count], needs[count:]


def _within(sizes: NDArray[Any], limit: int) -> int:
    """How many of the first rows stay within a limit together, at least one."""
    total = np.cumsum(sizes)
    return len(total) if total[-1] <= limit else max(1, int(np.searchsorted(total, limit, "right")))


def range_of(kind: int, start: int, stop: int) -> ByteRange:
    """A need as a source understands it."""
    if kind == RANGE:
        return (start, stop)
    return ByteSuffix(stop) if kind == SUFFIX else None


def answers(
    fetches: Fetches, numbers: Sequence[int], fetched: Sequence[Buffer | None]
) -> tuple[NDArray[np.int64], Buffers | Sequence[Buffer | None]]:
    """What requests brought, as ids and rows for ``plan.feed``; nothing is copied."""
    first = fetches.bounds[numbers]
    counts = fetches.bounds[np.asarray(numbers) + 1] - first
    if (counts == 1).all() and not (fetches.offset[first] > 0).any():
        return fetches.ids[first], fetched
    owner = np.repeat(np.arange(len(numbers)), counts)
    ends = np.cumsum(counts)
    rows = np.arange(ends[-1]) + np.repeat(first - (ends - counts), counts)
    offset, length = fetches.offset[rows], fetches.length[rows]
    size = np.array([-1 if data is None else memoryview(data).nbytes for data in fetched])[owner]
    length = np.clip(size - offset, 0, np.where(length < 0, size, length))
    owners = tuple(b"" if data is None else data for data in fetched)
    return fetches.ids[rows], Buffers(owners, owner, np.where(size < 0, MISSING, offset), length)


def from_memory(
    needs: NDArray[Any], sources: Sequence[Any]
) -> tuple[NDArray[np.int64], Buffers | Sequence[Buffer | None]]:
    """Answer needs from sources that have all bytes in memory: no request, no copy, no object per range."""
    if len(needs) == 1:
        _, chunk, kind, start, stop = needs[0].item()
        content = sources[chunk].whole()
        return needs["id"], [None if content is None else cut(content, range_of(kind, start, stop))]
    kind = needs["kind"]
    if (kind == WHOLE).all():
        # One whole chunk per need; the columns of Buffers would only say so at length.
        return needs["id"], [sources[chunk].whole() for chunk in needs["chunk"].tolist()]
    chunks, owner = np.unique(needs["chunk"], return_inverse=True)
    contents = [sources[chunk].whole() for chunk in chunks.tolist()]
    size = np.array([-1 if data is None else memoryview(data).nbytes for data in contents], np.int64)[owner]
    offset = np.select([kind == RANGE, kind == SUFFIX], [needs["start"], np.maximum(size - needs["stop"], 0)], 0)
    wanted = np.select([kind == RANGE, kind == SUFFIX], [needs["stop"] - needs["start"], needs["stop"]], size)
    owners = tuple(b"" if data is None else data for data in contents)
    # A range may begin beyond the end: it is empty then, and so that it lies within its owner, at the end.
    offset = np.minimum(offset, np.maximum(size, 0))
    length = np.clip(np.maximum(size, 0) - offset, 0, wanted)
    return needs["id"], Buffers(owners, owner.astype(np.int64), np.where(size < 0, MISSING, offset), length)
