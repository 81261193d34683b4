"""Checksums beside the bytes: ``crc32c``, and numcodecs' ``crc32``, ``crc32c``, ``adler32``, ``fletcher32`` and
``jenkins_lookup3``.

Each adds four bytes and, decoding, hands on a view of the others. numcodecs reports a wrong checksum and a chunk
that is too short in the same way, or not at all; here they are two errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from chunkwright.errors import ChecksumError, ChunkLengthError
from chunkwright.kernels import Kernel
from chunkwright.ports import Step
from chunkwright_numcodecs._library import library_object

__all__ = ("checksum_kernel", "crc32c_kernel")

_SIZE = 4


def crc32c_kernel(step: Step) -> Kernel:
    """Compile ``crc32c``.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Kernel
        The kernel.
    """
    checksum: Callable[[Any], int] = google_crc32c.value

    def decode(item: Any) -> NDArray[np.uint8]:
        data = _long_enough(item, "crc32c")
        content = data[:-_SIZE]
        stored, computed = int.from_bytes(data[-_SIZE:], "little"), checksum(content)
        if stored != computed:
            raise ChecksumError("wrong checksum", codec="crc32c", expected=f"{stored:#010x}", found=f"{computed:#010x}")
        return content

    def encode(item: Any) -> bytes:
        # The library takes read-only bytes and arrays, but no other views.
        return b"".join((item, checksum(np.frombuffer(item, np.uint8)).to_bytes(_SIZE, "little")))

    return Kernel(codec="crc32c", decode=decode, encode=encode)


def checksum_kernel(step: Step) -> Kernel:
    """Compile one of numcodecs' checksums.

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

    def decode(item: Any) -> NDArray[np.uint8]:
        try:
            content = library.decode(_long_enough(item, name))
        except RuntimeError as error:
            raise ChecksumError(f"wrong checksum ({error})", codec=name) from error
        return np.frombuffer(content, np.uint8)

    def encode(item: Any) -> Any:
        return library.encode(np.frombuffer(item, np.uint8))

    return Kernel(codec=name, decode=decode, encode=encode)


def _long_enough(item: Any, name: str) -> NDArray[np.uint8]:
    if len(item) < _SIZE:
        raise ChunkLengthError("no room for a checksum", codec=name, expected=f"at least {_SIZE}", found=len(item))
    return np.frombuffer(item, np.uint8)
