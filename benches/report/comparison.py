"""What changed since earlier results: our times, cell by cell."""

from __future__ import annotations

from benches.report.ratios import geometric_mean
from benches.report.tables import Table
from benches.results import Results

__all__ = ("compared",)

# Smaller changes are within the noise of most machines.
NOISE = 1.1


def compared(earlier: Results, now: Results) -> Table:
    """Return the cells of ours that took clearly more or less time than earlier, and the mean over all."""
    before = {(row.cell, row.contender): row.seconds for row in earlier.rows}
    rows, ratios = [], []
    for row in now.rows:
        known = before.get((row.cell, row.contender))
        if known is None or not now.role(row.contender).startswith("ours"):
            continue
        ratio = known / row.seconds
        ratios.append(ratio)
        if not 1 / NOISE < ratio < NOISE:
            times = (f"{known * 1e3:.3g}", f"{row.seconds * 1e3:.3g}", f"{ratio:.2f}")
            rows.append((str(row.cell), row.contender, *times))
    mean = geometric_mean(ratios)
    rows.append(("geometric mean of all", "", "", "", "" if mean is None else f"{mean:.2f}"))
    title = (
        f"compared with commit {earlier.meta.get('commit')} of {earlier.meta.get('time')} (ms; above 1 is faster now)"
    )
    return Table(title, ("layout", "who", "then", "now", "times as fast"), tuple(rows))
