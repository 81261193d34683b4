"""``blosc``: Blosc 1 frames, by numcodecs, after the header was read.

numcodecs takes decoded and encoded size from the 16 bytes of the header and looks at no other length: a short chunk
would be read beyond its end. So both are checked here. Bytes after the frame are ignored, as numcodecs does.

Blosc can use threads of its own, which numcodecs decides for the whole process by ``numcodecs.blosc.use_threads``,
by default on in the main thread. With threads the same bytes may be encoded in a different order each time, and
they would compete with the backend's pool; like zarr, this module turns the default off (once it is needed, and not
if somebody set it).
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

import numcodecs.blosc
import numpy as np
from numcodecs.blosc import Blosc, decompress
from numpy.typing import NDArray

from chunkwright.errors import ChunkLengthError, CorruptChunkError
from chunkwright.kernels import Kernel, decoded_limit
from chunkwright.ports import Step

__all__ = ("blosc_kernel",)

_HEADER = 16
_header = Struct("<4xI4xI").unpack_from
_SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}


def blosc_kernel(step: Step) -> Kernel:
    """Compile ``blosc`` or ``numcodecs.blosc``.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Kernel
        With ``decode_into``.
    """
    if numcodecs.blosc.use_threads is None:
        numcodecs.blosc.use_threads = False
    name = step.codec.name
    check = _checker(name, *decoded_limit(step))

    def decode(item: Any) -> Any:
        return decompress(item) if check(item) else b""

    def decode_into(item: Any, out: NDArray[np.uint8]) -> None:
        if check(item):
            decompress(item, out)

    return Kernel(codec=name, decode=decode, encode=_library(step).encode, decode_into=decode_into)


def _library(step: Step) -> Any:
    options = step.codec.configuration()
    if step.codec.name == "blosc":
        options["shuffle"] = _SHUFFLES[options["shuffle"]]
    return Blosc(**options)


def _checker(name: str, exact: int | None, most: int) -> Callable[[Any], int]:
    """Make the function that returns the decoded size after it checked the header."""

    def check(item: Any) -> int:
        if len(item) < _HEADER:
            raise CorruptChunkError("no room for a header", codec=name, expected=_HEADER, found=len(item))
        decoded: int
        decoded, encoded = _header(item)
        if decoded > most or (exact is not None and decoded != exact):
            expected = f"at most {most}" if exact is None else exact
            raise ChunkLengthError("wrong decoded size", codec=name, expected=expected, found=decoded)
        if not _HEADER <= encoded <= len(item):
            raise ChunkLengthError("wrong encoded size", codec=name, expected=f"at most {len(item)}", found=encoded)
        return decoded

    return check
