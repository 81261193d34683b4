"""gzip writes the time into what it makes; with the clock stopped, equal data gives equal bytes."""

from __future__ import annotations

import gzip
from types import SimpleNamespace

import pytest


@pytest.fixture
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is always the first second of 1970 for the standard library's gzip."""
    monkeypatch.setattr(gzip, "time", SimpleNamespace(time=lambda: 0.0))
