"""Ways to decode a chunk: whole, into memory of several kinds, in a batch, by a plan, and for a partial write."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright import RANGE, SUFFIX, CodecError
from tools.fuzz.targets import Target

__all__ = ("same", "use")


def use(random: Random, target: Target, data: bytes) -> None:
    """Decode bytes in one of the ways; anything but a CodecError that comes out of here is a bug."""
    random.choice([_whole, _whole, _into, _part, _batch, _plan, _write])(random, target, data)


def same(found: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Whether two arrays are equal, bit for bit or, of objects, by value."""
    if found.dtype == object or found.dtype.kind == "T":
        return all(map(_equal, found.ravel().tolist(), expected.ravel().tolist()))
    return found.tobytes() == expected.tobytes()


def _equal(one: Any, other: Any) -> bool:
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else bool(one == other)


def _whole(random: Random, target: Target, data: bytes) -> None:
    _check(target, target.prepared.decode(data))


def _check(target: Target, found: NDArray[Any] | None) -> None:
    spec = target.prepared.spec
    assert found is not None, "a chunk is missing"
    assert (found.shape, found.dtype) == (spec.shape, spec.dtype.numpy), f"{found.dtype} {found.shape}"
    if spec.dtype.variable in ("string", "bytes"):
        kind = str if spec.dtype.variable == "string" else bytes
        wrong = {type(value) for value in found.ravel().tolist()} - {kind}
        assert not wrong, f"elements of {wrong}"


def _into(random: Random, target: Target, data: bytes) -> None:
    spec = target.prepared.spec
    out = np.zeros([2 * extent + 1 for extent in spec.shape], spec.dtype.numpy)
    step = random.choice([1, 2, -1])
    start = {1: 0, 2: 1, -1: None}[step]
    box = tuple(slice(start, None, step) for _ in spec.shape)
    place = out[box][tuple(slice(0, extent) for extent in spec.shape)]
    around = out.copy()
    target.prepared.decode_into(data, place)
    _check(target, place)
    place[...] = around[box][tuple(slice(0, extent) for extent in spec.shape)]
    assert same(out, around), "written outside of its place"


def _part(random: Random, target: Target, data: bytes) -> None:
    selection, shape = _selection(random, target)
    target.prepared.decode_into(data, np.empty(shape, target.prepared.spec.dtype.numpy), selection=selection)


def _selection(random: Random, target: Target) -> tuple[tuple[slice, ...], tuple[int, ...]]:
    selection = []
    for extent in target.prepared.spec.shape:
        first = random.randrange(extent)
        selection.append(slice(first, random.randrange(first, extent) + 1, random.choice([1, 1, 2, 3])))
    counts = [len(range(each.start, each.stop, each.step)) for each in selection]
    return tuple(selection), tuple(counts)


def _batch(random: Random, target: Target, data: bytes) -> None:
    good, number = target.encoded, random.randrange(5)
    batch: list[Any] = [good, good, None, good, good]
    batch[number] = data
    try:
        found = target.prepared.decode_many(batch, max_workers=random.choice([1, 2, None]))
    except CodecError as error:
        if error.position != number:
            raise AssertionError(f"position {error.position} instead of {number}") from error
        raise
    for row, array in enumerate(found):
        if batch[row] is not None:
            _check(target, array)
        if batch[row] is good:
            assert array is not None
            assert same(array, target.array), "another chunk of the batch has changed"


def _plan(random: Random, target: Target, data: bytes) -> None:
    selection, shape = _selection(random, target)
    plan = target.prepared.plan_read(selection)
    out = np.empty(shape, target.prepared.spec.dtype.numpy)
    while plan.needs.size:
        needs = plan.needs.copy()
        for need in needs[random.sample(range(len(needs)), len(needs))]:
            plan.feed([need["id"]], [_answer(random, data, need)])
        while work := plan.take():
            work.run(out)


def _answer(random: Random, data: bytes, need: Any) -> bytes | None:
    """What a store answers; now and then less than was asked for, or nothing."""
    if need["kind"] == RANGE:
        answer = data[need["start"] : need["stop"]]
    else:
        answer = data[max(0, len(data) - need["stop"]) :] if need["kind"] == SUFFIX else data
    unusual = random.randrange(50)
    return None if unusual == 0 else answer[: len(answer) // 2] if unusual == 1 else answer


def _write(random: Random, target: Target, data: bytes) -> None:
    selection, _ = _selection(random, target)
    plan = target.prepared.plan_write(selection)
    plan.feed(plan.needs["id"], [data for _ in plan.needs])
    while work := plan.take():
        for _, buffer in work.run(target.array[selection]):
            assert buffer is None or memoryview(buffer).readonly
