"""The HTML page: verdicts, pictures, tables, what was left out, and what the run was made on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from benches.report.tables import Table
from benches.report.verdicts import Verdict
from benches.results import Results

__all__ = ("page",)

STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #1e8449; --bad: #b03a2e; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1240px; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
figure { margin: 1.5rem 0; } img { max-width: 100%; background: white; border-radius: 4px; }
figcaption { font-size: 13px; opacity: .8; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font: 12px/1.35 ui-monospace, monospace; white-space: nowrap; }
th, td { padding: 2px 9px; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
.good::before { content: "reached "; color: var(--good); font-weight: 600; }
.bad::before { content: "not reached "; color: var(--bad); font-weight: 600; }
li { margin: .3rem 0; } details { margin: .3rem 0; font-size: 13px; }
"""


def page(
    results: Results, judged: Sequence[Verdict], pictures: Iterable[tuple[str, Path]], all_tables: Iterable[Table]
) -> str:
    """Return the page; pictures are named relative to where it will be."""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>chunkwright benchmarks</title>",
        f"<style>{STYLE}</style><h1>chunkwright benchmarks</h1>",
        _about(results),
        "<h2>What was aimed at</h2><ul>",
        *(_verdict(one) for one in judged),
        "</ul><h2>Pictures</h2>",
        *(_figure(caption, path) for caption, path in pictures),
        "<h2>Tables</h2>",
        *(_table(table) for table in all_tables),
        _notes("Left out", results.skipped),
        _notes("Failures", results.failures),
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def _about(results: Results) -> str:
    meta = results.meta
    libraries = ", ".join(f"{name} {version}" for name, version in meta["libraries"].items())
    kind = " Quick run on tiny arrays: the times mean nothing." if meta["quick"] else ""
    text = (
        f"Commit {meta['commit']}, {meta['time']}. {meta['cpus']} CPUs ({meta['processor']}), "
        f"{meta['memory_gib']} GiB, {meta['system']}. {libraries}.{kind}"
    )
    how = (
        "Everyone reads and writes the same bytes in one process, taking turns; results are compared bit by bit first. "
        "Times are medians. The limit is C libraries and copies on all cores plus what zarr-python costs by itself."
    )
    return f"<p>{escape(text)}</p><p>{escape(how)}</p>"


def _verdict(verdict: Verdict) -> str:
    short = "".join(f"<li>{escape(line)}</li>" for line in verdict.short)
    more = f"<details><summary>{len(verdict.short)} cells</summary><ul>{short}</ul></details>" if short else ""
    kind = "good" if verdict.reached else "bad"
    return f"<li><span class='{kind}'></span>{escape(verdict.aim)}: <b>{escape(verdict.found)}</b>{more}</li>"


def _figure(caption: str, path: Path) -> str:
    text = escape(caption)
    return (
        f"<figure><img src='{escape(path.name)}' alt='{text}' loading='lazy'><figcaption>{text}</figcaption></figure>"
    )


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    return f"<h3>{escape(table.title)}</h3><div class='scroll'><table><tr>{head}</tr>{body}</table></div>"


def _notes(title: str, notes: Sequence[tuple[str, str, str]]) -> str:
    if not notes:
        return ""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for what, who, why in notes:
        by_reason.setdefault((who, why), []).append(what)
    lines = (_note(who, why, named) for (who, why), named in by_reason.items())
    return f"<h2>{title}</h2><ul>{''.join(lines)}</ul>"


def _note(who: str, why: str, named: Sequence[str]) -> str:
    cells = f"<details><summary>{len(named)} cells</summary>{escape('; '.join(named))}</details>"
    return f"<li>{escape(who)}: {escape(why)}{cells}</li>"
