"""Locks by key that threads and event loops share, for read-modify-write within one process.

Every key has a queue. A call enters the queues of all its keys at once, under one short mutex, and holds a key
when it is at the head; it goes on when it heads all of them. Because entering is atomic, calls stand in the same
order in every queue they share, so nobody waits in a circle, and each queue is first come, first served.

Waiting is different for the two kinds of callers and happens outside the mutex: a thread waits on a lock of its
own, a coroutine on a future of its loop. A thread that runs an event loop is never made to wait; it must
``await``, or ask with ``try_hold``. A caller that is cancelled or interrupted while it waits leaves its places.

After ``fork`` the child starts with no locks: the threads that held them do not exist there. Other processes
are not locked out at all.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable
from types import TracebackType
from typing import Self

__all__ = ("LOCKS", "Hold", "KeyLocks")


class KeyLocks:
    """Locks by key.

    Examples
    --------
    >>> locks = KeyLocks()
    >>> with locks.hold(["c/0", "c/1"]):
    ...     print(locks.try_hold(["c/1"]), len(locks))
    None 2
    >>> len(locks)
    0
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._queues: dict[Hashable, list[Hold]] = {}
        _ALL.add(self)

    def __len__(self) -> int:
        return len(self._queues)

    def hold(self, keys: Iterable[Hashable]) -> Hold:
        """Return a context manager, for ``with`` and ``async with``, that holds all keys.

        Parameters
        ----------
        keys
            What to lock; repeated keys count once.

        Returns
        -------
        Hold
            To be entered once.
        """
        return Hold(self, keys)

    def try_hold(self, keys: Iterable[Hashable]) -> Hold | None:
        """Take all keys at once, or none of them, without waiting.

        Parameters
        ----------
        keys
            What to lock; repeated keys count once.

        Returns
        -------
        Hold or None
            Holds the keys until its ``release`` is called; None when any key is taken.
        """
        hold = Hold(self, keys)
        with self._mutex:
            if any(key in self._queues for key in hold.keys):
                return None
            for key in hold.keys:
                self._queues[key] = [hold]
        return hold

    def _enter(self, hold: Hold) -> bool:
        """Stand in all queues; True when the hold heads all of them."""
        with self._mutex:
            for key in hold.keys:
                queue = self._queues.setdefault(key, [])
                queue.append(hold)
                hold.ahead += len(queue) > 1
            return not hold.ahead

    def _leave(self, hold: Hold) -> None:
        """Leave all queues, at whatever place, and let those go on that now head all of theirs."""
        ready: list[Hold] = []
        with self._mutex:
            for key in hold.keys:
                ready += self._remove(key, hold)
        for following in ready:
            following.wake()

    def _remove(self, key: Hashable, hold: Hold) -> list[Hold]:
        queue = self._queues.get(key)
        # In a forked child there may be no queue any more, or one without this hold.
        if queue is None or hold not in queue:
            return []
        was_first = queue[0] is hold
        queue.remove(hold)
        if not queue:
            del self._queues[key]
            return []
        if not was_first:
            return []
        queue[0].ahead -= 1
        return [] if queue[0].ahead else [queue[0]]

    def _forget(self) -> None:
        self._mutex = threading.Lock()
        self._queues = {}


class Hold:
    """The keys of one call: waiting for them, then holding them.

    Parameters
    ----------
    locks
        Where the keys are.
    keys
        What to lock; repeated keys count once.

    Examples
    --------
    >>> import asyncio
    >>> locks = KeyLocks()
    >>> async def write():
    ...     async with locks.hold(["c/0"]):
    ...         return len(locks)
    >>> asyncio.run(write())
    1
    """

    __slots__ = ("_locks", "_waiting", "ahead", "keys")

    def __init__(self, locks: KeyLocks, keys: Iterable[Hashable]) -> None:
        self._locks = locks
        self.keys = tuple(dict.fromkeys(keys))
        self.ahead = 0
        self._waiting: Callable[[], object] | None = None

    def release(self) -> None:
        """Give the keys back, or the places in the queues up."""
        self._locks._leave(self)

    def wake(self) -> None:
        """Tell whoever waits that the keys are held now; if the loop is gone, pass them on."""
        assert self._waiting is not None
        try:
            self._waiting()
        except RuntimeError:
            self.release()

    def __enter__(self) -> Self:
        turn = threading.Lock()
        turn.acquire()
        self._waiting = turn.release
        try:
            if not self._locks._enter(self):
                _refuse_on_a_loop()
                turn.acquire()
        except BaseException:
            self.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting = lambda: loop.call_soon_threadsafe(_set, turn)
        try:
            if not self._locks._enter(self):
                await turn
        except BaseException:
            self.release()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


def _set(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


def _refuse_on_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("a thread that runs an event loop must not wait for a lock: use `async with`")


_ALL: weakref.WeakSet[KeyLocks] = weakref.WeakSet()


def _forget_all() -> None:
    for locks in list(_ALL):
        locks._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)

LOCKS = KeyLocks()
"""The locks of this process, which the write drivers use."""
