"""Headers that lie, bombs, and broken streams: errors of the right class, within the memory that the chain allows."""

from __future__ import annotations

import bz2
import gzip
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from typing import Any

import numcodecs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkwright import ChunkLengthError, CodecError, ConfigurationError, CorruptChunkError, PreparedChain
from chunkwright.buffers import Buffers
from chunkwright.entries import Entries
from tests.rust.chains import LITTLE, RUST, only_run, prepare

SHAPE = (6, 7)
ARRAY = (np.arange(42, dtype="<i4") % 11).reshape(SHAPE) * 6
ZEROS = bytes(64 << 20)
MOST = 1 << 16

NAMES = ["zstd", "gzip", "blosc", *(f"numcodecs.{name}" for name in ("zlib", "bz2", "lz4", "pcodec"))]


def numbers(name: str) -> PreparedChain:
    """A chain whose decoded size is fixed."""
    return prepare([{"name": name}] if name == "numcodecs.pcodec" else [LITTLE, {"name": name}], "int32", SHAPE)


def strings(name: str | None = None) -> PreparedChain:
    """A chain whose decoded size is only bounded."""
    codecs = [{"name": "vlen-utf8"}, *([] if name is None else [{"name": name}])]
    return prepare(codecs, object, SHAPE, fill_value="", max_chunk_bytes=MOST)


def zstd_frame(size: int) -> bytes:
    """A frame that claims a size and has nothing."""
    return struct.pack("<IBQ", 0xFD2FB528, 0xE0, size) + b"\x01\x00\x00"


def blosc_frame(decoded: int, encoded: int) -> bytes:
    """A frame with these sizes in its header."""
    frame = bytearray(numcodecs.Blosc("lz4").encode(ARRAY))
    frame[4:8], frame[12:16] = struct.pack("<I", decoded), struct.pack("<I", encoded)
    return bytes(frame)


BOMBS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": numcodecs.Zstd().encode,
    "gzip": gzip.compress,
    "blosc": numcodecs.Blosc("zstd").encode,
    "numcodecs.zlib": zlib.compress,
    "numcodecs.bz2": bz2.compress,
    "numcodecs.lz4": numcodecs.LZ4().encode,
    "numcodecs.pcodec": lambda data: numcodecs.pcodec.PCodec().encode(np.frombuffer(data, "<i4")),
}


