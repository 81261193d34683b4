"""What a driver is given: plans, with the chunks they are about.

A call drives one plan per chunk spec (rectilinear grids have several), all into one array. A job joins a
plan, which knows chunks by number only, to the sources, sinks and keys of those chunks, by the same numbers.

Plans are described here as narrow protocols: what a driver uses of them, and no more.
"""

from __future__ import annotations

import os
from collections.abc import Buffer, Generator, Hashable, Sequence
from typing import Any, Protocol

import attrs
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.errors import CodecError
from chunkwright_store.sources import Batch

__all__ = (
    "Limits",
    "ReadJob",
    "ReadPlanLike",
    "ReadWorkLike",
    "WriteJob",
    "WritePlanLike",
    "WriteWorkLike",
    "name_chunk",
)


CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ReadWorkLike(Protocol):
    """Chunks that are ready to be decoded into the caller's array."""

    def run(self, out: NDArray[Any], /, *, max_workers: int | None = None) -> None:
        """Decode and scatter.

        Parameters
        ----------
        out
            The caller's array.
        max_workers
            Limit of threads.
        """

    def calls(self, out: NDArray[Any], /, *, max_workers: int | None = None) -> Generator[Any, Any, None]:
        """Decode and scatter, with every call of a foreign codec left to the driver.

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


class WriteWorkLike(Protocol):
    """Chunks that are ready to be encoded from the caller's array."""

    def run(self, source: NDArray[Any], /, *, max_workers: int | None = None) -> Sequence[tuple[int, Buffer | None]]:
        """Gather and encode.

        Parameters
        ----------
        source
            The caller's array.
        max_workers
            Limit of threads.

        Returns
        -------
        sequence of tuple
            Chunk numbers, each with its bytes, or None when the chunk is to be deleted.
        """

    def calls(
        self, source: NDArray[Any], /, *, max_workers: int | None = None
    ) -> Generator[Any, Any, Sequence[tuple[int, Buffer | None]]]:
        """Gather and encode, with every call of a foreign codec left to the driver.

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
        sequence of tuple
            As ``run`` does.
        """


class _PlanLike(Protocol):
    @property
    def needs(self) -> NDArray[Any]:
        """Rows of dtype ``NEED``: all that was asked for and not yet fed; ids only grow."""

    def feed(self, ids: NDArray[Any], buffers: Buffers | Sequence[Buffer | None], /) -> None:
        """Give the plan what it needs, in any order and any split.

        Parameters
        ----------
        ids
            Ids of needs.
        buffers
            One row per id; missing rows are fine in every round.
        """


class ReadPlanLike(_PlanLike, Protocol):
    """A read plan, as a driver sees it."""

    def take(self, max_bytes: int | None = None, /) -> ReadWorkLike | None:
        """Detach work that is ready.

        Parameters
        ----------
        max_bytes
            Stop after about so many decoded bytes.

        Returns
        -------
        ReadWorkLike or None
            None when nothing is ready.
        """


class WritePlanLike(_PlanLike, Protocol):
    """A write plan, as a driver sees it."""

    def feed_later(self) -> None:
        """Leave existing bytes to whoever carries out the work; asked of plans whose job has a batch."""

    def take(self, max_bytes: int | None = None, /) -> WriteWorkLike | None:
        """Detach work that is ready.

        Parameters
        ----------
        max_bytes
            Stop after about so many decoded bytes.

        Returns
        -------
        WriteWorkLike or None
            None when nothing is ready.
        """


