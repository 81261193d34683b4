"""Locks by key, between threads, event loops and after a fork."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from chunkwright_store import KeyLocks

PATIENCE = 30


@pytest.fixture
def locks() -> Iterator[KeyLocks]:
    """Locks that must all be free at the end of the test."""
    made = KeyLocks()
    yield made
    assert len(made) == 0


def in_thread(function: Callable[[], Any]) -> Callable[[], Any]:
    """Start a thread; the result waits for it and returns what the function did."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(function)
    pool.shutdown(wait=False)
    return lambda: future.result(PATIENCE)


async def queued(locks: KeyLocks, key: str, length: int) -> None:
    """Let the loop turn until so many calls stand in the queue of a key."""
    while len(locks._queues.get(key, [])) < length:
        await asyncio.sleep(0)


def stands(locks: KeyLocks, key: str, length: int) -> None:
    """Spin until so many calls stand in the queue of a key."""
    while len(locks._queues.get(key, [])) < length:
        os.sched_yield()


def test_keys_are_free_again_after_an_error(locks: KeyLocks) -> None:
    with pytest.raises(ZeroDivisionError), locks.hold(["a"]):
        raise ZeroDivisionError
    assert len(locks) == 0


def test_repeated_keys_count_once(locks: KeyLocks) -> None:
    with locks.hold(["a", "a"]):
        assert len(locks) == 1


def test_no_keys_need_no_lock(locks: KeyLocks) -> None:
    with locks.hold([]):
        assert len(locks) == 0


def test_trying_takes_all_keys_or_none(locks: KeyLocks) -> None:
    held = locks.try_hold(["a", "b"])
    assert held is not None
    assert locks.try_hold(["c", "b"]) is None
    assert len(locks) == 2
    held.release()
    held.release()


def test_a_thread_waits_for_another(locks: KeyLocks) -> None:
    order: list[str] = []
    with locks.hold(["a"]):
        wait = in_thread(lambda: locks.hold(["a"]).__enter__())
        stands(locks, "a", 2)
        order.append("first")
    second = wait()
    order.append("second")
    second.release()
    assert order == ["first", "second"]


async def test_waiters_of_all_kinds_are_served_in_the_order_in_which_they_came(locks: KeyLocks) -> None:
    order: list[int] = []

    def in_a_thread(number: int) -> None:
        with locks.hold(["a"]):
            order.append(number)

    async def on_the_loop(number: int) -> None:
        async with locks.hold(["a"]):
            order.append(number)

    async with locks.hold(["a"]):
        waits, tasks = [], []
        for number in range(8):
            if number % 2:
                waits.append(in_thread(lambda number=number: in_a_thread(number)))
            else:
                tasks.append(asyncio.create_task(on_the_loop(number)))
            await queued(locks, "a", number + 2)
    await asyncio.gather(*tasks)
    for wait in waits:
        await asyncio.to_thread(wait)
    assert order == list(range(8))


class Owners:
    """Counts how many hold each key, and notices when it is not one."""

    def __init__(self, keys: str) -> None:
        self._keys, self._owners = keys, dict.fromkeys(keys, 0)
        self.collisions: list[str] = []

    def sample(self, choice: random.Random) -> list[str]:
        return choice.sample(self._keys, choice.randint(1, 4))

    def use(self, keys: list[str]) -> None:
        for key in keys:
            self._owners[key] += 1
            self.collisions += key if self._owners[key] != 1 else ""
        for key in keys:
            self._owners[key] -= 1

    def in_a_thread(self, locks: KeyLocks, seed: int) -> None:
        choice = random.Random(seed)
        for _ in range(200):
            keys = self.sample(choice)
            with locks.hold(keys):
                self.use(keys)

    def on_a_loop(self, locks: KeyLocks, seed: int) -> None:
        async def task(choice: random.Random) -> None:
            for _ in range(100):
                keys = self.sample(choice)
                async with locks.hold(keys):
                    self.use(keys)
                    await asyncio.sleep(0)

        async def main() -> None:
            await asyncio.gather(*(task(random.Random(seed * 10 + number)) for number in range(4)))

        asyncio.run(main())


