"""Stores that show one snapshot, which never changes.

icechunk is known by its class and never imported: a store of it can only be there when somebody else has done so. A
session that can be written to has no version, because what it shows changes with every write.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from chunkwright_store._identity import is_exactly, weak_identity

__all__ = ("snapshot_of",)


def snapshot_of(store: Any) -> Hashable | None:
    """Say which snapshot a store shows; None when that may change, or is not known."""
    if not is_exactly(store, "icechunk", "IcechunkStore"):
        return None
    session = store.session
    return (weak_identity(store), session.snapshot_id) if session.read_only else None
