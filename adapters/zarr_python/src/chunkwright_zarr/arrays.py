"""The array behind what a caller gives: an array of zarr's, asynchronous or not, and nothing else."""

from __future__ import annotations

from typing import Any

import zarr
from zarr.core.array import AsyncArray

__all__ = ("AnyArray", "async_array_of")

type AnyArray = zarr.Array[Any] | AsyncArray[Any]


def async_array_of(array: AnyArray) -> AsyncArray[Any]:
    """Return the asynchronous array behind an array.

    Parameters
    ----------
    array
        Either kind.

    Returns
    -------
    AsyncArray
        The array that does the work.

    Raises
    ------
    TypeError
        When it is something else.

    Examples
    --------
    >>> array = zarr.create_array({}, shape=(4,), dtype="i2")
    >>> async_array_of(array) is array.async_array
    True
    >>> async_array_of([1, 2])
    Traceback (most recent call last):
    TypeError: a zarr array is needed, not builtins.list
    """
    if isinstance(array, zarr.Array):
        return array.async_array
    if isinstance(array, AsyncArray):
        return array
    raise TypeError(f"a zarr array is needed, not {type(array).__module__}.{type(array).__qualname__}")
