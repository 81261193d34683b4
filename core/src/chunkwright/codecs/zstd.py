"""The ``zstd`` codec: RFC 8878 frames.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/zstd. Name: ``zstd``.
Configuration: ``{"level": 3, "checksum": false}``; level from -131072 to 22, 0 is the library's default.
"""

from __future__ import annotations

import attrs

from chunkwright.codecs._base import BytesBytesCodec, setting
from chunkwright.codecs._rules import boolean, integer

__all__ = ("Zstd",)


@attrs.frozen(kw_only=True)
class Zstd(BytesBytesCodec):
    """Compress with Zstandard.

    Parameters
    ----------
    level
        From -131072 (fastest) to 22 (smallest); 0 is the library's default.
    checksum
        Whether frames end with a checksum of their content.

    Examples
    --------
    >>> Zstd(level=3).to_json()
    {'name': 'zstd', 'configuration': {'level': 3, 'checksum': False}}
    """

    level: int = attrs.field(default=0, metadata=setting(integer(-131072, 22)))
    checksum: bool = attrs.field(default=False, metadata=setting(boolean))

    @property
    def name(self) -> str:
        """Name in Zarr v3 metadata."""
        return "zstd"
