"""What we write is read by zarr-python, zarrs and tensorstore; what they write is read by us."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from tests.interop.implementations import IMPLEMENTATIONS, Implementation
from tests.interop.layouts import LAYOUTS, NUMCODECS, Layout
from tests.support.arrays import assert_same, reopened

pytestmark = [
    pytest.mark.usefixtures("pipeline"),
    pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec:UserWarning"),
    pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3 specification:UserWarning"),
]

SELECTIONS: list[Any] = [np.s_[...], np.s_[2:9, 5:19], np.s_[::3, 1::4], np.s_[12], np.s_[:, 21], np.s_[4:8, 8:16]]

#: What an implementation neither reads nor writes.
UNKNOWN = {
    ("tensorstore", "zstd around shards"): "tensorstore 0.1.86 takes no codec after the sharding codec",
    ("tensorstore", "transpose and crc32c"): "tensorstore 0.1.86 takes no codec after the sharding codec",
    **{("tensorstore", layout.name): "tensorstore 0.1.86 has no codec of this name" for layout in NUMCODECS},
}

#: What an implementation cannot read, whoever wrote it, but can write.
UNREADABLE = {
    ("zarrs", "big c8"): "zarrs 0.2.3 reverses both parts of a complex number together when it reads part of a chunk",
    ("zarrs", "v2 raw big"): "zarrs 0.2.3 refuses results that are not in native byte order",
    ("zarrs", "v2 blosc"): "zarrs 0.2.3 refuses results that are not in native byte order",
    ("zarrs", "v2 order F"): "zarrs 0.2.3 refuses results of order F",
    ("zarrs", "v2 order F zlib"): "zarrs 0.2.3 refuses results of order F",
}


def _pairs(*, reading: bool) -> list[Any]:
    def marks(implementation: Implementation, layout: Layout) -> Any:
        pair = implementation.name, layout.name
        reason = UNKNOWN.get(pair) or (UNREADABLE.get(pair) if reading else None)
        return pytest.mark.xfail(reason=reason) if reason else ()

    return [
        pytest.param(implementation, layout, id=f"{implementation.name}-{layout}", marks=marks(implementation, layout))
        for implementation in IMPLEMENTATIONS
        for layout in LAYOUTS
    ]


@pytest.mark.parametrize(("implementation", "layout"), _pairs(reading=True))
def test_what_we_write_is_read_by_others(tmp_path: Path, implementation: Implementation, layout: Layout) -> None:
    data = layout.data()
    layout.create(str(tmp_path / "a"))[...] = data
    assert_same(implementation.read(tmp_path / "a", layout.zarr_format), data)


@pytest.mark.parametrize(("implementation", "layout"), _pairs(reading=True))
def test_what_we_update_is_read_by_others(tmp_path: Path, implementation: Implementation, layout: Layout) -> None:
    data = layout.data()
    layout.create(str(tmp_path / "a"))
    implementation.write(tmp_path / "a", layout.zarr_format, data)
    array = reopened(tmp_path / "a", mode="r+")
    for selection, value in ((np.s_[3:6, 7:10], 9), (np.s_[12, ::5], 7), (np.s_[4:8, 8:16], 5), (np.s_[0:4, 0:8], 3)):
        array[selection] = value
        data[selection] = value
    assert_same(implementation.read(tmp_path / "a", layout.zarr_format), data)


@pytest.mark.parametrize(("implementation", "layout"), _pairs(reading=False))
def test_what_others_write_is_read_by_us(tmp_path: Path, implementation: Implementation, layout: Layout) -> None:
    data = layout.data()
    layout.create(str(tmp_path / "a"))
    implementation.write(tmp_path / "a", layout.zarr_format, data)
    array = reopened(tmp_path / "a")
    for selection in SELECTIONS:
        assert_same(array[selection], data[selection], selection)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS, ids=lambda implementation: implementation.name)
@pytest.mark.parametrize("options", [{}, {"compressors": None}, {"zarr_format": 2}], ids=str)
def test_arrays_without_axes_go_both_ways(tmp_path: Path, implementation: Implementation, options: Any) -> None:
    array = zarr.create_array(str(tmp_path / "a"), shape=(), dtype="f8", **options)
    array[...] = 4.5
    zarr_format = array.metadata.zarr_format
    assert_same(implementation.read(tmp_path / "a", zarr_format), np.array(4.5))
    implementation.write(tmp_path / "a", zarr_format, np.array(7.5))
    assert_same(reopened(tmp_path / "a")[...], np.array(7.5))


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS[:2], ids=lambda implementation: implementation.name)
def test_uneven_chunks_go_both_ways(tmp_path: Path, implementation: Implementation) -> None:
    """tensorstore 0.1.86 has no rectilinear grid."""
    data = np.arange(90, dtype="i4").reshape(10, 9)
    with zarr.config.set({"array.rectilinear_chunks": True}):
        array = zarr.create_array(str(tmp_path / "a"), shape=(10, 9), chunks=[[3, 5, 2], [4, 5]], dtype="i4")
        array[...] = data
        assert_same(implementation.read(tmp_path / "a", 3), data)
        implementation.write(tmp_path / "a", 3, data[::-1])
        assert_same(array[...], data[::-1])
        assert_same(array[2:9, 3:5], data[::-1][2:9, 3:5])
