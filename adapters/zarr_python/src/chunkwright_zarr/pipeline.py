"""The codec pipeline that zarr-python is given (first step: zarr's own default under our name)."""

from __future__ import annotations

from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.registry import register_pipeline

__all__ = ("CodecPipeline",)


class CodecPipeline(BatchedCodecPipeline):
    """A zarr-python codec pipeline on chunkwright."""


CodecPipeline.__module__ = "chunkwright_zarr"
register_pipeline(CodecPipeline)
