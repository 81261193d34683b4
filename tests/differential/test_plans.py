"""Plans do not mind how they are fed: whole, range by range, merged, in any order, with work run on any thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from chunkwright import NEED, RANGE, SUFFIX, Backend, ReadPlan, WritePlan, coalesce
from tests.differential.chains import Chain, chains
from tests.differential.effort import effort
from tests.differential.entries import selections
from tests.support.arrays import assert_same
from tests.support.backends import backends

pytestmark = pytest.mark.usefixtures("stopped_clock")

type Random = np.random.Generator
type Objects = list[bytes | None]

each_backend = pytest.mark.parametrize("backend", backends(), ids=lambda backend: backend.name)


def _objects(chain: Chain, random: Random, count: int) -> tuple[list[NDArray[Any]], Objects]:
    """Some chunks and what is stored of them; every third is missing."""
    chunks, objects = [], []
    for _ in range(count):
        missing = random.random() < 0.3
        chunk = chain.prepared.spec.full() if missing else chain.chunk(random)
        encoded = None if missing else chain.prepared.encode(chunk, keep_empty=bool(random.random() < 0.5))
        chunks.append(chunk)
        objects.append(None if encoded is None else bytes(encoded))
    return chunks, objects


def _answer(objects: Objects, chunk: int, kind: int, start: int, stop: int) -> bytes | None:
    """What a store answers to one request."""
    content = objects[chunk]
    if content is None or kind not in (RANGE, SUFFIX):
        return content
    return content[start:stop] if kind == RANGE else content[-stop:]


def _feed_all(plan: ReadPlan | WritePlan, objects: Objects) -> None:
    """Everything that is asked for, in the order in which it is asked for."""
    while plan.needs.size:
        needs = plan.needs
        plan.feed(needs["id"], [_answer(objects, *need.tolist()[1:]) for need in needs])


def _feed_some(plan: ReadPlan | WritePlan, objects: Objects, random: Random) -> None:
    """A random part of what is asked for, merged at random, in random order."""
    needs = plan.needs
    chosen = random.permutation(len(needs))[: random.integers(1, len(needs) + 1)]
    fetches = coalesce(
        needs[chosen].astype(NEED), max_gap=int(random.integers(0, 200)), max_size=int(random.choice([1, 50, 1 << 40]))
    )
    for number in random.permutation(len(fetches)).tolist():
        columns = (fetches.chunk, fetches.kind, fetches.start, fetches.stop)
        ids, buffers = fetches.buffers(number, _answer(objects, *(int(column[number]) for column in columns)))
        halves = np.array_split(random.permutation(len(ids)), random.integers(1, 3))
        for rows in halves:
            plan.feed(ids[rows], buffers.take(rows))


def _take_some(plan: Any, random: Random) -> list[Any]:
    """Some or all of the work that is ready."""
    works = []
    while random.random() < 0.7 and (work := plan.take(int(random.choice([1, 100, 1 << 40])))):
        works.append(work)
    return works


def _in_any_order[T](run: Callable[[Any], T], works: list[Any], random: Random) -> list[T]:
    """Run work on three threads, in random order."""
    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(run, [works[at] for at in random.permutation(len(works))]))


def _drive(plan: Any, objects: Objects, random: Random) -> list[Any]:
    """Feed and take at random until nothing is left; return all work."""
    works: list[Any] = []
    while plan.needs.size:
        _feed_some(plan, objects, random)
        works += _take_some(plan, random)
    while work := plan.take():
        works.append(work)
    return works


@each_backend
@given(data=st.data())
@effort(250)
def test_reads_do_not_depend_on_how_the_plan_is_fed(backend: Backend, data: st.DataObject) -> None:
    chain = data.draw(chains(backend))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    chunks, objects = _objects(chain, random, 3)
    chosen = data.draw(selections(chain.prepared.spec.shape, len(chunks)))
    blank = np.full(chosen.out_shape, chain.fill_value, chain.dtype.numpy)
    expected, at_once, split = blank.copy(), blank.copy(), blank.copy()
    chosen.scatter(chunks, expected)
    fraction = data.draw(st.sampled_from([0.01, 0.5, 1.0]))

    plan = chain.prepared.plan_read(chosen.entries, whole_fraction=fraction)
    _feed_all(plan, objects)
    while work := plan.take():
        work.run(at_once)
    assert_same(at_once, expected)

    plan = chain.prepared.plan_read(chosen.entries, whole_fraction=fraction)
    works = _drive(plan, objects, random)
    _in_any_order(lambda work: work.run(split, max_workers=int(random.integers(1, 3))), works, random)
    assert_same(split, expected)

    touched = (chosen.entries.count > 0).all(axis=1)
    present = np.array([objects[chunk] is not None for chunk in chosen.entries.chunk], bool)
    assert plan.statuses[touched].tolist() == present[touched].tolist()


@each_backend
@given(data=st.data())
@effort(250)
def test_writes_do_not_depend_on_how_the_plan_is_fed(backend: Backend, data: st.DataObject) -> None:
    chain = data.draw(chains(backend))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    chunks, objects = _objects(chain, random, 3)
    chosen = data.draw(selections(chain.prepared.spec.shape, len(chunks), unique=True))
    source = chain.dtype.values(random, chosen.out_shape)
    source.flags.writeable = False
    chosen.gather(source, chunks)
    keep_empty = data.draw(st.booleans())

    plan = chain.prepared.plan_write(chosen.entries, keep_empty=keep_empty)
    _feed_all(plan, objects)
    at_once: dict[int, Any] = {}
    while work := plan.take():
        at_once.update(work.run(source))

    plan = chain.prepared.plan_write(chosen.entries, keep_empty=keep_empty)
    works = _drive(plan, objects, random)
    split: dict[int, Any] = {}
    for pairs in _in_any_order(lambda work: work.run(source), works, random):
        split.update(pairs)

    assert {chunk: buffer and bytes(buffer) for chunk, buffer in split.items()} == {
        chunk: buffer and bytes(buffer) for chunk, buffer in at_once.items()
    }
    for chunk, buffer in at_once.items():
        found = chain.prepared.spec.full() if buffer is None else chain.prepared.decode(buffer)
        assert_same(found, chunks[chunk])
        assert buffer is not None or not keep_empty
    written = set(chosen.entries.chunk[(chosen.entries.count > 0).all(axis=1)].tolist())
    assert set(at_once) == written
