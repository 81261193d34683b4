"""The fixture ``thresholds``."""

from __future__ import annotations

from tests.support.thresholds import thresholds

__all__ = ("thresholds",)
