"""Carry out work that calls foreign codecs which can only be awaited.

The generator runs off the loop; it comes back with a call that must be awaited, which is done on the loop, and
is then sent the result. Calls of other foreign codecs are made where the generator runs. An error of a codec is
thrown into the generator, which knows to which chunks the call belonged.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import attrs

from chunkwright_store.pool import run_off_loop

__all__ = ("await_calls",)


@attrs.frozen
class _Finished:
    value: Any


async def await_calls[T](calls: Generator[Any, Any, T], *, on_cancel: Callable[[], object] | None = None) -> T:
    """Carry out work of the core whose foreign codecs may have to be awaited.

    Parameters
    ----------
    calls
        For instance what ``work.calls(out)`` returned.
    on_cancel
        Called on the loop when the wait is cancelled while the generator runs in its thread.

    Returns
    -------
    T
        What the generator returned.

    Examples
    --------
    >>> import asyncio
    >>> def no_calls():
    ...     return 7
    ...     yield
    >>> asyncio.run(await_calls(no_calls()))
    7
    """
    try:
        step = await run_off_loop(lambda: _advance(calls, None, None), on_cancel=on_cancel)
        while not isinstance(step, _Finished):
            answer, failure = None, None
            try:
                answer = await step.start()
            except Exception as error:  # goes on in the generator
                failure = error
            advance = partial(_advance, calls, answer, failure)
            step = await run_off_loop(advance, on_cancel=on_cancel)
        result: T = step.value
        return result
    finally:
        calls.close()


def _advance(calls: Generator[Any, Any, Any], answer: Any, failure: Exception | None) -> Any:
    """Resume the generator until it ends or has a call that must be awaited."""
    try:
        while True:
            call = calls.send(answer) if failure is None else calls.throw(failure)
            if call.is_async:
                return call
            answer, failure = None, None
            try:
                answer = call.start()
            except Exception as error:  # goes on in the generator
                failure = error
    except StopIteration as stop:
        return _Finished(stop.value)
