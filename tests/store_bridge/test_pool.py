"""Threads of our own, and the hop from a loop to them."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import threading
import warnings
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest

from chunkwright_store.pool import Pool, run_off_loop

PATIENCE = 30


async def test_a_result_comes_back_from_another_thread() -> None:
    assert await run_off_loop(threading.get_ident) != threading.get_ident()


async def test_an_error_comes_back_as_itself() -> None:
    with pytest.raises(ZeroDivisionError):
        await run_off_loop(lambda: 1 // 0)


async def test_a_stop_iteration_is_an_error_and_no_hang() -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(run_off_loop(lambda: next(iter(()))), PATIENCE)


async def test_the_function_sees_the_callers_context() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("here")
    assert await run_off_loop(variable.get) == "here"


async def test_a_cancelled_wait_lets_the_running_function_end_first() -> None:
    begun, go_on, events = threading.Event(), threading.Event(), []

    def function() -> None:
        begun.set()
        go_on.wait(PATIENCE)
        events.append("ended")

    task = asyncio.create_task(run_off_loop(function, on_cancel=lambda: events.append("told")))
    await asyncio.to_thread(begun.wait, PATIENCE)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events == ["told", "ended"]


async def test_a_wait_that_is_cancelled_just_as_the_function_ends_comes_to_an_end() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def function() -> None:
        begun.set()
        go_on.wait(PATIENCE)

    task = asyncio.create_task(run_off_loop(function))
    await asyncio.to_thread(begun.wait, PATIENCE)
    asyncio.get_running_loop().call_soon(lambda: (go_on.set(), settled(), task.cancel()))
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENCE)


def settled() -> None:
    """Hold the loop up until a thread of the pool has told it that its function ended."""
    loop: Any = asyncio.get_running_loop()
    while not any("_settle" in repr(handle) for handle in loop._ready):
        os.sched_yield()


async def test_a_function_that_has_not_begun_is_dropped() -> None:
    pool, begun, go_on, ran = Pool(max_threads=1), threading.Event(), threading.Event(), []

    def blocking() -> None:
        begun.set()
        go_on.wait(PATIENCE)

    first = asyncio.create_task(run_off_loop(blocking, pool=pool))
    await asyncio.to_thread(begun.wait, PATIENCE)
    values = np.zeros(1)
    gone = weakref.ref(values)
    second = asyncio.create_task(run_off_loop(partial(ran.append, values), pool=pool))
    del values
    await asyncio.sleep(0)
    second.cancel()
    assert await asyncio.wait([second]) == ({second}, set())
    assert second.cancelled()
    del second  # the error that it keeps refers to what was going on
    gc.collect()
    assert gone() is None
    go_on.set()
    await first
    await run_off_loop(lambda: ran.append("third"), pool=pool)
    assert ran == ["third"]


async def test_more_work_than_threads_is_all_done() -> None:
    pool, together = Pool(max_threads=3), threading.Barrier(3)
    results = await asyncio.gather(
        *(run_off_loop(lambda number=number: (together.wait(PATIENCE), number)[1], pool=pool) for number in range(30))
    )
    assert results == list(range(30))
    assert pool._threads == 3


async def test_idle_threads_are_used_again() -> None:
    pool = Pool(max_threads=8)
    for _ in range(100):
        await run_off_loop(lambda: None, pool=pool)
        while not pool._idle:  # the result is there a moment before the thread is idle
            os.sched_yield()
    assert pool._threads == 1


def test_a_loop_that_ended_does_not_disturb_the_thread() -> None:
    pool, begun, go_on = Pool(max_threads=1), threading.Event(), threading.Event()

    def function() -> None:
        begun.set()
        go_on.wait(PATIENCE)

    hop = run_off_loop(function, pool=pool)

    async def begin() -> None:
        hop.send(None)

    asyncio.run(begin())
    begun.wait(PATIENCE)
    go_on.set()
    done = threading.Event()
    pool.submit(done.set)
    assert done.wait(PATIENCE)
    hop.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_makes_its_own_threads() -> None:
    async def hop() -> Any:
        return await run_off_loop(lambda: 7)

    assert asyncio.run(hop()) == 7
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os._exit(asyncio.run(asyncio.wait_for(hop(), PATIENCE)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
