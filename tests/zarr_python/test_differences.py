"""Where arrays come out differently than under zarr-python's default pipeline, on purpose: both sides of it.

``docs/differences.md`` lists these and says why.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import zarr
import zarr.codecs as zc
import zarr.codecs.numcodecs as zn
from zarr.core.buffer import cpu
from zarr.storage import MemoryStore

from chunkwright import ChunkLengthError, CorruptChunkError, ShardIndexError
from tests.support.pipelines import DEFAULT, OURS, Pipeline, pipeline

__all__ = ("pipeline",)

pytestmark = pytest.mark.usefixtures("pipeline")

RECORD = np.dtype([("x", "f8")])
QUIET = np.array(0x7FF8000000000001, "u8").view("f8")[()]


def created(**options: Any) -> zarr.Array[Any]:
    return zarr.create_array(MemoryStore(), **options)


def created_by_zarr(**options: Any) -> zarr.Array[Any]:
    """The same array under zarr's default pipeline."""
    with Pipeline(DEFAULT).use():
        return created(**options)


def chunks(array: zarr.Array[Any]) -> dict[str, bytes]:
    """What is stored, by key."""
    stored = array.store._store_dict
    return {key: data.to_bytes() for key, data in stored.items() if key != "zarr.json"}


@pytest.mark.parametrize(
    ("dtype", "fill", "value"),
    [
        ("c16", 0j, complex(-0.0, 0.0)),
        ("c16", 0j, complex(0.0, -0.0)),
        (RECORD, np.zeros((), RECORD)[()], np.array((-0.0,), RECORD)[()]),
        ("f8", np.nan, QUIET),
    ],
    ids=["real part", "imaginary part", "record", "NaN"],
)
@pytest.mark.filterwarnings("ignore:The data type .* does not have a Zarr V3 specification")
def test_values_that_only_equal_the_fill_value_are_stored(dtype: Any, fill: Any, value: Any) -> None:
    options = {"shape": (2,), "chunks": (2,), "dtype": dtype, "fill_value": fill}
    ours, theirs = created(**options), created_by_zarr(**options)
    values = np.full(2, value, dtype)
    ours[...] = values
    theirs[...] = values
    assert np.asarray(ours[...]).tobytes() == values.tobytes()
    assert chunks(theirs) == {}


def test_integers_that_overflow_while_they_are_scaled_are_an_error() -> None:
    scale = zc.ScaleOffset(offset=0, scale=4)
    options = {"shape": (2,), "chunks": (2,), "dtype": "i8", "filters": [scale]}
    ours, theirs = created(**options), created_by_zarr(**options)
    theirs[...] = [2**62, 1]
    assert theirs[...].tolist() == [0, 1]
    with pytest.raises(ValueError, match="outside the range"):
        ours[...] = [2**62, 1]


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3 specification:UserWarning")
def test_values_that_are_not_aligned_in_memory_are_cast() -> None:
    options = {
        "shape": (4,), "chunks": (4,), "dtype": "i8", "filters": [zc.CastValue(data_type="float64")],
        "compressors": [zn.Adler32()],
    }  # fmt: skip
    ours, theirs = created(**options), created_by_zarr(**options)
    ours[...] = theirs[...] = [5, 58, 38, 41]
    assert chunks(ours) == chunks(theirs)
    assert ours[...].tolist() == [5, 58, 38, 41]
    with pytest.raises(BaseException, match="buffer is a valid slice"):
        theirs[...]


def test_the_rust_backend_deflates_to_other_bytes_of_the_same_content() -> None:
    options = {"shape": (400,), "chunks": (400,), "dtype": "i4", "compressors": zc.GzipCodec()}
    values = np.arange(400)
    with Pipeline(OURS, "rust").use():
        ours = created(**options)
    theirs = created_by_zarr(**options)
    ours[...] = theirs[...] = values
    assert chunks(ours) != chunks(theirs)
    theirs.store._store_dict.update(ours.store._store_dict)
    assert (theirs[...] == values).all()


def test_a_chunk_that_does_not_decode_is_named() -> None:
    options = {"shape": (64,), "chunks": (32,), "dtype": "i4", "compressors": zc.ZstdCodec()}
    ours, theirs = created(**options), created_by_zarr(**options)
    for array in (ours, theirs):
        array[...] = np.arange(64)
        array.store._store_dict["c/1"] = cpu.Buffer.from_bytes(chunks(array)["c/1"][:-3])
    with pytest.raises(CorruptChunkError, match=r"zstd: .*c/1"):
        ours[...]
    with pytest.raises(RuntimeError, match=r"^(?!.*c/1)"):
        theirs[...]


def test_a_chunk_that_decodes_to_too_much_is_not_decoded_to_its_end() -> None:
    options = {"shape": (4,), "chunks": (4,), "dtype": "i4", "compressors": zc.GzipCodec()}
    ours, larger = created(**options), created_by_zarr(**{**options, "shape": (4096,), "chunks": (4096,)})
    larger[...] = 1
    ours.store._store_dict["c/0"] = larger.store._store_dict["c/0"]
    with pytest.raises(ChunkLengthError, match="gzip"):
        ours[...]


def test_a_shard_whose_index_leads_out_of_it_is_an_error() -> None:
    sharding = zc.ShardingCodec(
        chunk_shape=(2,), codecs=[zc.BytesCodec(), zc.BloscCodec(cname="lz4")], index_codecs=[zc.BytesCodec()]
    )
    options = {"shape": (4,), "chunks": (4,), "dtype": "i4", "serializer": sharding, "compressors": None}
    ours, theirs = created(**options), created_by_zarr(**options)
    for array in (ours, theirs):
        array[...] = np.arange(1, 5)
        ((key, shard),) = chunks(array).items()
        last = np.frombuffer(shard[-16:], "<u8") + np.array([0, 1 << 20], "u8")
        array.store._store_dict[key] = cpu.Buffer.from_bytes(shard[:-16] + last.tobytes())
    assert theirs[2:].tolist() == [3, 4]
    with pytest.raises(ShardIndexError, match="c/0"):
        ours[2:]
