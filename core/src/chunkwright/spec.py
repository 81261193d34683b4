"""What a chunk is before it is encoded: shape, data type and fill value; and how large it may be encoded.

A :class:`ChunkSpec` is threaded through a chain: each array->array codec turns the spec it is given
into the spec that the next codec sees. A :class:`Size` says what is known of a number of bytes before
any byte was read, so that hostile headers can be refused before anything is allocated.

The JSON forms of data types and fill values are in :mod:`chunkwright.dtype_json`; here they are values.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from chunkwright._bits import bits_equal

__all__ = (
    "BoundedSize",
    "ChunkSpec",
    "DataType",
    "FillValue",
    "FixedSize",
    "Size",
    "UnboundedSize",
)

Variable = Literal["string", "bytes", "object"]


@attrs.frozen
class DataType:
    """The data type of a chunk's elements.

    Parameters
    ----------
    numpy
        dtype of decoded arrays, in the byte order that decoded arrays have. Strings of variable
        length are ``object`` or ``StringDType``, everything else of variable length is ``object``.
    variable
        What an element of variable length holds, or None for elements of a fixed number of bytes.

    Examples
    --------
    >>> DataType(np.dtype("<i2")).itemsize
    2
    >>> DataType(np.dtype(object), variable="string").itemsize is None
    True
    """

    numpy: np.dtype[Any]
    variable: Variable | None = None

    @property
    def itemsize(self) -> int | None:
        """Bytes of one element, or None when elements vary in length."""
        return None if self.variable else self.numpy.itemsize


@attrs.frozen(eq=False)
class FillValue:
    """The value of elements that were never written.

    Two fill values are equal when they are the same bit for bit (fixed length) or by value
    (variable length); -0.0 differs from 0.0, and NaNs differ by payload.

    Parameters
    ----------
    value
        0-d array of the data type's dtype (fixed length), or the object itself (variable length).
    is_default
        Whether the metadata gave none (null in Zarr v2) and this is the data type's zero.

    Examples
    --------
    >>> fill = FillValue.of(DataType(np.dtype("f4")), -0.0)
    >>> fill.fills(np.array([-0.0, -0.0], "f4")), fill.fills(np.array([-0.0, 0.0], "f4"))
    (True, False)
    """

    value: Any
    is_default: bool = False

    @classmethod
    def of(cls, dtype: DataType, value: Any) -> Self:
        """Make a fill value of a data type from a Python or NumPy scalar.

        Parameters
        ----------
        dtype
            Data type of the chunk.
        value
            The scalar, or None for the data type's zero.

        Returns
        -------
        Self
            The fill value.
        """
        if value is None:
            return cls(cls.zero(dtype), is_default=True)
        if dtype.variable:
            return cls(value)
        array = np.empty((), dtype.numpy)
        array[...] = value
        array.flags.writeable = False
        return cls(array)

    @staticmethod
    def zero(dtype: DataType) -> Any:
        """Return the data type's zero: 0, False, an empty string, NaT for dates.

        Parameters
        ----------
        dtype
            Data type of the chunk.

        Returns
        -------
        Any
            A 0-d array, or an object for data types of variable length.
        """
        if dtype.variable:
            return {"string": "", "bytes": b"", "object": 0}[dtype.variable]
        array = np.zeros((), dtype.numpy)
        if dtype.numpy.kind in "mM":
            # By its bits: NumPy has deprecated to convert to dates without a unit.
            array.view(np.dtype(f"{dtype.numpy.byteorder}i8"))[...] = np.iinfo(np.int64).min
        array.flags.writeable = False
        return array

    @property
    def key(self) -> Any:
        """A hashable value that is equal exactly when the fill values are."""
        if isinstance(self.value, np.ndarray):
            return self.value.dtype.str, self.value.tobytes()
        return type(self.value).__name__, repr(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FillValue) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def fill(self, array: NDArray[Any]) -> None:
        """Set every element of an array to the fill value.

        Parameters
        ----------
        array
            Array of any shape and strides.
        """
        array[...] = self.value

    def fills(self, array: NDArray[Any]) -> bool:
        """Whether every element equals the fill value, bit for bit or (variable length) by value.

        Parameters
        ----------
        array
            Array of any shape and strides.

        Returns
        -------
        bool
            True as well when the array has no elements.
        """
        if array.size == 0:
            return True
        if isinstance(self.value, np.ndarray):
            return bits_equal(array, self.value)
        return all(_equal(item, self.value) for item in array.flat)


def _equal(item: Any, value: Any) -> bool:
    """Whether two objects are equal; arrays, which compare element by element, as a whole."""
    if isinstance(item, np.ndarray) or isinstance(value, np.ndarray):
        return type(item) is type(value) and np.array_equal(item, value)
    return bool(item == value)


@attrs.frozen
class FixedSize:
    """A size that is known exactly.

    Parameters
    ----------
    nbytes
        Number of bytes.

    Examples
    --------
    >>> FixedSize(12).nbytes
    12
    """

    nbytes: int


@attrs.frozen
class BoundedSize:
    """A size that is known not to exceed a bound.

    Parameters
    ----------
    nbytes
        Largest number of bytes.

    Examples
    --------
    >>> BoundedSize(12).nbytes
    12
    """

    nbytes: int


@attrs.frozen
class UnboundedSize:
    """A size of which nothing is known.

    Parameters
    ----------
    nbytes
        Always None.

    Examples
    --------
    >>> UnboundedSize().nbytes is None
    True
    """

    nbytes: None = None


type Size = FixedSize | BoundedSize | UnboundedSize


@attrs.frozen
class ChunkSpec:
    """Shape, data type and fill value of a chunk on one side of a codec.

    Parameters
    ----------
    shape
        Elements along each axis.
    dtype
        Data type of the elements.
    fill_value
        Value of elements that were never written.

    Examples
    --------
    >>> dtype = DataType(np.dtype("<i2"))
    >>> ChunkSpec((2, 3), dtype, FillValue.of(dtype, 0)).nbytes
    FixedSize(nbytes=12)
    """

    shape: tuple[int, ...]
    dtype: DataType
    fill_value: FillValue

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> Size:
        """Bytes of the decoded chunk, C-contiguous."""
        if self.dtype.itemsize is None:
            return UnboundedSize()
        return FixedSize(self.elements * self.dtype.itemsize)

    def full(self) -> NDArray[Any]:
        """Return a new C-contiguous array that holds nothing but the fill value.

        Returns
        -------
        NDArray
            Array of this shape and dtype.
        """
        array = np.empty(self.shape, self.dtype.numpy)
        self.fill_value.fill(array)
        return array
