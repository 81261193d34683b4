"""Elements of variable length: the number of elements, then each one with its length before it.

All counts are little-endian uint32. Bytes after the last element are ignored, as numcodecs ignores them.
"""

from __future__ import annotations

from collections.abc import Buffer, Callable
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.errors import ChunkLengthError, CorruptChunkError
from chunkwright.ports import Step

__all__ = ("vlen_decoder", "vlen_encoder")

_COUNT = Struct("<I")


def vlen_decoder(step: Step) -> Callable[[Buffer], NDArray[Any]]:
    """Make the decoder of ``vlen-utf8`` or ``vlen-bytes``.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Callable
        From bytes to an array of the step's shape and dtype.
    """
    name, spec = step.codec.name, step.spec
    convert: Callable[[memoryview], Any] = bytes if name == "vlen-bytes" else _text

    def decode(item: Buffer) -> NDArray[Any]:
        data = memoryview(item)
        count, begin = _count(data, 0, name), _COUNT.size
        if count != spec.elements:
            raise ChunkLengthError("wrong number of elements", codec=name, expected=spec.elements, found=count)
        array = np.empty(count, object)
        for number in range(count):
            length = _count(data, begin, name)
            begin += _COUNT.size
            if begin + length > len(data):
                raise CorruptChunkError("an element ends after the last byte", codec=name)
            array[number] = convert(data[begin : begin + length])
            begin += length
        return array.reshape(spec.shape).astype(spec.dtype.numpy, copy=False)

    return decode


def vlen_encoder(step: Step) -> Callable[[NDArray[Any]], bytes]:
    """Make the encoder of ``vlen-utf8`` or ``vlen-bytes``.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Callable
        From an array to bytes; None and 0 are stored as no characters, as numcodecs stores them.
    """
    empty: str | bytes = b"" if step.codec.name == "vlen-bytes" else ""

    def encode(array: NDArray[Any]) -> bytes:
        parts = [_COUNT.pack(array.size)]
        for value in array.astype(object).ravel():
            element = empty if value is None or value == 0 else value
            data = element.encode() if isinstance(element, str) else bytes(element)
            parts += (_COUNT.pack(len(data)), data)
        return b"".join(parts)

    return encode


def _text(data: memoryview) -> str:
    return str(data, "utf-8")


def _count(data: memoryview, begin: int, name: str) -> int:
    if begin + _COUNT.size > len(data):
        raise CorruptChunkError("the bytes end before a count", codec=name)
    count: int = _COUNT.unpack_from(data, begin)[0]
    return count
