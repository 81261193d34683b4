"""Views of arrays that the native module can take, and what it has to know of their elements.

The buffer protocol has no dates and no strings of NumPy's; so arrays cross as views of opaque elements of the same
number of bytes. Byte order is handed over as a number of bytes that are reversed together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.entries import Entries, IndexList
from chunkwright.spec import FillValue

__all__ = ("columns_of", "converted", "fill_bytes", "opaque", "ranges_of", "rows_of", "significant", "unit_between")


def opaque(array: NDArray[Any]) -> NDArray[np.void]:
    """View an array as opaque elements.

    Parameters
    ----------
    array
        Any strides; elements of at least one byte and without Python objects.

    Returns
    -------
    NDArray
        The same memory and shape, except that an array without axes gets one of length 1.

    Examples
    --------
    >>> opaque(np.array(["2000-01-01"], "M8[D]")).dtype
    dtype('V8')
    """
    view = np.asarray(array).view(np.dtype((np.void, array.dtype.itemsize)))
    return view if view.ndim else view.reshape(1)


def unit_between(one: np.dtype[Any], other: np.dtype[Any]) -> int | None:
    """Say what has to be done to the bytes of elements to get from one dtype to the other.

    Parameters
    ----------
    one, other
        The dtypes.

    Returns
    -------
    int or None
        1: nothing; more: so many bytes are reversed together; None: it takes NumPy.

    Examples
    --------
    >>> unit_between(np.dtype("<c8"), np.dtype(">c8")), unit_between(np.dtype("i4"), np.dtype("f4"))
    (4, None)
    """
    if one == other:
        return 1
    if one.names is not None or one.kind == "V" or one != other.newbyteorder():
        return None
    if one.kind == "U":
        return 4
    return one.itemsize // 2 if one.kind == "c" else one.itemsize


def fill_bytes(fill_value: FillValue, dtype: np.dtype[Any]) -> bytes:
    """Return the fill value as one element's bytes.

    Parameters
    ----------
    fill_value
        Of a data type whose elements have a fixed number of bytes.
    dtype
        The dtype, or that in another byte order.

    Returns
    -------
    bytes
        ``dtype.itemsize`` bytes.
    """
    value: NDArray[Any] = fill_value.value
    return value.astype(dtype, copy=False).tobytes()


def significant(dtype: np.dtype[Any]) -> bytes | None:
    """Mark the bytes of an element that belong to a field.

    Parameters
    ----------
    dtype
        Any dtype.

    Returns
    -------
    bytes or None
        255 where they do, 0 in padding; None when there is no padding.

    Examples
    --------
    >>> significant(np.dtype([("a", "u1"), ("b", "<u2")], align=True))
    b'\\xff\\x00\\xff\\xff'
    """
    mask = bytearray(dtype.itemsize)
    _mark(dtype, mask, 0)
    return None if all(mask) else bytes(mask)


def _mark(dtype: np.dtype[Any], mask: bytearray, begin: int) -> None:
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        for number in range(int(np.prod(shape))):
            _mark(base, mask, begin + number * base.itemsize)
    elif dtype.fields is not None:
        for field in dtype.fields.values():
            _mark(field[0], mask, begin + field[1])
    else:
        mask[begin : begin + dtype.itemsize] = b"\xff" * dtype.itemsize


def converted(source: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert an array as NumPy's assignment does, repeated elements only once.

    Parameters
    ----------
    source
        Any strides, zero ones too.
    dtype
        What its elements become.

    Returns
    -------
    NDArray
        The same shape.
    """
    once = source[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in source.strides)]
    return np.broadcast_to(once.astype(dtype), source.shape)


def rows_of(buffers: Buffers) -> tuple[Any, ...]:
    """Return the columns of encoded chunks as the native module takes them.

    Parameters
    ----------
    buffers
        One row per chunk.

    Returns
    -------
    tuple
        Owners, source, offset, length.
    """
    buffers = buffers.loaded()
    return buffers.owners, *ranges_of(buffers)


def ranges_of(buffers: Buffers) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return where encoded chunks are within their owners.

    Parameters
    ----------
    buffers
        One row per chunk.

    Returns
    -------
    tuple of NDArray
        Source, offset, length.
    """
    return _column(buffers.source), _column(buffers.offset), _column(buffers.length)


def columns_of(entries: Entries) -> tuple[Any, ...]:
    """Return the columns of entries as the native module takes them.

    Parameters
    ----------
    entries
        The entries.

    Returns
    -------
    tuple
        Six columns, the axes, and the index lists of both sides.
    """
    columns = (entries.chunk, entries.start, entries.count, entries.step, entries.out_start, entries.out_step)
    lists = [_runs(runs) for runs in entries.lists]
    out_lists = [_runs(runs) for runs in entries.out_lists]
    return tuple(map(_column, columns)), entries.axes, lists, out_lists


def _runs(runs: IndexList | None) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    return None if runs is None else (_column(runs.values), _column(runs.offsets))


def _column(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.ascontiguousarray(values, np.int64)
