"""The ``blosc`` codec: Blosc 1 frames.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/blosc/. Name: ``blosc``. Configuration:
``{"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}``.

``typesize`` and ``shuffle`` may be left out: binding takes the size of the elements, and byte shuffling for
elements of more than one byte, bit shuffling for others.
"""

from __future__ import annotations

from typing import Literal, Self

import attrs

from chunkwright.codecs._base import BytesBytesCodec, setting
from chunkwright.codecs._rules import choice, integer
from chunkwright.spec import DataType, FillValue

__all__ = ("Blosc",)

type Compressor = Literal["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"]
type Shuffle = Literal["noshuffle", "shuffle", "bitshuffle"]


@attrs.frozen(kw_only=True)
class Blosc(BytesBytesCodec):
    """Compress with Blosc 1.

    Parameters
    ----------
    cname
        The compressor inside.
    clevel
        From 0 (stored) to 9 (smallest).
    shuffle
        How bytes are rearranged before compression; None leaves it to the data type.
    typesize
        Bytes of an element for shuffling; None leaves it to the data type.
    blocksize
        Bytes of a block, 0 for the library's choice.

    Examples
    --------
    >>> import numpy as np
    >>> dtype = DataType(np.dtype("<i4"))
    >>> bound = Blosc(cname="lz4").bind(dtype, FillValue.of(dtype, 0))
    >>> bound.typesize, bound.shuffle
    (4, 'shuffle')
    """

    cname: Compressor = attrs.field(
        default="zstd", metadata=setting(choice("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"))
    )
    clevel: int = attrs.field(default=5, metadata=setting(integer(0, 9)))
    shuffle: Shuffle | None = attrs.field(default=None, metadata=setting(choice("noshuffle", "shuffle", "bitshuffle")))
    typesize: int | None = attrs.field(default=None, metadata=setting(integer(1)))
    blocksize: int = attrs.field(default=0, metadata=setting(integer(0)))

    @property
    def name(self) -> str:
        """Name in Zarr v3 metadata."""
        return "blosc"

    def bind(self, dtype: DataType, fill_value: FillValue) -> Self:
        """Fill in ``typesize`` and ``shuffle``.

        Parameters
        ----------
        dtype, fill_value
            What the chain's array->bytes codec is given.

        Returns
        -------
        Self
            The codec; elements of variable length count as one byte.
        """
        size = dtype.itemsize or 1
        return attrs.evolve(
            self,
            typesize=self.typesize or size,
            shuffle=self.shuffle or ("bitshuffle" if size == 1 else "shuffle"),
        )
