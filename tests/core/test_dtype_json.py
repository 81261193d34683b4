"""Data types and fill values in JSON, compared with zarr's reading of the same JSON."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zarr.core.dtype import get_data_type_from_json

from chunkwright.dtype_json import cast_fill_value, dtype_from_json, fill_value_from_json
from chunkwright.errors import ConfigurationError
from chunkwright.spec import DataType, FillValue
from tests.core.zarr_dtypes import ALL, COMPLEX, FIXED, FLOATS, INTEGERS, TIMES, struct

pytestmark = pytest.mark.filterwarnings("ignore:The data type", "ignore:The 'generic' unit:DeprecationWarning")

FILLS: list[Any] = [
    *[0, 1, -1, True, 300, 2**31, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1],
    *[0.0, -0.0, 1.5, 2.0, 1e300, "NaN", "Infinity", "-Infinity", "nan", "5", "1.5", "-3", "NaT"],
    *[
        "0x3f000000",
        "0x7fc00001",
        "0x80000000",
        "0xfff8000000000001",
        "0x7e00",
        "0x1",
        "0xzz",
        "",
        "a",
        "abcd",
        "zażółć",
    ],
    *["AAE=", "AAEC", "AAECAwQ=", "AAECAwQFBgcICQ==", "A"],
    *[[1, 2], [0.0, -0.0], ["NaN", "-Infinity"], ["0x7fc00001", 1], [1], [1, 2, 3], ["a", 0]],
    *[{}, {"a": 1}, {"a": 2.5, "b": ["NaN", 1]}, {"a": 5, "b": {"t": 7, "s": "YQ=="}}, {"a": "x"}],
]

# The byte order of a record in Zarr v3 is nowhere in its metadata, so zarr and we read and write the machine's.
V2_NAMES = [
    *["|b1", "|i1", "|u1", "<i1", ">u1", "<b1", "|S5", "|V3", "<V3", "<U3", ">U3"],
    *[
        f"{order}{kind}"
        for order in "<>"
        for kind in ("i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
    ],
    *["<M8[ns]", ">M8[10s]", "<m8[Y]", ">m8[us]", "<M8"],
]
V2_RECORDS: list[Any] = [
    [["a", "<i2"], ["b", ">f4"]],
    [["a", "|S2"], ["b", [["c", ">i4"], ["d", "<M8[s]"]]]],
]


def ours(value: Any, dtype: DataType, zarr_format: int) -> FillValue | ConfigurationError:
    """Return our reading of a fill value, or our error."""
    try:
        return fill_value_from_json(value, dtype, zarr_format=zarr_format)
    except ConfigurationError as error:
        return error


def theirs(value: Any, dtype: Any, zarr_format: int) -> Any:
    """Return zarr's reading of a fill value, or its error."""
    try:
        with np.errstate(all="ignore"):
            return dtype.from_json_scalar(value, zarr_format=zarr_format)
    except (IndexError, TypeError, ValueError, OverflowError) as error:
        return error


def differs_on_purpose(value: Any, dtype: DataType) -> bool:
    """Whether we and zarr are known to disagree."""
    kind = dtype.numpy.kind
    if kind == "b":
        return not isinstance(value, bool | int | float)  # zarr takes Python's truth of anything, a list included
    if kind == "c":
        return isinstance(value, int | float)  # what earlier writers left, and zarr refuses
    return kind == "V" and isinstance(value, list)  # lists of bytes, as the specification has them


def compare(value: Any, document: Any, zarr_format: int, object_codec: str | None = None) -> None:
    """Both readings of a fill value are errors, or have the same bits."""
    spec = {"name": document, "object_codec_id": object_codec} if zarr_format == 2 else document
    expected_type = get_data_type_from_json(spec, zarr_format=zarr_format)
    dtype = dtype_from_json(document, zarr_format=zarr_format, object_codec=object_codec)
    if differs_on_purpose(value, dtype):
        return
    found, expected = ours(value, dtype, zarr_format), theirs(value, expected_type, zarr_format)
    if isinstance(expected, Exception):
        assert isinstance(found, ConfigurationError), f"zarr: {expected!r}"
        return
    if isinstance(found, ConfigurationError) and "do not fill an element" in str(found):
        return  # zarr takes any number of bytes for an element
    assert isinstance(found, FillValue), f"zarr: {expected!r}"
    if dtype.variable:
        assert (type(found.value), found.value) == (type(expected), expected)
        return
    assert found.value.dtype == dtype.numpy
    assert bits(found.value) == bits(in_array(expected, dtype.numpy))


