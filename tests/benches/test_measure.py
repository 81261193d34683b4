"""How turns are shared out; nothing here depends on how long anything takes."""

from __future__ import annotations

from collections import Counter

from benches.measure import QUICK, Budget, take_turns


def test_a_quick_run_calls_everyone_once() -> None:
    calls: Counter[str] = Counter()
    times = take_turns({name: lambda name=name: calls.update([name]) for name in "abc"}, QUICK)  # type: ignore[misc]
    assert calls == Counter("abc")
    assert {name: len(samples) for name, samples in times.items()} == {"a": 1, "b": 1, "c": 1}


def test_everyone_gets_the_least_number_of_turns() -> None:
    times = take_turns({"a": int, "b": int}, Budget(seconds=0, least=4, most=9, sample=0))
    assert {name: len(samples) for name, samples in times.items()} == {"a": 4, "b": 4}


def test_what_must_happen_before_a_turn_happens_before_each() -> None:
    before: list[None] = []
    times = take_turns({"a": int, "b": int}, Budget(0, 3, 3, 0), before=lambda: before.append(None))
    assert len(before) == sum(map(len, times.values()))


def test_a_new_contender_comes_first_in_each_round() -> None:
    order: list[str] = []
    take_turns({name: lambda name=name: order.append(name) for name in "abc"}, Budget(0, 3, 3, 0))  # type: ignore[misc]
    assert "".join(order) == "abc" + "abc" + "bca" + "cab"  # the first three calls tell how long each takes


def test_slow_contenders_get_fewer_turns_and_fast_ones_several_calls_in_each() -> None:
    budget = Budget(seconds=10, least=3, most=15, sample=0.005)
    assert budget.turns(2.0, 2) == (3, 1)
    assert budget.turns(0.5, 2) == (10, 1)
    assert budget.turns(0.001, 2) == (15, 5)


def test_nobody_may_be_measured() -> None:
    assert take_turns({}, Budget()) == {}
