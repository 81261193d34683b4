"""Read plans ask for what is needed, in few rounds, and give the elements that NumPy would."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from chunkwright import CorruptChunkError, Entries, PlanError, SelectionError, ShardIndexError, entries_of, split
from chunkwright.needs import RANGE, SUFFIX, WHOLE
from tests.support.plans import CHAINS, DATA, LITTLE, SELECTIONS, Objects, expected, prepared, sharding


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
@pytest.mark.parametrize("name", CHAINS)
def test_a_partial_read_gives_what_numpy_gives(name: str, selection: Any) -> None:
    chain = prepared(CHAINS[name], DATA.shape)
    store = Objects([chain.encode(DATA)])
    want = expected(selection)
    got = store.read(chain.plan_read(selection), np.zeros(want.shape, "u2"))
    assert np.array_equal(got, want)


@pytest.mark.parametrize("name", CHAINS)
def test_missing_chunks_and_inner_chunks_hold_the_fill_value(name: str) -> None:
    chain = prepared(CHAINS[name], DATA.shape, fill=7)
    data = np.full_like(DATA, 7)
    data[4, 5] = 1
    store = Objects([chain.encode(data), None])
    entries = Entries.whole(DATA.shape, 2)
    plan = chain.plan_read(entries)
    got = store.read(plan, np.zeros((2, *DATA.shape), "u2"))
    assert np.array_equal(got[0], data)
    assert (got[1] == 7).all()
    assert plan.statuses.tolist() == [True, False]


@pytest.mark.parametrize("name", CHAINS)
def test_plans_do_not_mind_how_they_are_fed(name: str) -> None:
    chain = prepared(CHAINS[name], (6, 8))
    entries, shape = entries_of((slice(1, 11, 2), [14, 3, 3, 0, 9]), DATA.shape)
    parts = split(entries, (6, 8), (2, 2))
    cells = [DATA[6 * row : 6 * row + 6, 8 * column : 8 * column + 8] for row in range(2) for column in range(2)]
    store = Objects([chain.encode(cell) for cell in cells])
    store.items[2] = None
    data = DATA.copy()
    data[6:, :8] = 0
    want = data[1:11:2][:, [14, 3, 3, 0, 9]]
    number = parts.cell[parts.entries.chunk]
    for seed in range(12):
        chance = random.Random(seed)
        plan = chain.plan_read(parts.entries.with_chunk(number))
        out = np.zeros(shape, "u2")
        work = []
        while plan.needs.size:
            needs = plan.needs
            some = chance.sample(range(len(needs)), chance.randint(1, len(needs)))
            plan.feed(needs["id"][some], [store.answer(needs[row]) for row in some])
            while chance.random() < 0.5 and (ready := plan.take(chance.choice([1, 100, None]))):
                work.append(ready)
        while ready := plan.take(chance.choice([1, 64, None])):
            work.append(ready)
        chance.shuffle(work)
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda item, out=out: item.run(out), work))
        assert np.array_equal(out, want)
        assert plan.statuses.tolist() == [chunk != 2 for chunk in number.tolist()]


def test_a_shard_is_asked_for_its_index_then_for_the_touched_inner_chunks() -> None:
    chain = prepared([sharding((3, 4), [LITTLE])], DATA.shape)
    shard = chain.encode(DATA)
    plan = chain.plan_read((slice(0, 3), slice(0, 8)))
    assert plan.needs[["kind", "stop"]].tolist() == [(SUFFIX, 16 * 16 + 4)]
    plan.feed([0], [bytes(shard)[-(16 * 16 + 4) :]])
    assert plan.needs["kind"].tolist() == [RANGE, RANGE]
    assert (plan.needs["stop"] - plan.needs["start"]).tolist() == [24, 24]


def test_a_shard_is_asked_for_at_once_when_all_inner_chunks_are_touched() -> None:
    chain = prepared([sharding((3, 4))], DATA.shape)
    assert chain.plan_read(...).needs["kind"].tolist() == [WHOLE]
    assert chain.plan_read((slice(None), slice(0, 12))).needs["kind"].tolist() == [SUFFIX]
    assert chain.plan_read((slice(None), slice(0, 12)), whole_fraction=0.75).needs["kind"].tolist() == [WHOLE]


def test_each_inner_chunk_is_fetched_once_however_often_it_is_selected() -> None:
    chain = prepared([sharding((3, 4), [LITTLE])], DATA.shape)
    store = Objects([chain.encode(DATA)])
    entries = Entries.boxes(
        chunk=np.zeros(3, np.int64),
        start=np.array([[0, 0], [1, 1], [0, 0]]),
        count=np.array([[2, 2]] * 3),
        out_start=np.array([[0, 0], [2, 0], [4, 0]]),
    )
    out = store.read(chain.plan_read(entries), np.zeros((6, 2), "u2"))
    assert np.array_equal(out, np.concatenate([DATA[:2, :2], DATA[1:3, 1:3], DATA[:2, :2]]))
    assert store.requests == 2


def test_out_may_have_any_strides_order_and_dtype() -> None:
    chain = prepared([sharding((3, 4))], DATA.shape)
    store = Objects([chain.encode(DATA)])
    wide = np.zeros((24, 32), ">f8")
    store.read(chain.plan_read(...), wide[::-2, ::2])
    assert np.array_equal(wide[::-2, ::2], DATA)
    assert wide[0].sum() == 0


@pytest.mark.parametrize("selection", [(12, 0), (slice(0, 2), [16]), (0, 0, 0), ([-13], 0)], ids=str)
def test_a_selection_outside_the_chunk_is_refused(selection: Any) -> None:
    with pytest.raises(SelectionError):
        prepared([LITTLE], DATA.shape).plan_read(selection)


def test_entries_outside_the_chunk_are_refused() -> None:
    entries = Entries.boxes(
        chunk=np.array([0]), start=np.array([[10, 0]]), count=np.array([[3, 1]]), out_start=np.array([[0, 0]])
    )
    with pytest.raises(SelectionError):
        prepared([LITTLE], DATA.shape).plan_read(entries)


def test_feeding_what_is_not_open_is_refused() -> None:
    plan = prepared([LITTLE], DATA.shape).plan_read(...)
    with pytest.raises(PlanError):
        plan.feed([5], [b""])
    with pytest.raises(PlanError):
        plan.feed([0], [])
    plan.feed([0], [DATA.tobytes()])
    with pytest.raises(PlanError):
        plan.feed([0], [DATA.tobytes()])


def test_a_plan_with_nothing_ready_gives_no_work() -> None:
    assert prepared([LITTLE], DATA.shape).plan_read(...).take() is None


def test_errors_name_the_chunk_of_the_plan() -> None:
    chain = prepared([sharding((3, 4))], DATA.shape)
    good = bytes(chain.encode(DATA))
    bad = bytearray(good)
    bad[15] ^= 255
    entries = Entries.whole(DATA.shape, 3)
    with pytest.raises(CorruptChunkError) as caught:
        Objects([good, good, bytes(bad)]).read(chain.plan_read(entries), np.zeros((3, *DATA.shape), "u2"))
    assert caught.value.position == 2


@pytest.mark.parametrize("cut", [0, 10, 259])
@pytest.mark.parametrize("selection", [..., (0, 0)], ids=str)
def test_a_shard_without_room_for_its_index_is_refused(cut: int, selection: Any) -> None:
    chain = prepared([sharding((3, 4))], DATA.shape)
    store = Objects([bytes(chain.encode(DATA))[:cut]])
    with pytest.raises(ShardIndexError) as caught:
        store.read(chain.plan_read(selection), np.zeros(expected(selection).shape, "u2"))
    assert caught.value.position == 0


def test_a_short_answer_is_an_error() -> None:
    chain = prepared([sharding((3, 4), [LITTLE])], DATA.shape)
    shard = bytes(chain.encode(DATA))
    plan = chain.plan_read((0, 0))
    plan.feed([0], [shard[-260:]])
    with pytest.raises(ShardIndexError, match="shorter"):
        plan.feed([1], [b"x"])


def test_a_shard_that_vanishes_between_rounds_is_missing() -> None:
    chain = prepared([sharding((3, 4))], DATA.shape, fill=3)
    shard = bytes(chain.encode(DATA))
    plan = chain.plan_read((slice(0, 1), slice(0, 8)))
    plan.feed([0], [shard[-260:]])
    plan.feed(plan.needs["id"], [None, None])
    out = np.zeros((1, 8), "u2")
    while work := plan.take():
        work.run(out)
    assert (out == 3).all()
    assert plan.statuses.tolist() == [False]


def test_zero_dimensional_chunks_and_shards_are_read() -> None:
    for codecs in ([LITTLE], [sharding(())]):
        chain = prepared(codecs, ())
        out = Objects([chain.encode(np.array(5, "u2"))]).read(chain.plan_read(...), np.zeros((), "u2"))
        assert out == 5
