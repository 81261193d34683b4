"""Blosc frames of several blocks are written over: only blocks with changed elements are decoded and encoded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numcodecs import blosc as library

from chunkwright import CodecError, PreparedChain
from chunkwright.entries import Entries
from chunkwright.selection import entries_of
from chunkwright_rust import RustBackend
from chunkwright_store import FilesBatch, WriteJob, write_sync
from tests.rust.chains import BIG, LITTLE, prepare
from tests.rust.test_blocks_of_frames import (
    COMPRESSORS,
    SELECTIONS,
    SHAPE,
    TRANSPOSE,
    VALUES,
    blosc,
    chain_of,
    encoded,
)

FILES = RustBackend.file_io
assert FILES is not None

LZ4 = blosc("lz4", "shuffle", 4)
WRITTEN = {name: selection for name, selection in SELECTIONS.items() if name != "nothing"}

type Write = Callable[..., bytes | None]


@pytest.fixture(params=["memory", "file"])
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Write:
    """Write into a chunk that is in memory, or is a file; None when there is none left."""

    def in_memory(chain: PreparedChain, old: bytes, entries: Entries, source: np.ndarray, **options: Any) -> Any:
        plan = chain.plan_write(entries, complete=np.zeros(1, bool), **options)
        plan.feed(plan.needs["id"], [old])
        work = plan.take()
        assert work is not None
        ((_, made),) = work.run(source)
        return None if made is None else bytes(made)

    def in_a_file(chain: PreparedChain, old: bytes, entries: Entries, source: np.ndarray, **options: Any) -> Any:
        (tmp_path / "c").write_bytes(old)
        plan, batch = chain.plan_write(entries, **options), FilesBatch(FILES, tmp_path, ["c"])
        write_sync([WriteJob(plan=plan, sources=[], sinks=[], keys=["c"], batch=batch)], source)
        return (tmp_path / "c").read_bytes() if (tmp_path / "c").exists() else None

    return in_memory if request.param == "memory" else in_a_file


def changed(selection: Any) -> tuple[Entries, np.ndarray, np.ndarray]:
    """A selection, what is written there, and what the chunk holds then."""
    entries, shape = entries_of(selection, SHAPE)
    source = np.random.default_rng(3).integers(0, 2000, shape).astype("i4")
    wanted = VALUES.copy()
    is_lists = isinstance(selection, tuple) and isinstance(selection[0], np.ndarray)
    wanted[np.ix_(*selection) if is_lists else selection] = source
    return entries, source, wanted


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=lambda one: "-".join(map(str, one["configuration"].values())))
@pytest.mark.parametrize("selection", WRITTEN.values(), ids=list(WRITTEN))
def test_the_frame_is_what_encoding_everything_gives(write: Write, compressor: dict[str, Any], selection: Any) -> None:
    chain = chain_of(compressor)
    entries, source, wanted = changed(selection)
    made = write(chain, encoded(chain), entries, source)
    assert made == bytes(chain.encode(wanted) or b"")
    np.testing.assert_array_equal(np.frombuffer(library.decompress(made), "<i4").reshape(SHAPE), wanted)


@pytest.mark.parametrize("before", [[BIG], [TRANSPOSE, LITTLE]], ids=["big", "transposed"])
@pytest.mark.parametrize("selection", WRITTEN.values(), ids=list(WRITTEN))
def test_byte_order_and_axes_are_put_right(write: Write, before: list[Any], selection: Any) -> None:
    chain = chain_of(LZ4, *before)
    entries, source, wanted = changed(selection)
    assert write(chain, encoded(chain), entries, source) == bytes(chain.encode(wanted) or b"")


def test_blocks_of_another_level_stay_as_they_are(write: Write) -> None:
    chain = chain_of(LZ4)
    other = {**LZ4, "configuration": {**LZ4["configuration"], "clevel": 9}}
    entries, source, wanted = changed(31)
    made = write(chain, encoded(chain_of(other)), entries, source)
    assert made is not None
    assert made != bytes(chain.encode(wanted) or b"")
    np.testing.assert_array_equal(chain.decode(made), wanted)


def test_bytes_that_do_not_compress_are_written_over(write: Write) -> None:
    noise = np.random.default_rng(1).integers(-(2**31), 2**31, SHAPE).astype("i4")
    chain = chain_of(blosc("lz4", "noshuffle", 1))
    entries, source, _ = changed(7)
    source[:] = noise[8]
    made = write(chain, bytes(chain.encode(noise) or b""), entries, source)
    noise[7] = source
    assert made == bytes(chain.encode(noise) or b"")


def test_a_block_that_does_not_compress_any_more_is_written(write: Write) -> None:
    chain = chain_of(LZ4)
    entries, source, wanted = changed(slice(10, 22))
    source[:] = np.random.default_rng(1).integers(-(2**31), 2**31, source.shape)
    wanted[10:22] = source
    made = write(chain, encoded(chain), entries, source)
    assert made is not None
    np.testing.assert_array_equal(chain.decode(made), wanted)


@pytest.mark.parametrize("keep_empty", [False, True])
@pytest.mark.parametrize("rest", [0, 1])
def test_a_chunk_of_which_nothing_is_left_is_not_stored(write: Write, keep_empty: bool, rest: int) -> None:
    chain = chain_of(LZ4)
    values = np.zeros(SHAPE, "i4")
    values[0] = 5
    values[40, 3, 3] = rest
    entries, shape = entries_of(0, SHAPE)
    old = bytes(chain.encode(values) or b"")
    made = write(chain, old, entries, np.zeros(shape, "i4"), keep_empty=keep_empty)
    if not rest and not keep_empty:
        assert made is None
        return
    values[0] = 0
    assert made is not None
    np.testing.assert_array_equal(chain.decode(made), values)


def with_last_block_damaged(data: bytes, nbytes: int = VALUES.nbytes) -> tuple[bytes, int]:
    damaged = bytearray(data)
    blocks = -(-nbytes // int.from_bytes(data[8:12], "little"))
    last = max(int.from_bytes(data[16 + 4 * block : 20 + 4 * block], "little") for block in range(blocks))
    # The first bytes of a stream; its size stays right.
    end = min(last + 400, len(data))
    damaged[last + 4 : end] = b"\xff" * (end - last - 4)
    return bytes(damaged), len(data) - last


def test_a_damaged_block_stays_unless_it_is_written_to(write: Write) -> None:
    chain = chain_of(blosc("zstd", "shuffle", 4))
    damaged, size = with_last_block_damaged(encoded(chain))
    entries, source, wanted = changed(0)
    made = write(chain, damaged, entries, source)
    assert made is not None
    assert made[-size:] == damaged[-size:]
    out = np.zeros((1, *SHAPE[1:]), "i4")
    chain.decode_into(made, out, selection=slice(0, 1))
    np.testing.assert_array_equal(out, wanted[:1])
    with pytest.raises(CodecError, match="blosc"):
        chain.decode(made)
    with pytest.raises(CodecError, match="blosc"):
        write(chain, damaged, *changed(49)[:2])


@pytest.mark.parametrize("place", [0, 2, 3, 4, 8, 9, 10, 12, 16, 17, 20, 21, 24])
def test_frames_with_damaged_headers_are_written_over_or_refused(write: Write, place: int) -> None:
    chain = chain_of(LZ4)
    good = encoded(chain)
    refused = 0
    for bit in range(8):
        old = bytearray(good)
        old[place] ^= 1 << bit
        try:
            before: np.ndarray | None = chain.decode(bytes(old))
        except CodecError:
            before = None
        for selection in (0, 31, slice(2, 20, 5)):
            entries, source, _ = changed(selection)
            try:
                made = write(chain, bytes(old), entries, source)
            except CodecError as error:
                assert error.codec == "blosc", str(error)  # noqa: PT017
                refused += 1
                continue
            assert made is not None
            if before is None:
                # The mistake was in a block that was not looked at, and still is.
                with pytest.raises(CodecError, match="blosc"):
                    chain.decode(made)
                continue
            wanted = before.copy()
            wanted[selection] = source
            np.testing.assert_array_equal(chain.decode(made), wanted)
    assert refused or place == 0


HOSTILE = """
import resource, struct
import numpy as np
from chunkwright import CodecError
from chunkwright.selection import entries_of
from tests.rust.chains import LITTLE, prepare

