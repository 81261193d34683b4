"""``numcodecs.bz2`` and ``numcodecs.lzma``: encoded by numcodecs, decoded by the standard library within a limit.

numcodecs' own decoders make whatever a stream says. As with them, streams may follow one another, and whatever
follows a stream that is no further stream is ignored.
"""

from __future__ import annotations

import bz2
import lzma
from collections.abc import Callable
from typing import Any

from chunkwright.errors import ChunkLengthError, CorruptChunkError
from chunkwright.kernels import Kernel, decoded_limit
from chunkwright.ports import Step
from chunkwright_numcodecs._library import library_object

__all__ = ("bz2_kernel", "decompress_streams", "lzma_kernel")

# The library copies what a stream did not use, and streams may be tiny and many; the first one gets everything.
_WINDOW = 1 << 16

# A dictionary is allocated as its header says. 64 MiB is what the highest preset asks for; some more is tolerated.
_MOST_DICTIONARY = 1 << 28


def decompress_streams(data: memoryview, most: int, make: Callable[[], Any]) -> bytes:
    """Decompress streams that follow one another.

    Parameters
    ----------
    data
        One or more streams, with or without anything after the last.
    most
        Most bytes that may come out of all of them.
    make
        Makes a decompressor with the interface of ``bz2.BZ2Decompressor``.

    Returns
    -------
    bytes
        Decompressed bytes.

    Raises
    ------
    ChunkLengthError
        When more would come out.
    CorruptChunkError
        When the first stream is broken, or any stream ends early.

    Examples
    --------
    >>> data = memoryview(bz2.compress(b"in") + bz2.compress(b"ner") + b"trailing")
    >>> decompress_streams(data, 5, bz2.BZ2Decompressor)
    b'inner'
    """
    first, begin = _stream(data, 0, len(data), most, make())
    parts, most = [first], most - len(first)
    while begin < len(data):
        try:
            part, begin = _stream(data, begin, _WINDOW, most, make())
        except (OSError, lzma.LZMAError):
            break
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _stream(data: memoryview, begin: int, window: int, most: int, stream: Any) -> tuple[bytes, int]:
    """What one stream decompresses to, and where it ends."""
    parts: list[bytes] = []
    while not stream.eof:
        part = data[begin : begin + window]
        if not len(part):
            raise CorruptChunkError("the stream ends early")
        # Room for one byte more than there may be: with it, a stream that fits is also seen to end.
        parts.append(stream.decompress(part, most + 1))
        most -= len(parts[-1])
        if most < 0:
            raise ChunkLengthError("decodes to too many bytes")
        begin += len(part) - len(stream.unused_data)
    return b"".join(parts), begin


def bz2_kernel(step: Step) -> Kernel:
    """Compile ``numcodecs.bz2``.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Kernel
        The kernel.
    """
    _, most = decoded_limit(step)

    def decode(item: Any) -> bytes:
        return decompress_streams(memoryview(item), most, bz2.BZ2Decompressor) if len(item) else b""

    return Kernel(codec=step.codec.name, decode=decode, encode=library_object(step.codec).encode)


def lzma_kernel(step: Step) -> Kernel:
    """Compile ``numcodecs.lzma``.

    Parameters
    ----------
    step
        The step.

    Returns
    -------
    Kernel
        The kernel.
    """
    _, most = decoded_limit(step)
    library = library_object(step.codec)
    raw = library.format == lzma.FORMAT_RAW

    def make() -> lzma.LZMADecompressor:
        # Without a header the dictionary is the metadata's, and the library takes no limit.
        limit = None if raw else _MOST_DICTIONARY
        return lzma.LZMADecompressor(library.format, memlimit=limit, filters=library.filters)

    def decode(item: Any) -> bytes:
        return decompress_streams(memoryview(item), most, make)

    return Kernel(codec=step.codec.name, decode=decode, encode=library.encode)
