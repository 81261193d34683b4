"""The suites; :data:`SUITES` lists them in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable

from benches.session import Session
from benches.suites.crops import run_crops
from benches.suites.grid import run_grid, run_volumes
from benches.suites.latency import run_latency
from benches.suites.memory import run_memory
from benches.suites.sweep import run_sweep

__all__ = ("SUITES",)

SUITES: dict[str, Callable[[Session], None]] = {
    "grid": run_grid,
    "volumes": run_volumes,
    "latency": run_latency,
    "crops": run_crops,
    "sweep": run_sweep,
    "memory": run_memory,
}