blocks, size, big = 8192, 128, 1 << 19
lz4 = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}
chain = prepare([LITTLE, {"name": "blosc", "configuration": lz4}], "int32", (blocks * size // 4,), fill_value=0)
table = 16 + 4 * blocks
shared, own = struct.pack("<I", big) + bytes(big), struct.pack("<I", size) + bytes(size)
frame = struct.pack("<BBBBIII", 2, 1, 1 | 16 | 1 << 5, 4, blocks * size, size, table + len(shared) + len(own))
frame += struct.pack(f"<{blocks}I", table + len(shared), *[table] * (blocks - 1)) + shared + own
entries, shape = entries_of(slice(0, 32), chain.spec.shape)
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
plan = chain.plan_write(entries, complete=np.zeros(1, bool))
plan.feed(plan.needs["id"], [frame])
try:
    plan.take().run(np.ones(shape, "i4"))
except CodecError as error:
    print(error)
"""


def test_a_stream_that_many_blocks_claim_is_not_copied_for_each_of_them() -> None:
    run = subprocess.run([sys.executable, "-c", HOSTILE], capture_output=True, text=True, check=False)
    assert "blosc" in run.stdout, run.stderr[-2000:]


def test_many_runs_are_not_decoded_one_by_one(write: Write) -> None:
    """For each, the library goes through all blocks; here all is decoded instead, and damage seen."""
    shape = (2048, 256)
    values = np.random.default_rng(2).integers(0, 9, shape).astype("i4")
    small = {"cname": "zstd", "clevel": 1, "shuffle": "noshuffle", "typesize": 1, "blocksize": 512}
    chain = prepare([LITTLE, {"name": "blosc", "configuration": small}], "int32", shape, fill_value=0)
    good = bytes(chain.encode(values) or b"")
    assert int.from_bytes(good[8:12], "little") == 512
    damaged, _ = with_last_block_damaged(good, values.nbytes)
    for rows, is_refused in ((slice(0, 8), False), (slice(0, 1024, 2), True)):
        entries, part = entries_of((rows, 3), shape)
        source = np.full(part, 5, "i4")
        wanted = values.copy()
        wanted[rows, 3] = 5
        np.testing.assert_array_equal(chain.decode(write(chain, good, entries, source) or b""), wanted)
        if is_refused:
            with pytest.raises(CodecError, match="blosc"):
                write(chain, damaged, entries, source)
        else:
            assert write(chain, damaged, entries, source) is not None


def test_blocks_that_do_not_change_are_not_looked_at(write: Write) -> None:
    """Each compressor and form of selection for which the frame that is encoded anew would be the same."""
    for compressor in (LZ4, blosc("blosclz", "shuffle", 4), blosc("zstd", "bitshuffle", 2)):
        chain = chain_of(compressor)
        damaged, size = with_last_block_damaged(encoded(chain))
        for name in ("a box", "an element", "lists"):
            selection = WRITTEN[name] if name != "lists" else (np.array([14, 2, 10]), np.array([3, 39]), np.array([0]))
            entries, source, _ = changed(selection)
            made = write(chain, damaged, entries, source)
            assert made is not None
            assert made[-size:] == damaged[-size:], (compressor, name)
