"""Chunks of zarr's memory stores, as they hold them.

To ask such a store takes two function calls, a check of a protocol and two views: more than a small chunk takes to
decode.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ("content",)


def content(at: Any, prototype: Any) -> NDArray[np.uint8] | None:
    """Take a whole chunk of a memory store.

    Parameters
    ----------
    at
        A ``StorePath`` of kind ``memory``: no method of its store is overridden.
    prototype
        Buffers to ask the store for.

    Returns
    -------
    NDArray or None
        uint8, shape ``(bytes,)``, the store's own memory; None for a missing chunk.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> store = SimpleNamespace(_is_open=True, _store_dict={})
    >>> content(SimpleNamespace(store=store, path="c/0"), None) is None
    True
    """
    store: Any = at.store
    # A store below a path puts it before each key, and one that is closed opens itself when it is asked.
    if store._is_open and not getattr(store, "path", ""):
        try:
            data = store._store_dict[at.path]
        except KeyError:
            return None
    else:
        data = store.get_sync(at.path, prototype=prototype)
    return None if data is None else data.as_numpy_array()
