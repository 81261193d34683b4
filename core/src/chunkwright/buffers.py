"""Encoded bytes of many chunks as columns: a few owners, and one row of three integers per chunk.

A whole shard is one owner with thousands of rows; a batch of separate objects is as many owners as
rows. Backends get the columns as they are; nothing here makes a Python object per inner chunk unless
it is asked to (:meth:`Buffers.view`).

The owners may also be :class:`Stored`: objects whose bytes are still in storage. Whoever can read and decode in one
go then does so; everybody else asks for views, which are read together.
"""

from __future__ import annotations

from collections.abc import Buffer, Iterator, Sequence
from typing import Protocol, Self, runtime_checkable

import attrs
import numpy as np
from numpy.typing import NDArray

__all__ = ("Buffers", "Stored")

MISSING = -1


@runtime_checkable
class Stored(Protocol):
    """Objects whose bytes are not in memory yet, in place of owners."""

    def load(
        self, source: NDArray[np.int64], offset: NDArray[np.int64], length: NDArray[np.int64], /
    ) -> Sequence[Buffer | None]:
        """Read rows.

        Parameters
        ----------
        source, offset, length
            As in :class:`Buffers`.

        Returns
        -------
        sequence of Buffer or None
            One per row.
        """

    def __len__(self) -> int:
        """How many objects there are."""


@attrs.frozen(eq=False)
class Buffers:
    """Encoded chunks of a batch, columnar.

    Parameters
    ----------
    owners
        Objects that support the buffer protocol, C-contiguous; or objects in storage.
    source
        int64, shape ``(n,)``: the owner of each row.
    offset
        int64, shape ``(n,)``: first byte of each row within its owner, or -1 for a missing chunk.
    length
        int64, shape ``(n,)``: bytes of each row.
    is_scratch
        Whether nobody else needs the bytes: whoever is given them may change those that can be changed.

    Examples
    --------
    >>> rows = Buffers.of([b"ab", None, b"c"])
    >>> len(rows), rows.view(0).tobytes(), rows.view(1)
    (3, b'ab', None)
    """

    owners: tuple[Buffer, ...] | Stored
    source: NDArray[np.int64]
    offset: NDArray[np.int64]
    length: NDArray[np.int64]
    is_scratch: bool = False

    @classmethod
    def of(cls, items: Sequence[Buffer | None], *, is_scratch: bool = False) -> Self:
        """Make one row per item, each its own owner.

        Parameters
        ----------
        items
            Bytes-like objects; None for a missing chunk.
        is_scratch
            Whether nobody else needs them.

        Returns
        -------
        Self
            One row per item, in order.
        """
        owners = tuple(b"" if item is None else item for item in items)
        length = np.fromiter((memoryview(owner).nbytes for owner in owners), np.int64, len(owners))
        missing = np.fromiter((item is None for item in items), bool, len(owners))
        offset = np.where(missing, MISSING, 0).astype(np.int64)
        return cls(owners, np.arange(len(owners), dtype=np.int64), offset, length, is_scratch)

    @classmethod
    def within(cls, owner: Buffer, offset: NDArray[np.int64], length: NDArray[np.int64]) -> Self:
        """Make rows that all lie in one owner, as the inner chunks of a shard do.

        Parameters
        ----------
        owner
            The bytes.
        offset, length
            int64, shape ``(n,)``; offset -1 for a missing chunk.

        Returns
        -------
        Self
            One row per offset.
        """
        return cls((owner,), np.zeros(len(offset), np.int64), offset, length)

    @classmethod
    def concatenate(cls, parts: Sequence[Buffers]) -> Self:
        """Put the rows of several batches one after the other.

        Parameters
        ----------
        parts
            Batches, at least one.

        Returns
        -------
        Self
            All rows, in order.
        """
        parts = [part.loaded() for part in parts]
        shift = np.cumsum([0] + [len(part.owners) for part in parts[:-1]])
        return cls(
            tuple(owner for part in parts for owner in part._in_memory),
            np.concatenate([part.source + by for part, by in zip(parts, shift, strict=True)]),
            np.concatenate([part.offset for part in parts]),
            np.concatenate([part.length for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.offset)

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which rows are missing, shape ``(n,)``."""
        return self.offset < 0

    @property
    def nbytes(self) -> int:
        """Bytes of all rows together."""
        return int(self.length[~self.missing].sum())

    @property
    def is_stored(self) -> bool:
        """Whether the bytes are still in storage."""
        return not isinstance(self.owners, tuple)

    @property
    def _in_memory(self) -> tuple[Buffer, ...]:
        assert isinstance(self.owners, tuple)
        return self.owners

    def loaded(self) -> Buffers:
        """Return the same rows with their bytes in memory.

        Returns
        -------
        Buffers
            This object, unless its owners are in storage.
        """
        if isinstance(self.owners, tuple):
            return self
        return Buffers.of(self.owners.load(self.source, self.offset, self.length))

    def load(self, first: int, last: int) -> list[memoryview | None]:
        """Read some rows whose owners are in storage.

        Parameters
        ----------
        first, last
            The first row and the one after the last.

        Returns
        -------
        list of memoryview or None
            Bytes of each row (format ``B``), None for missing ones.
        """
        assert not isinstance(self.owners, tuple)
        rows = slice(first, last)
        loaded = self.owners.load(self.source[rows], self.offset[rows], self.length[rows])
        return [None if item is None else memoryview(item).cast("B") for item in loaded]

    def take(self, rows: NDArray[np.int64]) -> Buffers:
        """Select rows; owners are kept.

        Parameters
        ----------
        rows
            int64, the rows to keep, in order.

        Returns
        -------
        Buffers
            The selected rows.
        """
        return attrs.evolve(self, source=self.source[rows], offset=self.offset[rows], length=self.length[rows])

    def view(self, row: int) -> memoryview | None:
        """Return the bytes of one row without a copy.

        Parameters
        ----------
        row
            Which row.

        Returns
        -------
        memoryview or None
            Its bytes (format ``B``), or None when the chunk is missing.
        """
        if not isinstance(self.owners, tuple):
            return self.load(row, row + 1)[0]
        offset = int(self.offset[row])
        if offset < 0:
            return None
        owner = memoryview(self.owners[int(self.source[row])]).cast("B")
        return owner[offset : offset + int(self.length[row])]

    def views(self) -> Iterator[memoryview | None]:
        """Yield the bytes of each row without a copy, None for missing ones.

        Yields
        ------
        memoryview or None
            One per row, in order.
        """
        if not isinstance(self.owners, tuple):
            yield from self.load(0, len(self))
            return
        owners = [memoryview(owner).cast("B") for owner in self.owners]
        columns = zip(self.source.tolist(), self.offset.tolist(), self.length.tolist(), strict=True)
        for source, offset, length in columns:
            yield None if offset < 0 else owners[source][offset : offset + length]
