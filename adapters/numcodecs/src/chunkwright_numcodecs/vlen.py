"""``vlen-utf8``, ``vlen-bytes`` and ``vlen-array``: elements of variable length, by numcodecs.

numcodecs makes as many elements as the first four bytes say, so that number is checked first; each element lies
within the chunk, which numcodecs checks. Bytes after the last element are ignored, as numcodecs does.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.errors import ChunkLengthError, CorruptChunkError
from chunkwright.kernels import Kernel
from chunkwright.ports import Step
from chunkwright_numcodecs._library import library_object

__all__ = ("vlen_kernel",)

_HEADER = 4
_header = Struct("<I").unpack_from


def vlen_kernel(step: Step) -> Kernel:
    """Compile a codec for elements of variable length.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Kernel
        It makes arrays of objects, or of NumPy's ``StringDType`` where the chain has that.
    """
    name, spec, library = step.codec.name, step.spec, library_object(step.codec)
    dtype, shape, elements = spec.dtype.numpy, spec.shape, spec.elements

    def decode(item: Any) -> NDArray[Any]:
        if len(item) < _HEADER:
            raise CorruptChunkError("no room for a header", codec=name, expected=_HEADER, found=len(item))
        count = _header(item)[0]
        if count != elements:
            raise ChunkLengthError("wrong number of elements", codec=name, expected=elements, found=count)
        array: NDArray[Any] = library.decode(item).reshape(shape)
        return array if array.dtype == dtype else array.astype(dtype)

    def encode(array: NDArray[Any]) -> Any:
        # The library asks for memory that it could write to, which a scalar that was broadcast has not.
        return library.encode(np.require(array, requirements=["C", "W"]))

    return Kernel(codec=name, decode=decode, encode=encode)
