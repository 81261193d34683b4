"""The ``crc32c`` codec: a CRC-32C after the bytes.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/crc32c/. Name: ``crc32c``. No configuration.
"""

from __future__ import annotations

import attrs

from chunkwright.codecs._base import BytesBytesCodec
from chunkwright.codecs._sizes import plus
from chunkwright.spec import ChunkSpec, Size

__all__ = ("Crc32c",)


@attrs.frozen(kw_only=True)
class Crc32c(BytesBytesCodec):
    """Append a CRC-32C (Castagnoli), four bytes, little endian.

    Examples
    --------
    >>> Crc32c().to_json()
    {'name': 'crc32c'}
    """

    @property
    def name(self) -> str:
        """Name in Zarr v3 metadata."""
        return "crc32c"

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
            Four more.
        """
        return plus(size, 4)
