"""The ``scale_offset`` codec: ``(x - offset) * scale``, in the arithmetic of the data type.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/scale_offset. Name:
``scale_offset``. Configuration: ``{"offset": 5, "scale": 0.1}``; 0 and 1 may be left out. Both are written like
fill values of the data type, so ``"NaN"`` and ``"0x3dcccccd"`` are allowed.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import attrs
from numpy.typing import NDArray

from chunkwright.codecs._base import ArrayArrayCodec, setting
from chunkwright.codecs._rules import number
from chunkwright.dtype_json import fill_value_from_json
from chunkwright.errors import ConfigurationError, Problem
from chunkwright.spec import DataType, FillValue

__all__ = ("ScaleOffset",)


@attrs.frozen(kw_only=True)
class ScaleOffset(ArrayArrayCodec):
    """Subtract an offset, then multiply by a scale.

    Parameters
    ----------
    offset
        What is subtracted.
    scale
        What is multiplied by, not 0.

    Examples
    --------
    >>> import numpy as np
    >>> codec = ScaleOffset(offset=5, scale="0x3dcccccd")
    >>> [float(value) for value in codec.scalars(DataType(np.dtype("f4")))]
    [5.0, 0.10000000149011612]
    """

    encodes_fill_value: ClassVar[bool] = True
    omits_defaults: ClassVar[bool] = True

    # Compared as written: 0.0 and -0.0 are equal numbers that subtract differently.
    offset: int | float | str = attrs.field(default=0, metadata=setting(number), eq=repr)
    scale: int | float | str = attrs.field(default=1, metadata=setting(number), eq=repr)

    @property
    def name(self) -> str:
        """Name in Zarr v3 metadata."""
        return "scale_offset"

    def scalars(self, dtype: DataType) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return offset and scale as values of a data type.

        Parameters
        ----------
        dtype
            Data type of the array.

        Returns
        -------
        tuple of NDArray
            Two 0-d arrays.

        Raises
        ------
        ConfigurationError
            When the data type has no such values.
        """
        offset = fill_value_from_json(self.offset, dtype).value
        return offset, fill_value_from_json(self.scale, dtype).value

    def bind(self, dtype: DataType, fill_value: FillValue) -> Self:
        """Check that the data type has such an offset and such a scale.

        Parameters
        ----------
        dtype, fill_value
            What the codec is given to encode.

        Returns
        -------
        Self
            The codec itself.

        Raises
        ------
        ConfigurationError
            When it has not, or when it is neither integer nor floating point.
        """
        if dtype.variable or dtype.numpy.kind not in "iuf":
            found = dtype.variable or dtype.numpy
            raise ConfigurationError("wrong data type", codec=self.name, expected="integers or floats", found=found)
        problems = []
        for key in ("offset", "scale"):
            try:
                value = fill_value_from_json(getattr(self, key), dtype).value
            except ConfigurationError as error:
                problems.append(Problem(("configuration", key), error.message))
            else:
                if key == "scale" and value == 0:
                    problems.append(Problem(("configuration", key), "must not be 0"))
        if problems:
            raise ConfigurationError(problems=tuple(problems), codec=self.name)
        return self
