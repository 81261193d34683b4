"""Memory layouts: order, byte order, transposition, views, edges; and identical bytes for identical data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import BytesCodec, ShardingCodec, TransposeCodec, ZstdCodec

from tests.support.arrays import assert_same, chunk_files, inner_range, read_and_write, reopened, stored

pytestmark = pytest.mark.usefixtures("pipeline")


def test_shards_may_overhang_the_edge_of_the_array(tmp_path: Path) -> None:
    """zarr-java#33, acquire-zarr#158: the last shard is partly filled, or all fill."""
    array = zarr.create_array(
        str(tmp_path / "a"), shape=(17, 17), chunks=(4, 4), shards=(8, 8), dtype="u1", fill_value=3
    )
    reference = np.full((17, 17), 3, "u1")
    assert_same(array[...], reference)
    read_and_write(array, reference, np.s_[16:, 16:], 9)
    assert_same(array[10:, 15:], reference[10:, 15:])
    array[...] = reference
    read_and_write(array, reference, np.s_[7:9, 7:9], 1)
    assert_same(reopened(tmp_path / "a")[...], reference)


def test_v2_arrays_of_order_f_read_and_write(tmp_path: Path) -> None:
    """zarr-python#2501 and #4116: zarr hands out a result of order F for them."""
    reference = np.arange(35.0).reshape(7, 5)
    array = stored(tmp_path / "a", reference, chunks=(3, 2), zarr_format=2, order="F")
    read_and_write(array, reference, np.s_[2:4, 1], -1)
    assert_same(reopened(tmp_path / "a")[...], reference)
    assert_same(reopened(tmp_path / "a")[1:6, 3], reference[1:6, 3])


def test_values_that_are_strided_views_are_stored_raw(tmp_path: Path) -> None:
    """zarr-python#2501: without a compressor the view went to the store as it was."""
    source = np.arange(80.0).reshape(10, 8)
    array = zarr.create_array(
        str(tmp_path / "a"),
        shape=(10, 8),
        chunks=(3, 3),
        dtype="f8",
        fill_value=np.nan,
        zarr_format=2,
        compressors=None,
        filters=None,
    )
    reference = np.full((10, 8), np.nan)
    read_and_write(array, reference, np.s_[6:9, 3:6], source[6:9, 3:6])
    read_and_write(array, reference, np.s_[0:3, 0:3], source.T[2:5, 4:7])
    assert_same(reopened(tmp_path / "a")[...], reference)


@pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec:UserWarning")
@pytest.mark.parametrize("inner_codecs", [[BytesCodec()], [BytesCodec(), ZstdCodec()]], ids=["raw", "zstd"])
def test_a_transpose_before_the_sharding_codec_permutes_the_inner_chunks(tmp_path: Path, inner_codecs: Any) -> None:
    """zarr-python#2050, tensorstore#294: an order that is not its own inverse shows the mistakes."""
    order, inner = (2, 0, 1), (3, 2, 4)
    reference = np.arange(24 * 12 * 24, dtype="u2").reshape(24, 12, 24)
    array = stored(
        tmp_path / "a",
        reference,
        chunks=(12, 6, 12),
        filters=[TransposeCodec(order=order)],
        serializer=ShardingCodec(chunk_shape=tuple(inner[axis] for axis in order), codecs=inner_codecs),
        compressors=None,
    )
    read_and_write(array, reference, np.s_[3:14, 5:8, 2], 7)
    assert_same(reopened(tmp_path / "a")[...], reference)
    assert_same(reopened(tmp_path / "a")[2:4, 7, 1:18], reference[2:4, 7, 1:18])


@pytest.mark.parametrize("shards", [None, (4, 6)], ids=str)
def test_the_bytes_codec_stores_big_endian_when_told_to(tmp_path: Path, shards: Any) -> None:
    """zarr-python#2324 and #3005, virtual-tiff#33: v3 references to older formats need it."""
    reference = np.arange(24, dtype="i2").reshape(4, 6)
    big = BytesCodec(endian="big")
    array = stored(tmp_path / "a", reference, chunks=(2, 3), shards=shards, serializer=big, compressors=None)
    content = chunk_files(tmp_path / "a")[0].read_bytes()
    chunk = content[inner_range(content, 4, 0)] if shards else content
    assert_same(np.frombuffer(chunk, ">i2"), reference[0:2, 0:3].ravel())
    read_and_write(array, reference, np.s_[1, 2:5], -2)
    assert_same(reopened(tmp_path / "a")[...], reference)
    assert_same(reopened(tmp_path / "a")[0:3, 4], reference[0:3, 4])


def test_big_endian_v2_arrays_stay_big_endian_on_disk(tmp_path: Path) -> None:
    """zarr-python#2324 and #3005, ngff-zarr#556: FITS, GRIB and medical tools write them."""
    reference = np.arange(24, dtype=">i2").reshape(4, 6)
    array = stored(tmp_path / "a", reference, chunks=(2, 3), zarr_format=2)
    chunk = numcodecs.Zstd().decode((tmp_path / "a" / "0.0").read_bytes())
    assert_same(np.frombuffer(chunk, ">i2"), reference[0:2, 0:3].ravel())
    read_and_write(array, reference, np.s_[0, 0:5], 300)
    assert_same(reopened(tmp_path / "a")[0:3, 4], reference[0:3, 4])

    doubles = np.arange(8, dtype=">f8")
    stored(tmp_path / "b", doubles, chunks=(3,), zarr_format=2)
    assert_same(reopened(tmp_path / "b")[[0, 4, 7]], doubles[[0, 4, 7]])


def test_identical_writes_give_identical_bytes(tmp_path: Path) -> None:
    """zarr-python#3826: content-addressed stores and checksummed archives need stable output."""
    data = np.random.default_rng(88).integers(0, 50, (64, 64)).astype("i4")
    shards = set()
    for number in range(20):
        stored(tmp_path / str(number), data, chunks=(8, 8), shards=(64, 64))
        shards.add(chunk_files(tmp_path / str(number))[0].read_bytes())
    assert len(shards) == 1
