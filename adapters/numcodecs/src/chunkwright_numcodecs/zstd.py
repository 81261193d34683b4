"""``zstd``: Zstandard frames (RFC 8878), by numcodecs, after their headers were read.

numcodecs allocates what frame headers claim, and grows without limit where they claim nothing. So the frames of
a chunk are walked first, from block to block, without decompressing anything: their contents must add up to a size
that the chain allows. Frames that do not say their size (streaming writers leave it out) are decompressed into
memory of the exact size where the chain fixes it, and otherwise only when even full blocks could not exceed the
limit. Nothing may follow the last frame; several frames, and skippable ones, are accepted, as numcodecs does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from struct import Struct
from typing import Any

import numpy as np
from numcodecs.zstd import Zstd, decompress
from numpy.typing import NDArray

from chunkwright.errors import ChunkLengthError, CorruptChunkError
from chunkwright.kernels import Kernel, decoded_limit
from chunkwright.ports import Step

__all__ = ("content_size", "zstd_kernel")

_MAGIC = 0xFD2FB528
_SKIPPABLE = 0x184D2A50
_MOST_PER_BLOCK = 1 << 17
_head = Struct("<IB").unpack_from
_u32 = Struct("<I").unpack_from
_block = Struct("<HB").unpack_from
_sizes = tuple(Struct(form).unpack_from for form in ("<B", "<H", "<I", "<Q"))


def content_size(data: memoryview) -> tuple[int, bool]:
    """Add up the content sizes of all frames.

    Parameters
    ----------
    data
        The frames and nothing else.

    Returns
    -------
    tuple of int and bool
        The number of bytes, and whether it is exact: if not, some frame does not say its size, and it is the
        most that the frames can hold.

    Raises
    ------
    CorruptChunkError
        When this is not a sequence of whole frames.

    Examples
    --------
    >>> content_size(memoryview(Zstd().encode(b"chunk" * 100)))
    (500, True)
    """
    total, exact, begin, end = 0, True, 0, len(data)
    try:
        while begin < end:
            magic, descriptor = _head(data, begin)
            if magic == _MAGIC:
                size, begin = _frame_header(data, begin, descriptor)
                most, begin = _blocks(data, begin)
                begin += descriptor & 4  # the checksum's flag has the value of the checksum's size
                exact = exact and size is not None
                total += most if size is None else size
            elif magic & ~0xF == _SKIPPABLE:
                begin += 8 + _u32(data, begin + 4)[0]
            else:
                raise CorruptChunkError("no zstd frame", codec="zstd", expected=f"{_MAGIC:#x}", found=f"{magic:#x}")
    except struct.error:
        begin = end + 1
    if begin != end:
        raise CorruptChunkError("a zstd frame ends early", codec="zstd")
    return total, exact


def _frame_header(data: memoryview, begin: int, descriptor: int) -> tuple[int | None, int]:
    """Content size that a frame claims, and where its blocks begin."""
    single = descriptor >> 5 & 1
    size_at = begin + 6 - single + (0, 1, 2, 4)[descriptor & 3]
    flag = descriptor >> 6
    if not flag and not single:
        return None, size_at
    size: int = _sizes[flag](data, size_at)[0]
    return size + (256 if flag == 1 else 0), size_at + (1 << flag)


def _blocks(data: memoryview, begin: int) -> tuple[int, int]:
    """Most bytes that a frame's blocks decompress to, and where they end."""
    most, last = 0, 0
    while not last:
        low, high = _block(data, begin)
        last, kind, size = low & 1, low >> 1 & 3, (low | high << 16) >> 3
        most += _MOST_PER_BLOCK if kind == 2 else size
        begin += 4 if kind == 1 else 3 + size
    return most, begin


def zstd_kernel(step: Step) -> Kernel:
    """Compile ``zstd`` or ``numcodecs.zstd``.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Kernel
        With ``decode_into``.
    """
    name, (exact, most) = step.codec.name, decoded_limit(step)
    options = step.codec.configuration()
    library = Zstd(level=options.get("level", 0), checksum=options.get("checksum", False))
    return Kernel(codec=name, decode=_decoder(name, exact, most), encode=library.encode, decode_into=_decode_into(name))


def _decoder(name: str, exact: int | None, most: int) -> Callable[[Any], Any]:
    def decode(item: Any) -> Any:
        size, known = content_size(memoryview(item))
        if known:
            if size > most or (exact is not None and size != exact):
                expected = f"at most {most}" if exact is None else exact
                raise ChunkLengthError("wrong content size", codec=name, expected=expected, found=size)
            # numcodecs takes no content for an error.
            return decompress(item) if size else b""
        if exact is not None:
            return decompress(item, np.empty(exact, np.uint8)) if exact else b""
        if size > most:
            raise ChunkLengthError("may decode to too many bytes", codec=name, expected=f"at most {most}", found=size)
        return decompress(item)

    return decode


def _decode_into(name: str) -> Callable[[Any, NDArray[np.uint8]], None]:
    def decode_into(item: Any, out: NDArray[np.uint8]) -> None:
        size, known = content_size(memoryview(item))
        if known and size != len(out):
            raise ChunkLengthError("wrong content size", codec=name, expected=len(out), found=size)
        if len(out):
            decompress(item, out)

    return decode_into
