"""``numcodecs.pcodec`` and ``numcodecs.zfpy``: compressors of numbers, where their libraries are installed.

``pcodec`` decodes into an array of the chain's size. numcodecs would take as many numbers as there are, and leave the
rest of the array unset when there are fewer; here both are errors.

Both libraries read numbers where they lie, so arrays are aligned for them.

The header of a ``zfpy`` chunk is read first, and must have the chain's shape and data type. The decoder does not look
where a chunk ends, so it is given zeros behind it, as many as it could read; a chunk that was cut short therefore
decodes to something, and only its header can be missed. What either decoder allocates besides its result is not
known, so they are not called bounded.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.errors import ChunkLengthError, CorruptChunkError
from chunkwright.kernels import Kernel
from chunkwright.ports import Step
from chunkwright_numcodecs._library import library_object, panics_as_errors

__all__ = ("pcodec_kernel", "zfpy_kernel")

# zfp's blocks have four values along each axis; its header has at least 12 bytes and fewer than 64.
_BLOCK = 4
_SHORTEST_HEADER, _LONGEST_HEADER = 12, 64


def pcodec_kernel(step: Step) -> Kernel:
    """Compile ``numcodecs.pcodec``.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Kernel
        The kernel.
    """
    standalone = import_module("pcodec.standalone")
    name, spec, library = step.codec.name, step.spec, library_object(step.codec)
    native = spec.dtype.numpy.newbyteorder("=")

    def decode(item: Any) -> NDArray[Any]:
        array = np.empty(spec.elements, native)
        with panics_as_errors(name):
            progress = standalone.simple_decompress_into(bytes(item), array)
        if progress.n_processed != spec.elements or not progress.finished:
            found = progress.n_processed if progress.finished else "more"
            raise ChunkLengthError("wrong number of elements", codec=name, expected=spec.elements, found=found)
        return array.reshape(spec.shape)

    def encode(array: NDArray[Any]) -> Any:
        return library.encode(np.require(array, native, ["C", "A"]))

    return Kernel(codec=name, decode=decode, encode=encode, bounded=False)


def zfpy_kernel(step: Step) -> Kernel:
    """Compile ``numcodecs.zfpy``.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Kernel
        The kernel.
    """
    zfpy = import_module("zfpy")
    name, spec, library = step.codec.name, step.spec, library_object(step.codec)
    native = spec.dtype.numpy.newbyteorder("=")
    blocks = math.prod(-(-length // _BLOCK) for length in spec.shape)
    # A block has a sign and an exponent, and a bit more than its bits for each value.
    most = _LONGEST_HEADER + blocks * (_BLOCK**spec.ndim * (8 * native.itemsize + 1) + 64) // 8

    def decode(item: Any) -> NDArray[Any]:
        if len(item) < _SHORTEST_HEADER:
            raise CorruptChunkError("no room for a header", codec=name, expected=_SHORTEST_HEADER, found=len(item))
        data = bytes(item) + bytes(most)
        header = zfpy.header(data)
        # The library counts axes from the last one on; axes that are not there have no elements.
        shape = tuple(header[axis] for axis in ("nw", "nz", "ny", "nx") if header[axis])
        if shape != spec.shape or np.dtype(header["type"]) != native:
            found = (*shape, np.dtype(header["type"]).name)
            raise ChunkLengthError("wrong header", codec=name, expected=(*spec.shape, native.name), found=found)
        fewest = _SHORTEST_HEADER + blocks * header["config"]["expert"]["minbits"] // 8
        if fewest > len(item):
            raise ChunkLengthError("too short", codec=name, expected=f"at least {fewest}", found=len(item))
        decoded: NDArray[Any] = library.decode(data)
        return decoded

    def encode(array: NDArray[Any]) -> Any:
        return library.encode(np.require(array, native, ["C", "A"]))

    return Kernel(codec=name, decode=decode, encode=encode, bounded=False)
