"""Merged requests answer exactly the needs they were made of."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from chunkwright.needs import NEED, RANGE, SUFFIX, WHOLE, coalesce

ranges = st.tuples(st.integers(0, 2), st.integers(0, 200), st.integers(1, 40))


@given(st.lists(ranges, max_size=20), st.integers(0, 30), st.integers(1, 120))
def test_every_need_gets_its_own_bytes(rows: list[tuple[int, int, int]], gap: int, size: int) -> None:
    objects = [np.random.default_rng(seed).bytes(300) for seed in range(3)]
    needs = np.array([(i, c, RANGE, s, s + n) for i, (c, s, n) in enumerate(rows)], NEED)
    fetches = coalesce(needs, max_gap=gap, max_size=size)
    answered: dict[int, bytes] = {}
    for number in range(len(fetches)):
        start, stop = int(fetches.start[number]), int(fetches.stop[number])
        ids, buffers = fetches.buffers(number, objects[int(fetches.chunk[number])][start:stop])
        assert len(ids) == 1 or stop - start <= size or len(set(needs["start"][ids])) < len(ids)
        answered |= {int(i): bytes(view) for i, view in zip(ids, buffers.views(), strict=True) if view is not None}
    assert answered == {i: objects[c][s : s + n] for i, (c, s, n) in enumerate(rows)}


def test_ranges_within_the_gap_are_one_request() -> None:
    needs = np.array([(0, 0, RANGE, 0, 4), (1, 0, RANGE, 8, 12), (2, 0, RANGE, 17, 20)], NEED)
    fetches = coalesce(needs, max_gap=4)
    assert list(zip(fetches.start.tolist(), fetches.stop.tolist(), strict=True)) == [(0, 12), (17, 20)]


def test_a_merged_range_is_no_longer_than_allowed() -> None:
    needs = np.array([(i, 0, RANGE, 10 * i, 10 * i + 10) for i in range(10)], NEED)
    fetches = coalesce(needs, max_gap=0, max_size=30)
    assert (fetches.stop - fetches.start).tolist() == [30, 30, 30, 10]


def test_a_range_inside_another_is_part_of_it() -> None:
    needs = np.array([(0, 0, RANGE, 0, 100), (1, 0, RANGE, 10, 20), (2, 0, RANGE, 90, 120)], NEED)
    fetches = coalesce(needs)
    assert (fetches.start.tolist(), fetches.stop.tolist()) == ([0], [120])


def test_suffixes_and_wholes_stand_alone() -> None:
    needs = np.array([(0, 0, WHOLE, 0, 0), (1, 0, SUFFIX, 0, 20), (2, 0, RANGE, 0, 5), (3, 1, WHOLE, 0, 0)], NEED)
    fetches = coalesce(needs, max_gap=1000)
    assert sorted(fetches.kind.tolist()) == [RANGE, SUFFIX, WHOLE, WHOLE]


def test_a_missing_object_is_missing_for_all_its_needs() -> None:
    needs = np.array([(0, 0, RANGE, 0, 4), (1, 0, RANGE, 4, 12)], NEED)
    ids, buffers = coalesce(needs).buffers(0, None)
    assert ids.tolist() == [0, 1]
    assert buffers.missing.all()


def test_a_short_answer_is_cut_not_read_past() -> None:
    needs = np.array([(0, 0, RANGE, 0, 4), (1, 0, RANGE, 4, 12)], NEED)
    _, buffers = coalesce(needs).buffers(0, b"123456")
    assert buffers.length.tolist() == [4, 2]


def test_no_needs_are_no_requests() -> None:
    assert len(coalesce(np.empty(0, NEED))) == 0
