"""Every backend that is installed, and the core's own."""

from __future__ import annotations

from importlib.metadata import entry_points

from chunkwright import Backend, ReferenceBackend


def backends() -> list[Backend]:
    """One object of each."""
    installed = [point.load()() for point in entry_points(group="chunkwright.backends")]
    return [ReferenceBackend(), *sorted(installed, key=lambda backend: backend.name)]
