"""numcodecs' filters: ``delta``, ``fixedscaleoffset``, ``quantize``, ``astype``, ``bitround``, ``packbits`` and
``categorize`` between arrays, ``shuffle`` and ``base64`` between bytes.

numcodecs flattens arrays in the order in which they lie in memory; so they are given to it in C order. What comes
out is put into the shape and the data type of the chain, bits unchanged (``bitround`` makes integers of floats).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.errors import ChunkLengthError
from chunkwright.kernels import Kernel
from chunkwright.ports import Step
from chunkwright_numcodecs._library import library_object

__all__ = ("base64_kernel", "filter_kernel", "shuffle_kernel")


def filter_kernel(step: Step) -> Kernel:
    """Compile a filter between arrays.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Kernel
        The kernel.
    """
    library = library_object(step.codec)
    shape, dtype = step.encoded_spec.shape, step.encoded_spec.dtype.numpy

    def decode(array: NDArray[Any]) -> NDArray[Any]:
        # Any bits may be stored, and what NumPy has to say about some of them is of no use to anybody.
        with np.errstate(all="ignore"):
            decoded: NDArray[Any] = library.decode(np.ascontiguousarray(array, dtype))
        return decoded

    def encode(array: NDArray[Any]) -> NDArray[Any]:
        encoded: NDArray[Any] = library.encode(np.ascontiguousarray(array)).reshape(shape)
        only_swapped = encoded.dtype.newbyteorder("=") == dtype.newbyteorder("=")
        if encoded.dtype == dtype or only_swapped or encoded.dtype.itemsize != dtype.itemsize:
            return encoded
        return encoded.view(dtype)

    return Kernel(codec=step.codec.name, decode=decode, encode=encode)


def shuffle_kernel(step: Step) -> Kernel:
    """Compile ``numcodecs.shuffle``.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Kernel
        The kernel.
    """
    name, library = step.codec.name, library_object(step.codec)
    size = max(library.elementsize, 1)

    def decode(item: Any) -> NDArray[np.uint8]:
        if len(item) % size:
            raise ChunkLengthError("no whole elements", codec=name, expected=f"a multiple of {size}", found=len(item))
        decoded: NDArray[np.uint8] = library.decode(item)
        return decoded

    return Kernel(codec=name, decode=decode, encode=library.encode)


def base64_kernel(step: Step) -> Kernel:
    """Compile ``base64`` of Zarr v2.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Kernel
        The kernel; what decoding makes is smaller than what it is given.
    """
    library = library_object(step.codec)
    return Kernel(codec=step.codec.name, decode=library.decode, encode=library.encode)
