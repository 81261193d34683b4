"""The port for backends that write over encoded chunks without arrays in between.

A chunk that is partly written is decoded, changed and encoded again. The core does that with ``decode_arrays`` and
``encode_from`` of any backend. One that can do it chunk by chunk, in memory that is used again or becomes the new
chunk, has a method ``rewrite_from``, with the same result: the same bytes, the same errors.
"""

from __future__ import annotations

from collections.abc import Buffer
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.entries import Entries
from chunkwright.ports import Run

__all__ = ("Rewrites",)


@runtime_checkable
class Rewrites(Protocol):
    """A backend that writes over encoded chunks.

    Examples
    --------
    >>> from chunkwright import ReferenceBackend
    >>> isinstance(ReferenceBackend(), Rewrites)
    True
    """

    def rewrite_from(
        self,
        run: Run,
        source: NDArray[Any],
        entries: Entries,
        *,
        existing: Buffers,
        keep_empty: bool,
        max_workers: int | None = None,
    ) -> list[Buffer | None] | None:
        """Gather chunks from the caller's array and encode them, on top of what they held before.

        Parameters
        ----------
        run
            A run that starts at the chain's first codec and contains its array->bytes codec.
        source
            The caller's array; zero strides are fine.
        entries
            Selections of the chunks and where in ``source`` their elements are, ordered by chunk.
        existing
            One row per chunk: what it held before, as the run encodes it; missing rows are the fill value.
        keep_empty
            Whether a chunk that holds nothing but the fill value is encoded all the same.
        max_workers
            Limit of threads.

        Returns
        -------
        list of Buffer or None
            One per row of ``existing``; None for a chunk that equals the fill value and need not be kept. None in
            place of the list leaves it to the core.

        Raises
        ------
        CorruptChunkError
            When old bytes do not decode; ``position`` is the row.
        """
