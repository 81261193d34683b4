"""A backend of chunkwright: gzip, zlib and two checksums on ISA-L, by way of the package ``isal``.

A backend answers two questions: which codecs it runs (:meth:`IsalBackend.offer`), and how it encodes and decodes one
chunk with each (:meth:`IsalBackend.kernel`). ``KernelBackend`` does the rest: byte order, transposes, batches,
selections, missing chunks, and the sizes that the chain allows.

Any chunk may be broken, or made by somebody who means harm. So nothing is decompressed beyond the size that
the chain allows, however much a stream holds, and what cannot be decoded is an error of chunkwright's. There are no
threads here: ISA-L is called for one chunk after the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import attrs
from isal import isal_zlib

from chunkwright import ChecksumError, ChunkLengthError, ChunkSpec, CorruptChunkError, Step, Supported, Unsupported
from chunkwright.codecs import Codec
from chunkwright.kernel_backend import KernelBackend
from chunkwright.kernels import Kernel, decoded_limit

__all__ = ("IsalBackend",)

GZIP, ZLIB = 31, 15

# Compressed bytes looked at together. A stream that ends copies what it did not use, and streams may be tiny and many.
WINDOW = 1 << 14
NOT_ZERO = re.compile(rb"[^\0]")

LEVELS = range(-1, 10)

FORMATS = {"gzip": GZIP, "numcodecs.gzip": GZIP, "numcodecs.zlib": ZLIB}
CHECKSUMS: dict[str, Callable[[Any], int]] = {
    "numcodecs.crc32": isal_zlib.crc32,
    "numcodecs.adler32": isal_zlib.adler32,
}


def inflate(data: memoryview, begin: int, most: int, wbits: int) -> tuple[bytes, int]:
    """Decompress the stream that begins there, to ``most`` bytes at most; return them, and where the stream ends."""
    stream = isal_zlib.decompressobj(wbits=wbits)
    parts: list[bytes] = []
    while not stream.eof:
        window = data[begin : begin + WINDOW]
        if not len(window):
            raise CorruptChunkError("the stream ends early")
        # Room for one byte too many shows a stream that has too many; no room at all would mean no limit to isal.
        parts.append(stream.decompress(window, most + 1))
        most -= len(parts[-1])
        if most < 0:
            raise ChunkLengthError("decodes to too many bytes")
        begin += len(window) - len(stream.unused_data)
    return b"".join(parts), begin


def gunzip(data: memoryview, most: int) -> bytes:
    """Decompress gzip members, with or without zeros after each, to ``most`` bytes at most."""
    parts: list[bytes] = []
    begin = 0
    while begin < len(data):
        part, begin = inflate(data, begin, most, GZIP)
        parts.append(part)
        most -= len(part)
        member = NOT_ZERO.search(data, begin)
        begin = len(data) if member is None else member.start()
    return b"".join(parts)


def stream_kernel(step: Step) -> Kernel:
    """Compile gzip or zlib. The chain says how many bytes may come out; zlib ignores what follows, as elsewhere."""
    wbits = FORMATS[step.codec.name]
    # ISA-L has the levels 0 to 3 for these.
    level = max(step.codec.configuration().get("level", 1), 0) // 3
    _, most = decoded_limit(step)

    def decode(item: Any) -> bytes:
        data = memoryview(item)
        return gunzip(data, most) if wbits == GZIP else inflate(data, 0, most, ZLIB)[0]

    def encode(item: Any) -> bytes:
        return isal_zlib.compress(item, level=level, wbits=wbits)

    return Kernel(codec=step.codec.name, decode=decode, encode=encode)


def checksum_kernel(step: Step) -> Kernel:
    """Compile a checksum: four bytes before or after the others."""
    name, checksum = step.codec.name, CHECKSUMS[step.codec.name]
    at_end = step.codec.configuration().get("location") == "end"

    def decode(item: Any) -> memoryview:
        data = memoryview(item)
        if len(data) < 4:
            raise ChunkLengthError("no room for a checksum", expected="at least 4", found=len(data))
        stored, content = (data[-4:], data[:-4]) if at_end else (data[:4], data[4:])
        if int.from_bytes(stored, "little") != checksum(content):
            raise ChecksumError("wrong checksum", expected=stored.hex(), found=f"{checksum(content):08x}")
        return content

    def encode(item: Any) -> bytes:
        total = checksum(item).to_bytes(4, "little")
        return b"".join((item, total) if at_end else (total, item))

    return Kernel(codec=name, decode=decode, encode=encode)


@attrs.frozen
class IsalBackend(KernelBackend):
    """Computes with ISA-L."""

    name = "isal"
    version = version("chunkwright-isal")

    def offer(self, codec: Codec, spec: ChunkSpec) -> Supported | Unsupported:
        """Say whether there is a kernel; another backend runs what there is none for."""
        if codec.name not in FORMATS.keys() | CHECKSUMS.keys():
            return Unsupported("ISA-L has no such codec")
        if codec.configuration().get("level", 1) not in LEVELS:
            return Unsupported("ISA-L has no such level")
        return Supported("isal_zlib")

    def kernel(self, step: Step) -> Kernel:
        """Compile a step that was offered."""
        return checksum_kernel(step) if step.codec.name in CHECKSUMS else stream_kernel(step)
