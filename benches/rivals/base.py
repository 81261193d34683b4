"""What a contender is: it opens an array in a place, and reads or writes selections of it.

Roles decide how the report uses a contender:

``ours``
    chunkwright's pipeline under zarr-python, once for each backend.
``ours direct``
    chunkwright's array, which reads without zarr-python's event loop.
``pipeline``
    Another codec pipeline of zarr-python.
``rival``
    Anything else that a user could take instead.
``limit``
    What cannot be avoided: the C libraries and copies on all cores, with everything planned beforehand.
``nothing``
    What zarr-python costs above a pipeline that does nothing; its results are not compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from numpy.typing import NDArray

from benches.operations import Call
from benches.places import Place

__all__ = ("CannotDoError", "Contender", "Opened", "Role")

type Role = Literal["ours", "ours direct", "pipeline", "rival", "limit", "nothing"]


class CannotDoError(Exception):
    """A contender has no way to do this; the message says why."""


class Opened:
    """An array as one contender has it open."""

    # Whether what is written can be seen in the place; otherwise the contender has a copy of its own.
    in_place: ClassVar[bool] = True

    def read(self, call: Call) -> NDArray[Any]:
        """Read one selection into a new array."""
        raise NotImplementedError

    def write(self, call: Call, values: NDArray[Any]) -> None:
        """Write one selection."""
        raise NotImplementedError

    def read_many(self, calls: Sequence[Call]) -> list[NDArray[Any]]:
        """Read several selections, one after the other."""
        return [self.read(call) for call in calls]

    def read_boxes(self, calls: Sequence[Call]) -> Sequence[NDArray[Any]]:
        """Read boxes of one size, all known beforehand."""
        return self.read_many(calls)

    def close(self) -> None:
        """Give back what the array holds."""


class Contender:
    """Someone to compare, who opens arrays."""

    name: str
    role: Role
    # Whether a reader sees either the old object or the new one while it is replaced.
    atomic = True

    def version(self) -> str:
        """Return the version of the library that does the work."""
        raise NotImplementedError

    def open(self, place: Place) -> Opened:
        """Open the array in a place, or raise :exc:`CannotDoError`."""
        raise NotImplementedError
