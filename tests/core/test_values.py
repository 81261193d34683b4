"""Specs, fill values, buffers and errors are values with exact rules."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from chunkwright import errors
from chunkwright._bits import bits_equal
from chunkwright.buffers import Buffers
from chunkwright.entries import IndexList
from chunkwright.spec import ChunkSpec, DataType, FillValue, FixedSize, UnboundedSize

PADDED = np.dtype([("x", "u1"), ("y", "<f8")], align=True)


def fill(dtype: Any, value: Any) -> FillValue:
    return FillValue.of(DataType(np.dtype(dtype)), value)


@pytest.mark.parametrize(
    ("dtype", "value", "other"),
    [
        ("f8", -0.0, 0.0),
        ("f4", 0.0, -0.0),
        ("f2", np.nan, 1),
        ("c16", complex(0.0, -0.0), complex(0.0, 0.0)),
        ("c8", complex(np.nan, 1), complex(np.nan, 2)),
        ("M8[s]", "NaT", "2020-01-01"),
        ("m8[ns]", 5, 6),
        ("S3", b"ab", b"abc"),
        ("U2", "é", "e"),
        ("V3", b"abc", b"abd"),
        ("?", True, False),
        (">i4", 258, 1),
        ("f16", 1.5, 2.5),
        ([("a", "f4"), ("b", "S2")], (-0.0, b"x"), (0.0, b"x")),
    ],
)
def test_a_fill_value_is_compared_bit_for_bit(dtype: Any, value: Any, other: Any) -> None:
    mine, theirs = fill(dtype, value), fill(dtype, other)
    array = np.empty((3, 4), dtype)
    mine.fill(array)
    assert mine.fills(array)
    assert mine.fills(array[::-1, ::2])
    assert mine.fills(array[:0])
    assert mine.fills(array[0, 0:1].reshape(()))
    assert not theirs.fills(array)
    array[2, 3] = theirs.value
    assert not mine.fills(array)
    assert mine == fill(dtype, value)
    assert mine != theirs
    assert hash(mine) == hash(fill(dtype, value))


def test_nan_payloads_differ() -> None:
    quiet = np.array(0x7FF8000000000001, "u8").view("f8")
    assert not fill("f8", np.nan).fills(np.full(3, quiet))


def test_padding_of_records_is_ignored() -> None:
    array = np.frombuffer(bytes(range(48)), PADDED).copy()
    array["x"], array["y"] = 1, 2.0
    assert fill(PADDED, (1, 2.0)).fills(array)


def test_a_fill_value_in_another_byte_order_is_the_same() -> None:
    assert fill("<i4", 258).fills(np.full(3, 258, ">i4"))
    assert bits_equal(np.full(2, 1.5, ">f8"), np.array(1.5))


@pytest.mark.parametrize(("kind", "value", "other"), [("string", "a", "b"), ("bytes", b"a", b""), ("object", 0, 1)])
def test_fill_values_of_variable_length_are_compared_by_value(kind: Any, value: Any, other: Any) -> None:
    dtype = DataType(np.dtype(object), variable=kind)
    mine = FillValue.of(dtype, value)
    array = np.array([value, value], object)
    assert mine.fills(array)
    array[1] = other
    assert not mine.fills(array)
    assert mine == FillValue.of(dtype, value)
    assert mine != FillValue.of(dtype, other)


def test_no_fill_value_is_the_zero_of_the_data_type() -> None:
    assert fill("i2", None).value == 0
    assert fill("i2", None).is_default
    assert np.isnat(fill("M8[D]", None).value)
    assert FillValue.of(DataType(np.dtype(object), variable="string"), None).value == ""


def test_a_fill_value_is_not_a_view_of_the_callers_array() -> None:
    value = fill("i2", 3)
    with pytest.raises(ValueError, match="read-only"):
        value.value[...] = 4


def test_a_spec_knows_its_size_when_elements_are_fixed() -> None:
    dtype = DataType(np.dtype("i4"))
    spec = ChunkSpec((2, 3), dtype, FillValue.of(dtype, 7))
    assert (spec.ndim, spec.elements, spec.nbytes) == (2, 6, FixedSize(24))
    assert spec.full().tolist() == [[7] * 3] * 2
    text = DataType(np.dtype(object), variable="string")
    assert isinstance(ChunkSpec((2,), text, FillValue.of(text, "")).nbytes, UnboundedSize)


def test_buffers_are_rows_over_owners() -> None:
    rows = Buffers.concatenate(
        [Buffers.of([b"abc", None]), Buffers.within(b"wxyz", np.array([1, -1]), np.array([2, 0]))]
    )
    assert [view and bytes(view) for view in rows.views()] == [b"abc", None, b"xy", None]
    assert [view and bytes(view) for view in rows.take(np.array([2, 0])).views()] == [b"xy", b"abc"]
    assert rows.missing.tolist() == [False, True, False, True]
    assert rows.nbytes == 5
    assert bytes(rows.view(2) or b"") == b"xy"
    assert rows.view(1) is None


def test_buffers_take_any_contiguous_object() -> None:
    rows = Buffers.of([np.arange(3, dtype="<u2"), bytearray(b"x"), memoryview(b"yz")])
    assert rows.length.tolist() == [6, 1, 2]


def test_runs_of_an_index_list_can_be_selected() -> None:
    runs = IndexList.of([np.array([4, 0]), np.array([], int), np.array([7])])
    again = runs.take(np.array([2, 0]))
    assert (again.values.tolist(), again.offsets.tolist()) == ([7, 4, 0], [0, 1, 3])
    assert IndexList.of([]).values.size == 0


@pytest.mark.parametrize("name", errors.__all__)
def test_errors_pickle_with_all_that_they_know(name: str) -> None:
    if name == "Problem":
        return
    error = getattr(errors, name)("what", codec="zstd", expected=1, found=2).with_key("c/0").at(3)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.codec, again.key, again.position) == (str(error), "zstd", "c/0", 3)
    assert str(error).startswith("zstd: what: expected 1, found 2 (chunk 'c/0')")


def test_the_first_key_that_an_error_gets_stays() -> None:
    assert errors.ChecksumError("x").with_key("a").with_key("b").key == "a"


def test_an_error_tells_only_what_it_knows() -> None:
    assert str(errors.PlanError("what", found=0)) == "what: found 0"
    assert str(errors.PlanError("what", expected=1)) == "what: expected 1"
    assert str(errors.PlanError("what")) == "what"


def test_errors_are_also_what_callers_already_catch() -> None:
    assert issubclass(errors.ShardIndexError, ValueError)
    assert issubclass(errors.ChecksumError, RuntimeError)
    assert issubclass(errors.SelectionError, IndexError)
    assert issubclass(errors.BackendUnavailableError, ImportError)
    assert issubclass(errors.UnsupportedCodecError, errors.ConfigurationError)


def test_a_missing_backend_says_how_to_get_it() -> None:
    error = errors.BackendUnavailableError("not installed", backend="rust", hint="pip install it")
    assert str(error) == "not installed; pip install it"
    assert pickle.loads(pickle.dumps(error)).backend == "rust"


def test_problems_are_listed_with_their_places() -> None:
    problems = (errors.Problem(("codecs", 0), "no"), errors.Problem((), "never"))
    error = errors.ConfigurationError(problems=problems)
    assert str(error) == "codecs[0]: no; never"
    assert pickle.loads(pickle.dumps(error)).problems == problems
    assert hash(problems[0]) == hash(errors.Problem(("codecs", 0), "no"))
