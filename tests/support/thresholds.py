"""Below some sizes work is done in a plainer way. Tests are small, so they would never see the other ways.

The fixture :func:`thresholds` runs a test twice: with the sizes as they are, and with sizes (nearly all of them as
small as can be) with which every batch is planned, fetched in parts, overlapped and shared out among threads.
"""

from __future__ import annotations

import sys

import pytest

import chunkwright_numcodecs.backend
import chunkwright_zarr.pipeline

#: What has sizes is loaded, whichever test comes first.
LOADED = (chunkwright_numcodecs.backend, chunkwright_zarr.pipeline)

#: Names of the sizes, wherever they were imported to.
SMALLEST = {
    "BATCH_BYTES": 1,
    "FEW": 0,
    "MAX_AT_ONCE": 1,
    "MAX_AWAITED_NBYTES": 0,
    "MAX_BRIEF_NBYTES": 0,
    "MAX_FEW": 0,
    "MAX_FEW_NBYTES": 0,
    "MAX_CHUNKS": 0,
    "MAX_LISTED": 0,
    "MAX_NBYTES": 0,
    "MAX_OPEN": 2,
    "MAX_PLANNED_ON_LOOP": 0,
    "MAX_WRITES_PLANNED_ON_LOOP": 0,
    "OVERLAP_SECONDS": 0,
    "PLAIN_NBYTES": 1 << 62,
    "PLANNED_NBYTES": 1,
    "TURN_BYTES": 1,
    "UNCUT_NBYTES": 0,
    "UNPLANNED_NBYTES": 0,
    "WHOLE_NBYTES": 1,
    "WINDOW_NBYTES": 1,
    "_BLOCK": 2,
    "_LOADED": 1,
    "_SMALLEST_BATCH": 1,
    "_SMALLEST_CHUNK": 1,
    "_SMALLEST_RANGE": 1,
}

#: Those that are nowhere when the Rust backend is not loaded.
OF_RUST = {"WINDOW_NBYTES"}


@pytest.fixture(params=["sizes as they are", "smallest sizes"])
def thresholds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """See the module's docstring."""
    if request.param == "sizes as they are":
        return
    ours = [module for name, module in sys.modules.items() if name.partition(".")[0].startswith("chunkwright")]
    for name, size in SMALLEST.items():
        holders = [module for module in ours if isinstance(vars(module).get(name), int | float)]
        assert holders or name in OF_RUST, f"there is no size {name} any more"
        for module in holders:
            monkeypatch.setattr(module, name, size)
