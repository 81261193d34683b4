"""Partial writing without IO: a plan says which existing bytes it needs, and hands out encoded chunks.

A chunk whose old elements all go needs nothing; any other needs its existing bytes, once, whole, because the
object is written anew. In a shard only the inner chunks that are partly written are decoded, and the ones
that are not touched are spliced verbatim. The result of a piece of work is one ``(chunk, buffer)`` per chunk,
buffer None meaning that the chunk is to be deleted.

A plan belongs to one thread. The work that it hands out is detached from it and may run on any thread.
"""

from __future__ import annotations

from collections.abc import Buffer, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright import execute
from chunkwright.buffers import MISSING, Buffers
from chunkwright.entries import Entries, distinct, ragged_positions
from chunkwright.errors import PlanError
from chunkwright.execute import Calls, positions, run_calls
from chunkwright.grid import split
from chunkwright.needs import NEED, WHOLE
from chunkwright.read_plan import in_order, item_bytes
from chunkwright.selection import check_entries

if TYPE_CHECKING:
    from chunkwright.prepared import PreparedChain

__all__ = ("WritePlan", "WriteWork")


@attrs.frozen(eq=False)
class WriteWork:
    """Chunks that can be encoded: their old bytes are at hand, or do not matter.

    Parameters
    ----------
    chain
        The prepared chain.
    existing
        One row per chunk.
    entries
        Selections of these chunks.
    chunk
        int64: for each row the chunk of the plan.
    keep_empty
        Whether chunks of nothing but the fill value are kept.

    Examples
    --------
    >>> from chunkwright import CodecChain, ReferenceBackend
    >>> chain = CodecChain.from_json([{"name": "bytes", "configuration": {"endian": "little"}}])
    >>> plan = chain.bind("uint8", 0).prepare((4,), backends=[ReferenceBackend()]).plan_write(slice(1, 3))
    >>> plan.feed(plan.needs["id"], [b"abcd"])
    >>> [(chunk, encoded)] = plan.take().run(np.frombuffer(b"xy", "uint8"))
    >>> chunk, bytes(encoded)
    (0, b'axyd')
    """

    chain: PreparedChain
    existing: Buffers
    entries: Entries
    chunk: NDArray[np.int64]
    keep_empty: bool

    @property
    def nbytes(self) -> int:
        """Bytes of these chunks before they are encoded."""
        return len(self.existing) * item_bytes(self.chain)

    def calls(self, source: NDArray[Any], *, max_workers: int | None = None) -> Calls[list[tuple[int, Buffer | None]]]:
        """Do the work, handing foreign codecs to whoever drives the generator.

        Parameters
        ----------
        source
            The caller's array.
        max_workers
            Limit of threads.

        Yields
        ------
        ForeignCall
            To be sent its result.

        Returns
        -------
        list of tuple
            Chunk number and encoded bytes, None to delete it.
        """
        with positions(self.chunk):
            encoded = yield from execute.encode_from(
                self.chain, source, self.entries, self.existing, self.keep_empty, execute.workers(max_workers)
            )
        return list(zip(self.chunk.tolist(), encoded, strict=True))

    def run(self, source: NDArray[Any], *, max_workers: int | None = None) -> list[tuple[int, Buffer | None]]:
        """Encode these chunks.

        Parameters
        ----------
        source
            The caller's array; its shape is that of the out side of the entries.
        max_workers
            Limit of threads.

        Returns
        -------
        list of tuple
            Chunk number and encoded bytes (read-only), None to delete it.

        Raises
        ------
        CodecError
            When old bytes do not decode or values do not encode; ``position`` is the chunk's number.
        """
        return run_calls(self.calls(source, max_workers=max_workers))


