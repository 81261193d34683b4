"""The fixture ``pipeline``: our pipeline with each installed backend."""

from __future__ import annotations

from tests.support.pipelines import pipeline

__all__ = ("pipeline",)
