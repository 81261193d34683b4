"""The raw limit: what reading or writing costs when nothing is left but the C libraries and the copies.

Everything that can be known beforehand is planned before the clock starts: which objects are touched, where the
bytes of each cell lie (indexes of shards are fetched again, but not parsed), and where its elements go. What remains
is timed: a new result (the system hands out its pages as they are touched), reading files, decoding or encoding on
all cores with nothing in between, one copy of each element, and replacing files.

Cells that are small are decoded and encoded many at a time by one call of python-zstandard, which loops in C with one
context, and are copied by one assignment of NumPy's; otherwise Python's own cost for each cell would be part of
the limit. What is left of Python is a few microseconds for a megabyte. Only for very many small files is the limit
above what native code reaches.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

import numcodecs.blosc
from numpy.typing import NDArray

from benches.operations import Call
from benches.places import LocalPlace, MemoryPlace, Place, ZipPlace
from benches.rivals.base import CannotDoError, Contender, Opened
from benches.rivals.limit_reads import ReadPlan
from benches.rivals.limit_writes import WritePlan
from benches.rivals.objects import opened_object
from benches.rivals.stored_format import StoredFormat

__all__ = ("Limit",)


class Crew:
    """Threads, the caller's among them, that share out tasks one at a time.

    Those that replace files are twice as many as there are CPUs, because renaming waits for the disk.
    """

    def __init__(self, threads: int) -> None:
        self.others = threads - 1
        self.pool = ThreadPoolExecutor(max(self.others, 1))

    def run(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run all tasks."""
        remaining = iter(tasks)
        lock = threading.Lock()
        helpers = [self.pool.submit(_work, remaining, lock) for _ in range(min(self.others, len(tasks) - 1))]
        _work(remaining, lock)
        for helper in helpers:
            helper.result()


def _work(tasks: Iterator[Callable[[], None]], lock: threading.Lock) -> None:
    while True:
        with lock:
            task = next(tasks, None)
        if task is None:
            return
        task()


class LimitArray(Opened):
    """An array all of whose operations are planned when they are first carried out."""

    def __init__(self, place: Place, form: StoredFormat) -> None:
        cpus = len(os.sched_getaffinity(0))
        self.place, self.form = place, form
        self.readers, self.writers = Crew(cpus), Crew(2 * cpus if isinstance(place, LocalPlace) else cpus)
        self.reads: dict[tuple[Call, ...], ReadPlan] = {}
        self.writes: dict[Call, WritePlan] = {}

    def close(self) -> None:
        self.readers.pool.shutdown()
        self.writers.pool.shutdown()

    def read(self, call: Call) -> NDArray[Any]:
        return self.read_many([call])[0]

    def read_many(self, calls: Sequence[Call]) -> list[NDArray[Any]]:
        key = tuple(calls)
        if key not in self.reads:
            self.reads[key] = ReadPlan(self.place, self.form, calls)
        return self.reads[key].run(self.readers.run)

    def write(self, call: Call, values: NDArray[Any]) -> None:
        if call not in self.writes:
            self.writes[call] = WritePlan(self.place, self.form, call)
        self.writes[call].run(values, self.writers.run)


class Limit(Contender):
    """C libraries and copies on all cores."""

    name = "limit"
    role = "limit"

    def version(self) -> str:
        return f"zstandard {version('zstandard')}, numcodecs {version('numcodecs')}"

    def open(self, place: Place) -> Opened:
        if not isinstance(place, LocalPlace | MemoryPlace | ZipPlace) or place.kind == "latency":
            raise CannotDoError(f"no limit is defined for {place.kind}")
        numcodecs.blosc.use_threads = False
        with opened_object(place, "zarr.json") as reader:
            if reader is None:
                raise CannotDoError("there is no array")
            form = StoredFormat.from_metadata(reader.read(0, reader.length))
        _check_shape(form.shape, form.chunk)
        return LimitArray(place, form)


def _check_shape(shape: Iterable[int], chunk: Iterable[int]) -> None:
    if any(extent % edge for extent, edge in zip(shape, chunk, strict=True)):
        raise CannotDoError("the limit is measured where chunks divide the array")
