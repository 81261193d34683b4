"""Blosc frames of several blocks: only those that have wanted elements are decoded, and read from files."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunkwright import Buffers, CodecError, Entries, PreparedChain
from chunkwright.selection import entries_of
from chunkwright_rust import RustBackend
from tests.rust.chains import BIG, LITTLE, prepare

FILES = RustBackend.file_io
assert FILES is not None

SHAPE = (50, 40, 150)
TRANSPOSE = {"name": "transpose", "configuration": {"order": [2, 0, 1]}}
# Blosc makes this as many times as large as it likes; there are 3 to 18 blocks and a part of one.
BLOCKSIZE = 1 << 16
VALUES = np.random.default_rng(8).integers(0, 2000, SHAPE).astype("i4")

SELECTIONS: dict[str, Any] = {
    "a plane": 31,
    "the last plane": 49,
    "a box": (slice(3, 7), slice(30, 40), slice(0, 5)),
    "far planes": slice(2, 50, 15),
    "far planes backwards": slice(49, None, -12),
    "an element": (17, 20, 108),
    "lists": (np.array([44, 2, 30]), np.array([3, 39]), np.array([0])),
    "nothing": (slice(4, 4), 0),
    "everything": slice(None),
}


def blosc(cname: str, shuffle: str, typesize: int) -> dict[str, Any]:
    configuration = {"cname": cname, "clevel": 3, "shuffle": shuffle, "typesize": typesize, "blocksize": BLOCKSIZE}
    return {"name": "blosc", "configuration": configuration}


COMPRESSORS = [
    blosc(cname, shuffle, typesize)
    for cname, (shuffle, typesize) in itertools.product(
        ("lz4", "blosclz", "zstd"), (("noshuffle", 1), ("shuffle", 4), ("shuffle", 7), ("bitshuffle", 2))
    )
]


def chain_of(compressor: dict[str, Any], *before: Any) -> PreparedChain:
    return prepare([*(before or [LITTLE]), compressor], "int32", SHAPE, fill_value=0)


def encoded(chain: PreparedChain) -> bytes:
    made = chain.encode(VALUES)
    assert made is not None
    assert int.from_bytes(bytes(made)[8:12], "little") < VALUES.nbytes / 2
    return bytes(made)


type Read = Callable[[PreparedChain, bytes, Any], np.ndarray]


@pytest.fixture(params=["memory", "file"])
def read(request: pytest.FixtureRequest, tmp_path: Path) -> Read:
    """Read a part of a chunk that is in memory, or is a file."""

    def from_memory(chain: PreparedChain, data: bytes, selection: Any) -> np.ndarray:
        entries, shape = entries_of(selection, SHAPE)
        out = np.full(shape, -1, "i4")
        chain.decode_many_into(Buffers.of([data]), entries, out)
        return out

    def from_file(chain: PreparedChain, data: bytes, selection: Any) -> np.ndarray:
        entries, shape = entries_of(selection, SHAPE)
        out = np.full(shape, -1, "i4")
        (tmp_path / "c").write_bytes(data)
        FILES.read_into(chain, tmp_path, ["c"], entries, out)
        return out

    return from_memory if request.param == "memory" else from_file


def expected(selection: Any) -> np.ndarray:
    is_lists = isinstance(selection, tuple) and isinstance(selection[0], np.ndarray)
    return VALUES[np.ix_(*selection)] if is_lists else VALUES[selection]


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=lambda one: "-".join(map(str, one["configuration"].values())))
@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=list(SELECTIONS))
def test_parts_are_what_numpy_selects(read: Read, compressor: dict[str, Any], selection: Any) -> None:
    chain = chain_of(compressor)
    np.testing.assert_array_equal(read(chain, encoded(chain), selection), expected(selection))


@pytest.mark.parametrize("before", [[BIG], [TRANSPOSE, LITTLE]], ids=["big", "transposed"])
@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=list(SELECTIONS))
def test_byte_order_and_axes_are_put_right(read: Read, before: list[Any], selection: Any) -> None:
    chain = chain_of(blosc("lz4", "shuffle", 4), *before)
    np.testing.assert_array_equal(read(chain, encoded(chain), selection), expected(selection))


@pytest.mark.parametrize("planes", [(0, 25), (0, 49), (49, 0), (1, 2, 48), (3,)])
@pytest.mark.parametrize("size", [1, 20, 45])
def test_several_selections_of_one_chunk_each_get_what_is_theirs(
    planes: tuple[int, ...], size: int, tmp_path: Path
) -> None:
    chain = chain_of(blosc("lz4", "shuffle", 4))
    data = encoded(chain)
    (tmp_path / "c").write_bytes(data)
    first = np.array(planes) * (50 - size) // 49
    start = np.stack([first, first * 0, first * 0], axis=1)
    count = np.broadcast_to([size, 40, 150], start.shape)
    entries = Entries.boxes(
        chunk=first * 0, start=start, count=count, out_start=np.arange(len(first))[:, None] * [size, 0, 0]
    )
    wanted = np.concatenate([VALUES[begin : begin + size] for begin in first])
    for kind in ("memory", "file"):
        out = np.full(wanted.shape, -1, "i4")
        if kind == "memory":
            chain.decode_many_into(Buffers.of([data]), entries, out)
        else:
            FILES.read_into(chain, tmp_path, ["c"], entries, out)
        np.testing.assert_array_equal(out, wanted, kind)


def test_bytes_that_do_not_compress_are_read_in_part_as_well(read: Read) -> None:
    noise = np.random.default_rng(1).integers(-(2**31), 2**31, SHAPE).astype("i4")
    chain = chain_of(blosc("lz4", "noshuffle", 1))
    made = chain.encode(noise)
    assert made is not None
    np.testing.assert_array_equal(read(chain, bytes(made), 31), noise[31])


def test_a_damaged_block_matters_to_those_who_want_it(read: Read) -> None:
    chain = chain_of(blosc("zstd", "shuffle", 4))
    data = bytearray(encoded(chain))
    blocks = -(-VALUES.nbytes // int.from_bytes(data[8:12], "little"))
    last = max(int.from_bytes(data[16 + 4 * block : 20 + 4 * block], "little") for block in range(blocks))
    data[last : last + 4] = b"\xff\xff\xff\x7f"
    np.testing.assert_array_equal(read(chain, bytes(data), 0), VALUES[0])
    with pytest.raises(CodecError, match="blosc"):
        read(chain, bytes(data), 49)
    with pytest.raises(CodecError, match="blosc"):
        read(chain, bytes(data), slice(None))


def outcome(read: Read, chain: PreparedChain, data: bytes, selection: Any) -> np.ndarray | None:
    """What is read; None when that is refused."""
    try:
        return read(chain, data, selection)
    except CodecError as error:
        assert error.codec == "blosc", str(error)  # noqa: PT017
        return None


@pytest.mark.parametrize("compressor", [blosc("lz4", "shuffle", 4), blosc("zstd", "bitshuffle", 2)])
@pytest.mark.parametrize("place", [0, 2, 3, 4, 8, 9, 10, 12, 16, 17])
def test_parts_of_frames_with_damaged_headers_are_right_or_refused(
    read: Read, compressor: dict[str, Any], place: int
) -> None:
    chain = chain_of(compressor)
    good = encoded(chain)
    refused = 0
    for bit in range(8):
        data = bytearray(good)
        data[place] ^= 1 << bit
        whole = outcome(read, chain, bytes(data), slice(None))
        refused += whole is None
        for selection in (0, 31, 49, slice(2, 50, 15), (49, slice(38, None))):
            part = outcome(read, chain, bytes(data), selection)
            if part is not None:
                # Where all is refused, the mistake is in a block that is not wanted here.
                np.testing.assert_array_equal(part, (VALUES if whole is None else whole)[selection])
    assert refused


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 60, 4000, 90_000])
def test_truncated_frames_are_refused_whatever_is_wanted(read: Read, length: int) -> None:
    chain = chain_of(blosc("lz4", "shuffle", 4))
    data = encoded(chain)[:length]
    for selection in (0, 49, slice(None)):
        with pytest.raises(CodecError, match="blosc"):
            read(chain, data, selection)


@pytest.mark.parametrize("cut", [1, 4096])
def test_a_file_that_lacks_a_block_which_is_not_wanted_is_refused(tmp_path: Path, cut: int) -> None:
    chain = chain_of(blosc("lz4", "shuffle", 4))
    (tmp_path / "c").write_bytes(encoded(chain)[:-cut])
    entries, shape = entries_of(0, SHAPE)
    with pytest.raises(CodecError, match="blosc"):
        FILES.read_into(chain, tmp_path, ["c"], entries, np.zeros(shape, "i4"))


def test_what_is_in_memory_between_the_blocks_that_were_read_never_comes_out(tmp_path: Path) -> None:
    chain = chain_of(blosc("lz4", "shuffle", 4))
    other = chain.encode(np.random.default_rng(9).integers(0, 2000, SHAPE).astype("i4"))
    assert other is not None
    (tmp_path / "other").write_bytes(other)
    data = bytearray(encoded(chain))
    blocks = -(-VALUES.nbytes // int.from_bytes(data[8:12], "little"))
    begin = min(int.from_bytes(data[16 + 4 * block : 20 + 4 * block], "little") for block in range(blocks))
    # The last block seems to begin within the first one, which then seems to be short.
    for distance in (4, 100, 8000):
        data[12 + 4 * blocks : 16 + 4 * blocks] = (begin + distance).to_bytes(4, "little")
        (tmp_path / "c").write_bytes(data)
        # Leaves bytes in memory that would do as well.
        everything, shape = entries_of(slice(None), SHAPE)
        FILES.read_into(chain, tmp_path, ["other"], everything, np.zeros(shape, "i4"), max_workers=1)
        entries, shape = entries_of(0, SHAPE)
        out = np.zeros(shape, "i4")
        FILES.read_into(chain, tmp_path, ["c"], entries, out, max_workers=1)
        np.testing.assert_array_equal(out, VALUES[0])
