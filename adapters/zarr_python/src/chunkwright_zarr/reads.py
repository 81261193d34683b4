"""Read a batch: where the bytes are decides how it is driven.

Planning goes with the work: a read in another thread plans there. Only a few chunks are looked at on zarr's own
loop, to see whether the work is small enough to be done at once. A few chunks that are read whole in any case,
because they are not sharded, or their shards are in memory or of little size, need no plan at all.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from zarr.abc.codec import GetResult

from chunkwright.buffers import Buffers
from chunkwright.entries import Entries
from chunkwright.errors import CodecError
from chunkwright.ports import Run
from chunkwright.prepared import PreparedChain
from chunkwright.read_plan import ReadPlan
from chunkwright_store import Limits, ReadJob, Stop, read_async, read_hop, read_sync, run_off_loop
from chunkwright_store.index_cache import INDEXES
from chunkwright_store.jobs import name_chunk
from chunkwright_store.native import open_files, whole_files
from chunkwright_store.packed import Packed
from chunkwright_store.roots import local_root
from chunkwright_store.zarr import Kind, sources_of
from chunkwright_zarr.counters import count
from chunkwright_zarr.driving import (
    MAX_PLANNED_ON_LOOP,
    Keys,
    kind_of_store,
    limits_for,
    packed_shards,
    prepared_chain,
    read_files,
    whole_fraction,
    whole_nbytes,
)
from chunkwright_zarr.inline import granule, is_brief, is_brief_when_awaited, on_private_loop, touched
from chunkwright_zarr.ready import Ready
from chunkwright_zarr.selections import Group, Row, read_entries

__all__ = ("drive_read", "results")

PLANNED_NBYTES = 64 << 20
"""About how many decoded bytes are planned at a time where plans are carried out one after the other."""

PLANNED_CHUNKS = 16384
"""About how many inner chunks are: the columns of a plan take 200 bytes for each, which is much beside small ones."""

UNPLANNED_NBYTES = 8 << 20
"""Up to so many decoded bytes, a few chunks, or parts of shards in local files, are read and decoded without a plan."""

PLAIN_NBYTES = 64 << 10
"""Local files of so many decoded bytes are read by the threads that decode them. Smaller ones are read one after the
other, beside the decoding, which wants fewer turns of the interpreter."""


async def drive_read(
    groups: Sequence[Group], readies: Sequence[Ready], out: NDArray[Any], drop_axes: tuple[int, ...]
) -> tuple[GetResult, ...]:
    """Read a batch.

    Parameters
    ----------
    groups
        Its rows, by spec.
    readies
        The chain of each group.
    out
        The array that is read into.
    drop_axes
        Axes of the chunks that ``out`` has not.

    Returns
    -------
    tuple of dict
        One status per row of the batch.

    Raises
    ------
    SelectionError
        When a selection cannot be expressed; nothing was read.
    CodecError
        With the key of the chunk.
    """
    kind = kind_of_store(groups, readies, reading=True)
    limits = limits_for(groups[0].spec)
    read = _Read(groups, readies, out.shape, drop_axes, kind, limits)
    if kind == "async" and read.packed is None:
        if sum(len(group.rows) for group in groups) > MAX_PLANNED_ON_LOOP:
            await run_off_loop(read.plan)
        else:
            read.plan()
        count("read", "async")
        is_async = any(ready.is_async for ready in readies)
        here = not is_async and on_private_loop() and is_brief_when_awaited(read.work)
        await read_async(read.planned(), out, limits, is_async=is_async, here=here)
    elif on_private_loop() and read.is_brief:
        count("read", "inline")
        return read.at_once(out)
    elif read.is_few or read.is_native or read.is_held or read.is_plain or read.packed is not None:
        count("read", "sync")
        stop = Stop()
        return await run_off_loop(partial(read.at_once, out, stop), on_cancel=stop.set)
    else:
        count("read", "sync")
        await read_hop(read.jobs(), out, limits)
    return read.statuses()


class _Read:
    """The plans of one read, made when they are first needed."""

    def __init__(
        self,
        groups: Sequence[Group],
        readies: Sequence[Ready],
        out_shape: tuple[int, ...],
        drop_axes: tuple[int, ...],
        kind: Kind,
        limits: Limits,
    ) -> None:
        self._groups, self._readies = groups, readies
        self._chains = [prepared_chain(ready) for ready in readies]
        self._out_shape, self._drop_axes = out_shape, drop_axes
        self._kind, self._limits = kind, limits
        self._entries: list[Entries] = []
        self._plans: list[ReadPlan] = []
        self._found: list[NDArray[np.bool_]] = []

    def select(self) -> list[Entries]:
        """All selections, before the first plan: what cannot be expressed must turn up before anything is read."""
        if not self._entries:
            self._entries = [read_entries(group, self._out_shape, self._drop_axes) for group in self._groups]
        return self._entries

    def plan(self) -> None:
        if self._plans:
            return
        pairs = zip(self._chains, self.select(), strict=True)
        self._plans = [
            chain.plan_read(entries, whole_fraction=whole_fraction(chain, self._kind)) for chain, entries in pairs
        ]

    @property
    def is_few(self) -> bool:
        """Whether there are only a few chunks, of one spec."""
        return len(self._groups) == 1 and len(self._groups[0].rows) <= MAX_PLANNED_ON_LOOP

    @cached_property
    def work(self) -> tuple[int, int] | None:
        """What has to be decoded, if there are only a few chunks and that is known."""
        return touched(self._readies[0], self.select()[0]) if self.is_few else None

    @property
    def is_brief(self) -> bool:
        """Whether this is soon over; looked into for a few chunks only."""
        is_at_hand = self.packed is None or self.packed.is_sound
        return self.is_few and is_at_hand and is_brief(self._readies[0], self.work)

    @cached_property
    def root(self) -> str | None:
        """The folder of a local store; None for other stores, and for several."""
        getters = (row[0] for group in self._groups for row in group.rows)
        return local_root(getters) if self._kind == "local" else None

    @cached_property
    def packed(self) -> Packed | None:
        """Where shards are in one file; None for all others."""
        if self._kind != "async" or len(self._groups) > 1:
            return None
        return packed_shards(self._readies[0], [row[0] for row in self._groups[0].rows])

    @property
    def is_native(self) -> bool:
        """Whether the backend reads the files by itself."""
        is_file = self._kind == "local" or self.packed is not None
        return is_file and all(ready.file_io is not None for ready in self._readies)

    @property
    def is_held(self) -> bool:
        """Whether these are shards in memory that a backend takes as a whole, so that a plan would do nothing."""
        shard = self._chains[0].shard
        return self._kind == "memory" and len(self._groups) == 1 and shard is not None and shard.reader is not None

    @property
    def is_plain(self) -> bool:
        """Whether each chunk is an object in memory or a file, and one backend does all that is done to it."""
        chain = self._chains[0]
        is_run = chain.shard is None and len(chain.runs) == 1 and isinstance(chain.runs[0], Run)
        if not is_run or len(self._groups) > 1:
            return False
        if self._kind == "local":
            return whole_nbytes(chain) >= PLAIN_NBYTES and self.root is not None
        return self._kind == "memory"

    def at_once(self, out: NDArray[Any], stop: Stop | None = None) -> tuple[GetResult, ...]:
        """Read a few chunks, or files that need no plan, on this thread."""
        started = time.perf_counter()
        statuses = self._at_once(out, stop)
        if self.work is not None:
            self._readies[0].pace.record(self.work[1], time.perf_counter() - started)
        return statuses

    def _at_once(self, out: NDArray[Any], stop: Stop | None) -> tuple[GetResult, ...]:
        place = self.packed or self.root
        if self.is_native and place is not None:
            return self._natively(place, out, stop)
        chain, rows = self._chains[0], self._groups[0].rows
        if not self._needs_no_plan(chain, rows):
            read_sync(self.jobs(), out, self._limits, stop=stop)
            return self.statuses()
        present: list[bool] = []
        for first, last, entries in self.select()[0].windows(len(rows), _planned_chunks(chain)):
            if stop:
                break
            present += self._decode(chain, rows[first:last], entries, out)
        return results(present)

    def _decode(self, chain: PreparedChain, rows: Sequence[Row], entries: Entries, out: NDArray[Any]) -> list[bool]:
        """Decode chunks that are at hand; say which there were."""
        getters = [row[0] for row in rows]
        try:
            if self._kind == "local":
                return self._decode_files(chain, [getter.path for getter in getters], entries, out)
            sources = sources_of(getters, self._kind, self._groups[0].spec.prototype, self._limits)
            stored = Buffers.of([data for source in sources for data in source.get_ranges((None,))])
            chain.decode_many_into(stored, entries, out, max_workers=self._limits.max_workers)
        except CodecError as error:
            INDEXES.clear()
            name_chunk(error, Keys(getters))
            raise
        return _present(stored)

    def _decode_files(
        self, chain: PreparedChain, keys: Sequence[str], entries: Entries, out: NDArray[Any]
    ) -> list[bool]:
        """Decode files: shards stay open from their index on, all others are read whole."""
        assert self.root is not None
        if not chain.is_partial:
            whole = whole_files(self.root, keys)
            chain.decode_many_into(whole.rows(), entries, out, max_workers=self._limits.max_workers)
            return whole.present
        with closing(open_files(self.root, keys, self._limits.shard_index_cache)) as files:
            stored = files.rows()
            chain.decode_many_into(stored, entries, out, max_workers=self._limits.max_workers)
        return _present(stored)

    def _natively(self, place: str | Packed, out: NDArray[Any], stop: Stop | None) -> tuple[GetResult, ...]:
        """Let the backend read files, or chunks in one file, by itself."""
        present = []
        for group, ready, entries in zip(self._groups, self._readies, self.select(), strict=True):
            keys = [row[0].path for row in group.rows]
            present.append(read_files(ready, place, keys, entries, out, self._limits, stop))
        return self._results(present)

    def _needs_no_plan(self, chain: PreparedChain, rows: Sequence[Row]) -> bool:
        """Whether there is so little to read that a plan would only cost time."""
        if self.packed is not None or (self._kind == "local" and self.root is None):
            return False
        if self._kind == "local" and chain.is_partial:
            return self.work is not None and self.work[1] <= UNPLANNED_NBYTES
        if self.is_held or self.is_plain:
            return True
        is_whole = self._kind == "memory" or not chain.is_partial
        return is_whole and len(rows) * whole_nbytes(chain) <= UNPLANNED_NBYTES

    def planned(self) -> list[ReadJob]:
        """One job per group, to be done side by side."""
        self.plan()
        parts = zip(self._groups, self._chains, self._plans, strict=True)
        return [self._job(group, chain, plan, group.rows) for group, chain, plan in parts]

    def jobs(self) -> Iterator[ReadJob]:
        """Jobs that are done one after the other, each planned when its turn comes and forgotten afterwards."""
        for group, chain, entries in zip(self._groups, self._chains, self.select(), strict=True):
            fraction = whole_fraction(chain, self._kind)
            found = []
            for first, last, part in entries.windows(len(group.rows), _planned_chunks(chain)):
                plan = chain.plan_read(part, whole_fraction=fraction)
                yield self._job(group, chain, plan, group.rows[first:last])
                found.append(plan.statuses)
            self._found.append(np.concatenate(found))

    def _job(self, group: Group, chain: PreparedChain, plan: ReadPlan, rows: Sequence[Row]) -> ReadJob:
        getters, prototype = [row[0] for row in rows], group.spec.prototype
        packed = packed_shards(self._readies[0], getters) if self.packed is not None else None
        sources = packed.sources() if packed else sources_of(getters, self._kind, prototype, self._limits)
        return ReadJob(plan=plan, sources=sources, keys=Keys(getters), whole_nbytes=whole_nbytes(chain))

    def statuses(self) -> tuple[GetResult, ...]:
        return self._results(self._found or [plan.statuses for plan in self._plans])

    def _results(self, statuses: Sequence[NDArray[np.bool_]]) -> tuple[GetResult, ...]:
        """What each group found, in the order of the batch."""
        if len(statuses) == 1:
            return results(statuses[0].tolist())
        present = [True] * sum(len(group.rows) for group in self._groups)
        for group, found in zip(self._groups, statuses, strict=True):
            for position, here in zip(group.positions or (), found.tolist(), strict=True):
                present[position] = here
        return results(present)


def _present(stored: Buffers) -> list[bool]:
    present: list[bool] = np.logical_not(stored.missing).tolist()
    return present


def _planned_chunks(chain: PreparedChain) -> int:
    inner = math.prod(chain.spec.shape) // max(math.prod(granule(chain)), 1)
    return max(min(PLANNED_NBYTES // whole_nbytes(chain), PLANNED_CHUNKS // max(inner, 1)), 1)


def results(present: Iterable[bool]) -> tuple[GetResult, ...]:
    """Say which chunks were present, as zarr wants to be told.

    Parameters
    ----------
    present
        One per row of the batch.

    Returns
    -------
    tuple of dict
        One per row.
    """
    return tuple([{"status": "present"} if here else {"status": "missing"} for here in present])