def in_array(scalar: Any, dtype: np.dtype[Any]) -> Any:
    """Put zarr's scalar into an array, except for dates, which NumPy cannot assign when they have no unit."""
    if dtype.kind in "mM":
        return scalar
    array = np.empty((), dtype)
    array[...] = scalar
    return array


def bits(value: Any) -> Any:
    """Return the bytes of a value, of dates the integer."""
    if value.dtype.kind in "mM":
        return int(value.view(f"{value.dtype.byteorder}i8"))
    return value.tobytes()


def shortly(document: Any) -> str:
    """Name a test case that may be long."""
    return str(document)[:60]


class TestDataTypes:
    @pytest.mark.parametrize("document", ALL, ids=str)
    def test_v3_data_types_are_those_that_zarr_reads(self, document: Any) -> None:
        expected = get_data_type_from_json(document, zarr_format=3).to_native_dtype()
        found = dtype_from_json(document)
        assert found.numpy == expected
        assert found.variable == {"string": "string", "bytes": "bytes", "variable_length_bytes": "bytes"}.get(
            str(document)
        )

    @pytest.mark.parametrize("document", [*V2_NAMES, *V2_RECORDS], ids=str)
    def test_v2_data_types_are_those_that_zarr_reads(self, document: Any) -> None:
        expected = get_data_type_from_json({"name": document, "object_codec_id": None}, zarr_format=2)
        found = dtype_from_json(document, zarr_format=2)
        assert found.numpy == expected.to_native_dtype()
        assert found.numpy.str == expected.to_native_dtype().str
        assert found.variable is None

    @pytest.mark.parametrize(
        ("object_codec", "holds"),
        [
            ("vlen-utf8", "string"),
            ("vlen-bytes", "bytes"),
            ("json2", "object"),
            ("pickle", "object"),
            ("vlen-array", "object"),
        ],
    )
    def test_objects_are_what_their_filter_encodes(self, object_codec: str, holds: str) -> None:
        assert dtype_from_json("|O", zarr_format=2, object_codec=object_codec).variable == holds

    def test_raw_bits_are_bytes(self) -> None:
        assert dtype_from_json("r24").numpy == np.dtype("V3")

    @pytest.mark.parametrize(
        "document",
        [
            *[
                "int7",
                "r7",
                "r0",
                "int32 ",
                "",
                5,
                None,
                [],
                ["int8"],
                {},
                {"name": 5},
                {"name": "int8", "configuration": 1},
            ],
            {"name": "int8", "configuration": {"endian": "big"}},
            {"name": "fixed_length_utf32", "configuration": {}},
            {"name": "fixed_length_utf32", "configuration": {"length_bytes": 3}},
            {"name": "null_terminated_bytes", "configuration": {"length_bytes": 0}},
            {"name": "null_terminated_bytes", "configuration": {"length_bytes": -1}},
            {"name": "raw_bytes", "configuration": {"length_bytes": True}},
            {"name": "raw_bytes", "configuration": {"length_bytes": 2**40}},
            {"name": "numpy.datetime64", "configuration": {"unit": "s"}},
            {"name": "numpy.datetime64", "configuration": {"unit": "eon", "scale_factor": 1}},
            {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 0}},
            {"name": "numpy.timedelta64", "configuration": {"unit": "s", "scale_factor": 2**31}},
            {"name": "struct", "configuration": {}},
            {"name": "struct", "configuration": {"fields": []}},
            {"name": "struct", "configuration": {"fields": [7]}},
            {"name": "struct", "configuration": {"fields": [["a", "int8"], ["a", "int8"]]}},
            {"name": "struct", "configuration": {"fields": [["a", "string"]]}},
            struct(a="int7"),
            "r" + "9" * 5000,
            "r99999999992",
            {"name": "raw_bytes", "configuration": {"length_bytes": 10**4000}},
        ],
        ids=shortly,
    )
    def test_what_is_no_v3_data_type_is_an_error(self, document: Any) -> None:
        with pytest.raises(ConfigurationError):
            dtype_from_json(document)

    def test_records_in_records_in_records_without_end_are_an_error(self) -> None:
        document: Any = "int8"
        for _ in range(3000):
            document = struct(a=document)
        with pytest.raises(ConfigurationError, match="nested too deeply"):
            dtype_from_json(document)

    @pytest.mark.parametrize(
        "document",
        [
            "|i4",
            "i4",
            "<f16",
            "<i3",
            "|S0",
            "|O",
            "<M8[eon]",
            "<M8[]",
            "int32",
            "=i4",
            5,
            None,
            [],
            [["a", "<i4", [2]]],
            [[1, "<i4"]],
            "|S" + "9" * 5000,
            "<U999999999999",
            "<M8[2147483648s]",
        ],
        ids=shortly,
    )
    def test_what_is_no_v2_data_type_is_an_error(self, document: Any) -> None:
        with pytest.raises(ConfigurationError):
            dtype_from_json(document, zarr_format=2)


