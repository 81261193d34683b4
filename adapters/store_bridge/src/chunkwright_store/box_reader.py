"""A few selections of chunks that a backend reads as they are said, without columns of entries.

A call on a crop or a plane is over so soon that even columns of entries would cost more than all the rest. For these a
backend may offer a :class:`BoxReader`, which takes the rows of a batch or one selection of an array;
:func:`box_reader_of` finds it.
"""

from __future__ import annotations

import os
from collections.abc import Buffer, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from chunkwright.prepared import PreparedChain

__all__ = ("BoxReader", "Boxes", "box_reader_of")


class Boxes(Protocol):
    """Boxes of chunks, and the places in one array where they go. May be used once."""

    @property
    def keys(self) -> Sequence[str]:
        """Where the chunks are."""

    @property
    def chunks(self) -> int:
        """Chunks, or inner chunks, that have to be decoded."""

    @property
    def nbytes(self) -> int:
        """Their decoded bytes."""

    def read_files(
        self, root: str | os.PathLike[str], max_workers: int | None, shard_index_cache: int = 0, /
    ) -> Sequence[bool]:
        """Read and decode files of the local file system.

        Parameters
        ----------
        root
            The folder that keys are relative to, which are what the places of chunks have as ``path``; none leads out
            of it.
        max_workers
            Limit of threads that compute.
        shard_index_cache
            Bytes of shard indexes that may be kept from call to call; 0 drops those that are.

        Returns
        -------
        sequence of bool
            One per chunk: whether it was there.
        """

    def read_packed(
        self,
        descriptor: int,
        path: str | os.PathLike[str],
        rows: tuple[Sequence[int], Sequence[int]],
        max_workers: int | None,
        shard_index_cache: int = 0,
        /,
    ) -> None:
        """Read and decode chunks that lie in one file.

        Parameters
        ----------
        descriptor
            Of the file; it is taken over.
        path
            The name of the file, for errors.
        rows
            First byte, negative for a missing one, and bytes of the chunk of each selection.
        max_workers
            Limit of threads that compute.
        shard_index_cache
            Bytes of shard indexes that may be kept from call to call.
        """

    def decode(self, buffers: Sequence[Buffer | None], max_workers: int | None, /) -> None:
        """Decode chunks that are in memory.

        Parameters
        ----------
        buffers
            The whole chunk of each selection; None for a missing one.
        max_workers
            Limit of threads.
        """


class BoxReader(Protocol):
    """What a backend offers for a few plain boxes of chunks of one prepared chain."""

    def boxes(
        self, rows: list[tuple[Any, ...]], store: Any, out: NDArray[Any], drop_axes: Sequence[int] = (), /
    ) -> Boxes | None:
        """Look at selections.

        Parameters
        ----------
        rows
            For each chunk a tuple that begins with the place where it is, what else is said of it, what is taken of
            it, and where that goes.
        store
            What all places have to have as ``store``; None when that is not asked.
        out
            The caller's array.
        drop_axes
            Axes of the chunks that it has not, although a list of one index selects along them.

        Returns
        -------
        Boxes or None
            None unless places are of one class, one and the same object is said of all chunks, and selections lie
            within the chunks and the array, whose dtype is one that elements need no conversion for, and are tuples of
            forms that the backend reads: slices and integers always, slices and a list of indices, or lists laid out by
            ``numpy.ix_``, where it can.
        """

    def region(
        self, selection: tuple[Any, ...], key_format: tuple[str, str], max_chunks: int, out: NDArray[Any], /
    ) -> Boxes | None:
        """Look at one selection of an array whose chunks lie on a regular grid.

        Parameters
        ----------
        selection
            For each axis an integer, a slice of which nothing is left out, or int64 indices that ascend; none negative.
            An integer leaves the caller's array without the axis.
        key_format
            Keys of chunks are the first, and the numbers of the chunk along each axis with the second between them.
        max_chunks
            Most chunks.
        out
            The caller's array.

        Returns
        -------
        Boxes or None
            None for more chunks, for other selections than the backend reads, and for arrays of a dtype that elements
            need conversion for, or of another shape.
        """


def box_reader_of(prepared: PreparedChain) -> BoxReader | None:
    """Find what reads a few boxes of chunks.

    Parameters
    ----------
    prepared
        The prepared chain.

    Returns
    -------
    BoxReader or None
        That of the first backend, if it serves the chain.

    Examples
    --------
    >>> from chunkwright import CodecChain, ReferenceBackend
    >>> chain = CodecChain.from_json(["bytes"]).bind("uint8", 0)
    >>> box_reader_of(chain.prepare((4,), backends=[ReferenceBackend()])) is None
    True
    """
    make = getattr(prepared.backends[0], "box_reader", None) if prepared.backends else None
    found: BoxReader | None = None if make is None else make(prepared)
    return found
