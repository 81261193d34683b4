"""Fixtures of the tests of the zarr adapter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import zarr

from tests.support.codecs import registered
from tests.support.thresholds import thresholds
from tests.zarr_python.ours import OURS

__all__ = ("ours", "thresholds")


@pytest.fixture
def ours() -> Iterator[None]:
    """Switch zarr to our pipeline on numcodecs, with the users' codecs of the tests registered."""
    with registered(), zarr.config.set(OURS):
        yield
