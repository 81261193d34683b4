"""The ``vlen-utf8`` codec: strings of variable length.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-utf8. Name: ``vlen-utf8``.
No configuration.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from chunkwright.codecs._vlen import VLen

__all__ = ("VLenUTF8",)


@attrs.frozen(kw_only=True)
class VLenUTF8(VLen):
    """Store strings of variable length as UTF-8.

    Examples
    --------
    >>> VLenUTF8().to_json()
    {'name': 'vlen-utf8'}
    """

    holds: ClassVar[str] = "string"

    @property
    def name(self) -> str:
        """Name in Zarr v3 metadata."""
        return "vlen-utf8"
