"""Inflate gzip and zlib streams within a limit, with the standard library.

``zlib.decompress`` and ``gzip`` make whatever a stream says; a few bytes become gigabytes. Here the limit is given
first and nothing is made beyond it. What may follow a stream is what those functions, and numcodecs with them,
accept: more gzip members and zero bytes after a gzip member, anything after a zlib stream.
"""

from __future__ import annotations

import zlib

from chunkwright.errors import ChunkLengthError, CorruptChunkError

__all__ = ("gunzip", "inflate")

_GZIP = 31
_ZLIB = 15

# Bytes that are looked at together after the first gzip member: zlib copies what it did not use, and members may
# be tiny and many.
_WINDOW = 1 << 14


def inflate(data: memoryview, most: int) -> bytes:
    """Decompress one zlib stream (RFC 1950).

    Parameters
    ----------
    data
        The stream; what follows it is ignored.
    most
        Most bytes that may come out.

    Returns
    -------
    bytes
        Decompressed bytes.

    Raises
    ------
    ChunkLengthError
        When more would come out.
    CorruptChunkError
        When the stream is broken or ends early.

    Examples
    --------
    >>> inflate(memoryview(zlib.compress(b"chunk") + b"trailing"), 5)
    b'chunk'
    """
    stream = zlib.decompressobj(_ZLIB)
    result = _first(stream, data, most)
    if not stream.eof:
        raise CorruptChunkError("the stream ends early")
    return result


def gunzip(data: memoryview, most: int) -> bytes:
    """Decompress gzip members (RFC 1952).

    Parameters
    ----------
    data
        One or more members, with or without zero bytes after each.
    most
        Most bytes that may come out of all of them.

    Returns
    -------
    bytes
        Decompressed bytes; none of no member at all.

    Raises
    ------
    ChunkLengthError
        When more would come out.
    CorruptChunkError
        When a member is broken or ends early, or something else follows.

    Examples
    --------
    >>> import gzip
    >>> gunzip(memoryview(gzip.compress(b"in") + gzip.compress(b"ner") + bytes(3)), 5)
    b'inner'
    """
    if not len(data):
        return b""
    stream = zlib.decompressobj(_GZIP)
    result = _first(stream, data, most)
    if not stream.eof:
        raise CorruptChunkError("the stream ends early")
    rest = len(stream.unused_data)
    return result if not rest else result + _further_members(data[len(data) - rest :], most - len(result))


def _first(stream: zlib._Decompress, data: memoryview, most: int) -> bytes:
    try:
        # Room for one byte more than there may be: with it, a stream that fits is also seen to end.
        result = stream.decompress(data, most + 1)
    except zlib.error as error:
        raise CorruptChunkError(f"cannot be decoded ({error})") from error
    if len(result) > most:
        raise ChunkLengthError("decodes to too many bytes", expected=f"at most {most}", found="more")
    return result


def _further_members(data: memoryview, most: int) -> bytes:
    parts: list[bytes] = []
    begin = _after_zeros(data, 0)
    while begin < len(data):
        stream = zlib.decompressobj(_GZIP)
        while not stream.eof:
            window = data[begin : begin + _WINDOW]
            if not len(window):
                raise CorruptChunkError("the stream ends early")
            parts.append(_first(stream, window, most))
            most -= len(parts[-1])
            begin += len(window) - len(stream.unused_data)
        begin = _after_zeros(data, begin)
    return b"".join(parts)


def _after_zeros(data: memoryview, begin: int) -> int:
    while begin < len(data):
        window = bytes(data[begin : begin + _WINDOW])
        rest = len(window.lstrip(b"\0"))
        begin += len(window) - rest
        if rest:
            break
    return begin
