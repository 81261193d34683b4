"""How arrays are cut and compressed.

A layout has the same edges along every axis. What is compressed as one is the inner chunk; without a shard it is
the chunk itself.
"""

from __future__ import annotations

from typing import Any

import attrs
import zarr
from zarr.codecs import BloscCodec, ZstdCodec

from benches.data import DataSet

__all__ = ("EXTRA", "SHARDED", "STRINGS", "SYNTHETIC", "Layout")


@attrs.frozen
class Layout:
    """Edges in elements, and the name of the compressor: blosc (lz4), zstd (level 3) or raw."""

    inner: int
    codec: str
    shard: int | None = None

    @property
    def name(self) -> str:
        """Name the layout as the tables do."""
        return f"{self.shard}/{self.inner} {self.codec}" if self.shard else f"{self.inner} {self.codec}"

    def quick(self) -> Layout:
        """Return the layout that the smoke test uses in place of this one."""
        if self.shard is None:
            return Layout(max(self.inner // 4, 16), self.codec)
        return Layout(max(self.inner // 2, 8), self.codec, self.shard // 4)

    def create(self, store: Any, data: DataSet) -> Any:
        """Create an empty array for the data at the root of a store of zarr's."""
        ndim = data.values.ndim
        return zarr.create_array(
            store,
            shape=data.values.shape,
            dtype=data.dtype,
            chunks=(self.inner,) * ndim,
            shards=(self.shard,) * ndim if self.shard else None,
            compressors=self._compressors(data),
        )

    def _compressors(self, data: DataSet) -> Any:
        if self.codec == "zstd":
            return ZstdCodec(level=3)
        if self.codec == "blosc":
            itemsize = data.values.dtype.itemsize
            return BloscCodec(
                cname="lz4", clevel=5, shuffle="shuffle" if itemsize > 1 else "noshuffle", typesize=itemsize
            )
        return None


UNSHARDED = (Layout(64, "blosc"), Layout(64, "zstd"), Layout(64, "raw"), Layout(16, "zstd"))
SHARDED = (
    Layout(32, "blosc", 128),
    Layout(32, "zstd", 128),
    Layout(8, "zstd", 128),
    Layout(32, "raw", 128),
)
SYNTHETIC = UNSHARDED + SHARDED
# What the other volumes are stored as.
EXTRA = (Layout(64, "zstd"), Layout(32, "zstd", 128))
STRINGS = (Layout(4096, "zstd"), Layout(2048, "zstd", 32768))
