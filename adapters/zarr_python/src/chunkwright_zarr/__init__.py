"""A zarr-python codec pipeline on chunkwright.

zarr finds it by the name ``chunkwright_zarr.CodecPipeline``: set ``codec_pipeline.path`` in zarr's configuration or
``ZARR_CODEC_PIPELINE__PATH`` in the environment, or open arrays inside :class:`use`. Importing it loads no
backend and changes no setting.
"""

from __future__ import annotations

from zarr.registry import register_pipeline

from chunkwright_zarr.boxes import read_boxes, read_boxes_async
from chunkwright_zarr.config import use
from chunkwright_zarr.counters import counters
from chunkwright_zarr.direct import DirectArray
from chunkwright_zarr.explain import ArrayExplanation, ExplainedPath, explain
from chunkwright_zarr.pipeline import CodecPipeline

__all__ = (
    "ArrayExplanation",
    "CodecPipeline",
    "DirectArray",
    "ExplainedPath",
    "counters",
    "explain",
    "read_boxes",
    "read_boxes_async",
    "use",
)

# zarr looks a pipeline up by module and qualified name, so it must not be called by where it happens to lie.
CodecPipeline.__module__ = __name__
register_pipeline(CodecPipeline)
