"""Every codec, data type and shape: we write the bytes that zarr-python writes, and read them back."""

from __future__ import annotations

import importlib.util
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr.codecs as zc
import zarr.codecs.numcodecs as zn
from numpy.typing import NDArray

from chunkwright import ChunkLengthError, CorruptChunkError
from tests.numcodecs.zarr_chunks import NUMBERS, OTHERS, RECORD, SHAPES, prepared, same, values, written

# zarr warns of codecs and data types that have no specification yet.
pytestmark = pytest.mark.filterwarnings("ignore")

BLOSCS = [
    zc.BloscCodec(cname=cname, clevel=clevel, shuffle=shuffle, blocksize=blocksize)
    for cname in ("lz4", "lz4hc", "blosclz", "snappy", "zlib", "zstd")
    for clevel, shuffle, blocksize in ((5, None, 0), (0, "noshuffle", 0), (9, "bitshuffle", 64), (1, "shuffle", 0))
    if cname != "snappy" or "snappy" in numcodecs.blosc.list_compressors()
]
COMPRESSORS = [
    None,
    zc.GzipCodec(level=0),
    zc.GzipCodec(level=9),
    zc.ZstdCodec(level=0),
    zc.ZstdCodec(level=3, checksum=True),
    zc.ZstdCodec(level=-7),
    zc.Crc32cCodec(),
    *BLOSCS,
    zn.Blosc(cname="lz4", clevel=5, shuffle=1),
    zn.Blosc(cname="zstd", clevel=3, shuffle=2, typesize=4),
    zn.LZ4(acceleration=4),
    zn.Zstd(level=2),
    zn.Zlib(level=3),
    zn.GZip(level=2),
    zn.BZ2(level=3),
    zn.LZMA(preset=1),
    zn.LZMA(format=3, filters=[{"id": 3, "dist": 4}, {"id": 33, "preset": 1}]),
    zn.CRC32(),
    zn.CRC32(location="end"),
    zn.CRC32C(),
    zn.CRC32C(location="start"),
    zn.Adler32(),
    zn.Fletcher32(),
    zn.JenkinsLookup3(),
    zn.JenkinsLookup3(initval=7),
]
FILTERS = [
    (zn.Delta(dtype="<i4"), "<i4"),
    (zn.Delta(dtype="<i4", astype="<i8"), "<i4"),
    (zn.Delta(dtype="<f8"), "<f8"),
    (zn.FixedScaleOffset(offset=-3, scale=10, dtype="<f8", astype="<i2"), "<f8"),
    (zn.FixedScaleOffset(offset=2, scale=2, astype="<u1"), "<f4"),
    (zn.Quantize(digits=2, dtype="<f8"), "<f8"),
    (zn.Quantize(digits=1), "<f4"),
    (zn.BitRound(keepbits=5), "<f4"),
    (zn.BitRound(keepbits=52), "<f8"),
    (zn.PackBits(), "|b1"),
    (zn.AsType(encode_dtype="<i2", decode_dtype="<i8"), "<i8"),
    (zn.AsType(encode_dtype="<f4"), "<f8"),
    (zc.ScaleOffset(offset=5, scale=2), "<i4"),
    (zc.ScaleOffset(offset=-1, scale=-1), "i1"),
    (zc.ScaleOffset(offset=0, scale=3), "<u8"),
    (zc.ScaleOffset(offset=0.5, scale=0.1), "<f4"),
    (zc.ScaleOffset(offset=0.5, scale=4), "<f2"),
    (zc.CastValue(data_type="int16"), "<i8"),
    (zc.CastValue(data_type="uint8", rounding="towards-zero", out_of_range="clamp"), "<f4"),
    (zc.CastValue(data_type="float32", scalar_map={"encode": [[3, "NaN"]], "decode": [["NaN", 3]]}), "<i4"),
    (zc.TransposeCodec(order=(2, 0, 1)), "<u2"),
]


def told(value: Any) -> str:
    """Tell a codec by its metadata: the text of some has sets in it, which are in no order."""
    return str(value.to_dict()) if hasattr(value, "to_dict") else str(value)


def needs(library: str) -> Any:
    """Mark a test of one of numcodecs' optional libraries."""
    return pytest.mark.skipif(importlib.util.find_spec(library) is None, reason=f"{library} is not installed")


def check(array: NDArray[Any], *, time_at: tuple[int, int] = (0, 0), **options: Any) -> NDArray[Any]:
    """Compare encoded bytes and decoded elements with zarr's; ``time_at`` is where a gzip header has the time."""
    metadata, stored, read = written(array, **options)
    chain = prepared(metadata)
    encoded, expected = bytearray(chain.encode(array, keep_empty=True)), bytearray(stored)
    encoded[slice(*time_at)] = expected[slice(*time_at)] = b""
    assert encoded == expected
    found = chain.decode(stored)
    same(found, np.asarray(read))
    strided = np.empty((*array.shape, 2), found.dtype)[..., 0]
    chain.decode_into(stored, strided)
    same(strided, found)
    return found


