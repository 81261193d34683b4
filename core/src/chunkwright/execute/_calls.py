"""Foreign calls, runs and positions: what decoding and encoding are made of.

Both are generators that yield :class:`~chunkwright.ports.ForeignCall` values and are sent their results: a
backend's work is done between two yields, a foreign codec's work is done by whoever drives the generator. So one
implementation serves a synchronous driver (:func:`run_calls`) and one that awaits codecs on an event loop.
An error of a foreign codec is thrown into the generator, so that it gets its position like any other.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright.buffers import Buffers
from chunkwright.errors import CodecError, ConfigurationError, CorruptChunkError, PlanError
from chunkwright.ports import ForeignCall, ForeignRun, Run

__all__ = ("Calls", "decode_runs", "encode_runs", "items_of", "positions", "rows_of", "run_calls", "workers")

type Calls[T] = Generator[ForeignCall, Sequence[Any | None], T]
type AnyRun = Run | ForeignRun


def run_calls[T](calls: Calls[T]) -> T:
    """Drive a generator of this module to its end without an event loop.

    Parameters
    ----------
    calls
        A generator of foreign calls.

    Returns
    -------
    T
        What the generator returns.

    Raises
    ------
    PlanError
        When a codec can only be awaited.
    """
    try:
        call = next(calls)
        while True:
            try:
                result = _start(call)
            except Exception as error:
                call = calls.throw(error)
            else:
                call = calls.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value


def _start(call: ForeignCall) -> Sequence[Any | None]:
    if call.is_async:
        raise PlanError("this codec can only be awaited on an event loop", codec=call.run.codec.name)
    result: Sequence[Any | None] = call.start()
    return result


MOST_WORKERS = 2**31 - 1
"""No machine has more CPUs."""


def workers(max_workers: int | None) -> int | None:
    """Check a limit of threads that a caller gave, so that every backend is given one that it can take.

    Parameters
    ----------
    max_workers
        The limit.

    Returns
    -------
    int or None
        The same, or less where no machine has so many CPUs.

    Raises
    ------
    ConfigurationError
        When it is below 1.

    Examples
    --------
    >>> workers(2**100) == 2**31 - 1
    True
    """
    if max_workers is None:
        return None
    if max_workers < 1:
        raise ConfigurationError("max_workers must be at least 1", found=max_workers)
    return min(max_workers, MOST_WORKERS)


@contextmanager
def positions(rows: NDArray[np.int64] | Sequence[int]) -> Iterator[None]:
    """Translate positions of errors from a smaller batch to the caller's.

    Parameters
    ----------
    rows
        Row of the caller's batch for each row of the smaller one.
    """
    try:
        yield
    except CodecError as error:
        if error.position is not None:
            error.at(int(rows[error.position]))
        raise


def decode_runs(runs: Sequence[AnyRun], data: Any, max_workers: int | None) -> Calls[Any]:
    """Decode through runs, last first; ``data`` is Buffers, or a list of arrays or buffers."""
    for run in reversed(runs):
        if isinstance(run, ForeignRun):
            data = yield from _decode_foreign(run, data)
        elif run.kinds[0] == "bytes->bytes":
            data = run.backend.decode_bytes(run, rows_of(data), max_workers=max_workers)
        else:
            data = run.backend.decode_arrays(run, items_of(data), max_workers=max_workers)
    return data


def encode_runs(runs: Sequence[AnyRun], data: Sequence[Any | None], max_workers: int | None) -> Calls[list[Any]]:
    for run in runs:
        if isinstance(run, ForeignRun):
            data = yield ForeignCall(run, data, "encode")
        elif run.kinds[0] == "bytes->bytes":
            data = run.backend.encode_bytes(run, data, max_workers=max_workers)
        else:
            data = run.backend.encode_arrays(run, data, max_workers=max_workers)
    return list(data)


def _decode_foreign(run: ForeignRun, data: Any) -> Calls[list[Any]]:
    items = list((yield ForeignCall(run, items_of(data), "decode")))
    if run.codec.kind == "bytes->bytes":
        return items
    for row, array in enumerate(items):
        if array is not None and array.shape != run.step.spec.shape:
            raise CorruptChunkError(
                "wrong decoded shape",
                codec=run.codec.name,
                position=row,
                expected=run.step.spec.shape,
                found=array.shape,
            )
    # They may be views of stored bytes or of one another: a partial write changes them.
    return [array if array is None or array.flags.writeable else array.copy() for array in items]


def rows_of(data: Any) -> Buffers:
    return data if isinstance(data, Buffers) else Buffers.of(data)


def items_of(data: Any) -> list[Any | None]:
    return list(data.views()) if isinstance(data, Buffers) else list(data)
