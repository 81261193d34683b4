"""Threads of our own for work that must not run on an event loop.

Not the loop's default executor, on purpose: that one belongs to the host, is small, and fills up with calls of
codecs that in turn wait for the loop. Work that is given to these threads never waits for the loop, nor for
other work of the pool.

Threads start when there is more work than idle threads, up to a limit, and stay. They are daemons: a
program may end while one of them computes. A forked child starts with no threads and makes its own.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ("POOL", "Pool", "run_off_loop")


class Pool:
    """Daemon threads that run functions.

    Parameters
    ----------
    max_threads
        Most threads at a time; more work than that waits.

    Examples
    --------
    >>> done = threading.Event()
    >>> Pool(max_threads=1).submit(done.set)
    >>> done.wait()
    True
    """

    def __init__(self, *, max_threads: int) -> None:
        self._max_threads = max_threads
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def submit(self, function: Callable[[], object]) -> None:
        """Run a function on some thread of the pool, soon.

        Parameters
        ----------
        function
            Must not raise.
        """
        with self._mutex:
            if self._idle:
                # The one that slept last: its memory is the most likely to be in the processor's caches.
                self._idle.pop().wake(function)
                return
            self._work.append(function)
            if self._threads >= self._max_threads:
                return
            self._threads += 1
        threading.Thread(target=self._serve, name="chunkwright-hop", daemon=True).start()

    def _serve(self) -> None:
        mutex, work, idle = self._mutex, self._work, self._idle
        sleeper = _Sleeper()
        while True:
            with mutex:
                function = work.popleft() if work else None
                if function is None:
                    idle.append(sleeper)
            if function is None:
                function = sleeper.sleep()
            function()
            del function

    def _reset(self) -> None:
        self._mutex = threading.Lock()
        self._work: deque[Callable[[], object]] = deque()
        self._idle: list[_Sleeper] = []
        self._threads = 0


class _Sleeper:
    """A thread without work, which is handed its next function directly."""

    __slots__ = ("_function", "_turn")

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._turn.acquire()
        self._function: Callable[[], object] | None = None

    def sleep(self) -> Callable[[], object]:
        self._turn.acquire()
        function, self._function = self._function, None
        assert function is not None
        return function

    def wake(self, function: Callable[[], object]) -> None:
        self._function = function
        self._turn.release()


POOL = Pool(max_threads=min(32, (os.cpu_count() or 1) + 4))
"""The threads of this process for hops off event loops."""


class _Hop[T]:
    """One function on its way to a thread and back; all but ``__call__`` happens on the loop."""

    __slots__ = ("_context", "_function", "_loop", "_unclaimed", "drained", "ended", "future")

    def __init__(self, loop: asyncio.AbstractEventLoop, function: Callable[[], T]) -> None:
        self._loop = loop
        self._function = function
        self._context = contextvars.copy_context()
        self._unclaimed = [True]
        self.future: asyncio.Future[T] = loop.create_future()
        self.ended = False
        self.drained: asyncio.Future[None] | None = None

    def __call__(self) -> None:
        if not self.claim():
            return
        result: Any = None
        failure: BaseException | None = None
        try:
            result = self._context.run(self._function)
        except StopIteration as error:
            failure = RuntimeError(f"the function raised {error!r}, which cannot pass through a future")
        except BaseException as error:  # it belongs to whoever awaits
            failure = error
        try:
            self._loop.call_soon_threadsafe(self._settle, result, failure)
        except RuntimeError:
            # The loop is closed, so nobody awaits any more.
            return

    def claim(self) -> bool:
        """Whether the caller is the first to ask: a list's ``pop`` is atomic."""
        try:
            return self._unclaimed.pop()
        except IndexError:
            return False

    def forget(self) -> None:
        """Let go of a function that will not be called."""
        del self._function, self._context

    def _settle(self, result: T, failure: BaseException | None) -> None:
        self.ended = True
        if self.drained is not None:
            self.drained.set_result(None)
        if not self.future.done():
            if failure is None:
                self.future.set_result(result)
            else:
                self.future.set_exception(failure)


async def run_off_loop[T](
    function: Callable[[], T], *, on_cancel: Callable[[], object] | None = None, pool: Pool | None = None
) -> T:
    """Run a function on a thread of the pool and wait for it.

    When the wait is cancelled, a function that has not begun is dropped, and one that is running is waited
    for to its end before the cancellation goes on, so nothing it uses is touched afterwards.

    Parameters
    ----------
    function
        Must not wait for the event loop.
    on_cancel
        Called on the loop when the wait is cancelled, for instance to tell the function to stop early.
    pool
        Threads to use, :data:`POOL` by default.

    Returns
    -------
    T
        What the function returned.

    Examples
    --------
    >>> asyncio.run(run_off_loop(lambda: threading.current_thread() is threading.main_thread()))
    False
    """
    loop = asyncio.get_running_loop()
    hop = _Hop(loop, function)
    (pool or POOL).submit(hop)
    try:
        return await hop.future
    except asyncio.CancelledError:
        if not hop.future.cancelled():
            raise  # the function itself raised it
        if on_cancel is not None:
            on_cancel()
        if hop.claim():
            # It stays in the queue until a thread gets there.
            hop.forget()
        else:
            await _drain(hop, loop)
        raise


async def _drain(hop: _Hop[Any], loop: asyncio.AbstractEventLoop) -> None:
    """Wait until the function has ended, however often the wait is cancelled."""
    hop.drained = loop.create_future()
    # The function may have ended between the cancellation and now, unseen by ``drained``.
    while not hop.ended:
        try:
            await asyncio.shield(hop.drained)
        except asyncio.CancelledError:
            continue
