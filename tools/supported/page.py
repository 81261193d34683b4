"""Lay the rows out as tables, and put them between the markers of the page.

A marker is a comment: what follows ``<!-- table: NAME -->`` up to ``<!-- end -->`` is the table of that name. Wrong
values are never put down as a fact: they are an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from chunkwright import Backend, ReferenceBackend
from chunkwright_numcodecs import NumcodecsBackend
from chunkwright_rust import RustBackend
from tools.supported import codecs, dtypes

__all__ = ("filled", "tables")

MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """Return the page with every table made anew.

    Parameters
    ----------
    page
        Its text.
    """
    made = tables()
    if sorted(found[1] for found in MARKED.findall(page)) != sorted(made):
        raise ValueError(f"the page must have the markers of {', '.join(made)}, each once")
    after = MARKED.sub(lambda found: f"{found[1]}\n{made[found[2]]()}\n{found[3]}", page)
    wrong = [line for line in after.splitlines() if codecs.WRONG in line]
    if wrong:
        raise ValueError("\n".join(wrong))
    return after


def tables() -> dict[str, Callable[[], str]]:
    """Return what makes each table, by name."""
    backends: list[Backend] = [RustBackend(), NumcodecsBackend()]
    names = [f"`{backend.name}`" for backend in backends]
    columns = [f"{name} {what}" for name in names for what in ("by", "decodes", "encodes")]
    codec = ["codec", "kind", "elements", *columns]
    versions = [f"Zarr {version}, {name}" for version in ("v2", "v3") for name in names]
    return {
        "v3-codecs": lambda: _table(codec, codecs.v3_rows(backends)),
        "reference-codecs": lambda: f"{', '.join(codecs.run_by(ReferenceBackend()))}.\n",
        "v2-codecs": lambda: _table(codec, codecs.v2_rows(backends)),
        "data-types": lambda: _table(["data type", "tried as", *versions], dtypes.zarr_rows(backends)),
        "embedder-data-types": lambda: _table(["data type", "given as", *names], dtypes.embedder_rows(backends)),
    }


def _table(header: list[str], rows: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"{line}\n" for line in _lines(header, rows))


def _lines(header: list[str], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{' --- |' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '\\|') for cell in row)} |"
