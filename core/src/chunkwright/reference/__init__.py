"""The reference backend: what Zarr's specifications ask for, with NumPy and the standard library alone.

It lets the core run by itself, for instance on shards that are compressed with gzip and have the usual index,
and it is an oracle for other backends: each kernel is the shortest right one, none is fast.
"""

from __future__ import annotations

from chunkwright.reference._backend import ReferenceBackend
from chunkwright.reference._crc32c import crc32c

__all__ = ("ReferenceBackend", "crc32c")
