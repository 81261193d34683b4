"""Fill values bit for bit: signs of zero, NaN, extremes, records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from tests.support.arrays import assert_same, chunk_files, read_and_write, reopened

pytestmark = pytest.mark.usefixtures("pipeline")


@pytest.mark.parametrize("fill", [0.0, -0.0])
@pytest.mark.parametrize("shards", [None, (4,)], ids=str)
def test_the_sign_of_zero_is_kept(tmp_path: Path, fill: float, shards: Any) -> None:
    """zarr-python#3144 and #3216: -0.0 equals a fill of 0.0 and was not stored."""
    array = zarr.create_array(str(tmp_path / "a"), shape=(8,), chunks=(2,), shards=shards, dtype="f8", fill_value=fill)
    reference = np.full(8, fill)
    read_and_write(array, reference, np.s_[0:4], -fill)
    read_and_write(array, reference, np.s_[4:6], np.array([0.0, -0.0]))
    assert_same(reopened(tmp_path / "a")[...], reference)


@pytest.mark.parametrize("shards", [None, (4, 4)], ids=str)
def test_chunks_of_nan_are_not_stored_under_a_fill_of_nan(tmp_path: Path, shards: Any) -> None:
    """reformatters#272, zarr-python#738: NaN never equals itself."""
    array = zarr.create_array(
        str(tmp_path / "a"), shape=(8, 4), chunks=(2, 2), shards=shards, dtype="f4", fill_value=np.nan
    )
    array[0:4] = np.nan
    assert not chunk_files(tmp_path / "a")
    reference = np.full((8, 4), np.nan, "f4")
    read_and_write(array, reference, np.s_[5, 1], 2)
    assert_same(reopened(tmp_path / "a")[...], reference)
    array[5, 1] = np.nan
    assert not chunk_files(tmp_path / "a"), "a chunk that came to hold nothing but NaN is deleted"


EXTREMES: list[tuple[str, Any]] = [
    ("u8", 2**64 - 1),
    ("i8", -(2**63)),
    ("f4", np.inf),
    ("f8", 0.1),
    ("c16", complex(np.nan, -np.inf)),
    ("bool", True),
    ("f2", -65504.0),
]


@pytest.mark.parametrize(("dtype", "fill"), EXTREMES, ids=lambda value: str(value))
@pytest.mark.parametrize("shards", [None, (4,)], ids=str)
def test_extreme_fill_values_are_exact(tmp_path: Path, dtype: str, fill: Any, shards: Any) -> None:
    """zarr-python#2200, Zarr.jl#165: fill values travel through JSON."""
    array = zarr.create_array(str(tmp_path / "a"), shape=(8,), chunks=(2,), shards=shards, dtype=dtype, fill_value=fill)
    reference = np.full(8, fill, dtype)
    assert_same(array[...], reference)
    read_and_write(array, reference, 5, 0)
    assert_same(reopened(tmp_path / "a")[...], reference)


@pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification:FutureWarning")
@pytest.mark.parametrize("shards", [None, (6,)], ids=str)
def test_records_have_a_record_as_fill_value(tmp_path: Path, shards: Any) -> None:
    """zarr-python#4183: the fill of a structured dtype cannot be hashed."""
    dtype = np.dtype([("x", "i4"), ("y", "f8")])
    fill = np.array([(5, np.nan)], dtype)[0]
    array = zarr.create_array(
        str(tmp_path / "a"), shape=(12,), chunks=(2,), shards=shards, dtype=dtype, fill_value=fill
    )
    reference = np.full(12, fill, dtype)
    read_and_write(array, reference, np.s_[3:8], np.array([(i, i / 2) for i in range(5)], dtype))
    assert_same(reopened(tmp_path / "a")[...], reference)
