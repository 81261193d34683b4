"""Damaged and hostile chunks: an ordinary exception that names the chunk, and nothing else."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec

from tests.support.arrays import assert_same, chunk_files, cut, flip, reopened, stored

pytestmark = pytest.mark.usefixtures("pipeline")

DAMAGE = (ValueError, RuntimeError)


def test_a_flipped_byte_under_a_checksum_is_found_by_every_access(tmp_path: Path) -> None:
    """zarr-python#3169: a partial read skipped the checksum and returned the damaged number."""
    reference = np.arange(64, dtype="i4")
    stored(tmp_path / "a", reference, chunks=(16,), compressors=[Crc32cCodec()])
    flip(chunk_files(tmp_path / "a")[1], at=10)
    array = reopened(tmp_path / "a", mode="r+")
    with pytest.raises(DAMAGE):
        array[...]
    with pytest.raises(DAMAGE):
        array[17:19]
    with pytest.raises(DAMAGE):
        array[30:32] = 0
    assert_same(array[0:16], reference[0:16])


@pytest.mark.parametrize("length", [0, 30])
def test_a_raw_chunk_that_is_too_short_is_an_error(tmp_path: Path, length: int) -> None:
    """n5-zarr#92: empty objects were found in production and must not read as zeros."""
    stored(tmp_path / "a", np.arange(64, dtype="i4"), chunks=(16,), compressors=None)
    cut(chunk_files(tmp_path / "a")[0], to=length)
    with pytest.raises(DAMAGE):
        reopened(tmp_path / "a")[...]
    with pytest.raises(DAMAGE):
        reopened(tmp_path / "a")[14:16]


@pytest.mark.parametrize("length", [0, 10, 60])
def test_a_shard_that_is_too_short_is_an_error(tmp_path: Path, length: int) -> None:
    """n5-zarr#92: the same for shards, within the index and before it."""
    stored(tmp_path / "a", np.arange(64, dtype="i4"), chunks=(8,), shards=(32,))
    cut(chunk_files(tmp_path / "a")[0], to=length)
    with pytest.raises(DAMAGE):
        reopened(tmp_path / "a")[...]
    with pytest.raises(DAMAGE):
        reopened(tmp_path / "a")[0:3]


def _two_inner_chunks(path: Path, *entries: int) -> zarr.Array:
    """A shard by hand: two inner chunks of two bytes, and an index without a checksum."""
    sharding = ShardingCodec(chunk_shape=(2,), codecs=[BytesCodec()], index_codecs=[BytesCodec(endian="little")])
    array = zarr.create_array(
        str(path), shape=(4,), chunks=(4,), dtype="u1", fill_value=0, serializer=sharding, compressors=None
    )
    (path / "c").mkdir()
    (path / "c" / "0").write_bytes(b"\x01\x02" + struct.pack("<4Q", *entries))
    return array


@pytest.mark.parametrize(
    "entry",
    [
        (1 << 40, 2),
        (2**64 - 2, 8),
        (0, 1 << 50),
        (0, 1),
        (2**63, 2),
        (2**64 - 1, 2),
        (1, 2**64 - 1),
        (33, 2),
        (1, 2),
        (2, 2),
    ],
    ids=lambda entry: f"{entry[0]:#x}+{entry[1]:#x}",
)
def test_an_index_entry_outside_the_shard_is_an_error(tmp_path: Path, entry: tuple[int, int]) -> None:
    """zarrita.js#424, tensorstore#156: past the end, overflowing, too long, too short, in the index."""
    array = _two_inner_chunks(tmp_path / "a", 0, 2, *entry)
    with pytest.raises(DAMAGE):
        array[2:4]
    with pytest.raises(DAMAGE):
        array[...]


def test_index_entries_may_share_bytes(tmp_path: Path) -> None:
    """Two inner chunks that are equal may be stored once."""
    array = _two_inner_chunks(tmp_path / "a", 0, 2, 0, 2)
    assert array[...].tolist() == [1, 2, 1, 2]
    assert array[2:4].tolist() == [1, 2]


@pytest.mark.parametrize("shards", [None, (4, 6)], ids=str)
def test_an_error_names_the_chunk(tmp_path: Path, shards: tuple[int, ...] | None) -> None:
    """numcodecs#810, kerchunk#418: which of a million objects is to be repaired? Ours alone says it."""
    stored(tmp_path / "a", np.arange(96).reshape(8, 12), chunks=(2, 3), shards=shards)
    (tmp_path / "a" / "c" / "1" / "1").write_bytes(b"not a zstd frame")
    with pytest.raises(DAMAGE, match="c/1/1"):
        reopened(tmp_path / "a")[...]


def test_code_points_that_do_not_exist_are_kept(tmp_path: Path) -> None:
    """Found here: Python makes no string of them, so nothing may look at single elements of fixed-length text."""
    stored(tmp_path / "a", np.array(["a", "cd", "ef", "gh"]), chunks=(4,), compressors=None)
    file = chunk_files(tmp_path / "a")[0]
    impossible = struct.pack("<I", 0x01000004)
    file.write_bytes(impossible + file.read_bytes()[4:])
    array = reopened(tmp_path / "a", mode="r+")
    array[2:3] = "xy"
    assert array[1:].tolist() == ["cd", "xy", "gh"]
    assert file.read_bytes()[:4] == impossible
