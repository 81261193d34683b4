"""Reading parts of objects and replacing objects, without zarr."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from zarr.core.buffer import default_buffer_prototype

from benches.places import LocalPlace, Located, MemoryPlace, Place

__all__ = ("Reader", "opened_object", "replace_file", "replace_object")

# The system takes no more pieces in one write.
MOST_PIECES = 1024


class Reader(Protocol):
    """Part of one object at a time."""

    length: int

    def read(self, start: int, stop: int) -> Any:
        """Return bytes, whose length is ``stop - start``."""
        ...


class FileReader:
    """One descriptor for all that is read of an object in a file."""

    def __init__(self, located: Located) -> None:
        self.length = located.length
        self._start = located.start
        self._file = os.open(located.path, os.O_RDONLY)

    def read(self, start: int, stop: int) -> bytes:
        return os.pread(self._file, stop - start, self._start + start)

    def close(self) -> None:
        os.close(self._file)


class MemoryReader:
    """An object in memory."""

    def __init__(self, view: memoryview) -> None:
        self.length = len(view)
        self._view = view

    def read(self, start: int, stop: int) -> memoryview:
        return self._view[start:stop]


@contextmanager
def opened_object(place: Place, key: str) -> Iterator[Reader | None]:
    """Open an object; None when it is missing."""
    try:
        located = place.locate(key)
    except (FileNotFoundError, KeyError):
        yield None
        return
    if isinstance(located, memoryview):
        yield MemoryReader(located)
        return
    reader = FileReader(located)
    try:
        yield reader
    finally:
        reader.close()


def replace_object(place: Place, key: str, pieces: Sequence[Any]) -> None:
    """Write an object, as one that is complete at every moment."""
    if isinstance(place, MemoryPlace):
        place.objects[key] = default_buffer_prototype().buffer.from_bytes(b"".join(pieces))
    elif isinstance(place, LocalPlace):
        replace_file(place.folder / key, pieces)
    else:
        raise TypeError(f"{place.kind} is not written to by hand")


def replace_file(path: Path, pieces: Sequence[Any]) -> None:
    """Write a file under another name and rename it."""
    temporary = path.with_name(f"{path.name}.{uuid4().hex}")
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        for first in range(0, len(pieces), MOST_PIECES):
            os.writev(file, pieces[first : first + MOST_PIECES])
    finally:
        os.close(file)
    temporary.replace(path)
