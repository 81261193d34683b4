"""Requests of one asynchronous call: so many at a time, in the order in which they were added.

A crew has up to ``size`` workers, tasks that take requests from one queue until it is empty. So a call with
thousands of requests makes a few tasks, not thousands. The first error stops the crew: requests that were
not begun are dropped, and ``on_error`` is called once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

__all__ = ("Crew", "drain")


class Crew:
    """Runs requests on the event loop that it was made on."""

    def __init__(self, size: int, on_error: Callable[[BaseException], None]) -> None:
        self._size = max(1, size)
        self._on_error = on_error
        self._queue: deque[Callable[[], Awaitable[None]]] = deque()
        self._stopped = False
        self._workers = 0
        self.tasks: set[asyncio.Task[None]] = set()

    def add(self, request: Callable[[], Awaitable[None]]) -> None:
        """Run a request when a worker is free."""
        if self._stopped:
            return
        self._queue.append(request)
        if self._workers < self._size:
            self._workers += 1
            task = asyncio.get_running_loop().create_task(self._work())
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    def stop(self) -> None:
        """Drop what was not begun."""
        self._stopped = True
        self._queue.clear()

    async def _work(self) -> None:
        try:
            while self._queue:
                await self._queue.popleft()()
        except BaseException as error:  # reported to whoever waits for the whole call
            self.stop()
            self._on_error(error)
        finally:
            # Here and not when the task is seen to be done: a request that is added in between needs a worker.
            self._workers -= 1


async def drain(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Wait until tasks have ended, however often the wait is cancelled; the cancellation comes afterwards."""
    left = [task for task in tasks if not task.done()]
    cancelled: asyncio.CancelledError | None = None
    while left:
        try:
            await asyncio.wait(left)
        except asyncio.CancelledError as error:
            cancelled = error
        left = [task for task in left if not task.done()]
    if cancelled is not None:
        raise cancelled
