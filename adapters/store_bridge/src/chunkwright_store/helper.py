"""A second thread for one synchronous call: fetching or storing goes on there while the caller computes.

The threads come from a pool apart from the one for hops, because a hop may wait for its helper: were both to
come from one pool, calls could fill it and wait for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from chunkwright_store.pool import Pool

__all__ = ("HELPERS", "Helper")

HELPERS = Pool(max_threads=64)


class Helper:
    """Runs one function at a time beside the caller; leaving the context waits for the last one.

    Parameters
    ----------
    pool
        Where the thread comes from.

    Examples
    --------
    >>> with Helper() as helper:
    ...     wait = helper.start(lambda: 6 * 7)
    ...     wait()
    42
    """

    __slots__ = ("_ended", "_failure", "_pool", "_result")

    def __init__(self, pool: Pool = HELPERS) -> None:
        self._pool = pool
        self._ended: threading.Lock | None = None
        self._result: Any = None
        self._failure: BaseException | None = None

    def start[T](self, function: Callable[[], T]) -> Callable[[], T]:
        """Run a function beside the caller.

        Parameters
        ----------
        function
            What to run.

        Returns
        -------
        Callable
            :meth:`wait`, which returns what the function does.
        """
        self.wait()
        ended = self._ended = threading.Lock()
        ended.acquire()

        def run() -> None:
            try:
                self._result = function()
            except BaseException as error:  # raised again where the caller waits
                self._failure = error
            ended.release()

        self._pool.submit(run)
        return self.wait

    def wait(self) -> Any:
        """Wait for the function that was started last, if any.

        Returns
        -------
        Any
            What it returned, or None. What it raised is raised here.
        """
        if self._ended is not None:
            self._ended.acquire()
            self._ended = None
        result, self._result = self._result, None
        failure, self._failure = self._failure, None
        if failure is not None:
            try:
                raise failure
            finally:
                # The error has this frame in its traceback: together they would live until the next collection.
                del failure
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.wait()
        except BaseException:
            # The caller's own error came first.
            if error is None:
                raise
