"""Partial reading without IO: a plan says which bytes it needs, is fed, and hands out work.

All selections are cut down to inner chunks when the plan is made, level by level (a nested shard is a level
of its own), as columns. The items of level 0 are the chunks of the batch; the items of a deeper level are the
touched inner chunks of the level above. Only shards that are wanted whole, are not large, and that the backend
cuts by itself are left as they are: the last level then has them. What is left to find out is where items lie, and
that is what rounds are for: a shard needs its index, or all of its bytes when (nearly) all of its inner chunks are
touched; an item of the last level needs its own bytes. Bytes that arrive whole are never asked for again in parts.
Missing items settle everything below them without IO.

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
from chunkwright.errors import PlanError, ShardIndexError
from chunkwright.execute import Calls, positions, run_calls
from chunkwright.grid import split
from chunkwright.needs import NEED, RANGE, SUFFIX, WHOLE
from chunkwright.selection import check_entries
from chunkwright.shard_format import locate

if TYPE_CHECKING:
    from chunkwright.prepared import PreparedChain
    from chunkwright.shard import Shard

__all__ = ("ReadPlan", "ReadWork", "in_order", "item_bytes")

UNCUT_NBYTES = 64 << 20
"""Most decoded bytes of shards that are left whole: drivers stop, and give memory back, between works only."""


@attrs.frozen(eq=False)
class ReadWork:
    """Chunks whose bytes are at hand, and where their elements go.

    Parameters
    ----------
    chain
        The chain of these (inner) chunks, which may be shards.
    buffers
        One row per chunk.
    entries
        Their selections.
    chunk
        int64: for each row the chunk of the plan that it belongs to, for errors.

    Examples
    --------
    >>> from chunkwright import CodecChain, ReferenceBackend
    >>> chain = CodecChain.from_json([{"name": "bytes", "configuration": {"endian": "little"}}])
    >>> plan = chain.bind("uint8", 0).prepare((4,), backends=[ReferenceBackend()]).plan_read(slice(1, 3))
    >>> plan.feed(plan.needs["id"], [b"abcd"])
    >>> work, out = plan.take(), np.empty(2, "uint8")
    >>> work.run(out)
    >>> work.nbytes, out.tobytes()
    (4, b'bc')
    """

    chain: PreparedChain
    buffers: Buffers
    entries: Entries
    chunk: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """Bytes of these chunks once they are decoded."""
        return len(self.buffers) * item_bytes(self.chain)

    def calls(self, out: NDArray[Any], *, max_workers: int | None = None) -> Calls[None]:
        """Do the work, handing foreign codecs to whoever drives the generator.

        Parameters
        ----------
        out
            The caller's array.
        max_workers
            Limit of threads.

        Yields
        ------
        ForeignCall
            To be sent its result.
        """
        with positions(self.chunk):
            yield from execute.decode_into(self.chain, self.buffers, self.entries, out, execute.workers(max_workers))

    def run(self, out: NDArray[Any], *, max_workers: int | None = None) -> None:
        """Decode and put the elements into the caller's array.

        Parameters
        ----------
        out
            The caller's array; its shape is that of the out side of the entries.
        max_workers
            Limit of threads.

        Raises
        ------
        CorruptChunkError, ShardIndexError
            When bytes do not decode; ``position`` is the chunk's number in the plan.
        """
        run_calls(self.calls(out, max_workers=max_workers))


def item_bytes(chain: PreparedChain) -> int:
    """Bytes of one decoded chunk, a guess for elements of variable length.

    Parameters
    ----------
    chain
        The prepared chain.

    Returns
    -------
    int
        At least 1.
    """
    return max(chain.spec.elements * (chain.spec.dtype.itemsize or 32), 1)


@attrs.define(eq=False)
class _Level:
    """Items of one depth: chunks, inner chunks, inner chunks of nested shards.

    ``child`` bounds the items of the next level that belong to each item.
    """

    chain: PreparedChain
    shard: Shard | None
    chunk: NDArray[np.int64]
    parent: NDArray[np.int64]
    cell: NDArray[np.int64]
    wants_whole: NDArray[np.bool_]
    child: NDArray[np.int64]


@attrs.define(eq=False)
class _Asked:
    """Needs that were asked together, with consecutive ids."""

    level: int
    items: NDArray[np.int64]
    needs: NDArray[Any]
    is_index: NDArray[np.bool_]
    answered: NDArray[np.bool_]
    origin: NDArray[np.int64]


class ReadPlan:
    """What a partial read needs, and the work that it makes possible.

    Made by :meth:`PreparedChain.plan_read`.

    Parameters
    ----------
    chain
        The prepared chain.
    entries
        Selections of the batch's chunks.
    whole_fraction
        Fraction of a shard's inner chunks from which on the whole shard is asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from chunkwright import CodecChain, ReferenceBackend
    >>> bytes_ = {"name": "bytes", "configuration": {"endian": "little"}}
    >>> sharding = {"name": "sharding_indexed", "configuration": {
    ...     "chunk_shape": [2], "codecs": [bytes_], "index_codecs": [bytes_]}}
    >>> prepared = CodecChain.from_json([sharding]).bind("uint8", 0).prepare((6,), backends=[ReferenceBackend()])
    >>> shard = bytes(prepared.encode(np.arange(1, 7, dtype="u1")))
    >>> plan, out = prepared.plan_read(slice(3, 5)), np.zeros(2, "u1")
    >>> while plan.needs.size:
    ...     for need in plan.needs.copy():
    ...         first = len(shard) - need["stop"] if need["kind"] == 1 else need["start"]
    ...         data = shard[first:] if need["kind"] == 1 else shard[first : need["stop"]]
    ...         plan.feed([need["id"]], [data])
    ...     while work := plan.take():
    ...         work.run(out)
    >>> out.tolist()
    [4, 5]
    """

    def __init__(self, chain: PreparedChain, entries: Entries, *, whole_fraction: float = 1.0) -> None:
        check_entries(entries, chain.spec.shape)
        self._statuses = np.ones(int(entries.chunk.max(initial=-1)) + 1, bool)
        self._entry_chunk = entries.chunk
        self._levels, self._entries = _make_levels(chain, in_order(entries), whole_fraction)
        self._first_row = np.searchsorted(self._entries.chunk, np.arange(len(self._levels[-1].chunk) + 1))
        self._asked: list[_Asked] = []
        self._next_id = 0
        self._ready: list[tuple[NDArray[np.int64], Buffers]] = []
        items = np.arange(len(self._levels[0].chunk), dtype=np.int64)
        self._ask(0, items, np.zeros(len(items), np.int64), np.full(len(items), -1, np.int64))

    @property
    def needs(self) -> NDArray[Any]:
        """Rows of dtype ``NEED``: everything that was asked for and not yet fed. Ids only grow."""
        still_open = [asked.needs[~asked.answered] for asked in self._asked]
        return np.concatenate(still_open) if still_open else np.empty(0, NEED)

    @property
    def statuses(self) -> NDArray[np.bool_]:
        """bool, one per entry that was given: whether its chunk was present, as far as is known."""
        return self._statuses[self._entry_chunk]

    def feed(self, ids: NDArray[np.int64] | Sequence[int], buffers: Buffers | Sequence[Buffer | None]) -> None:
        """Answer needs, in any order and any division.

        Parameters
        ----------
        ids
            Ids of the needs that are answered.
        buffers
            One per id; None when the chunk is missing, in whichever round that turns out.

        Raises
        ------
        PlanError
            When an id is not open.
        ShardIndexError
            When an index cannot be read, an entry of it is out of bounds, or an answer is too short;
            ``position`` is the chunk's number in the plan. Of shards that are left whole, the work finds that out.
        """
        rows = buffers if isinstance(buffers, Buffers) else Buffers.of(buffers)
        numbers = np.asarray(ids, np.int64)
        if len(numbers) != len(rows):
            raise PlanError("one buffer per id is needed", expected=len(numbers), found=len(rows))
        found = 0
        for asked in list(self._asked):
            first = int(asked.needs["id"][0])
            mine = np.flatnonzero((numbers >= first) & (numbers < first + len(asked.needs)))
            found += len(mine)
            if len(mine):
                self._feed_asked(asked, numbers[mine] - first, rows if len(mine) == len(rows) else rows.take(mine))
        if found != len(numbers):
            raise PlanError("an id is not open", found=numbers.tolist()[:8])

    def take(self, max_bytes: int | None = None) -> ReadWork | None:
        """Detach work whose bytes are at hand.

        Parameters
        ----------
        max_bytes
            About how many decoded bytes to take at most; at least one chunk is taken.

        Returns
        -------
        ReadWork or None
            None when nothing is ready.
        """
        if not self._ready:
            return None
        leaf = self._levels[-1]
        limit = None if max_bytes is None else max(1, max_bytes // item_bytes(leaf.chain))
        parts: list[tuple[NDArray[np.int64], Buffers]] = []
        taken = 0
        while self._ready and (limit is None or taken < limit):
            items, buffers = self._ready.pop()
            if limit is not None and taken + len(items) > limit:
                keep = limit - taken
                rest = np.arange(keep, len(items))
                self._ready.append((items[keep:], buffers.take(rest)))
                items, buffers = items[:keep], buffers.take(np.arange(keep))
            parts.append((items, buffers))
            taken += len(items)
        items, buffers = parts[0] if len(parts) == 1 else _joined(parts)
        if len(items) == len(leaf.chunk):
            # Everything at once, as is usual: buffers are put in order faster than entries.
            order = np.argsort(items)
            return ReadWork(leaf.chain, buffers.take(order), self._entries, leaf.chunk)
        return ReadWork(leaf.chain, buffers, self._rows_of(items), leaf.chunk[items])

    def _rows_of(self, items: NDArray[np.int64]) -> Entries:
        """Entries of some items of the last level, their chunks numbered from 0."""
        first = self._first_row[items]
        count = self._first_row[items + 1] - first
        rows = ragged_positions(first, count)
        return self._entries.take(rows).with_chunk(np.repeat(np.arange(len(items), dtype=np.int64), count))

    def _ask(self, depth: int, items: NDArray[np.int64], offset: NDArray[np.int64], length: NDArray[np.int64]) -> None:
        """Ask for what items of a level need. A length of -1 is that of a whole object."""
        if not len(items):
            return
        level = self._levels[depth]
        needs = np.empty(len(items), NEED)
        needs["id"] = np.arange(self._next_id, self._next_id + len(items))
        needs["chunk"] = level.chunk[items]
        needs["kind"] = WHOLE if depth == 0 else RANGE
        needs["start"], needs["stop"] = offset, np.where(length < 0, 0, offset + length)
        is_index = np.zeros(len(items), bool)
        if level.shard is not None:
            is_index = ~level.wants_whole[items]
            self._narrow_to_index(needs, is_index, level.shard, depth)
        self._next_id += len(items)
        self._asked.append(_Asked(depth, items, needs, is_index, np.zeros(len(items), bool), offset))

    @staticmethod
    def _narrow_to_index(needs: NDArray[Any], is_index: NDArray[np.bool_], shard: Shard, depth: int) -> None:
        size = shard.layout.index_size
        if shard.layout.at_start:
            needs["kind"][is_index] = RANGE
            needs["stop"][is_index] = needs["start"][is_index] + size
        elif depth == 0:
            needs["kind"][is_index] = SUFFIX
            needs["stop"][is_index] = size
        else:
            needs["start"][is_index] = needs["stop"][is_index] - size

    def _feed_asked(self, asked: _Asked, rows: NDArray[np.int64], buffers: Buffers) -> None:
        if asked.answered[rows].any() or np.bincount(rows).max(initial=0) > 1:
            raise PlanError("a need was answered twice")
        asked.answered[rows] = True
        if asked.answered.all():
            self._asked.remove(asked)
        level, items = self._levels[asked.level], asked.items[rows]
        gone = buffers.missing
        self._check_lengths(asked, rows, buffers)
        if gone.any():
            self._statuses[level.chunk[items[gone]]] = False
            self._settle_missing(asked.level, items[gone])
            here = np.flatnonzero(~gone)
            rows, items, buffers = rows[here], items[here], buffers.take(here)
        if level.shard is None:
            self._settle(items, buffers)
            return
        index = asked.is_index[rows]
        whole = np.flatnonzero(~index)
        if len(whole):
            self._open_whole(asked.level, items[whole], buffers.take(whole) if index.any() else buffers)
        part = np.flatnonzero(index)
        if len(part):
            self._open_index(asked, rows[part], buffers.take(part))

    def _check_lengths(self, asked: _Asked, rows: NDArray[np.int64], buffers: Buffers) -> None:
        needs = asked.needs[rows]
        expected = np.where(needs["kind"] == SUFFIX, needs["stop"], needs["stop"] - needs["start"])
        wrong = (needs["kind"] != WHOLE) & ~buffers.missing & (buffers.length != expected)
        if wrong.any():
            row = int(wrong.argmax())
            raise ShardIndexError(
                "the shard is shorter than its index says",
                codec="sharding_indexed",
                position=int(needs["chunk"][row]),
                expected=int(expected[row]),
                found=int(buffers.length[row]),
            )

    def _settle(self, items: NDArray[np.int64], buffers: Buffers) -> None:
        if len(items):
            self._ready.append((items, buffers))

    def _settle_missing(self, depth: int, items: NDArray[np.int64]) -> None:
        """Everything below these items is missing."""
        for level in self._levels[depth:-1]:
            items = ragged_positions(level.child[items], level.child[items + 1] - level.child[items])
        gone = np.full(len(items), MISSING, np.int64)
        self._settle(items, Buffers.within(b"", gone, np.zeros(len(items), np.int64)))

    def _children(self, depth: int, items: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Items of the next level, and for each the row of its parent in ``items``."""
        child = self._levels[depth].child
        count = child[items + 1] - child[items]
        return ragged_positions(child[items], count), np.repeat(np.arange(len(items), dtype=np.int64), count)

    def _open_whole(self, depth: int, items: NDArray[np.int64], buffers: Buffers) -> None:
        """Shards that are in memory: nothing below them needs IO."""
        level = self._levels[depth]
        assert level.shard is not None
        children, parent = self._children(depth, items)
        with positions(level.chunk[items]):
            encoded = execute.index_rows(level.shard, buffers, np.arange(len(items), dtype=np.int64))
        offset, length = self._look_up(depth, items, encoded, children, parent, buffers.length)
        absolute = np.where(offset < 0, MISSING, offset + buffers.offset[parent])
        inner = Buffers(buffers.owners, buffers.source[parent], absolute, length)
        if self._levels[depth + 1].shard is None:
            self._settle(children, inner)
            return
        gone = inner.missing
        self._settle_missing(depth + 1, children[gone])
        here = np.flatnonzero(~gone)
        if len(here):
            self._open_whole(depth + 1, children[here], inner.take(here))

    def _open_index(self, asked: _Asked, rows: NDArray[np.int64], buffers: Buffers) -> None:
        """Shards of which only the index is in memory: ask for what is below."""
        depth, items = asked.level, asked.items[rows]
        level = self._levels[depth]
        assert level.shard is not None
        children, parent = self._children(depth, items)
        sizes = self._known_sizes(asked, rows, level.shard) if depth else None
        offset, length = self._look_up(depth, items, buffers, children, parent, sizes)
        gone = offset < 0
        self._settle_missing(depth + 1, children[gone])
        empty = np.flatnonzero(~gone & (length == 0))
        if len(empty):
            self._settle_empty(depth + 1, children[empty])
        here = np.flatnonzero(~gone & (length > 0))
        self._ask(depth + 1, children[here], (offset + asked.origin[rows][parent])[here], length[here])

    def _settle_empty(self, depth: int, items: NDArray[np.int64]) -> None:
        """Inner chunks of no bytes: present, so their codecs have to say what they think of it."""
        level = self._levels[depth]
        if level.chain.shard is not None:
            raise ShardIndexError(
                "a nested shard has no bytes", codec="sharding_indexed", position=int(level.chunk[items[0]])
            )
        zeros = np.zeros(len(items), np.int64)
        self._settle(items, Buffers.within(b"", zeros, zeros))

    @staticmethod
    def _known_sizes(asked: _Asked, rows: NDArray[np.int64], shard: Shard) -> NDArray[np.int64] | None:
        """Bytes of nested shards, which their parent's index tells (index at the end: need ends there)."""
        if shard.layout.at_start:
            return None
        stop: NDArray[np.int64] = asked.needs["stop"][rows] - asked.origin[rows]
        return stop

    def _look_up(
        self,
        depth: int,
        items: NDArray[np.int64],
        encoded: Buffers,
        children: NDArray[np.int64],
        parent: NDArray[np.int64],
        sizes: NDArray[np.int64] | None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Offset within its shard and length of each child; -1 for missing ones."""
        level, below = self._levels[depth], self._levels[depth + 1]
        assert level.shard is not None
        tables = run_calls(execute.read_indexes(level.shard, encoded, level.chunk[items]))
        bounds = np.searchsorted(parent, np.arange(len(items) + 1)).tolist()
        cells = below.cell[children]
        picked = np.empty((len(children), 2), np.uint64)
        for row, table in enumerate(tables):
            mine = slice(bounds[row], bounds[row + 1])
            picked[mine] = table[cells[mine]]
        with positions(level.chunk[items][parent]):
            return locate(picked, level.shard.layout, None if sizes is None else sizes[parent])


def _joined(parts: Sequence[tuple[NDArray[np.int64], Buffers]]) -> tuple[NDArray[np.int64], Buffers]:
    return np.concatenate([items for items, _ in parts]), Buffers.concatenate([buffers for _, buffers in parts])


def in_order(entries: Entries) -> Entries:
    """Order entries by chunk, those of one chunk as they are, and leave out those of no elements.

    Parameters
    ----------
    entries
        In any order.

    Returns
    -------
    Entries
        The same ones where nothing had to be done.
    """
    nonzero = (entries.count > 0).all(axis=1)
    if not nonzero.all():
        entries = entries.take(np.flatnonzero(nonzero))
    if len(entries) and (entries.chunk[1:] < entries.chunk[:-1]).any():
        entries = entries.take(np.argsort(entries.chunk, kind="stable"))
    return entries


def _make_levels(chain: PreparedChain, entries: Entries, whole_fraction: float) -> tuple[list[_Level], Entries]:
    """Cut entries down to the last level; the result's chunks are items of that level."""
    chunk = distinct(entries.chunk)
    entries = entries.with_chunk(np.searchsorted(chunk, entries.chunk).astype(np.int64))
    none = np.empty(0, np.int64)
    level = _Level(chain, None, chunk, none, none, np.zeros(len(chunk), bool), none)
    levels = [level]
    while chain.is_partial and chain.shard is not None and chain.order is not None:
        if item_bytes(chain) <= UNCUT_NBYTES and chain.shard.reader and entries.covers(chain.spec.shape).all():
            break  # All of each shard is wanted, and the backend cuts shards sooner than NumPy does.
        shard = level.shard = chain.shard
        parts = split(entries.permuted(chain.order), shard.inner.spec.shape, shard.grid)
        level.child = np.searchsorted(parts.chunk, np.arange(len(level.chunk) + 1))
        touched = np.diff(level.child)
        level.wants_whole = touched >= max(whole_fraction * shard.cells, 1)
        chain, entries = shard.inner, parts.entries
        level = _Level(
            chain, None, level.chunk[parts.chunk], parts.chunk, parts.cell, np.zeros(len(parts.chunk), bool), none
        )
        levels.append(level)
    return levels, entries
