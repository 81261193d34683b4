"""Which pipelines the tests run under, and how to switch to one.

Every test that takes the fixture :func:`pipeline` runs once per installed backend. To check that the tests
themselves are right, run them under another pipeline::

    CHUNKWRIGHT_TEST_PIPELINE=zarr.core.codec_pipeline.BatchedCodecPipeline python -m pytest tests/cases
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

import attrs
import pytest
import zarr
from zarr.registry import get_pipeline_class

from tests.support import codecs

OURS = "chunkwright_zarr.CodecPipeline"
DEFAULT = "zarr.core.codec_pipeline.BatchedCodecPipeline"
FUSED = "zarr.core.codec_pipeline.FusedCodecPipeline"
ZARRS = "zarrs.ZarrsCodecPipeline"

OVERRIDE = "CHUNKWRIGHT_TEST_PIPELINE"


@attrs.frozen
class Pipeline:
    """A codec pipeline of zarr's, and the backend if it is ours."""

    path: str
    backend: str | None = None

    @property
    def is_ours(self) -> bool:
        return self.path == OURS

    @property
    def config(self) -> dict[str, Any]:
        """What ``zarr.config.set`` takes."""
        chosen = {"codec_pipeline.path": self.path}
        return chosen if self.backend is None else {**chosen, "codec_pipeline.backend": self.backend}

    @property
    def environment(self) -> dict[str, str]:
        """The same choice as environment variables, for another process."""
        names = {
            "codec_pipeline.path": "ZARR_CODEC_PIPELINE__PATH",
            "codec_pipeline.backend": "ZARR_CODEC_PIPELINE__BACKEND",
        }
        return {names[key]: value for key, value in self.config.items()}

    def use(self) -> Any:
        """Context manager: arrays opened inside use this pipeline."""
        return zarr.config.set(self.config)

    def __str__(self) -> str:
        return self.backend or self.path.rsplit(".", 1)[-1]


def backends() -> list[str]:
    """Names of the backends that are installed."""
    names = sorted(point.name for point in entry_points(group="chunkwright.backends"))
    assert names, "no backend is installed"
    return names


def under_test() -> list[Pipeline]:
    """Our pipeline with each installed backend, or the one that the environment names instead."""
    other = os.environ.get(OVERRIDE)
    return [Pipeline(other)] if other else [Pipeline(OURS, name) for name in backends()]


@pytest.fixture(params=under_test(), ids=str)
def pipeline(request: pytest.FixtureRequest) -> Iterator[Pipeline]:
    """Arrays opened in the test use this pipeline; the codecs of :mod:`tests.support.codecs` are known."""
    chosen: Pipeline = request.param
    with codecs.registered(), chosen.use():
        in_use = get_pipeline_class()
        assert f"{in_use.__module__}.{in_use.__qualname__}" == chosen.path
        yield chosen
