"""How many examples Hypothesis tries: a few, the same ones in every run, unless the environment asks for more.

``CHUNKWRIGHT_EXAMPLES=20000 python -m pytest tests/differential`` tries that many of each test, other ones every
time; failures are kept and tried again by the next run.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

WANTED = int(os.environ.get("CHUNKWRIGHT_EXAMPLES", "0"))


def effort(examples: int) -> settings:
    """Decorator: so many examples in a short run."""
    return settings(
        max_examples=WANTED or examples,
        derandomize=not WANTED,
        deadline=None,
        print_blob=True,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            # The fixture that sets the pipeline holds for all examples.
            HealthCheck.function_scoped_fixture,
        ],
    )
