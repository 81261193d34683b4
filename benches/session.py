"""One run of the benchmarks: what was chosen, what was measured, and the rules that all suites share.

A contender that cannot do something is noted and left out of the cell. One that is wrong, or raises, is noted as a
failure and left out; a failure of ours makes the run fail, one of a rival is its own affair.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, get_args

import attrs
import numpy as np

from benches.data import DataMissingError, DataSet, make_data
from benches.layouts import Layout
from benches.measure import QUICK, Budget
from benches.operations import Operation
from benches.places import Place
from benches.progress import Progress
from benches.results import Cell, Results, describe_run
from benches.rivals import CannotDoError, Contender, Opened, Role, contenders

__all__ = ("Entrant", "Options", "Session", "WrongError", "assert_equal")


class WrongError(Exception):
    """A contender's result is not what NumPy gives."""


@attrs.frozen
class Options:
    """What the command line chose; an empty tuple means everything."""

    quick: bool = False
    seconds: float = 4.0
    memory_gib: float = 4.0
    suites: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    layouts: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()


@attrs.frozen
class Entrant:
    """A contender with its array open."""

    contender: Contender
    opened: Opened
    place: Place

    def discard(self) -> None:
        """Close the array and remove the place, which was the contender's own."""
        self.opened.close()
        self.place.remove()


def _chosen(name: str, texts: tuple[str, ...]) -> bool:
    return not texts or any(text in name for text in texts)


@attrs.define
class Session:
    """What suites work with."""

    options: Options
    results: Results = attrs.field(factory=Results)
    progress: Progress = attrs.field(factory=Progress)

    def __attrs_post_init__(self) -> None:
        self.results.meta = describe_run(self.options.quick)
        for one in contenders():
            self.results.contenders[one.name] = {"role": one.role, "atomic": one.atomic, "version": one.version()}

    @property
    def budget(self) -> Budget:
        """How much time goes into one cell."""
        return QUICK if self.options.quick else Budget(self.options.seconds)

    @property
    def edge(self) -> int:
        """The edge of the volumes."""
        return 64 if self.options.quick else 256

    def data(self, name: str) -> DataSet | None:
        """Make a data set, if it was chosen and can be had."""
        if not _chosen(name, self.options.data):
            return None
        try:
            return make_data(name, self.edge)
        except DataMissingError as error:
            self.skip(name, "everyone", str(error))
            return None

    def layouts(self, all_layouts: Iterable[Layout]) -> list[Layout]:
        """Return the chosen layouts."""
        sized = [layout.quick() if self.options.quick else layout for layout in all_layouts]
        return [layout for layout in dict.fromkeys(sized) if _chosen(layout.name, self.options.layouts)]

    def stores(self, names: Iterable[str]) -> list[str]:
        """Return the chosen stores."""
        return [name for name in names if _chosen(name, self.options.stores)]

    def operations(self, all_operations: Iterable[Operation]) -> list[Operation]:
        """Return the chosen operations."""
        return [one for one in all_operations if _chosen(one.name, self.options.operations)]

    def contenders(self, roles: Iterable[Role] = get_args(Role.__value__)) -> list[Contender]:
        """Return the chosen contenders of some roles; ours, the limit and zarr's own cost are always chosen."""
        always = ("ours", "ours direct", "limit", "nothing")
        return [
            one
            for one in contenders()
            if one.role in roles and (one.role in always or _chosen(one.name, self.options.rivals))
        ]

    def cell(self, suite: str, data: str, store: str, layout: str, operation: str) -> Cell:
        """Name a cell of this process."""
        return Cell(suite, data, store, layout, operation, len(os.sched_getaffinity(0)))

    def skip(self, what: object, contender: str, why: str) -> None:
        """Note that a contender cannot do something."""
        self.results.skipped.append((str(what), contender, why))

    @contextmanager
    def guard(self, what: object, contender: Contender) -> Iterator[None]:
        """Note whatever a contender raises."""
        try:
            yield
        except CannotDoError as error:
            self.skip(what, contender.name, str(error))
        except Exception as error:  # any exception of any contender is a result of the benchmark
            self.results.failures.append((str(what), contender.name, f"{type(error).__name__}: {error}"))
            self.progress.done(f"FAILED {what}: {contender.name}: {type(error).__name__}: {str(error)[:200]}")

    def open(self, what: object, who: Iterable[Contender], place: Place) -> list[Entrant]:
        """Let contenders open the array in one place."""
        entrants = []
        for contender in who:
            with self.guard(what, contender):
                entrants.append(Entrant(contender, contender.open(place), place))
        return entrants

    def open_copies(self, what: object, who: Iterable[Contender], place: Place) -> list[Entrant]:
        """Let each contender open the array in a copy of a place, which :meth:`Entrant.discard` removes."""
        entrants: list[Entrant] = []
        for contender in who:
            copy = place.copy()
            found = self.open(what, [contender], copy)
            if not found:
                copy.remove()
            entrants += found
        return entrants


def assert_equal(found: Any, expected: Any) -> None:
    """Compare shape, type and bits of numbers, and values of text."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        raise WrongError(f"shape {found.shape}, not {expected.shape}")
    if expected.dtype.kind in "OT":
        same = found.dtype.kind in "OT" and bool((found == expected).all())
    else:
        same = found.dtype == expected.dtype and found.tobytes() == expected.tobytes()
    if not same:
        raise WrongError("the elements differ")
