"""Selections that users reported as broken under one pipeline or another, on plain and sharded arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from tests.support.arrays import assert_same, read_and_write, reopened, stored

pytestmark = pytest.mark.usefixtures("pipeline")


def test_an_integer_with_a_list_reads_from_shards_as_from_chunks(tmp_path: Path) -> None:
    """zarr-python#2816: the pair raised, but only on sharded arrays."""
    reference = np.arange(120, dtype="i4").reshape(12, 10)
    for name, shards in (("plain", None), ("sharded", (6, 10))):
        array = stored(tmp_path / name, reference, chunks=(2, 5), shards=shards)
        assert_same(array[5, [0, 1]], reference[5, [0, 1]])
        assert_same(array[[11, 0, 3], 9], reference[[11, 0, 3], 9])


def test_an_orthogonal_write_mixes_integers_arrays_and_slices_over_many_shards(tmp_path: Path) -> None:
    """zarr-python#4315 and #4316: the axis of the integer was dropped too early."""
    reference = np.zeros((9, 8, 7), "i8")
    array = stored(tmp_path / "a", reference, chunks=(3, 2, 7), shards=(6, 4, 7))
    rows = np.arange(21).reshape(3, 7) + 1
    array.oindex[np.array([0, 4, 8]), 5, slice(None)] = rows
    reference[[0, 4, 8], 5] = rows
    line = np.arange(4) + 100
    array.oindex[2, np.array([1, 2, 6, 7]), 3] = line
    reference[2, [1, 2, 6, 7], 3] = line
    assert_same(array[...], reference)


@pytest.mark.parametrize("points", [[0, 5, 1], [9, 2, 8, 3, 11, 0], [3, 3, 7, 3], [11, 10, 9]], ids=str)
def test_points_of_one_chunk_may_lie_apart_in_the_result(tmp_path: Path, points: list[int]) -> None:
    """zarrs-python#189, zarr-python#4170: unsorted gathers, as model training does them."""
    reference = np.arange(12) * 10
    array = stored(tmp_path / "a", reference, chunks=(4,))
    assert_same(array.vindex[np.array(points)], reference[points])
    assert_same(array[np.array(points)], reference[points])


@pytest.mark.parametrize("shards", [None, (4, 6)], ids=str)
def test_a_mask_reads_across_narrow_chunks(tmp_path: Path, shards: Any) -> None:
    """zarrs-python#30: most random masks on chunks of shape (2, 1) went wrong."""
    reference = np.arange(60, dtype="i2").reshape(10, 6)
    array = stored(tmp_path / "a", reference, chunks=(2, 1), shards=shards)
    random = np.random.default_rng(8)
    for density in (0.05, 0.2, 0.4, 0.4, 0.4, 0.9):
        mask = random.random(reference.shape) < density
        assert_same(array[mask], reference[mask], mask)


def test_booleans_on_one_axis_go_with_a_slice_on_the_other(tmp_path: Path) -> None:
    """zarrs-python#24: the Booleans themselves were taken for the bounds of slices."""
    reference = np.arange(96, dtype="u1").reshape(12, 8)
    array = stored(tmp_path / "a", reference, chunks=(4, 3))
    rows = np.array([1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 1], bool)
    assert_same(array.oindex[rows, 2:3], reference[rows, 2:3])
    assert_same(array.oindex[rows, :], reference[rows, :])
    adjacent = np.isin(np.arange(12), (4, 5, 6))
    array.oindex[adjacent, 1:7] = np.full((3, 6), 255, "u1")
    reference[4:7, 1:7] = 255
    assert_same(array[...], reference)


@pytest.mark.parametrize("shards", [None, (20, 4, 1, 5)], ids=str)
def test_steps_and_negative_indices_read_and_write(tmp_path: Path, shards: Any) -> None:
    """zarr-python#3524: ``data[::step]`` and its like."""
    reference = np.arange(1200.0).reshape(60, 4, 1, 5)
    array = stored(tmp_path / "a", reference, chunks=(10, 2, 1, 5), shards=shards)
    for selection in (np.s_[::7], np.s_[3:55:13, ::2], np.s_[-1], np.s_[-5:, 1, :, 1::3], np.s_[:, -1, 0, 0]):
        assert_same(array[selection], reference[selection], selection)
    read_and_write(array, reference, np.s_[5:50:9, 1], 0.5)


