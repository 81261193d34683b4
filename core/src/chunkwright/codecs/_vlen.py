"""What ``vlen-utf8`` and ``vlen-bytes`` share.

Both have one layout: the number of elements, then each element with its length before it, all counts
little-endian uint32.
"""

from __future__ import annotations

from typing import ClassVar, Self

import attrs

from chunkwright.codecs._base import ArrayBytesCodec
from chunkwright.errors import ConfigurationError
from chunkwright.spec import DataType, FillValue

__all__ = ("VLen",)


@attrs.frozen(kw_only=True)
class VLen(ArrayBytesCodec):
    """Base of the codecs for elements of variable length; only its subclasses are used."""

    holds: ClassVar[str]

    def bind(self, dtype: DataType, fill_value: FillValue) -> Self:
        """Check that elements are what the codec stores.

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
            When elements are something else.
        """
        if dtype.variable not in (self.holds, "object"):
            found = dtype.variable or str(dtype.numpy)
            raise ConfigurationError("wrong data type", codec=self.name, expected=self.holds, found=found)
        return self
