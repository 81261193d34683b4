"""Damaged streams that one library takes for good and another does not; found by feeding both with the same inputs."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import pytest

from chunkwright import CorruptChunkError, PreparedChain, ReferenceBackend
from chunkwright.ports import Backend
from chunkwright_numcodecs import NumcodecsBackend
from tests.rust.chains import LITTLE, RUST, prepare

SHAPE = (6, 7)
ARRAY = (np.arange(42, dtype="<i4") * 6 % 11).reshape(SHAPE)
TEXTS = np.array([("", "a", "äöü", "\U0001f40d" * 3, "z" * 70)[at % 5] for at in range(42)], object).reshape(SHAPE)
ALL = [RUST, NumcodecsBackend(), ReferenceBackend()]


def strings(name: str, backend: Backend = RUST) -> PreparedChain:
    """A chain whose decoded size is only bounded."""
    codecs = [{"name": "vlen-utf8"}, {"name": name}]
    return prepare(codecs, object, SHAPE, fill_value="", max_chunk_bytes=1 << 16, backends=[backend])


# Blocks of 1013 bytes, where all that is decoded are 885.
LARGE_BLOCKS = bytes.fromhex(
    "0201210175030000f5030000590000001400000041000000222a000100ff19010000006106000000c3a4c3b6c3bc0c000000"
    "f09f908df09f908df09f908d460000007a7a7a7a7a05002e006f000f6d00ffffea500100000061"
)


@pytest.mark.parametrize("backend", ALL[:2])
def test_blosc_frames_with_blocks_larger_than_the_chunk_are_refused(backend: Backend) -> None:
    chain = strings("numcodecs.blosc", backend)
    good = bytearray(LARGE_BLOCKS)
    good[8:12] = good[4:8]
    assert (chain.decode(bytes(good)) == TEXTS).all()
    with pytest.raises(CorruptChunkError):
        chain.decode(LARGE_BLOCKS)


def member(flags: int, *fields: bytes, wrong: int = 0) -> bytes:
    """A gzip member whose header has a checksum."""
    head = b"\x1f\x8b\x08" + bytes([flags | 2]) + bytes(6) + b"".join(fields)
    compressor = zlib.compressobj(wbits=-15)
    body = compressor.compress(ARRAY.tobytes()) + compressor.flush()
    checksum = struct.pack("<H", (zlib.crc32(head) & 0xFFFF) ^ wrong)
    return head + checksum + body + struct.pack("<II", zlib.crc32(ARRAY.tobytes()), ARRAY.nbytes)


FIELDS: list[tuple[int, list[bytes]]] = [
    (0, []),
    (4, [b"\x03\x00abc"]),
    (8, [b"name\x00"]),
    (16, [b"\x00"]),
    (28, [b"\x00\x00", b"name\x00", b"comment\x00"]),
]


@pytest.mark.parametrize("backend", ALL)
@pytest.mark.parametrize(("flags", "fields"), FIELDS)
def test_checksums_of_gzip_headers_count(backend: Backend, flags: int, fields: list[bytes]) -> None:
    chain = prepare([LITTLE, {"name": "gzip", "configuration": {"level": 1}}], "int32", SHAPE, backends=[backend])
    good = member(flags, *fields)
    assert (chain.decode(good) == ARRAY).all()
    for bad in (member(flags, *fields, wrong=1), good + member(flags, *fields, wrong=0x8000)):
        with pytest.raises(CorruptChunkError):
            chain.decode(bad)


# A code that stands for nothing, where the only one that stands for something belongs.
UNUSED_CODES: list[tuple[PreparedChain, Any, str]] = [
    (
        prepare([LITTLE, {"name": "crc32c"}, {"name": "numcodecs.zlib"}], "int32", SHAPE),
        ARRAY,
        "7801c5ca490dc0200000b06edc38c122824870495041de858c0f053f2a021a223ad28d0fef5e631e4c5e02c0",
    ),
    (
        strings("gzip"),
        TEXTS,
        "1f8b08000000000000ffd3628000460606864436060686c34b0e6f3bbc87878181e1c3fc09bd30ecc6c0c0504515306e1955c0a865"
        "5401036319007ec9b52b75030000",
    ),
]


@pytest.mark.parametrize(("chain", "array", "text"), UNUSED_CODES)
def test_unused_codes_in_streams_whose_checksum_is_right_do_no_harm(
    chain: PreparedChain, array: Any, text: str
) -> None:
    data = bytes.fromhex(text)
    with pytest.raises(zlib.error, match="invalid"):
        zlib.decompress(data, wbits=47)
    assert (chain.decode(data) == array).all()
