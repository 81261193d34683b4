"""Random selections of every kind that zarr has, each with what NumPy does for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import attrs
import hypothesis.strategies as st
import numpy as np
from numpy.typing import NDArray

type Draw = st.DrawFn
type Kind = Literal["basic", "oindex", "vindex", "mask", "blocks"]


@attrs.frozen(eq=False)
class Selection:
    """A selection in zarr's terms, and the NumPy index of the same elements.

    ``drop`` are the axes of the NumPy result, all of length one, that zarr's result has not.
    """

    kind: Kind
    index: Any
    numpy: Any
    drop: tuple[int, ...] = ()

    def read(self, array: Any) -> Any:
        """Read from an array of zarr's."""
        return self._door(array)[self.index]

    def write(self, array: Any, value: Any) -> None:
        """Write to an array of zarr's."""
        self._door(array)[self.index] = value

    def read_numpy(self, array: NDArray[Any]) -> Any:
        """Read the same elements from a NumPy array."""
        found = array[self.numpy]
        return np.squeeze(found, axis=self.drop) if self.drop else found

    def write_numpy(self, array: NDArray[Any], value: Any) -> None:
        """Write the same elements of a NumPy array."""
        if self.drop and np.ndim(value):
            value = np.expand_dims(np.broadcast_to(value, self.read_numpy(array).shape), self.drop)
        array[self.numpy] = value

    def _door(self, array: Any) -> Any:
        return array if self.kind in ("basic", "mask") else getattr(array, self.kind)

    def __repr__(self) -> str:
        return f"{self.kind}[{self.index!r}]"


def selections(
    shape: tuple[int, ...], chunks: tuple[int, ...] | None, *, unique: bool = False
) -> st.SearchStrategy[Selection]:
    """Selections of an array; ``unique``: no element twice, so that the outcome of a write is defined."""
    kinds: list[Callable[..., st.SearchStrategy[Selection]]] = [basic(shape), oindex(shape, unique)]
    if shape and all(shape):
        kinds += [vindex(shape, unique), mask(shape)]
        if chunks is not None:
            kinds.append(blocks(shape, chunks))
    return st.one_of(kinds)


@st.composite
def _slice(draw: Draw, extent: int) -> slice:
    bound = st.none() | st.integers(-extent - 1, extent + 1)
    return slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 4)))


def _integer(extent: int) -> st.SearchStrategy[int]:
    return st.integers(-extent, extent - 1)


@st.composite
def basic(draw: Draw, shape: tuple[int, ...]) -> Selection:
    """Integers, slices and perhaps an ellipsis, on some or all axes."""
    given = draw(st.integers(0, len(shape)))
    items: list[Any] = [
        draw(_integer(extent) if extent and draw(st.integers(0, 3)) == 0 else _slice(extent))
        for extent in shape[:given]
    ]
    if given == len(shape) == 0 or draw(st.booleans()):
        items.append(...)
    index = tuple(items)
    if len(index) == 1 and draw(st.booleans()):
        return Selection("basic", index[0], index[0])
    return Selection("basic", index, index)


@st.composite
def _list(draw: Draw, extent: int, unique: bool) -> tuple[Any, NDArray[np.int64]]:
    """Integers in any order, or Booleans, along one axis."""
    if extent == 0:
        return np.zeros(0, int), np.zeros(0, np.int64)
    if draw(st.booleans()):
        chosen = np.array(draw(st.lists(st.booleans(), min_size=extent, max_size=extent)))
        return chosen, np.flatnonzero(chosen)
    values = draw(st.lists(st.integers(0, extent - 1), max_size=extent + 2, unique=unique))
    picked = np.array(values, np.int64)
    signs = np.array(draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))), bool)
    return np.where(signs, picked - extent, picked), picked


@st.composite
def oindex(draw: Draw, shape: tuple[int, ...], unique: bool) -> Selection:
    """Integers, slices, lists and Booleans, each along its own axis."""
    items: list[Any] = []
    lists: list[NDArray[np.int64]] = []
    drop: list[int] = []
    for axis, extent in enumerate(shape):
        kind = draw(st.sampled_from(["list", "slice", "integer"] if extent else ["list", "slice"]))
        if kind == "integer":
            items.append(draw(_integer(extent)))
            lists.append(np.array([items[-1] % extent]))
            drop.append(axis)
        elif kind == "slice":
            items.append(draw(_slice(extent)))
            lists.append(np.arange(extent)[items[-1]])
        else:
            item, picked = draw(_list(extent, unique))
            items.append(item)
            lists.append(picked)
    return Selection("oindex", tuple(items), np.ix_(*lists) if shape else (), tuple(drop))


@st.composite
def vindex(draw: Draw, shape: tuple[int, ...], unique: bool) -> Selection:
    """Points, as arrays of one or two axes."""
    size = int(np.prod(shape))
    flat = np.array(draw(st.lists(st.integers(0, size - 1), max_size=8, unique=unique)), np.int64)
    if len(flat) % 2 == 0 and draw(st.booleans()):
        flat = flat.reshape(2, -1)
    points = np.unravel_index(flat, shape)
    return Selection("vindex", points if len(points) > 1 else points[0], points)


@st.composite
def mask(draw: Draw, shape: tuple[int, ...]) -> Selection:
    """One Boolean per element."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    chosen = random.random(shape) < draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    return Selection("mask", chosen, chosen)


@st.composite
def blocks(draw: Draw, shape: tuple[int, ...], chunks: tuple[int, ...]) -> Selection:
    """Whole chunks, by number."""
    items: list[Any] = []
    elements: list[slice] = []
    for extent, size in zip(shape, chunks, strict=True):
        count = -(-extent // size)
        if draw(st.booleans()):
            items.append(draw(st.integers(0, count - 1)))
            first, last = items[-1], items[-1] + 1
        else:
            first = draw(st.integers(0, count - 1))
            last = draw(st.integers(first, count))
            items.append(slice(first, last))
        elements.append(slice(first * size, last * size))
    return Selection("blocks", tuple(items), tuple(elements))
