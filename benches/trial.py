"""One cell: contenders enter with what they do, are checked, and take turns.

What a contender does first is checked, so that nobody is timed who is wrong; in a quick run that first time is all.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import attrs

from benches.measure import take_turns
from benches.results import Cell, Row
from benches.rivals import Contender
from benches.session import Session

__all__ = ("Trial",)


@attrs.define
class Trial:
    """Who takes part in a cell, by name."""

    session: Session
    cell: Cell
    actions: dict[str, Callable[[], Any]] = attrs.field(factory=dict)
    first: dict[str, list[float]] = attrs.field(factory=dict)
    extras: dict[str, dict[str, float]] = attrs.field(factory=dict)

    def enter(
        self,
        contender: Contender,
        action: Callable[[], Any],
        check: Callable[[Any], dict[str, float] | None],
        *,
        name: str | None = None,
    ) -> None:
        """Let a contender do something once, and take part if that passes the check.

        The check gets the result, raises if it is wrong, and may return what is to be kept beside the times.
        """
        name = name or contender.name
        self.session.progress.now(f"{self.cell}: checking {name}")
        with self.session.guard(self.cell, contender):
            started = time.perf_counter()
            found = action()
            took = time.perf_counter() - started
            self.extras[name] = check(found) or {}
            self.actions[name], self.first[name] = action, [took]

    def run(self, *, before: Callable[[], object] = lambda: None) -> None:
        """Let those who entered take turns, and keep and show their times."""
        self.session.progress.now(f"{self.cell}: timing {len(self.actions)} contenders")
        quick = self.session.options.quick
        times = self.first if quick else take_turns(self.actions, self.session.budget, before=before)
        for name, samples in times.items():
            self.session.results.rows.append(Row(self.cell, name, tuple(samples), self.extras[name]))
        medians = {name: statistics.median(samples) for name, samples in times.items()}
        shown = ", ".join(f"{name} {_duration(took)}" for name, took in sorted(medians.items(), key=itemgetter(1)))
        self.session.progress.done(f"{self.cell}: {shown}")


def _duration(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
