"""The fixtures ``pipeline`` (our pipeline with each installed backend) and ``thresholds``."""

from __future__ import annotations

from tests.support.pipelines import pipeline
from tests.support.thresholds import thresholds

__all__ = ("pipeline", "thresholds")
