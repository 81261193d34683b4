"""Several threads that take turns at one piece of work, the calling one among them.

A turn is a call of a function that finds something to do, does it, and says whether there was anything. Helpers come
from the same threads as :class:`~chunkwright_store.helper.Helper` has; a call never depends on one being free, because
the calling thread goes on until nothing is left, and then waits only for turns that a helper has begun.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from chunkwright_store.helper import HELPERS

__all__ = ("take_turns",)


def take_turns(turn: Callable[[], bool], threads: int) -> None:
    """Call a function from several threads until it says that nothing is left, or raises.

    Parameters
    ----------
    turn
        Called again by a thread as long as it returns True.
    threads
        How many there are at most, the calling one included.

    Raises
    ------
    BaseException
        The first error of a turn; nobody begins another turn then, and this is raised when those under way have ended.

    Examples
    --------
    >>> left, done = [1, 2, 3], []
    >>> def turn():
    ...     if left:
    ...         done.append(left.pop())
    ...     return bool(left)
    >>> take_turns(turn, 1)
    >>> done
    [3, 2, 1]
    """
    shared = _Turns(turn)
    for _ in range(threads - 1):
        HELPERS.submit(shared.help)
    try:
        shared.help()
    finally:
        # Also when this thread is interrupted: helpers use what the caller will let go of.
        shared.finish()
    if shared.error is not None:
        raise shared.error


class _Turns:
    """Who is at work, and the first error."""

    def __init__(self, turn: Callable[[], bool]) -> None:
        self._turn = turn
        self._idle = threading.Condition(threading.Lock())
        self._at_work = 0
        self._over = False
        self.error: BaseException | None = None

    def help(self) -> None:
        with self._idle:
            if self._over:
                return
            self._at_work += 1
        error: BaseException | None = None
        try:
            while self._turn() and not self._over:
                pass
        except BaseException as caught:  # the caller raises it
            error = caught
        with self._idle:
            self._at_work -= 1
            self._over = True
            self.error = self.error or error
            self._idle.notify_all()

    def finish(self) -> None:
        with self._idle:
            self._over = True
            while self._at_work:
                self._idle.wait()
        # Who was asked to help and has not come yet keeps this object, and must not keep what the turn refers to.
        del self._turn
