"""``scale_offset``: ``(x - offset) * scale`` and back, in the arithmetic of the data type.

Integers must come out exactly, or it is an error. They are computed modulo 2^n, in which every result that the data
type has is right whatever overflowed on the way; and because the map is monotonous, the least and the greatest
element tell, in Python's unbounded integers, whether all results are in range. Where no element of the data type
could leave the range, nobody looks. Decoding divides, which must leave no remainder.

Floats follow IEEE 754, where nothing is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.codecs import ScaleOffset
from chunkwright.errors import CorruptChunkError
from chunkwright.kernels import Kernel
from chunkwright.ports import Step

__all__ = ("scale_offset_kernel",)

NAME = "scale_offset"


def scale_offset_kernel(step: Step) -> Kernel:
    """Compile ``scale_offset``.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Kernel
        Encoding raises ``ValueError`` when a value has no exact result.
    """
    codec, dtype = step.codec, step.spec.dtype.numpy
    assert isinstance(codec, ScaleOffset)
    native = dtype.newbyteorder("=")
    offset, scale = (value.astype(native)[()] for value in codec.scalars(step.spec.dtype))
    make = _integers if native.kind in "iu" else _floats
    forward, backward = make(native, offset, scale)

    def decode(array: NDArray[Any]) -> NDArray[Any]:
        with np.errstate(all="ignore"):
            return np.asarray(backward(array.astype(native, copy=False)))

    def encode(array: NDArray[Any]) -> NDArray[Any]:
        with np.errstate(all="ignore"):
            return np.asarray(forward(array.astype(native, copy=False)), dtype)

    return Kernel(codec=NAME, decode=decode, encode=encode)


type Map = Callable[[NDArray[Any]], NDArray[Any]]


def _floats(dtype: np.dtype[Any], offset: Any, scale: Any) -> tuple[Map, Map]:
    def forward(array: NDArray[Any]) -> NDArray[Any]:
        result: NDArray[Any] = (array - offset) * scale
        return result

    def backward(array: NDArray[Any]) -> NDArray[Any]:
        result: NDArray[Any] = array / scale + offset
        return result

    return forward, backward


def _integers(dtype: np.dtype[Any], offset: Any, scale: Any) -> tuple[Map, Map]:
    info, by, times = np.iinfo(dtype), int(offset), int(scale)

    def fits(*ends: int) -> bool:
        return info.min <= min(ends) and max(ends) <= info.max

    def ahead(value: int) -> int:
        return (value - by) * times

    def back(value: int) -> int:
        return value // times + by

    always_ahead = fits(ahead(int(info.min)), ahead(int(info.max)))
    always_back = fits(back(int(info.min)), back(int(info.max)))

    def forward(array: NDArray[Any]) -> NDArray[Any]:
        if not always_ahead and array.size and not fits(ahead(int(array.min())), ahead(int(array.max()))):
            raise ValueError(f"{NAME}: a value is outside the range of dtype {dtype} after encoding")
        result: NDArray[Any] = (array - offset) * scale
        return result

    def backward(array: NDArray[Any]) -> NDArray[Any]:
        if abs(times) != 1 and np.any(array % scale):
            raise CorruptChunkError(f"division by {times} leaves a non-zero remainder", codec=NAME)
        if not always_back and array.size and not fits(back(int(array.min())), back(int(array.max()))):
            raise CorruptChunkError(f"a value is outside the range of dtype {dtype}", codec=NAME)
        result: NDArray[Any] = array // scale + offset
        return result

    return forward, backward
