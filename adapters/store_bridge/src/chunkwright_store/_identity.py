"""Identities of objects that cannot be hashed and compare by content, for as long as they live.

The id of an object alone will not do: it may be that of another object later, and what was kept under it (an
index, for instance) would be taken for that one's.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Hashable
from typing import Any

__all__ = ("is_exactly", "weak_identity")

IDENTITIES: dict[int, tuple[weakref.ref[Any], object]] = {}


def is_exactly(thing: Any, module: str, name: str) -> bool:
    """Whether an object is of a class itself, of a module that is not imported for that."""
    if type(thing).__name__ != name:
        return False  # as it nearly always is; this is asked for every call
    found = sys.modules.get(module)
    return found is not None and type(thing) is getattr(found, name, None)


def weak_identity(thing: Any) -> Hashable:
    """A token per live object; its number where an object cannot be referred to weakly."""
    number = id(thing)
    known = IDENTITIES.get(number)
    if known is None:
        try:
            reference = weakref.ref(thing, lambda dead: _forget(number, dead))
        except TypeError:
            return ("id", number)
        # No lock, which a forked child might find taken: of two threads that get here, one adds the token of both.
        known = IDENTITIES.setdefault(number, (reference, object()))
    return known[1]


def _forget(number: int, dead: weakref.ref[Any]) -> None:
    # Called before the number can be that of another object.
    known = IDENTITIES.get(number)
    if known is not None and known[0] is dead:
        IDENTITIES.pop(number, None)
