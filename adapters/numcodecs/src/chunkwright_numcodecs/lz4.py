"""``numcodecs.lz4``: an LZ4 block after its decoded size, by numcodecs, after that size was checked.

Nothing may follow the block.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

import numpy as np
from numcodecs.lz4 import decompress
from numpy.typing import NDArray

from chunkwright.errors import ChunkLengthError, CorruptChunkError
from chunkwright.kernels import Kernel, decoded_limit
from chunkwright.ports import Step
from chunkwright_numcodecs._library import library_object

__all__ = ("lz4_kernel",)

_HEADER = 4
_header = Struct("<I").unpack_from


def lz4_kernel(step: Step) -> Kernel:
    """Compile ``numcodecs.lz4``.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Kernel
        With ``decode_into``.
    """
    name = step.codec.name
    check = _checker(name, *decoded_limit(step))

    def decode(item: Any) -> Any:
        return decompress(item) if check(item) else b""

    def decode_into(item: Any, out: NDArray[np.uint8]) -> None:
        if check(item):
            decompress(item, out)

    return Kernel(codec=name, decode=decode, encode=library_object(step.codec).encode, decode_into=decode_into)


def _checker(name: str, exact: int | None, most: int) -> Callable[[Any], int]:
    def check(item: Any) -> int:
        if len(item) < _HEADER:
            raise CorruptChunkError("no room for a header", codec=name, expected=_HEADER, found=len(item))
        decoded: int = _header(item)[0]
        if decoded > most or (exact is not None and decoded != exact):
            expected = f"at most {most}" if exact is None else exact
            raise ChunkLengthError("wrong decoded size", codec=name, expected=expected, found=decoded)
        return decoded

    return check