@attrs.frozen(kw_only=True)
class Limits:
    """How much a driver does at a time.

    Parameters
    ----------
    max_gap
        Ranges of one chunk with at most so many bytes between them are read together.
    max_size
        Ranges are not merged beyond so many bytes.
    concurrency
        Requests of one call that are under way at a time (asynchronous drivers).
    max_bytes_in_flight
        Encoded bytes of one call that are fetched and not yet decoded, or encoded and not yet stored, about.
    max_workers
        Threads that a backend may use; None leaves it to the backend.
    shard_index_cache
        Bytes of shard indexes that are kept from call to call, of sources that say which version they are of; 0 drops
        those that are.

    Examples
    --------
    >>> Limits(concurrency=64).max_gap
    1048576
    """

    max_gap: int = 1 << 20
    max_size: int = 16 << 20
    concurrency: int = 10
    max_bytes_in_flight: int = 128 << 20
    max_workers: int | None = None
    shard_index_cache: int = 0

    @property
    def threads(self) -> int:
        """Threads of one call that compute, the calling one included."""
        return self.max_workers or CPUS

    @property
    def batch_bytes(self) -> int:
        """Bytes that are fetched, or handed to a backend, at a time, about.

        Enough for all workers to be busy, and little enough that fetching, computing and storing overlap.
        """
        enough = max(4 << 20, self.threads << 21)
        return max(1, min(enough, self.max_bytes_in_flight // 4))


def name_chunk(error: CodecError, keys: Sequence[str]) -> None:
    """Add the key of the chunk to an error that has its number.

    Parameters
    ----------
    error
        Its position is the number of the chunk; without one it stays as it is.
    keys
        Key of each chunk.

    Examples
    --------
    >>> error = CodecError("too short", codec="zstd").at(1)
    >>> name_chunk(error, ["c/0", "c/1"])
    >>> error.key
    'c/1'
    """
    if error.position is not None and 0 <= error.position < len(keys):
        error.with_key(keys[error.position])


@attrs.frozen(eq=False, kw_only=True)
class ReadJob:
    """A read plan and the chunks it reads.

    Parameters
    ----------
    plan
        The plan, not yet fed.
    sources
        One source per chunk of the plan, all synchronous or all asynchronous.
    keys
        Key of each chunk, for errors.
    whole_nbytes
        Bytes that a whole chunk is taken to have before it was read, for the limits.

    Examples
    --------
    >>> from chunkwright_store import MappingSource
    >>> stored = {"c/0": b"ab"}
    >>> job = ReadJob(plan=None, sources=[MappingSource(stored, "c/0")], keys=["c/0"])
    >>> str(job.named(CodecError("bad", position=0)))
    "bad (chunk 'c/0')"
    """

    plan: ReadPlanLike
    sources: Sequence[Any]
    keys: Sequence[str]
    whole_nbytes: int = 1 << 20

    def named(self, error: CodecError) -> CodecError:
        """Add the chunk's key to an error of this plan.

        Parameters
        ----------
        error
            Its position is the number of the chunk.

        Returns
        -------
        CodecError
            The same error.
        """
        name_chunk(error, self.keys)
        return error


@attrs.frozen(eq=False, kw_only=True)
class WriteJob:
    """A write plan and the chunks it writes.

    Parameters
    ----------
    plan
        The plan, not yet fed.
    sources
        One source per chunk, for what it holds now; all synchronous or all asynchronous.
    sinks
        One sink per chunk, of the same kind.
    keys
        Key of each chunk, for errors.
    lock_keys
        What the chunks are locked by while they are written, usually the identity of the store with the
        key; empty for chunks that nobody else can reach.
    batch
        Reads, encodes and stores many chunks at a time, in place of sources and sinks, which may be empty then.
    whole_nbytes
        Bytes that a whole chunk is taken to have before it was read, for the limits.
    side_by_side
        Whether threads may use sources and sinks, and the codecs, at the same time, and that pays: each then reads,
        encodes and stores a few chunks at a time. Of no account beside ``batch``, and for asynchronous sources.

    Examples
    --------
    >>> from chunkwright_store import MappingSink, MappingSource
    >>> stored = {}
    >>> job = WriteJob(plan=None, sources=[MappingSource(stored, "c/0")], sinks=[MappingSink(stored, "c/0")],
    ...                keys=["c/0"], lock_keys=[(id(stored), "c/0")])
    >>> len(job.sinks)
    1
    """

    plan: WritePlanLike
    sources: Sequence[Any]
    sinks: Sequence[Any]
    keys: Sequence[str]
    lock_keys: Sequence[Hashable] = ()
    batch: Batch | None = None
    whole_nbytes: int = 1 << 20
    side_by_side: bool = False

    def named(self, error: CodecError) -> CodecError:
        """Add the chunk's key to an error of this plan.

        Parameters
        ----------
        error
            Its position is the number of the chunk.

        Returns
        -------
        CodecError
            The same error.
        """
        name_chunk(error, self.keys)
        return error
