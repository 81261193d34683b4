"""The report on a run: text for the terminal, pictures and an HTML page beside the results."""

from __future__ import annotations

from pathlib import Path

from benches.report.comparison import compared
from benches.report.page import page
from benches.report.plots import plots
from benches.report.tables import tables, written_out
from benches.report.verdicts import verdicts
from benches.results import Results

__all__ = ("write_report",)


def write_report(results: Results, folder: Path, earlier: Results | None = None) -> None:
    """Print the tables and verdicts, and leave pictures and ``report.html`` in a folder.

    Of a quick run there are no verdicts, and only the first picture of each kind.
    """
    judged = [] if results.meta["quick"] else verdicts(results)
    all_tables = [*tables(results), *([compared(earlier, results)] if earlier else [])]
    for table in all_tables:
        print(written_out(table), end="\n\n")
    if results.meta["quick"]:
        print("a quick run on tiny arrays: it shows that everything works, and nothing about speed")
    for verdict in judged:
        print(f"{'reached' if verdict.reached else 'NOT REACHED'}: {verdict.aim}: {verdict.found}")
        for line in verdict.short:
            print(f"    {line}")
    for what, who, why in results.failures:
        print(f"FAILED: {who}: {what}: {why}")
    pictures = list(plots(results, folder))
    written = folder / "report.html"
    written.write_text(page(results, judged, pictures, all_tables), "utf-8")
    print(f"\n{len(results.rows)} times, {len(results.skipped)} left out, {len(results.failures)} failures: {written}")