def gzip_time(codec: Any) -> tuple[int, int]:
    return (4, 8) if isinstance(codec, zc.GzipCodec | zn.GZip | numcodecs.GZip) else (0, 0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [*NUMBERS, *OTHERS, RECORD], ids=str)
@pytest.mark.parametrize("codec", COMPRESSORS, ids=told)
def test_a_compressor_writes_what_zarr_writes(codec, dtype, shape):
    array = values(dtype, shape)
    found = check(array, compressors=codec, time_at=gzip_time(codec))
    same(found, array)


@pytest.mark.parametrize("size", [1, 2, 4, 5])
@pytest.mark.parametrize("shape", SHAPES[1:])
def test_shuffle_writes_what_zarr_writes(shape, size):
    array = values("<i4", shape)
    if array.nbytes % size:
        array = values(f"S{size}", shape)
    same(check(array, compressors=zn.Shuffle(elementsize=size)), array)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("endian", ["little", "big"])
def test_byte_order_is_stored_as_zarr_stores_it(dtype, endian):
    array = values(dtype, (3, 4))
    same(check(array, compressors=None, serializer=zc.BytesCodec(endian=endian)), array)


@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1, 1), (2, 8, 1)])
@pytest.mark.parametrize(("codec", "dtype"), FILTERS, ids=told)
def test_a_filter_writes_what_zarr_writes(codec, dtype, shape):
    array = values(dtype, shape)
    check(array, filters=[codec], compressors=None)


@pytest.mark.parametrize("fill", ["", "unset"])
@pytest.mark.parametrize("shape", SHAPES)
def test_strings_are_written_as_zarr_writes_them(shape, fill):
    words = np.array(["", "a", "żółw", "漢字", "x" * 300, "unset", "\0"], dtype=np.dtypes.StringDType())
    array = np.resize(words, shape) if shape else np.array(words[3], words.dtype)
    found = check(array, compressors=zc.ZstdCodec(), fill_value=fill)
    assert found.tolist() == array.tolist()


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_byte_strings_are_written_as_zarr_writes_them(shape):
    words = np.array([b"", b"a", b"\xff\0", b"x" * 300], dtype=object)
    array = np.resize(words, shape)
    found = check(array, dtype="variable_length_bytes", compressors=None, fill_value=b"")
    assert found.tolist() == array.tolist()


@needs("pcodec")
@pytest.mark.parametrize("dtype", ["<u2", "<i4", "<f4", "<f8", "<u8"])
def test_pcodec_writes_what_zarr_writes(dtype):
    array = values(dtype, (3, 4, 5))
    same(check(array, serializer=zn.PCodec(level=4), compressors=None), array)


@pytest.mark.parametrize("library", [pytest.param(name, marks=needs(name)) for name in ("pcodec", "zfpy")])
def test_numbers_may_begin_at_any_byte(library):
    aligned = values("<f8", (3, 4, 5))
    array = np.frombuffer(b"1" + aligned.tobytes(), "<f8", offset=1).reshape(3, 4, 5)
    assert not array.flags.aligned
    metadata, stored, _ = written(
        aligned, serializer={"pcodec": zn.PCodec, "zfpy": zn.ZFPY}[library](), compressors=None
    )
    assert bytes(prepared(metadata).encode(array)) == stored
    same(prepared(metadata).decode(memoryview(b"1" + stored)[1:]), aligned)