def test_empty_selections_and_axes_of_length_zero_are_no_special_case(tmp_path: Path) -> None:
    """zarr-python#3899: nothing is read, nothing is written, the shapes are right."""
    reference = np.arange(12).reshape(3, 4)
    array = stored(tmp_path / "a", reference, chunks=(2, 2))
    none = np.array([], int)
    assert array[1:1].shape == (0, 4)
    assert array[2:2, 0].shape == (0,)
    assert array.oindex[none, :].shape == (0, 4)
    assert array.vindex[none, none].shape == (0,)
    array[1:1] = np.zeros((0, 4), int)
    array.oindex[none, :] = np.zeros((0, 4), int)
    assert_same(array[...], reference)

    growing = zarr.create_array(str(tmp_path / "e"), shape=(0, 5), chunks=(1, 5), dtype="f4")
    growing[...] = np.zeros((0, 5), "f4")
    assert growing[...].shape == (0, 5)
    growing.append(np.ones((2, 5), "f4"))
    assert_same(growing[...], np.ones((2, 5), "f4"))


def test_scalars_columns_and_other_dtypes_are_assigned_as_in_numpy(tmp_path: Path) -> None:
    """zarr-python#2512: a Python scalar, a float, a big-endian value, a column, an empty slice."""
    reference = np.arange(81, dtype="i4").reshape(9, 9)
    array = stored(tmp_path / "a", reference, chunks=(3, 3), shards=(6, 6))
    read_and_write(array, reference, np.s_[2, :], 5)
    read_and_write(array, reference, np.s_[:, 4:5], np.arange(9).reshape(9, 1))
    read_and_write(array, reference, np.s_[3:8, 3:8], np.float64(2))
    read_and_write(array, reference, np.s_[0:0], 1)
    read_and_write(array, reference, np.s_[7:, :2], np.array([[1, 2], [3, 4]], ">i8"))
    assert_same(reopened(tmp_path / "a")[...], reference)


def _random_writes(array: Any, reference: Any, random: np.random.Generator) -> None:
    """Write and read one random selection of each kind, comparing everything after each write."""
    rows, columns = reference.shape
    keep = random.random(rows) < 0.5
    span = slice(*sorted(random.integers(0, columns + 1, 2)), int(random.integers(1, 4)))
    product = np.ix_(np.flatnonzero(keep), np.arange(columns)[span])
    block = random.integers(0, 99, reference[product].shape).astype("i4")
    array.oindex[keep, slice(span.start, span.stop, span.step)] = block
    reference[product] = block
    assert_same(array[...], reference)

    points = np.unravel_index(random.permutation(reference.size)[:5], reference.shape)
    assert_same(array.vindex[points], reference[points])
    array.vindex[points] = np.arange(5, dtype="i4")
    reference[points] = np.arange(5)
    assert_same(array[...], reference)

    mask = random.random(reference.shape) < 0.3
    assert_same(array[mask], reference[mask])
    array[mask] = -7
    reference[mask] = -7
    assert_same(array[...], reference)

    read_and_write(array, reference, np.s_[int(random.integers(rows)), span], int(random.integers(99)))


@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"shards": (4, 6)},
        {"shards": (4, 6), "compressors": None},
        {"filters": [zarr.codecs.TransposeCodec(order=(1, 0))]},
        {"zarr_format": 2},
    ],
    ids=["plain", "sharded", "sharded raw", "transposed", "v2"],
)
def test_random_selections_agree_with_numpy(tmp_path: Path, layout: dict[str, Any]) -> None:
    """zarr-python#4331: the sharded write path had hardly been tested at random."""
    random = np.random.default_rng(84)
    reference = np.full((11, 7), -1, "i4")
    array = zarr.create_array(str(tmp_path / "a"), shape=(11, 7), chunks=(2, 3), dtype="i4", fill_value=-1, **layout)
    for _ in range(10):
        _random_writes(array, reference, random)
