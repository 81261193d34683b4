"""``scale_offset``: exact integers or an error, floats as IEEE 754 has them, and what zarr-python makes of both."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
import zarr.codecs
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps
from zarr.core.array_spec import ArrayConfig, ArraySpec
from zarr.core.buffer import default_buffer_prototype
from zarr.dtype import parse_dtype

from chunkwright import CodecChain, CorruptChunkError
from chunkwright_numcodecs import NumcodecsBackend

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def scaled(dtype: Any, offset: Any, scale: Any, shape: tuple[int, ...]) -> Any:
    """A backend's run of nothing but the codec, without the fill value, which may have no result."""
    codecs = [
        {"name": "scale_offset", "configuration": {"offset": offset, "scale": scale}},
        {"name": "bytes", "configuration": {"endian": "little"}},
    ]
    return CodecChain.from_json(codecs).bind(dtype, offset).prepare(shape, backends=[NumcodecsBackend()])


@st.composite
def integer_cases(draw: Any) -> Any:
    info = np.iinfo(draw(st.sampled_from(INTEGERS)))
    low, high = int(info.min), int(info.max)
    near = st.one_of(
        st.integers(max(low, -9), 9), st.integers(low, low + 9), st.integers(high - 9, high), st.integers(low, high)
    )
    array = np.array(draw(st.lists(near, min_size=1, max_size=5)), info.dtype)
    return array, draw(near), draw(near.filter(bool))


def exact(values: list[int], dtype: np.dtype[Any]) -> bool:
    info = np.iinfo(dtype)
    return all(info.min <= value <= info.max for value in values)


@given(integer_cases())
def test_integers_are_encoded_exactly_or_not_at_all(case):
    array, offset, scale = case
    chain = scaled(array.dtype, offset, scale, array.shape)
    expected = [(int(value) - offset) * scale for value in array]
    if exact(expected, array.dtype):
        found = np.frombuffer(chain.encode(array, keep_empty=True), array.dtype.newbyteorder("<"))
        assert found.tolist() == expected
    else:
        with pytest.raises(ValueError, match="outside the range"):
            chain.encode(array, keep_empty=True)


@given(integer_cases())
def test_integers_are_decoded_exactly_or_not_at_all(case):
    array, offset, scale = case
    chain = scaled(array.dtype, offset, scale, array.shape)
    stored = array.astype(array.dtype.newbyteorder("<")).tobytes()
    expected = [int(value) // scale + offset for value in array]
    if any(int(value) % scale for value in array) or not exact(expected, array.dtype):
        with pytest.raises(CorruptChunkError):
            chain.decode(stored)
    else:
        assert chain.decode(stored).tolist() == expected


def zarrs(codec: Any, array: np.ndarray, encode: bool) -> Any:
    """What zarr-python's codec makes of an array."""
    prototype = default_buffer_prototype()
    spec = ArraySpec(
        shape=array.shape,
        dtype=parse_dtype(array.dtype, zarr_format=3),
        fill_value=array.dtype.type(0),
        config=ArrayConfig.from_dict({}),
        prototype=prototype,
    )
    buffer = prototype.nd_buffer.from_numpy_array(array)
    call = codec.encode if encode else codec.decode

    async def run() -> Any:
        (found,) = await call([(buffer, spec)])
        return found.as_numpy_array()

    with np.errstate(all="ignore"):
        return asyncio.run(run())


@given(
    nps.arrays(st.sampled_from(["<f2", "<f4", "<f8", ">f4"]), 4),
    st.floats(-1e4, 1e4, width=16),
    st.floats(-1e4, 1e4, width=16).filter(bool),
)
def test_floats_are_what_zarr_makes_of_them(array, offset, scale):
    codec = zarr.codecs.ScaleOffset(offset=offset, scale=scale)
    chain = scaled(array.dtype, offset, scale, array.shape)
    encoded = zarrs(codec, array, True)
    stored = chain.encode(array, keep_empty=True)
    assert bytes(stored) == encoded.astype(array.dtype.newbyteorder("<")).tobytes()
    decoded = zarrs(codec, encoded, False)
    assert chain.decode(stored).astype(array.dtype).tobytes() == decoded.tobytes()


@given(integer_cases())
def test_integers_are_what_zarr_makes_of_them(case):
    array, offset, scale = case
    # zarr computes in int64, which overflows unnoticed: there we are stricter.
    everything = [(int(value) - offset) * scale for value in array] + [int(value) - offset for value in array]
    if array.dtype != np.uint64 and not exact(everything, np.dtype(np.int64)):
        return
    codec = zarr.codecs.ScaleOffset(offset=offset, scale=scale)
    chain = scaled(array.dtype, offset, scale, array.shape)
    try:
        expected = zarrs(codec, array, True)
    except ValueError:
        with pytest.raises(ValueError, match="outside the range"):
            chain.encode(array, keep_empty=True)
    else:
        assert bytes(chain.encode(array, keep_empty=True)) == expected.tobytes()


def test_a_chunk_without_axes_stays_an_array():
    chain = scaled("int16", 1, 2, ())
    found = chain.decode(chain.encode(np.array(5, "i2")))
    assert isinstance(found, np.ndarray)
    assert found[()] == 5
