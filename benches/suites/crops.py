"""A thousand random boxes of one size, as a loader of training data reads them.

Whoever has an interface for many boxes uses it: ours reads them as one plan into one array, tensorstore gets all
its futures at once, zarrista as many calls at a time as there are CPUs. zarr-python makes one call after the other;
so does ours, as ``... by calls``, to show what the interface is worth.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benches.data import DataSet
from benches.layouts import SHARDED, Layout
from benches.operations import Call, random_boxes
from benches.places import stored
from benches.session import Entrant, Session, assert_equal

__all__ = ("run_crops",)


def run_crops(session: Session) -> None:
    """Photon counts and the brain, in shards on local files."""
    for name in ("photons", "brain"):
        data = session.data(name)
        if data is None or not session.stores(["local"]):
            continue
        for layout in session.layouts(SHARDED[1:2]):
            _run_layout(session, data, layout)


def _run_layout(session: Session, data: DataSet, layout: Layout) -> None:
    count, size = (50, 16) if session.options.quick else (1000, 64)
    calls = random_boxes(data.values.shape, size, count)
    cell = session.cell("crops", data.name, "local", layout.name, f"{count} crops of {size}³")
    base = stored(layout, data)
    try:
        entrants = session.open(cell, session.contenders(("ours", "pipeline", "rival")), base)
        actions: dict[str, Callable[[], Any]] = {}
        for entrant in entrants:
            actions |= _actions(session, cell, entrant, calls, data)
        session.time(cell, actions)
        for entrant in entrants:
            entrant.opened.close()
    finally:
        base.remove()


def _actions(
    session: Session, cell: Any, entrant: Entrant, calls: tuple[Call, ...], data: DataSet
) -> dict[str, Callable[[], Any]]:
    """Return the ways of an entrant to read the boxes, checked."""
    name, opened = entrant.contender.name, entrant.opened
    ways = {name: opened.read_boxes}
    if entrant.contender.role == "ours":
        ways[f"{name}, by calls"] = opened.read_many
        session.results.contenders[f"{name}, by calls"] = {**session.results.contenders[name], "role": "ours by calls"}
    actions: dict[str, Callable[[], Any]] = {}
    for label, read in ways.items():
        session.progress.now(f"{cell}: checking {label}")
        with session.guard(cell, entrant.contender):
            for found, call in zip(read(calls), calls, strict=True):
                assert_equal(found, call.of(data.values))
            actions[label] = partial(read, calls)
    return actions
