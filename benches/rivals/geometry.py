"""Selections cut along a grid of cells."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import attrs
import numpy as np

from benches.operations import Call

__all__ = ("Piece", "out_shape", "pieces")


@attrs.frozen(eq=False)
class Piece:
    """The part of a selection that lies in one cell: an index into the cell and one into the result."""

    cell: tuple[int, ...]
    inner: tuple[Any, ...]
    out: tuple[Any, ...]
    # Whether the piece takes the cell as far as it lies in the array.
    is_whole: bool


def out_shape(call: Call, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of what a call reads."""
    lengths = (
        len(item) if isinstance(item, np.ndarray) else len(range(extent)[item])
        for item, extent in zip(call.selection, shape, strict=True)
        if not isinstance(item, int)
    )
    return tuple(lengths)


def pieces(call: Call, shape: tuple[int, ...], cell: tuple[int, ...]) -> Iterator[Piece]:
    """Cut a call along the grid of cells, the last axis fastest."""
    cuts = (_cut(*axis) for axis in zip(call.selection, shape, cell, strict=True))
    for parts in product(*cuts):
        inner = tuple(part[1] for part in parts)
        if call.has_lists:
            inner = np.ix_(*(np.arange(item.start, item.stop) if isinstance(item, slice) else item for item in inner))
        out = tuple(part[2] for part in parts if part[2] is not None)
        yield Piece(tuple(part[0] for part in parts), inner, out, all(part[3] for part in parts))


def _cut(item: Any, extent: int, edge: int) -> Iterator[tuple[int, Any, slice | None, bool]]:
    """Cut one axis: the cell, an index into it, a slice of the result, and whether the cell is taken whole."""
    if isinstance(item, int):
        yield item // edge, item % edge, None, min(edge, extent) == 1
    elif isinstance(item, slice):
        start, stop, _ = item.indices(extent)
        for number in range(start // edge, -(-stop // edge)):
            first, last = max(start, number * edge), min(stop, (number + 1) * edge)
            whole = first == number * edge and last == min(extent, (number + 1) * edge)
            yield number, slice(first - number * edge, last - number * edge), slice(first - start, last - start), whole
    else:
        numbers, begins = np.unique(item // edge, return_index=True)
        for number, begin, end in zip(
            numbers.tolist(), begins.tolist(), [*begins[1:].tolist(), len(item)], strict=True
        ):
            yield number, item[begin:end] - number * edge, slice(begin, end), False
