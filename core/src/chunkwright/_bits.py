"""Compare an array with one value, bit for bit, field by field, padding ignored.

Written once, because the emptiness rule (is this chunk nothing but the fill value?) is applied to
whole chunks and to inner chunks and must be the same everywhere. Elements of 1, 2, 4 and 8 bytes are
compared as unsigned integers, which NumPy vectorises; complex numbers by their two parts; records by
their fields. Text and opaque bytes are compared by value, which for them is the same thing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ("bits_equal",)

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def bits_equal(array: NDArray[Any], value: NDArray[Any]) -> bool:
    """Whether every element of an array has the bits of one value.

    Parameters
    ----------
    array
        Array with at least one element, any strides.
    value
        0-d array of the same kind; converted to the array's dtype (byte order) first.

    Returns
    -------
    bool
        True when no element differs.

    Examples
    --------
    >>> bits_equal(np.array([np.nan, np.nan]), np.array(np.nan))
    True
    >>> bits_equal(np.zeros(2), np.array(-0.0))
    False
    """
    dtype = array.dtype
    if value.dtype != dtype:
        value = value.astype(dtype)
    if dtype.names is not None:
        return all(bits_equal(array[name], value[name]) for name in dtype.names)
    if dtype.kind == "c":
        return bits_equal(array.real, value.real) and bits_equal(array.imag, value.imag)
    unsigned = _UNSIGNED.get(dtype.itemsize)
    if dtype.kind in "biufmM" and unsigned is not None:
        array, value = array.view(unsigned), value.view(unsigned)
    # The first element tells most chunks that hold data apart at no cost. It stays an array: text may hold what is
    # no character, of which Python makes no string.
    first, expected = array[(slice(1),) * array.ndim], value if value.ndim == 0 else value.reshape(-1)[:1]
    if array.ndim and not (first == expected).all():
        return False
    return bool((array == value).all())
