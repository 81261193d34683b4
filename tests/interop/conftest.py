"""The fixtures ``pipeline`` (our pipeline with each installed backend) and ``stopped_clock``."""

from __future__ import annotations

from tests.support.clock import stopped_clock
from tests.support.pipelines import pipeline

__all__ = ("pipeline", "stopped_clock")