@needs("zfpy")
@pytest.mark.parametrize("options", [{}, {"mode": 2, "rate": 16}, {"mode": 3, "precision": 20}], ids=repr)
@pytest.mark.parametrize("shape", [(7,), (3, 4), (3, 4, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("dtype", ["<i4", "<i8", "<f4", "<f8"])
def test_zfpy_writes_what_zarr_writes(dtype, shape, options):
    check(values(dtype, shape), serializer=zn.ZFPY(**options), compressors=None)


@needs("zfpy")
def test_zfpy_chunks_of_another_header_are_refused():
    array = values("<f4", (3, 4, 5))
    metadata, stored, _ = written(array, serializer=zn.ZFPY(), compressors=None)
    chain = prepared(metadata)
    for other in (array[:2], array.reshape(4, 3, 5), array.reshape(60), array.astype("<f8"), array.view("<i4")):
        with pytest.raises(ChunkLengthError):
            chain.decode(numcodecs.zfpy.ZFPY().encode(other))
    for length in range(12):
        with pytest.raises(CorruptChunkError):
            chain.decode(stored[:length])


@needs("zfpy")
def test_zfpy_chunks_are_never_read_beyond_their_end():
    array = values("<f8", (9, 9))
    for codec in (zn.ZFPY(mode=2, rate=64), zn.ZFPY()):
        metadata, stored, _ = written(array, serializer=codec, compressors=None)
        chain = prepared(metadata)
        # A chunk that is cut short decodes as if zeros followed, or is too short for its rate.
        for length in range(16, len(stored), 16):
            try:
                found = chain.decode(stored[:length])
            except ChunkLengthError:
                continue
            same(chain.decode(stored[:length] + bytes(100)), found)


V2_COMPRESSORS = [
    None,
    numcodecs.Blosc(cname="zstd", clevel=3, shuffle=-1),
    numcodecs.Blosc(cname="lz4", clevel=3, shuffle=1),
    numcodecs.Zstd(level=3),
    numcodecs.Zlib(level=3),
    numcodecs.GZip(level=3),
    numcodecs.BZ2(level=3),
    numcodecs.LZMA(preset=1),
    numcodecs.LZ4(),
    numcodecs.Base64(),
]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [*NUMBERS, *OTHERS, RECORD], ids=str)
@pytest.mark.parametrize("codec", V2_COMPRESSORS, ids=repr)
def test_zarr_v2_chunks_are_written_as_zarr_writes_them(codec, dtype, order):
    array = values(dtype, (3, 4, 5))
    options: dict[str, Any] = {"zarr_format": 2, "compressors": codec, "filters": None, "order": order}
    same(check(array, time_at=gzip_time(codec), **options), array)


V2_FILTERS = [
    ([numcodecs.Delta("<i4")], "<i4"),
    ([numcodecs.Delta(">i4", astype=">i2")], ">i4"),
    ([numcodecs.FixedScaleOffset(offset=-3, scale=10, dtype="<f8", astype="<i2"), numcodecs.Delta("<i2")], "<f8"),
    ([numcodecs.Quantize(digits=2, dtype="<f8")], "<f8"),
    ([numcodecs.PackBits()], "|b1"),
    ([numcodecs.AsType(encode_dtype="<i2", decode_dtype="<i8")], "<i8"),
    ([numcodecs.Shuffle(elementsize=4)], "<i4"),
    ([numcodecs.Shuffle(elementsize=4), numcodecs.CRC32()], "<i4"),
    ([numcodecs.Categorize(labels=["0", "1", "2"], dtype="<U3", astype="u1")], "<U3"),
]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("compressor", [None, numcodecs.Blosc(), numcodecs.Zstd()], ids=repr)
@pytest.mark.parametrize(("filters", "dtype"), V2_FILTERS, ids=repr)
def test_zarr_v2_filters_write_what_zarr_writes(filters, dtype, compressor, order):
    array = values(dtype, (2, 3, 8))
    check(array, zarr_format=2, filters=filters, compressors=compressor, order=order)


def test_bitround_of_zarr_v2_writes_what_zarr_writes():
    # In order F it is no chain: numcodecs leaves the memory order as it is.
    check(values("<f4", (2, 3, 8)), zarr_format=2, filters=[numcodecs.BitRound(keepbits=5)], compressors=None)


OBJECT_CODECS = [
    (numcodecs.VLenUTF8(), ["", "a", "żółw", "漢字", "x" * 300, "0"]),
    (numcodecs.VLenBytes(), [b"", b"a", b"\xff\0", b"x" * 300, b"0", b"1"]),
    (numcodecs.JSON(), ["a", 1, None, 2.5, {"b": [1]}, "ż"]),
    (numcodecs.MsgPack(), ["a", 1, None, 2.5, {"b": 1}, "ż"]),
    (numcodecs.VLenArray("<i2"), [np.arange(i, dtype="<i2") for i in range(6)]),
]


@pytest.mark.parametrize("compressor", [None, numcodecs.Zstd(level=1)], ids=repr)
@pytest.mark.parametrize(("codec", "elements"), OBJECT_CODECS, ids=[type(codec).__name__ for codec, _ in OBJECT_CODECS])
def test_objects_of_zarr_v2_are_written_as_numcodecs_writes_them(codec, elements, compressor):
    array = np.empty(6, object)
    array[:] = elements
    array = array.reshape(2, 3)
    stored = codec.encode(array)
    expected = stored if compressor is None else compressor.encode(stored)
    metadata = {
        "zarr_format": 2, "shape": [2, 3], "chunks": [2, 3], "dtype": "|O", "order": "C", "fill_value": None,
        "filters": [codec.get_config()], "compressor": None if compressor is None else compressor.get_config(),
    }  # fmt: skip
    chain = prepared(metadata)
    assert bytes(chain.encode(array, keep_empty=True)) == bytes(expected)
    found = chain.decode(bytes(expected))
    assert [np.asarray(item).tolist() for item in found.ravel()] == [np.asarray(item).tolist() for item in elements]
    assert found.shape == (2, 3)


def test_arrays_of_variable_length_are_compared_with_the_fill_value_as_a_whole():
    metadata = {
        "zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "|O", "order": "C", "fill_value": 0,
        "filters": [{"id": "vlen-array", "dtype": "<i2"}], "compressor": None,
    }  # fmt: skip
    chain = prepared(metadata)
    array = np.empty(2, object)
    array[:] = [np.zeros(1, "<i2"), np.zeros(3, "<i2")]
    encoded = chain.encode(array)
    assert encoded is not None
    assert [item.tolist() for item in chain.decode(encoded)] == [[0], [0, 0, 0]]
