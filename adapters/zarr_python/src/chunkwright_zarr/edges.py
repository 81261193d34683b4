"""Where the chunks of an array begin and end, along one axis at a time.

zarr's grids say it of one index at a time; here it is said of columns of indices, in the same terms for chunks of
equal length and for chunks whose lengths differ.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray
from zarr.core.chunk_grids import ChunkGrid, FixedDimension, VaryingDimension

__all__ = ("Edges", "edges_of")

type Columns = NDArray[np.int64]


@attrs.frozen(eq=False)
class Edges:
    """Where chunks, or inner chunks, begin and end along one axis of an array.

    Parameters
    ----------
    size
        Length of every chunk, when they are equal.
    bounds
        int64: where each chunk begins, and the end of the last, when they are not.

    Examples
    --------
    >>> edges = Edges(bounds=np.array([0, 3, 4, 9]))
    >>> edges.cells(np.array([0, 3, 8])).tolist(), edges.begin(np.array([2])).tolist()
    ([0, 1, 2], [4])
    """

    size: int = 0
    bounds: Columns | None = None

    @property
    def first(self) -> int:
        """Length of the first chunk."""
        return self.size if self.bounds is None else int(self.bounds[1] - self.bounds[0])

    def cells(self, indices: Columns) -> Columns:
        """Return in which chunk indices lie.

        Parameters
        ----------
        indices
            int64: indices within the array.

        Returns
        -------
        NDArray
            int64: numbers of chunks.
        """
        if self.bounds is None:
            return indices // self.size
        return np.searchsorted(self.bounds, indices, "right") - 1

    def begin(self, cells: Columns) -> Columns:
        """Return where chunks begin.

        Parameters
        ----------
        cells
            int64: numbers of chunks.

        Returns
        -------
        NDArray
            int64: indices within the array.
        """
        return cells * self.size if self.bounds is None else self.bounds[cells]

    def length(self, cells: Columns) -> Columns:
        """Return how long chunks are, also where they reach beyond the array.

        Parameters
        ----------
        cells
            int64: numbers of chunks.

        Returns
        -------
        NDArray
            int64, at least 1.
        """
        if self.bounds is None:
            return np.full_like(cells, self.size)
        return self.bounds[cells + 1] - self.bounds[cells]


def edges_of(grid: ChunkGrid) -> tuple[Edges, ...]:
    """Return the edges of the chunks of one of zarr's grids.

    Parameters
    ----------
    grid
        Regular or rectilinear.

    Returns
    -------
    tuple of Edges
        One per axis.

    Raises
    ------
    TypeError
        When zarr has got another kind of grid.

    Examples
    --------
    >>> [edges.size for edges in edges_of(ChunkGrid.from_sizes((9, 9), (2, 4)))]
    [2, 4]
    """
    return tuple(map(_edges_along, grid.dimensions))


def _edges_along(dimension: object) -> Edges:
    if isinstance(dimension, FixedDimension):
        return Edges(dimension.size)
    if isinstance(dimension, VaryingDimension):
        return Edges(bounds=np.array([0, *dimension.cumulative], np.int64))
    raise TypeError(f"unknown chunk grid: {dimension!r}")