def test_overlapping_sets_of_keys_in_any_order_neither_collide_nor_hang(locks: KeyLocks) -> None:
    owners = Owners("abcdef")
    waits = [in_thread(lambda seed=seed: owners.in_a_thread(locks, seed)) for seed in range(3)]
    waits += [in_thread(lambda seed=seed: owners.on_a_loop(locks, seed)) for seed in range(2)]
    for wait in waits:
        wait()
    assert not owners.collisions


async def test_a_thread_that_runs_a_loop_is_not_made_to_wait(locks: KeyLocks) -> None:
    async with locks.hold(["a"]):
        with pytest.raises(RuntimeError, match="async with"):
            locks.hold(["a"]).__enter__()
        assert len(locks._queues["a"]) == 1
    with locks.hold(["a"]):  # free: no need to wait
        pass


async def test_a_cancelled_waiter_gives_its_place_up(locks: KeyLocks) -> None:
    reached: list[str] = []

    async def waiter(name: str, keys: list[str]) -> None:
        async with locks.hold(keys):
            reached.append(name)

    async with locks.hold(["a"]):
        first = asyncio.create_task(waiter("first", ["a", "b"]))
        await queued(locks, "a", 2)
        second = asyncio.create_task(waiter("second", ["b"]))
        await queued(locks, "b", 2)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await second  # although "a" is still held
        assert reached == ["second"]


async def test_a_waiter_that_is_cancelled_just_as_its_turn_comes_passes_it_on(locks: KeyLocks) -> None:
    held = locks.try_hold(["a"])
    assert held is not None

    async def waiter() -> None:
        async with locks.hold(["a"]):
            pytest.fail("it was cancelled")

    task = asyncio.create_task(waiter())
    await queued(locks, "a", 2)
    following = in_thread(lambda: locks.hold(["a"]).__enter__())
    await queued(locks, "a", 3)
    held.release()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (await asyncio.to_thread(following)).release()


def test_a_loop_that_was_closed_does_not_keep_its_turn(locks: KeyLocks) -> None:
    held = locks.try_hold(["a"])
    assert held is not None
    waiting = locks.hold(["a"]).__aenter__()

    async def begin() -> None:
        waiting.send(None)

    asyncio.run(begin())
    following = in_thread(lambda: locks.hold(["a"]).__enter__())
    stands(locks, "a", 3)
    held.release()
    following().release()
    waiting.close()


def test_a_turn_goes_from_one_loop_to_another(locks: KeyLocks) -> None:
    count = {"value": 0}

    def loop() -> None:
        async def add() -> None:
            async with locks.hold(["a"]):
                before = count["value"]
                await asyncio.sleep(0)
                count["value"] = before + 1

        async def main() -> None:
            await asyncio.gather(*(add() for _ in range(50)))

        asyncio.run(main())

    for wait in [in_thread(loop), in_thread(loop)]:
        wait()
    assert count["value"] == 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_starts_without_locks(locks: KeyLocks) -> None:
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with locks.hold(["a"]):
            entered.set()
            leave.wait(PATIENCE)

    wait = in_thread(hold)
    entered.wait(PATIENCE)
    with locks.hold(["b"]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            free = locks.try_hold(["a", "b"]) is not None
            os._exit(0 if free else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert locks.try_hold(["b"]) is None  # the parent's locks are as they were
    leave.set()
    wait()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_leaving_a_hold_in_a_forked_child_takes_nothing_from_others(locks: KeyLocks) -> None:
    with locks.hold(["a"]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            mine = locks.try_hold(["a"])
            inherited = locks.hold(["a"])
            inherited.release()
            os._exit(0 if mine is not None and len(locks) == 1 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
