"""z5, a C++ library for Zarr v2 and v3 with shards, and acquire-zarr, a C++ writer of shards; both ways where they can.

z5py 3.0.2 knows neither transpose nor crc32c but for an index; it takes all v3 data for little-endian, and all
indexes to be at the end; its lz4 is not numcodecs'. acquire-zarr 0.10.0 only writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import acquire_zarr
import numcodecs
import numpy as np
import pytest
import z5py
import zarr
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

from tests.interop.layouts import LAYOUTS
from tests.support.arrays import assert_same

pytestmark = pytest.mark.usefixtures("pipeline")

DATA = LAYOUTS[0].data()

WRITTEN: dict[str, dict[str, Any]] = {
    "raw": {"compressors": None},
    "zstd": {"compressors": [ZstdCodec(level=1)]},
    "gzip": {"compressors": [GzipCodec(level=1)]},
    "blosc": {"compressors": [BloscCodec(cname="zstd", shuffle="bitshuffle")]},
    "shards": {"shards": (10, 16), "compressors": None},
    "shards of zstd": {"shards": (10, 16), "compressors": [ZstdCodec()]},
    "shards of blosc": {"shards": (10, 16), "compressors": [BloscCodec()]},
    "v2 raw": {"zarr_format": 2, "compressors": None},
    "v2 zlib": {"zarr_format": 2, "compressors": numcodecs.Zlib(1)},
    "v2 zstd": {"zarr_format": 2, "compressors": numcodecs.Zstd(1)},
    "v2 blosc": {"zarr_format": 2, "compressors": numcodecs.Blosc("lz4", shuffle=1)},
    "v2 bz2": {"zarr_format": 2, "compressors": numcodecs.BZ2(1)},
}


def _created(path: Path, name: str, dtype: str) -> Any:
    options = dict(WRITTEN[name])
    group = zarr.create_group(str(path), zarr_format=options.pop("zarr_format", 3))
    return group.create_array("a", shape=DATA.shape, chunks=(5, 8), dtype=dtype, fill_value=3, **options)


@pytest.mark.parametrize("dtype", ["u2", "f8"])
@pytest.mark.parametrize("name", WRITTEN)
def test_z5_reads_what_we_write(tmp_path: Path, name: str, dtype: str) -> None:
    data = DATA.astype(dtype)
    array = _created(tmp_path / "g", name, dtype)
    array[...] = data
    array[3:6, 7:10] = data[3:6, 7:10] = 9
    stored = z5py.ZarrFile(str(tmp_path / "g"), "r")["a"]
    assert_same(stored[...], data)
    assert_same(stored[2:9, 5:19], data[2:9, 5:19])


@pytest.mark.parametrize("name", WRITTEN)
def test_what_z5_changes_is_read_by_us(tmp_path: Path, name: str) -> None:
    data = DATA.copy()
    array = _created(tmp_path / "g", name, "u2")
    array[...] = data
    z5py.ZarrFile(str(tmp_path / "g"), "r+")["a"][5:13, 8:20] = data[5:13, 8:20] = DATA[:8, :12]
    assert_same(array[...], data)
    assert_same(array[4:11, 6:20], data[4:11, 6:20])


MADE: dict[str, dict[str, Any]] = {
    "v2 raw": {"compression": "raw"},
    "v2 zlib": {"compression": "zlib"},
    "v2 blosc": {"compression": "blosc"},
    "v2 bzip2": {"compression": "bzip2"},
    "raw": {"zarr_format": 3, "compression": "raw"},
    "gzip": {"zarr_format": 3, "compression": "gzip"},
    "zstd": {"zarr_format": 3, "compression": "zstd"},
    "blosc": {"zarr_format": 3, "compression": "blosc"},
    "shards": {"zarr_format": 3, "compression": "raw", "shards": (10, 16)},
    "shards of zstd": {"zarr_format": 3, "compression": "zstd", "shards": (10, 16)},
}


@pytest.mark.parametrize("name", MADE)
def test_what_z5_writes_is_read_and_changed_by_us(tmp_path: Path, name: str) -> None:
    data, options = DATA.copy(), dict(MADE[name])
    file = z5py.ZarrFile(str(tmp_path / "g.zarr"), "a", zarr_format=options.pop("zarr_format", 2))
    file.create_dataset("a", data=data, chunks=(5, 8), fillvalue=3, **options)
    array = zarr.open_array(str(tmp_path / "g.zarr" / "a"), mode="r+")
    assert_same(array[...], data)
    assert_same(array[2:9, 5:19], data[2:9, 5:19])
    array[3:6, 7:10] = data[3:6, 7:10] = 9
    assert_same(z5py.ZarrFile(str(tmp_path / "g.zarr"), "r")["a"][...], data)


CODECS = ["raw", "blosc lz4", "blosc zstd"]


@pytest.mark.parametrize("codec", CODECS)
def test_shards_of_acquire_are_read_and_changed_by_us(tmp_path: Path, codec: str) -> None:
    data = np.arange(7 * 12 * 20, dtype="u2").reshape(7, 12, 20)
    kinds = acquire_zarr.DimensionType
    dimensions = [
        acquire_zarr.Dimension(name="t", kind=kinds.TIME, array_size_px=0, chunk_size_px=2, shard_size_chunks=2),
        acquire_zarr.Dimension(name="y", kind=kinds.SPACE, array_size_px=12, chunk_size_px=5, shard_size_chunks=3),
        acquire_zarr.Dimension(name="x", kind=kinds.SPACE, array_size_px=20, chunk_size_px=8, shard_size_chunks=3),
    ]
    options: dict[str, Any] = {"dimensions": dimensions, "data_type": acquire_zarr.DataType.UINT16}
    if codec != "raw":
        options["compression"] = acquire_zarr.CompressionSettings(
            compressor=acquire_zarr.Compressor.BLOSC1,
            codec=acquire_zarr.CompressionCodec.__members__[codec.upper().replace(" ", "_")],
            level=3,
            shuffle=1,
        )
    path = str(tmp_path / "s.zarr")
    settings = acquire_zarr.StreamSettings(
        store_path=path, version=acquire_zarr.ZarrVersion.V3, arrays=[acquire_zarr.ArraySettings(**options)]
    )
    stream = acquire_zarr.ZarrStream(settings)
    stream.append(data)
    stream.close()
    array = zarr.open_array(path, mode="r+")
    assert_same(array[...], data)
    assert_same(array[1:6, 3:11:2, 7], data[1:6, 3:11:2, 7])
    array[2:5, 4:6] = data[2:5, 4:6] = 9
    assert_same(array[...], data)
