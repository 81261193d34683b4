"""The ``gzip`` codec: RFC 1952 members.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/gzip/. Name: ``gzip``.
Configuration: ``{"level": 5}``, 0 to 9.
"""

from __future__ import annotations

import attrs

from chunkwright.codecs._base import BytesBytesCodec, setting
from chunkwright.codecs._rules import integer

__all__ = ("Gzip",)


@attrs.frozen(kw_only=True)
class Gzip(BytesBytesCodec):
    """Compress with gzip.

    Parameters
    ----------
    level
        From 0 (stored) to 9 (smallest).

    Examples
    --------
    >>> Gzip(level=1).to_json()
    {'name': 'gzip', 'configuration': {'level': 1}}
    """

    level: int = attrs.field(default=5, metadata=setting(integer(0, 9)))

    @property
    def name(self) -> str:
        """Name in Zarr v3 metadata."""
        return "gzip"
