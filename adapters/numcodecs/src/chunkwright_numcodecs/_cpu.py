"""On which CPU a thread that is about to be woken begins.

Schedulers tend to put it where the thread is that wakes it, and find out only milliseconds later that other CPUs are
idle. So it is kept away from that CPU until it runs; then it may go where it was allowed before. Linux alone has the
calls for that; elsewhere nothing is done. With many CPUs there is nearly always an idle one, and this is left out.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable

__all__ = ("Sleeper",)

MOST = 8
"""With more CPUs than this, looking after each thread would take longer than it saves."""


def _find_here() -> Callable[[], int] | None:
    try:
        return ctypes.CDLL(None).sched_getcpu if hasattr(os, "sched_setaffinity") else None
    except (OSError, AttributeError, TypeError):
        return None


_HERE = _find_here()


class Sleeper:
    """A thread that waits for work, made by the thread itself.

    Examples
    --------
    >>> sleeper = Sleeper()
    >>> sleeper.keep_away()
    >>> sleeper.awake()
    """

    def __init__(self) -> None:
        self._thread = threading.get_native_id()
        self._allowed: set[int] | None = None
        self._others: set[int] = set()

    def keep_away(self) -> None:
        """Keep the thread away from the CPU that the calling thread is on."""
        if _HERE is None or self._allowed is not None:
            return
        try:
            allowed = os.sched_getaffinity(self._thread)
            others = allowed - {_HERE()}
            if not others or len(others) == len(allowed) or len(allowed) > MOST:
                return
            self._others, self._allowed = others, allowed
            os.sched_setaffinity(self._thread, others)
        except OSError:
            return

    def awake(self) -> None:
        """Let the calling thread, which is the one that waited, go where it was allowed before.

        Not when somebody said meanwhile where it may go.
        """
        allowed = self._allowed
        if allowed is not None:
            try:
                if os.sched_getaffinity(0) == self._others:
                    os.sched_setaffinity(0, allowed)
            except OSError:
                return
            finally:
                self._allowed = None
