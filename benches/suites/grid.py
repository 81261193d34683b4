"""The grid: layouts x operations x stores, all contenders in each cell."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from numpy.typing import NDArray

from benches.data import DataSet
from benches.layouts import EXTRA, SHARDED, STRINGS, SYNTHETIC, Layout
from benches.operations import Call, Operation, standard_operations
from benches.places import PLACES, Place, stored
from benches.results import Cell
from benches.session import Entrant, Session, assert_equal
from benches.trial import Trial

__all__ = ("run_grid", "run_volumes")

LOCAL = ("local", "memory")
# Stores that are measured for the sharded layouts alone.
OTHERS = ("obstore", "fsspec", "zip")


def run_grid(session: Session) -> None:
    """Photon counts: every layout on local files and in memory, shards on the other stores too."""
    data = session.data("photons")
    if data is None:
        return
    sharded = session.layouts(SHARDED)
    for layout in session.layouts(SYNTHETIC):
        _run_layout(session, "grid", data, layout, LOCAL + (OTHERS if layout in sharded else ()))


def run_volumes(session: Session) -> None:
    """The brain, floating-point numbers and strings, on local files and in memory."""
    for name in ("brain", "float32", "strings"):
        data = session.data(name)
        if data is not None:
            for layout in session.layouts(STRINGS if name == "strings" else EXTRA):
                _run_layout(session, "volumes", data, layout, LOCAL)


def _run_layout(session: Session, suite: str, data: DataSet, layout: Layout, stores: Sequence[str]) -> None:
    chosen = session.stores(stores)
    if not chosen:
        return
    session.progress.now(f"writing {data.name}, {layout.name}")
    base = stored(layout, data)
    try:
        for store in chosen:
            _run_store(session, suite, data, layout, PLACES[store].of(base.folder))
    finally:
        base.remove()


def _run_store(session: Session, suite: str, data: DataSet, layout: Layout, place: Place) -> None:
    operations = session.operations(standard_operations(data))
    reads = [operation for operation in operations if not operation.writes]
    writes = [operation for operation in operations if operation.writes]
    name = partial(session.cell, suite, data.name, place.kind, layout.name)
    try:
        if reads:
            entrants = session.open(name("open"), session.contenders(), place)
            for operation in reads:
                _run_read(session, name(operation.name), entrants, operation, operation.expected(data.values))
            for entrant in entrants:
                entrant.opened.close()
        if writes and not place.read_only:
            entrants = session.open_copies(name("open"), session.contenders(), place)
            state = data.values.copy()
            for operation in writes:
                operation.apply(state)
                _run_write(session, name(operation.name), entrants, operation, state)
            for entrant in entrants:
                entrant.discard()
    finally:
        place.remove()


def _run_read(
    session: Session, cell: Cell, entrants: list[Entrant], operation: Operation, expected: list[NDArray[Any]]
) -> None:
    trial = Trial(session, cell)
    for entrant in entrants:
        compared = expected if entrant.contender.role != "nothing" else []
        action = partial(entrant.opened.read_many, operation.calls)
        trial.enter(entrant.contender, action, partial(_check_read, compared))
    trial.run()


def _check_read(expected: list[NDArray[Any]], found: list[NDArray[Any]]) -> None:
    for one, wanted in zip(found, expected, strict=bool(expected)):
        assert_equal(one, wanted)


def _run_write(
    session: Session, cell: Cell, entrants: list[Entrant], operation: Operation, state: NDArray[Any]
) -> None:
    trial = Trial(session, cell)
    for entrant in entrants:
        trial.enter(entrant.contender, partial(_write, entrant, operation), partial(_check_write, entrant, state))
    # What one contender leaves to be written to disk must not be charged to the next.
    flushes = bool(entrants) and entrants[0].place.kind != "memory"
    trial.run(before=os.sync if flushes else lambda: None)


def _write(entrant: Entrant, operation: Operation) -> None:
    for call, values in zip(operation.calls, operation.values, strict=True):
        entrant.opened.write(call, values)


def _check_write(entrant: Entrant, state: NDArray[Any], _: None) -> None:
    """Compare what is now stored, read by zarr where it can be."""
    if entrant.contender.role == "nothing":
        return
    if entrant.opened.in_place:
        assert_equal(entrant.place.read_back(), state)
    else:
        assert_equal(entrant.opened.read(Call.of_everything(state.ndim)), state)
