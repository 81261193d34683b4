"""Shards on a store that answers each request after 20 ms: how often it is asked, for how much, and how long it takes.

Beside its time, each contender's row holds the requests, the bytes that were answered, the rounds of dependent
requests that it cannot do without (a call that makes more requests of one kind than may be under way at a time needs
several), and its time for the same on a store in memory.
"""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

import zarr
from numpy.typing import NDArray

from benches.data import DataSet
from benches.latency import LatencyStore
from benches.layouts import SHARDED, Layout
from benches.measure import take_turns
from benches.operations import Operation, standard_operations
from benches.places import LatencyPlace, MemoryPlace, stored
from benches.rivals import Role
from benches.session import Entrant, Session, assert_equal
from benches.trial import Trial

__all__ = ("run_latency",)

ROLES: tuple[Role, ...] = ("ours", "pipeline")
QUICK_LATENCY = 0.001


def run_latency(session: Session) -> None:
    """Photon counts in shards."""
    data = session.data("photons")
    if data is None or not session.stores(["latency"]):
        return
    LatencyPlace.latency = QUICK_LATENCY if session.options.quick else LatencyPlace.latency
    for layout in session.layouts(SHARDED):
        base = stored(layout, data)
        try:
            _run_layout(session, data, layout, LatencyPlace.of(base.folder), MemoryPlace.of(base.folder))
        finally:
            base.remove()


def _run_layout(session: Session, data: DataSet, layout: Layout, late: LatencyPlace, memory: MemoryPlace) -> None:
    what = f"{layout.name} | latency"
    entrants = session.open_copies(what, session.contenders(ROLES), late)
    nearby = session.open_copies(what, session.contenders(ROLES), memory)
    state = data.values.copy()
    for operation in session.operations(standard_operations(data)):
        session.progress.now(f"{what} | {operation.name}")
        if operation.writes:
            operation.apply(state)
        near = take_turns({one.contender.name: partial(_do, one, operation) for one in nearby}, session.budget)
        trial = Trial(session, session.cell("latency", data.name, "latency", layout.name, operation.name))
        for entrant in entrants:
            _store(entrant).forget()
            in_memory = statistics.median(near[entrant.contender.name])
            check = partial(_check, entrant, operation, state, in_memory)
            trial.enter(entrant.contender, partial(_do, entrant, operation), check)
        trial.run()
    for entrant in (*entrants, *nearby):
        entrant.discard()


def _do(entrant: Entrant, operation: Operation) -> list[Any]:
    """Carry an operation out, call by call."""
    place = entrant.place
    results = []
    for number, call in enumerate(operation.calls):
        if isinstance(place, LatencyPlace):
            place.latency_store.next_call()
        if operation.writes:
            entrant.opened.write(call, operation.values[number])
        else:
            results.append(entrant.opened.read(call))
    return results


def _store(entrant: Entrant) -> LatencyStore:
    assert isinstance(entrant.place, LatencyPlace)
    return entrant.place.latency_store


def _check(
    entrant: Entrant, operation: Operation, state: NDArray[Any], in_memory: float, found: list[Any]
) -> dict[str, float]:
    """Check what was done, and return what was counted meanwhile."""
    store = _store(entrant)
    rounds = store.rounds(zarr.config.get("async.concurrency"))
    if operation.writes:
        assert_equal(entrant.place.read_back(), state)
    for one, wanted in zip(found, operation.expected(state), strict=not operation.writes):
        assert_equal(one, wanted)
    return {
        "requests": store.requests,
        "nbytes": store.nbytes,
        "rounds": rounds,
        "latency": store.latency,
        "memory_seconds": in_memory,
    }
