"""A zarr-python codec pipeline on chunkwright."""

from __future__ import annotations

from chunkwright_zarr.pipeline import CodecPipeline

__all__ = ("CodecPipeline",)
