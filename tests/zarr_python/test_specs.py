"""What zarr says of a chunk is translated bit for bit."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.dtype import VariableLengthBytes, VariableLengthUTF8

from chunkwright_zarr.specs import chunk_spec, same_spec
from tests.zarr_python.specs import spec_of

NUMPY = ["?", "i1", "<i4", ">i4", "u8", "f2", "f4", ">f8", "c8", "c16", "S5", "U3", "V7", "M8[ns]", "m8[10us]"]


@pytest.mark.parametrize("dtype", NUMPY)
def test_fixed_length_data_types_keep_their_numpy_dtype(dtype: str) -> None:
    translated = chunk_spec(spec_of((2, 3), dtype, None))
    assert translated is not None
    assert translated.shape == (2, 3)
    assert translated.dtype.numpy == np.dtype(dtype)
    assert translated.dtype.variable is None


@pytest.mark.parametrize(("dtype", "variable"), [(VariableLengthUTF8(), "string"), (VariableLengthBytes(), "bytes")])
def test_text_and_bytes_of_variable_length_are_known(dtype: Any, variable: str) -> None:
    translated = chunk_spec(spec_of((2,), dtype, None))
    assert translated is not None
    assert translated.dtype.variable == variable
    assert translated.fill_value.is_default


def test_a_missing_fill_value_is_the_default_of_the_data_type() -> None:
    translated = chunk_spec(spec_of((2,), "M8[s]", None))
    assert translated is not None
    assert np.isnat(translated.fill_value.value)
    assert translated.fill_value.is_default


@pytest.mark.parametrize("bits", [0x7FC12345, 0x80000000, 0x7F812345])
def test_fill_values_keep_their_bits(bits: int) -> None:
    value = np.frombuffer(struct.pack("<I", bits), "<f4")[0]
    spec = replace(spec_of((2,), "f4"), fill_value=value)
    translated = chunk_spec(spec)
    assert translated is not None
    assert translated.fill_value.value.tobytes() == struct.pack("<I", bits)


def test_records_keep_their_fields_and_fill_value() -> None:
    dtype = np.dtype([("a", "<i2"), ("b", ">f4")])
    value = np.array((7, 1.5), dtype)[()]
    translated = chunk_spec(spec_of((2,), dtype, value))
    assert translated is not None
    assert translated.dtype.numpy == dtype
    assert translated.fill_value.value.tobytes() == value.tobytes()


def test_objects_that_are_neither_text_nor_bytes_have_no_counterpart() -> None:
    class Anything(VariableLengthBytes):
        """A user's data type: what it keeps is not known."""

    assert chunk_spec(spec_of((2,), Anything(), None)) is None


def test_equal_specs_are_the_same_and_others_are_not() -> None:
    spec = spec_of((2,), "f4", float("nan"))
    assert same_spec(spec, spec)
    assert same_spec(spec, spec_of((2,), "f4", float("nan")))
    assert same_spec(spec, replace(spec, shape=(2,)))
    for other in (
        replace(spec, shape=(3,)),
        spec_of((2,), "f4", 0),
        spec_of((2,), "f8", float("nan")),
        spec_of((2,), "f4", float("nan"), order="F"),
        replace(spec, prototype=zarr.core.buffer.BufferPrototype(spec.prototype.buffer, object)),
    ):
        assert not same_spec(spec, other)
