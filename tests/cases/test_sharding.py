"""Shards: nested, of no dimension, with unusual indexes; how much is fetched; what is missing."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.codecs import BytesCodec, GzipCodec, ShardingCodec
from zarr.errors import ChunkNotFoundError
from zarr.storage import LocalStore

from tests.support.arrays import assert_same, chunk_files, read_and_write, reopened, stored
from tests.support.stores import Counting

pytestmark = pytest.mark.usefixtures("pipeline")

ABSENT = 2**64 - 1


def test_a_shard_inside_a_shard_is_read_and_written(tmp_path: Path) -> None:
    """zarr-python#3652 and #3655: the outer shard's getter ignored byte ranges."""
    reference = np.arange(50, dtype="u2").reshape(5, 10)
    nested = ShardingCodec(chunk_shape=(1, 2), codecs=[BytesCodec()], index_codecs=[BytesCodec()])
    outer = ShardingCodec(chunk_shape=(2, 4), codecs=[nested], index_codecs=[BytesCodec()])
    array = stored(tmp_path / "a", reference, chunks=(4, 8), serializer=outer, compressors=None)
    assert_same(array[1:3, 3:9], reference[1:3, 3:9])
    read_and_write(array, reference, np.s_[2, 5], 999)
    assert_same(reopened(tmp_path / "a")[...], reference)


def test_a_sharded_array_without_dimensions_holds_a_scalar(tmp_path: Path) -> None:
    """zarr-python#3966: assigning to it raised."""
    array = zarr.create_array(str(tmp_path / "a"), shape=(), chunks=(), shards=(), dtype="f4", fill_value=1)
    assert array[()] == 1
    array[()] = 4.5
    assert reopened(tmp_path / "a")[()] == 4.5
    array[...] = np.float32(6)
    assert reopened(tmp_path / "a")[...] == 6


def test_a_shard_index_may_have_no_checksum(tmp_path: Path) -> None:
    """zarrita.js#424 and #426: four bytes too many shift every offset."""
    reference = np.arange(32, dtype="u2")
    sharding = ShardingCodec(chunk_shape=(4,), codecs=[BytesCodec(), GzipCodec()], index_codecs=[BytesCodec()])
    stored(tmp_path / "a", reference, chunks=(16,), serializer=sharding, compressors=None)
    assert_same(reopened(tmp_path / "a")[...], reference)
    assert_same(reopened(tmp_path / "a")[5:7], reference[5:7])


def test_a_shard_index_may_be_big_endian(tmp_path: Path) -> None:
    """zarrita.js#424 and #426: the index codecs decide; the shard here is made by hand."""
    sharding = ShardingCodec(chunk_shape=(2,), codecs=[BytesCodec()], index_codecs=[BytesCodec(endian="big")])
    array = zarr.create_array(
        str(tmp_path / "a"), shape=(4,), chunks=(4,), dtype="u1", fill_value=9, serializer=sharding, compressors=None
    )
    (tmp_path / "a" / "c").mkdir()
    (tmp_path / "a" / "c" / "0").write_bytes(b"\x05\x06" + struct.pack(">4Q", ABSENT, ABSENT, 0, 2))
    assert array[...].tolist() == [9, 9, 5, 6]
    assert array[3:4].tolist() == [6]


def _counted(path: Path, reference: Any, **config: Any) -> tuple[Any, Counting]:
    store = Counting(LocalStore(str(path)))
    array = zarr.create_array(
        store, shape=reference.shape, chunks=(16, 16), shards=(256, 256), dtype="i4", compressors=None, config=config
    )
    array[...] = reference
    store.reset()
    return array, store


def test_a_partial_read_fetches_few_bytes(tmp_path: Path) -> None:
    """zarr-python#1758 and #3004, torch-em#829: one crop fetched gigabytes of shards."""
    reference = np.random.default_rng(36).integers(0, 2**30, (256, 256)).astype("i4")
    array, store = _counted(tmp_path / "a", reference, sharding_coalesce_max_gap_bytes=0)
    total = sum(file.stat().st_size for file in chunk_files(tmp_path / "a"))
    assert_same(array[100:110, 100:110], reference[100:110, 100:110])
    assert 0 < store.nbytes < total / 10


def test_a_partial_read_fetches_in_few_requests(tmp_path: Path) -> None:
    """insitubatch#57: one request for each inner chunk, where a gap may be read over."""
    reference = np.random.default_rng(36).integers(0, 2**30, (256, 256)).astype("i4")
    array, store = _counted(tmp_path / "a", reference, sharding_coalesce_max_gap_bytes=1 << 20)
    assert_same(array[0:128, 0:128], reference[0:128, 0:128])
    assert 0 < store.requests <= 20


def test_missing_chunks_raise_when_they_may_not_be_read(tmp_path: Path) -> None:
    """zarr-python#486, #3748 and #3828: ``read_missing_chunks=False``."""
    options: dict[str, Any] = {"dtype": "i4", "fill_value": 7, "config": {"read_missing_chunks": False}}
    array = zarr.create_array(str(tmp_path / "a"), shape=(8,), chunks=(2,), **options)
    array[0:2] = [1, 2]
    assert array[0:2].tolist() == [1, 2]
    with pytest.raises(ChunkNotFoundError):
        array[...]

    sharded = zarr.create_array(str(tmp_path / "s"), shape=(8,), chunks=(2,), shards=(8,), **options)
    with pytest.raises(ChunkNotFoundError):
        sharded[0:3]
    sharded[0:2] = [1, 2]
    assert sharded[...].tolist() == [1, 2, 7, 7, 7, 7, 7, 7], "missing inner chunks of a shard that is there are fill"


@pytest.mark.parametrize(("shards", "beyond"), [((8,), [6, 7, 8]), (None, [0, 0, 0])], ids=["sharded", "plain"])
def test_what_lies_beyond_the_edge_comes_back_when_the_array_grows(tmp_path: Path, shards: Any, beyond: Any) -> None:
    """Found here: all of the clipped array is written, which says nothing about what lies beyond its edge."""
    chunks = (2,) if shards else (8,)
    array = stored(tmp_path / "a", np.arange(1, 9), chunks=chunks, shards=shards)
    array.resize((5,))
    array[...] = 99
    array.resize((8,))
    assert array[...].tolist() == [99] * 5 + beyond
