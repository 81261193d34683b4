"""What the times of a cell say: who was best, and how many times as fast we are.

Ours is the first backend that was measured, Rust where it is installed. The limit of a cell is the raw limit plus what
zarr-python itself costs there, except for reads that have nothing to do with zarr-python. Whole writes of small chunks
are compared with rivals that replace objects atomically, since replacing thousands of files in place is something else
than what zarr does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import attrs

from benches.results import Cell, Results, Row

__all__ = ("DEFAULT", "DIRECT", "FUSED", "Summary", "geometric_mean", "summaries")

DEFAULT, FUSED = "zarr batched", "zarr fused"
# Of ours.
DIRECT = "ours, direct"
# Edges of chunks of which there are thousands.
SMALL_CHUNK = 16


@attrs.frozen
class Summary:
    """One cell: our time, who of ours took it, and times of the best of others, in seconds; None where nobody was."""

    cell: Cell
    who: str
    ours: float
    best_name: str | None
    best: float | None
    pipeline: float | None
    default: float | None
    limit: float | None

    @property
    def ratio(self) -> float | None:
        """How many times as fast as the best of all we are."""
        return None if self.best is None else self.best / self.ours

    @property
    def pipeline_ratio(self) -> float | None:
        """How many times as fast as the best other pipeline of zarr-python we are."""
        return None if self.pipeline is None else self.pipeline / self.ours

    @property
    def default_ratio(self) -> float | None:
        """How many times as fast as zarr-python's default pipeline we are."""
        return None if self.default is None else self.default / self.ours

    @property
    def limit_ratio(self) -> float | None:
        """How many times the limit our time is."""
        return None if self.limit is None else self.ours / self.limit


def summaries(results: Results, suite: str, *, ours: str | None = None, store: str | None = None) -> list[Summary]:
    """Summarise the cells of a suite in which we were measured, with one backend or the first."""
    found = []
    for cell, rows in results.by_cell(suite).items():
        mine = ours or next((name for name in rows if results.role(name) == "ours"), None)
        if mine in rows and store in (None, cell.store):
            found.append(_summary(results, cell, rows, mine))
    return found


def geometric_mean(ratios: Iterable[float | None]) -> float | None:
    """Return the geometric mean of the ratios that are there."""
    known = [ratio for ratio in ratios if ratio is not None]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


def has_small_chunks(layout: str) -> bool:
    """Whether a layout makes thousands of files."""
    edge = layout.split()[0]
    return edge.isdigit() and int(edge) <= SMALL_CHUNK


def _summary(results: Results, cell: Cell, rows: dict[str, Row], mine: str) -> Summary:
    others = {name: row.seconds for name, row in rows.items() if results.role(name) in ("pipeline", "rival")}
    if cell.operation == "write all" and has_small_chunks(cell.layout):
        others = {name: took for name, took in others.items() if results.contenders[name]["atomic"]}
    best = min(others, key=others.__getitem__, default=None)
    pipelines = [row.seconds for name, row in rows.items() if results.role(name) == "pipeline"]
    return Summary(
        cell,
        mine,
        rows[mine].seconds,
        best,
        others[best] if best else None,
        min(pipelines, default=None),
        rows[DEFAULT].seconds if DEFAULT in rows else None,
        _limit(cell, rows, mine),
    )


def _limit(cell: Cell, rows: dict[str, Row], mine: str) -> float | None:
    if not {"limit", "nothing"} <= rows.keys():
        return None
    is_zarrs = mine != DIRECT or cell.operation.startswith("write")
    return rows["limit"].seconds + (rows["nothing"].seconds if is_zarrs else 0.0)