class TestFillValues:
    @pytest.mark.parametrize("document", ALL, ids=str)
    def test_v3_fill_values_are_those_that_zarr_reads(self, document: Any) -> None:
        for value in FILLS:
            compare(value, document, 3)

    @pytest.mark.parametrize("document", [*V2_NAMES, *V2_RECORDS], ids=str)
    def test_v2_fill_values_are_those_that_zarr_reads(self, document: Any) -> None:
        for value in FILLS:
            compare(value, document, 2)

    @pytest.mark.parametrize("object_codec", ["vlen-utf8", "vlen-bytes"])
    def test_fill_values_of_objects_are_those_that_zarr_reads(self, object_codec: str) -> None:
        for value in FILLS:
            compare(value, "|O", 2, object_codec)

    @pytest.mark.parametrize("document", FIXED, ids=str)
    def test_null_is_the_zero_of_the_data_type(self, document: Any) -> None:
        expected = get_data_type_from_json(document, zarr_format=3).default_scalar()
        dtype = dtype_from_json(document)
        fill = fill_value_from_json(None, dtype)
        assert fill.is_default
        assert fill.value.tobytes() == np.asarray(expected, dtype.numpy).tobytes()

    def test_objects_of_any_kind_are_filled_with_what_the_metadata_has(self) -> None:
        dtype = dtype_from_json("|O", zarr_format=2, object_codec="json2")
        assert fill_value_from_json(["a"], dtype, zarr_format=2).value == ["a"]
        assert fill_value_from_json(None, dtype, zarr_format=2).value == 0

    @pytest.mark.parametrize(
        ("document", "text"),
        [
            ("float16", "0x7c01"),
            ("float32", "0x7f800001"),
            ("float64", "0x7ff0000000000001"),
            ("float32", "0xffffffff"),
        ],
    )
    def test_hexadecimal_digits_are_bits_also_of_signalling_nans(self, document: str, text: str) -> None:
        fill = fill_value_from_json(text, dtype_from_json(document)).value
        assert fill.astype(fill.dtype.newbyteorder(">")).tobytes().hex() == text[2:]

    def test_hexadecimal_digits_are_not_known_to_v2(self) -> None:
        with pytest.raises(ConfigurationError, match="'0x7fc00000' is not a number"):
            fill_value_from_json("0x7fc00000", DataType(np.dtype("f4")), zarr_format=2)

    @pytest.mark.parametrize("value", ["false", [], {}])
    def test_a_boolean_is_no_text_and_no_container(self, value: Any) -> None:
        with pytest.raises(ConfigurationError, match="is not a Boolean"):
            fill_value_from_json(value, DataType(np.dtype(bool)))

    def test_a_real_number_is_a_complex_one(self) -> None:
        assert fill_value_from_json(-0.0, DataType(np.dtype(">c8"))).value.tobytes().hex() == "8000000000000000"

    @pytest.mark.parametrize(("value", "expected"), [([1, 2, 255], b"\x01\x02\xff"), ("AQL/", b"\x01\x02\xff")])
    def test_opaque_bytes_are_a_list_or_base64(self, value: Any, expected: bytes) -> None:
        assert fill_value_from_json(value, DataType(np.dtype("V3"))).value.tobytes() == expected

    @pytest.mark.parametrize("value", [[1, 2], [1, 2, 256], [1, 2, "a"], "AQI=", "AQIDBA==", 7, "A"])
    def test_opaque_bytes_must_fill_an_element(self, value: Any) -> None:
        with pytest.raises(ConfigurationError, match=r"as a fill value of \|V3"):
            fill_value_from_json(value, DataType(np.dtype("V3")))

    def test_the_bytes_of_a_record_are_little_endian_in_v3_alone(self) -> None:
        dtype = DataType(np.dtype([("a", ">i2"), ("b", "|S1")]))
        assert fill_value_from_json("AQB4", dtype, zarr_format=3).value.tolist() == (1, b"x")
        assert fill_value_from_json("AAF4", dtype, zarr_format=2).value.tolist() == (1, b"x")

    def test_values_cannot_be_changed(self) -> None:
        fill = fill_value_from_json(1, DataType(np.dtype("i2")))
        with pytest.raises(ValueError, match="read-only"):
            fill.value[...] = 2

    @settings(deadline=None)
    @given(bits=st.integers(0, 2**64 - 1), document=st.sampled_from(FLOATS))
    def test_every_bit_pattern_of_a_float_can_be_written(self, bits: int, document: str) -> None:
        dtype = dtype_from_json(document)
        width = dtype.numpy.itemsize * 2
        digits = f"{bits:016x}"[:width]
        stored = fill_value_from_json(f"0x{digits}", dtype).value
        assert stored.astype(dtype.numpy.newbyteorder(">")).tobytes().hex() == digits

    @settings(deadline=None)
    @given(
        value=st.integers(-(2**65), 2**65) | st.floats(),
        document=st.sampled_from([*INTEGERS, *FLOATS, *COMPLEX, *TIMES[:3]]),
    )
    def test_any_number_is_read_as_zarr_reads_it(self, value: Any, document: Any) -> None:
        if isinstance(value, float) and not math.isfinite(value):
            value = str(value)
        compare(value, document, 3)


