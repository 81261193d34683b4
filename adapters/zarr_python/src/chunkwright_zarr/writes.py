"""Write a batch: where the bytes are decides how it is driven.

Writes are planned before their locks are waited for, which is done on the loop; large ones are planned in a
thread. Small writes to memory are done at once on zarr's own loop, if nobody else is at these chunks; files are
not, because replacing one can take the file system longer than any hop.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.entries import Entries
from chunkwright_store import (
    LOCKS,
    FileIO,
    FilesBatch,
    Hold,
    Limits,
    WriteJob,
    run_off_loop,
    write_async,
    write_hop,
    write_sync,
)
from chunkwright_store.roots import local_root
from chunkwright_store.zarr import Kind, lock_keys, sinks_of, sources_of
from chunkwright_zarr.counters import count
from chunkwright_zarr.driving import Keys, kind_of_store, limits_for, prepared_chain, whole_nbytes
from chunkwright_zarr.inline import is_small_selection, on_private_loop
from chunkwright_zarr.ready import Ready
from chunkwright_zarr.selections import Group, Row, write_entries

__all__ = ("drive_write", "locks_of", "write_job")

MAX_WRITES_PLANNED_ON_LOOP = 512
"""Chunks of a write that are planned on the loop, at a microsecond or two each; zarr takes ten. More are planned in a
thread."""


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
    kind = kind_of_store(groups, readies)
    limits = limits_for(groups[0].spec)
    write = partial(_Write, groups, readies, value, drop_axes, kind, limits)
    many = sum(len(group.rows) for group in groups) > MAX_WRITES_PLANNED_ON_LOOP
    planned = await run_off_loop(write) if many else write()
    if kind == "async":
        count("write", "async")
        await write_async(planned.jobs, planned.source, limits, is_async=any(ready.is_async for ready in readies))
    elif kind == "local" or not (on_private_loop() and planned.is_small and planned.at_once()):
        count("write", "sync")
        await write_hop(planned.jobs, planned.source, limits)


class _Write:
    """The plans of one write, and the array that they take values from."""

    def __init__(
        self,
        groups: Sequence[Group],
        readies: Sequence[Ready],
        value: NDArray[Any],
        drop_axes: tuple[int, ...],
        kind: Kind,
        limits: Limits,
    ) -> None:
        self._readies, self._limits = readies, limits
        self._entries, self.source = write_entries(groups, value, drop_axes)
        parts = zip(groups, readies, self._entries, strict=True)
        self.jobs = [write_job(group, ready, entries, kind, limits) for group, ready, entries in parts]

    @property
    def is_small(self) -> bool:
        return len(self.jobs) == 1 and is_small_selection(self._readies[0], self._entries[0])

    def at_once(self) -> bool:
        """Write on this thread, unless somebody else is at one of the chunks; whether that was done."""
        hold = LOCKS.try_hold(self.jobs[0].lock_keys)
        if hold is None:
            return False
        try:
            count("write", "inline")
            write_sync(self.jobs, self.source, self._limits, locked=True)
        finally:
            hold.release()
        return True


def write_job(group: Group, ready: Ready, entries: Entries, kind: Kind, limits: Limits) -> WriteJob:
    """Plan what is written to chunks of one spec.

    Parameters
    ----------
    group
        Where each chunk is, and whether it is complete; what rows say of selections does not matter.
    ready
        The chain of the chunks.
    entries
        The selections, numbered as the rows are.
    kind
        How the write is driven.
    limits
        Of the call.

    Returns
    -------
    WriteJob
        For the store bridge.
    """
    chain = prepared_chain(ready)
    setters, spec = [row[0] for row in group.rows], group.spec
    complete = np.fromiter((row[4] for row in group.rows), bool, len(group.rows))
    batch = _files(ready.file_io, setters, limits) if kind == "local" and ready.file_io is not None else None
    return WriteJob(
        plan=chain.plan_write(entries, complete=complete, keep_empty=spec.config.write_empty_chunks),
        sources=[] if batch else sources_of(setters, kind, spec.prototype, limits),
        sinks=[] if batch else sinks_of(setters, kind, spec.prototype),
        batch=batch,
        keys=Keys(setters),
        lock_keys=lock_keys(setters),
        whole_nbytes=whole_nbytes(chain),
        # Foreign codecs may not be used to several threads.
        side_by_side=kind == "local" and not ready.is_foreign,
    )


def _files(file_io: FileIO, setters: Sequence[Any], limits: Limits) -> FilesBatch | None:
    """What the backend reads and writes by itself; None when the files are not all of one store."""
    root = local_root(setters, writable=True)
    return None if root is None else FilesBatch(file_io, root, Keys(setters), limits.max_workers)


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
