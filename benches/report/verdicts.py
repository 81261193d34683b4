"""What the project set out to reach, and whether it was.

Each verdict says what was aimed at, what was found, and in which cells it fell short, with the cause.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from benches.report.causes import cause_of
from benches.report.ratios import DEFAULT, DIRECT, FUSED, Summary, geometric_mean, has_small_chunks, summaries
from benches.results import Results, Row

__all__ = ("Verdict", "verdicts")

# A few shards: those that are encoded at a time, those that are written, and what is gathered.
FEW_SHARDS = 8


@attrs.frozen
class Verdict:
    """One aim: what was found, whether that is enough, and where it is not."""

    aim: str
    found: str
    reached: bool
    short: tuple[str, ...] = ()


def verdicts(results: Results) -> list[Verdict]:
    """Judge everything that was measured on all CPUs; ours is the pipeline unless a verdict says something else."""
    most = max((row.cell.cpus for row in results.rows), default=1)
    whole = attrs.evolve(results, rows=[row for row in results.rows if row.cell.cpus == most])
    return [*_local(whole), *_memory_store(whole), *_other_stores(whole), *_latency(whole), *_rest(whole)]


def _local(results: Results) -> Iterator[Verdict]:
    """Through zarr-python's arrays, and through ours."""
    yield from _local_cells(summaries(results, "grid", store="local"), "local")
    yield from _local_cells(summaries(results, "grid", ours=DIRECT, store="local"), "local, DirectArray")


def _local_cells(found: list[Summary], where: str) -> Iterator[Verdict]:
    cells = [one for one in found if one.ratio is not None]
    if not cells:
        return
    behind = [one for one in cells if not _is_ahead(one)]
    need = math.ceil(len(cells) * 50 / 56)
    ahead = len(cells) - len(behind)
    text = f"{where}: ahead of the best of all in {need} of {len(cells)} cells (from 0.95 on where the limit is near)"
    yield Verdict(text, f"{ahead} ahead", ahead >= need, tuple(_line(one, one.ratio) for one in behind))
    far = [one for one in cells if (one.ratio or 0) < 0.9 and not _is_at_limit(one)]
    text = f"{where}: no cell below 0.9 of the best, except where the limit is; there within 1.25 times the limit"
    yield Verdict(text, f"{len(far)} below", not far, tuple(_line(one, one.ratio) for one in far))
    for name, least, mean in (
        ("the best of all", 1.25, geometric_mean(one.ratio for one in cells)),
        ("the best zarr-python pipeline", 2.2, geometric_mean(one.pipeline_ratio for one in cells)),
        ("zarr-python's default", 6.0, geometric_mean(one.default_ratio for one in cells)),
    ):
        if mean is not None:
            text = f"{where}: on geometric average at least {least} times as fast as {name}"
            yield Verdict(text, f"{mean:.2f} times", mean >= least)


def _is_ahead(one: Summary) -> bool:
    assert one.best is not None
    near = one.limit is not None and one.limit > 0.95 * one.best
    return one.best / one.ours >= (0.95 if near else 1.0)


def _is_at_limit(one: Summary) -> bool:
    if one.limit is None or one.best is None or one.limit_ratio is None:
        return False
    return one.best / one.limit < 0.9 and one.limit_ratio <= 1.25


def _memory_store(results: Results) -> Iterator[Verdict]:
    """Through zarr-python's arrays, and through ours."""
    yield from _memory_cells(summaries(results, "grid", store="memory"), "memory")
    yield from _memory_cells(summaries(results, "grid", ours=DIRECT, store="memory"), "memory, DirectArray")


def _memory_cells(found: list[Summary], where: str) -> Iterator[Verdict]:
    cells = [one for one in found if one.pipeline_ratio is not None]
    if not cells:
        return
    chosen = [one for one in cells if "/" in one.cell.layout or has_small_chunks(one.cell.layout)]
    yield _at_least(chosen, 3, where)
    slow = [one for one in cells if (one.pipeline_ratio or 0) < 0.95]
    text = f"{where}: no cell below 0.95 of the best zarr-python pipeline"
    yield Verdict(text, f"{len(slow)} below", not slow, tuple(_line(one, one.pipeline_ratio) for one in slow))


def _other_stores(results: Results) -> Iterator[Verdict]:
    for store in ("obstore", "fsspec", "zip"):
        cells = [one for one in summaries(results, "grid", store=store) if one.pipeline_ratio is not None]
        if cells:
            yield _at_least(cells, 2, store)


