"""Fixtures of the tests of the zarr adapter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zarr
import zarr.core.array

from tests.support.codecs import registered
from tests.support.thresholds import thresholds
from tests.zarr_python.ours import OURS

__all__ = ("ours", "thresholds")


@pytest.fixture
def ours() -> Iterator[None]:
    """Switch zarr to our pipeline on numcodecs, with the users' codecs of the tests registered."""
    with registered(), zarr.config.set(OURS):
        yield


class HoppedError(Exception):
    """Somebody went to zarr-python's event loop."""


@pytest.fixture
def no_loop(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Once called, whatever an array does on zarr-python's loop raises."""

    def refuse(coroutine: Any, *_: Any, **__: Any) -> Any:
        coroutine.close()
        raise HoppedError

    return lambda: monkeypatch.setattr(zarr.core.array, "sync", refuse)
