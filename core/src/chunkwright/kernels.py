"""Kernels: one codec's work on one chunk, as backends compile it.

``bytes`` and ``transpose`` are the same for every backend made of kernels and are here: byte order is a dtype
and a transpose is a view, so that both are folded into the copy that fills the caller's array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright.errors import ChunkLengthError
from chunkwright.ports import Step
from chunkwright.spec import FixedSize

__all__ = ("Kernel", "decoded_limit", "inverse_order", "shared_kernel")


@attrs.frozen(eq=False, kw_only=True)
class Kernel:
    """One step of a run, compiled.

    Parameters
    ----------
    codec
        Name of the codec, for errors.
    decode, encode
        Turn one item into the next. Bytes are any object of the buffer protocol whose ``len`` is its number of
        bytes. Decoding may return a view of its argument; so may encoding, unless it is bytes->bytes.
    decode_into
        Decode into contiguous memory of exactly the decoded size, or None when the library cannot.
    passes
        Exceptions of the library that are not about the bytes and go to the caller as they are.
    bounded
        Whether all memory that decoding takes is bounded by the chain. If not, a ``MemoryError`` is the bytes' fault.
    order
        Set for transposes: the permutation.
    stored
        Set for ``bytes``: the dtype that the bytes have.

    Examples
    --------
    >>> kernel = Kernel(codec="reverse", decode=lambda data: data[::-1], encode=lambda data: data[::-1])
    >>> kernel.decode(b"abc")
    b'cba'
    """

    codec: str
    decode: Callable[[Any], Any]
    encode: Callable[[Any], Any]
    decode_into: Callable[[Any, NDArray[np.uint8]], None] | None = None
    passes: tuple[type[Exception], ...] = ()
    bounded: bool = True
    order: tuple[int, ...] | None = None
    stored: np.dtype[Any] | None = None


def decoded_limit(step: Step) -> tuple[int | None, int]:
    """Return how many bytes decoding a step must make, and how many it may make at most.

    Parameters
    ----------
    step
        A step whose decoded side is bytes.

    Returns
    -------
    tuple of int or None and int
        The exact number (None when the chain does not fix it) and the largest.
    """
    size = step.decoded_size
    if isinstance(size, FixedSize):
        return size.nbytes, size.nbytes
    return None, step.max_bytes if size.nbytes is None else min(size.nbytes, step.max_bytes)


def shared_kernel(step: Step) -> Kernel | None:
    """Compile ``bytes`` or ``transpose``.

    Parameters
    ----------
    step
        Any step.

    Returns
    -------
    Kernel or None
        None for any other codec.
    """
    compiler = {"bytes": _bytes_kernel, "transpose": _transpose_kernel}.get(step.codec.name)
    return None if compiler is None else compiler(step)


def _bytes_kernel(step: Step) -> Kernel:
    endian = step.codec.configuration().get("endian")
    dtype = step.spec.dtype.numpy
    stored = dtype if endian is None else dtype.newbyteorder("<" if endian == "little" else ">")
    shape, nbytes = step.spec.shape, step.spec.elements * stored.itemsize

    def decode(item: Any) -> NDArray[Any]:
        if len(item) != nbytes:
            raise ChunkLengthError("wrong length", codec="bytes", expected=nbytes, found=len(item))
        return np.ndarray(shape, stored, item)

    def encode(array: NDArray[Any]) -> NDArray[np.uint8]:
        return np.ascontiguousarray(array, stored).reshape(-1).view(np.uint8)

    return Kernel(codec="bytes", decode=decode, encode=encode, stored=stored)


def _transpose_kernel(step: Step) -> Kernel:
    order = tuple(step.codec.configuration()["order"])
    inverse = inverse_order(order)

    def decode(array: NDArray[Any]) -> NDArray[Any]:
        return array.transpose(inverse)

    def encode(array: NDArray[Any]) -> NDArray[Any]:
        return array.transpose(order)

    return Kernel(codec="transpose", decode=decode, encode=encode, order=order)


def inverse_order(order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the permutation that undoes another.

    Parameters
    ----------
    order
        The permutation.

    Returns
    -------
    tuple of int
        Its inverse.

    Examples
    --------
    >>> inverse_order((2, 0, 1))
    (1, 2, 0)
    """
    return tuple(sorted(range(len(order)), key=order.__getitem__))
