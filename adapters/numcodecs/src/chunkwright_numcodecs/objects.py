"""Codecs that Zarr v2 has for arrays of Python objects: ``json2``, ``msgpack2`` and ``pickle``.

``json2`` and ``msgpack2`` store the elements, their data type and their shape. numcodecs allocates what these say;
here they are checked against the chain first, so the elements are taken apart here and numcodecs' objects only parse.
A parser may need many times the memory of what it is given: msgpack's sets aside 8 bytes for each element that an
array claims, which may be as many as the chunk has bytes, at up to a thousand levels.

``pickle`` runs whatever the bytes say and cannot be bounded. numcodecs refuses it unless the process allowed it;
its ``UnsafeDecodeError`` goes to the caller as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numcodecs.compat import ensure_text
from numcodecs.errors import UnsafeDecodeError
from numpy.typing import NDArray

from chunkwright.errors import ChunkLengthError, CorruptChunkError
from chunkwright.kernels import Kernel
from chunkwright.ports import Step
from chunkwright.spec import ChunkSpec
from chunkwright_numcodecs._library import library_object

__all__ = ("json_kernel", "msgpack_kernel", "pickle_kernel")


def json_kernel(step: Step) -> Kernel:
    """Compile ``json2``.

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
    encoding, parser = library.get_config()["encoding"], library._decoder

    def parse(item: Any) -> Any:
        return parser.decode(ensure_text(item, encoding))

    return _listed(step, library, parse, bounded=True)


def msgpack_kernel(step: Step) -> Kernel:
    """Compile ``msgpack2``.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Kernel
        The kernel.
    """
    library, msgpack = library_object(step.codec), import_module("msgpack")

    def parse(item: Any) -> Any:
        return msgpack.unpackb(item, raw=library.raw)

    return _listed(step, library, parse, bounded=False)


def _listed(step: Step, library: Any, parse: Callable[[Any], Any], *, bounded: bool) -> Kernel:
    """A kernel for what is stored as a list of elements, their data type and their shape."""
    name, spec = step.codec.name, step.spec

    def decode(item: Any) -> NDArray[Any]:
        *elements, dtype, shape = parse(item)
        if isinstance(dtype, bytes):
            dtype = dtype.decode("ascii")
        array = _empty(dtype, shape, spec, name)
        array[...] = elements if array.ndim else elements[0]
        return array

    def encode(array: NDArray[Any]) -> Any:
        return library.encode(np.ascontiguousarray(array))

    return Kernel(codec=name, decode=decode, encode=encode, bounded=bounded)


def _empty(dtype: Any, shape: Any, spec: ChunkSpec, name: str) -> NDArray[Any]:
    """An array as stored, if it holds as much as the chain says."""
    if not isinstance(dtype, str) or not isinstance(shape, list | tuple):
        raise CorruptChunkError("data type and shape are missing", codec=name)
    if not all(isinstance(length, int) and length >= 0 for length in shape) or math.prod(shape) != spec.elements:
        raise ChunkLengthError("wrong shape", codec=name, expected=spec.shape, found=tuple(shape))
    stored = np.dtype(dtype)
    if stored.itemsize != spec.dtype.numpy.itemsize:
        raise CorruptChunkError("wrong data type", codec=name, expected=spec.dtype.numpy, found=stored)
    return np.empty(shape, stored)


def pickle_kernel(step: Step) -> Kernel:
    """Compile ``pickle``.

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

    def decode(item: Any) -> NDArray[Any]:
        array = library.decode(item)
        if not isinstance(array, np.ndarray):
            raise CorruptChunkError("no array was pickled", codec=name, found=type(array).__name__)
        return array

    return Kernel(codec=name, decode=decode, encode=library.encode, passes=(UnsafeDecodeError,), bounded=False)
