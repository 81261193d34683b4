"""GDAL (in the wheels of rasterio) and netCDF-C (in those of netCDF4) read what we write, and we read what they write.

Both write Zarr v2 as well as v3 or not, as their builds allow. They know neither the sharding codec nor crc32c: GDAL
3.12.2 refuses both, netCDF-C 4.10.1 takes no v3 that zarr-python writes, reads arrays of order F without transposing
them, and gives missing chunks of big-endian arrays a fill value with swapped bytes. Compressors that these builds lack
are left out below.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import netCDF4
import numcodecs
import numpy as np
import pytest
import rasterio
import zarr
from numpy.typing import NDArray

from tests.interop.layouts import LAYOUTS, Layout
from tests.support.arrays import assert_same, reopened

pytestmark = [
    pytest.mark.usefixtures("pipeline"),
    pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning"),
]

BY_NAME = {layout.name: layout for layout in LAYOUTS}

GDAL_READS = [
    "little", "big", "little i1", "little i8", "little f4", "little f8", "little c16", "big c8", "transpose", "gzip",
    "zstd", "zstd with checksum", "blosc lz4 shuffle", "blosc zlib noshuffle", "v2 raw", "v2 raw big", "v2 order F",
    "v2 order F zlib", "v2 gzip", "v2 zstd", "v2 blosc",
]  # fmt: skip


def gdal_read(path: Path) -> NDArray[Any]:
    with rasterio.open(f'ZARR:"{path}"') as source:
        values: NDArray[Any] = source.read(1)
    return values


@pytest.mark.parametrize("name", GDAL_READS)
def test_gdal_reads_what_we_write(tmp_path: Path, name: str) -> None:
    layout: Layout = BY_NAME[name]
    data = layout.data()
    array = layout.create(str(tmp_path / "a"))
    array[...] = data
    array[3:6, 7:10] = data[3:6, 7:10] = 9
    assert_same(gdal_read(tmp_path / "a"), data)


@pytest.mark.parametrize("name", GDAL_READS)
def test_what_gdal_changes_is_read_by_us(tmp_path: Path, name: str) -> None:
    layout: Layout = BY_NAME[name]
    data = layout.data()
    layout.create(str(tmp_path / "a"))[...] = data[::-1]
    with rasterio.open(f'ZARR:"{tmp_path / "a"}"', "r+") as target:
        target.write(data, 1)
    array = reopened(tmp_path / "a")
    assert_same(array[...], data)
    assert_same(array[4:11, 6:20], data[4:11, 6:20])


GDAL_WRITES: dict[str, dict[str, str]] = {
    "v2": {},
    "v2 zlib": {"COMPRESS": "ZLIB"},
    "v2 gzip": {"COMPRESS": "GZIP"},
    "v2 zstd": {"COMPRESS": "ZSTD"},
    "v2 blosc": {"COMPRESS": "BLOSC"},
    "v2 order F": {"CHUNK_MEMORY_LAYOUT": "F"},
    "v2 delta": {"FILTER": "delta"},
    "v3": {"FORMAT": "ZARR_V3"},
    "v3 gzip": {"FORMAT": "ZARR_V3", "COMPRESS": "GZIP"},
    "v3 zstd": {"FORMAT": "ZARR_V3", "COMPRESS": "ZSTD"},
    "v3 blosc": {"FORMAT": "ZARR_V3", "COMPRESS": "BLOSC"},
    "v3 order F": {"FORMAT": "ZARR_V3", "CHUNK_MEMORY_LAYOUT": "F"},
}


@pytest.mark.parametrize("name", GDAL_WRITES)
@pytest.mark.filterwarnings("ignore:Object at .* is not recognized as a component of a Zarr hierarchy:UserWarning")
def test_what_gdal_writes_is_read_and_changed_by_us(tmp_path: Path, name: str) -> None:
    data = BY_NAME["little"].data()
    options = {"driver": "Zarr", "height": data.shape[0], "width": data.shape[1], "count": 1, "dtype": "uint16"}
    # Without a "no data" value GDAL writes a fill value of null, which v3 does not have.
    path = tmp_path / "a.zarr"
    with rasterio.open(path, "w", **options, nodata=3, BLOCKSIZE="5,8", **GDAL_WRITES[name]) as target:
        target.write(data, 1)
    array = zarr.open_array(_array_folder(path), mode="r+")
    assert_same(array[...], data)
    assert_same(array[2:9, 5:19], data[2:9, 5:19])
    array[3:6, 7:10] = data[3:6, 7:10] = 9
    assert_same(gdal_read(path), data)


def _array_folder(path: Path) -> Path:
    """The one array below a folder."""
    old = [file.parent for file in path.rglob(".zarray")]
    new = [
        file.parent for file in path.rglob("zarr.json") if json.loads(file.read_text("utf-8"))["node_type"] == "array"
    ]
    # Coordinates are arrays of one axis.
    (found,) = [folder for folder in old + new if zarr.open_array(folder, mode="r").ndim == 2]
    return found


NETCDF_READS: dict[str, Any] = {
    "raw": None,
    "zlib": numcodecs.Zlib(1),
    "zstd": numcodecs.Zstd(1),
    "bz2": numcodecs.BZ2(1),
    "blosc": numcodecs.Blosc("lz4", shuffle=1),
}


@pytest.mark.parametrize("dtype", ["<u2", "<f8", ">i4"])
@pytest.mark.parametrize("name", NETCDF_READS)
def test_netcdf_reads_what_we_write(tmp_path: Path, name: str, dtype: str) -> None:
    data = BY_NAME["little"].data().astype(dtype)
    data[data == 3] = 4  # no chunk is missing
    group = zarr.create_group(str(tmp_path / "g"), zarr_format=2)
    array = group.create_array(
        "v", shape=data.shape, chunks=(5, 8), dtype=dtype, fill_value=3, compressors=NETCDF_READS[name],
        attributes={"_ARRAY_DIMENSIONS": ["y", "x"]},
    )  # fmt: skip
    array[...] = data
    array[3:6, 7:10] = data[3:6, 7:10] = 9
    with netCDF4.Dataset(f"file://{tmp_path / 'g'}#mode=zarr,file") as dataset:
        dataset.set_auto_mask(False)
        assert_same(np.asarray(dataset["v"][...]), data)


NETCDF_WRITES: dict[str, dict[str, Any]] = {
    "raw": {},
    "zlib": {"compression": "zlib"},
    "zstd": {"compression": "zstd"},
    "bz2": {"compression": "bzip2"},
    "fletcher32": {"fletcher32": True},
}


@pytest.mark.parametrize("endian", ["little", "big"])
@pytest.mark.parametrize("name", NETCDF_WRITES)
def test_what_netcdf_writes_is_read_and_changed_by_us(tmp_path: Path, name: str, endian: Any) -> None:
    data = BY_NAME["little"].data().astype("<u2" if endian == "little" else ">u2")
    address = f"file://{tmp_path / 'n'}#mode=zarr,file"
    with netCDF4.Dataset(address, "w") as dataset:
        for dimension, length in zip("yx", data.shape, strict=True):
            dataset.createDimension(dimension, length)
        options = {"chunksizes": (5, 8), "fill_value": 3, "shuffle": False, "endian": endian}
        dataset.createVariable("v", data.dtype.str, ("y", "x"), **options, **NETCDF_WRITES[name])[...] = data
    array = zarr.open_array(str(tmp_path / "n" / "v"), mode="r+")
    assert_same(array[...], data)
    assert_same(array[2:9, 5:19], data[2:9, 5:19])
    array[3:6, 7:10] = data[3:6, 7:10] = 9
    with netCDF4.Dataset(address) as dataset:
        dataset.set_auto_mask(False)
        assert_same(np.asarray(dataset["v"][...]), data)
