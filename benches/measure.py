"""Taking times: contenders take turns, and a time is the median over the rounds.

In each round another contender comes first. Those that are slow take part in fewer rounds, spread over all of them,
so that one of them does not use up the time for the others; those that are fast are called several times in
each turn, since a clock is not worth much below a millisecond. What they return is released outside the time.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs

__all__ = ("QUICK", "Budget", "take_turns")


@attrs.frozen
class Budget:
    """How much time goes into one cell.

    ``seconds`` is shared out evenly among the contenders; each has at least ``least`` and at most ``most`` turns, and
    is called until ``sample`` seconds have passed in a turn.
    """

    seconds: float = 4.0
    least: int = 3
    most: int = 15
    sample: float = 0.005

    def turns(self, took: float, contenders: int) -> tuple[int, int]:
        """Return how many turns a contender gets, and how many calls in each, after a first call that took so long."""
        calls = max(1, min(int(self.sample / max(took, 1e-7)), 1000))
        turns = int(self.seconds / contenders / (took * calls))
        return max(self.least, min(turns, self.most)), calls


QUICK = Budget(seconds=0, least=1, most=1, sample=0)


def take_turns(
    actions: Mapping[str, Callable[[], Any]], budget: Budget, *, before: Callable[[], object] = lambda: None
) -> dict[str, list[float]]:
    """Return the seconds of one call, one for each turn, for each contender; ``before`` is called before each turn."""
    if budget.most == 1:
        plans = dict.fromkeys(actions, (1, 1))
    else:
        plans = {name: budget.turns(_timed(action, 1), len(actions)) for name, action in actions.items()}
    rounds = max((turns for turns, _ in plans.values()), default=0)
    times: dict[str, list[float]] = {name: [] for name in actions}
    names = list(actions)
    for number in range(rounds):
        if rounds > 1:
            gc.collect()  # so that the garbage of a round is nobody's burden in the next
        for name in names[number % len(names) :] + names[: number % len(names)]:
            turns, calls = plans[name]
            if (number + 1) * turns // rounds > number * turns // rounds:
                before()
                times[name].append(_timed(actions[name], calls))
    return times


def _timed(action: Callable[[], Any], calls: int) -> float:
    total = 0.0
    for _ in range(calls):
        started = time.perf_counter()
        result = action()
        total += time.perf_counter() - started
        del result
    return total / calls