def cases() -> list[tuple[str, PreparedChain, bytes, type[CodecError]]]:
    """Every hostile chunk: the codec that has to find it, the chain, the bytes, the class of the error."""
    sizes = (1, 167, 169, 1 << 31, 1 << 40, (1 << 64) - 1)
    found: list[tuple[str, PreparedChain, bytes, type[CodecError]]] = []
    found += [("zstd", numbers("zstd"), zstd_frame(size), ChunkLengthError) for size in sizes]
    # The largest number stands for a size that is not known; then, and where none is claimed, the next codec sees it.
    found += [("zstd", strings("zstd"), zstd_frame(size), CorruptChunkError) for size in sizes[:-1]]
    for size in (0, 167, 169, (1 << 31) - 1, (1 << 32) - 1):
        frame = blosc_frame(size, len(blosc_frame(168, 0)))
        found.append(("blosc", numbers("blosc"), frame, ChunkLengthError))
        found.append(("blosc" if size else "vlen-utf8", strings("blosc"), frame, CorruptChunkError))
        found.append(("blosc", numbers("blosc"), blosc_frame(168, size), CorruptChunkError))
        block = struct.pack("<I", size) + numcodecs.LZ4().encode(ARRAY)[4:]
        found.append(("numcodecs.lz4", numbers("numcodecs.lz4"), block, ChunkLengthError))
        found.append(("numcodecs.lz4" if size else "vlen-utf8", strings("numcodecs.lz4"), block, CorruptChunkError))
    for name, encode in BOMBS.items():
        found.append((name, numbers(name), encode(ZEROS), ChunkLengthError))
        if name != "numcodecs.pcodec":
            found.append((name, strings(name), encode(ZEROS), ChunkLengthError))
            found.append((name, strings(name), encode(bytes(MOST + 1)), ChunkLengthError))
    for name in ("gzip", "numcodecs.bz2"):
        found.append((name, numbers(name), BOMBS[name](ARRAY.tobytes()) + BOMBS[name](ZEROS), ChunkLengthError))
    for count in (0, 41, 43, (1 << 32) - 1):
        found.append(("vlen-utf8", strings(), struct.pack("<I", count) + bytes(4 * 42), ChunkLengthError))
    for length in (1, 1000, (1 << 31) - 1, (1 << 32) - 1):
        data = struct.pack("<I", 42) + bytes(4 * 41) + struct.pack("<I", length)
        found.append(("vlen-utf8", strings(), data, CorruptChunkError))
    for text in (b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"):
        data = struct.pack("<II", 42, len(text)) + text + bytes(4 * 41)
        found.append(("vlen-utf8", strings(), data, CorruptChunkError))
    return found


def refuse_all() -> None:
    """Every hostile chunk is refused, whichever way it is decoded."""
    for codec, chain, data, error in cases():
        out = np.zeros((2, *SHAPE), chain.spec.dtype.numpy)
        entries = Entries.whole(SHAPE, 2)
        good = Buffers.of([None, data])
        for decode in (
            lambda chain=chain, data=data: chain.decode_many([None, data]),
            lambda chain=chain, good=good, entries=entries, out=out: chain.decode_many_into(good, entries, out),
        ):
            with pytest.raises(error) as caught:
                decode()
            assert caught.value.codec == codec
            assert caught.value.position == 1


def test_hostile_chunks_are_refused() -> None:
    refuse_all()


def test_hostile_chunks_are_refused_within_little_memory() -> None:
    # All memory beyond what the process has after the chunks were made: 48 MiB, three quarters of one bomb.
    script = """
import os, resource
from tests.rust import test_hostile_chunks as tests
made = tests.cases()
tests.cases = lambda: made
tests.RUST.decode_arrays(tests.only_run(tests.numbers("zstd")), [tests.numbers("zstd").encode(tests.ARRAY)])
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (48 << 20),) * 2)
tests.refuse_all()
"""
    assert sys.platform == "linux"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_a_chunk_that_no_memory_can_hold_is_an_error() -> None:
    chain = prepare([LITTLE, {"name": "zstd"}], "float64", (1 << 20, 1 << 20, 1 << 10))
    out = np.zeros(1)
    with pytest.raises(CodecError):
        chain.decode_into(numcodecs.Zstd().encode(ARRAY), out, selection=(0, 0, slice(0, 1)))
    one = np.broadcast_to(np.float64(1), chain.spec.shape)
    with pytest.raises(ConfigurationError):
        RUST.encode_arrays(only_run(chain), [one])


def test_rows_outside_of_their_buffer_are_refused() -> None:
    chain = prepare([LITTLE], "int32", SHAPE)
    for source, offset, length in ((1, 0, 168), (0, 1, 168), (0, 2**62, 2**62), (0, 0, -1), (-1, 0, 168)):
        columns = (np.array([number], np.int64) for number in (source, offset, length))
        with pytest.raises(CodecError):
            RUST.decode_into(
                only_run(chain), Buffers((bytes(168),), *columns), Entries.whole(SHAPE, 1), np.zeros((1, *SHAPE), "i4")
            )


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_bytes_are_a_chunk_or_a_codec_error(name: str, data: st.DataObject) -> None:
    chain: Any = numbers(name)
    good = bytearray(chain.encode(ARRAY))
    for at, value in data.draw(st.lists(st.tuples(st.integers(0, len(good) - 1), st.integers(0, 255)), max_size=6)):
        good[at] = value
    encoded = data.draw(st.one_of(st.just(bytes(good)), st.binary(max_size=100), st.binary().map(bytes(good).__add__)))
    try:
        found = chain.decode(encoded)
    except CodecError:
        return
    assert found.shape == SHAPE
