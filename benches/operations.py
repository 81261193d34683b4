"""What is done with an array: lists of calls, each one selection, and what NumPy gives for it.

Boxes are 64 calls, one after the other, as a program makes them that needs one box at a time. Reads of many boxes
at once are the suite of crops.
"""

from __future__ import annotations

from math import prod
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from benches.data import DataSet

__all__ = ("Call", "Operation", "random_boxes", "standard_operations")

READS = ("read all", "read plane, first axis", "read plane, last axis", "read boxes", "read lists")
WRITES = ("write all", "write plane")


@attrs.frozen(eq=False)
class Call:
    """One selection: an integer, a slice of step 1 or a sorted list of indices for each axis; lists are orthogonal."""

    selection: tuple[Any, ...]

    @classmethod
    def of_everything(cls, ndim: int) -> Call:
        """Select a whole array."""
        return cls((slice(None),) * ndim)

    @property
    def has_lists(self) -> bool:
        """Whether any axis is selected by a list."""
        return any(isinstance(item, np.ndarray) for item in self.selection)

    def of(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return what NumPy selects."""
        if not self.has_lists:
            return np.asarray(values[self.selection])
        return np.asarray(values[self.indices(values.shape)])

    def indices(self, shape: tuple[int, ...]) -> tuple[NDArray[np.int64], ...]:
        """Return open mesh indices for a call with lists."""
        return np.ix_(*(_expanded(item, extent) for item, extent in zip(self.selection, shape, strict=True)))


def _expanded(item: Any, extent: int) -> NDArray[np.int64]:
    return np.arange(extent)[item] if isinstance(item, slice) else np.asarray(item)


@attrs.frozen(eq=False)
class Operation:
    """Calls under a name; those that write have a value for each."""

    name: str
    calls: tuple[Call, ...]
    values: tuple[NDArray[Any], ...] = ()

    @property
    def writes(self) -> bool:
        """Whether the operation changes the array."""
        return bool(self.values)

    def expected(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Return what a read gives."""
        return [call.of(values) for call in self.calls]

    def apply(self, values: NDArray[Any]) -> None:
        """Do to an array in memory what a write does."""
        for call, value in zip(self.calls, self.values, strict=True):
            values[call.selection] = value


def random_boxes(shape: tuple[int, ...], size: int, count: int) -> tuple[Call, ...]:
    """Return boxes of one size at random places inside an array, the same ones each time."""
    random = np.random.default_rng(3)
    sizes = np.minimum(np.array(shape, np.int64), size)
    starts = random.integers(0, np.array(shape, np.int64) - sizes + 1, (count, len(shape)))
    ends = starts + sizes
    return tuple(Call(tuple(map(slice, *pair))) for pair in zip(starts.tolist(), ends.tolist(), strict=True))


def standard_operations(data: DataSet) -> tuple[Operation, ...]:
    """Return the operations of the grid for a data set, under :data:`READS` and :data:`WRITES`."""
    shape = data.values.shape
    everything = (slice(None),) * len(shape)
    first, last = _plane(shape, 0), _plane(shape, len(shape) - 1)
    reads = (
        (everything,),
        (first,),
        (last,),
        tuple(call.selection for call in _boxes(shape)),
        (_lists(shape),),
    )
    operations = [Operation(name, tuple(map(Call, selections))) for name, selections in zip(READS, reads, strict=True)]
    # Neither value is what the array holds, nor is the plane what the write of everything leaves there.
    changed = (np.flip(data.values), np.roll(data.values[first], 1))
    for name, selection, value in zip(WRITES, (everything, first), changed, strict=True):
        operations.append(Operation(name, (Call(selection),), (np.ascontiguousarray(value),)))
    return tuple(operations)


def _boxes(shape: tuple[int, ...]) -> tuple[Call, ...]:
    """64 boxes of 24 elements along each axis, or a tenth of a single axis; fewer and smaller ones of small arrays."""
    large = prod(shape) > (64_000 if len(shape) == 1 else 64**3)
    size = shape[0] // 10 if len(shape) == 1 else (24 if large else 6)
    return random_boxes(shape, size, 64 if large else 8)


def _plane(shape: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    """The middle plane across an axis; of an array with one axis, a sixteenth near its middle or end."""
    if len(shape) == 1:
        start = shape[0] // 2 if axis == 0 else shape[0] * 7 // 8
        return (slice(start, start + shape[0] // 16),)
    return tuple(extent // 2 if number == axis else slice(None) for number, extent in enumerate(shape))


def _lists(shape: tuple[int, ...]) -> tuple[Any, ...]:
    """An eighth of the first axis and of the last but for the middle ones, which are taken whole."""
    random = np.random.default_rng(4)
    chosen = {
        axis: np.sort(random.choice(shape[axis], shape[axis] // 8, replace=False)) for axis in (0, len(shape) - 1)
    }
    return tuple(chosen.get(axis, slice(None)) for axis in range(len(shape)))