def _at_least(cells: list[Summary], least: float, store: str) -> Verdict:
    allowed = [one for one in cells if one.limit is not None and (one.pipeline or 0) >= least * 1.2 * one.limit]
    short = [one for one in allowed if (one.pipeline_ratio or 0) < least]
    what = "in shards and small chunks, where 1.2 times the limit allows it"
    text = f"{store}: at least {least} times as fast as the best zarr-python pipeline {what}"
    found = f"{len(allowed) - len(short)} of the {len(allowed)} cells that allow it"
    return Verdict(text, found, not short, tuple(_line(one, one.pipeline_ratio) for one in short))


def _latency(results: Results) -> Iterator[Verdict]:
    more: list[str] = []
    late: list[str] = []
    total = 0
    for cell, rows in results.by_cell("latency").items():
        mine = _ours(results, rows)
        if mine is None or DEFAULT not in rows:
            continue
        total += 1
        default = rows[DEFAULT]
        more += [
            f"{cell}: {mine.extra[what]:.0f} {what}, zarr's default {default.extra[what]:.0f}"
            for what in ("requests", "nbytes")
            if mine.extra[what] > default.extra[what]
        ]
        bound = 1.2 * (mine.extra["rounds"] * mine.extra["latency"] + mine.extra["memory_seconds"])
        if mine.seconds > bound:
            late.append(f"{cell}: {mine.seconds * 1e3:.0f} ms, bound {bound * 1e3:.0f} ms")
    if total:
        text = "latency: no more requests and bytes than zarr-python's default pipeline"
        yield Verdict(text, f"{len(more)} more in {total} cells", not more, tuple(more))
        text = "latency: within 1.2 times the rounds that are needed and the time in memory"
        yield Verdict(text, f"{total - len(late)} of {total} cells", not late, tuple(late))


def _rest(results: Results) -> Iterator[Verdict]:
    for cell, rows in results.by_cell("crops").items():
        mine = _ours(results, rows)
        if mine is not None and "tensorstore" in rows and cell.data == "photons":
            ratio = rows["tensorstore"].seconds / mine.seconds
            yield Verdict("crops: at least twice as fast as tensorstore", f"{ratio:.2f} times", ratio >= 2)
    yield from _portable(results)
    yield from _memory(results)


def _portable(results: Results) -> Iterator[Verdict]:
    name = "ours, numcodecs"
    slower, total = [], 0
    for cell, rows in results.by_cell("grid").items():
        if name in rows and FUSED in rows:
            total += 1
            ratio = rows[FUSED].seconds / rows[name].seconds
            if ratio < 1 / 1.1:
                slower.append(f"{cell}: {ratio:.2f}")
    if total:
        text = "with the numcodecs backend no cell is slower than FusedCodecPipeline by more than 10 %"
        yield Verdict(text, f"{len(slower)} of {total} slower", not slower, tuple(slower))


def _memory(results: Results) -> Iterator[Verdict]:
    for kind, most, text in (
        ("read", 1.15, "memory: a read needs at most 1.15 times its result"),
        ("write", FEW_SHARDS, f"memory: writes stay within {FEW_SHARDS} shards"),
    ):
        times = {
            f"{cell}, {name}": row.extra["anon"] / row.extra["unit"]
            for cell, rows in results.by_cell("memory").items()
            for name, row in rows.items()
            if cell.operation.startswith(kind) and results.role(name).startswith("ours")
        }
        above = tuple(f"{cell}: {found:.2f}" for cell, found in times.items() if found > most)
        if times:
            yield Verdict(text, f"at most {max(times.values()):.2f} times", not above, above)


def _ours(results: Results, rows: dict[str, Row]) -> Row | None:
    return next((row for name, row in rows.items() if results.role(name) == "ours"), None)


def _line(one: Summary, ratio: float | None) -> str:
    limit = "" if one.limit is None else f", limit {one.limit * 1e3:.3g} ms"
    best = "" if one.best is None else f", {one.best_name} {one.best * 1e3:.3g} ms"
    line = f"{one.cell}: {ratio or 0:.2f} (ours {one.ours * 1e3:.3g} ms{best}{limit})"
    cause = cause_of(one.cell, one.who)
    return f"{line}: {cause}" if cause else line
