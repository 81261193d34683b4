"""``numcodecs.pcodec`` and ``numcodecs.zfpy``: compressors of numbers, where their libraries are installed.

``pcodec`` decodes into an array of the chain's size. numcodecs would take as many numbers as there are, and leave the
rest of the array unset when there are fewer; here both are errors. The header of a ``zfpy`` chunk is read first, as
far as the library tells it; what its decoder allocates besides is not known, so it is not called bounded.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.errors import ChunkLengthError, CorruptChunkError
from chunkwright.ports import Step
from chunkwright.program import Kernel
from chunkwright_numcodecs._library import library_object

__all__ = ("pcodec_kernel", "zfpy_kernel")


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
        try:
            progress = standalone.simple_decompress_into(bytes(item), array)
        except BaseException as error:
            # A panic of the Rust library is no Exception.
            if isinstance(error, Exception) or type(error).__name__ == "PanicException":
                raise CorruptChunkError(f"cannot be decoded ({error})", codec=name) from error
            raise
        if progress.n_processed != spec.elements or not progress.finished:
            found = progress.n_processed if progress.finished else "more"
            raise ChunkLengthError("wrong number of elements", codec=name, expected=spec.elements, found=found)
        return array.reshape(spec.shape)

    def encode(array: NDArray[Any]) -> Any:
        return library.encode(np.ascontiguousarray(array, native))

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

    def decode(item: Any) -> NDArray[Any]:
        data = bytes(item)
        header = zfpy.header(data)
        # The library counts axes from the last one on; axes that are not there have no elements.
        shape = tuple(header[axis] for axis in ("nw", "nz", "ny", "nx") if header[axis])
        if shape != spec.shape or np.dtype(header["type"]) != native:
            found = (*shape, np.dtype(header["type"]).name)
            raise ChunkLengthError("wrong header", codec=name, expected=(*spec.shape, native.name), found=found)
        decoded: NDArray[Any] = library.decode(data)
        return decoded

    def encode(array: NDArray[Any]) -> Any:
        return library.encode(np.ascontiguousarray(array, native))

    return Kernel(codec=name, decode=decode, encode=encode, bounded=False)
