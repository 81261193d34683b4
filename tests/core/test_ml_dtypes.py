"""The data types of ml_dtypes, which NumPy only knows as opaque, are encoded by value for embedders."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from chunkwright import Backend, CodecChain, ConfigurationError
from tests.support.backends import backends

NAMES = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float6_e2m3fn", "float4_e2m1fn", "int4", "uint4", "int2"]
CHECKED: list[Any] = [{"name": "bytes", "configuration": {"endian": "big"}}, "crc32c"]
TURNED: list[Any] = [
    {"name": "transpose", "configuration": {"order": [1, 0]}},
    {"name": "bytes", "configuration": {"endian": "little"}},
]


@pytest.mark.parametrize("codecs", [CHECKED, TURNED], ids=["big crc32c", "transpose"])
@pytest.mark.parametrize("backend", backends(), ids=lambda backend: backend.name)
@pytest.mark.parametrize("name", NAMES)
def test_every_value_survives(name: str, backend: Backend, codecs: list[Any]) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    values = (np.arange(16) % 3).reshape(4, 4).astype(dtype)
    prepared = CodecChain.from_json(codecs).bind(dtype, np.array(1, dtype)).prepare((4, 4), backends=[backend])
    encoded = prepared.encode(values)
    assert encoded is not None
    found = prepared.decode(encoded)
    assert found.dtype == dtype
    assert found.tobytes() == values.tobytes()
    part = np.zeros((2, 3), dtype)
    prepared.decode_into(encoded, part, selection=(slice(1, 3), slice(0, 3)))
    assert part.tobytes() == np.ascontiguousarray(values[1:3, :3]).tobytes()


@pytest.mark.parametrize("backend", backends(), ids=lambda backend: backend.name)
def test_byte_order_and_fill_value_are_those_of_the_type(backend: Backend) -> None:
    dtype = np.dtype(ml_dtypes.bfloat16)
    one = np.array(1, dtype)
    prepared = CodecChain.from_json(CHECKED[:1]).bind(dtype, one).prepare((2,), backends=[backend])
    assert bytes(prepared.encode(np.array([1, 2], dtype)) or b"") == b"\x3f\x80\x40\x00"
    assert prepared.encode(np.array([1, 1], dtype)) is None
    assert prepared.decode_many([None]) == [None]


@pytest.mark.parametrize("name", ["complex32", "bcomplex32"])
def test_complex_numbers_that_numpy_would_turn_as_a_whole_are_refused_in_the_other_byte_order(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    record = np.dtype([("a", "<i4"), ("b", dtype)])
    for refused in (dtype, record):
        with pytest.raises(ConfigurationError, match="cannot turn"):
            CodecChain.from_json(CHECKED[:1]).bind(refused, np.zeros((), refused))


@pytest.mark.parametrize("backend", backends(), ids=lambda backend: backend.name)
@pytest.mark.parametrize("name", ["complex32", "bcomplex32"])
def test_complex_numbers_survive_in_their_own_byte_order(name: str, backend: Backend) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    values = np.array([1 + 2j, 3, -4j], dtype)
    bound = CodecChain.from_json([{"name": "bytes", "configuration": {"endian": "little"}}]).bind(dtype, values[1])
    prepared = bound.prepare((3,), backends=[backend])
    encoded = prepared.encode(values)
    assert bytes(encoded or b"") == values.tobytes()
    assert prepared.decode(values.tobytes()).tobytes() == values.tobytes()
