"""What was measured, kept as JSON so that commits and machines can be compared."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import attrs

__all__ = ("Cell", "Results", "Row", "describe_run")


@attrs.frozen
class Cell:
    """What was done, whoever did it."""

    suite: str
    data: str
    store: str
    layout: str
    operation: str
    cpus: int

    def __str__(self) -> str:
        return " | ".join((self.data, self.store, self.layout, self.operation, f"{self.cpus} CPU"))


@attrs.frozen
class Row:
    """How long one contender took for one cell, in seconds, and what else was counted."""

    cell: Cell
    contender: str
    samples: tuple[float, ...] = ()
    extra: dict[str, float] = attrs.field(factory=dict, eq=False)

    @property
    def seconds(self) -> float:
        """The median."""
        return statistics.median(self.samples)


@attrs.define
class Results:
    """Rows, who the contenders are, what they could not do, and where they were wrong."""

    meta: dict[str, Any] = attrs.field(factory=dict)
    contenders: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    rows: list[Row] = attrs.field(factory=list)
    skipped: list[tuple[str, str, str]] = attrs.field(factory=list)
    failures: list[tuple[str, str, str]] = attrs.field(factory=list)

    def role(self, contender: str) -> str:
        """Return the role of a contender."""
        return str(self.contenders[contender]["role"])

    def by_cell(self, suite: str) -> dict[Cell, dict[str, Row]]:
        """Return the rows of a suite by cell and contender, in the order in which they were measured."""
        found: dict[Cell, dict[str, Row]] = {}
        for row in self.rows:
            if row.cell.suite == suite:
                found.setdefault(row.cell, {})[row.contender] = row
        return found

    def ours_failed(self) -> bool:
        """Whether anything of ours was wrong or raised."""
        return any(self.role(contender).startswith("ours") for _, contender, _ in self.failures)

    def absorb(self, other: Results) -> None:
        """Add what another process measured."""
        self.rows += other.rows
        self.skipped += other.skipped
        self.failures += other.failures

    def save(self, path: Path) -> None:
        """Write everything to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(attrs.asdict(self), indent=1) + "\n", "utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what :meth:`save` wrote."""
        kept = json.loads(path.read_text("utf-8"))
        rows = [
            Row(Cell(**row["cell"]), row["contender"], tuple(row["samples"]), row["extra"]) for row in kept.pop("rows")
        ]
        skipped, failures = ([tuple(item) for item in kept.pop(name)] for name in ("skipped", "failures"))
        return cls(kept["meta"], kept["contenders"], rows, skipped, failures)


def describe_run(quick: bool) -> dict[str, Any]:
    """Return what a reader of the results must know about the run."""
    libraries = ("zarr", "numpy", "numcodecs", "tensorstore", "zarrs", "zarrista")
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "quick": quick,
        "cpus": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "libraries": {name: version(name) for name in libraries},
    }


def _commit() -> str:
    try:
        described = ("git", "describe", "--always", "--dirty", "--exclude=*")
        run = subprocess.run(described, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return run.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
