"""Settings of all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# No test is about time, and CI tests the same examples every time: new ones are found by `make differential`.
settings.register_profile("repeatable", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("repeatable")
