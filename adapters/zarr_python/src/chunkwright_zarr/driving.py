"""From a batch to jobs of the store bridge: where the bytes are decides how they are driven.

Planning goes with the work where it can: a read in another thread plans there. Only batches of a few chunks
are planned at once, on zarr's own loop, to see whether the work is small enough to be done at once, too.
Writes are planned on the loop, because their locks are waited for there, before anything is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from zarr.abc.codec import GetResult
from zarr.core.array_spec import ArraySpec
from zarr.core.config import config

from chunkwright.buffers import Buffers
from chunkwright.entries import Entries
from chunkwright.errors import CodecError
from chunkwright.prepared import PreparedChain
from chunkwright.read_plan import ReadPlan
from chunkwright_store import (
    LOCKS,
    Hold,
    Limits,
    ReadJob,
    WriteJob,
    read_async,
    read_hop,
    read_sync,
    run_off_loop,
    write_async,
    write_hop,
    write_sync,
)
from chunkwright_store.zarr import Kind, classify, key_of, lock_keys, sink_of, source_of
from chunkwright_zarr.config import max_workers
from chunkwright_zarr.counters import count
from chunkwright_zarr.inline import MAX_CHUNKS, is_small_selection, on_private_loop
from chunkwright_zarr.ready import Ready
from chunkwright_zarr.selections import Group, Row, read_entries, write_entries

__all__ = ("drive_read", "drive_write", "locks_of")

WHOLE_NBYTES = 1 << 20
"""Local shards of so many decoded bytes are read whole: that is faster than asking for the index first."""

UNPLANNED_NBYTES = 8 << 20
"""Up to so many decoded bytes, a few whole chunks are read and decoded one after the other, without a plan."""

MAX_PLANNED_ON_LOOP = 64
"""Chunks of an asynchronous read that are planned on the loop; more are planned in a thread."""


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
    kind = _kind(groups, readies)
    limits = _limits(groups[0].spec)
    read = _Read(groups, readies, out.shape, drop_axes, kind, limits)
    if kind == "async":
        if sum(len(group.rows) for group in groups) > MAX_PLANNED_ON_LOOP:
            await run_off_loop(read.plan)
        else:
            read.plan()
        count("read", "async")
        await read_async(read.jobs(), out, limits, is_async=any(ready.is_async for ready in readies))
    elif on_private_loop() and read.is_small:
        count("read", "inline")
        return read.at_once(out)
    elif read.needs_no_plan:
        count("read", "sync")
        return await run_off_loop(partial(read.at_once, out))
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
        self._groups, self._chains = groups, [_chain(ready) for ready in readies]
        self._out_shape, self._drop_axes = out_shape, drop_axes
        self._kind, self._limits = kind, limits
        self._entries: list[Entries] = []
        self._plans: list[ReadPlan] = []

    def select(self) -> list[Entries]:
        """All selections, before the first plan: what cannot be expressed must turn up before anything is read."""
        if not self._entries:
            self._entries = [read_entries(group, self._out_shape, self._drop_axes) for group in self._groups]
        return self._entries

    def plan(self) -> None:
        if self._plans:
            return
        pairs = zip(self._chains, self.select(), strict=True)
        self._plans = [chain.plan_read(entries, whole_fraction=self._fraction(chain)) for chain, entries in pairs]

    def _fraction(self, chain: PreparedChain) -> float:
        """The share of inner chunks from which on a shard is read whole: any, where that costs next to nothing."""
        if self._kind == "memory" or (self._kind == "local" and _nbytes(chain) <= WHOLE_NBYTES):
            return 0.0
        return 1.0

    @property
    def is_few(self) -> bool:
        """Whether there are only a few chunks, of one spec."""
        return len(self._groups) == 1 and len(self._groups[0].rows) <= MAX_CHUNKS

    @property
    def is_small(self) -> bool:
        """Whether this is small work; looked into for a few chunks only."""
        return self.is_few and is_small_selection(self._chains[0], self.select()[0])

    @property
    def needs_no_plan(self) -> bool:
        """Whether it is a few chunks of no great size that are read whole in any case."""
        chain, rows = self._chains[0], self._groups[0].rows
        if not self.is_few or len(rows) * _nbytes(chain) > UNPLANNED_NBYTES:
            return False
        return not chain.is_partial or not self._fraction(chain)

    def at_once(self, out: NDArray[Any]) -> tuple[GetResult, ...]:
        """Read on this thread."""
        chain, rows = self._chains[0], self._groups[0].rows
        if not self.needs_no_plan:
            read_sync(self.jobs(), out, self._limits)
            return self.statuses()
        self.select()
        prototype = self._groups[0].spec.prototype
        stored = [row[0].get_sync(prototype=prototype) for row in rows]
        buffers = Buffers.of([None if data is None else data.as_numpy_array() for data in stored])
        try:
            chain.decode_many_into(buffers, self._entries[0], out, max_workers=self._limits.max_workers)
        except CodecError as error:
            if error.position is not None:
                error.with_key(key_of(rows[error.position][0]))
            raise
        return results([data is not None for data in stored])

    def jobs(self) -> Iterator[ReadJob]:
        self.plan()
        for group, chain, plan in zip(self._groups, self._chains, self._plans, strict=True):
            getters, prototype = [row[0] for row in group.rows], group.spec.prototype
            yield ReadJob(
                plan=plan,
                sources=[source_of(getter, self._kind, prototype, self._limits) for getter in getters],
                keys=Keys(getters),
                whole_nbytes=_nbytes(chain),
            )

    def statuses(self) -> tuple[GetResult, ...]:
        if len(self._plans) == 1:
            present = self._plans[0].statuses.tolist()
        else:
            present = [True] * sum(len(group.rows) for group in self._groups)
            for group, plan in zip(self._groups, self._plans, strict=True):
                for position, here in zip(group.positions or (), plan.statuses.tolist(), strict=True):
                    present[position] = here
        return results(present)


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


async def drive_write(
    groups: Sequence[Group], readies: Sequence[Ready], value: NDArray[Any], drop_axes: tuple[int, ...]
) -> None:
    """Write a batch.

    Parameters
    ----------
    groups
        Its rows, by spec.
    readies
        The chain of each group.
    value
        What is written.
    drop_axes
        Axes of the chunks that ``value`` has not.

    Raises
    ------
    SelectionError
        When a selection cannot be expressed; nothing was written.
    CodecError
        With the key of the chunk. Every chunk is as it was or as it should be.
    """
    entries, source = write_entries(groups, value, drop_axes)
    kind = _kind(groups, readies)
    limits = _limits(groups[0].spec)
    chains = [_chain(ready) for ready in readies]
    jobs = [_write_job(*parts, kind, limits) for parts in zip(groups, chains, entries, strict=True)]
    if kind == "async":
        count("write", "async")
        await write_async(jobs, source, limits, is_async=any(ready.is_async for ready in readies))
    elif not _write_inline(jobs, chains, entries, source, limits):
        count("write", "sync")
        await write_hop(jobs, source, limits)


def _write_inline(
    jobs: Sequence[WriteJob],
    chains: Sequence[PreparedChain],
    entries: Sequence[Entries],
    source: NDArray[Any],
    limits: Limits,
) -> bool:
    """Write here and now if the work is small and nobody else is at these chunks; whether that was done."""
    if not on_private_loop() or len(jobs) != 1 or not is_small_selection(chains[0], entries[0]):
        return False
    hold = LOCKS.try_hold(jobs[0].lock_keys)
    if hold is None:
        return False
    try:
        count("write", "inline")
        write_sync(jobs, source, limits, locked=True)
    finally:
        hold.release()
    return True


def _write_job(group: Group, chain: PreparedChain, entries: Entries, kind: Kind, limits: Limits) -> WriteJob:
    setters, spec = [row[0] for row in group.rows], group.spec
    complete = np.fromiter((row[4] for row in group.rows), bool, len(group.rows))
    return WriteJob(
        plan=chain.plan_write(entries, complete=complete, keep_empty=spec.config.write_empty_chunks),
        sources=[source_of(setter, kind, spec.prototype, limits) for setter in setters],
        sinks=[sink_of(setter, kind, spec.prototype) for setter in setters],
        keys=Keys(setters),
        lock_keys=lock_keys(setters),
        whole_nbytes=_nbytes(chain),
    )


def locks_of(batch: Sequence[Row]) -> Hold:
    """Return what holds the chunks of a batch while something else than our plans writes them.

    Parameters
    ----------
    batch
        The rows.

    Returns
    -------
    Hold
        For ``async with``.
    """
    return LOCKS.hold(lock_keys(row[0] for row in batch))


class Keys(Sequence[str]):
    """Keys of chunks, made when an error needs one.

    Parameters
    ----------
    getters
        Where the chunks are.
    """

    def __init__(self, getters: Sequence[Any]) -> None:
        self._getters = getters

    def __len__(self) -> int:
        return len(self._getters)

    def __getitem__(self, number: Any) -> Any:
        return key_of(self._getters[number])


def _nbytes(chain: PreparedChain) -> int:
    """About how many bytes a whole encoded chunk has: as many as decoded, or a guess."""
    return max(chain.spec.nbytes.nbytes or 1 << 20, 1)


def _chain(ready: Ready) -> PreparedChain:
    assert ready.prepared is not None
    return ready.prepared


def _kind(groups: Sequence[Group], readies: Iterable[Ready]) -> Kind:
    if any(ready.is_async for ready in readies):
        return "async"
    return classify(row[0] for group in groups for row in group.rows)


def _limits(spec: ArraySpec) -> Limits:
    return Limits(
        max_gap=spec.config.sharding_coalesce_max_gap_bytes,
        max_size=spec.config.sharding_coalesce_max_bytes,
        concurrency=config.get("async.concurrency", 10),
        max_workers=max_workers(),
    )
