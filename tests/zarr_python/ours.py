"""What the tests of the pipeline share: it, switched on, and what it did."""

from __future__ import annotations

from typing import Any

import zarr.codecs as zc
from zarr.core.buffer import core, cpu

from chunkwright_zarr import CodecPipeline, counters

OURS = {"codec_pipeline.path": "chunkwright_zarr.CodecPipeline", "codec_pipeline.backend": "numcodecs"}


class Paths:
    """Which paths were taken since this was made."""

    def __init__(self) -> None:
        self._before = counters()

    def __call__(self) -> dict[str, int]:
        return {
            path: calls - self._before.get(path, 0)
            for path, calls in counters().items()
            if calls > self._before.get(path, 0)
        }


def pipeline_of(array: Any) -> CodecPipeline:
    pipeline = array.async_array.codec_pipeline
    assert isinstance(pipeline, CodecPipeline)
    return pipeline


def made(*codecs: Any) -> CodecPipeline:
    return CodecPipeline.from_codecs(codecs or (zc.BytesCodec(), zc.ZstdCodec()))


class Elsewhere(core.NDBuffer):
    """As a GPU's would be: no subclass of the CPU buffer."""

    create = classmethod(cpu.NDBuffer.create.__func__)  # type: ignore[attr-defined]
    empty = classmethod(cpu.NDBuffer.empty.__func__)  # type: ignore[attr-defined]
    from_numpy_array = classmethod(cpu.NDBuffer.from_numpy_array.__func__)  # type: ignore[attr-defined]
    as_numpy_array = cpu.NDBuffer.as_numpy_array
    __getitem__ = cpu.NDBuffer.__getitem__

    def __setitem__(self, key: Any, value: Any) -> None:
        self._data[key] = value.as_ndarray_like() if isinstance(value, core.NDBuffer) else value
