"""The ``vlen-bytes`` codec: bytes of variable length.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-bytes. Name:
``vlen-bytes``. No configuration.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from chunkwright.codecs._vlen import VLen

__all__ = ("VLenBytes",)


@attrs.frozen(kw_only=True)
class VLenBytes(VLen):
    """Store bytes of variable length.

    Examples
    --------
    >>> VLenBytes().to_json()
    {'name': 'vlen-bytes'}
    """

    holds: ClassVar[str] = "bytes"

    @property
    def name(self) -> str:
        """Name in Zarr v3 metadata."""
        return "vlen-bytes"
