"""Many asynchronous calls at once, with answers in any order, errors, cancellations and chunks that go away."""

from __future__ import annotations

import asyncio
import random

import numpy as np
import pytest

from chunkwright import CodecError
from chunkwright_store import LOCKS, ByteRange, Limits, read_async, write_async
from tests.store_bridge.remotes import Remote, read_job, write_job
from tests.store_bridge.volumes import CHAINS, Volume, decoded, volume

PATIENCE = 60
LAYOUTS = {layout: volume(layout) for layout in CHAINS}


class Course:
    """One call and what happens to it, all drawn from one generator."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.made: Volume = LAYOUTS[draw.choice(list(LAYOUTS))]
        self.event = draw.choice(["nothing", "cancellation", "error", "loss"])
        self.writes = draw.random() < 0.4
        first, left = draw.randint(0, 28), draw.randint(0, 24)
        self.box = ((first, draw.randint(first + 1, 30)), (left, draw.randint(left + 1, 26)))
        self.remote = Remote(self.made.stored, hook=self.hook, streams=draw.random() < 0.5)
        self.limits = Limits(
            max_gap=draw.choice([0, 50, 1 << 20]),
            max_size=draw.choice([1, 100, 1 << 20]),
            concurrency=draw.choice([1, 2, 7, 40]),
            max_bytes_in_flight=draw.choice([1, 100, 1000, 1 << 27]),
        )

    async def hook(self, key: str, wanted: ByteRange) -> None:
        for _ in range(self.draw.randint(0, 5)):
            await asyncio.sleep(0)
        if self.draw.random() < 0.1:
            if self.event == "error":
                raise OSError("the store failed")
            if self.event == "loss":
                self.remote.stored.pop(key, None)

    async def run(self) -> None:
        out = np.zeros([stop - start for start, stop in self.box], "u2")
        guess = self.draw.choice([1, 300, 1 << 20])
        if self.writes:
            job = write_job(self.made, self.box, self.remote, whole_nbytes=guess)
            call = write_async([job], self.made.expected(self.box), self.limits)
        else:
            call = read_async([read_job(self.made, self.box, self.remote, whole_nbytes=guess)], out, self.limits)
        failed = await self.fails(asyncio.get_running_loop().create_task(call))
        assert self.remote.under_way == 0
        if not failed:
            self.check(out)

    async def fails(self, task: asyncio.Task[None]) -> bool:
        """Wait for the call; it may fail only in the way that its course of events explains."""
        if self.event == "cancellation":
            for _ in range(self.draw.randint(0, 60)):
                await asyncio.sleep(0)
            for _ in range(self.draw.randint(1, 3)):
                task.cancel()
                await asyncio.sleep(0)
        await asyncio.wait([task], timeout=PATIENCE)
        assert task.done(), "the call hangs"
        if task.cancelled():
            assert self.event == "cancellation"
            return True
        error = task.exception()
        explained = {"error": OSError, "loss": CodecError}.get(self.event, ())
        assert error is None or isinstance(error, explained), error
        return error is not None

    def check(self, out: np.ndarray) -> None:
        if self.event == "loss":
            return
        if self.writes:
            np.testing.assert_array_equal(decoded(self.made, self.remote.stored), self.made.data)
        else:
            np.testing.assert_array_equal(out, self.made.expected(self.box))


@pytest.mark.parametrize("seed", range(8))
async def test_every_call_ends_with_the_right_result_or_the_right_error(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(25):
        await asyncio.gather(*(Course(draw).run() for _ in range(draw.choice([1, 4]))))
    assert len(LOCKS) == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}
