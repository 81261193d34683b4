"""Data types and fill values as Zarr writes them in JSON, turned into values.

``dtype_from_json`` reads the data types of Zarr v3 (names, and objects with a configuration) and of Zarr v2 (NumPy
type strings, nested lists for records, ``|O`` with the id of the filter that says what the objects are).
``fill_value_from_json`` reads what may stand as the fill value of such a data type; only a few forms differ between
the two versions. Null, which only Zarr v2 knows, is the data type's zero.

Data types of Zarr v3 have no byte order: decoded arrays have the machine's. Nothing here writes JSON.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from chunkwright._fill_json import UnfitValueError, scalar_from_json
from chunkwright.errors import ConfigurationError
from chunkwright.spec import DataType, FillValue, Variable

__all__ = ("cast_fill_value", "dtype_from_json", "fill_value_from_json")

_PLAIN = {
    "bool": "?",
    **{f"{sign}int{bits}": f"{sign or ''}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{name: name for name in ("float16", "float32", "float64", "complex64", "complex128")},
}

_VARIABLE: dict[str, Variable] = {"string": "string", "bytes": "bytes", "variable_length_bytes": "bytes"}

_OBJECT_CODECS: dict[str, Variable] = {
    "vlen-utf8": "string",
    "vlen-bytes": "bytes",
    "vlen-array": "object",
    "pickle": "object",
    "json2": "object",
    "msgpack2": "object",
}

_UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as", "generic")

# NumPy itself takes far more spellings, among them types that no Zarr implementation stores.
_V2_NAMES = re.compile(
    r"[<>|](b1|i1|u1|S[0-9]+|V[0-9]+)|[<>](i[248]|u[248]|f[248]|c8|c16|U[0-9]+|[mM]8(\[[0-9]*[a-zμ]+\])?)", re.I
)


def dtype_from_json(document: Any, *, zarr_format: int = 3, object_codec: str | None = None) -> DataType:
    """Read a data type.

    Parameters
    ----------
    document
        What stands for the data type in array metadata.
    zarr_format
        Version of the metadata, 2 or 3.
    object_codec
        For ``|O`` in Zarr v2: id of the filter that encodes the objects.

    Returns
    -------
    DataType
        Strings have NumPy's ``StringDType``.

    Raises
    ------
    ConfigurationError
        When it is none that Zarr stores.

    Examples
    --------
    >>> dtype_from_json({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 10}}).numpy
    dtype('<M8[10s]')
    >>> dtype_from_json([["a", "<i2"], ["b", "|S3"]], zarr_format=2).numpy
    dtype([('a', '<i2'), ('b', 'S3')])
    """
    try:
        if zarr_format == 2:
            return _variable(_OBJECT_CODECS.get(object_codec or "")) if document == "|O" else DataType(_v2(document))
        if isinstance(document, str) and document in _VARIABLE:
            return _variable(_VARIABLE[document])
        return DataType(_v3(document))
    except UnfitValueError as error:
        raise ConfigurationError(str(error)) from None
    except RecursionError:
        raise ConfigurationError("a data type is nested too deeply") from None


def _variable(holds: Variable | None) -> DataType:
    if holds is None:
        raise UnfitValueError("no filter says what the objects are")
    return DataType(np.dtypes.StringDType() if holds == "string" else np.dtype(object), holds)


def _v2(document: Any) -> np.dtype[Any]:
    if isinstance(document, list | tuple):
        pairs = [item for item in document if isinstance(item, list | tuple) and len(item) == 2]
        if len(pairs) != len(document):
            raise UnfitValueError(f"fields must be pairs of a name and a data type, not {document!r}")
        return _record([(name, _v2(field)) for name, field in pairs])
    if not isinstance(document, str) or not _V2_NAMES.fullmatch(document):
        raise UnfitValueError(f"unknown data type {document!r}")
    return _numpy(document)


def _v3(document: Any) -> np.dtype[Any]:
    name, configuration = _named(document)
    if name in _PLAIN and not configuration:
        return np.dtype(_PLAIN[name])
    if re.fullmatch(r"r[0-9]{1,10}", name) and not configuration:
        return _raw(name)
    make = _CONFIGURED.get(name)
    if make is None:
        raise UnfitValueError(f"unknown data type {document!r}")
    return make(configuration)


def _named(document: Any) -> tuple[str, Mapping[str, Any]]:
    if isinstance(document, str):
        return document, {}
    if isinstance(document, Mapping) and isinstance(document.get("name"), str):
        configuration = document.get("configuration", {})
        if isinstance(configuration, Mapping):
            return document["name"], configuration
    raise UnfitValueError(f"unknown data type {document!r}")


def _numpy(text: str) -> np.dtype[Any]:
    try:
        dtype = np.dtype(text)
    except (TypeError, ValueError, OverflowError) as error:
        raise UnfitValueError(f"unknown data type {text!r} ({error})") from None
    if dtype.itemsize == 0:
        raise UnfitValueError(f"elements of {text!r} have no bytes")
    return dtype


def _raw(name: str) -> np.dtype[Any]:
    bits = int(name[1:])
    if bits % 8:
        raise UnfitValueError(f"data type {name!r} is not a whole number of bytes")
    return _numpy(f"V{bits // 8}")


def _record(fields: list[tuple[Any, np.dtype[Any]]]) -> np.dtype[Any]:
    names = [name for name, _ in fields]
    if not fields or not all(isinstance(name, str) and name for name in names) or len(set(names)) != len(names):
        raise UnfitValueError(f"a record needs fields with different names, not {names!r}")
    return np.dtype(fields)


def _length(configuration: Mapping[str, Any]) -> int:
    length = configuration.get("length_bytes")
    if set(configuration) != {"length_bytes"} or not isinstance(length, int) or isinstance(length, bool) or length < 0:
        raise UnfitValueError(f"configuration must have 'length_bytes', not {dict(configuration)!r}")
    return length


def _time(kind: str, configuration: Mapping[str, Any]) -> np.dtype[Any]:
    if set(configuration) != {"unit", "scale_factor"}:
        raise UnfitValueError(f"configuration must have 'unit' and 'scale_factor', not {dict(configuration)!r}")
    unit, scale = configuration["unit"], configuration["scale_factor"]
    if unit not in _UNITS:
        raise UnfitValueError(f"unknown unit {unit!r}")
    if not isinstance(scale, int) or isinstance(scale, bool) or not 0 < scale < 2**31:
        raise UnfitValueError(f"scale_factor must be between 1 and 2147483647, not {scale!r}")
    return np.dtype(f"{kind}[{scale}{'us' if unit == 'μs' else unit}]")


def _struct(configuration: Mapping[str, Any]) -> np.dtype[Any]:
    fields = configuration.get("fields")
    if set(configuration) != {"fields"} or not isinstance(fields, list | tuple):
        raise UnfitValueError(f"configuration must have a list 'fields', not {dict(configuration)!r}")
    return _record([_field(field) for field in fields])


def _field(field: Any) -> tuple[Any, np.dtype[Any]]:
    """Read a field as an object, or as the pair that early metadata has."""
    if isinstance(field, Mapping) and {"name", "data_type"} <= set(field):
        return field["name"], _v3(field["data_type"])
    if isinstance(field, list | tuple) and len(field) == 2:
        return field[0], _v3(field[1])
    raise UnfitValueError(f"a field must have a name and a data type, not {field!r}")


_CONFIGURED = {
    "fixed_length_utf32": lambda configuration: _numpy(f"U{_length(configuration) // 4}"),
    "null_terminated_bytes": lambda configuration: _numpy(f"S{_length(configuration)}"),
    "raw_bytes": lambda configuration: _numpy(f"V{_length(configuration)}"),
    "numpy.datetime64": lambda configuration: _time("datetime64", configuration),
    "numpy.timedelta64": lambda configuration: _time("timedelta64", configuration),
    "struct": _struct,
    "structured": _struct,
}


def fill_value_from_json(value: Any, dtype: DataType, *, zarr_format: int = 3) -> FillValue:
    """Read a fill value.

    Parameters
    ----------
    value
        What stands for the fill value in array metadata.
    dtype
        Data type of the array.
    zarr_format
        Version of the metadata, 2 or 3.

    Returns
    -------
    FillValue
        Null is the data type's zero.

    Raises
    ------
    ConfigurationError
        When the data type has no such value.

    Examples
    --------
    >>> fill_value_from_json("0x7fc00001", DataType(np.dtype("f4"))).value.tobytes()[::-1].hex()
    '7fc00001'
    >>> fill_value_from_json("AQI=", DataType(np.dtype("S4"))).value
    array(b'\\x01\\x02', dtype='|S4')
    """
    if value is None:
        return FillValue.of(dtype, None)
    try:
        scalar = scalar_from_json(value, dtype, zarr_format)
    except UnfitValueError as error:
        raise ConfigurationError(f"{error} as a fill value of {dtype.variable or dtype.numpy}") from None
    if isinstance(scalar, np.ndarray):
        scalar.flags.writeable = False
    return FillValue(scalar)


def cast_fill_value(fill_value: FillValue, dtype: DataType) -> FillValue:
    """Return the same value in another data type, as NumPy converts it.

    Parameters
    ----------
    fill_value
        The fill value.
    dtype
        Its new data type, of a fixed number of bytes.

    Returns
    -------
    FillValue
        The value; what has no equivalent there is whatever NumPy makes of it, or 0.
    """
    try:
        with np.errstate(all="ignore"):
            value = np.asarray(fill_value.value).astype(dtype.numpy)
    except (TypeError, ValueError, OverflowError):
        value = FillValue.zero(dtype)
    value.flags.writeable = False
    return FillValue(value, fill_value.is_default)
