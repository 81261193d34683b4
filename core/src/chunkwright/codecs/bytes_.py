"""The ``bytes`` codec: the elements of an array in C order, in a given byte order.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/bytes/. Names: ``bytes``, and ``endian`` in
early v3 metadata. Configuration: ``{"endian": "little"}``, left out for data types without a byte order.

Zarr v2 has no such codec: there the data type itself says how the bytes are stored. ``declared`` stands for
that, and is not part of the metadata.
"""

from __future__ import annotations

from typing import Any, Literal, Self

import attrs
import numpy as np

from chunkwright.codecs._base import ArrayBytesCodec, setting
from chunkwright.codecs._rules import choice
from chunkwright.errors import ConfigurationError
from chunkwright.spec import ChunkSpec, DataType, FillValue, Size

__all__ = ("Bytes",)


@attrs.frozen(kw_only=True)
class Bytes(ArrayBytesCodec):
    """Store the elements of an array one after the other.

    Parameters
    ----------
    endian
        Byte order of stored elements. None: as in the data type, which :meth:`bind` allows only where
        byte order means nothing, or with ``declared``.
    declared
        Whether the data type's own byte order is the stored one, as in Zarr v2.

    Examples
    --------
    >>> Bytes(endian="big").to_json()
    {'name': 'bytes', 'configuration': {'endian': 'big'}}
    """

    endian: Literal["little", "big"] | None = attrs.field(default=None, metadata=setting(choice("little", "big")))
    declared: bool = False

    @property
    def name(self) -> str:
        """Name in Zarr v3 metadata."""
        return "bytes"

    def bind(self, dtype: DataType, fill_value: FillValue) -> Self:
        """Drop ``endian`` where byte order means nothing, demand it elsewhere.

        Parameters
        ----------
        dtype, fill_value
            What the codec is given to encode.

        Returns
        -------
        Self
            The codec. Records that leave ``endian`` out are little endian, as zarr reads them.

        Raises
        ------
        ConfigurationError
            When elements vary in length, ``endian`` is missing, or NumPy cannot bring them into that byte order.
        """
        if dtype.variable:
            raise ConfigurationError(f"cannot encode elements of variable length ({dtype.variable})", codec=self.name)
        if self.declared:
            return self
        if not _has_byte_order(dtype.numpy):
            return attrs.evolve(self, endian=None)
        if self.endian is None and dtype.numpy.names is None:
            raise ConfigurationError(f"endian is missing for data type {dtype.numpy}", codec=self.name)
        endian = self.endian or "little"
        if _turned_wrongly(dtype.numpy, endian):
            raise ConfigurationError(f"NumPy cannot turn {dtype.numpy} into {endian} endian", codec=self.name)
        return attrs.evolve(self, endian=endian)

    def encoded_size(self, size: Size, spec: ChunkSpec) -> Size:
        """Return how many bytes this codec makes.

        Parameters
        ----------
        size
            Bytes that it is given.
        spec
            Spec of the array.

        Returns
        -------
        Size
            The same.
        """
        return size


def _turned_wrongly(dtype: np.dtype[Any], endian: Literal["little", "big"]) -> bool:
    """Whether conversion to a byte order turns elements as a whole, and not number by number.

    So it is with the complex numbers of ml_dtypes.
    """
    if dtype.names is not None:
        return any(_turned_wrongly(dtype[name], endian) for name in dtype.names)
    stored = dtype.newbyteorder("<" if endian == "little" else ">")
    if dtype.kind in "biufcmMSUVO" or stored.isnative == dtype.isnative:
        return False
    probe = np.arange(dtype.itemsize, dtype=np.uint8).view(dtype)
    return probe.astype(stored).tobytes() != probe.byteswap().tobytes()


def _has_byte_order(dtype: np.dtype[Any]) -> bool:
    if dtype.names is not None:
        # zarr asks for the size of the fields only, so records of fixed-length bytes have an ``endian`` too.
        return any(dtype[name].itemsize > 1 for name in dtype.names)
    return dtype.byteorder != "|"
