"""Fill values in JSON, one reader for each kind of data type.

Each reader returns a 0-d array of the data type's dtype, bit for bit what the metadata says, or the object itself
for elements of variable length. It raises :class:`UnfitValueError` when the data type has no such value.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.spec import DataType, FillValue

__all__ = ("UnfitValueError", "scalar_from_json")

_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}

_HEX_FORMATS = {4: ">e", 8: ">f", 16: ">d"}


class UnfitValueError(ValueError):
    """A JSON value is not what its place needs."""


def scalar_from_json(value: Any, dtype: DataType, zarr_format: int) -> Any:
    """Read a fill value that is not null.

    Parameters
    ----------
    value
        JSON.
    dtype
        Data type of the array.
    zarr_format
        Version of the metadata, 2 or 3.

    Returns
    -------
    Any
        A 0-d array, or an object for data types of variable length.

    Raises
    ------
    UnfitValueError
        When the data type has no such value.
    """
    if dtype.variable == "string":
        return _string(value)
    if dtype.variable == "bytes":
        return _base64(value)
    return value if dtype.variable else _fixed(value, dtype.numpy, zarr_format)


def _fixed(value: Any, dtype: np.dtype[Any], zarr_format: int) -> NDArray[Any]:
    if dtype.names is not None:
        return _record(value, dtype, zarr_format)
    return _READERS[dtype.kind](value, dtype, zarr_format)


def _string(value: Any) -> str:
    if not isinstance(value, str | int | float):
        raise UnfitValueError(f"{value!r} is not a string")
    return str(value)


def _base64(value: Any) -> bytes:
    if not isinstance(value, str):
        raise UnfitValueError(f"{value!r} is not base64 text")
    try:
        return binascii.a2b_base64(value)
    except ValueError as error:
        raise UnfitValueError(f"{value!r} is not base64 text ({error})") from None


def _array(value: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    array = np.empty((), dtype)
    try:
        with np.errstate(over="ignore"):
            array[...] = value
    except (OverflowError, TypeError, ValueError) as error:
        raise UnfitValueError(f"{value!r} does not fit ({error})") from None
    return array


def _boolean(value: Any, dtype: np.dtype[Any], zarr_format: int) -> NDArray[Any]:
    if not isinstance(value, bool | int | float):
        raise UnfitValueError(f"{value!r} is not a Boolean")
    return _array(bool(value), dtype)


def _integer(value: Any, dtype: np.dtype[Any], zarr_format: int) -> NDArray[Any]:
    """Read an integer; earlier writers left floats and strings that stand for one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    elif isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            raise UnfitValueError(f"{value!r} is not an integer") from None
    if not isinstance(value, int):
        raise UnfitValueError(f"{value!r} is not an integer")
    return _array(value, dtype)


def _float(value: Any, dtype: np.dtype[Any], zarr_format: int) -> NDArray[Any]:
    if isinstance(value, str):
        if value in _SPECIAL:
            return _array(_SPECIAL[value], dtype)
        if zarr_format == 3 and value.startswith("0x"):
            return _hex_float(value, dtype)
        try:
            return _array(float(value), dtype)
        except ValueError:
            raise UnfitValueError(f"{value!r} is not a number") from None
    if not isinstance(value, int | float):
        raise UnfitValueError(f"{value!r} is not a number")
    return _array(value, dtype)


def _hex_float(value: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Read the bits of a float; digits for another width stand for the number that they are there."""
    digits = value[2:]
    try:
        raw = bytes.fromhex(digits)
        if len(raw) == dtype.itemsize:
            return np.frombuffer(raw, dtype.newbyteorder(">")).reshape(()).astype(dtype)
        return _array(struct.unpack(_HEX_FORMATS[len(digits)], raw)[0], dtype)
    except (KeyError, ValueError, struct.error):
        raise UnfitValueError(f"{value!r} is not a number in hexadecimal digits") from None


def _complex(value: Any, dtype: np.dtype[Any], zarr_format: int) -> NDArray[Any]:
    part = np.dtype(f"{dtype.byteorder}f{dtype.itemsize // 2}")
    parts = [value, 0.0] if isinstance(value, int | float) else value
    if not isinstance(parts, list | tuple) or len(parts) != 2:
        raise UnfitValueError(f"{value!r} is not a pair of numbers")
    array = np.empty((), dtype)
    array.real = _float(parts[0], part, zarr_format)
    array.imag = _float(parts[1], part, zarr_format)
    return array


def _time(value: Any, dtype: np.dtype[Any], zarr_format: int) -> NDArray[Any]:
    if value == "NaT":
        value = -(2**63)
    if not isinstance(value, int):
        raise UnfitValueError(f"{value!r} is neither an integer nor 'NaT'")
    return _array(value, np.dtype(f"{dtype.byteorder}i8")).view(dtype)


def _text(value: Any, dtype: np.dtype[Any], zarr_format: int) -> NDArray[Any]:
    if not isinstance(value, str):
        raise UnfitValueError(f"{value!r} is not a string")
    return _array(value, dtype)


def _terminated(value: Any, dtype: np.dtype[Any], zarr_format: int) -> NDArray[Any]:
    return _array(_base64(value), dtype)


def _raw(value: Any, dtype: np.dtype[Any], zarr_format: int) -> NDArray[Any]:
    """Read opaque bytes: base64, or the list of byte values that the v3 specification has for ``r*``."""
    if isinstance(value, list | tuple):
        try:
            data = bytes(value)
        except (TypeError, ValueError):
            raise UnfitValueError(f"{value!r} is not a list of bytes") from None
    else:
        data = _base64(value)
    return _exact(data, dtype)


def _exact(data: bytes, dtype: np.dtype[Any]) -> NDArray[Any]:
    if len(data) != dtype.itemsize:
        raise UnfitValueError(f"{len(data)} bytes do not fill an element of {dtype.itemsize}")
    return np.frombuffer(data, dtype).reshape(()).copy()


def _record(value: Any, dtype: np.dtype[Any], zarr_format: int) -> NDArray[Any]:
    """Read a record: an object with a value for each field, or its bytes in base64."""
    if not isinstance(value, Mapping):
        # In v3 the byte order of an array is no part of its data type, so the bytes are little endian.
        stored = dtype if zarr_format == 2 else dtype.newbyteorder("<")
        return _exact(_base64(value), stored).astype(dtype)
    array = np.zeros((), dtype)
    for name in dtype.names or ():
        field = dtype[name]
        array[name] = _fixed(value[name], field, zarr_format) if name in value else FillValue.zero(DataType(field))
    return array


_READERS: dict[str, Callable[[Any, np.dtype[Any], int], NDArray[Any]]] = {
    "b": _boolean,
    "i": _integer,
    "u": _integer,
    "f": _float,
    "c": _complex,
    "m": _time,
    "M": _time,
    "U": _text,
    "S": _terminated,
    "V": _raw,
}
