"""A thousand random boxes of one size, as a loader of training data reads them.

Whoever has an interface for many boxes uses it: ours reads them as one plan into one array, tensorstore gets all
its futures at once, zarrista as many calls at a time as there are CPUs. zarr-python makes one call after the other;
so does ours, as ``... by calls``, to show what the interface is worth. A loader of training data reads into the same
array again and again, and so does ours; as ``... new array`` it asks for half a gigabyte of new memory each time, which
takes as long as the system likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from benches.data import DataSet
from benches.layouts import SHARDED, Layout
from benches.operations import Call, random_boxes
from benches.places import stored
from benches.rivals.zarr_pipelines import OurArray
from benches.session import Entrant, Session, assert_equal
from benches.trial import Trial

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
        trial = Trial(session, cell)
        for entrant in entrants:
            _enter(trial, entrant, calls, data)
        trial.run()
        for entrant in entrants:
            entrant.opened.close()
    finally:
        base.remove()


def _enter(trial: Trial, entrant: Entrant, calls: tuple[Call, ...], data: DataSet) -> None:
    """Enter an entrant with each of its ways to read the boxes."""
    name, opened = entrant.contender.name, entrant.opened
    check = partial(_check, calls, data)
    trial.enter(entrant.contender, partial(opened.read_boxes, calls), check)
    if isinstance(opened, OurArray):
        known = trial.session.results.contenders
        for what, read in (("new array", opened.read_new_boxes), ("by calls", opened.read_many)):
            known[f"{name}, {what}"] = {**known[name], "role": f"ours {what}"}
            trial.enter(entrant.contender, partial(read, calls), check, name=f"{name}, {what}")


def _check(calls: tuple[Call, ...], data: DataSet, found: Sequence[Any]) -> None:
    for one, call in zip(found, calls, strict=True):
        assert_equal(one, call.of(data.values))
