"""Copy boxes from the stage, the array that holds what they touch, into the caller's array.

NumPy lets go of the interpreter lock while it copies numbers, so several threads copy side by side, each taking
the next few boxes when it is done with its last. The calling thread is one of them.
"""

from __future__ import annotations

import os
from collections import deque
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chunkwright_store.pool import Pool
from chunkwright_zarr.crops import Boxes

__all__ = ("copy_boxes",)

COPIERS = Pool(max_threads=64)
"""Threads that do nothing but copy; nothing that runs on them waits."""

TASK_NBYTES = 1 << 20
"""Bytes to copy at a time, about; handing them to another thread takes a small part of the time to copy them."""

CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def copy_boxes(boxes: Boxes, stage: NDArray[Any], out: NDArray[Any], max_workers: int | None = None) -> None:
    """Copy every box from the stage to its place.

    Parameters
    ----------
    boxes
        What goes where.
    stage
        What is in the smallest box around all of them.
    out
        The caller's array.
    max_workers
        Limit of threads; None: as many as there are CPUs.

    Examples
    --------
    >>> boxes = Boxes.of(np.array([[5], [4]]), (2,))
    >>> out = np.zeros((2, 2), int)
    >>> copy_boxes(boxes, np.array([40, 50, 60]), out)
    >>> out.tolist()
    [[50, 60], [40, 50]]
    """
    per_task = max(1, TASK_NBYTES * len(boxes) // max(1, int(boxes.count.prod(axis=1).sum()) * out.itemsize))
    tasks = deque(range(0, len(boxes), per_task))
    origin = boxes.bounds[0]
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def work() -> None:
        try:
            while True:
                try:
                    first = tasks.popleft()
                except IndexError:
                    break
                _copy(boxes, slice(first, first + per_task), origin, stage, out)
            ended.put(None)
        except BaseException as error:  # raised again by the caller
            tasks.clear()
            ended.put(error)

    workers = min(max_workers or CPUS, len(tasks))
    for _ in range(workers - 1):
        COPIERS.submit(work)
    work()
    errors = [ended.get() for _ in range(workers)]
    for error in errors:
        if error is not None:
            raise error


def _copy(boxes: Boxes, rows: slice, origin: NDArray[np.int64], stage: NDArray[Any], out: NDArray[Any]) -> None:
    count, place = boxes.count[rows], boxes.out_start[rows]
    start = boxes.start[rows] - origin
    sources, targets = _slices(start, start + count), _slices(place[:, 1:], place[:, 1:] + count)
    for crop, source, target in zip(place[:, 0].tolist(), sources, targets, strict=True):
        out[(crop, *target)] = stage[source]


def _slices(start: NDArray[np.int64], stop: NDArray[np.int64]) -> list[tuple[Any, ...]]:
    """Index of each box; the ellipsis makes a view of 0-d arrays too."""
    columns = [map(slice, *ends) for ends in zip(start.T.tolist(), stop.T.tolist(), strict=True)]
    return list(zip(*columns, [...] * len(start), strict=True))
