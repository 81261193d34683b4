"""Pictures of a run. Each contender has the same colour in all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benches.report.ratios import Summary, summaries
from benches.results import Cell, Results, Row

__all__ = ("plots",)

mpl.use("Agg")

COLOURS = {
    "ours, rust": "#b03a2e",
    "ours, numcodecs": "#e59866",
    "ours, direct": "#ec7063",
    "ours, rust, by calls": "#7b241c",
    "ours, rust, new array": "#e6b0aa",
    "ours, numcodecs, by calls": "#ba4a00",
    "ours, numcodecs, new array": "#f5cba7",
    "zarr batched": "#aab7b8",
    "zarr fused": "#5d6d7e",
    "zarrs-python": "#1e8449",
    "tensorstore": "#2471a3",
    "zarrista": "#7fb77e",
    "numcodecs": "#b7950b",
    "limit": "#000000",
    "nothing": "#d7dbdd",
}
OTHER = "#8e44ad"


def plots(results: Results, folder: Path) -> Iterator[tuple[str, Path]]:
    """Draw everything; yield a caption and a file for each picture."""
    folder.mkdir(parents=True, exist_ok=True)
    for caption, name, figure in _figures(results):
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=110)
        pyplot.close(figure)
        yield caption, path


def _figures(results: Results) -> Iterator[tuple[str, str, Figure]]:
    for suite in ("grid", "volumes", "latency"):
        cells = results.by_cell(suite)
        groups = list(dict.fromkeys((cell.data, cell.store, cell.cpus) for cell in cells))
        for data, store, cpus in groups[:1] if results.meta["quick"] else groups:
            chosen = {
                cell: rows for cell, rows in cells.items() if (cell.data, cell.store, cell.cpus) == (data, store, cpus)
            }
            known = [one for one in summaries(results, suite) if one.cell in chosen]
            what, name = f"{data}, {store}, {cpus} CPU{'s' if cpus > 1 else ''}", f"{suite}-{data}-{store}-{cpus}"
            if known:
                yield f"How many times as fast as others: {what}", f"{name}-ratios", _ratios(known)
            yield f"Times: {what}", f"{name}-times", _times(results, chosen)
    if sweep := results.by_cell("sweep"):
        yield "Time for each inner chunk of one shard in memory", "sweep", _sweep(sweep)
    if crops := results.by_cell("crops"):
        yield "Random crops from local shards", "crops", _bars(crops, "seconds")
    if memory := results.by_cell("memory"):
        yield (
            "Anonymous memory, in units of the result (reads) or of a shard (writes)",
            "memory",
            _bars(memory, "memory"),
        )


def _ratios(known: list[Summary]) -> Figure:
    layouts = list(dict.fromkeys(one.cell.layout for one in known))
    operations = list(dict.fromkeys(one.cell.operation for one in known))
    figure, axes = pyplot.subplots(1, 3, figsize=(16, 1.6 + 0.45 * len(layouts)), layout="constrained", sharey=True)
    titles = ("the best of all", "the best other zarr-python pipeline", "zarr-python's default pipeline")
    for axis, title, name in zip(axes, titles, ("ratio", "pipeline_ratio", "default_ratio"), strict=True):
        values = np.full((len(layouts), len(operations)), np.nan)
        for one in known:
            value = getattr(one, name)
            if value is not None:
                values[layouts.index(one.cell.layout), operations.index(one.cell.operation)] = value
        _heat(axis, values)
        axis.set_title(f"times as fast as {title}", fontsize=10)
        axis.set_xticks(range(len(operations)), operations, rotation=35, ha="right", fontsize=8)
        axis.set_yticks(range(len(layouts)), layouts, fontsize=9)
    return figure


def _heat(axis: Any, values: Any) -> None:
    """Red where we are behind, blue where we are ahead, on a scale of factors."""
    axis.imshow(np.log2(values), cmap="RdBu", norm=TwoSlopeNorm(0, -2, 4), aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            colour = "white" if value > 5 or value < 0.4 else "black"
            axis.text(
                column,
                row,
                f"{value:.2f}" if value < 10 else f"{value:.0f}",
                ha="center",
                va="center",
                fontsize=8,
                color=colour,
            )


def _times(results: Results, cells: dict[Cell, dict[str, Row]]) -> Figure:
    layouts = list(dict.fromkeys(cell.layout for cell in cells))
    columns = min(len(layouts), 4)
    lines = -(-len(layouts) // columns)
    size = (4.2 * columns, 0.9 + 3.1 * lines)
    figure, axes = pyplot.subplots(lines, columns, figsize=size, layout="constrained", squeeze=False, sharey=True)
    for axis, layout in zip(axes.flat, layouts, strict=False):
        _one_layout(axis, {cell.operation: rows for cell, rows in cells.items() if cell.layout == layout})
        axis.set_title(layout, fontsize=10)
    for axis in axes.flat[len(layouts) :]:
        axis.axis("off")
    names = [name for name in results.contenders if any(name in rows for rows in cells.values())]
    marks = [Line2D([], [], marker=_mark(name), color=_colour(name), linestyle="", label=name) for name in names]
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), fontsize=8)
    return figure


def _one_layout(axis: Any, by_operation: dict[str, dict[str, Row]]) -> None:
    for line, rows in enumerate(by_operation.values()):
        for name, row in rows.items():
            axis.plot(row.seconds * 1e3, -line, marker=_mark(name), color=_colour(name), markersize=6, alpha=0.9)
    axis.set_yticks([-line for line in range(len(by_operation))], list(by_operation), fontsize=8)
    axis.set_xscale("log")
    axis.set_xlabel("ms", fontsize=8)
    axis.grid(visible=True, axis="both", alpha=0.25)


def _sweep(cells: dict[Cell, dict[str, Row]]) -> Figure:
    operations = list(dict.fromkeys(cell.operation for cell in cells))
    size = (5 * len(operations), 4)
    figure, axes = pyplot.subplots(1, len(operations), figsize=size, layout="constrained", squeeze=False)
    for axis, operation in zip(axes.flat, operations, strict=True):
        lines: dict[str, list[tuple[float, float]]] = {}
        for cell, rows in cells.items():
            for name, row in rows.items() if cell.operation == operation else ():
                count = row.extra["inner_chunks"]
                lines.setdefault(name, []).append((count, row.seconds / count * 1e6))
        for name, points in lines.items():
            axis.plot(*zip(*points, strict=True), marker=_mark(name), color=_colour(name), label=name)
        axis.set(title=operation, xscale="log", yscale="log", xlabel="inner chunks in the shard", ylabel="µs for each")
        axis.grid(visible=True, alpha=0.25)
    axes.flat[0].legend(fontsize=8)
    return figure


def _bars(cells: dict[Cell, dict[str, Row]], what: str) -> Figure:
    figure, axes = pyplot.subplots(
        len(cells), 1, figsize=(9, 0.6 + sum(0.5 + 0.25 * len(rows) for rows in cells.values())), layout="constrained",
        squeeze=False, height_ratios=[2 + len(rows) for rows in cells.values()],
    )  # fmt: skip
    for axis, (cell, rows) in zip(axes.flat, cells.items(), strict=True):
        values = [row.seconds if what == "seconds" else row.extra["anon"] / row.extra["unit"] for row in rows.values()]
        bars = axis.barh(list(rows), values, color=[_colour(name) for name in rows])
        axis.bar_label(bars, fmt="%.3g", fontsize=8, padding=3)
        axis.margins(x=0.1)
        axis.invert_yaxis()
        axis.set_title(f"{cell.data}, {cell.layout}, {cell.operation}{' (s)' if what == 'seconds' else ''}", fontsize=9)
        axis.tick_params(labelsize=8)
    return figure


def _colour(name: str) -> str:
    return COLOURS.get(name, OTHER)


def _mark(name: str) -> str:
    if name.startswith("ours"):
        return "D"
    return "|" if name in ("limit", "nothing") else "o"
