"""Data types that need more than a fixed number of bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.core.dtype import VariableLengthBytes

from tests.support.arrays import assert_same, read_and_write, reopened

pytestmark = [
    pytest.mark.usefixtures("pipeline"),
    pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning"),
]


@pytest.mark.parametrize("shards", [None, (6, 4)], ids=str)
def test_strings_of_any_length_are_updated_in_part(tmp_path: Path, shards: Any) -> None:
    """zarr-python#2268: text in shards, with a fill value of its own."""
    array = zarr.create_array(
        str(tmp_path / "a"), shape=(6, 4), chunks=(2, 2), shards=shards, dtype="string", fill_value="none"
    )
    assert array[0, 0] == "none"
    reference = np.array([f"s{i}" * (i % 5) + "ß" for i in range(24)], object).reshape(6, 4)
    array[...] = reference
    read_and_write(array, reference, np.s_[1:4, 1], np.array(["x", "", "zzz"], object))
    assert_same(reopened(tmp_path / "a")[...], reference)
    assert_same(reopened(tmp_path / "a")[2:5, 1:3], reference[2:5, 1:3])


def test_v2_strings_are_read_and_written(tmp_path: Path) -> None:
    """zarr-python#2500 and #2627: object arrays with a vlen-utf8 filter label most single-cell files."""
    array = zarr.create_array(
        str(tmp_path / "a"), shape=(5,), chunks=(2,), dtype="string", zarr_format=2, compressors=numcodecs.Blosc("lz4")
    )
    reference = np.array(["a", "bb", "ccc", "", "é"], object)
    array[...] = reference
    read_and_write(array, reference, np.s_[1:3], np.array(["x", "yy"], object))
    assert_same(reopened(tmp_path / "a")[...], reference)


@pytest.mark.parametrize("value", [b"ab", b""], ids=repr)
def test_one_value_may_fill_many_chunks_of_bytes(tmp_path: Path, value: bytes) -> None:
    """Found here: what a scalar is broadcast to cannot be written to, which a library of numcodecs asks for."""
    array = zarr.create_array(
        str(tmp_path / "a"), shape=(3,), chunks=(1,), dtype=VariableLengthBytes(), fill_value=b"c"
    )
    array[...] = value
    assert reopened(tmp_path / "a")[...].tolist() == [value] * 3
