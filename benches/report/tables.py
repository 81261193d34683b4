"""Tables of a run, as rows of text that the terminal and the HTML page both show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from benches.report.ratios import Summary, geometric_mean, summaries
from benches.results import Cell, Results, Row

__all__ = ("Table", "tables", "written_out")


@attrs.frozen
class Table:
    """A title, heads of columns, and rows of cells."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(results: Results) -> Iterator[Table]:
    """Return everything that was measured."""
    for suite in dict.fromkeys(row.cell.suite for row in results.rows):
        cells = results.by_cell(suite)
        if suite == "memory":
            yield _memory(cells)
            continue
        groups = dict.fromkeys((cell.data, cell.store, cell.cpus) for cell in cells)
        for group in groups:
            chosen = {cell: rows for cell, rows in cells.items() if (cell.data, cell.store, cell.cpus) == group}
            yield _times(results, suite, group, chosen)
        if suite == "latency":
            yield _requests(cells)
        if suite == "sweep":
            yield _per_inner_chunk(cells)


def _times(results: Results, suite: str, group: tuple[str, str, int], cells: dict[Cell, dict[str, Row]]) -> Table:
    """Milliseconds of everyone, then ours against the best, the best pipeline, zarr's default and the limit."""
    names = [name for name in results.contenders if any(name in rows for rows in cells.values())]
    known = {one.cell: one for one in summaries(results, suite)}
    rows = [
        (
            cell.layout,
            cell.operation,
            *(_milliseconds(rows.get(name)) for name in names),
            *_ratios(known.get(cell)),
        )
        for cell, rows in cells.items()
    ]
    found = [known[cell] for cell in cells if cell in known]
    means = (
        geometric_mean(one.ratio for one in found),
        geometric_mean(one.pipeline_ratio for one in found),
        geometric_mean(one.default_ratio for one in found),
        geometric_mean(one.limit_ratio for one in found),
    )
    rows.append(("geometric mean", "", *("" for _ in names), "", *map(_ratio, means)))
    data, store, cpus = group
    title = f"{suite}: {data}, {store}, {cpus} CPU{'s' if cpus > 1 else ''} (ms)"
    heads = ("layout", "operation", *names, "best", "× best", "× pipeline", "× default", "of limit")
    return Table(title, heads, tuple(rows))


def _ratios(one: Summary | None) -> tuple[str, ...]:
    if one is None:
        return ("",) * 5
    ratios = (one.ratio, one.pipeline_ratio, one.default_ratio, one.limit_ratio)
    return (one.best_name or "", *map(_ratio, ratios))


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _milliseconds(row: Row | None) -> str:
    if row is None:
        return ""
    took = row.seconds * 1e3
    return f"{took:.0f}" if took >= 100 else f"{took:.3g}"


def _requests(cells: dict[Cell, dict[str, Row]]) -> Table:
    rows = [
        (
            cell.layout,
            cell.operation,
            name,
            *(f"{row.extra[what]:.0f}" for what in ("requests", "nbytes", "rounds")),
            f"{row.extra['memory_seconds'] * 1e3:.3g}",
            f"{row.seconds * 1e3:.0f}",
        )
        for cell, by_name in cells.items()
        for name, row in by_name.items()
    ]
    heads = ("layout", "operation", "who", "requests", "bytes", "rounds", "in memory (ms)", "took (ms)")
    return Table("latency: what was asked of the store", heads, tuple(rows))


def _per_inner_chunk(cells: dict[Cell, dict[str, Row]]) -> Table:
    names = list(dict.fromkeys(name for rows in cells.values() for name in rows))
    rows = []
    for cell, by_name in cells.items():
        count = next(iter(by_name.values())).extra["inner_chunks"]
        each = (f"{by_name[name].seconds / count * 1e6:.3g}" if name in by_name else "" for name in names)
        rows.append((f"{count:.0f}", cell.operation, *each))
    return Table(
        "sweep: microseconds for each inner chunk of one shard", ("inner chunks", "operation", *names), tuple(rows)
    )


def _memory(cells: dict[Cell, dict[str, Row]]) -> Table:
    rows = [
        (
            cell.layout,
            cell.operation,
            name,
            f"{row.extra['anon'] / 2**20:.1f}",
            f"{row.extra['anon'] / row.extra['unit']:.2f}",
            f"{row.seconds:.2f}",
        )
        for cell, by_name in cells.items()
        for name, row in by_name.items()
    ]
    heads = ("layout", "operation", "who", "peak (MiB)", "× result or shard", "took (s)")
    return Table("memory: anonymous memory above what was there before", heads, tuple(rows))


def written_out(table: Table) -> str:
    """Return a table for the terminal."""
    lines = (table.heads, *table.rows)
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.heads))]
    left = sum(head in ("layout", "operation", "who", "best") for head in table.heads[:3])
    return "\n".join((table.title, *(_line(line, widths, left) for line in lines)))


def _line(cells: Sequence[str], widths: Sequence[int], left: int) -> str:
    padded = [
        cell.ljust(width) if number < left else cell.rjust(width)
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  " + "  ".join(padded).rstrip()