class TestCasting:
    def test_a_value_keeps_its_value(self) -> None:
        cast = cast_fill_value(FillValue.of(DataType(np.dtype("<i4")), 5), DataType(np.dtype(">f4")))
        assert cast.value.dtype == np.dtype(">f4")
        assert float(cast.value) == 5.0

    @pytest.mark.parametrize(
        ("value", "dtype"), [(np.float32("nan"), "i4"), (np.int32(300), "u1"), (np.float64(1e300), "f4")]
    )
    def test_what_does_not_fit_is_no_error_and_no_warning(self, value: Any, dtype: str) -> None:
        fill = FillValue.of(DataType(value.dtype), value)
        assert cast_fill_value(fill, DataType(np.dtype(dtype))).value.dtype == np.dtype(dtype)

    def test_what_cannot_be_converted_is_zero(self) -> None:
        fill = FillValue.of(DataType(np.dtype("<U3")), "abc")
        assert cast_fill_value(fill, DataType(np.dtype("i4"))).value == 0
        assert cast_fill_value(FillValue("a"), DataType(np.dtype("u1"))).value == 0

    def test_zero_by_default_stays_so(self) -> None:
        fill = FillValue.of(DataType(np.dtype("i4")), None)
        assert cast_fill_value(fill, DataType(np.dtype("f4"))).is_default
