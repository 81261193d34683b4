"""zarr's array specs as chunkwright's, in values that compare bit for bit.

zarr says what a chunk is with an ``ArraySpec``; its data type and fill value become a
:class:`chunkwright.spec.DataType` and a :class:`chunkwright.spec.FillValue` here. A data type that keeps Python
objects other than text and bytes has no counterpart: then zarr's own pipeline has to do the work.

Dates and durations without a unit in foreign byte order are treated as the integers that they are stored as,
because NumPy swaps their bytes where it should not and does not where it should, even from one such array to
another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from zarr.core.array_spec import ArraySpec
from zarr.core.dtype import VariableLengthBytes, VariableLengthUTF8

from chunkwright.spec import ChunkSpec, DataType, FillValue, Variable

__all__ = ("chunk_spec", "copyable", "same_spec")

VARIABLE: dict[type, Variable] = {VariableLengthUTF8: "string", VariableLengthBytes: "bytes"}


def chunk_spec(spec: ArraySpec) -> ChunkSpec | None:
    """Translate an array spec.

    Parameters
    ----------
    spec
        What zarr says of a chunk. A fill value of None is the data type's default.

    Returns
    -------
    ChunkSpec or None
        None when the data type keeps Python objects that are neither text nor bytes.

    Examples
    --------
    >>> import zarr
    >>> from zarr.core.array_spec import ArrayConfig, ArraySpec
    >>> from zarr.core.buffer import default_buffer_prototype
    >>> dtype = zarr.dtype.Int16()
    >>> spec = ArraySpec((2, 3), dtype, dtype.cast_scalar(7), ArrayConfig("C", False), default_buffer_prototype())
    >>> translated = chunk_spec(spec)
    >>> translated.shape, translated.dtype.numpy.name, int(translated.fill_value.value)
    ((2, 3), 'int16', 7)
    """
    native: np.dtype[Any] = spec.dtype.to_native_dtype()
    variable = VARIABLE.get(type(spec.dtype))
    if variable is None and native.hasobject:
        return None
    if _is_miscopied(native):
        native = np.dtype(f"{native.str[0]}i8")
    dtype = DataType(native, variable)
    return ChunkSpec(spec.shape, dtype, _fill_value(spec, dtype))


def _fill_value(spec: ArraySpec, dtype: DataType) -> FillValue:
    value: Any = spec.fill_value
    is_default = value is None
    if is_default:
        value = spec.dtype.default_scalar()
    if dtype.variable:
        return FillValue(value, is_default=is_default)
    if dtype.numpy.kind == "i" and isinstance(value, np.datetime64 | np.timedelta64):
        value = value.view(np.int64)
    return FillValue(FillValue.of(dtype, value).value, is_default=is_default)


def _is_miscopied(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "mM" and not dtype.isnative and np.datetime_data(dtype)[0] == "generic"


def copyable(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that NumPy copies right.

    Parameters
    ----------
    array
        Any array.

    Returns
    -------
    NDArray
        The array, or a view of it as integers: see above.

    Examples
    --------
    >>> [copyable(np.frombuffer(bytes(16), dtype)).dtype.kind for dtype in (">M8", ">M8[s]")]
    ['i', 'M']
    """
    return array.view(f"{array.dtype.str[0]}i8") if _is_miscopied(array.dtype) else array


def same_spec(one: ArraySpec, other: ArraySpec) -> bool:
    """Compare two array specs, cheaply for the specs that zarr makes anew for each call on one array.

    Parameters
    ----------
    one, other
        The specs.

    Returns
    -------
    bool
        Whether they are equal.
    """
    if one is other:
        return True
    if one.dtype is other.dtype and one.fill_value is other.fill_value and one.config is other.config:
        return one.shape == other.shape and one.prototype == other.prototype
    return one == other