class WritePlan:
    """What a write needs of existing bytes, and the chunks that come of it.

    Made by :meth:`PreparedChain.plan_write`.

    Parameters
    ----------
    chain
        The prepared chain.
    entries
        Selections of the batch's chunks, and where in the source their elements are. When two entries
        write one element, the later one wins.
    complete
        bool, by chunk number: chunks of which nothing is kept, or None: those that one entry covers. Shards keep what
        is not written all the same, unless other codecs stand around the sharding codec.
    keep_empty
        Whether chunks of nothing but the fill value are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from chunkwright import CodecChain, ReferenceBackend
    >>> chain = CodecChain.from_json([{"name": "bytes"}]).bind("uint8", 0)
    >>> plan = chain.prepare((4,), backends=[ReferenceBackend()]).plan_write(slice(1, 3))
    >>> plan.feed(plan.needs["id"], [b"abcd"])
    >>> [(chunk, bytes(data)) for chunk, data in plan.take().run(np.array([88, 89], "u1"))]
    [(0, b'aXYd')]
    """

    def __init__(
        self,
        chain: PreparedChain,
        entries: Entries,
        *,
        complete: NDArray[np.bool_] | None = None,
        keep_empty: bool = False,
    ) -> None:
        check_entries(entries, chain.spec.shape)
        entries = in_order(entries)
        self._chain, self._keep_empty = chain, keep_empty
        self._chunk = entries.chunk
        # Nearly always each chunk has one entry.
        if (entries.chunk[1:] <= entries.chunk[:-1]).any():
            self._chunk = distinct(entries.chunk)
        items = np.arange(len(self._chunk) + 1)
        alone = len(entries) == len(self._chunk)
        self._entries = entries.with_chunk(items[:-1] if alone else np.searchsorted(self._chunk, entries.chunk))
        self._first_row = items if alone else np.searchsorted(self._entries.chunk, items)
        done = self._complete(complete)
        open_items = np.flatnonzero(~done)
        self._needs = np.zeros(len(open_items), NEED)
        self._needs["id"] = np.arange(len(open_items))
        self._needs["chunk"] = self._chunk[open_items]
        self._needs["kind"] = WHOLE
        self._open = np.ones(len(open_items), bool)
        self._item = open_items
        self._ready: list[tuple[NDArray[np.int64], Buffers]] = []
        self._settle_without_bytes(np.flatnonzero(done))

    @property
    def needs(self) -> NDArray[Any]:
        """Rows of dtype ``NEED``, all of kind whole: existing bytes that were not fed yet."""
        return self._needs[self._open]

    def feed(self, ids: NDArray[np.int64] | Sequence[int], buffers: Buffers | Sequence[Buffer | None]) -> None:
        """Give existing bytes, in any order and any division.

        Parameters
        ----------
        ids
            Ids of the needs that are answered.
        buffers
            One per id; None when the chunk is missing.

        Raises
        ------
        PlanError
            When an id is not open.
        """
        rows = buffers if isinstance(buffers, Buffers) else Buffers.of(buffers)
        numbers = np.asarray(ids, np.int64)
        if len(numbers) != len(rows):
            raise PlanError("one buffer per id is needed", expected=len(numbers), found=len(rows))
        known = (numbers >= 0) & (numbers < len(self._open))
        if not known.all() or not self._open[numbers].all() or np.bincount(numbers).max(initial=0) > 1:
            raise PlanError("an id is not open", found=numbers.tolist()[:8])
        self._open[numbers] = False
        if len(numbers):
            self._ready.append((self._item[numbers], rows))

    def feed_later(self) -> None:
        """Leave existing bytes to whoever carries out the work, instead of feeding them.

        Rows of chunks that need theirs begin at 0 in the work's ``existing`` and have no bytes; those of all others are
        missing.

        Raises
        ------
        PlanError
            When something was fed or taken before.

        Examples
        --------
        >>> from chunkwright import CodecChain, ReferenceBackend
        >>> chain = CodecChain.from_json([{"name": "bytes"}]).bind("uint8", 0)
        >>> plan = chain.prepare((4,), backends=[ReferenceBackend()]).plan_write(slice(1, 3))
        >>> plan.feed_later()
        >>> plan.take().existing.offset.tolist(), len(plan.needs)
        ([0], 0)
        """
        settled = sum(len(items) for items, _ in self._ready)
        if not self._open.all() or settled + len(self._open) != len(self._chunk):
            raise PlanError("existing bytes were fed or taken before")
        offset = np.full(len(self._chunk), MISSING, np.int64)
        offset[self._item] = 0
        self._open[:] = False
        self._ready = [(np.arange(len(offset)), Buffers.within(b"", offset, np.zeros(len(offset), np.int64)))]

    def take(self, max_bytes: int | None = None) -> WriteWork | None:
        """Detach chunks that can be encoded.

        Parameters
        ----------
        max_bytes
            About how many decoded bytes to take at most; at least one chunk is taken.

        Returns
        -------
        WriteWork or None
            None when nothing is ready.
        """
        if not self._ready:
            return None
        items, existing = self._ready.pop()
        limit = len(items) if max_bytes is None else max(1, max_bytes // item_bytes(self._chain))
        if limit < len(items):
            self._ready.append((items[limit:], existing.take(np.arange(limit, len(items)))))
            items, existing = items[:limit], existing.take(np.arange(limit))
        if len(items) == len(self._chunk) and (items[1:] > items[:-1]).all():
            return WriteWork(self._chain, existing, self._entries, self._chunk, self._keep_empty)
        first = self._first_row[items]
        count = self._first_row[items + 1] - first
        numbers = np.repeat(np.arange(len(items), dtype=np.int64), count)
        entries = self._entries.take(ragged_positions(first, count)).with_chunk(numbers)
        return WriteWork(self._chain, existing, entries, self._chunk[items], self._keep_empty)

    def _settle_without_bytes(self, items: NDArray[np.int64]) -> None:
        if len(items):
            none = np.full(len(items), MISSING, np.int64)
            self._ready.append((items, Buffers.within(b"", none, np.zeros(len(items), np.int64))))

    def _complete(self, given: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Which chunks keep nothing of what they hold."""
        chain = self._chain
        if given is not None and (chain.shard is None or chain.is_wrapped_shard):
            return np.asarray(given, bool)[self._chunk]
        return _covered(chain, self._entries, len(self._chunk))


def _covered(chain: PreparedChain, entries: Entries, chunks: int) -> NDArray[np.bool_]:
    """Chunks all of whose (inner) chunks are covered, each by one entry."""
    if not chain.is_partial or chain.shard is None or chain.order is None:
        covered = np.zeros(chunks, bool)
        np.logical_or.at(covered, entries.chunk, entries.covers(chain.spec.shape))
        return covered
    done = np.zeros(chunks, bool)
    np.logical_or.at(done, entries.chunk, entries.covers(chain.spec.shape))
    # Where one entry covers a shard, that need not be looked for inner chunk by inner chunk.
    entries = entries.take(np.flatnonzero(~done[entries.chunk]))
    if not len(entries):
        return done
    parts = split(entries.permuted(chain.order), chain.shard.inner.spec.shape, chain.shard.grid)
    inner = _covered(chain.shard.inner, parts.entries, len(parts.chunk))
    done |= np.bincount(parts.chunk[inner], minlength=chunks) == chain.shard.cells
    return done
