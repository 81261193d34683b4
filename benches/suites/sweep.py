"""One shard with more and more inner chunks: the time for each should stay the same.

Inner chunks are tiny, 4³ elements, so that what a chunk costs beside its compression is what is seen. A contender that
took longer than a second is left out of the larger shards.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benches.data import DataSet, make_data
from benches.layouts import Layout
from benches.operations import Operation, standard_operations
from benches.places import MemoryPlace, Place, stored
from benches.session import Entrant, Session, assert_equal
from benches.trial import Trial

__all__ = ("run_sweep",)

INNER = 4
# 8, 64, 512, 4096, 32768 and 262144 inner chunks.
EDGES = (8, 16, 32, 64, 128, 256)
OPERATIONS = ("read all", "read plane, first axis", "write all")
TOO_LONG = 1.0


def run_sweep(session: Session) -> None:
    """Photon counts in one shard in memory."""
    if session.data("photons") is None or not session.stores(["memory"]):
        return
    slow: set[str] = set()
    for edge in EDGES[:3] if session.options.quick else EDGES:
        _run_shard(session, make_data("photons", edge), Layout(INNER, "zstd", edge), slow)


def _run_shard(session: Session, data: DataSet, layout: Layout, slow: set[str]) -> None:
    who = [one for one in session.contenders(("ours", "pipeline", "rival")) if one.name not in slow]
    base = stored(layout, data)
    place = MemoryPlace.of(base.folder)
    base.remove()
    entrants = session.open_copies(layout.name, who, place)
    for operation in session.operations(standard_operations(data)):
        if operation.name in OPERATIONS:
            _run_operation(session, entrants, place, operation, data, layout)
    for entrant in entrants:
        entrant.discard()
    slow |= {row.contender for row in session.results.rows if row.cell.suite == "sweep" and row.seconds > TOO_LONG}


def _run_operation(
    session: Session, entrants: list[Entrant], place: Place, operation: Operation, data: DataSet, layout: Layout
) -> None:
    trial = Trial(session, session.cell("sweep", data.name, place.kind, layout.name, operation.name))
    inner_chunks = (data.edge // INNER) ** data.values.ndim
    for entrant in entrants:
        check = partial(_check, entrant, operation, data, inner_chunks)
        trial.enter(entrant.contender, partial(_do, entrant, operation), check)
    trial.run()


def _check(
    entrant: Entrant, operation: Operation, data: DataSet, inner_chunks: int, found: list[Any]
) -> dict[str, float]:
    expected = operation.expected(data.values)
    if operation.writes:
        found, expected = entrant.opened.read_many(operation.calls), list(operation.values)
    for one, wanted in zip(found, expected, strict=True):
        assert_equal(one, wanted)
    return {"inner_chunks": inner_chunks}


def _do(entrant: Entrant, operation: Operation) -> list[Any]:
    if not operation.writes:
        return entrant.opened.read_many(operation.calls)
    for call, values in zip(operation.calls, operation.values, strict=True):
        entrant.opened.write(call, values)
    return []
