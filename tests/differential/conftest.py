"""The fixtures ``pipeline``, ``stopped_clock``, ``thresholds`` and ``uneven_chunks``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import zarr

from tests.support.clock import stopped_clock
from tests.support.pipelines import pipeline
from tests.support.thresholds import thresholds

__all__ = ("pipeline", "stopped_clock", "thresholds")


@pytest.fixture
def uneven_chunks() -> Iterator[None]:
    """Rectilinear grids, which zarr calls experimental, are allowed."""
    with zarr.config.set({"array.rectilinear_chunks": True}):
        yield
