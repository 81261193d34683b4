"""Codecs beyond the common ones: numcodecs' filters, zarr's newer codecs, and what users register."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import BytesCodec, CastValue, ScaleOffset, ShardingCodec
from zarr.codecs import numcodecs as named

from tests.support.arrays import assert_same, read_and_write, reopened, stored
from tests.support.codecs import AddOne, Invert, RawPartial

pytestmark = pytest.mark.usefixtures("pipeline")

UNSPECIFIED = "ignore:Numcodecs codecs are not in the Zarr version 3 specification:UserWarning"


def test_an_array_to_array_codec_runs_inside_shards(tmp_path: Path) -> None:
    """zarr-python#3885 and #3941: each codec sees the spec that the one before it produces."""
    reference = np.arange(64.0).reshape(8, 8) / 4
    scale = ScaleOffset(offset=2.0, scale=4.0)
    array = stored(tmp_path / "a", reference, chunks=(2, 4), shards=(4, 8), filters=[scale])
    read_and_write(array, reference, np.s_[3:5, 1:6], 1.25)
    assert_same(reopened(tmp_path / "a")[...], reference)


def test_a_chunk_may_begin_at_any_byte_of_a_shard(tmp_path: Path) -> None:
    """Found here: after an index of 4 + 16 n bytes, elements of 8 bytes are not aligned in memory."""
    reference = np.arange(-20, 20).reshape(5, 8)
    sharding = ShardingCodec(
        chunk_shape=(1, 4), codecs=[CastValue(data_type="float64"), BytesCodec()], index_location="start"
    )
    array = stored(tmp_path / "a", reference, chunks=(5, 8), serializer=sharding, compressors=None)
    read_and_write(array, reference, np.s_[1:4, 3:6], 7)
    assert_same(reopened(tmp_path / "a")[2:, 1:7], reference[2:, 1:7])


def test_a_scale_of_zero_is_refused_when_given_as_text(tmp_path: Path) -> None:
    """zarr-python#4279: "0.0" slipped past the check and destroyed all data."""
    with pytest.raises(ValueError, match="scale"):
        zarr.create_array(
            str(tmp_path / "a"), shape=(4,), chunks=(4,), dtype="f8", filters=[ScaleOffset(offset=0.0, scale="0.0")]
        )


def test_a_partial_decoder_needs_only_its_asynchronous_method(tmp_path: Path) -> None:
    """zarr-python#4201: a private synchronous twin was demanded."""
    reference = np.arange(40, dtype="i4").reshape(8, 5)
    array = stored(tmp_path / "a", reference, chunks=(3, 5), serializer=RawPartial(), compressors=None)
    assert_same(array[2:7, 1:4], reference[2:7, 1:4])
    assert array[6, 2] == reference[6, 2]
    read_and_write(array, reference, np.s_[1:4, 0], 9)


def test_a_v2_delta_filter_may_change_the_dtype(tmp_path: Path) -> None:
    """numcodecs#663: ``astype`` worked in version 2 of zarr-python and stopped in version 3."""
    reference = np.cumsum(np.arange(30)).astype("i8")
    delta = numcodecs.Delta(dtype="<i8", astype="<i4")
    array = stored(
        tmp_path / "a", reference, chunks=(10,), zarr_format=2, filters=[delta], compressors=numcodecs.Zlib(1)
    )
    read_and_write(array, reference, np.s_[5:15], reference[0:10].copy())
    assert_same(reopened(tmp_path / "a")[...], reference)


def test_a_v2_scaling_filter_is_exact_to_its_step(tmp_path: Path) -> None:
    """numcodecs#663: FixedScaleOffset, which also changes the dtype."""
    values = np.linspace(0, 10, 30)
    scaled = numcodecs.FixedScaleOffset(offset=0, scale=1000, dtype="<f8", astype="<u2")
    stored(tmp_path / "a", values, chunks=(10,), zarr_format=2, filters=[scaled])
    assert_same(reopened(tmp_path / "a")[...], np.round(values * 1000) / 1000)


@pytest.mark.filterwarnings(UNSPECIFIED)
@pytest.mark.parametrize("shards", [None, (4, 10)], ids=str)
def test_numcodecs_codecs_work_in_a_v3_chain(tmp_path: Path, shards: Any) -> None:
    """zarr-python#2806 and #3376: delta, shuffle, zlib and fletcher32 as files in the wild have them."""
    reference = np.arange(60, dtype="i4").reshape(6, 10)
    array = stored(
        tmp_path / "a",
        reference,
        chunks=(2, 5),
        shards=shards,
        filters=[named.Delta(dtype="<i4")],
        compressors=[named.Shuffle(elementsize=4), named.Zlib(level=1), named.Fletcher32()],
    )
    read_and_write(array, reference, np.s_[1:4, 3:7], 5)
    assert_same(reopened(tmp_path / "a")[...], reference)


@pytest.mark.parametrize("shards", [None, (4, 8)], ids=str)
@pytest.mark.parametrize("options", [{"filters": [AddOne()]}, {"compressors": [Invert()]}], ids=["add_one", "invert"])
def test_a_codec_that_a_user_registered_runs(tmp_path: Path, options: Any, shards: Any) -> None:
    """zarrista#57, gribberish#153: it exists in Python alone, and may stand inside a shard."""
    reference = np.arange(40, dtype="i4").reshape(5, 8)
    array = stored(tmp_path / "a", reference, chunks=(2, 4), shards=shards, **options)
    read_and_write(array, reference, np.s_[1:4, 3:6], 0)
    assert_same(reopened(tmp_path / "a")[...], reference)
