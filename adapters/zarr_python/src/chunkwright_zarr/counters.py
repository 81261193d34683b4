"""How many calls took which path, in this process.

A path is what was asked (``read``, ``write``, ``decode``, ``encode``) and how it was done: ``inline`` on zarr's
own loop, ``sync`` in one thread for the whole batch, ``async`` on the event loop, ``default`` by zarr's own
pipeline. Paths that fall back carry the reason. Fallbacks never warn, because hosts turn warnings into errors:
they are counted here and logged.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter
from typing import Literal

__all__ = ("count", "counters")

logger = logging.getLogger("chunkwright_zarr")

type Call = Literal["read", "write", "decode", "encode"]
type Path = Literal["inline", "sync", "async", "default"]

_lock = threading.Lock()
_counts: Counter[str] = Counter()


def count(call: Call, path: Path, reason: str = "") -> None:
    """Count one call.

    Parameters
    ----------
    call
        What was asked.
    path
        How it was done.
    reason
        Why zarr's own pipeline did it; also logged.
    """
    key = f"{call}.{path}: {reason}" if reason else f"{call}.{path}"
    with _lock:
        _counts[key] += 1
    if reason:
        logger.info("%s by zarr's own pipeline: %s", call, reason)


def counters() -> dict[str, int]:
    """Return how many calls took each path so far.

    Returns
    -------
    dict of str to int
        A snapshot; compare two of them to see what happened in between.

    Examples
    --------
    >>> import zarr, chunkwright_zarr
    >>> before = counters()
    >>> with chunkwright_zarr.use(backend="numcodecs"):
    ...     array = zarr.create_array({}, shape=(4,), dtype="i4")
    >>> _ = array[:]
    >>> [path for path, calls in counters().items() if calls > before.get(path, 0)]
    ['read.inline']
    """
    with _lock:
        return dict(_counts)


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
